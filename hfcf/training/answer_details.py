"""What a model returns for a row as well as its answer, as files of predictions store it: probabilities, scores, faults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.engines.classifier import ROUND

SPAN = ("score", "probability", "passage")
"""What is stored of an answer to a question: the logarithm of its probability, this, and an open-domain reader's passage."""


def label_details(answer: Mapping[str, float] | str | None, absent: str = "the model gave no answer") -> dict[str, Any]:
    """Return the `probabilities` of an answer of `Task.verdicts` or a classifier; if it has none, the reason in `fault`.

    >>> label_details({"SUPPORTS": 0.9, "REFUTES": 0.1})
    {'probabilities': {'SUPPORTS': 0.9, 'REFUTES': 0.1}}
    >>> label_details("no answer within 64 tokens")
    {'fault': 'no answer within 64 tokens'}
    """
    return {"probabilities": dict(answer)} if isinstance(answer, Mapping) else {"fault": answer or absent}


def span_details(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a reader returns for its first answer; nothing where it found none.

    >>> span_details([{"text": "Ann", "score": -0.1, "probability": 0.9, "start": 0}])
    {'score': -0.1, 'probability': 0.9}
    """
    return {name: found[0][name] for name in SPAN if name in found[0]} if found else {}


def no_answer_details(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how certain a reader is that there is no answer, where that is likelier than the first it found.

    >>> no_answer_details([{"text": "Ann", "score": -3.0, "probability": 0.05, "no_answer": 0.5}])
    {'score': -0.69315, 'probability': 0.5}
    """
    probability = found[0]["no_answer"] if found else None
    return {"score": round(math.log(max(probability, 1e-12)), ROUND), "probability": probability} if probability is not None else {}


def spread(details: Sequence[Mapping[str, Any]], kept: Sequence[int], rows: int) -> list[Mapping[str, Any]]:
    """Return the details of all rows, from the details of the rows that were kept; rows that were left out have none.

    >>> spread([{"score": -0.1}], [1], 2)
    [{}, {'score': -0.1}]
    """
    known = dict(zip(kept, details, strict=True))
    return [known.get(i, {}) for i in range(rows)]
