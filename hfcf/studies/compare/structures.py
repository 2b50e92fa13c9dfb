"""CheckWhy's tables (section 5 and Appendix B): models of argument structures on its four tasks, a cell for each model and task."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model, is_remote
from hfcf.core.model_checks import check_weights
from hfcf.core.recipe import RecipeError
from hfcf.engines.chat.engine import ChatModel
from hfcf.engines.classifier import Classifier
from hfcf.engines.generator import ProgramWriter
from hfcf.engines.graph_verifier import GraphClassifier
from hfcf.engines.remote.engine import Remote
from hfcf.metrics.scores.structures import encoder_of
from hfcf.metrics.shared.matching import Matching
from hfcf.pipeline.score_structures import score
from hfcf.studies.compare import age
from hfcf.studies.compare.methods import plain
from hfcf.studies.compare.results import Cells, digest
from hfcf.studies.compare.runner import try_lock
from hfcf.studies.compare.sets import rows_digest
from hfcf.studies.compare.structure_recipe import StructureComparison, StructureModel
from hfcf.tasks.structures import TASK
from hfcf.tasks.task_inputs import WRITTEN, View, views
from hfcf.tasks.verification import LABELS
from hfcf.training.data import drop_related, load_rows
from hfcf.training.derived_labels import derive_labels
from hfcf.training.structure_answers import SETTINGS, count_cut
from hfcf.training.structure_scorer import NOTHING, StructureScorer
from hfcf.training.structures import StructureTrainer, check_classes, train_structures
from hfcf.training.trainer import trained_model

log = logging.getLogger(__name__)

VERSION = "1"
"""Raise it when the same recipe gives other numbers: it is part of every cell's key."""
METRICS = (*StructureScorer.metrics,)
"""The scores of a cell; the scores of structures are missing in Tasks 1 and 2."""
ENGINES: Mapping[str, Any] = {"classifier": Classifier, "graph": GraphClassifier, "seq2seq": ProgramWriter}
LETTERS = {label[0]: label for label in LABELS}


class Column(NamedTuple):
    """What models are asked: a task, on so many labels; at most so many distractors shown; a second model that gives the label."""

    name: str
    task: int
    ways: int = 2
    distractors: int | None = None
    piped: bool = False


Place = tuple[str, int, str]
"""A cell's model, seed and column."""
TASKS = (Column("Task 1, three labels", 1, 3), *(Column(f"Task {task}", task) for task in (1, 2, 3, 4)))
PIPELINE = Column("Task 4, then Task 2", 4, piped=True)


def fewer(number: int) -> Column:
    """Return the column of Task 4 with so many distractors."""
    return Column(f"Task 4, at most {number} distractors", 4, distractors=number)


def columns_of(recipe: StructureComparison, name: str) -> list[Column]:
    """List the columns that a model of the recipe has."""
    model = recipe.models[name]
    tasks = model.tasks or ((1, 2) if model.kind in ("classifier", "graph") else (1, 2, 3, 4))
    own = [column for column in TASKS if column.task in tasks]
    return [*own, *map(fewer, recipe.distractors.get(name, ())), *([PIPELINE] if name in recipe.pipeline else [])]


def versions_of(model: StructureModel) -> dict[str, str]:
    """Return today's versions of the code that makes a model's cells, by name."""
    assert model.model is not None
    engine = ENGINES.get(model.kind) or (Remote if is_remote(model.model) else ChatModel)
    engines = {f"engine {one.__name__}": one.VERSION for one in (engine, Matching)}
    return {"comparison": age.VERSION, "structures": VERSION, **engines}


@dataclass(frozen=True)
class Rows:
    """The rows of two or of three labels.

    Args:
        train: to train on.
        test: to score; rows that share a group or a text with a training row are left out.
        removed: how many rows are left out.
        refused: of each part, how many records can't be read, by reason.
    """

    train: Dataset
    test: Dataset
    removed: int = 0
    refused: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def ids(self) -> dict[str, str]:
        """A hash of each part's rows."""
        return {"train": rows_digest(self.train), "test": rows_digest(self.test)}


