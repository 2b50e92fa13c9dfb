"""Ablation of CheckWhy's Tasks 1 and 2 on rows derived from EntailmentBank: what of a structure helps a trained model, and why.

    HFCF_DATA=FOLDER python benchmarks/structure_tasks.py [--quick] [--json FILE]

FOLDER holds the release as entailment_bank/. `hfcf.training.derived_labels` makes a SUPPORTS and a REFUTES row of each of the 187
trees of its dev split, with two distractors. Whole trees are held out in five folds: rows that share a group or a text are in one
fold; a sentence of a tree may still occur in a tree of another fold. The arms of structure_arms.py show the same rows, from Task 1
to Task 2. Each arm is trained for the same number of passes on each fold with several seeds, and answers its training rows too: a
model that has not learned them says nothing about what it was shown.

What the stored results say: Task 2 beats Task 1 by +0.310 (+0.265 to +0.356), and both have learned their training rows. Links
explain little of that. If the used pieces are only marked, without links, accuracy is 0.934, and 0.955 with their conclusions; true
links add +0.017 (+0.000 to +0.035), and wrong links lose 0.035. The premises of the last step alone give 0.972, as much as Task 2.
Distractors that nobody denied lift Task 1 to 0.946, so what it lacks is to know which "not" counts. A rule that counts "not" beats
the classifier in nine of ten arms, and where the rule errs, the classifier mostly errs too. It helps, then, to know which pieces
belong to the argument. This does not show that a model reasons over links, and it says nothing about CheckWhy, whose labels are not
made by "not". All of it is one small encoder, 187 trees, and two or three seeds.

The offline encoder starts from its adapter `nli` (CAD-NLI). A finished training is a line of results/structure_tasks.jsonl and is
not trained again, so that the work can be interrupted. All of it takes minutes on a GPU and many hours on one core; --quick trains
a few steps of one fold and stores nothing. The models are computed where accelerate puts them, with TF32 on a GPU.

Intervals are of 95 %, by 10,000 resamples of trees and, apart from them, of seeds. The column "best rule" is the accuracy of the
best of the rules `Arm.opens`, which guess from where "not" is without a model, and the next column says how a trained model does on
the rows where that rule is wrong. The last lines are the shortcut audit of Task 1 (`structure_shortcuts.py`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from common import read_options, show
from datasets import Dataset
from structure_arms import ARMS, EPOCHS, SHORT, TASK_1, TASK_2, Arm
from structure_shortcuts import guess_by, shortcuts
from structure_table import COLUMNS, RESULTS, VERSION, lines, notes

import hfcf
from hfcf.core.model import Model
from hfcf.core.splits import regroup
from hfcf.engines.base import process_device
from hfcf.studies.compare.results import Cells, digest
from hfcf.tasks.verification import LABELS
from hfcf.training.derived_labels import derive_labels
from hfcf.training.structure_answers import count_cut
from hfcf.training.structures import StructureTrainer, train_structures
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.verifier import scores

FOLDS, SEEDS = 5, (13, 14, 15)
TWO = LABELS[:2]
LETTERS = {label: label[0] for label in TWO}
VERSIONS = {"structure_tasks": VERSION}


class Run(NamedTuple):
    """A training on all folds but one."""

    arm: Arm
    model: str
    epochs: float
    seed: int
    fold: int

    def hyperparameters(self) -> Hyperparameters:
        length = 512 if self.model == "classifier" else 64  # of a graph, tokens of a node
        return Hyperparameters(
            model=Model("offline:minilm", adapter="hfcf:nli"), max_length=length, batch_size=16, learning_rate=1e-4,
            epochs=self.epochs, warmup=0.06, seed=self.seed,
        )  # fmt: skip


def plan() -> list[Run]:
    """List all trainings, first those that a table needs most."""
    runs = []
    for seed in SEEDS:
        kinds = [(arm, "classifier", EPOCHS) for arm in ARMS]
        kinds += [(arm, "classifier", SHORT) for arm in (TASK_1, TASK_2)]
        kinds += [(arm, "graph verifier", EPOCHS) for arm in (TASK_1, *(arm for arm in ARMS if arm.task == 2))]
        runs += [Run(arm, model, epochs, seed, fold) for arm, model, epochs in kinds for fold in range(FOLDS)]
    return runs


class Data:
    """The derived rows of two labels as arms show them, the group of each, and its fold, by the hash of the group."""

    def __init__(self, trees: int | None = None) -> None:
        folder = Path(os.environ["HFCF_DATA"]) / "entailment_bank"
        ds = hfcf.load("entailment_bank", data_dir=str(folder), split="validation", task="2")
        self._trees = ds if trees is None else ds.select(range(trees))
        self._shown: dict[str, Dataset] = {}
        self.rows = self._derive(0.5)
        self.groups = list(map(str, regroup(self.rows)))
        self.folds = [int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS for group in self.groups]

    def _derive(self, denied: float) -> Dataset:
        rows = derive_labels(self._trees, distractors=2, denied=denied)
        return rows.select([i for i, label in enumerate(rows["label"]) if label in TWO])

    def shown(self, arm: Arm) -> Dataset:
        """Return the rows as an arm shows them, in the same order."""
        if arm.name not in self._shown:
            rows = self._derive(arm.denied)
            self._shown[arm.name] = Dataset.from_list([arm.change(row) for row in rows], features=rows.features)
        return self._shown[arm.name]

    def places(self, fold: int) -> list[int]:
        return [i for i, number in enumerate(self.folds) if number == fold]

    def split(self, arm: Arm, fold: int) -> tuple[Dataset, Dataset]:
        """Return the rows of the other folds, and those of this one."""
        rows, inside = self.shown(arm), self.places(fold)
        return rows.select(sorted({*range(len(rows))} - {*inside})), rows.select(inside)


def train(run: Run, data: Data) -> dict[str, Any]:
    """Train on the other folds, and answer the rows of this one and the training's own."""
    training, test = data.split(run.arm, run.fold)
    hp, start = run.hyperparameters(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        kind = "classifier" if run.model == "classifier" else "graph"
        train_structures(training, hp, out, task=run.arm.task, kind=kind, labels=TWO)
        model = trained_model(hp, out)
        tested, learned = (
            StructureTrainer().answers(part, model, max_length=hp.max_length, labels=TWO) for part in (test, training)
        )
        cut = count_cut(learned.shown, model, kind, hp.max_length)
    gold, predicted = list(test["label"]), tested.stored(len(test))
    device = process_device()
    return {
        "kind": "run", "method": run.arm.name, "model": run.model, "epochs": run.epochs, "seed": run.seed, "fold": run.fold,
        "train_rows": len(training), "train_accuracy": scores(training["label"], learned.stored(len(training)))["accuracy"],
        "cut": cut, "ids": digest(list(test["id"])), "letters": LETTERS, "gold": _letters(gold),
        "predicted": _letters(predicted), **scores(gold, predicted), "seconds": round(time.perf_counter() - start, 1),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else device.type, "torch": torch.__version__,
        "transformers": transformers.__version__, "versions": VERSIONS,
    }  # fmt: skip


def key(run: Run, data: Data) -> str:
    """Return the key of a finished training: everything that it depends on but the machine."""
    texts = [
        [list(part["id"]), list(part["claim"]), part["evidence"][:], part["evidence_info"][:], part["structure"][:]]
        for part in data.split(run.arm, run.fold)
    ]
    hp = run.hyperparameters()
    return digest([VERSIONS, run.arm.name, run.arm.task, run.model, {**vars(hp), "model": hp.model.key()}, texts])


def _letters(labels: Sequence[str]) -> str:
    return "".join(LETTERS.get(label, "-") for label in labels)


def fill(data: Data, cells: Cells, runs: Iterable[Run]) -> None:
    """Train what is not finished."""
    for run in runs:
        if cells.get(place := key(run, data)) is None:
            cells.put(place, train(run, data))
            print(f"{run.arm.name}, {run.model}, {run.epochs:g} passes, seed {run.seed}, fold {run.fold + 1}", flush=True)


def put_rows(data: Data, cells: Cells) -> None:
    """Store what the table needs besides answers: group and steps of each row, and how well rules guess labels."""
    names = {group: i for i, group in enumerate(dict.fromkeys(data.groups))}
    steps = [len({step["conclusion"] for step in row["structure"]}) for row in data.rows]
    found: list[dict[str, Any]] = []
    for fold in range(FOLDS):
        places = data.places(fold)
        numbers = {"groups": [names[data.groups[i]] for i in places], "steps": [steps[i] for i in places]}
        found.append({"kind": "rows", "method": "", "fold": fold, **numbers})
    labels, order = list(data.rows["label"]), [i for fold in range(FOLDS) for i in data.places(fold)]
    for arm in ARMS:
        guesses = {name: guess_by([rule(row) for row in data.shown(arm)], labels, data.folds) for name, rule in arm.opens.items()}
        right = {name: [int(guessed[i] == labels[i]) for i in order] for name, guessed in guesses.items()}
        best = max(right, key=lambda name: sum(right[name]))
        found.append({"kind": "rule", "method": arm.name, "rule": best, "right": right[best]})
    found += [{"kind": "shortcut", "method": line.pop("shortcut"), **line} for line in shortcuts(data.rows, TWO)]
    for cell in found:
        if cells.get(place := digest([VERSIONS, cell, data.groups])) is None:
            cells.put(place, {**cell, "versions": VERSIONS})


def main() -> None:
    options = read_options((__doc__ or "").splitlines()[0])
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    data = Data(20 if options.quick else None)
    cells = Cells(Path(tempfile.mkdtemp()) / "cells.jsonl" if options.quick else RESULTS)
    put_rows(data, cells)
    few = [Run(arm, model, 0.1, SEEDS[0], 0) for arm, model in ((TASK_1, "classifier"), (TASK_2, "graph verifier"))]
    fill(data, cells, few if options.quick else plan())
    table = lines(cells)
    counts = Counter(map(str, data.folds))
    title = f"{len(set(data.groups))} groups of trees in folds of {', '.join(str(counts[fold]) for fold in sorted(counts))} rows"
    figures = {"lines": [dict(zip(COLUMNS, line, strict=True)) for line in table]}
    show(f"{title}; {notes(cells)}", COLUMNS, table, options.json, figures)


if __name__ == "__main__":
    main()
