"""Write answers with exact places: spans of a context, alternatives of several spans, and texts found in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from datasets import List

from hfcf.core.schema import INT
from hfcf.corpora.base.values import Fields, text_group
from hfcf.corpora.formats.read import BadRow
from hfcf.tasks.qa import NO_ANSWERS, why_misplaced
from hfcf.text.phrase_match import LETTER

Span = tuple[int, str]
"""The start of a text, in code points, and the text."""
ALTERNATIVES = List(List(INT))
"""The column `alternatives`: each right answer as the list of its parts, which are numbers of answers from 0."""


@cache
def _texts(field: str) -> Fields:
    return Fields(**{field: [str]})


_PLACED = Fields(text=[str], answer_start=[int])


def open_answers(texts: Any, field: str) -> dict[str, list[Any]]:
    """Return answers without places, each once."""
    return {"text": list(dict.fromkeys(_texts(field).check({field: texts})[field])), "answer_start": []}


def placed_answers(texts: Sequence[Any], starts: Sequence[Any]) -> dict[str, list[Any]]:
    """Return answers; raise `BadRow` unless their texts are texts and their places whole numbers."""
    return _PLACED.check({"text": texts, "answer_start": starts})


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
    """List the places of a text in a context, as whole words where the script has spaces between words."""
    if not text.strip():
        return []
    left = f"(?<!{LETTER})" if re.match(LETTER, text[0]) else ""
    right = f"(?!{LETTER})" if re.match(LETTER, text[-1]) else ""
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
