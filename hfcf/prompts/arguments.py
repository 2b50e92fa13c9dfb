"""The prompts for CheckWhy's four tasks, with reasoning before the answer: the tasks of its Tables 15 to 18, in our words."""

from __future__ import annotations

from typing import Any

from hfcf import prompts
from hfcf.engines.answers import object_schema
from hfcf.tasks.structures.model import CLAIM
from hfcf.tasks.structures.program import to_program
from hfcf.tasks.task_inputs import WRITTEN, View
from hfcf.tasks.verification import LABELS

TEMPLATE = "arguments"


def schema(task: int, ways: int) -> str:
    """Return the JSON schema that an answer must fit: thoughts, then a label or a program."""
    answer: dict[str, Any] = {"program": {"type": "string"}} if task in WRITTEN else {"label": {"enum": list(LABELS[:ways])}}
    return object_schema({"thoughts": {"type": "string"}, **answer})


def messages(view: View, *, ways: int = 2, shots: int = 3, folder: str | None = None) -> list[prompts.Message]:
    """Ask for the label, in Tasks 3 and 4 also for the structure, after `shots` worked examples."""
    conclusions, links = {}, []
    if view.structure is not None:
        texts = view.structure.texts
        conclusions = {name: text for name, text in texts.items() if name not in view.pieces and name != CLAIM}
        links = to_program(view.structure, declare=False, label=False, function=False).split("\n")
    return prompts.messages(
        TEMPLATE,
        shots=shots,
        folder=folder,
        task=view.task,
        ways=ways,
        claim=view.claim,
        pieces=view.pieces,
        conclusions=conclusions,
        links=links,
    )
