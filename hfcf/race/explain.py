"""Which words and which pieces of the evidence the verifier's label rests on (RACE, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf import schema
from hfcf.engines.attribution import METHODS, Attribution
from hfcf.engines.model import Model
from hfcf.evidence import join, locate
from hfcf.stage import Reject, Stage

SENTENCES = List({"piece": schema.INT, "score": schema.FLOAT})


@dataclass(frozen=True, kw_only=True)
class Explain(Stage):
    """Token and sentence rationales by gradient attribution over the verifier.

    Input columns: `claim`, `evidence`, `label`. Output columns: `rationales`, the words of titles and texts that carry the label
    (adjacent ones joined), and `sentence_rationales`, the pieces that do, in reading order. Scores are shares of the row's
    attribution.

    Where to cut: token rationales are the fewest words that together hold `token_share` of the row's attribution; sentence
    rationales are the fewest pieces that hold `sentence_share` of it, a piece counting with its mean over words, lest long pieces
    win by length.

    Deviation: the paper trains CURE (Si et al. 2023) as its explainer, with a loss for compactness; gradient attribution over a
    trained verifier needs no training of its own, and the cut takes the place of that loss. The logit explained is that of the
    row's own label. Evidence past `max_length` has no score, so it is never a rationale.

    Args:
        verifier: a sequence classifier over (claim, evidence).
        max_length: tokens of the pair.
        method: "gradient_x_input" (one pass) or "integrated_gradients".
        token_share: cut of the token rationales, 0–1.
        sentence_share: cut of the sentence rationales, 0–1.

    >>> sorted(Explain(verifier=Model("roberta-base")).outputs)
    ['rationales', 'sentence_rationales']
    """

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT}
    outputs: ClassVar = {"rationales": schema.RATIONALES, "sentence_rationales": SENTENCES}

    verifier: Model
    max_length: int = 130
    method: str = "gradient_x_input"
    token_share: float = 0.6
    sentence_share: float = 0.8

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r}: choose one of {', '.join(METHODS)}")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        joined = [join(row["evidence"]) for row in rows]
        engine = Attribution(model=self.verifier, max_length=self.max_length, method=self.method)
        two_way = [i for i, row in enumerate(rows) if row["label"] != schema.NOT_ENOUGH_INFO]
        scores = dict(zip(two_way, engine.run([[rows[i]["claim"], joined[i][0], rows[i]["label"]] for i in two_way]), strict=True))
        results: list[dict[str, Any] | Reject] = []
        for i in range(len(rows)):
            if i not in scores:
                results.append(Reject("a NOT ENOUGH INFO row has no label that evidence could flip"))
            elif not sum(score for _, _, score in scores[i]):
                results.append(Reject("the verifier's label rests on no word of the evidence"))
            else:
                results.append(self._rationales(joined[i][0], joined[i][1], scores[i]))
        return results

    def _rationales(self, text: str, parts: Any, words: Sequence[Sequence[Any]]) -> dict[str, Any] | Reject:
        total = sum(score for _, _, score in words)
        chosen = _fewest([score / total for _, _, score in words], self.token_share)
        spans: list[dict[str, Any]] = []
        by_piece: dict[int, list[float]] = {}
        for i, (start, end, score) in enumerate(words):
            while (place := locate(parts, start, end)) is None and end > start + 1:
                end -= 1  # the colon after a title is no part of it
            if place is None:
                continue
            where, piece, first, last = place
            by_piece.setdefault(piece, []).append(score / total)
            if i not in chosen:
                continue
            before = spans[-1] if spans else None
            if before and i - 1 in chosen and (before["field"], before["piece"]) == (where, piece):
                before["end"], before["score"] = last, round(before["score"] + score / total, 5)
            else:
                spans.append({"field": where, "piece": piece, "start": first, "end": last, "score": round(score / total, 5)})
        pieces = sorted(by_piece)
        means = [sum(by_piece[piece]) / len(by_piece[piece]) for piece in pieces]
        if not sum(means):
            return Reject("the verifier's label rests on no word of the evidence")
        kept = _fewest([mean / sum(means) for mean in means], self.sentence_share)
        sentences = [{"piece": pieces[i], "score": round(means[i] / sum(means), 5)} for i in sorted(kept)]
        return {"rationales": spans, "sentence_rationales": sentences}


def _fewest(shares: Sequence[float], wanted: float) -> set[int]:
    """The fewest items, largest first, whose shares add up to `wanted`; ties go to the earlier item.

    >>> sorted(_fewest([0.1, 0.5, 0.4], 0.8))
    [1, 2]
    """
    chosen: set[int] = set()
    held = 0.0
    for i in sorted(range(len(shares)), key=lambda i: (-round(shares[i], 5), i)):
        if held >= wanted - 1e-9:
            break
        chosen.add(i)
        held += shares[i]
    return chosen
