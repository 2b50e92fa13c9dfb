"""Every metric on nasty counterfactuals of every task that it measures: each gets a score, none, or a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import nasty
import pytest
from datasets import Dataset, Features
from hypothesis import given
from hypothesis import strategies as st
from offline_models import installed

from hfcf import metrics
from hfcf.core import edits
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import get_task
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.parsing import make_metric

pytestmark = [
    pytest.mark.usefixtures("no_request_cache"),
    pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed"),
]
ROWS = 8
"""Rows of an example."""
MODELS = {"fluency": "gpt2", "similarity": "classifier", "coherence": "classifier", "grammar": "classifier"}
VERIFIERS = {"relation": "rbert", "qa": "reader"}


def settings(name: str, task: str, tiny_model: Callable[[str], str]) -> dict[str, Any]:
    made: dict[str, Any] = {"model": tiny_model(MODELS[name])} if name in MODELS else {}
    if name == "flip_rate":
        made["verifier"] = tiny_model(VERIFIERS.get(task, "verifier"))
    if name == "entity_overlap":
        made["ner"] = {"backend": "spacy", "model": "offline:spacy"}
    return {**made, "acceptable": "SUPPORTS"} if name == "grammar" else made


def with_structure(row: dict[str, Any]) -> dict[str, Any]:
    """A claim as a row of structures that has none."""
    infos = [{"id": f"s{i}", "useful": None, "leaf": None} for i, _ in enumerate(row["evidence"] or [])]
    return {**row, "evidence_info": infos, "structure": [], "cause": None, "effect": row["claim"]}


SOURCES = {**nasty.OF_TASK, "structures": nasty.claims.map(with_structure)}


def edited(task: str, source: dict[str, Any], after: str, place: int) -> dict[str, Any]:
    """A counterfactual of a row, or a row that its edits do not fit."""
    field = next((name for name in ("claim", "question", "text") if name in source), "")
    made = [{"field": "tokens", "piece": -1, "start": place, "end": place, "before": "", "after": after}]
    if field:
        made = edits.rewrite(field, source[field], after)
    with suppress(TypeError, ValueError):  # a source that is none, or a place outside it
        source = {**source, **get_task(task).apply_edits(source, made)}
    return {**source, "edits": made if place else None, "change": field or "relation"}


def fuzz(metric: Metric, examples: int, counted: Counter[str]) -> None:
    task = metric.task
    counterfactuals = st.builds(edited, st.just(task), SOURCES[task], nasty.texts, st.integers(0, 12))

    @nasty.run_examples(examples)
    @given(nasty.rows(counterfactuals, ROWS))
    def run(rows: list[dict[str, Any]]) -> None:
        rows = nasty.storable(rows)
        features = get_task(task).counterfactual
        ds = Dataset.from_list(rows, features=Features({name: features[name] for name in rows[0]}))
        scores = metric(ds, metric.learn(ds))
        assert len(scores) == len(rows)
        for score in scores:
            counted["accepted"] += score is not None and not isinstance(score, Reject)
            assert not isinstance(score, Reject) or 0 < len(score.reason) <= 1100
        counted["rows"] += len(rows)

    run()


@pytest.mark.parametrize("examples", [2, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("name", metrics.names())
def test_nasty_counterfactuals_are_measured(
    name: str, examples: int, tiny_model: Callable[[str], str], counted: Counter[str]
) -> None:
    measured = []
    for task in SOURCES:
        try:
            metric = make_metric(name, task, settings(name, task, tiny_model))
        except StageError:  # it says nothing of this task
            continue
        fuzz(metric, examples, counted)
        measured.append(task)
    assert measured
    assert counted["accepted"]
