"""How much faster is a dense index for a batch of questions than one by one, and an approximate one than the exact, at what recall?

Vectors are synthetic: 2,000 groups of 128 dimensions, one vector in a hundred a copy of another, so that scores tie. Questions are
noisy copies of vectors. Every side is this library's own search, scores in float64 and ties by number included; encoding is not
part of it. Sides are measured in turns, and the median of their ratios counts, so that neighbours disturb little.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

import numpy as np
from common import read_options, show

DIMENSIONS, K = 128, 20


def vectors(size: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of passages and of questions."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((2_000, DIMENSIONS))
    found = (centres[rng.integers(0, 2_000, size)] + 0.7 * rng.standard_normal((size, DIMENSIONS))).astype(np.float32)
    found[99::100] = found[62 : 62 + 100 * len(found[99::100]) : 100]
    questions = found[rng.integers(0, size, number)] + 0.5 * rng.standard_normal((number, DIMENSIONS))
    return found, questions.astype(np.float32)


class Side:
    """An index of this library, filled, with the questions that it is asked one by one and in a batch."""

    def __init__(self, name: str, search: str, passages: np.ndarray) -> None:
        from hfcf.engines.retriever.dense import add_vectors, new_index
        from hfcf.engines.retriever.dense import search as find

        index = new_index(name, search, DIMENSIONS, len(passages))
        start = time.perf_counter()
        add_vectors(index, lambda numbers: passages[numbers], len(passages))
        self.name, self.build_seconds, self.find = name, time.perf_counter() - start, partial(find, index)

    def ask(self, questions: np.ndarray, batch: int) -> tuple[list[Any], float]:
        start = time.perf_counter()
        parts = [questions[i : i + batch] for i in range(0, len(questions), batch)]
        hits = [found for part in parts for found in self.find(part, K)]
        return hits, time.perf_counter() - start


def main() -> None:
    """Measure every index alone and in batches, and against the exact one."""
    options = read_options(__doc__ or "")
    size, number, turns = (10_000, 256, 3) if options.quick else (50_000, 1_024, 5)
    passages, questions = vectors(size, number)
    lists = size // 200
    names = {"Flat": "", "HNSW32": "efSearch=64", f"IVF{lists},Flat": "nprobe=32", f"IVF{lists},SQ8": "nprobe=32"}
    sides = [Side(name, search, passages) for name, search in names.items()]
    figures: dict[str, Any] = {"passages": size, "questions": number, "dimensions": DIMENSIONS, "k": K}
    seconds: dict[str, list[tuple[float, float]]] = {side.name: [] for side in sides}
    answers: dict[str, list[Any]] = {}
    for _ in range(turns):
        for side in sides:
            together, whole = side.ask(questions, 256)
            _, alone = side.ask(questions, 1)
            seconds[side.name].append((alone, whole))
            answers[side.name] = together
    exact = [{number for number, _ in hits} for hits in answers["Flat"]]
    table: list[list[Any]] = []
    for side in sides:
        batches = statistics.median(alone / whole for alone, whole in seconds[side.name])
        faster = statistics.median(
            flat / library for (_, flat), (_, library) in zip(seconds["Flat"], seconds[side.name], strict=True)
        )  # fmt: skip
        found = zip(answers[side.name], exact, strict=True)
        recall = statistics.mean(len({number for number, _ in hits} & true) / len(true) for hits, true in found)
        per_second = number / statistics.median(whole for _, whole in seconds[side.name])
        table.append([side.name, names[side.name], side.build_seconds, per_second, batches, faster, recall])
        figures[side.name] = {
            "search": names[side.name], "build_seconds": side.build_seconds, "per_second": per_second,
            "batches_faster": batches, "faster_than_flat": faster, f"recall@{K}": recall,
        }  # fmt: skip
    columns = ["index", "search", "build s", "questions/s", "batch : one by one", "against Flat", f"recall@{K}"]
    show(f"{size:,} vectors of {DIMENSIONS} dimensions, batches of 256", columns, table, options.json, figures)


if __name__ == "__main__":
    main()
