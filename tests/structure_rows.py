"""Rows with argument structures: a supported and a refuted claim and one without a structure."""

from __future__ import annotations

from typing import Any

from datasets import Dataset, Features, List

from hfcf.core.candidates import accept, reject
from hfcf.core.edits import rewrite
from hfcf.core.schema import STATUS
from hfcf.core.task import get_task
from hfcf.systems._shared.judge import counterfactuals
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.verification import candidate

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


def judged() -> Dataset:
    """What a system leaves: of each row an accepted edit of the evidence, and a rejected edit of the claim."""
    made = []
    for one in rows():
        edit = {"field": "evidence", "piece": 0, "start": 38, "end": 40, "before": "12", "after": "13"}
        rewritten = "The lamp made the seeds rot in the greenhouse."
        candidates = [
            accept(candidate(one["claim"], "REFUTES", "evidence", [edit]), "check"),
            reject(candidate(rewritten, "REFUTES", "claim", rewrite("claim", one["claim"], rewritten)), "check", "no"),
        ]
        status = {"accepted": True, "stage": "check", "reason": None}
        made.append(
            {**one, "candidates": candidates, "counterfactuals": counterfactuals(one, candidates, "made"), "status": status}
        )
    task = get_task("structures")
    lists = {"candidates": List(task.candidate_features), "counterfactuals": List(dict(task.counterfactual))}
    return Dataset.from_list(made, features=Features({**task.features, **lists, "status": STATUS}))


def dataset(made: list[dict[str, Any]] | None = None) -> Dataset:
    return Dataset.from_list(rows() if made is None else made, features=get_task("structures").features)
