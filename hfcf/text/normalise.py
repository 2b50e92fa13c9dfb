"""Texts as they count for equality, and brackets as they are written."""

from __future__ import annotations

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""The Penn Treebank's names of brackets."""


def unbracket(text: str) -> str:
    """Replace the names of brackets by brackets; all other tokens stay as they are.

    >>> unbracket("Rome -LRB- Italy -RRB- is `` old '' .")
    "Rome ( Italy ) is `` old '' ."
    """
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return text


def normalise(text: str) -> str:
    """Reduce a text to what counts for equality: letters and digits, case folded.

    >>> normalise("The U.S.  is big .") == normalise("the us is big")
    True
    """
    return "".join(character for character in text.casefold() if character.isalnum())
