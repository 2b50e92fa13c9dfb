"""Cut texts to a number of tokens, between words: heads, tails, and windows that overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_LONGEST_WORD = 40
"""Characters in which a cut looks for white space: some scripts have none."""

Tokens = tuple[str, list[tuple[int, int]]]
"""A text, and the first character and the end of each of its tokens."""


def count_tokens(tokenizer: Any, text: str) -> int:
    """Count the tokens of a text, including special tokens."""
    return len(tokenizer(text, verbose=False)["input_ids"])


def cut_texts(tokenizer: Any, texts: Sequence[str], max_length: int, *, lengths: Sequence[int] = ()) -> list[bool]:
    """Return for each text whether it has more tokens than are read; `lengths` of the cut texts save time."""
    long = [i for i in range(len(texts)) if not lengths or lengths[i] >= max_length]
    whole = tokenizer([texts[i] for i in long], verbose=False)["input_ids"] if long else []
    cut = {i: len(ids) > max_length for i, ids in zip(long, whole, strict=True)}
    return [cut.get(i, False) for i in range(len(texts))]


def find_tokens(tokenizer: Any, text: str) -> Tokens:
    """Return a text with the places of its tokens."""
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return text, [(start, end) for start, end in encoded["offset_mapping"]]


def cut_tail(side: Tokens, tokens: int) -> str:
    """Return the end of a text in at most this many tokens, beginning with a whole word."""
    text, places = side
    if tokens >= len(places):
        return text
    return text[_word_start(text, places[-tokens][0] if tokens > 0 else len(text)) :]


def cut_head(side: Tokens, tokens: int) -> str:
    """Return the beginning of a text in at most this many tokens, ending with a whole word."""
    text, places = side
    if tokens >= len(places):
        return text
    return text[: _word_end(text, places[tokens - 1][1] if tokens > 0 else 0)]


def cut_windows(side: Tokens, tokens: int, shared: int) -> list[tuple[int, str]]:
    """Cut a text into windows of at most this many tokens, as (first character, text), without gaps.

    Args:
        side: the text.
        tokens: the number of tokens of a window.
        shared: the number of tokens that two windows share, fewer than `tokens`; fewer still where a window begins or ends within a
            word.

    >>> cut_windows(("one two three four", [(0, 3), (4, 7), (8, 13), (14, 18)]), 2, 1)
    [(0, 'one two'), (4, 'two three'), (8, 'three four')]
    """
    text, places = side
    windows, end = list[tuple[int, str]](), 0
    for first in range(0, max(1, len(places) - shared), tokens - shared):
        last = first + tokens
        start = min(_word_start(text, places[first][0]), end) if first else 0
        end = _word_end(text, places[last - 1][1]) if last < len(places) else len(text)
        windows.append((start, text[start:end]))
    return windows


def _word_start(text: str, at: int) -> int:
    """Return where the next word begins, at this character or soon after it; else the character itself."""
    space = re.search(r"(?<=\s)\S", text[max(0, at - 1) : at + _LONGEST_WORD])
    return max(0, at - 1) + space.start() if space else at


def _word_end(text: str, at: int) -> int:
    """Return where a word ends, at this character or soon before it; else the character itself."""
    first = max(0, at - _LONGEST_WORD)
    spaces = [place.start() for place in re.finditer(r"(?<=\S)\s", text[first : at + 1])]
    return first + spaces[-1] if spaces else at
