"""What models of a comparison are trained on: all training rows, small samples of them, or the training rows of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core import recipe as recipes
from hfcf.core.expand import balanced_sample
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.task import Task, task_of
from hfcf.core.trainer import load_trainer, used_labels
from hfcf.studies.compare.contamination import MethodModel, Overlap, count_overlap, list_models, mark_seen, unseen_rows
from hfcf.studies.compare.frame import Training
from hfcf.studies.compare.methods import Method, build_methods, plain
from hfcf.studies.compare.recipe import Column, ColumnComparison, LowResource, SetComparison
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.sets import EvaluationSet, check_names, load_sets, rows_digest
from hfcf.studies.compare.training_settings import Source, hyperparameters
from hfcf.training.data import drop_overlap, load_rows
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.trainer import Hyperparameters
from hfcf.training.verifier import of_labels

PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class Sample:
    """Rows that every method trains on, how it trains, and what the models are scored on.

    Args:
        rows: the corpus's; systems and models see only the rows that are trained on.
        take: how many of them, the first, are trained on; None: all.
        labels: that models tell apart.
        hp: how they are trained; the seed is the comparison's.
        sets: what they are scored on.
        dev: rows that choose the epoch, if any do.
        number: size and seed of the sub-sample that the rows are, if they are a sub-sample.
        others: further rows of the corpus, which such a sub-sample leaves.
        models: the models of the methods.
        overlaps: of the training rows, and of sets that have no row left.
    """

    rows: Dataset
    take: int | None
    labels: tuple[str, ...]
    hp: Hyperparameters
    sets: tuple[EvaluationSet, ...]
    dev: Dataset | None = None
    number: tuple[int, int] | None = None
    others: Dataset | None = None
    models: tuple[MethodModel, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @cached_property
    def train(self) -> Dataset:
        """What every method is trained on."""
        return self.rows if self.take is None else self.rows.select(range(min(self.take, len(self.rows))))

    @cached_property
    def pool(self) -> Dataset:
        """The corpus's rows that nothing is trained on and that no model has seen: a control labels some of them."""
        rest = self.rows.select(list(range(len(self.train), len(self.rows))))
        pool = rest if self.others is None else concatenate_datasets([rest, self.others])
        return pool.select(unseen_rows(mark_seen(pool, self.models), self.models, len(pool)))

    @cached_property
    def scored(self) -> list[Dataset]:
        """All rows that models are scored on, to choose the epoch or to evaluate."""
        return [*([] if self.dev is None else [self.dev]), *(rows for test_set in self.sets for rows in test_set.scored)]

    @cached_property
    def definition(self) -> dict[str, Any]:
        """What the models of all methods depend on, besides the seed; hashing the rows takes its time."""
        hp = {name: value for name, value in plain(self.hp).items() if name not in ("seed", "model")}
        dev = {} if self.dev is None else {"dev": rows_digest(self.dev)}
        return {"hp": hp, "model": self.hp.model.key(), "labels": self.labels, "rows": rows_digest(self.train), **dev}

    def making(self, method: Method) -> dict[str, Any]:
        """Return what a method's counterfactuals depend on, besides the method.

        The key of a system that learns from its rows depends on the training rows alone. The key of every other system names all
        rows, as it did when systems were given all: its cells are found again.
        """
        return {"fitted on": self.definition["rows"] if method.learns else self._all, "rows": self.definition["rows"]}

    @cached_property
    def _all(self) -> str:
        return rows_digest(self.rows)

    @cached_property
    def groups(self) -> str:
        """A hash of the rows' groups, which debiased trainings keep together."""
        return digest(list(zip(self.train["corpus"], self.train["group_id"], strict=True)))

    @property
    def about(self) -> dict[str, int]:
        """What a cell says of its sub-sample."""
        return dict(zip(("size", "sample"), self.number, strict=True)) if self.number else {}

    def seed(self, seed: int) -> Any:
        """Return what names a training in tables: its seed, or on a sub-sample its `Training`."""
        return Training(*self.number, seed) if self.number else seed


def load_sample(recipe: SetComparison, *, full: bool) -> tuple[Task, Sample]:
    """Load the training rows and the evaluation sets of a comparison on sets; with `full` all rows, whatever the recipe takes."""
    hp = hyperparameters(recipe.training, recipe.key, recipe.data_dir)
    source = {**recipe.train, **({"split": recipe.split} if recipe.split else {})}
    rows = _load(source, recipe.data_dir, "train", training=True)
    task = task_of(rows.features)
    _check_open_domain(hp, task, recipe.key)
    labels = _labels(task, recipe.ways, rows)
    rows = of_labels(rows, labels, "train") if labels else rows
    models = list_models(build_methods(recipe, task), hp.model)
    marks, there = mark_seen(rows, models), len(rows)
    new = unseen_rows(marks, models, there) if "train" in recipe.unseen else list(range(there))
    if not new:
        raise RecipeError("train: every row was seen by a model of a method: take other rows, or leave train out of unseen")
    rows, take = rows.select(new), None if full else recipe.take
    overlap = count_overlap("training rows", marks, models, there, new[:take], there - len(new))
    sample = Sample(rows, take, labels, hp, (), models=tuple(models))
    sets = load_sets(
        recipe.evaluate, recipe.data_dir, sample.train, None if full else recipe.evaluate_take, labels, models,
        unseen="evaluate" in recipe.unseen,
    )  # fmt: skip
    empty = [test_set.overlap for test_set in sets if test_set.overlap and not len(test_set.rows)]
    return task, replace(sample, sets=tuple(test_set for test_set in sets if len(test_set.rows)), overlaps=(overlap, *empty))


