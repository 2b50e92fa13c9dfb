"""Texts as they count for equality, and brackets as they are written."""

from __future__ import annotations

import re
import unicodedata

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""The Penn Treebank's names of brackets."""
BRACKET_NAMES = re.compile("|".join(BRACKETS), re.IGNORECASE)


def unbracket(text: str) -> str:
    """Replace the names of brackets by brackets; all other tokens stay as they are.

    >>> unbracket("Rome -LRB- Italy -RRB- is `` old '' .")
    "Rome ( Italy ) is `` old '' ."
    """
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return text


def normalise(text: str) -> str:
    """Reduce a text to what counts for equality: its letters and digits.

    Case, accents, white space, punctuation, the Treebank's names of brackets and the other Unicode forms of a character make no
    difference. So texts of the same sentence are equal in corpora that write it in different ways.

    >>> normalise("The U.S.  is big .") == normalise("the us is big")
    True
    >>> normalise("Beyonce\u0301 -LRB- 1981 -RRB- sang ``ﬁve'' songs") == normalise("Beyoncé (1981) sang “five” songs")
    True
    """
    folded = unicodedata.normalize("NFKD", BRACKET_NAMES.sub(" ", text)).casefold()
    return "".join(character for character in folded if character.isalnum())


_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def fold(text: str) -> str:
    """Reduce a text to what its words are looked up by: case, accents and forms of the same character are folded.

    >>> fold("Beyoncé’s ﬁrst Straße"), fold("Beyonce\u0301") == fold("beyonce")
    ('beyonce’s first strasse', True)
    """
    return _NOT_ASCII.sub(_plain, text).casefold() if not text.isascii() else text.lower()


def _plain(match: re.Match[str]) -> str:
    characters = unicodedata.normalize("NFKD", match[0].casefold())
    return "".join(character for character in characters if not unicodedata.category(character).startswith("M"))
