"""Does a stream's memory grow with its rows? Synthetic claims through EDA and through CrossAug's evidence modification.

Rows are made as they are read, and go through every stage as a stream (CrossAug's negative claims are given) to `expand`.
Resident memory is read when the tenth part of the rows has been made, and when the last one has. Beside the chains stands a map
that does nothing, over the same rows; seconds are of the processor. `HFCF_STREAM_ROWS` changes the number of rows.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

from common import read_options, show
from datasets import Features, IterableDataset

import hfcf
from hfcf.core import schema
from hfcf.core.mapping import map_stage
from hfcf.core.task import get_task
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.crossaug import CrossAug

CITIES = ("Oslo", "Rome", "Paris", "Lima", "Cairo", "Delhi", "Quito", "Sofia", "Turin", "Leeds")
TASK = get_task("verification")


class Memory:
    """Read the process's resident memory while rows are made."""

    def __init__(self, rows: int) -> None:
        self.rows, self.early, self.late = rows, 0.0, 0.0

    def watch(self, i: int) -> None:
        """Read it when a tenth of the rows, and all of them, have been made."""
        if i + 1 == self.rows // 10:
            self.early = resident()
        elif i + 1 == self.rows:
            self.late = resident()


def resident() -> float:
    """Return resident memory in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def stream_rows(n: int, memory: Memory) -> IterableDataset:
    """Make claims with two pieces of evidence, and a negative claim each."""

    def rows() -> Iterator[dict[str, Any]]:
        random = Random(13)
        for i in range(n):
            city, other, another = random.sample(CITIES, 3)
            year = random.randrange(1800, 2020)
            claim = f"The museum number {i} in {city} was opened to its first visitors in the spring of {year}."
            evidence = [
                {"title": city, "text": f"The museum number {i} stands in {city} and was opened in {year}, after long works."},
                {"title": other, "text": f"{other} has {random.randrange(2, 90)} museums, and {another} has more of them."},
            ]
            yield {
                "id": f"row-{i}", "claim": claim, "evidence": evidence, "label": "SUPPORTS", "group_id": f"row-{i}",
                "corpus": "jsonl", "split": "train", "negative_claim": claim.replace(city, other),
            }  # fmt: skip
            memory.watch(i)

    features = Features({**TASK.features, "negative_claim": schema.TEXT})
    return IterableDataset.from_generator(rows, features=features)


def through_crossaug(ds: IterableDataset) -> IterableDataset:
    """Modify the evidence and pair crosswise, without a verifier."""
    crossaug = CrossAug.preset("offline", verifier=None)
    stages = [crossaug.modify_evidence, crossaug.cross_pairs, crossaug.judge_candidates]
    ds = hfcf.prepare(ds, stages)
    for stage in stages:
        ds = map_stage(ds, stage, {})
    return ds


def through_eda(ds: IterableDataset) -> IterableDataset:
    """Rewrite claims by EDA."""
    return EDA()(ds)


def expand(chain: Callable[[IterableDataset], IterableDataset], n: int) -> dict[str, float]:
    """Stream the rows through a chain; return seconds and memory."""
    memory = Memory(n)
    start = time.process_time()
    # The check of the first rows' labels reads a few of them twice.
    made = sum(len(batch["id"]) for batch in hfcf.expand(chain(stream_rows(n, memory))).iter(1000))
    seconds = time.process_time() - start
    return {
        "seconds": seconds, "rows_per_second": n / seconds, "early_mib": memory.early, "late_mib": memory.late,
        "growth": memory.late / memory.early - 1, "counterfactuals": made,
    }  # fmt: skip


def identity(n: int) -> float:
    """Return rows a second of a map that does nothing."""
    start = time.process_time()
    for _ in stream_rows(n, Memory(n)).map(lambda batch: batch, batched=True).iter(1000):
        pass
    return n / (time.process_time() - start)


def main() -> None:
    """Stream through both chains and print memory and rows per second."""
    options = read_options(__doc__ or "")
    n = int(os.environ.get("HFCF_STREAM_ROWS") or (5_000 if options.quick else 1_000_000))
    figures: dict[str, Any] = {"rows": n, "identity_rows_per_second": identity(min(n, 50_000))}
    table = []
    for name, chain in (("CrossAug", through_crossaug), ("EDA", through_eda)):
        figures[name] = found = expand(chain, n)
        share = found["rows_per_second"] / figures["identity_rows_per_second"]
        memory = [f"{found['early_mib']:.0f}", f"{found['late_mib']:.0f}", f"{found['growth']:+.1%}"]
        table.append([name, f"{found['rows_per_second']:.0f}", f"{share:.2f}", *memory])
    show(
        f"{n:,} rows streamed; a map that does nothing: {figures['identity_rows_per_second']:.0f} rows/s",
        ["chain", "rows/s", "of that map", f"MiB at row {n // 10:,}", f"at row {n:,}", "growth"],
        table, options.json, figures,
    )  # fmt: skip


if __name__ == "__main__":
    main()
