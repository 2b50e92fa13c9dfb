"""Does the memory that publishing a dataset takes grow with its rows? Made rows with a counterfactual each, published with metrics.

The rows lie on disk, as after a run. Each size is published by a process of its own, which watches its memory: how much more than
before it holds at most, without mapped files. The difference between the sizes is what a row takes, beside the bytes of the row
itself in Arrow. `HFCF_PUBLISH_ROWS` changes the number of rows, of which the smaller set has a third.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

from common import read_options, show
from datasets import Dataset, Features, load_from_disk
from retrieval import Memory, words

from hfcf.core import edits, schema
from hfcf.core.task import get_task
from hfcf.pipeline.publish import publish

TASK = get_task("verification")
RUN: dict[str, Any] = {
    "name": "made", "task": "verification", "corpus": "jsonl", "split": "train", "role": None, "seed": 13, "preset": "paper",
    "settings": {}, "models": {}, "stages": [], "limit": None, "citation": "", "checked_by": None,
}  # fmt: skip
CORPUS: dict[str, Any] = {
    "title": "Made rows", "licence": "unknown", "hub_id": None, "language": "en", "paper": None, "citation": "", "labels": [],
    "republish": True, "request": None, "release": "yours",
}  # fmt: skip
METRICS = ["minimality", "diversity", "copy_rate", "multi_hop", "duplicates", "label_balance"]
COLUMNS = {"status": schema.STATUS, "candidates": [TASK.candidate_features], "counterfactuals": [dict(TASK.counterfactual)]}
FEATURES = Features({**TASK.features, **COLUMNS})


def rows(n: int) -> Iterator[dict[str, Any]]:
    """Make rows of random words with one candidate each, which changes a word; every fourth is rejected."""
    random, vocabulary = Random(13), words().tolist()
    for i in range(n):
        drawn = random.choices(vocabulary, k=62)
        claim, other = " ".join(drawn[:12]), " ".join([*drawn[:5], drawn[61], *drawn[6:12]])
        evidence = [{"title": drawn[0], "text": " ".join(drawn[:36])}, {"title": drawn[1], "text": " ".join(drawn[36:61])}]
        common = {"evidence": evidence, "group_id": f"row-{i}", "corpus": "jsonl", "split": "train"}
        row = {"id": f"row-{i}", "claim": claim, "label": "SUPPORTS", **common}
        change = {"change": "claim", "edits": edits.rewrite("claim", claim, other), "scores": [{"name": "p", "value": 0.9}]}
        status = {"accepted": i % 4 > 0, "stage": "check", "reason": None if i % 4 else "the verifier is not sure"}
        candidate = {**change, "claim": other, "label": "REFUTES", "status": status}
        provenance = {"source_id": row["id"], "system": "made"}
        made = {**common, **change, **provenance, "id": f"row-{i}:made", "claim": other, "label": "REFUTES"}
        yield {
            **row, "status": status, "candidates": [{name: candidate.get(name) for name in TASK.candidate_features}],
            "counterfactuals": [made] if i % 4 else [],
        }  # fmt: skip


def measure(folder: str, out: str) -> dict[str, float]:
    """Publish the rows of a folder; return seconds, MiB that this took at most, and bytes of a row."""
    ds = load_from_disk(folder)
    with Memory() as before:
        time.sleep(0.2)
    start = time.process_time()
    with Memory() as during:
        publish(
            ds, Path(out), run={**RUN, "system": "made"}, recipe={}, corpus=CORPUS, command="python benchmarks/publishing.py",
            stages=["check"], metrics=METRICS,
        )  # fmt: skip
    return {"seconds": time.process_time() - start, "mib": during.own - before.own, "row_bytes": ds.data.nbytes / len(ds)}


def main() -> None:
    """Publish both sets and print memory and seconds."""
    options = read_options(__doc__ or "")
    n = int(os.environ.get("HFCF_PUBLISH_ROWS") or (3_000 if options.quick else 120_000))
    figures: dict[str, Any] = {}
    table = []
    for size in (n // 3, n):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            made = Dataset.from_generator(rows, features=FEATURES, gen_kwargs={"n": size}, cache_dir=str(place / "cache"))
            made.save_to_disk(str(place / "rows"))
            command = [sys.executable, __file__, "--measure", str(place / "rows"), str(place / "out")]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        figures[f"{size}"] = found = json.loads(done.stdout.splitlines()[-1])
        table.append([f"{size:,}", found["mib"], found["seconds"], found["seconds"] / size * 1e3, found["row_bytes"]])
    few, many = figures.values()
    figures["bytes_a_row"] = grown = (many["mib"] - few["mib"]) * 2**20 / (n - n // 3)
    figures["ratio"] = grown / many["row_bytes"]
    title = f"Published from disk with metrics; a row more takes {grown:,.0f} bytes, {figures['ratio']:.2f} of its own"
    show(title, ["rows", "MiB", "CPU s", "ms a row", "bytes of a row"], table, options.json, figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:4])))
    else:
        main()
