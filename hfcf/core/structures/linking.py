"""The linking functions of program text (CheckWhy, section 3.2 and Appendix E), and the names that they link."""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword

from hfcf.core.structures.model import CLAIM, StructureError

CLAIM_NAME = "Claim"
"""The root's name in programs."""
LINKING = {"one_to_one_linking": (False, False), "one_to_multiple_linking": (False, True), "multiple_to_one_linking": (True, False)}
"""The linking functions, and whether each of their two arguments is a list."""
RESERVED = ("FACT", "print", *LINKING)
"""What no sentence can be called."""
FORMS = f'write Name = FACT("…"), one of the functions {", ".join(LINKING)}, or print("SUPPORTS")'
"""What a program may say, for messages."""


def write_link(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Write the link from premises to conclusions, of which one side has one name."""
    return f"{fitting(premises, conclusions)}({_side(premises)}, {_side(conclusions)})"


def fitting(premises: Sequence[str], conclusions: Sequence[str]) -> str:
    """Return the linking function of so many premises and conclusions."""
    return next(name for name, lists in LINKING.items() if lists == (len(premises) > 1, len(conclusions) > 1))


def _side(names: Sequence[str]) -> str:
    written = [identifier(name) for name in names]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def identifier(name: str) -> str:
    """Write a name as programs have it."""
    if name == CLAIM:
        return CLAIM_NAME
    if not name.isidentifier() or iskeyword(name) or name.casefold() == CLAIM or name in RESERVED:
        raise StructureError(f"{name!r} can't be a name in a program: give it another by Structure.rename, such as 'Sentence1'")
    return name
