"""Parts of MICE, AutoCAD and CoCo, baselines of CCG: all other relations as targets, the editor's terms, the consistency filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.chain import StageOf
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.store import read_artifact, save_artifact
from hfcf.core.system import System
from hfcf.systems.ccg import editor
from hfcf.systems.ccg.check import CheckRelation
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.indicator import training_rows
from hfcf.systems.ccg.system import OFFLINE
from hfcf.systems.ccg.terms import KnownTerms, count, order
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.relation import OTHER, TASK


@dataclass(frozen=True, kw_only=True)
class ProposeRelations(Stage):
    """Propose every relation of the training rows but a row's own and "Other" as one that its entities shall have.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `new_relations`, by name. Rows of the label "Other" are
    rejected, and rows for which there is no other relation. So CCG's paper has it for MICE, AutoCAD and CoCo (appendix A.2).

    Args:
        fitted: the sha256 of the fitted file with the relations of the training rows; `fit(ds)` sets it.

    >>> from hfcf.core.store import save_artifact
    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "new_relations": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> ProposeRelations(fitted=save_artifact({"relations": ["in", "of", "on"]}))(row)["new_relations"]
    ['of', 'on']
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"new_relations": List(schema.TEXT)}

    fitted: str | None = None

    def check_fitted(self) -> None:
        require_fitted(self, self.fitted)

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["label"] == OTHER:
            raise Reject("the relation is Other")
        results = [relation for relation in read_fitted(self.fitted or "")["relations"] if relation != row["label"]]
        if not results:
            raise Reject("the training rows have no other relation")
        return {"new_relations": results}


def require_fitted(stage: Stage, fitted: str | None) -> None:
    """Raise `StageError` if a stage that reads a fitted file has none."""
    if fitted is None:
        raise StageError(f"{stage.name} reads what was learned from the training rows and is not fitted: run system.fit(ds) first")


@lru_cache(maxsize=4)
def read_fitted(sha: str) -> Mapping[str, Any]:
    """Read a fitted file, once in a process."""
    return read_artifact(sha, "run system.fit(ds) again")


GRADIENT_TERMS = StageOf(IdentifyCausalTerms, masked=None, method="gradient", parser=None)
"""Find the words with the highest gradients of a system's base model."""


def _consistent(system: Any) -> bool:
    return bool(system.consistency and system.verifier is None)


CONSISTENT = StageOf(
    CheckRelation,
    indicator=lambda system: system.indicator if _consistent(system) else None,
    cross_fitted=lambda system: system.cross_fitted if _consistent(system) else None,
    required=_consistent,
)
"""Keep what a system's base model gives the new relation: the one of the row's fold, if there are folds."""

JUDGE = StageOf(JudgeCandidates)
"""Write the counterfactuals that are left; with a verifier those that it gives the new relation."""

OFFLINE_BASE = {name: OFFLINE[name] for name in ("classifier", "least_steps", "folds")}
"""The base model of the offline presets: CCG's indicator, for the same rows."""


def trainable_rows(ds: Dataset | IterableDataset, system: System, **filled: str) -> list[dict[str, Any]]:
    """Read the rows that a system can learn from (see `training_rows`), none of the relation "Other"."""
    return [row for row in training_rows(ds, system, **filled) if row["label"] != OTHER]


def fit_editor(system: Any, ds: Dataset | IterableDataset, train: Callable[[list[dict[str, Any]]], str]) -> str:
    """Train a system's editor on rows with causal terms, unless it has one; write their relations and the editor's digest.

    Args:
        system: with `editor` and a stage `identify_causal_terms`.
        ds: the rows after that stage.
        train: trains an editor on rows and returns its digest.
    """
    rows = trainable_rows(ds, system, causal_terms="identify_causal_terms")
    examples = [row for row in rows if row["causal_terms"]]
    digest = train(examples) if examples and system.editor is None else None
    relations = sorted({row["label"] for row in rows})
    return save_artifact({"relations": relations, "terms": count(examples), **editor.learned_editor(digest)})


def write_terms(stage: Any, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[list[tuple[str, float]]]:
    """Write terms for rows and relations, best first, with scores; none where the entities are too long for the editor.

    Terms are checked by `hfcf.systems.ccg.editor.hypotheses` alone: MICE and AutoCAD leave the rest to the base model.

    Args:
        stage: with `editor`, else a `fitted` file that names one; with `closed`, terms are those of the relation in the training
            rows, in the order of the editor's likelihood.
        requests: rows, and the relation that the entities of each shall have.
    """
    model = stage.editor or editor.fitted_editor(stage.name, read_fitted(stage.fitted or "")["editor"])
    if stage.closed:
        terms = KnownTerms(read_fitted(stage.fitted or "")["terms"])
        known = [(row, relation, [*terms.texts(relation, order(row)).values()]) for row, relation in requests]
        return [ranked[: stage.num_candidates] for ranked in editor.rank_terms(model, known)]
    engine = editor.engine_of(stage, model)
    # Rows share entities and relations, so many prompts are equal.
    prompts = [editor.prompt(row, relation, engine.model) for row, relation in requests]
    different = list(dict.fromkeys(prompts))
    answers = dict(zip(different, engine.run(different), strict=True))
    return [editor.hypotheses(answers[prompt] or [], row) for (row, _), prompt in zip(requests, prompts, strict=True)]
