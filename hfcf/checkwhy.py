"""CheckWhy (Si et al. 2024, "Causal Fact Verification via Argument Structure", ACL): argument structures and their notations.

>>> from hfcf.checkwhy import parse_arrows, to_program
>>> print(to_program(parse_arrows("(E1, E2) → E3 → Claim"), function=False))
multiple_to_one_linking([E1, E2], E3)
one_to_one_linking(E3, Claim)
"""

from __future__ import annotations

from hfcf.tasks.structures.arrows import parse_arrows, to_arrows
from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError, problems, repair, stale
from hfcf.tasks.structures.program import parse_program, repair_program, to_program
from hfcf.tasks.structures.proof import parse_proof, to_proof

__all__ = [
    "CLAIM",
    "Step",
    "Structure",
    "StructureError",
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
