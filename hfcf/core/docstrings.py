"""Read docstrings: their paragraphs, first sentences and arguments."""

from __future__ import annotations

import inspect
import re
from typing import Any

_ARGS = re.compile(r"^Args:\n((?:[ ]{4}.*(?:\n|$)|\n)+)", re.MULTILINE)
_ARGUMENT = re.compile(r"^[ ]{4}(\w+): (.*(?:\n[ ]{5,}.*)*)", re.MULTILINE)


def paragraphs(thing: Any) -> list[str]:
    """Return the paragraphs of a docstring, each on one line."""
    return [" ".join(part.split()) for part in (inspect.getdoc(thing) or "").split("\n\n")]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop; a full stop in brackets ends no sentence.

    >>> first_sentence("Draw a passage (Rand. Agen-Qgen). It is new.")
    'Draw a passage (Rand. Agen-Qgen)'
    """
    ends = (found.start() for found in re.finditer(r"(?<=[^.])\.(?= [A-Z\"`]|$)", text))
    return text[: next((end for end in ends if text.count("(", 0, end) == text.count(")", 0, end)), len(text))]


def arguments(thing: Any) -> dict[str, str]:
    """Return the text of each argument in the docstring of a function, or of a class and its bases, by name."""
    meanings: dict[str, str] = {}
    for base in reversed(getattr(thing, "__mro__", (thing,))):
        if block := _ARGS.search(inspect.cleandoc(base.__doc__ or "")):
            meanings |= {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(block[1])}
    return meanings
