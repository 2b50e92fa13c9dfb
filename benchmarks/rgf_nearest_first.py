"""How many questions a second does RGF work on, with its readers asked about the nearest generated questions first?

The offline preset on the demo's questions, in one process and without a cache. What both ways share (retrieve, read, generate) runs
once. Then the readers are asked about every question, and about the nearest first. Seconds are of the processor; "in all" has the
shared stages in both. The questions that are kept, their scores and their statuses must be equal: else the exit code is 1.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false"
)

from common import patched, read_options, show
from datasets import Dataset, disable_caching

import hfcf
from hfcf.core import recipe
from hfcf.core.candidates import undecided
from hfcf.core.mapping import map_stage
from hfcf.engines.reader import Reader

DEMO = recipe.folder() / "demo_qa"


def kept(ds: Dataset) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the undecided candidates of each question: the ones that both filters keep."""
    return [(row["id"], [candidate for candidate in row["candidates"] or [] if undecided(candidate)]) for row in ds]


def main() -> None:
    """Run both ways, compare what they keep, and print the figures."""
    options = read_options(__doc__ or "")
    disable_caching()
    rows, k = (6, 3) if options.quick else (20, 10)
    ds = hfcf.load("questions", data_dir=DEMO, split="train", on_error="reject").select(range(rows))
    rgf = hfcf.RGF.preset("offline", passages=DEMO / "passages.jsonl", k=k)
    rgf(ds.select(range(1)))  # loads and warms every model
    made = hfcf.prepare(ds, rgf)
    shared = 0.0
    for stage in (rgf.retrieve, rgf.read, rgf.generate_question):
        start = time.process_time()
        made = map_stage(made, stage, {})
        shared += time.process_time() - start

    figures: dict[str, Any] = {"rows": rows, "passages": k, "shared_seconds": shared}
    table, results = [], []
    run = Reader.run
    for name, keep in (("all", None), ("nearest first", 1)):
        counts: list[int] = []
        filters = (rgf.replace(keep=keep).round_trip, rgf.minimality)

        def count(self: Reader, requests: Any, counts: list[int] = counts) -> list[Any]:
            counts.append(len(requests))
            return run(self, requests)

        with patched((Reader, "run", count)):
            start = time.process_time()
            filtered = map_stage(map_stage(made, filters[0], {}), filters[1], {})
            seconds = time.process_time() - start
        results.append(kept(filtered))
        figures[name] = {
            "reads": sum(counts), "filter_seconds": seconds, "filter_questions_per_second": rows / seconds,
            "questions_per_second": rows / (shared + seconds),
        }  # fmt: skip
        table.append([name, sum(counts), rows / seconds, rows / (shared + seconds)])
    first, last = figures["all"], figures["nearest first"]
    figures["equal"] = results[0] == results[1]
    figures["filter_faster"] = first["filter_seconds"] / last["filter_seconds"]
    figures["faster"] = (shared + first["filter_seconds"]) / (shared + last["filter_seconds"])
    show(
        f"RGF, offline preset, {rows} questions of the demo with {k} passages each",
        ["readers asked about", "reads", "questions/CPU s, filters", "in all"], table, options.json, figures,
    )  # fmt: skip
    print(f"filters {figures['filter_faster']:.2g} times as fast, in all {figures['faster']:.2g}; equal rows: {figures['equal']}")
    if not figures["equal"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
