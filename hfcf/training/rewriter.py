"""Rewriters of claims: CrossAug's generator of negative claims, and a paraphraser."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import groupby
from typing import Any

from datasets import Dataset

from hfcf.core.edits import diff, words
from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.generator import Generator
from hfcf.engines.verifier_inputs import join_for
from hfcf.metrics.scores.translation import bleu_chrf
from hfcf.tasks.verification import LABELS
from hfcf.text.normalise import normalise


def evaluate_rewriter(
    pairs: Dataset, model: Model, *, max_length: int, judge: Classifier | None = None, num_beams: int = 5, take: int = 300
) -> dict[str, Any]:
    """Score a rewriter on held-out pairs, beside the baseline that copies the source."""
    pairs = pairs.select(range(min(take, len(pairs))))
    if not len(pairs):
        return {"pairs": 0}
    engine = Generator(model=model, num_beams=num_beams, num_return_sequences=1, max_length=max_length)
    sources, targets = list(pairs["source"]), list(pairs["target"])
    claims = [answer[0]["text"] if answer else "" for answer in engine.run([[source, []] for source in sources])]
    changes = [_changes(source, claim) for source, claim in zip(sources, claims, strict=True)]
    report: dict[str, Any] = {
        "pairs": len(pairs),
        "repeats": _share(normalise(source) == normalise(claim) for source, claim in zip(sources, claims, strict=True)),
        "one span of 3 words": _share(len(spans) == 1 and max(spans[0]) <= 3 for spans in changes),
        "words changed": statistics.median(sum(map(max, spans)) for spans in changes),
    }
    if judge is not None:
        texts = [join_for(judge.model, evidence)[0] for evidence in pairs["evidence"]]
        verdicts = [choose(answer, LABELS) for answer in judge.run([list(pair) for pair in zip(claims, texts, strict=True)])]
        report |= {f"judged {label}": _share(verdict == label for verdict in verdicts) for label in LABELS}
    return {**report, "model": bleu_chrf(claims, targets), "copy": bleu_chrf(sources, targets)}


def _share(marks: Any) -> float:
    return round(statistics.fmean(map(float, marks)), 4)


def _changes(before: str, after: str) -> list[tuple[int, int]]:
    """Count the words out and in at each place where two texts differ."""
    counts = []
    for differs, parts in groupby(diff(before, after), key=lambda part: part[0] != "same"):
        if differs:
            size = Counter(kind for kind, text in parts for _ in words(text))
            counts.append((size["out"], size["in"]))
    return counts
