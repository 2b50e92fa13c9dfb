"""Parts of MICE, AutoCAD and CoCo, baselines of CCG: the base model, all other relations as targets, the editor's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.store import read_artifact, save_artifact
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.systems.ccg import editor
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.indicator import training_rows
from hfcf.systems.ccg.system import CCG
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


def base_model(system: Any, ds: Dataset | IterableDataset) -> Model:
    """Return a system's `indicator`, else the R-BERT that CCG trains on the same rows with the same settings, once.

    Args:
        system: with `indicator`, `classifier`, `least_steps` and `seed`.
        ds: the rows before any stage.
    """
    ccg = CCG(seed=system.seed, indicator=system.indicator, classifier=system.classifier, least_steps=system.least_steps)
    indicator = ccg.fit_models(ds).indicator
    assert indicator is not None
    return indicator


GRADIENT_TERMS = StageOf(IdentifyCausalTerms, masked=None, method="gradient", parser=None)
"""Find the words with the highest gradients of a system's base model."""

CONSISTENT = StageOf(JudgeCandidates, verifier=lambda system: system.verifier or (system.indicator if system.consistency else None))
"""Keep what a system's verifier, else with `consistency` its base model, gives the new relation."""


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
    return save_artifact({"relations": sorted({row["label"] for row in rows}), **editor.learned_editor(digest)})


def editor_engine(stage: Any) -> Continuation:
    """Return the engine of a stage's editor: its own, else the one that was fitted."""
    model = stage.editor or editor.fitted_editor(stage.name, read_fitted(stage.fitted or "")["editor"])
    return editor.engine_of(stage, model)


def write_terms(engine: Continuation, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[list[tuple[str, float]]]:
    """Write terms for rows and relations, best first, with scores; none where the entities are too long for the editor.

    Terms are checked by `hfcf.systems.ccg.editor.hypotheses` alone: MICE and AutoCAD leave the rest to the base model.

    Args:
        engine: the editor.
        requests: rows, and the relation that the entities of each shall have.
    """
    # Rows share entities and relations, so many prompts are equal.
    prompts = [editor.prompt(row, relation, engine.model) for row, relation in requests]
    different = list(dict.fromkeys(prompts))
    answers = dict(zip(different, engine.run(different), strict=True))
    return [editor.hypotheses(answers[prompt] or [], row) for (row, _), prompt in zip(requests, prompts, strict=True)]
