"""Pairs of claims, to train rewriters on: a claim and its negative, or a claim and its paraphrase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset, Features

from hfcf.engines.classifier import Classifier, choose
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS
from hfcf.text.normalise import normalise

KINDS = ("negative", "paraphrase")


def claim_pairs(rows: Dataset, kind: str, judge: Classifier | None = None) -> Dataset:
    """Pairs of different claims on the same evidence of the same group, each in both directions.

    CrossAug (Lee et al. 2021, section 2.2) fine-tunes its generator on claim → negative claim, and "with the source and target text
    reversed since a positive claim can be seen as a refuted version of a negative claim".

    Args:
        rows: verification rows.
        kind: "negative" pairs a SUPPORTS claim with a REFUTES one; "paraphrase", two SUPPORTS claims.
        judge: a three-way verifier. Two claims that the same evidence supports need not say the same: it keeps those of which each
            supports the other.

    Returns:
        Columns `source`, `target`, and the `group_id`, `corpus` and `evidence` of the rows, in their order; no pair twice.

    >>> row = {"group_id": "1", "corpus": "c", "evidence": [{"title": "", "text": "Rome is old."}]}
    >>> rows = [{**row, "claim": "Rome is old.", "label": "SUPPORTS"}, {**row, "claim": "Rome is new.", "label": "REFUTES"}]
    >>> claim_pairs(Dataset.from_list(rows), "negative")["target"]
    Column(['Rome is new.', 'Rome is old.'])
    """
    if kind not in KINDS:
        raise ValueError(f"pairs: {kind!r}: choose one of {', '.join(KINDS)}")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for its in _on_the_same_evidence(rows):
        supported = [row for row in its if row["label"] == SUPPORTS]
        others = [row for row in its if row["label"] == REFUTES] if kind == "negative" else supported
        for one in supported:
            for other in others:
                _add(found, one, other)
                _add(found, other, one)
    pairs = list(found.values())
    if judge is not None:
        pairs = _equal_in_meaning(pairs, judge)
    text = rows.features["claim"]
    features = {**dict.fromkeys(("source", "target", "group_id", "corpus"), text), "evidence": rows.features["evidence"]}
    return Dataset.from_dict({name: [pair[name] for pair in pairs] for name in features}, features=Features(features))


def _on_the_same_evidence(rows: Dataset) -> Iterable[list[Mapping[str, Any]]]:
    by_evidence: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows.select_columns(["group_id", "corpus", "claim", "evidence", "label"]):
        evidence = normalise(" ".join(piece["text"] for piece in row["evidence"]))
        by_evidence.setdefault((row["corpus"], row["group_id"], evidence), []).append(row)
    return by_evidence.values()


def _add(found: dict[tuple[str, str], dict[str, Any]], one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    if normalise(one["claim"]) != normalise(other["claim"]):
        pair = {"source": one["claim"], "target": other["claim"]}
        kept = {**pair, "group_id": one["group_id"], "corpus": one["corpus"], "evidence": one["evidence"]}
        found.setdefault((one["claim"], other["claim"]), kept)


def _equal_in_meaning(pairs: Sequence[dict[str, Any]], judge: Classifier) -> list[dict[str, Any]]:
    answers = judge.run([[pair["target"], pair["source"]] for pair in pairs])
    follows = {
        (pair["source"], pair["target"]): choose(answer, LABELS) == SUPPORTS for pair, answer in zip(pairs, answers, strict=True)
    }
    # Both directions are among the pairs.
    return [pair for pair in pairs if follows[pair["source"], pair["target"]] and follows[pair["target"], pair["source"]]]
