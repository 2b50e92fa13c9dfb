"""Parts of MICE, AutoCAD and CoCo, baselines of CCG: all other relations as targets, the editor's terms, the consistency filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.bound_stage import BoundStage
from hfcf.core.stage import Reject, Stage
from hfcf.systems.ccg import editor
from hfcf.systems.ccg.candidate_checks import CheckRelation
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.indicator import COLUMNS, training_rows
from hfcf.systems.ccg.system import OFFLINE
from hfcf.systems.ccg.terms import KnownTerms, order
from hfcf.tasks.relation import OTHER, TASK


@dataclass(frozen=True, kw_only=True)
class ProposeRelations(Stage):
    """Propose every other relation of the training rows.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `new_relations`, sorted, without "Other". Rejected are rows of
    the label "Other", and rows for which there is no other relation. CCG's paper has this for MICE, AutoCAD and CoCo (appendix
    A.2). It learns the relations of the training rows.

    >>> row = {"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}
    >>> rows = Dataset.from_list([{**row, "id": label, "label": label} for label in ("in", "of", "on")])
    >>> ProposeRelations().fit(rows)(rows)["new_relations"][0]
    ['of', 'on']
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"new_relations": List(schema.TEXT)}

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return COLUMNS

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return save_artifact({"relations": sorted({row["label"] for row in labelled_rows(ds)})})

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["label"] == OTHER:
            raise Reject("the relation is Other")
        results = [relation for relation in read_fitted(self.fitted or "")["relations"] if relation != row["label"]]
        if not results:
            raise Reject("the training rows have no other relation")
        return {"new_relations": results}


@lru_cache(maxsize=4)
def read_fitted(sha: str) -> Mapping[str, Any]:
    """Read a fitted file, once in a process."""
    return read_artifact(sha, "run system = system.fit(ds) again")


GRADIENT_TERMS = BoundStage(
    IdentifyCausalTerms,
    fixed={"masked": None, "method": "gradient", "parser": None, "top": 100, "patience": None, "unflipped": False},
)
"""Find the words with the highest gradients of a system's base model."""

CONSISTENT = BoundStage(CheckRelation, fixed={"judge_folds": 0, "min_probability": 0.0, "language_model": None, "max_loss": 0.0})
"""Keep what a system's base model gives the new relation: the one of the row's fold, if there are folds."""

DEFAULTS = {"max_length": 128, "consistency": True}
"""The settings of MICE, AutoCAD and CoCo that differ from the settings of their stages."""

OFFLINE_BASE = {name: OFFLINE[name] for name in ("classifier", "min_steps", "folds")}
"""The base model of the offline presets: CCG's indicator, for the same rows."""
OFFLINE_EDITOR = {**OFFLINE_BASE, **{name: OFFLINE[name] for name in ("editor_training", "closed")}}
"""The base model and the editor of the offline presets, CCG's."""


def labelled_rows(ds: Dataset | IterableDataset, *filled: str) -> list[dict[str, Any]]:
    """Read the rows that a stage can learn from (see `training_rows`), none of the relation "Other"."""
    return [row for row in training_rows(ds, *filled) if row["label"] != OTHER]


def learn_terms(ds: Dataset | IterableDataset, train: Callable[[list[dict[str, Any]]], str] | None) -> dict[str, Any]:
    """Describe for a fitted file the causal terms of the rows and the editor that is trained on them (`editor.learn_editor`)."""
    return editor.learn_editor([row for row in labelled_rows(ds, "causal_terms") if row["causal_terms"]], train)


def editor_terms(stage: Any, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[list[tuple[str, float]]]:
    """Write terms for rows and relations, best first, with scores; none where the entities are too long for the editor.

    Terms are checked by `editor.hypotheses` alone: MICE and AutoCAD leave the rest to the base model.
    """
    model = stage.editor or editor.fitted_editor(stage.name, read_fitted(stage.fitted or "")["editor"])
    if stage.closed:
        terms = KnownTerms(read_fitted(stage.fitted or "")["terms"])
        known = [(row, relation, [*terms.texts(relation, order(row)).values()]) for row, relation in requests]
        return [ranked[: stage.num_candidates] for ranked in editor.rank_terms(model, known)]
    engine = editor.engine_of(stage, model)
    # Rows share entities and relations, so many prompts are equal.
    prompts = [editor.prompt_text(row, relation, engine.model) for row, relation in requests]
    different = list(dict.fromkeys(prompts))
    answers = dict(zip(different, engine.run(different), strict=True))
    return [editor.hypotheses(answers[prompt] or [], row) for (row, _), prompt in zip(requests, prompts, strict=True)]
