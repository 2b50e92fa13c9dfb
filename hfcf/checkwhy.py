"""CheckWhy (Si et al. 2024, "Causal Fact Verification via Argument Structure", ACL): argument structures and their notations.

>>> from hfcf.checkwhy import parse_arrows, to_program
>>> print(to_program(parse_arrows("(E1, E2) → E3 → Claim"), function=False))
multiple_to_one_linking([E1, E2], E3)
one_to_one_linking(E3, Claim)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Public names and where they live: each is imported when it is first used.
_PUBLIC = {
    "CLAIM": "hfcf.core.structures.model",
    "Step": "hfcf.core.structures.model",
    "Structure": "hfcf.core.structures.model",
    "StructureError": "hfcf.core.structures.model",
    "draw": "hfcf.core.structures.drawing",
    "parse_arrows": "hfcf.core.structures.arrows",
    "parse_program": "hfcf.core.structures.program",
    "parse_proof": "hfcf.core.structures.proof",
    "problems": "hfcf.core.structures.legality",
    "repair": "hfcf.core.structures.legality",
    "repair_program": "hfcf.core.structures.program",
    "stale": "hfcf.core.structures.stale",
    "to_arrows": "hfcf.core.structures.arrows",
    "to_program": "hfcf.core.structures.program",
    "to_proof": "hfcf.core.structures.proof",
}

if TYPE_CHECKING:
    from hfcf.core.structures.arrows import parse_arrows, to_arrows
    from hfcf.core.structures.drawing import draw
    from hfcf.core.structures.legality import problems, repair
    from hfcf.core.structures.model import CLAIM, Step, Structure, StructureError
    from hfcf.core.structures.program import parse_program, repair_program, to_program
    from hfcf.core.structures.proof import parse_proof, to_proof
    from hfcf.core.structures.stale import stale

__all__ = [
    "CLAIM",
    "Step",
    "Structure",
    "StructureError",
    "draw",
    "parse_arrows",
    "parse_program",
    "parse_proof",
    "problems",
    "repair",
    "repair_program",
    "stale",
    "to_arrows",
    "to_program",
    "to_proof",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hfcf.checkwhy' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
