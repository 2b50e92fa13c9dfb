"""A comparison as a grid of cells, method × sample × seed × evaluation set, and how the cells are computed.

A model is trained for each method, sample of training rows and seed, and scored on every set of the sample. What is trained, asked
and scored is the task's: its trainer and its scorer.
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from datasets import Dataset, load_from_disk
from filelock import FileLock

from hfcf.core import passages
from hfcf.core import recipe as recipes
from hfcf.core.model import Model, is_remote
from hfcf.core.progress import time_left
from hfcf.core.recipe import RecipeError
from hfcf.core.task import Task
from hfcf.core.trainer import Scorer, Trainer, load_scorer, load_trainer, with_settings
from hfcf.engines.base import free_models
from hfcf.studies.compare.contamination import overlap_table
from hfcf.studies.compare.grid import Grid, make_grid
from hfcf.studies.compare.methods import POOLED, Method, build_methods, check_methods, training_rows
from hfcf.studies.compare.recipe import CellChoice, ColumnComparison, SetComparison
from hfcf.studies.compare.results import Cells, digest, try_lock
from hfcf.studies.compare.samples import (
    Sample,
    check_starts,
    draw_samples,
    load_columns,
    load_sample,
    start_of,
    warn_of_small_pools,
)
from hfcf.studies.compare.sets import EvaluationSet, check_no_overlap, rows_digest
from hfcf.training.consistency import PairScorer
from hfcf.training.trainer import Hyperparameters, trained_model

log = logging.getLogger(__name__)

READY = "trained.json"
"""The file in the folder of a model whose training is complete: what its cells say of it."""
Place = tuple[str, Any, str]
"""A cell's method, seed (or `Training` on a sample) and set."""


class Job(NamedTuple):
    """A model to train: a method on a sample with a seed."""

    method: Method
    sample: Sample
    seed: int

    @property
    def prompted(self) -> bool:
        """Whether it is a language model that is asked as it is."""
        return isinstance(self.sample.hps[self.method.name], Model)

    @property
    def start(self) -> Model:
        """What it is trained from, or the language model."""
        return start_of(self.sample.hps[self.method.name])

    @property
    def hp(self) -> Hyperparameters:
        """How it is trained."""
        hp = self.sample.hps[self.method.name]
        assert isinstance(hp, Hyperparameters)
        return replace(hp, seed=self.seed)


