"""The prompts for CheckWhy's four tasks, with reasoning before the answer: the tasks of its Tables 15 to 18, in our words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.tasks.structures.model import CLAIM
from hfcf.tasks.structures.program import to_program
from hfcf.tasks.task_inputs import WRITTEN, View
from hfcf.tasks.verification import LABELS

TEMPLATE = "arguments"


def ask(views: Sequence[View], model: Model, *, ways: int = 2, shots: int = 3, **settings: Any) -> list[dict[str, Any]]:
    """Ask for the label of each view of one task, in Tasks 3 and 4 also for the structure; `hfcf.prompts.ask` says what comes."""
    if not views:
        return []
    task = views[0].task
    label = {"label": {"enum": list(LABELS[:ways])}}
    return prompts.ask(
        model, TEMPLATE, [values(view, ways) for view in views], shots=shots, examples=_examples(task, ways, model.prompts),
        limits={"program": {"type": "string"}} if task in WRITTEN else label, **settings,
    )  # fmt: skip


def values(view: View, ways: int = 2) -> dict[str, Any]:
    """Return what the template says about a view."""
    conclusions, links = {}, []
    if view.structure is not None:
        texts = view.structure.texts
        conclusions = {name: text for name, text in texts.items() if name not in view.pieces and name != CLAIM}
        links = to_program(view.structure, declare=False, label=False, function=False).split("\n")
    shown = {"pieces": view.pieces, "conclusions": conclusions, "links": links}
    return {"task": view.task, "ways": ways, "claim": view.claim, **shown}


def _examples(task: int, ways: int, folder: str | None) -> list[dict[str, Any]]:
    """Return the worked examples as the task shows its rows."""
    examples = []
    for example in prompts.read_prompt(TEMPLATE, folder)["examples"]:
        if example["label"] not in LABELS[:ways]:
            continue
        pieces = {piece["name"]: piece["text"] for piece in example["evidence"] if task == 3 or not piece["concluded"]}
        conclusions = {piece["name"]: piece["text"] for piece in example["evidence"] if piece["concluded"]}
        facts = [f"{name} = FACT({json.dumps(text, ensure_ascii=False)})" for name, text in conclusions.items() if task == 4]
        program = "\n".join([*facts, *example["links"], f'print("{example["label"]}")'])
        answer = {"program": program} if task in WRITTEN else {"label": example["label"]}
        shown = {"pieces": pieces, "conclusions": conclusions, "links": example["links"]}
        examples.append({"claim": example["claim"], **shown, "answers": [{"thoughts": example["thoughts"], **answer}]})
    return examples
