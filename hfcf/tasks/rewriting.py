"""Say what a baseline may rewrite in a row of a task, and make candidates of rewritten texts.

Baselines that put other words in a text, or ask a model for another one, are written against `Rewriting`. A task names its own in
`Task.rewriting`: verification rewrites claims, relation extraction sentences around their entities (`hfcf.tasks.sentence`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pkgutil import resolve_name
from random import Random
from typing import Any, Protocol

from datasets import List

from hfcf.core import edits, schema
from hfcf.core.candidates import Candidate
from hfcf.core.stage import Stage
from hfcf.core.task import Task, get_task
from hfcf.tasks.verification import rewritten

Row = Mapping[str, Any]
Scores = Sequence[Mapping[str, Any]]


class Rewriting(Protocol):
    """The text of a row that baselines rewrite."""

    noun: str
    """What people call the text, in reasons: "claim"."""
    editable: str
    """Where the words stand that may be edited, in reasons: "of the claim"."""
    columns: tuple[str, ...]
    """What is read of a row to edit words of the text."""
    prompt: str
    """"module:attribute" of the prompt by which a language model writes a counterfactual (`hfcf.prompts.Prompt`)."""
    rng_name: str
    """Prefix of a baseline's name in the seeds of its random generators."""

    def text(self, row: Row) -> str:
        """Return the text, in whose characters `protected` and edits count."""

    def readable(self, row: Row) -> str:
        """Return the text as a model reads it."""

    def protected(self, row: Row) -> Container[int]:
        """Return the characters of the text that no edit may touch."""

    def edited(self, row: Row, text_edits: Sequence[edits.Edit], stage: str) -> list[Candidate]:
        """Make the candidate of edits of the text, which keeps the row's label; none where there are no edits."""

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Scores = ()) -> Candidate:
        """Make the candidate of a text that a model wrote in the place of the row's; reject one that says what the row says."""


class ClaimRewriting:
    """The claim of a verification row; its evidence stays."""

    noun = "claim"
    editable = "of the claim"
    columns = ("claim", "label")
    prompt = "hfcf.prompts.claims:ClaimPrompt"
    rng_name = ""

    def text(self, row: Row) -> str:
        return row["claim"]

    readable = text

    def protected(self, row: Row) -> Container[int]:
        return ()

    def edited(self, row: Row, text_edits: Sequence[edits.Edit], stage: str) -> list[Candidate]:
        new = edits.replace_text(row["claim"], text_edits)
        return [rewritten(row["claim"], new, row["label"], stage, edited=text_edits)] if text_edits else []

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Scores = ()) -> Candidate:
        return rewritten(row["claim"], text, label, stage, scores=scores)


def rewriting_of(task: str) -> Rewriting:
    """Return what may be rewritten in the rows of a task; raise `ValueError` if the task does not say."""
    if not (reference := get_task(task).rewriting):
        raise ValueError(f"the task {task!r} does not say what may be rewritten in its rows: give it a `rewriting`")
    return resolve_name(reference)()


def edit_columns(task: Task) -> dict[str, Any]:
    """Return the columns that a baseline reads to edit words of a text."""
    return {name: task.features[name] for name in rewriting_of(task.name).columns}


def candidate_columns(task: Task) -> dict[str, Any]:
    return {"candidates": List(task.candidate_features)}


def model_columns(task: Task) -> dict[str, Any]:
    """Return the columns that a baseline reads before it asks a model: all texts, so that no model is asked about a broken row."""
    return {**task.columns, "label": schema.TEXT}


def rng_for(stage: Stage, rewriting: Rewriting, row_id: str) -> Random:
    """Return a row's random generator in a stage that edits words; `rng_name` keeps the words of committed comparisons."""
    verb, _, baseline = stage.name.partition("_")
    return Random(f"{stage.seed}:{verb}_{rewriting.rng_name}{baseline}:{row_id}")