@dataclass(frozen=True)
class Comparison:
    """What a recipe says, loaded.

    Args:
        recipe: by columns each set is a column with training rows of its own. Else all methods train on the same rows, and no
            evaluation row may share a text with them.
        task: of its rows.
        methods: in the order of the recipe.
        samples: what models are trained on, with the sets that they are scored on.
        cells: where finished cells are.
        runs: names the cells to compute, in that order; None: all.
    """

    recipe: SetComparison | ColumnComparison
    task: Task
    methods: Sequence[Method]
    samples: Sequence[Sample]
    cells: Cells
    runs: Sequence[CellChoice] | None = None

    @property
    def columns(self) -> bool:
        """Whether it is by columns."""
        return isinstance(self.recipe, ColumnComparison)

    def trainer(self, job: Job, **settings: Any) -> Trainer:
        """Return what trains and asks a model."""
        return with_settings(load_trainer(self.task.trainer), {**job.sample.trainer, **job.method.trainer, **settings})

    @cached_property
    def scorer(self) -> Scorer:
        """Rates the answers; a trainer may have a scorer of its own."""
        trainer = with_settings(load_trainer(self.task.trainer), self.recipe.trainer)
        return getattr(trainer, "scorer", None) or load_scorer(self.task.scorer)

    @cached_property
    def sets(self) -> list[EvaluationSet]:
        """Every set once, in the order of the recipe."""
        found = {test_set.name: test_set for sample in self.samples for test_set in sample.sets}
        return sorted(found.values(), key=attrgetter("order"))

    @property
    def seen_table(self) -> str:
        """A table of the rows that the models of the methods have seen."""
        every = {overlap.name: overlap for sample in self.samples for overlap in sample.overlaps}
        every |= {test_set.name: test_set.overlap for test_set in self.sets if test_set.overlap}
        models = {model.name: model for sample in self.samples for model in sample.models}
        return overlap_table(list(every.values()), list(models.values()), passages=bool(self.task.passages))

    @cached_property
    def places(self) -> dict[Place, tuple[Job, EvaluationSet]]:
        """The model and the set of each cell that the table can have, in the order of the recipe."""
        every = sorted(((sample, test_set) for sample in self.samples for test_set in sample.sets), key=lambda pair: pair[1].order)
        return {
            (method.name, sample.seed(seed), test_set.name): (job, test_set)
            for (sample, test_set), seed, method in product(every, self.recipe.seeds, self.methods)
            for job in [Job(method, sample, seed)]
            if (method.columns is None or test_set.name in method.columns)
            and (method.sizes is None or sample.number is None or sample.number[0] in method.sizes)
            and (test_set.reader is None or method.name in test_set.reader.methods)
            and (not job.prompted or seed == self.recipe.seeds[0])
        }

    @cached_property
    def requested(self) -> list[Place]:
        """The cells to compute; models behind an endpoint only where one is named."""
        endpoint = bool(os.environ.get("HFCF_LLM_URL", "").strip())
        names: dict[str, Sequence[Any]] = {
            "columns": [test_set.name for test_set in self.sets], "seeds": self.recipe.seeds,
            "methods": list(self.recipe.methods),
        }  # fmt: skip
        places: list[Place] = [] if self.runs else list(self.places)
        for i, run in enumerate(self.runs or ()):
            chosen = {key: every if getattr(run, key) is None else getattr(run, key) for key, every in names.items()}
            for key, every in names.items():
                recipes.check_keys(map(str, chosen[key]), map(str, every), f"run: {i + 1}: {key}")
            places += [(method, seed, column) for column, seed, method in product(*chosen.values())]
        found = [place for place in dict.fromkeys(places) if place in self.places]
        return [place for place in found if endpoint or not is_remote(self.places[place][0].start)]

    def reader(self, place: Place) -> Job | None:
        """Return the second model of a cell, which reads what the first one writes."""
        job, test_set = self.places[place]
        if test_set.reader is None:
            return None
        method = next(method for method in self.methods if method.name == test_set.reader.methods[job.method.name])
        for sample in self.samples:
            if test_set.reader.column in {each.name for each in sample.sets}:
                return Job(method, sample, job.seed)
        raise RecipeError(f"columns: {test_set.name}: reader: the column {test_set.reader.column!r} has no rows")

    def definition(self, job: Job) -> dict[str, Any]:
        """Return everything that a trained model depends on."""
        method, sample, seed = job
        parts = {"task": self.task.name, "seed": seed, **sample.definition(method), **method.definition}
        if method.system or method.more:  # what is added and repeats a scored row is left out
            parts["apart from"] = sorted({test_set.ids for test_set in sample.sets})
            parts["passages"] = passages.VERSION if self.task.passages else None
        if method.control in POOLED:
            parts["pool"] = rows_digest(sample.pool)
        return parts

    def key(self, place: Place) -> str:
        """Return the key under which a cell is stored: the versions of the code are part of it."""
        (job, test_set), reader = self.places[place], self.reader(place)
        second = None if reader is None else self.definition(reader)
        scorer = repr(self.scorer) if self.recipe.trainer else None
        return digest([self.definition(job), test_set.ids, test_set.ask, second, scorer])

    def finished(self, place: Place) -> bool:
        """Say whether a cell is stored."""
        return self.cells.get(self.key(place)) is not None

    def folder(self, job: Job, work: Path) -> Path:
        """Return where a model is trained: an interrupted training continues only with the same definition."""
        return work / digest(self.definition(job))

    def read_cells(self) -> list[dict[str, Any]]:
        """Read the finished cells of the table, requested or not, as sets and methods are called today."""
        cells = []
        for place, (job, test_set) in self.places.items():
            if (cell := self.cells.get(self.key(place))) is not None:
                about = {"method": job.method.name, "seed": place[1], "recipe": self.recipe.name}
                cells.append({**cell, **test_set.about, **about})
        return cells

    def grid(self) -> Grid:
        """Return the finished cells in the order of the recipe; by `report: dev` with the scores of the development rows."""
        cells, corpora = self.read_cells(), {test_set.name: test_set.setting for test_set in self.sets}
        if isinstance(self.recipe, ColumnComparison) and self.recipe.report == "dev":
            cells = [{**cell, **cell.get("dev", {"empty": True})} for cell in cells]
        seeds = dict.fromkeys(sample.seed(seed) for sample in self.samples for seed in self.recipe.seeds)
        methods = [method.name for method in self.methods]
        missing = [place for place in self.requested if not self.finished(place)]
        baseline = self.recipe.baseline or methods[0]
        return make_grid(cells, baseline, methods, list(seeds), corpora, self.scorer, missing)