@dataclass(frozen=True)
class Study:
    """What a recipe says, loaded: the rows by number of labels, and why there are none of a number."""

    recipe: StructureComparison
    cells: Cells
    rows: Mapping[int, Rows]
    absent: Mapping[int, str]

    @cached_property
    def places(self) -> dict[Place, tuple[StructureModel, Column]]:
        """The model and column of each cell that there are rows for, in the order of the recipe; a language model has one seed."""
        return {
            (name, seed, column.name): (model, column)
            for name, model in self.recipe.models.items()
            for column in columns_of(self.recipe, name) if column.ways in self.rows
            for seed in (self.recipe.seeds[:1] if model.kind == "llm" else self.recipe.seeds)
        }  # fmt: skip

    @property
    def unasked(self) -> list[str]:
        """Language models behind an endpoint that is not named."""
        remote = [
            name for name, model in self.recipe.models.items() if model.kind == "llm" and model.model and is_remote(model.model)
        ]
        return [] if os.environ.get("HFCF_LLM_URL", "").strip() else remote

    @property
    def requested(self) -> list[Place]:
        """The cells to compute."""
        return [place for place in self.places if place[0] not in self.unasked]

    def training(self, place: Place, reader: bool = False) -> dict[str, Any]:
        """Return all that the model of a cell depends on; of a pipeline also of its second model."""
        name, seed, _ = place
        model, column = self.places[place]
        if reader:
            name, column = self.recipe.pipeline[name], TASKS[2]
            model = self.recipe.models[name]
        assert model.model is not None
        about = {"kind": model.kind, "model": model.model.key(), "task": column.task, "ways": column.ways}
        if model.kind == "llm":
            return about
        hp = {key: value for key, value in plain(model.hyperparameters(seed)).items() if key != "model"}
        return {**about, "hp": hp, "rows": self.rows[column.ways].ids["train"]}

    def settings(self, place: Place) -> str:
        """Return a hash of what the answers of a cell depend on, besides the versions of the code."""
        column = self.places[place][1]
        second = self.training(place, reader=True) if column.piped else None
        return digest([self.training(place), second, column, self.rows[column.ways].ids["test"]])

    def answers(self, place: Place) -> str:
        """Return a hash of all that the answers of a cell depend on."""
        return digest([self.settings(place), versions_of(self.places[place][0])])

    def key(self, place: Place) -> str:
        """Return the key under which a cell is stored."""
        return digest([self.answers(place), self.recipe.encoder])

    def finished(self, place: Place) -> bool:
        """Say whether a cell is stored."""
        return self.cells.get(self.key(place)) is not None

    @property
    def missing(self) -> list[Place]:
        """The requested cells that are not stored."""
        return [place for place in self.requested if not self.finished(place)]


def open_study(recipe: StructureComparison, results: Path, *, full: bool = False, stored: bool = False) -> Study:
    """Load the rows of a recipe.

    Raises:
        RecipeError: there are no rows of two labels, or a model can't be read; the message says which files are wanted.
    """
    rows, absent = dict[int, Rows](), dict[int, str]()
    for ways in (2, 3):
        try:
            rows[ways] = _load(recipe, ways, full)
        except (ValueError, OSError) as error:
            absent[ways] = str(error)
    if 2 not in rows:
        raise RecipeError(absent[2])
    for name, model in recipe.models.items():
        if model.model is not None and not stored:
            check_weights(model.model, f"models: {name}")
    if not stored:
        check_weights(encoder_of(recipe.encoder).model, "encoder")
    return Study(recipe, Cells(results / f"{recipe.name}.jsonl"), rows, absent)


def _load(recipe: StructureComparison, ways: int, full: bool) -> Rows:
    train, refused_train = _read(recipe, "train", ways)
    test, refused_test = _read(recipe, "test", ways)
    if recipe.take and not full:
        train = train.select(range(min(recipe.take, len(train))))
    separate = drop_related(test, train)
    removed = len(test) - len(separate)
    if not len(separate):
        raise RecipeError(f"test: each of the {removed} rows shares a group or a text with a training row")
    if recipe.evaluate_take and not full:
        rank = [digest(group) for group in separate["group_id"]]
        separate = separate.select(sorted(range(len(rank)), key=rank.__getitem__)[: recipe.evaluate_take])
    return Rows(train, separate, removed, {"train": refused_train, "test": refused_test})


