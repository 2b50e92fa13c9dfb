"""Thresholds between scores, and stages that decide at each of them in batches of one and of many."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hfcf.core import decisions
from hfcf.core.decisions import TOLERANCE
from hfcf.core.stage import Reject, Stage

BUDGETS = {"one": "1", "many": None}
"""`HFCF_TOKEN_BUDGET` by the name of a batching: one request to a batch, and the default."""
Rows = Sequence[Mapping[str, Any]]


def differing(make: Callable[[float], Stage], rows: Rows, cache: Path, start: float) -> tuple[list[float], list[float]]:
    """Return the thresholds that lie between two scores, and those at which a stage decides otherwise in another batching.

    Args:
        make: the stage at a threshold.
        rows: what it decides about.
        cache: what else the models need.
        start: a threshold at which every score is compared.
    """
    scores: list[float] = []
    for name in BUDGETS:
        with batching(name, cache), recording() as compared:
            decide(make(start), rows)
        scores += compared
    thresholds = between(scores)
    every = []
    for name in BUDGETS:
        with batching(name, cache):
            every.append([decide(make(threshold), rows) for threshold in thresholds])
    return thresholds, [threshold for threshold, one, many in zip(thresholds, *every, strict=True) if one != many]


def between(scores: Iterable[float]) -> list[float]:
    """List the thresholds between neighbouring scores and, of scores that are equal, those whose edge lies between them."""
    pairs = [((low + high) / 2, high - low) for low, high in pairwise(sorted(set(scores)))]
    edges = (middle + side for middle, apart in pairs if apart < TOLERANCE for side in (TOLERANCE, -TOLERANCE))
    return sorted({*(middle for middle, _ in pairs), *edges})


@contextmanager
def batching(name: str, cache: Path) -> Iterator[None]:
    """Batch as `BUDGETS` says, with a request cache of its own."""
    own = cache.with_name(f"{cache.name}-{name}")
    own.mkdir(exist_ok=True)
    for entry in cache.iterdir():  # what was fitted, and the converted offline models
        if not entry.name.startswith("requests.") and not (own / entry.name).exists():
            (own / entry.name).symlink_to(entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HFCF_CACHE", str(own))
        if budget := BUDGETS[name]:
            patch.setenv("HFCF_TOKEN_BUDGET", budget)
        else:
            patch.delenv("HFCF_TOKEN_BUDGET", raising=False)
        yield


@contextmanager
def recording() -> Iterator[list[float]]:
    """Collect the scores that stages compare with thresholds."""
    scores: list[float] = []

    def record(decide: Callable[[float, float], bool]) -> Callable[[float, float], bool]:
        def recorded(score: float, edge: float) -> bool:
            scores.append(abs(score))
            return decide(score, edge)

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith(("hfcf.systems.", "hfcf.tasks.")):
                for one in ("reaches", "exceeds"):
                    if getattr(module, one, None) is getattr(decisions, one):
                        patch.setattr(module, one, record(getattr(decisions, one)))
        yield scores


def decide(stage: Stage, rows: Rows) -> list[Any]:
    """Return what a stage decides: whether each row and each candidate is accepted, and why it is not."""
    results = []
    for answer in stage.batch([dict(row) for row in rows]):
        columns = answer.outputs if isinstance(answer, Reject) else answer
        verdicts = [candidate["status"] or {} for candidate in columns.get("candidates") or ()]
        spans = [{name: value for name, value in span.items() if name != "score"} for span in columns.get("rationales") or ()]
        whole = _words(str(answer)) if isinstance(answer, Reject) else columns.get("status")
        results.append([whole, spans, [(verdict.get("accepted"), _words(verdict.get("reason"))) for verdict in verdicts]])
    return results


def _words(reason: str | None) -> str | None:
    return reason and re.sub(r"[\d.]+", "N", reason)  # it has rounded scores
