"""Whether a text looks English: by its script, and by the commonest words of English and of other European languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+")
_LONGEST = 2000
_CLEAR = 0.2
"""With this share of English function words or more, no other language is looked up."""
_FEWEST = 2
"""A single word of another language may be part of a name: "Robert De Niro"."""
_MANY = 12
"""This many English words contain a function word. A text of this length without any is in a language that has no list here."""


def looks_foreign(text: str) -> bool:
    """Return whether a text is plainly not English; a text without common words of any language counts as English.

    >>> looks_foreign("Rom ist die Hauptstadt von Italien."), looks_foreign("Рим стоит на Тибре.")
    (True, True)
    >>> looks_foreign("Robert De Niro acts.")
    False
    """
    words = _WORD.findall(text[:_LONGEST].lower())
    letters = "".join(words)
    if sum(letter > "\u024f" for letter in letters) * 2 > len(letters):
        return True
    english, others = _function_words()
    hits = sum(word in english for word in words)
    if hits > _CLEAR * len(words):
        return False
    most = max(len(own.intersection(words)) for own in others.values())
    return (most >= _FEWEST and most > hits) or (not hits and len(words) >= _MANY)


@lru_cache(maxsize=1)
def _function_words() -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
    """Return the function words of English, and the lists of other languages without the words that English also has."""
    from bm25s import stopwords

    english = frozenset(stopwords.STOPWORDS_EN_PLUS)
    names = [name for name in vars(stopwords) if name.startswith("STOPWORDS_") and not name.startswith("STOPWORDS_EN")]
    return english, {name: frozenset(getattr(stopwords, name)) - english for name in names}
