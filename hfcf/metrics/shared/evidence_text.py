"""What metrics read of a claim-like text and the pieces that it was written from: which rows have them, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hfcf.core import schema
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import TaskColumns, get_task, task_of
from hfcf.metrics.shared.changes import bare_words
from hfcf.text.check import script
from hfcf.text.normalise import BRACKET_NAMES, fold

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


class TextsOfPieces(TaskColumns):
    """Declare the texts and the edits of a task whose rows list pieces (`Task.pieces`); other tasks are refused."""

    def __init__(self) -> None:
        super().__init__(lambda task: {**task.columns, "edits": schema.EDITS})

    def __get__(self, stage: Any, owner: type) -> Any:
        if stage is None:
            return self
        if not (task := get_task(stage.task)).pieces:
            raise StageError(
                f"{stage.name} compares a text with the pieces of evidence that it is about, and can't measure {stage.task} rows: "
                "they list none"
            )
        return self.columns(task)


def read_new_text(row: Mapping[str, Any]) -> tuple[str, list[list[str]]] | None:
    """Return the row's first text (the claim) and, of each piece, its title and its text; None where that text is the source's."""
    if row["edits"] is None:
        raise Reject("its edits are null")
    task = task_of(row)
    first, *others = task.segments(row)
    if not any(edit["field"] == first.field for edit in row["edits"]):
        return None
    pieces: dict[int, list[str]] = {}
    for segment in others:
        if segment.field.partition(".")[0] == task.pieces:
            pieces.setdefault(segment.piece, []).append(segment.text)
    return first.text, list(pieces.values())


def folded_words(text: str) -> list[str]:
    """List a text's words as they count for equality: without case, accents, a possessive "'s", punctuation and names of brackets.

    A script that is written without spaces between words has none.
    """
    if script(text) in _UNSPACED:
        return []
    words = bare_words(fold(BRACKET_NAMES.sub(" ", text)))
    return [word.removesuffix("'s").removesuffix("’s") for word in words if any(character.isalnum() for character in word)]


def content_words(text: str) -> set[str]:
    """Return a text's words without stop words and single letters."""
    return {word for word in folded_words(text) if word not in stop_words() and (len(word) > 1 or word.isdigit())}


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Return scikit-learn's English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)
