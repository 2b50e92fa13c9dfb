"""Rewriters of claims, CrossAug's generator of negative claims and a paraphraser: the pairs to train on, and scores."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, product
from typing import Any

from datasets import Dataset, Features

from hfcf.core.edits import diff, words
from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.generator import Generator
from hfcf.metrics.scores.translation import bleu_chrf
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS
from hfcf.text.evidence import join
from hfcf.text.normalise import normalise

KINDS = ("negative", "paraphrase")
_SHARED = ("group_id", "corpus", "evidence")


def claim_pairs(rows: Dataset, kind: str, judge: Classifier | None = None) -> Dataset:
    """Pair different claims on the same evidence of the same group, in both directions.

    CrossAug (Lee et al. 2021, section 2.2) fine-tunes its generator on claim → negative claim, and "with the source and target text
    reversed since a positive claim can be seen as a refuted version of a negative claim".

    Args:
        rows: verification rows.
        kind: "negative" pairs a SUPPORTS claim with a REFUTES claim; "paraphrase", two SUPPORTS claims.
        judge: a three-way verifier. Two claims that the same evidence supports need not say the same: pairs stay whose claims
            support each other.

    Returns:
        Columns `source`, `target`, and the `group_id`, `corpus` and `evidence` of the rows, in their order; no pair twice.
    """
    if kind not in KINDS:
        raise ValueError(f"pairs: {kind!r}: choose one of {', '.join(KINDS)}")
    by_evidence: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.select_columns([*_SHARED, "claim", "label"]):
        by_evidence[row["corpus"], row["group_id"], normalise(" ".join(piece["text"] for piece in row["evidence"]))].append(row)
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for group in by_evidence.values():
        supported = [row for row in group if row["label"] == SUPPORTS]
        others = [row for row in group if row["label"] == REFUTES] if kind == "negative" else supported
        for first, second in product(supported, others):
            if normalise(first["claim"]) != normalise(second["claim"]):
                for source, target in ((first, second), (second, first)):
                    texts = {"source": source["claim"], "target": target["claim"]}
                    shared = {name: source[name] for name in _SHARED}
                    pairs.setdefault((source["claim"], target["claim"]), {**texts, **shared})
    results = list(pairs.values()) if judge is None else _equal_in_meaning(list(pairs.values()), judge)
    text = rows.features["claim"]
    features = {**dict.fromkeys(("source", "target", "group_id", "corpus"), text), "evidence": rows.features["evidence"]}
    return Dataset.from_dict({name: [pair[name] for pair in results] for name in features}, features=Features(features))


def _equal_in_meaning(pairs: Sequence[dict[str, Any]], judge: Classifier) -> list[dict[str, Any]]:
    answers = judge.run([[pair["target"], pair["source"]] for pair in pairs])
    follows = {
        (pair["source"], pair["target"]): choose(answer, LABELS) == SUPPORTS for pair, answer in zip(pairs, answers, strict=True)
    }
    # Both directions are among the pairs.
    return [pair for pair in pairs if follows[pair["source"], pair["target"]] and follows[pair["target"], pair["source"]]]


def evaluate_rewriter(pairs: Dataset, model: Model, *, max_length: int, judge: Classifier | None = None) -> dict[str, Any]:
    """Score a rewriter on up to 300 held-out pairs, and the baseline that copies the source."""
    pairs = first_rows(pairs, 300)
    if not len(pairs):
        return {"pairs": 0}
    engine = Generator(model=model, num_beams=5, num_return_sequences=1, max_length=max_length)
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
        texts = [join(evidence)[0] for evidence in pairs["evidence"]]
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