def _check_open_domain(hp: Hyperparameters, task: Task, key: str) -> None:
    if isinstance(hp, OpenHyperparameters) and not getattr(load_trainer(task.trainer), "open_domain", False):
        raise RecipeError(f"{key}: open_domain: no model of {task.name} rows answers from a collection: leave it out")


def _labels(task: Task, ways: int | None, rows: Dataset) -> tuple[str, ...]:
    if task.labels is None:
        return tuple(sorted(set(rows["label"]))) if "label" in rows.column_names else ()
    ways = load_trainer(task.trainer).ways if ways is None else ways
    if ways is None:
        return used_labels(task, rows["label"]) if task.labelled else ()
    if not 2 <= ways <= len(task.labels):
        raise RecipeError(f"ways: {ways}: 2 to {len(task.labels)}, of {', '.join(task.labels)}")
    return task.labels[:ways]


def draw_samples(sample: Sample, low_resource: LowResource) -> list[Sample]:
    """Draw samples of a sample's training rows, class-balanced where they have labels, small samples first, with the same sets.

    Within a seed a larger sample holds the smaller sample, where CrossAug's paper draws each sample again. So sizes are compared
    on rows that they share, and a system is asked nothing twice. Systems are fitted on the sample and see no other row.
    """
    numbers = list(product(low_resource.sizes, low_resource.samples))
    try:
        parts = [balanced_sample(sample.train, size, seed) for size, seed in numbers]
    except ValueError as error:
        raise RecipeError(f"low_resource: {error}") from error
    samples = []
    for rows, number in zip(parts, numbers, strict=True):
        chosen = set(rows["id"])
        others = sample.train.select([i for i, row_id in enumerate(sample.train["id"]) if row_id not in chosen])
        samples.append(replace(sample, rows=rows, take=None, number=number, others=others))
    return samples


def load_columns(recipe: ColumnComparison) -> tuple[Task, list[Sample]]:
    """Load the recipe's `columns`, each part over what `defaults` say of it, and its hyper-parameters over the recipe's.

    Columns with the same training and development rows and hyper-parameters are one sample: they share their models.
    """
    names = [column.name for column in recipe.columns]
    check_names(names, "columns")
    loaded: dict[str, Dataset] = {}  # many columns share their development and test rows
    parts = {column.name: [_load_part(recipe, column, part, loaded) for part in PARTS] for column in recipe.columns}
    task = task_of(parts[names[0]][0].features)
    samples: dict[str, Sample] = {}
    methods, marks = build_methods(recipe, task), dict[tuple[int, Model], dict[str, list[bool]]]()
    for order, column in enumerate(recipe.columns):
        train, dev, test = parts[column.name]
        for part, rows in zip(PARTS, parts[column.name], strict=True):
            if (other := task_of(rows.features).name) != task.name:
                raise RecipeError(f"columns: {column.name}: {part}: these are {other} rows, and the others are {task.name} rows")
        hp = hyperparameters({**recipe.training, **getattr(column, recipe.key)}, recipe.key, recipe.data_dir)
        _check_open_domain(hp, task, recipe.key)
        models = list_models(methods, hp.model)
        new = Sample(train, None, _labels(task, None, train), hp, (), dev, models=tuple(models))
        key = digest([repr(hp), rows_digest(train), rows_digest(dev)])
        sample = samples.get(key, new)
        setting = column.setting or recipe.defaults.setting
        if (asked := (id(test), hp.model)) not in marks:  # a column may start from other weights
            marks[asked] = mark_seen(test, models)
        overlap = count_overlap(column.name, marks[asked], models, len(test), range(len(test)))
        repeated = drop_overlap(test, train)[1]
        test_set = EvaluationSet(column.name, setting, test, repeated=repeated, order=order, overlap=overlap)
        samples[key] = replace(sample, sets=(*sample.sets, test_set))
    return task, list(samples.values())


def _load_part(recipe: ColumnComparison, column: Column, part: str, loaded: dict[str, Dataset]) -> Dataset:
    source, place = recipe.source(column, part), f"columns: {column.name}: {part}"
    key = digest([part == "train", source])
    if key not in loaded:
        loaded[key] = _load(source, recipe.data_dir, place, training=part == "train")
        if not len(loaded[key]):
            raise RecipeError(f"{place}: there are no rows")
    return loaded[key]


def _load(source: Source, data_dir: str | None, where: str, *, training: bool) -> Dataset:
    if "corpus" not in source:
        raise RecipeError(f"{where}: the key 'corpus' is missing")
    return load_rows([recipes.locate(source, data_dir)], training=training)
