"""Brackets as the Penn Treebank spells them."""

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
