"""What metrics read of rows: the columns, the texts that differ from the source's, a text's pieces of evidence, and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.edits import words
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import Task, TaskColumns, get_task, problem, task_of
from hfcf.text.check import script
from hfcf.text.normalise import BRACKET_NAMES, fold

TEXTS_AND_EDITS = TaskColumns(lambda task: {**task.columns, "edits": schema.EDITS})
"""The columns that give a counterfactual's texts and its source's."""
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


class ColumnsOf(TaskColumns):
    """Declare the columns that a metric reads of the tasks that have them; other tasks are refused.

    Args:
        columns: names of canonical columns.
        why: what a task without them lacks, for the message.
        edits: whether the task's texts and edits are also read.
    """

    def __init__(self, *columns: str, why: str, edits: bool = False) -> None:
        self.names, self.why, self.edits = columns, why, edits

    def __get__(self, stage: Any, owner: type) -> Any:
        if stage is None:
            return self
        features = get_task(stage.task).features
        if missing := [name for name in self.names if name not in features]:
            raise StageError(f"{stage.name} reads {missing[0]!r} and can't measure {stage.task} rows: {self.why}")
        more = TEXTS_AND_EDITS.columns(get_task(stage.task)) if self.edits else {}
        return {**{name: features[name] for name in self.names}, **more}


class TextsOfPieces(TaskColumns):
    """Declare the texts and the edits of a task whose rows list pieces (`Task.pieces`); other tasks are refused."""

    def __init__(self) -> None:
        super().__init__(TEXTS_AND_EDITS.columns)

    def __get__(self, stage: Any, owner: type) -> Any:
        if stage is None:
            return self
        if not (task := get_task(stage.task)).pieces:
            raise StageError(
                f"{stage.name} compares a text with the pieces of evidence that it is about, and can't measure {stage.task} rows: "
                "they list none"
            )
        return self.columns(task)


def changed(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the counterfactual changed, before and after; see `hfcf.core.segments.changed_texts`.

    Raises:
        Reject: the row's edits are null, or do not fit its texts.
    """
    if row["edits"] is None:
        raise Reject("its edits are null")
    try:
        return task_of(row).changed(row)
    except ValueError as error:
        raise _not_its_source(error) from error


def _not_its_source(error: ValueError) -> Reject:
    return Reject(f"its edits do not lead back to a source, its text was changed by other means: {error}")


def changes(ds: Dataset) -> Iterator[tuple[str, str]]:
    """Yield `changed` of every row of a set; bad rows are left out."""
    for row in iterate(ds, [*task_of(ds.column_names).columns, "edits"]):
        try:
            if problem(row) is None:
                yield changed(row)
        except Reject:
            continue


def bare_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks without the white space around them."""
    return [bare for word in words(text) if (bare := word.strip())]


class TextWithPieces(NamedTuple):
    """A row's first text (the claim) and the pieces to which it refers."""

    text: str
    pieces: list[list[str]]
    """The title and the text of each piece."""


def read_new_text(row: Mapping[str, Any]) -> tuple[TextWithPieces, TextWithPieces] | None:
    """Return a row's first text with its pieces, and the source's; None if the row's first text is the source's.

    Raises:
        Reject: the row's edits are null, or do not fit its texts.
    """
    if row["edits"] is None:
        raise Reject("its edits are null")
    task = task_of(row)
    if not any(edit["field"] == task.segments(row)[0].field for edit in row["edits"]):
        return None
    try:
        source = {**row, **task.revert_edits(row, row["edits"])}
    except ValueError as error:
        raise _not_its_source(error) from error
    return _with_pieces(task, row), _with_pieces(task, source)


def _with_pieces(task: Task, row: Mapping[str, Any]) -> TextWithPieces:
    first, *others = task.segments(row)
    pieces: dict[int, list[str]] = {}
    for segment in others:
        if segment.field.partition(".")[0] == task.pieces:
            pieces.setdefault(segment.piece, []).append(segment.text)
    return TextWithPieces(first.text, list(pieces.values()))


@lru_cache(maxsize=1024)  # a row's evidence is read once for its source and once for each counterfactual and metric
def folded_words(text: str) -> tuple[str, ...]:
    """List a text's words as they count for equality: without case, accents, a possessive "'s", punctuation and names of brackets.

    A text in a script without spaces between words has no words.
    """
    if script(text) in _UNSPACED:
        return ()
    words = bare_words(fold(BRACKET_NAMES.sub(" ", text)))
    return tuple(word.removesuffix("'s").removesuffix("’s") for word in words if any(map(str.isalnum, word)))


def content_words(text: str) -> set[str]:
    """Return a text's words without stop words and single letters."""
    return {word for word in folded_words(text) if word not in stop_words() and (len(word) > 1 or word.isdigit())}


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Return scikit-learn's English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)
