"""Ask models for CheckWhy's tasks: classifiers, graph verifiers, writers of programs, language models, and two in a pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from hfcf.core.model import Model, find_file, is_prompted
from hfcf.core.pretrained import read_tuned_config
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.classifier_spec import output_names, read_spec
from hfcf.engines.generator import ProgramWriter
from hfcf.engines.graph_verifier import GraphClassifier
from hfcf.prompts import arguments
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError
from hfcf.tasks.structures.program import parse_program, printed_label, repair_program
from hfcf.tasks.task_inputs import WRITTEN, View, evidence_text, program_text

SETTINGS = "structures.json"
"""The file next to a model that says what it was trained for."""
KINDS = ("classifier", "graph", "seq2seq")
"""Kinds of trained models: models that read a pair of texts or a graph give the label alone, a seq2seq writes programs."""
LLM = "llm"
"""The kind of a language model that is asked by prompts."""


class StructureAnswer(NamedTuple):
    """A model's answer: `label` is None and `structure` empty where it gives none; `fault` says why a text can't be read.

    The label is read by itself, so an answer with a fault may have a label. `text` is what the model wrote, and `probabilities`
    are the labels'; each is None where a model gives none.
    """

    label: str | None
    structure: Structure = Structure(())
    fault: str | None = None
    text: str | None = None
    probabilities: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Purpose:
    """What a model was trained for: the task (1 to 4), its kind, the tokens it read, the seed of the evidence's order, its labels.

    `labels` is None for a language model.
    """

    task: int
    kind: str
    max_length: int | None = None
    seed: int = 13
    labels: tuple[str, ...] | None = None

    def save(self, folder: Path) -> None:
        (folder / SETTINGS).write_text(json.dumps(vars(self)) + "\n", encoding="utf-8")


def purpose(model: Model, task: int | None = None) -> Purpose:
    """Return what a model was trained for, or is asked for.

    Args:
        model: a folder of `hfcf.training.structures.train_structures`, its Hub id, "llm:NAME" or "chat:NAME".
        task: must be given for a language model; can be 3 or 4 for a model that was trained for 4 or 3.

    Raises:
        ValueError: nothing says what the model is for, or it can't do the task.
    """
    if is_prompted(model):
        if task is None:
            raise ValueError(f"{model.name}: say which of the tasks 1 to 4 to ask it for: --task 3")
        return Purpose(task, LLM)
    places = [(model.adapter_source(), None), (model.source(), model.revision)]
    paths = (find_file(place, SETTINGS, at) for place, at in places if place)
    if (path := next((path for path in paths if path), None)) is None:
        raise ValueError(f"{model.name} has no {SETTINGS}, which says what it is for; train one: hfcf train train_structures")
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    trained = Purpose(**{**stored, "labels": stored["labels"] and tuple(stored["labels"])})
    if task not in (None, trained.task) and not {task, trained.task} <= {*WRITTEN}:
        raise ValueError(f"{model.name} was trained for task {trained.task}, and can't be asked for task {task}")
    return trained if task is None else replace(trained, task=task)


def classes_of(model: Model, trained: Purpose) -> Sequence[str] | None:
    """Return the labels that a model can answer with, as its configuration or `structures.json` says; None if nothing says so."""
    if trained.kind == "classifier":
        return read_spec(model).names
    return output_names(read_tuned_config(model)) if trained.kind == "graph" else trained.labels


def count_cut(views: Sequence[View], model: Model, kind: str, max_length: int) -> int:
    """Count the views of which a model does not read a part."""
    if kind == "classifier":
        return Classifier(model=model, max_length=max_length).count_cut([[view.claim, evidence_text(view)] for view in views])
    if kind == "graph":
        return GraphClassifier(model=model, max_length=max_length).count_cut([graph(view) for view in views])
    if kind == "seq2seq":
        return ProgramWriter(model=model, max_length=max_length).count_cut([[program_text(view), []] for view in views])
    return 0


def ask(
    views: Sequence[View], model: Model, kind: str, *, max_length: int, labels: Sequence[str], repaired: bool = False,
    shots: int = 3, seed: int = 13,
) -> list[StructureAnswer]:  # fmt: skip
    """Return a model's answer to each view.

    Args:
        views: of one task.
        model: the model.
        kind: one of `KINDS`, or "llm".
        max_length: tokens that it reads; of a graph verifier, of a node.
        labels: that may be given.
        repaired: read programs with the slips that `hfcf.tasks.structures.program.repair_program` repairs.
        shots: worked examples for a language model.
        seed: of a language model. Its temperature is 0.1, the paper's.
    """
    if kind == "classifier":
        pairs = [[view.claim, evidence_text(view)] for view in views]
        return [_chosen(each, labels) for each in Classifier(model=model, max_length=max_length).run(pairs)]
    if kind == "graph":
        graphs = [graph(view) for view in views]
        return [_chosen(each, labels) for each in GraphClassifier(model=model, max_length=max_length).run(graphs)]
    if kind == "seq2seq":
        written = ProgramWriter(model=model, max_length=max_length).run([[program_text(view), []] for view in views])
        texts = [each[0]["text"] if each else "" for each in written]
        return [read_answer(text, view, labels, repaired=repaired) for text, view in zip(texts, views, strict=True)]
    return _ask_llm(views, model, labels, repaired, shots, seed)


def ask_in_turn(written: Sequence[tuple[View, StructureAnswer]], **settings: Any) -> list[StructureAnswer]:
    """Let a second model label the structures that a first model wrote (CheckWhy, Table 7).

    `settings` are the settings of `ask` for the second model, which was trained for Task 2.
    """
    labelled = ask([with_structure(view, answer.structure) for view, answer in written], **settings)
    return [
        first._replace(label=second.label, fault=first.fault or second.fault, probabilities=second.probabilities)
        for (_, first), second in zip(written, labelled, strict=True)
    ]


def with_structure(view: View, structure: Structure) -> View:
    """Return Task 2's view of a row with another structure than its own, whose conclusions are not leaf evidence."""
    concluded = structure.intermediates()
    pieces = {name: text for name, text in view.pieces.items() if name not in concluded}
    linked = replace(structure, label=None, texts={**view.texts, **structure.texts})
    return replace(view, task=2, pieces=pieces, structure=linked, target=None)


