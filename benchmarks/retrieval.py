"""How long does BM25 take to index and search a million passages, in how much memory, and is the top 10 that of a brute force?

Passages are synthetic: 60 to 140 words each, drawn from 200,000 words by Zipf's law, and one in a hundred is a copy of another, so
that scores tie. Questions are 3 to 8 words of a random passage. Each step is a process of its own: making the collection, building
the index, searching. Seconds are of the processor, so neighbours disturb little. Memory is the peak of a process, and in it the
part that is no mapped file; the rest the system may drop.

The brute force is the same variant of BM25 in float64 over every passage, summed from counts of words without any index. Scores
within 1e-4 of each other are equal, and in the order of the passages' numbers (`hfcf.core.decisions`). The same passages are
required, with scores that are equal in that sense: else the exit code is 1.

rank_bm25 indexes and searches the first passages, at the largest size whose index is made in about a minute; both sides get the
same questions there, tokens included. Without it only this library is measured (pip install rank_bm25==0.2.2).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from common import read_options, show

CURE = "pip install rank_bm25==0.2.2"
WORDS, K = 200_000, 10


def words() -> np.ndarray:
    """Different made-up words of three syllables, in no order."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    numbers = np.random.default_rng(0).permutation(WORDS)
    base = len(syllables)
    return np.array([syllables[i % base] + syllables[i // base % base] + syllables[i // base**2] for i in numbers])


def passages(size: int) -> Iterator[tuple[str, str, str]]:
    """Yield passages; every hundredth repeats the one 37 before it."""
    rng, vocabulary = np.random.default_rng(1), words()
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    shares /= shares[-1]
    texts: list[str] = []
    for start in range(0, size, 1000):
        lengths = rng.integers(60, 141, 1000)
        drawn = vocabulary[np.searchsorted(shares, rng.random(lengths.sum()))]
        texts = [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]
        for i in range(min(1000, size - start)):
            text = texts[i - 37] if i % 100 == 99 else texts[i]
            yield str(start + i), "", text


def questions(ds: Any, number: int) -> list[str]:
    rng = np.random.default_rng(2)
    rows = ds[sorted(rng.integers(0, len(ds), number).tolist())]["text"]
    return [" ".join(rng.choice(text.split(), rng.integers(3, 9))) for text in rows]


class Memory:
    """Watch this process: its peak in MiB, in all and without mapped files."""

    def __enter__(self) -> Memory:
        self.total = self.own = 0
        self._done = Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        import psutil

        process = psutil.Process()
        while not self._done.wait(0.05):
            info = process.memory_info()
            self.total, self.own = max(self.total, info.rss >> 20), max(self.own, (info.rss - info.shared) >> 20)

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


def store(size: int) -> dict[str, Any]:
    from hfcf.core.passage_store import store

    return {"sha": store(passages(size)).sha}


def retriever(sha: str, first: int | None) -> Any:
    from hfcf.core.passage_store import Passages
    from hfcf.engines.retriever import Retriever

    found = Passages(sha)
    return Retriever(passages=Passages.of(found.open().select(range(first))) if first else found, k=K)


def build(sha: str, first: int | None) -> dict[str, Any]:
    engine = retriever(sha, first)
    start = time.process_time()
    with Memory() as memory:
        engine.loaded()
    seconds = time.process_time() - start
    folder = Path(os.environ["HFCF_CACHE"], "indexes")
    size = sum(path.stat().st_size for path in max(folder.glob("bm25-*/"), key=lambda index: index.stat().st_mtime).iterdir())
    return {"seconds": seconds, "MiB": memory.total, "own_MiB": memory.own, "index_MiB": size >> 20}


def search(sha: str, first: int | None, number: int) -> dict[str, Any]:
    engine = retriever(sha, first)
    sample = questions(engine.passages.open(), number)
    with Memory() as memory:
        start = time.process_time()
        engine.loaded()
        opened = time.process_time() - start
        start = time.process_time()
        hits = engine.run(sample)
        seconds = time.process_time() - start
    return {
        "open_seconds": opened, "per_second": len(sample) / seconds, "MiB": memory.total, "own_MiB": memory.own,
        "questions": sample, "hits": [[[hit["number"], hit["score"]] for hit in found] for found in hits],
    }  # fmt: skip


def brute_force(sha: str, first: int | None, sample: list[str]) -> dict[str, Any]:
    """Score every passage for every question from counts of words, in float64."""
    from collections import Counter

    from hfcf.core.decisions import ranked
    from hfcf.engines.retriever.bm25 import words_of

    ds = retriever(sha, first).passages.open()
    queries = [words_of(question) for question in sample]
    columns = {word: i for i, word in enumerate(dict.fromkeys(word for query in queries for word in query))}
    counts, lengths = np.zeros((len(ds), len(columns)), dtype=np.float32), np.zeros(len(ds))
    for start in range(0, len(ds), 1000):
        for number, text in enumerate(ds[start : start + 1000]["text"], start):
            tokens = words_of(text)
            lengths[number] = len(tokens)
            for word, count in Counter(token for token in tokens if token in columns).items():
                counts[number, columns[word]] = count
    n = (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(ds) - n + 0.5) / (n + 0.5))
    norms = 1.5 * (1 - 0.75 + 0.75 * lengths / lengths.mean())
    answers = []
    for query in queries:
        scores = np.zeros(len(ds))
        for word in query:
            f = counts[:, columns[word]].astype(np.float64)
            scores += idf[columns[word]] * f / (norms + f)
        hits = [(int(i), float(scores[i])) for i in np.flatnonzero(scores)]
        answers.append(ranked(hits, itemgetter(1), itemgetter(0))[:K])
    return {"answers": answers}


def same_hits(found: Sequence[Sequence[float]], true: Sequence[Sequence[float]]) -> bool:
    """Say whether two lists of hits have the same passages in the same order, and equal scores."""
    from hfcf.core.decisions import TOLERANCE

    return len(found) == len(true) and all(a[0] == b[0] and abs(a[1] - b[1]) <= TOLERANCE for a, b in zip(found, true, strict=True))


def peer(sha: str, first: int, sample: list[str]) -> dict[str, Any]:
    from rank_bm25 import BM25Okapi

    from hfcf.engines.retriever.bm25 import words_of

    texts = retriever(sha, first).passages.open()["text"][:]
    start = time.process_time()
    with Memory() as memory:
        index = BM25Okapi([words_of(text) for text in texts])
        built = time.process_time() - start
        start = time.process_time()
        for question in sample:
            np.argsort(index.get_scores(words_of(question)))[::-1][:K]
        seconds = time.process_time() - start
    return {"seconds": built, "per_second": len(sample) / seconds, "MiB": memory.total, "own_MiB": memory.own}


def ask(cache: str, step: str, **arguments: Any) -> dict[str, Any]:
    """Run one step in a process of its own."""
    place = Path(cache, "step.json")
    place.write_text(json.dumps([step, arguments]), encoding="utf-8")
    env = {**os.environ, "HFCF_CACHE": cache, "HFCF_REQUEST_CACHE": "off", "HFCF_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, "--step", str(place)], env=env, check=True)
    answer: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return answer


def work(place: Path) -> None:
    step, arguments = json.loads(place.read_text(encoding="utf-8"))
    steps: dict[str, Any] = {"store": store, "build": build, "search": search, "brute_force": brute_force, "peer": peer}
    place.write_text(json.dumps(steps[step](**arguments)), encoding="utf-8")


def main() -> None:
    """Index and search, compare with the brute force and with rank_bm25, and print the figures."""
    options = read_options(__doc__ or "")
    size, number, checked, shared = (20_000, 200, 50, 5_000) if options.quick else (1_000_000, 500, 50, 200_000)
    figures: dict[str, Any] = {"passages": size, "questions": number, "checked": checked}
    table: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        sha = ask(cache, "store", size=size)["sha"]
        figures["store_seconds"] = time.perf_counter() - start
        sides = {"hfcf": (size, None), "hfcf, as many as rank_bm25": (shared, shared)}
        if not find_spec("rank_bm25"):
            sides.popitem()
        for name, (rows, first) in sides.items():
            made = ask(cache, "build", sha=sha, first=first)
            found = ask(cache, "search", sha=sha, first=first, number=number)
            sample, hits = found.pop("questions"), found.pop("hits")
            figures[name] = {"passages": rows, "build": made, "search": found}
            table.append(
                [name, rows, made["seconds"], made["MiB"], made["own_MiB"], found["per_second"], found["MiB"], found["own_MiB"]]
            )
            if first is None:
                truth = ask(cache, "brute_force", sha=sha, first=first, sample=sample[:checked])["answers"]
                figures["equal"] = sum(map(same_hits, hits[:checked], truth))
                figures["with_ties"] = sum(len({round(score, 5) for _, score in passages}) < len(passages) for passages in truth)
            else:
                other = ask(cache, "peer", sha=sha, first=first, sample=sample[: max(10, number // 10)])
                figures["rank_bm25"] = {"passages": rows, **other}
                own = [other["seconds"], other["MiB"], other["own_MiB"]]
                table.append(["rank_bm25", rows, *own, other["per_second"], other["MiB"], other["own_MiB"]])
                figures["searches_faster"] = found["per_second"] / other["per_second"]
                figures["builds_faster"] = other["seconds"] / made["seconds"]
    columns = ["", "passages", "build CPU s", "peak MiB", "no file", "questions/s", "peak MiB", "no file"]
    show(f"BM25, top {K}, one process each; peaks of the build, then of the search", columns, table, options.json, figures)
    print(f"the index of {size:,} passages has {figures['hfcf']['build']['index_MiB']:,} MiB")
    print(f"top {K} equal to the brute force: {figures['equal']} of {checked} questions; {figures['with_ties']} have ties")
    if "rank_bm25" in figures:
        print(f"beside rank_bm25: searches {figures['searches_faster']:.1f}, builds {figures['builds_faster']:.2f} times as fast")
    else:
        print(f"rank_bm25 was not measured: it is not installed. This installs it: {CURE}")
    if figures["equal"] != checked:
        sys.exit("the top differs from the brute force")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        work(Path(sys.argv[2]))
    else:
        main()