def _read(recipe: StructureComparison, part: str, ways: int) -> tuple[Dataset, dict[str, int]]:
    """Read the rows of some labels, and count the records that can't be read by reason."""
    source = getattr(recipe, part)
    if "corpus" not in source:
        raise RecipeError(f"{part}: the key 'corpus' is missing")
    options = corpora.options_of(source["corpus"], ways, files="data_files" in source)
    located = {**options, **recipes.locate(source, recipe.data_dir)}
    try:
        rows, refused = load_rows([located], training=part == "train"), Counter[str]()
        if source.get("on_error") == "reject":
            other = {key: value for key, value in located.items() if key not in ("corpus", "take", "skip", "half", "distractors")}
            statuses = corpora.load(located["corpus"], **other)["status"]
            refused.update(str(status["reason"]) for status in statuses if status and status["accepted"] is False)
    except (ValueError, OSError) as error:
        raise RecipeError(f"{part}, {ways} labels: {error}") from error
    if refused and not len(rows):
        why, number = refused.most_common(1)[0]
        raise RecipeError(f"{part}, {ways} labels: no record can be read; {number} of them: {why}")
    if recipe.derive is not None:
        rows = derive_labels(rows, distractors=recipe.derive)
    rows = rows.select([i for i, label in enumerate(rows["label"]) if label in LABELS[:ways]])
    check_classes(rows["label"], ways, part)
    if not len(rows) or rows.features.keys() < TASK.columns.keys():
        raise RecipeError(f"{part}, {ways} labels: there are no rows of argument structures")
    return rows, dict(refused.most_common())


# --- cells


def fill(study: Study, work: Path) -> None:
    """Compute the missing cells; several processes may share the work, one for each model that is trained.

    Models are kept in `work` until no cell is missing: the columns of Task 4 share a model, and a pipeline needs two.
    """
    todo = study.missing
    for number, place in enumerate(todo, 1):
        folders = [work / digest(study.training(place))]
        if study.places[place][1].piped:
            folders.append(work / digest(study.training(place, reader=True)))
        with ExitStack() as held:
            free = all(held.enter_context(try_lock(folder.with_suffix(".lock"))) for folder in folders)
            if free and not study.finished(place):
                name, seed, column = place
                log.info("cell %d of %d missing ones: %s, %s, seed %d", number, len(todo), name, column, seed)
                study.cells.put(study.key(place), _cell(study, place, folders))
    if todo and not study.missing:
        shutil.rmtree(work, ignore_errors=True)


def _cell(study: Study, place: Place, folders: list[Path]) -> dict[str, Any]:
    """Answer and score; answers that were scored by another encoder are not asked for again."""
    answers = study.answers(place)
    known = next((cell for cell in study.cells.every() if cell.get("answers") == answers), None)
    asked = ("predicted", "cut", "unreadable", "strict_accuracy", "train_rows", "seconds", "cpu_seconds")
    said = {name: known[name] for name in asked} if known else _ask(study, place, folders)
    name, seed, column = place
    about = {
        "recipe": study.recipe.name, "method": name, "seed": seed, "corpus": column, "answers": answers,
        "ids": study.rows[study.places[place][1].ways].ids["test"], "encoder": study.recipe.encoder,
        "versions": versions_of(study.places[place][0]), "settings": digest([study.settings(place), study.recipe.encoder]),
    }  # fmt: skip
    return {**about, **_score(study, place, said["predicted"]), **said}


def _ask(study: Study, place: Place, folders: list[Path]) -> dict[str, Any]:
    """Train what is not trained yet, and ask."""
    start, cpu = time.perf_counter(), time.process_time()
    model, column = study.places[place]
    rows = study.rows[column.ways]
    asked_model, max_length = _trained(study, model, column, place[1], folders[0])
    reader = None
    if column.piped:
        reader = _trained(study, study.recipe.models[study.recipe.pipeline[place[0]]], TASKS[2], place[1], folders[1])[0]
    trainer = StructureTrainer(task=column.task, reader=reader, distractors=column.distractors)
    asked = trainer.answers(rows.test, asked_model, max_length=max_length, labels=LABELS[: column.ways])
    letters = ["-" if answer.label is None else answer.label[0] for answer in asked.answers]
    written = [[letter, answer.text] for letter, answer in zip(letters, asked.answers, strict=True)]
    right = [a.fault is None and a.label == view.label for view, a in zip(asked.shown, asked.answers, strict=True)]
    trained_on = 0 if model.kind == "llm" else len(views(rows.train, column.task, labels=LABELS[: column.ways])[0])
    return {
        "train_rows": trained_on, "cut": count_cut(asked.shown, asked_model, model.kind, asked.max_length),
        "unreadable": sum(answer.fault is not None for answer in asked.answers),
        "strict_accuracy": round(sum(right) / len(right), 4),
        "predicted": written if column.task in WRITTEN else "".join(letters),
        "seconds": round(time.perf_counter() - start, 1), "cpu_seconds": round(time.process_time() - cpu, 1),
    }  # fmt: skip


