"""Write answers with exact places: spans of a context, alternatives of several spans, and texts found in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from datasets import List

from hfcf.core.schema import INT
from hfcf.corpora.base.values import need, text_group
from hfcf.corpora.formats.read import BadRow
from hfcf.tasks.qa import NO_ANSWERS, why_misplaced
from hfcf.text.check import kind

Span = tuple[int, str]
"""The start of a text, in code points, and the text."""
ALTERNATIVES = List(List(INT))
"""The column `alternatives`: each right answer as the list of its parts, which are numbers of answers from 0."""


def open_answers(texts: Any, field: str) -> dict[str, list[Any]]:
    """Return answers without places, each once."""
    if not isinstance(texts, list):
        what = "one text" if isinstance(texts, str) else kind(texts)
        raise BadRow(f"the field {field!r} is {what}, not a list of texts")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadRow(f"item {i} of {field!r} is {kind(text)}, not text")
    return {"text": list(dict.fromkeys(texts)), "answer_start": []}


def listed_answers(answers: Any, field: str = "answers") -> dict[str, list[Any]]:
    """Return answers from SQuAD's list of {text, answer_start}; their places are not checked."""
    if not isinstance(answers, list):
        raise BadRow(f"the field {field!r} is {kind(answers)}, not a list of {{text, answer_start}}")
    for i, answer in enumerate(answers):
        if not isinstance(answer, dict):
            raise BadRow(f"item {i} of {field!r} is {kind(answer)}, not an object with text and answer_start")
        need(answer, "text", "answer_start")
    return typed_answers([answer["text"] for answer in answers], [answer["answer_start"] for answer in answers])


def typed_answers(texts: Sequence[Any], starts: Sequence[Any]) -> dict[str, list[Any]]:
    """Return answers; raise `BadRow` unless their texts are texts and their places whole numbers."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadRow(f"the text of answer {i} is {kind(text)}, not text")
    for i, start in enumerate(starts):
        if type(start) is not int:
            raise BadRow(f"answer_start of answer {i} is {kind(start)} ({start!r}), not a whole number")
    return {"text": list(texts), "answer_start": list(starts)}


def check_places(context: str, answers: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return answers; raise `BadRow` for the first that is not at its place in the context."""
    if why := why_misplaced(context, answers):
        raise BadRow(why)
    return answers


def alternative_answers(alternatives: Iterable[Iterable[Span]]) -> tuple[dict[str, list[Any]], list[list[int]]]:
    """Return answers from right answers that may have several parts, and the column `alternatives`."""
    numbers: dict[Span, int] = {}
    lists = [[numbers.setdefault(span, len(numbers)) for span in spans] for spans in alternatives]
    unique = [list(parts) for parts in dict.fromkeys(map(tuple, lists)) if parts]
    return {"text": [text for _, text in numbers], "answer_start": [start for start, _ in numbers]}, unique


def places(context: str, text: str) -> list[int]:
    """List the places of a text in a context, as whole words."""
    if not text.strip():
        return []
    left, right = (r"(?<!\w)" if text[0].isalnum() else ""), (r"(?!\w)" if text[-1].isalnum() else "")
    return [match.start() for match in re.finditer(f"{left}{re.escape(text)}{right}", context)]


def looked_up(context: str, texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return every place of texts in a context; without any place, the texts alone.

    "yes" and "no" are not searched: in a context they occur by chance.
    """
    unique = list(dict.fromkeys(texts))
    spans = [(start, text) for text in unique if text.strip().lower() not in ("yes", "no") for start in places(context, text)]
    if not spans:
        return {**NO_ANSWERS, "text": unique}
    return {"text": [text for _, text in spans], "answer_start": [start for start, _ in spans]}


def context_group(context: str) -> str:
    """Name the group of the questions on one context."""
    return text_group("context", context)