def graph(view: View) -> list[Any]:
    """Return a view as a request of `GraphClassifier`; without a structure, all nodes are linked."""
    if view.structure is None:
        return [view.claim, list(view.pieces.values()), None]
    texts = {**view.pieces, **view.structure.texts}
    names = [name for name in texts if name != CLAIM]
    places = {CLAIM: -1, **{name: i for i, name in enumerate(names)}}
    edges = [[places[premise], places[conclusion]] for premise, conclusion in view.structure.edges()]
    return [view.claim, [texts[name] for name in names], edges]


def read_answer(text: str, view: View, labels: Sequence[str], *, repaired: bool = False) -> StructureAnswer:
    """Parse the program that a model wrote, which is never executed; a label that the task lacks counts as none.

    The label is read even if the program can't be parsed: a wrong name in a link does not change what it prints.
    """
    label = printed_label(text)
    try:
        structure = repair_program(text, view.texts)[0] if repaired else parse_program(text, view.texts)
    except StructureError as error:
        return StructureAnswer(label if label in labels else None, fault=str(error), text=text)
    if structure.label is None and not structure.steps:
        return StructureAnswer(None, fault="the text has neither links nor a label", text=text)
    return StructureAnswer(structure.label if structure.label in labels else None, structure, text=text)


def _chosen(probabilities: Mapping[str, float], labels: Sequence[str]) -> StructureAnswer:
    return StructureAnswer(choose(probabilities, labels), probabilities=probabilities)


def _ask_llm(
    views: Sequence[View], model: Model, labels: Sequence[str], repaired: bool, shots: int, seed: int
) -> list[StructureAnswer]:
    results = arguments.ask(views, model, ways=len(labels), shots=shots, temperature=0.1, max_tokens=1024, seed=seed)
    answers = []
    for view, result in zip(views, results, strict=True):
        if "error" in result:
            answers.append(StructureAnswer(None, fault=result["error"]))
        elif view.task in WRITTEN:
            answers.append(read_answer(result["answer"]["program"], view, labels, repaired=repaired))
        else:
            answers.append(StructureAnswer(result["answer"]["label"]))
    return answers
