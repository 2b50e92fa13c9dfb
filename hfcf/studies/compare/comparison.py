"""What a comparison compares: its methods, samples, seeds and evaluation sets, and the keys of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core import passages
from hfcf.core import recipe as recipes
from hfcf.core.recipe import RecipeError
from hfcf.core.task import Task
from hfcf.core.trainer import Scorer, Trainer, load_scorer, load_trainer
from hfcf.studies.compare.age import VERSION, versions_of
from hfcf.studies.compare.contamination import overlap_table
from hfcf.studies.compare.methods import Method, build_methods, check_methods
from hfcf.studies.compare.recipe import ColumnComparison, Run, SetComparison
from hfcf.studies.compare.results import Cells, digest
from hfcf.studies.compare.samples import Sample, draw_samples, load_columns, load_sample
from hfcf.studies.compare.sets import EvaluationSet, rows_digest

UNSAID = "2"
"""The version of the comparison that the keys of cells with a system do not hold: stored cells keep their keys."""
_VERSIONS = ("version", "engines", "comparison")
"""The parts of a definition that are versions of the code."""

Place = tuple[str, Any, str]
"""A cell's method, seed (or `Training` on a sample) and set."""


@dataclass(frozen=True)
class Comparison:
    """What a recipe says, loaded.

    Args:
        columns: whether each set is a column of the table with training rows of its own. Else all methods train on the same rows,
            and no evaluation row may share a text with them.
        requested: the cells to compute, in that order.
    """

    name: str
    task: Task
    methods: Sequence[Method]
    baseline: str
    seeds: Sequence[int]
    samples: Sequence[Sample]
    cells: Cells
    columns: bool
    requested: Sequence[Place] = ()

    @cached_property
    def trainer(self) -> Trainer:
        """Trains and asks the task's models."""
        return load_trainer(self.task.trainer)

    @cached_property
    def scorer(self) -> Scorer:
        """Rates their answers."""
        return load_scorer(self.task.scorer)

    @cached_property
    def repeats(self) -> list[str]:
        """The kinds of text by which rows repeat each other, such as a claim and its evidence."""
        return [kind for kind, _ in self.task.identity(self.samples[0].rows[0])]

    @cached_property
    def sets(self) -> list[EvaluationSet]:
        """Every set once, in the order of the recipe."""
        return sorted(
            {test_set.name: test_set for sample in self.samples for test_set in sample.sets}.values(), key=attrgetter("order")
        )

    @property
    def seen_table(self) -> str:
        """A table of the rows that the models of the methods have seen."""
        every = {overlap.name: overlap for sample in self.samples for overlap in sample.overlaps}
        every |= {test_set.name: test_set.overlap for test_set in self.sets if test_set.overlap}
        models = {model.name: model for sample in self.samples for model in sample.models}
        return overlap_table(list(every.values()), list(models.values()), passages=bool(self.task.passages))

    @cached_property
    def places(self) -> dict[Place, tuple[Method, Sample, int, EvaluationSet]]:
        """Method, sample, seed and set of each cell of the table, in the order of the recipe."""
        every = sorted(((sample, test_set) for sample in self.samples for test_set in sample.sets), key=lambda pair: pair[1].order)
        parts = ((method, sample, seed, test_set) for sample, test_set in every for seed in self.seeds for method in self.methods)
        return {
            (method.name, sample.seed(seed), test_set.name): (method, sample, seed, test_set)
            for method, sample, seed, test_set in parts
        }

    def definition(self, method: Method, sample: Sample, seed: int) -> dict[str, Any]:
        """Return everything that a trained model depends on.

        A system's version replaces the comparison's, which counts as `comparison` from the first version after `UNSAID`.
        """
        parts = {"version": VERSION, "task": self.task.name, **sample.definition, "seed": seed}
        if method.debias:  # which rows belong together; other trainings do not know of groups
            parts["groups"] = sample.groups
        if method.system:
            parts |= sample.making(method)
        if method.system or method.more:  # what is added and repeats a scored row is left out
            parts |= {"apart from": sorted({test_set.ids for test_set in sample.sets})}
            parts |= {"passages": passages.VERSION} if self.task.passages else {}
        if method.judged:
            parts["pool"] = rows_digest(sample.pool)
        parts |= method.definition
        return parts | ({"comparison": VERSION} if method.system and VERSION != UNSAID else {})

    def key(self, place: Place) -> str:
        """Return the key under which a cell is stored."""
        method, sample, seed, test_set = self.places[place]
        return digest({**self.definition(method, sample, seed), "ids": test_set.ids})

    def settings(self, place: Place) -> str:
        """Return a hash of what a cell depends on, besides the versions of the code."""
        method, sample, seed, test_set = self.places[place]
        parts = {name: part for name, part in self.definition(method, sample, seed).items() if name not in _VERSIONS}
        if method.system:
            parts["stages"] = [values for _, values in parts["stages"]]
        return digest({**parts, "ids": test_set.ids})

    def versions(self, place: Place) -> dict[str, str]:
        """Return today's versions of the code that makes a cell."""
        method = self.places[place][0]
        return versions_of(type(method.system) if method.system else None)

    def finished(self, place: Place) -> bool:
        """Say whether a cell is stored."""
        return self.cells.get(self.key(place)) is not None

    def folder(self, method: Method, sample: Sample, seed: int, work: Path) -> Path:
        """Return where a model is trained: an interrupted training continues only with the same definition."""
        return work / digest(self.definition(method, sample, seed))

    def letters(self, sample: Sample, *rows: Dataset) -> dict[str, str] | None:
        """Return the letters of the labels that a sample's models and rows have."""
        if not sample.labels:
            return None
        labels = [*sample.labels, *(label for part in (sample.train, *rows) for label in part["label"])]
        try:
            return self.scorer.letters(labels)
        except ValueError as error:
            raise RecipeError(f"{self.name}: {error}") from error


