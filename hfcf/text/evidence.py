"""Join pieces of evidence to one text for a model, and map spans of that text back to the pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Part(NamedTuple):
    """The place of a field of a piece in the joined text: characters `start` to `end`, end-exclusive."""

    field: str
    piece: int
    start: int
    end: int


def join(evidence: Sequence[dict[str, Any]]) -> tuple[str, list[Part]]:
    """Join all pieces to one text, each as "title: text", and return the place of every field in it."""
    text, parts = "", []
    for i, piece in enumerate(evidence):
        text += " " if text else ""
        if piece["title"]:
            parts.append(Part("evidence.title", i, len(text), len(text) + len(piece["title"])))
            text += piece["title"] + ": "
        parts.append(Part("evidence", i, len(text), len(text) + len(piece["text"])))
        text += piece["text"]
    return text, parts


def locate(parts: Sequence[Part], start: int, end: int) -> tuple[str, int, int, int] | None:
    """Map a span of the joined text to its field, its piece and the span inside the piece; None between pieces."""
    for part in parts:
        if part.start <= start and end <= part.end:
            return part.field, part.piece, start - part.start, end - part.start
    return None


def evidence_texts(row: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """List every text of a row's evidence as (field, piece, text), in reading order."""
    texts = []
    for i, piece in enumerate(row["evidence"]):
        if piece["title"]:
            texts.append(("evidence.title", i, piece["title"]))
        texts.append(("evidence", i, piece["text"]))
    return texts


def why_misplaced(row: Mapping[str, Any], spans: Sequence[Mapping[str, Any]], what: str) -> str | None:
    """Say which span is not in a row's evidence, or None."""
    texts = {(field, piece): text for field, piece, text in evidence_texts(row)}
    for span in spans:
        start, end = span["start"], span["end"]
        text = texts.get((span["field"], span["piece"]))
        place = f"{what} is at {start}–{end} of {span['field']} {span['piece']}"
        if text is None or start is None or end is None or not 0 <= start <= end <= len(text):
            return f"{place}, where the row has no text"
        if span.get("text") not in (None, text[start:end]):
            return f"{place}, where the text is {text[start:end]!r}, not {span['text']!r}"
    return None


def say_cut(unread: int | None) -> str:
    """Say how much of the evidence was not read, to end the reason of a rejection; "" if all of it was."""
    return f"; the evidence was cut: its last {unread:,} characters were not read" if unread else ""
