"""Add evidence of other claims that is near to the claim (CheckWhy, section 3.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset

from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages, store
from hfcf.core.schema import NAMES, TEXT
from hfcf.core.settings import NonNegative, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.engines.retriever import Rescorer, Retriever
from hfcf.systems.checkwhy.arguments import STEPS, inferences
from hfcf.text.normalise import normalise

READ = ("causal_claim", "support", "refutation", "id", "group_id", "status")
"""The columns that the stage learns from."""


def _store_pool(rows: Iterable[Mapping[str, Any]]) -> str:
    """Store the evidence of all rows that passed so far, and which of them repeat an earlier row's claim and add none."""
    first: dict[str, str] = {}
    repeated: dict[str, str] = {}

    def pieces() -> Iterator[tuple[str, str, str]]:
        for row in rows:
            if row["status"] is not None and row["status"]["accepted"] is False:
                continue
            claim = normalise(row["causal_claim"])
            if first.setdefault(claim, row["id"]) != row["id"]:
                repeated[row["id"]] = first[claim]
                continue
            for side in ("support", "refutation"):
                for i, text in enumerate(inferences(row[side])):
                    # The name tells the group and the source apart again.
                    yield json.dumps([row["group_id"], row["id"], side, i], ensure_ascii=False), "", text

    evidence = list(pieces())
    passages = store(evidence).sha if evidence else None
    return save_artifact({"passages": passages, "repeated": repeated})


@lru_cache(maxsize=4)
def _read_pool(sha: str) -> dict[str, Any]:
    return read_artifact(sha, "run checkwhy = checkwhy.fit(ds) again")


@dataclass(frozen=True, kw_only=True)
class AddDistractors(Stage):
    """Choose the distractors of a set: of the evidence of all other sets, BM25 finds the nearest to the claim, an encoder the best.

    Input columns: `group_id`, `causal_claim`, `support`, `refutation`. Output column: `distractors`, texts, the nearest first. All
    three rows of a set get the same distractors, which therefore give no label away. Left out are evidence of the row's own group
    and texts that repeat the claim, a piece of the set or another distractor. A row is rejected if there are too few distractors,
    and if its claim repeats another row's.

    It learns the evidence of all rows that passed the stages before.

    Deviation: the paper's scorer is BLEURT, whose weights are not in Transformers' form; here it is the cosine of a sentence
    encoder (`hfcf.engines.retriever.Rescorer`).

    Args:
        scorer: the encoder that ranks distractors.
        retrieved: how many pieces BM25 finds; pieces of the row's own group count.
        distractors: the smallest and largest number of distractors; the number is drawn by the row's id and the seed.

    Raises:
        ValueError: `distractors` is not a range up to `retrieved`.

    >>> AddDistractors(scorer=Model("offline:minilm")).distractors
    (8, 12)
    """

    inputs: ClassVar = {"group_id": TEXT, "causal_claim": TEXT, "support": STEPS, "refutation": STEPS}
    outputs: ClassVar = {"distractors": NAMES}
    produced_by: ClassVar = {
        "causal_claim": "checkwhy.write_claim", "support": "checkwhy.support_claim", "refutation": "checkwhy.refute_claim",
    }  # fmt: skip

    engines: ClassVar = (Retriever, Rescorer)

    scorer: Model = Model("sentence-transformers/all-MiniLM-L6-v2")
    retrieved: Positive = 300
    distractors: tuple[NonNegative, NonNegative] = (8, 12)

    def check(self) -> None:
        low, high = self.distractors
        if not low <= high <= self.retrieved:
            raise ValueError(
                f"distractors must be the smallest and the largest number, at most retrieved ({self.retrieved}), got {low}, {high}"
            )

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return (*READ, "support_structure")  # the last: rows whose structures fail add no evidence

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return _store_pool(ds.select_columns(list(READ)))

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        assert self.fitted is not None
        pool = _read_pool(self.fitted)
        nearest: Iterator[list[str]] = iter([[]] * len(rows))
        if pool["passages"] is not None:
            nearest = iter(self._nearest(rows, Passages(pool["passages"])))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            low, high = self.distractors
            number, texts = self.random(row["id"]).randint(low, high), next(nearest)
            if (other := pool["repeated"].get(row["id"])) is not None:
                results.append(Reject(f"row {other!r} has the same claim"))
            elif len(texts) < low:
                results.append(Reject(f"other claims have {len(texts)} fitting pieces of evidence, fewer than {low}"))
            else:
                results.append({"distractors": texts[:number]})
        return results

    def _nearest(self, rows: list[dict[str, Any]], passages: Passages) -> list[list[str]]:
        """List the texts that may be distractors of each row, the nearest first."""
        retriever = Retriever(passages=passages, k=self.retrieved)
        rescorer = Rescorer(passages=passages, model=self.scorer)
        fitting = [
            _fitting(row, hits) for row, hits in zip(rows, retriever.run([row["causal_claim"] for row in rows]), strict=True)
        ]
        requests = [[row["causal_claim"], [hit["number"] for hit in hits]] for row, hits in zip(rows, fitting, strict=True) if hits]
        scores = iter(rescorer.run(requests))
        return [_ranked(hits, next(scores)) if hits else [] for hits in fitting]


def _fitting(row: Mapping[str, Any], hits: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out evidence of the row's own group, and texts that repeat the row's or each other."""
    seen = {normalise(text) for text in (row["causal_claim"], *inferences(row["support"]), *inferences(row["refutation"]))}
    fitting = []
    for hit in hits:
        if json.loads(hit["id"])[0] != row["group_id"] and (key := normalise(hit["text"])) not in seen:
            seen.add(key)
            fitting.append(hit)
    return fitting


def _ranked(hits: Iterable[Mapping[str, Any]], scores: Iterable[float]) -> list[str]:
    pairs = [(-score, hit["text"]) for hit, score in zip(hits, scores, strict=True)]
    return [text for _, text in sorted(pairs)]