def open_comparison(recipe: SetComparison | ColumnComparison, results: Path, *, full: bool = False) -> Comparison:
    """Load the rows, and name the cells, of a comparison recipe."""
    build_methods(recipe)  # which raises what can be known before rows are loaded
    requested, file, columns = None, recipe.name, isinstance(recipe, ColumnComparison)
    if isinstance(recipe, ColumnComparison):
        for name, values in (recipe.curves or {}).items():
            recipes.check(values.values(), recipe.methods, f"curves: {name}")
        requested = None if recipe.run is None else places_to_run(recipe, recipe.run)
        file = recipe.cells or recipe.name
        task, samples = load_columns(recipe)
    else:
        task, sample = load_sample(recipe, full=full)
        samples = [sample]
    methods = build_methods(recipe, task)
    check_methods(methods, task)
    baseline, cells = recipe.baseline or methods[0].name, Cells(results / f"{file}.jsonl")
    opened = Comparison(recipe.name, task, methods, baseline, recipe.seeds, samples, cells, columns)
    others = opened.places if full or requested is None else ()
    return replace(opened, requested=list(dict.fromkeys([*(requested or ()), *others])))


def on_samples(comparison: Comparison, recipe: SetComparison) -> Comparison:
    """Return the comparison on the small samples of its rows that `low_resource` names."""
    assert recipe.low_resource is not None
    samples = draw_samples(comparison.samples[0], recipe.low_resource)
    opened = replace(comparison, samples=samples)
    return replace(opened, requested=list(opened.places))


def places_to_run(recipe: ColumnComparison, runs: Sequence[Run]) -> list[Place]:
    """List the cells that `run` names, in its order."""
    columns = [column.name for column in recipe.columns]
    choices: dict[str, list[Any]] = {"columns": columns, "seeds": list(recipe.seeds), "methods": list(recipe.methods)}
    places: list[Place] = []
    for i, run in enumerate(runs):
        chosen = {key: every if getattr(run, key) is None else getattr(run, key) for key, every in choices.items()}
        for key, every in choices.items():
            recipes.check(map(str, chosen[key]), map(str, every), f"run: {i + 1}: {key}")
        places += [(method, seed, column) for column, seed, method in product(*chosen.values())]
    return places
