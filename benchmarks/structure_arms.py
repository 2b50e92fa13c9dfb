"""Arms of the ablation in structure_tasks.py: what of an argument structure a model is shown, as changes of rows.

Each arm turns a derived row (`hfcf.training.derived_labels`) into the row that its task shows, so that training, answers and the
shortcut audit need no special case. Trees, labels and order are the same in all arms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from structure_shortcuts import NEGATION, last_step_parity, nearest_parity, parity

from hfcf.tasks.structures.model import CLAIM, Structure

Row = Mapping[str, Any]
PREMISE, CONCLUSION = "premise: ", "conclusion: "
"""The marks of pieces that a structure uses."""
EPOCHS, SHORT = 15.0, 2.0
"""Passes over the training rows: enough to fit them, and those of the first version of this benchmark."""


def hide_structure(row: Row) -> dict[str, Any]:
    """Return a row without its links, whose pieces are all shown."""
    infos = [{**info, "leaf": info["leaf"] or info["useful"]} for info in row["evidence_info"]]
    return {**row, "structure": [], "evidence_info": infos}


def select(row: Row, keep: Callable[[Row], bool]) -> dict[str, Any]:
    """Return a row with the pieces for whose entry in `evidence_info` `keep` is true."""
    kept = [(info, piece) for info, piece in zip(row["evidence_info"], row["evidence"], strict=True) if keep(info)]
    return {**row, "evidence_info": [info for info, _ in kept], "evidence": [piece for _, piece in kept]}


def rewrite(row: Row, change: Callable[[Row, str], str]) -> dict[str, Any]:
    """Return a row with sentences changed by `change`, of the entry in `evidence_info` and the sentence."""
    pairs = zip(row["evidence_info"], row["evidence"], strict=True)
    return {**row, "evidence": [{**piece, "text": change(info, piece["text"])} for info, piece in pairs]}


def leaves_only(row: Row) -> dict[str, Any]:
    """Show what Task 1 shows: no conclusion, no link."""
    return hide_structure(select(row, lambda info: info["leaf"] or not info["useful"]))


def no_distractors(row: Row) -> dict[str, Any]:
    """Show the useful leaves alone."""
    return leaves_only(select(row, lambda info: info["useful"]))


def last_premises(row: Row) -> dict[str, Any]:
    """Show the premises of the claim alone: leaves or conclusions."""
    names = {name for step in row["structure"] if step["conclusion"] == CLAIM for name in step["premises"]}
    return hide_structure(select(row, lambda info: info["id"] in names))


def mark(row: Row) -> dict[str, Any]:
    """Write before each sentence of the structure whether it is a premise only or a conclusion."""
    return rewrite(row, lambda info, text: f"{(PREMISE if info['leaf'] else CONCLUSION) if info['useful'] else ''}{text}")


def permute_links(row: Row) -> dict[str, Any]:
    """Give the sentences of a structure other places in it; distractors stay outside. One step has no other form."""
    names = [name for name in Structure.from_row(row).nodes() if name != CLAIM]
    new, rng = list(names), random.Random(f"13:permute:{row['id']}")
    for _ in range(100):
        rng.shuffle(new)
        places = dict(zip(names, new, strict=True))
        steps = [
            {"premises": [places[name] for name in step["premises"]], "conclusion": places.get(step["conclusion"], CLAIM)}
            for step in row["structure"]
        ]
        if Structure.from_columns(steps) != Structure.from_columns(row["structure"]):
            break
    leaves = Structure.from_columns(steps).leaves()
    return {**row, "structure": steps, "evidence_info": [{**info, "leaf": info["id"] in leaves} for info in row["evidence_info"]]}


def remove_conclusions(row: Row) -> dict[str, Any]:
    """Replace the sentence of each conclusion by its number, which links still name."""
    numbers = {name: f"conclusion {i}" for i, name in enumerate(Structure.from_row(row).intermediates(), 1)}
    return rewrite(row, lambda info, text: numbers.get(info["id"], text))


def count_denials(row: Row) -> tuple[int, int]:
    """Return the parity of denials in the claim, and their number in all evidence that is shown."""
    return _denials(row, lambda info: True)


def count_used(row: Row) -> tuple[int, int]:
    """Return the parity of denials in the claim, and their number in the pieces that the structure uses."""
    return _denials(row, lambda info: info["useful"])


def _denials(row: Row, counts: Callable[[Row], bool]) -> tuple[int, int]:
    texts = (piece["text"] for piece in select(row, counts)["evidence"])
    return parity([row["claim"]]), sum(len(NEGATION.findall(text)) for text in texts)


class Arm(NamedTuple):
    """What is shown of each row.

    Args:
        name: of the arm.
        change: makes the row that is shown.
        task: that shows it, 1 or 2.
        denied: the share of distractors that are denied.
        opens: rules that read what the arm shows, and guess the label from where "not" is.
    """

    name: str
    change: Callable[[Row], dict[str, Any]] = leaves_only
    task: int = 1
    denied: float = 0.5
    opens: Mapping[str, Callable[[Row], Hashable]] = {
        "denials in all evidence": count_denials, "parity of the nearest sentence": nearest_parity,
    }  # fmt: skip


_MARKED = {"denials in used pieces": count_used}
_LINKED = {**_MARKED, "parity of the last step": last_step_parity}
TASK_1, TASK_2 = Arm("task 1"), Arm("task 2", dict, 2, opens=_LINKED)
ARMS = [
    TASK_1,
    Arm("task 1, distractors not denied", denied=0.0),
    Arm("task 1, no distractors", no_distractors),
    Arm("task 1, useful pieces marked", lambda row: leaves_only(mark(row)), opens=_MARKED),
    Arm("task 1, conclusions added", hide_structure),
    Arm("task 1, conclusions added, useful pieces marked", lambda row: hide_structure(mark(row)), opens=_MARKED),
    Arm("task 1, premises of the last step alone", last_premises),
    Arm("task 2, links permuted", permute_links, 2, opens=_LINKED),
    Arm("task 2, conclusions removed", remove_conclusions, 2, opens=_MARKED),
    TASK_2,
]
