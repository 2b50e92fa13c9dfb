"""Tasks 1 and 2 of CheckWhy on rows derived from EntailmentBank, in five folds, beside what guesses right without an argument.

    HFCF_DATA=FOLDER python benchmarks/structure_tasks.py [--quick] [--json FILE]

FOLDER holds the release as entailment_bank/. `hfcf.training.derived_labels` makes a SUPPORTS, a REFUTES and a NOT ENOUGH INFO row
of each of the 187 trees of its dev split (task 2, with distractors). Whole trees are held out: rows that share a group or a text
are in one fold; a sentence of a tree may still occur in a tree of another fold. Task 1 reads claim, leaves and distractors; Task 2
also the structure, with the sentences of its conclusions. The difference is that of accuracy, with an interval of 95 % from 10,000
resamples of trees; it does not count what another seed of the training would change. It does not say that a structure helps a model
to reason: Task 2 opens the shortcuts of the last lines (docs/systems/checkwhy.md).

The offline encoder starts from its adapter `nli` (CAD-NLI), a classifier of three labels from the adapter `verifier`. A finished
fold is a line of results/structure_tasks.jsonl and is not trained again, so that the work can be interrupted. All of it takes more
than an hour of one core; --quick trains one fold of each kind for a few steps and stores nothing.

The last lines need no model: `hfcf.metrics.scores.shortcuts` guesses labels from words, from the number of pieces, and from whether
the number of "not" is even.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from common import read_options, show
from datasets import Dataset

import hfcf
from hfcf.core.model import Model
from hfcf.core.splits import regroup
from hfcf.metrics.scores.shortcuts import shortcuts
from hfcf.metrics.shared.bootstrap import mean_interval
from hfcf.studies.compare.results import Cells, digest
from hfcf.tasks.verification import LABELS
from hfcf.training.derived_labels import derive_labels
from hfcf.training.structures import StructureTrainer, train_structures
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.verifier import scores

VERSION, FOLDS = "1", 5
RESULTS = Path(__file__).parents[1] / "results" / "structure_tasks.jsonl"
LETTERS = {label: label[0] for label in LABELS}


class Kind(NamedTuple):
    """What is trained."""

    name: str
    task: int
    kind: str = "classifier"
    ways: int = 2

    def hyperparameters(self, epochs: float) -> Hyperparameters:
        adapter = "hfcf:nli" if self.ways == 2 else "hfcf:verifier"
        length = 192 if self.kind == "classifier" else 64  # of a graph, tokens of a node: the longest has 54
        return Hyperparameters(
            model=Model("offline:minilm", adapter=adapter), max_length=length, batch_size=8, learning_rate=1e-4, epochs=epochs,
            warmup=0.06,
        )  # fmt: skip


PAIRS = [
    (Kind("classifier, task 1", 1), Kind("classifier, task 2", 2)),
    (Kind("graph verifier, task 1", 1, "graph"), Kind("graph verifier, task 2", 2, "graph")),
]
ALONE = [Kind("classifier, task 1, three labels", 1, ways=3)]


class Data:
    """The derived rows, the group of each, and its fold, by the hash of the group."""

    def __init__(self, trees: int | None = None) -> None:
        folder = Path(os.environ["HFCF_DATA"]) / "entailment_bank"
        ds = hfcf.load("entailment_bank", data_dir=str(folder), split="validation", task="2")
        self.rows = derive_labels(ds if trees is None else ds.select(range(trees)), distractors=2)
        self.groups = list(regroup(self.rows))
        self.folds = [int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS for group in self.groups]

    def split(self, fold: int, ways: int) -> tuple[Dataset, Dataset, list[str]]:
        """Return the rows of the other folds, those of this one, and the groups of these."""
        places = [i for i, label in enumerate(self.rows["label"]) if label in LABELS[:ways]]
        inside = [i for i in places if self.folds[i] == fold]
        outside = [i for i in places if self.folds[i] != fold]
        return self.rows.select(outside), self.rows.select(inside), [self.groups[i] for i in inside]


def train(kind: Kind, data: Data, fold: int, epochs: float) -> dict[str, Any]:
    """Train on the other folds, and answer the rows of this one."""
    training, test, _ = data.split(fold, kind.ways)
    hp, labels, start = kind.hyperparameters(epochs), LABELS[: kind.ways], time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        train_structures(training, hp, Path(folder), task=kind.task, kind=kind.kind, labels=labels)
        predicted = StructureTrainer().predict(test, trained_model(hp, Path(folder)), max_length=hp.max_length, labels=labels)
    gold = list(test["label"])
    return {
        "method": kind.name, "fold": fold, "train_rows": len(training), "epochs": epochs, "ids": digest(list(test["id"])),
        "letters": LETTERS, "gold": _letters(gold), "predicted": _letters(predicted), **scores(gold, predicted, labels),
        "cpu_seconds": round(time.process_time() - start, 1),
    }  # fmt: skip


def key(kind: Kind, data: Data, fold: int, epochs: float) -> str:
    """Return the key of a finished fold: everything that it depends on."""
    training, test, _ = data.split(fold, kind.ways)
    texts = [[list(part["id"]), list(part["claim"]), part["evidence"][:], part["structure"][:]] for part in (training, test)]
    hp = kind.hyperparameters(epochs)
    return digest([VERSION, kind, {**vars(hp), "model": hp.model.key()}, texts])


def _letters(labels: Sequence[str]) -> str:
    return "".join(LETTERS.get(label, "-") for label in labels)


def right_by_group(kind: Kind, data: Data, cells: Sequence[dict[str, Any] | None]) -> dict[str, list[bool]]:
    """Return whether each row was answered right, by group, of the folds that are finished."""
    right: dict[str, list[bool]] = {}
    for fold, cell in enumerate(cells):
        if cell is not None:
            answers = zip(data.split(fold, kind.ways)[2], cell["gold"], cell["predicted"], strict=True)
            for group, gold, predicted in answers:
                right.setdefault(group, []).append(gold == predicted)
    return right


def fill(data: Data, cells: Cells, epochs: float, folds: int) -> None:
    """Train what is not finished."""
    for kinds in (*PAIRS, ALONE):
        for fold in range(folds):
            for kind in kinds:
                if cells.get(place := key(kind, data, fold, epochs)) is None:
                    cells.put(place, train(kind, data, fold, epochs))
                    print(f"{kind.name}, fold {fold + 1} of {FOLDS}", flush=True)


def table(data: Data, cells: Cells, epochs: float) -> list[list[Any]]:
    """List name, folds, rows, accuracy and interval of each kind and of each difference that has finished folds."""
    lines: list[list[Any]] = []
    for kinds in (*PAIRS, ALONE):
        finished = {kind: [cells.get(key(kind, data, fold, epochs)) for fold in range(FOLDS)] for kind in kinds}
        right = {kind: right_by_group(kind, data, finished[kind]) for kind in kinds}
        for kind in kinds:
            if right[kind]:
                interval = mean_interval(*flat(right[kind]))
                folds = sum(cell is not None for cell in finished[kind])
                lines.append([kind.name, folds, sum(map(len, right[kind].values())), *interval])
        if len(kinds) == 2:
            first, second = (right[kind] for kind in kinds)
            pairs = {group: zip(second[group], first[group], strict=True) for group in first if group in second}
            if pairs:
                values, groups = flat({group: [one - other for one, other in both] for group, both in pairs.items()})
                lines.append([f"{kinds[1].name} − task 1", "", len(values), *mean_interval(values, groups)])
    for ways in (2, 3):
        lines += [
            [f"{line['shortcut']}, {ways} labels", "", *(line[name] for name in ("rows", "accuracy", "low", "high"))]
            for line in shortcuts(data.rows, LABELS[:ways])
        ]
    return lines


def flat(by_group: Mapping[str, Sequence[float]]) -> tuple[list[float], list[str]]:
    """Return all values, and the group of each."""
    return [value for each in by_group.values() for value in each], [group for group, each in by_group.items() for _ in each]


def main() -> None:
    options = read_options((__doc__ or "").splitlines()[0])
    torch.set_num_threads(1)
    data, epochs = Data(20 if options.quick else None), 0.1 if options.quick else 2.0
    cells = Cells(Path(tempfile.mkdtemp()) / "cells.jsonl" if options.quick else RESULTS)
    fill(data, cells, epochs, 1 if options.quick else FOLDS)
    lines = table(data, cells, epochs)
    columns = ["", "folds", "rows", "accuracy", "low", "high"]
    show(f"{len(set(data.groups))} groups of trees", columns, lines, options.json, {line[0]: line[3:] for line in lines})


if __name__ == "__main__":
    main()