def open_comparison(recipe: SetComparison | ColumnComparison, results: Path, *, full: bool = False) -> Comparison:
    """Load the rows, and name the cells, of a comparison recipe; with `full` all rows and all cells."""
    build_methods(recipe)  # which raises what can be known before rows are loaded
    file, runs = recipe.name, None
    if isinstance(recipe, ColumnComparison):
        file, runs = recipe.cells or recipe.name, None if full else recipe.run
        task, samples = load_columns(recipe)
    else:
        task, sample = load_sample(recipe, full=full)
        samples = draw_samples(sample, recipe.low_resource) if recipe.low_resource else [sample]
    methods = build_methods(recipe, task)
    check_methods(methods, task)
    check_starts(samples, task)
    warn_of_small_pools(methods, samples)
    return Comparison(recipe, task, methods, samples, Cells(results / f"{file}.jsonl"), runs)


# --- computing cells


def fill(comparison: Comparison, work: Path) -> None:
    """Compute the requested cells that are missing; several processes may share the work, one for each model."""
    for training in missing_trainings(comparison):
        job = comparison.places[training[0]][0]
        folder = comparison.folder(job, work)
        with try_lock(folder.with_suffix(".lock")) as free:
            places = [place for place in training if not comparison.finished(place)]
            if free and places:
                log.info("%s", _describe(comparison, places))
                _compute(comparison, job, places, work)


def missing_trainings(comparison: Comparison) -> list[list[Place]]:
    """Group the requested cells that are not finished by the model that they share, in the order of the first of each."""
    groups: dict[tuple[str, int, int], list[Place]] = {}
    for place in comparison.requested:
        if not comparison.finished(place):
            groups.setdefault(_training_of(comparison, place), []).append(place)
    return list(groups.values())


def _training_of(comparison: Comparison, place: Place) -> tuple[str, int, int]:
    method, sample, seed = comparison.places[place][0]
    return method.name, id(sample), seed


def seconds_left(comparison: Comparison, trainings: Sequence[Sequence[Place]]) -> float | None:
    """Estimate how long trainings take, from finished trainings: the method's own, else all; None without any.

    A cell's seconds are the seconds of its model's training and of its own scoring, without the making of counterfactuals.
    """
    known: dict[tuple[str, int, int], float] = {}
    for place in comparison.places:
        if "seconds" in (cell := comparison.cells.get(comparison.key(place)) or {}):
            training = _training_of(comparison, place)
            known[training] = max(known.get(training, 0.0), cell["seconds"])
    if not known:
        return None
    by_method = {name: [seconds for (method, _, _), seconds in known.items() if method == name] for name, _, _ in known}
    return sum(mean(by_method.get(training[0][0]) or list(known.values())) for training in trainings)


def _describe(comparison: Comparison, places: Sequence[Place]) -> str:
    """Say which cells are computed now, and how long they and the rest take."""
    (method, sample, seed), test_set = comparison.places[places[0]]
    trainings = missing_trainings(comparison)
    first = len(comparison.requested) - sum(map(len, trainings)) + 1
    cells = f"cell {first}" if len(places) == 1 else f"cells {first} to {first + len(places) - 1}"
    seconds = seconds_left(comparison, trainings)
    left = "" if seconds is None else f", {time_left(seconds)}"
    rows = test_set.name if comparison.columns else f"{len(sample.train)} rows"
    return f"{cells} of {len(comparison.requested)}{left}: {method.name}, {rows}, seed {seed}"