def _trained(study: Study, model: StructureModel, column: Column, seed: int, folder: Path) -> tuple[Model, int | None]:
    """Return a model and the tokens that it reads; it is trained if its folder has none that is."""
    assert model.model is not None
    if model.kind == "llm":
        return model.model, None
    hp = model.hyperparameters(seed)
    if not (folder / SETTINGS).is_file():  # written last
        rows, labels = study.rows[column.ways].train, LABELS[: column.ways]
        train_structures(rows, hp, folder, task=column.task, kind=model.kind, labels=labels)
    return trained_model(hp, folder), hp.max_length


def shown(study: Study, place: Place) -> tuple[Dataset, list[View]]:
    """Return the rows that a cell's model was asked about, and how it saw each."""
    column = study.places[place][1]
    test = study.rows[column.ways].test
    places, seen, _ = views(test, column.task, labels=LABELS[: column.ways], distractors_shown=column.distractors)
    return test.select(places), seen


def _score(study: Study, place: Place, predicted: Any) -> dict[str, Any]:
    """Return all scores of a cell; in `groups` with intervals, also the scores of rows with each number of steps."""
    rows, seen = shown(study, place)
    lines: dict[str, dict[str, Any]] = {}
    for row_id, view, said in zip(rows["id"], seen, predicted, strict=True):
        letter, text = (said, None) if isinstance(said, str) else said
        line = {"id": row_id, "label": None if letter == NOTHING else LETTERS[letter]}
        lines[str(row_id)] = line if isinstance(said, str) else {**line, "program": text, "names": dict(view.ids)}
    result = score(rows, lines, StructureScorer(encoder_of(study.recipe.encoder)))
    groups = {}
    for name, part in result["groups"].items():
        if name == "all" or "step" in name:
            # Where no answer has a label, all are wrong.
            scores = {metric: [0.0] * 3 for metric in METRICS[:2]} | part["scores"]
            groups[name] = {**part, "scores": {metric: scores[metric] for metric in METRICS if metric in scores}}
    labels = Counter(rows["label"])
    return {
        "rows": len(rows), "majority": round(max(labels.values()) / len(rows), 4), "groups": groups,
        **{metric: values[0] for metric, values in groups["all"]["scores"].items()},
    }  # fmt: skip


def read(study: Study, *, older: bool = False) -> list[dict[str, Any]]:
    """Read the finished cells in the order of the table; with `older`, the last cell of other versions where a cell is missing."""
    last = {cell["settings"]: cell for cell in study.cells.every() if "settings" in cell} if older else {}
    cells = []
    for place, (model, _) in study.places.items():
        old = last.get(digest([study.settings(place), study.recipe.encoder]))
        if (cell := study.cells.get(study.key(place)) or old) is not None:
            cells.append({**cell, "age": age.age(cell.get("versions"), versions_of(model))})
    return cells


def plan(study: Study) -> dict[str, Any]:
    """Say what there is to compute, as `hfcf compare --dry-run` prints it."""
    missing, known = study.missing, dict[str, list[float]]()
    for cell in read(study):
        known.setdefault(cell["method"], []).append(cell["seconds"])
    every = [seconds for own in known.values() for seconds in own]
    names = {name: [place for place in study.requested if place[0] == name] for name in study.recipe.models}
    sizes = {f"{ways} labels": len(rows.test) for ways, rows in study.rows.items()}
    return {
        "rows": {"train": sorted({len(rows.train) for rows in study.rows.values()}), "sets": sizes},
        "methods": {
            name: {"finished": sum(place not in missing for place in own), "to_compute": sum(place in missing for place in own)}
            for name, own in names.items()
        },
        "trainings": len({digest(study.training(place)) for place in missing if study.places[place][0].kind != "llm"}),
        "seconds": sum(fmean(known.get(place[0]) or every) for place in missing) if every else None,
    }  # fmt: skip
