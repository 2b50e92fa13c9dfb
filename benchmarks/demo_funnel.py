"""How many rows of the demo does each stage leave, and how many candidates does it reject?

    python benchmarks/demo_funnel.py [--quick] [--json FILE] [--run DIR]

`--run` names the folder of a finished `hfcf run demo`, which is then read and not repeated; `--quick` runs five rows.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from common import read_options, show

from hfcf.pipeline.run import run


def main() -> None:
    """Run the demo, or read a run of it, and print its funnel."""
    options = read_options(__doc__ or "", run="the folder of a finished run of the demo")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.run or Path(temporary, "demo")
        if not options.run:
            run("demo", folder, limit=5 if options.quick else None)
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    steps = [[step["stage"], step["rows_out"], step["candidates_rejected"]] for step in record["funnel"]]
    figures = {
        "rows": record["rows_in"],
        "sources": record["sources_accepted"],
        "counterfactuals": record["counterfactuals"],
        "steps": steps,
    }
    title = f"{record['counterfactuals']} counterfactuals of {record['sources_accepted']} of {record['rows_in']} rows"
    show(title, ["stage", "rows left", "candidates rejected"], steps, options.json, figures)


if __name__ == "__main__":
    main()
