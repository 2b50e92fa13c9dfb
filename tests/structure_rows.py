"""Rows with argument structures: a supported and a refuted claim and one without a structure."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from hfcf.core.structures.arrows import parse_arrows
from hfcf.core.task import get_task

SENTENCES = {
    "s1": "The lamp in the greenhouse was on for 12 hours.",
    "s2": "A lamp gives off heat.",
    "s3": "The air in the greenhouse became warm.",
    "s4": "The ice in the bucket melted.",
    "s5": "Melted ice waters the seeds.",
    "s6": "The warm air dried the soil.",
    "d1": "Mount Everest is in Nepal.",
}


def row(name: str, arrows: str, label: str, claim: str = "The lamp made the seeds grow in the greenhouse.") -> dict[str, Any]:
    structure = parse_arrows(arrows)
    used, leaves = structure.nodes(), structure.leaves()
    return {
        "id": name, "claim": claim, "label": label, "group_id": "lamp", "corpus": "made", "split": "train",
        "evidence": [{"title": "", "text": text} for text in SENTENCES.values()],
        "cause": "The lamp was on.", "effect": None,
        "evidence_info": [{"id": one, "useful": one in used, "leaf": one in leaves} for one in SENTENCES],
        "structure": structure.to_columns(),
    }  # fmt: skip


def rows() -> list[dict[str, Any]]:
    return [
        row("sup", "(s1, s2) → s3 → s4 (s4, s5) → Claim", "SUPPORTS"),
        row("ref", "(s1, s2) → s3 → (s4, s6) → Claim", "REFUTES"),
        row("nei", "", "NOT ENOUGH INFO"),
    ]


def dataset(made: list[dict[str, Any]] | None = None) -> Dataset:
    return Dataset.from_list(rows() if made is None else made, features=get_task("structures").features)
