"""Does the memory of CCG's search for causal terms grow with its rows?

The stage runs on two numbers of rows in batches of 256, each in a process of its own that has trained nothing: peak memory and, of
it, what the libraries and the rows took before the stage; seconds of the processor. The two indicators are trained once, one epoch
each, on half of the rows, and kept in the cache folder. Rows are those of `benchmarks/intervention.py`: SemEval's, if `HFCF_DATA`
names the folder with the corpora, else made-up ones, which are shorter.

`HFCF_PEER` may name the folder of another checkout, such as an earlier commit: the same rows go through its stage, too, and the
exit code is 1 if its answers differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

os.environ.update(HFCF_REQUEST_CACHE="off", HFCF_DEVICE="cpu", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

from common import read_options, show
from datasets import Dataset
from intervention import rows

import hfcf
from hfcf.core.task import get_task
from hfcf.systems.ccg.system import CCG

FILLS = 3
"""Of each word: few, since memory does not depend on them."""


def fitted() -> tuple[Any, Dataset]:
    """Return the stage with its indicators, and the rows that they were trained on."""
    train, test, _ = rows()
    ds = Dataset.from_list([*train, *test][:720], features=get_task("relation").features).shuffle(seed=4)
    return CCG.preset("offline", top=FILLS, classifier={"epochs": 1}, min_steps=0).identify_causal_terms.fit(ds), ds


def measure(number: int) -> dict[str, Any]:
    """Run the stage on some rows in this process."""
    stage, ds = fitted()
    ds = hfcf.prepare(ds.select(range(number)), stage)
    before, start = peak(), time.process_time()
    found = ds.map(stage, batched=True, batch_size=stage.batch_size, load_from_cache_file=False)
    seconds = time.process_time() - start
    answers = sha256(json.dumps(found.select_columns([*stage.columns()]).to_list()).encode()).hexdigest()
    return {"rows": number, "before_mib": before, "peak_mib": peak(), "seconds": seconds, "answers": answers}


def peak() -> int:
    """Return the most memory that this process ever had, in MiB."""
    # `resource` would count the parent's, too.
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def ask(number: int, folder: str | None) -> dict[str, Any]:
    """Measure in another process, with this library or with that of a folder."""
    path = {"PYTHONPATH": folder} if folder else {}
    command = [sys.executable, __file__, str(number)]
    done = subprocess.run(command, env={**os.environ, **path}, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure both numbers of rows, and print memory and seconds."""
    options = read_options(__doc__ or "")
    fitted()
    peer = os.environ.get("HFCF_PEER")
    measured = [
        {"library": name, **ask(number, folder)}
        for number in ((6, 24) if options.quick else (180, 720))
        for name, folder in (("this one", None), *([("the other", peer)] if peer else []))
    ]
    columns = ["library", "rows", "before_mib", "peak_mib", "seconds"]
    table = [[figures[column] for column in columns] for figures in measured]
    show("CCG's search for causal terms", columns, table, options.json, {"measured": measured})
    answers = {
        number: {figures["answers"] for figures in measured if figures["rows"] == number}
        for number in {figures["rows"] for figures in measured}
    }
    if any(len(different) > 1 for different in answers.values()):
        raise SystemExit("the two libraries give different answers")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].isdigit():
        print(json.dumps(measure(int(sys.argv[1]))))
    else:
        main()
