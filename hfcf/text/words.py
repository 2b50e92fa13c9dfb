"""Words and punctuation marks of English text, as the Penn Treebank divides it."""

from __future__ import annotations

import re
from typing import NamedTuple

# As in NLTK's tokenizer, which CrossAug's released code uses: "don't" and "Brown's" are two words, "U.S.", "1,000" and "co-wrote"
# are one word each.
# NLTK needs Punkt's model, a download, to divide evidence into sentences. Without it (`preserve_line=True`, or Punkt untrained)
# NLTK leaves the full stop at a word inside the text, or removes it from "U.S.". Then 21 or 17 of 9,469 pairs of claims get
# another result (VitaminC, FEVER Symmetric …). NLTK takes five times as long, and a second to import.
_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}|\b[A-Z]\.(?=\s+\w)|\d+(?:[.,:]\d+)*\w*(?:[-/]\w+)*|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|``|''|--"
    r"|\w+?(?=n['’]t\b)|[^\W\d]\w*(?:[-/]\w+|['’](?!(?:s|re|ve|ll|d|m|t)\b)\w+)*|\S",
    re.IGNORECASE,
)
_QUOTES = dict.fromkeys(("``", "''", "“", "”"), '"')


_LIST = """
a an the of in on at by to for with from and or but is was are were be been being has have had do does did as it its this that these
those which who whom whose where when what while his her their he she him they them also than then into there here each other such
just very any some would could can may might will shall should if because since through within about how why
"""
FUNCTION_WORDS = frozenset(_LIST.split())
"""Words that say little on their own."""


class Word(NamedTuple):
    """A word or a punctuation mark: its form for comparison, and its position."""

    key: str
    start: int
    end: int


def split(text: str) -> list[Word]:
    """Split a text into words and punctuation marks."""
    return [Word(_QUOTES.get(match[0], match[0].replace("’", "'")), *match.span()) for match in _WORD.finditer(text)]


_YOU = r"u(?:ni(?![dmn])|s[aeu]|t[aeio]|kr|ga)"  # as "use" begins, and "usher" does not
_VOWEL = re.compile(rf"(?!one\b|once\b|eu|{_YOU})[aeiou]|heir|hon(?:ou?r|est)|hours?\b|8|1[18](?!\d)", re.IGNORECASE)


def takes_an(word: str) -> bool:
    """Return whether the indefinite article before a word is "an", by its first letters or by how a number is read.

    >>> takes_an("old"), takes_an("university"), takes_an("11th"), takes_an("12th")
    (True, False, True, False)
    """
    return _VOWEL.match(word) is not None


# --- the spaces of tokenised text


def spaced_like(text: str, source: str) -> str:
    """Remove the spaces of tokenised text, which generators learn, unless `source` also has them."""
    for wide, narrow in _TOKENISED:  # from where spaces begin: a pattern tried at each of many spaces takes quadratic time
        if not wide.search(source):
            text = wide.sub(narrow, text)
    return text


_TOKENISED = (
    (re.compile(r"(?:(?<!\s)|(?<=[.,;:!?%]\s))\s+([.,;:!?%](?:\s|$))"), r"\1"),
    (re.compile(r"(?<!\s)\s+(['’](?:s|re|ve|ll|d|m)\b|n['’]t\b)"), r"\1"),
    (re.compile(r"([(\[])\s+"), r"\1"),
    (re.compile(r"(?<!\s)\s+([)\]])"), r"\1"),
    (re.compile(r"(``|“)\s+|(?<!\s)\s+(''|”)"), '"'),
)