def counterfactuals(comparison: Comparison, job: Job, work: Path) -> tuple[Dataset | None, float]:
    """Return what the method's system makes of the training rows, its columns included, and the CPU seconds that it took.

    It is stored in `work` for other seeds and processes. A method without a system has none.
    """
    if (system := job.method.system) is None:
        return None, 0.0
    folder = (
        work / "made" / digest([job.method.versions, job.method.making, job.sample.digests["rows"], job.sample.digests["groups"]])
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # two processes would do the same work
        if not folder.is_dir():
            start = time.process_time()
            rows: Dataset = system(job.sample.train)  # fitted on these rows alone
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            rows.save_to_disk(str(part))
            (part / "seconds.json").write_text(json.dumps(round(time.process_time() - start, 1)), encoding="utf-8")
            part.rename(folder)
        return load_from_disk(str(folder)), json.loads((folder / "seconds.json").read_text(encoding="utf-8"))


def train(comparison: Comparison, job: Job, work: Path) -> dict[str, Any]:
    """Train a model in its folder, if it is not trained there yet; return what its cells say of the training.

    `empty` says that the method adds nothing, and nothing is trained.
    """
    method, sample, _ = job
    folder = comparison.folder(job, work)
    if (folder / READY).is_file():
        return dict(json.loads((folder / READY).read_text(encoding="utf-8")))
    made, making = counterfactuals(comparison, job, work)
    pool = sample.pool if method.control in POOLED else None
    rows, dropped = training_rows(method, sample.train, made, sample.scored, pool, sample.labels)
    further = len(rows) - len(sample.train)
    added = 0 if method.more else further
    about: dict[str, Any] = {
        "train_rows": len(rows), "counterfactuals": added, "counterfactuals_dropped": dropped,
        "ratio": round(added / len(sample.train), 4), "making_cpu_seconds": making,
    }  # fmt: skip
    # Nothing to train on that the baseline is not trained on.
    if (method.system or method.more) and not further and not method.debias:
        return {**about, "empty": True}
    if not comparison.columns:
        check_no_overlap(sample.sets, rows)
    start, cpu = time.perf_counter(), time.process_time()
    if not job.prompted:
        free_models()  # of what made the counterfactuals, and of the models that were scored before
        trainer = comparison.trainer(job)
        debias = {"debias": method.debias} if method.debias else {}
        about["best_epoch"] = trainer.train(rows, job.hp, folder, labels=sample.labels, dev=sample.dev, **debias)
    about |= {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / READY).write_text(json.dumps(about), encoding="utf-8")
    return about


def asked_model(comparison: Comparison, job: Job, work: Path) -> Model:
    """Return the model that is asked: the trained one, or a language model as it is."""
    return job.start if job.prompted else trained_model(job.hp, comparison.folder(job, work))


def _compute(comparison: Comparison, job: Job, places: Sequence[Place], work: Path) -> None:
    """Train a model and put its cells; its folder stays for intrinsic scores, and while a cell needs it as the second model."""
    method, sample, seed = job
    folder, trained = comparison.folder(job, work), train(comparison, job, work)
    about = {
        "recipe": comparison.recipe.name, "method": method.name, "control": method.control, "seed": seed,
        "versions": method.versions, **trained,
        **(dict(zip(("size", "sample"), sample.number, strict=True)) if sample.number else {}),
    }  # fmt: skip
    dev = None if sample.dev is None or trained.get("empty") else _scored(comparison, job, sample.dev, work)
    for place in places:
        test_set = comparison.places[place][1]
        content: dict[str, Any] = {**about, "date": date.today().isoformat(), **test_set.about}
        if not trained.get("empty"):
            start, cpu = time.perf_counter(), time.process_time()
            content |= {**_score_set(comparison, job, place, work), **({"dev": dev} if dev else {})}
            content["seconds"] = round(time.perf_counter() - start + trained["seconds"], 1)
            content["cpu_seconds"] = round(time.process_time() - cpu + trained["cpu_seconds"], 1)
        comparison.cells.put(comparison.key(place), content)
    missing = [place for place in comparison.requested if not comparison.finished(place)]
    done, needed = ({comparison.folder(each, work) for each in _models(comparison, some)} for some in (places, missing))
    if method.adds_nothing and not sample.number and getattr(comparison.recipe, "encoder", None):  # intrinsic scores ask it
        done.discard(folder)
    for finished in done - needed:
        shutil.rmtree(finished, ignore_errors=True)


def _models(comparison: Comparison, places: Sequence[Place]) -> list[Job]:
    """List the models of cells, the second ones included."""
    readers = (comparison.reader(place) for place in places)
    return [*(comparison.places[place][0] for place in places), *(reader for reader in readers if reader)]


def _score_set(comparison: Comparison, job: Job, place: Place, work: Path) -> dict[str, Any]:
    """Ask a model about the rows of a cell, and about the originals of a paired set."""
    test_set, settings = comparison.places[place][1], dict(comparison.places[place][1].ask)
    if reader := comparison.reader(place):
        with FileLock(comparison.folder(reader, work).with_suffix(".lock")):
            train(comparison, reader, work)
        settings["reader"] = asked_model(comparison, reader, work)
    scored = _scored(comparison, job, test_set.rows, work, **settings)
    shared = {**test_set.shared, "ids": test_set.ids}
    if (strata := getattr(comparison.scorer, "strata", None)) is not None:
        shared["strata"] = {**shared.get("strata", {}), **strata(scored["gold"])}
    if test_set.sources is None:
        return {**scored, **shared}
    originals = {**_scored(comparison, job, test_set.sources, work, **settings), "rows": len(test_set.sources), "ids": test_set.ids}
    scores = PairScorer(comparison.scorer).scores(**answer_pairs(scored, originals))
    # A model that is right on no original has no consistency.
    return {**scored, **shared, "originals": originals, **{name: value for name, value in scores.items() if not math.isnan(value)}}


def _scored(comparison: Comparison, job: Job, rows: Dataset, work: Path, **settings: Any) -> dict[str, Any]:
    """Return the scores of a model's answers, and the answers: a letter for each row, or as they are."""
    model, max_length = asked_model(comparison, job, work), None if job.prompted else job.hp.max_length
    trainer = comparison.trainer(job, **settings)
    predicted = trainer.predict(rows, model, max_length=max_length, labels=job.sample.labels)
    return {
        "rows": len(rows),
        "ids": rows_digest(rows),
        **score(comparison.scorer, rows, predicted, _letters(comparison, job, rows)),
    }


def _letters(comparison: Comparison, job: Job, rows: Dataset) -> dict[str, str] | None:
    """Return the letters of the labels that a sample's models and rows have."""
    if not job.sample.labels:
        return None
    scored = (label for part in (job.sample.train, rows, *job.sample.scored) for label in part["label"])
    try:
        return comparison.scorer.letters([*job.sample.labels, *scored])
    except ValueError as error:
        raise RecipeError(f"{comparison.recipe.name}: {error}") from error


def score(scorer: Scorer, rows: Dataset, predicted: Sequence[Any], letters: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the scores of answers, and the answers: a letter for each row, or as they are."""
    gold = scorer.gold(rows)
    scores = {name: value for name, value in scorer.scores(gold, predicted).items() if not math.isnan(value)}
    if letters is None:
        return {**scores, "gold": gold, "predicted": list(predicted)}
    texts = {name: "".join(letters[label] for label in labels) for name, labels in (("gold", gold), ("predicted", predicted))}
    return {**scores, **texts, "letters": dict(letters)}


def answer_pairs(cell: Mapping[str, Any], originals: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    """Return the true and the predicted answers of the pairs of a cell, each to the original and to the counterfactual."""
    return {name: [list(pair) for pair in zip(originals[name], cell[name], strict=True)] for name in ("gold", "predicted")}
