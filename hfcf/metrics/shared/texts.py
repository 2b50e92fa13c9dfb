"""What metrics read of rows: the columns, the texts that differ from the source's, a text's pieces of evidence, and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.edits import words
from hfcf.core.stage import Reject
from hfcf.core.task import Task, find_problem, task_of
from hfcf.text.check import script
from hfcf.text.normalise import BRACKET_NAMES, fold

LISTS = ("prediction", "reference")
"""The columns of rows that are lists of texts: what an `evaluate.Metric` gets."""
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


class NotMeasured(ValueError):
    """A metric can't measure the rows of a task."""


def texts_and_edits(task: Task) -> dict[str, Any]:
    """Return the columns that give a counterfactual's texts and its source's."""
    return {**task.columns, "edits": schema.EDITS}


def columns_of(*names: str, why: str, edits: bool = False) -> Callable[[Task], dict[str, Any]]:
    """Declare canonical columns that a metric reads; tasks without them are refused.

    Args:
        names: of the columns.
        why: what a task without them lacks, for the message.
        edits: whether the task's texts and edits are also read.
    """

    def columns(task: Task) -> dict[str, Any]:
        if missing := next((name for name in names if name not in task.features), None):
            raise NotMeasured(f"it reads {missing!r}, and {why}")
        return {**{name: task.features[name] for name in names}, **(texts_and_edits(task) if edits else {})}

    return columns


def texts_of_pieces(task: Task) -> dict[str, Any]:
    """Return the texts and edits of a task whose rows list pieces (`Task.pieces`); other tasks are refused."""
    if not task.pieces:
        raise NotMeasured("it compares a text with the pieces of evidence that it is about, and they list none")
    return texts_and_edits(task)


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


def read_rows(rows: Dataset, read: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
    """Read each row of a set by its task's texts and edits; a row that can't be read is a `Reject`."""
    found: list[Any] = []
    for row in iterate(rows, [*task_of(rows.column_names).columns, "edits"]):
        try:
            found.append(read(row))
        except Reject as rejection:
            found.append(rejection)
    return found


def score_changes(rows: Dataset, score: Callable[[list[str], list[str]], Sequence[Any]]) -> list[Any]:
    """Score the changed text of each row and the source's, all at once.

    Args:
        rows: of an expanded set, or lists of texts in the columns `LISTS`.
        score: gets the texts, and the texts of the sources.
    """
    if LISTS[0] in rows.column_names:
        pairs: list[Any] = [(before or "", after) for after, before in zip(*(rows[name] for name in LISTS), strict=True)]
    else:
        pairs = read_rows(rows, changed)
    sound = [pair for pair in pairs if not isinstance(pair, Reject)]
    scores = iter(score([after for _, after in sound], [before for before, _ in sound]))
    return [pair if isinstance(pair, Reject) else next(scores) for pair in pairs]


def changes(ds: Dataset) -> Iterator[tuple[str, str]]:
    """Yield `changed` of every row of a set, or lists of texts in the columns `LISTS`; bad rows are left out."""
    if LISTS[0] in ds.column_names:
        yield from ((before or "", after) for after, before in zip(*(ds[name] for name in LISTS), strict=True))
        return
    for row in iterate(ds, [*task_of(ds.column_names).columns, "edits"]):
        try:
            if find_problem(row) is None:
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


def score_new_texts(rows: Dataset, describe: Callable[[TextWithPieces, TextWithPieces | None], Any]) -> list[Any]:
    """Describe the first text of each row with its pieces, and the source's; None for a row whose first text is the source's.

    Args:
        rows: of an expanded set, or lists of texts and of their pieces in the columns `LISTS`, which have no sources.
        describe: gets the new text, and the source's or None.
    """
    if LISTS[0] in rows.column_names:
        listed = zip(*(rows[name] for name in LISTS), strict=True)
        return [describe(TextWithPieces(text, [[piece] for piece in pieces]), None) for text, pieces in listed]
    read = read_rows(rows, read_new_text)
    return [pair if pair is None or isinstance(pair, Reject) else describe(*pair) for pair in read]


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
