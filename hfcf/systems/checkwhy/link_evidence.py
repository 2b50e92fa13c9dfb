"""Link the evidence of an argument to a structure (CheckWhy, section 3.2, Table 14) and check it (Appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.schema import NAMES, STRUCTURE, TEXT
from hfcf.core.stage import Reject
from hfcf.prompts import failure
from hfcf.systems.checkwhy.arguments import STEPS, inferences
from hfcf.systems.checkwhy.chat import ChatStage
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError, problems, repair
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.verification import REFUTES, SUPPORTS

SIDES = {SUPPORTS: "support", REFUTES: "refutation"}
"""Label → the column of its argument, which is also the prefix of the columns of its program and its structure."""


@dataclass(frozen=True, kw_only=True)
class LinkEvidence(ChatStage):
    """Request the structure of each argument as program text. It is parsed and never executed, and legal structures are kept.

    Input columns: `causal_claim`, `support`, `refutation`. Output columns: `support_program` and `refutation_program`, the texts
    as the model wrote them; `support_structure` and `refutation_structure`; and `repairs`. The structures' names are Sentence1,
    Sentence2 … in the order of the inferences. A row is rejected unless both pass, since one claim gives one set.

    A structure passes if its text can be read (`hfcf.tasks.structures.program.parse_program`), declares no further sentence and
    prints no other label. It must also be legal (`hfcf.tasks.structures.model.problems`): connected, without cycles, ending in
    the claim, with every piece of evidence used.

    Deviation: in the paper's code cause and effect are nodes (Figure 13), which annotators replaced by the claim. Here the claim is
    the root from the start, as in its Table 14 and in the released rows.

    Args:
        chat: the language model.
        repair: repair the commonest slips before the check (`hfcf.tasks.structures.model.repair`), and name them in `repairs`.
            In the paper people correct structures.

    >>> read_structure("one_to_one_linking(Sentence1, Claim)", "c", ["a", "b"], "SUPPORTS")[1]
    'Sentence2 is useful and not used'
    """

    inputs: ClassVar = {"causal_claim": TEXT, "support": STEPS, "refutation": STEPS}
    outputs: ClassVar = {
        **{f"{side}_program": TEXT for side in SIDES.values()}, **{f"{side}_structure": STRUCTURE for side in SIDES.values()},
        "repairs": NAMES,
    }  # fmt: skip
    produced_by: ClassVar = {
        "causal_claim": "checkwhy.write_claim", "support": "checkwhy.support_claim", "refutation": "checkwhy.refute_claim",
    }  # fmt: skip

    template: ClassVar = "argument_programs"

    repair: bool = False

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        results: list[dict[str, Any]] = [{"repairs": []} for _ in rows]
        faults: list[str | None] = [None] * len(rows)
        for label, side in SIDES.items():
            # The refuting argument is asked for only where the supporting one passed.
            passing = [i for i, fault in enumerate(faults) if fault is None]
            texts = [inferences(rows[i][side]) for i in passing]
            questions = [
                {"claim": rows[i]["causal_claim"], "label": label, "sentences": _name_pieces(pieces)}
                for i, pieces in zip(passing, texts, strict=True)
            ]
            answers = self.chat.ask(self.template, questions, self.seed)
            for i, pieces, answer in zip(passing, texts, answers, strict=True):
                if why := failure(answer):
                    faults[i] = f"the structure of {label}: {why}"
                    continue
                results[i][f"{side}_program"] = program = "\n".join(answer["answer"]["lines"])
                structure, why, repairs = read_structure(program, rows[i]["causal_claim"], pieces, label, mend=self.repair)
                results[i]["repairs"] += [f"{label}: {repaired}" for repaired in repairs]
                if structure is not None:
                    results[i][f"{side}_structure"] = structure.to_columns()
                faults[i] = why and f"the structure of {label}: {why}"
        return [Reject(why, **result) if why else result for why, result in zip(faults, results, strict=True)]


def _name_pieces(pieces: Sequence[str]) -> dict[str, str]:
    """Name the pieces of evidence as programs do: Sentence1, Sentence2 …"""
    return {f"Sentence{i}": text for i, text in enumerate(pieces, 1)}


def read_structure(
    program: str, claim: str, pieces: Sequence[str], label: str, *, mend: bool = False
) -> tuple[Structure | None, str | None, list[str]]:
    """Read and check a program; return its structure (None if unreadable), why it is rejected, and what was repaired."""
    names: Mapping[str, str] = _name_pieces(pieces)
    try:
        structure = parse_program(program, {**names, CLAIM: claim})
    except StructureError as error:
        return None, str(error), []
    if extra := [name for name in structure.texts if name not in names and name != CLAIM]:
        return structure, f"it declares a sentence of its own, {extra[0]}", []
    if structure.label not in (None, label):
        return structure, f"it prints the label {structure.label}", []
    structure, repairs = repair(structure) if mend else (structure, [])
    illegal = problems(structure, names)
    return structure, "; ".join(illegal) or None, repairs
