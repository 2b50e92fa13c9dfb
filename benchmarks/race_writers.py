"""What do RACE's writers that keep the source's claim cost, and what do they give?

The offline preset on the demo's rows, in one process and without a cache, as it is and with the paper's writer alone: all causal
entities are edited, every claim is generated anew, and neither words nor copies are checked. Seconds are of the processor. The
counterfactuals are described by how far their claims are copied from a piece of the evidence, and how much of the source they
keep; `docs/results/rated_pairs.md` says how many are right.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.update(
    HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false"
)

from typing import Any

from common import read_options, show
from datasets import Dataset, disable_caching

import hfcf
from hfcf.core import recipe
from hfcf.metrics.copy_rate import measure_copy_rate
from hfcf.metrics.minimality import measure_minimality

ALONE: dict[str, Any] = {
    "claimed": False, "by_words": False, "certainty": 0.0, "follow": False, "corrector": None, "max_unsupported": None,
    "min_log_probability": None, "max_copied": None, "min_kept": None, "fluency_model": None,
}  # fmt: skip


def main() -> None:
    """Run both, and print the figures."""
    options = read_options(__doc__ or "")
    disable_caching()
    ds = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    ds = ds.select(range(min(len(ds), 10 if options.quick else 40)))
    figures: dict[str, Any] = {"rows": len(ds)}
    table: list[list[Any]] = []
    for name, changes in (("three writers", {}), ("the paper's alone", ALONE)):
        race = hfcf.RACE.preset("offline", **changes)
        race(ds.select(range(4)))  # loads and warms every model
        start = time.process_time()
        made = hfcf.expand(race(ds))
        seconds = time.process_time() - start
        claims = [row for row in made if row["change"] == "claim"]
        copies = [score["rate"] for score in measure_copy_rate(Dataset.from_list(claims))]
        kept = [score["kept"] for score in measure_minimality(Dataset.from_list(claims))]
        figures[name] = {
            "rows_per_second": len(ds) / seconds, "counterfactuals": len(made), "sources": len(set(made["source_id"])),
            "copy_rate": statistics.fmean(copies) if copies else None, "words_kept": statistics.fmean(kept) if kept else None,
        }  # fmt: skip
        table.append([name, *(value if value is not None else "–" for value in figures[name].values())])
    figures["faster"] = figures["three writers"]["rows_per_second"] / figures["the paper's alone"]["rows_per_second"]
    show(
        f"RACE, offline preset, {len(ds)} rows of the demo",
        ["writers", "rows/CPU s", "counterfactuals", "of sources", "copy rate", "words kept"], table, options.json, figures,
    )  # fmt: skip
    print(f"with three writers {figures['faster']:.2g} times as fast")


if __name__ == "__main__":
    main()
