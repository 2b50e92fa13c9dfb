"""What models of a comparison are trained on: all training rows, small samples of them, or the training rows of columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core import recipe as recipes
from hfcf.core.expand import balanced_sample
from hfcf.core.model import Model, is_prompted
from hfcf.core.model_checks import can_configure, check_length
from hfcf.core.recipe import RecipeError
from hfcf.core.task import Task, task_of
from hfcf.core.trainer import load_trainer, used_labels
from hfcf.studies.compare.contamination import MethodModel, Overlap, count_overlap, list_models, mark_seen, unseen_rows
from hfcf.studies.compare.grid import SampleTraining
from hfcf.studies.compare.methods import POOLED, Method, build_methods, described
from hfcf.studies.compare.recipe import Column, ColumnComparison, LowResource, SetComparison, Source, hyperparameters
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.sets import EvaluationSet, load_sets, rows_digest
from hfcf.training.data import drop_overlap, drop_related, load_rows
from hfcf.training.derived_labels import derive_labels
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.trainer import Hyperparameters
from hfcf.training.verifier import of_labels

log = logging.getLogger(__name__)

PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class Sample:
    """Rows that every method trains on, how it trains, and what the models are scored on.

    Args:
        rows: the corpus's, those that are trained on first; systems and models see only these.
        take: how many of them are trained on; None: all.
        labels: that models tell apart.
        hps: how the models of each method are trained, the seed is the comparison's; or the language model that is asked as it is.
        sets: what they are scored on.
        trainer: settings of the task's trainer.
        dev: rows that choose the epoch, if any do.
        number: size and seed of the sub-sample that the rows are, if they are a sub-sample.
        others: further rows of the corpus, which such a sub-sample leaves.
        models: the models of the methods.
        overlaps: of the training rows, and of sets that have no row left.
    """

    rows: Dataset
    take: int | None
    labels: tuple[str, ...]
    hps: Mapping[str, Hyperparameters | Model]
    sets: tuple[EvaluationSet, ...]
    trainer: Mapping[str, Any] = field(default_factory=dict)
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
    def digests(self) -> dict[str, Any]:
        """Hashes of the rows that models are trained on, with their groups, and of those that choose the epoch."""
        groups = digest(list(zip(self.train["corpus"], self.train["group_id"], strict=True)))
        return {"rows": rows_digest(self.train), "groups": groups, "dev": None if self.dev is None else rows_digest(self.dev)}

    def definition(self, method: Method) -> dict[str, Any]:
        """Return what a method's models depend on, besides the method and the seed."""
        hp = self.hps[method.name]
        return {
            "hp": described(replace(hp, seed=0) if isinstance(hp, Hyperparameters) else hp),
            "labels": self.labels,
            "trainer": {**self.trainer, **method.trainer},
            **self.digests,
        }

    def seed(self, seed: int) -> Any:
        """Return what names a training in tables: its seed, or on a sub-sample its `Training`."""
        return SampleTraining(*self.number, seed) if self.number else seed


def load_sample(recipe: SetComparison, *, full: bool) -> tuple[Task, Sample]:
    """Load the training rows and the evaluation sets of a comparison on sets; with `full` all rows, whatever the recipe takes."""
    source = {**recipe.train, **({"split": recipe.split} if recipe.split else {})}
    rows = _load(source, recipe.data_dir, "train", training=True)
    task = task_of(rows.features)
    methods = build_methods(recipe, task)
    hps = _hyperparameters(methods, recipe.model, task, recipe.data_dir)
    labels = _labels(task, recipe.ways, rows)
    rows = of_labels(rows, labels, "train") if labels else rows
    models = list_models(methods, *map(start_of, hps.values()))
    marks, available = mark_seen(rows, models), len(rows)
    new = unseen_rows(marks, models, available) if "train" in recipe.unseen else list(range(available))
    if not new:
        raise RecipeError("train: every row was seen by a model of a method: take other rows, or leave train out of unseen")
    take = None if full else recipe.take
    new = new if take is None else _draw(rows, new, take)
    rows = rows.select(new)
    overlap = count_overlap("training rows", marks, models, available, new[:take], available - len(new))
    sample = Sample(rows, take, labels, hps, (), recipe.trainer, models=tuple(models))
    check_labels(task, sample.train, labels, "train")
    sets = load_sets(
        recipe.evaluate, recipe.data_dir, sample.train, None if full else recipe.evaluate_take, labels, models,
        unseen="evaluate" in recipe.unseen,
    )  # fmt: skip
    empty = [test_set.overlap for test_set in sets if test_set.overlap and not len(test_set.rows)]
    return task, replace(sample, sets=tuple(test_set for test_set in sets if len(test_set.rows)), overlaps=(overlap, *empty))


def _draw(rows: Dataset, numbers: Sequence[int], take: int) -> list[int]:
    """Put so many rows first, drawn by a hash of their groups and ids: many files are sorted by label. Both parts keep their order.

    Rows of a group are drawn together, so that the rest, which controls take rows of, has no pair of a training row.
    """
    if take > len(numbers):
        log.warning("take: %d rows are asked for, and train has %d", take, len(numbers))
    ids, groups = rows["id"][:], rows["group_id"][:]
    drawn = set(sorted(numbers, key=lambda i: (digest(groups[i]), digest(ids[i])))[:take])
    return sorted(numbers, key=lambda i: i not in drawn)


def check_labels(task: Task, train: Dataset, labels: Sequence[str], where: str) -> None:
    """Raise `RecipeError` for training rows that all have one label, of which a model can learn nothing."""
    if task.labelled and len(labels) and len(found := set(train["label"])) == 1:
        raise RecipeError(f"{where}: all {len(train)} rows have the label {found.pop()}: take other rows or more of them")


def _hyperparameters(
    methods: Iterable[Method], settings: Mapping[str, Any], task: Task, data_dir: str | None
) -> dict[str, Hyperparameters | Model]:
    """Return how the models of each method are trained: alike but for what the method says."""
    found, parsed = dict[str, Hyperparameters | Model](), dict[str, Hyperparameters | Model]()
    for method in methods:
        if (key := repr(method.model)) not in parsed:
            model = Model.of({**settings, **method.model}["model"])
            parsed[key] = model if is_prompted(model) else hyperparameters({**settings, **method.model}, "model", data_dir)
        found[method.name] = parsed[key]
        if isinstance(parsed[key], OpenHyperparameters) and not getattr(load_trainer(task.trainer), "open_domain", False):
            raise RecipeError(f"model: open_domain: no model of {task.name} rows answers from a collection: leave it out")
    return found


def start_of(hp: Hyperparameters | Model) -> Model:
    """Return what a training starts from, or the language model."""
    return hp if isinstance(hp, Model) else hp.model


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
    """Draw samples of a sample's training rows, small samples first, with the same sets.

    Where rows have labels, samples have as many of each, or the shares that the recipe gives.

    Within a seed a larger sample holds the smaller sample, where CrossAug's paper draws each sample again. So sizes are compared
    on rows that they share, and a system is asked nothing twice. Systems are fitted on the sample and see no other row.
    """
    numbers = list(product(low_resource.sizes, low_resource.samples))
    try:
        parts = [balanced_sample(sample.train, size, seed, low_resource.shares) for size, seed in numbers]
    except ValueError as error:
        raise RecipeError(f"low_resource: {error}") from error
    samples = []
    for rows, number in zip(parts, numbers, strict=True):
        chosen = set(rows["id"])
        others = sample.train.select([i for i, row_id in enumerate(sample.train["id"]) if row_id not in chosen])
        samples.append(replace(sample, rows=rows, take=None, number=number, others=others))
    return samples


def load_columns(recipe: ColumnComparison) -> tuple[Task, list[Sample]]:
    """Load the recipe's `columns`, each part over what `defaults` say of it, and its training over the recipe's.

    Columns with the same training and development rows, training and trainer are one sample: they share their models.
    """
    recipes.check_distinct([column.name for column in recipe.columns], "columns")
    loaded: dict[str, Dataset | None] = {}  # many columns share their development and test rows
    samples: dict[str, Sample] = {}
    marks: dict[tuple[int, tuple[Model, ...]], dict[str, list[bool]]] = {}
    task: Task | None = None
    methods: list[Method] = []
    for order, column in enumerate(recipe.columns):
        try:
            train, dev, test = (_load_part(recipe, column, part, loaded) for part in PARTS)
        except (ValueError, OSError) as error:
            if not column.optional:
                raise
            log.warning("columns: %s is left out: %s", column.name, error)
            continue
        assert train is not None
        assert test is not None
        task = task or task_of(train.features)
        for part, rows in zip(PARTS, (train, dev, test), strict=True):
            if rows is not None and (other := task_of(rows.features).name) != task.name:
                raise RecipeError(f"columns: {column.name}: {part}: these are {other} rows, and the others are {task.name} rows")
        methods = methods or build_methods(recipe, task)
        hps = _hyperparameters(methods, {**recipe.model, **column.model}, task, recipe.data_dir)
        labels = _labels(task, column.ways, train)
        if task.labels is not None:
            train, test = (of_labels(rows, labels, f"columns: {column.name}") for rows in (train, test))
        check_labels(task, train, labels, f"columns: {column.name}: train")
        available, repeated = len(test), drop_overlap(test, train)[1]
        if recipe.separate:
            test = drop_related(test, train)
            if not len(test):
                raise RecipeError(f"columns: {column.name}: test: every row shares a group or a text with a training row")
        starts = tuple(map(start_of, hps.values()))
        models = list_models(methods, *starts)
        if (asked := (id(test), starts)) not in marks:  # a column may start from other weights
            marks[asked] = mark_seen(test, models)
        test_set = EvaluationSet(
            column.name, column.setting or recipe.defaults.setting, test, available, available - len(test),
            0 if recipe.separate else repeated, averaged=False, order=order, ask=column.ask, reader=column.reader,
            overlap=count_overlap(column.name, marks[asked], models, len(test), range(len(test))),
        )  # fmt: skip
        trainer = {**recipe.trainer, **column.trainer}
        new = Sample(train, None, labels, hps, (), trainer, dev, models=tuple(models))
        key = digest([repr(hps), trainer, labels, new.digests])
        samples[key] = replace(samples.get(key, new), sets=(*samples.get(key, new).sets, test_set))
    if task is None:
        raise RecipeError("columns: no column has rows")
    return task, list(samples.values())


def _load_part(recipe: ColumnComparison, column: Column, part: str, loaded: dict[str, Dataset | None]) -> Dataset | None:
    source, place = recipe.source(column, part), f"columns: {column.name}: {part}"
    key = digest([part == "train", source])
    if key not in loaded and part == "dev" and not source:
        loaded[key] = None
    if key not in loaded:
        rows = _load(source, recipe.data_dir, place, training=part == "train")
        rows = rows if recipe.derive is None else derive_labels(rows, distractors=recipe.derive)
        if not len(rows):
            raise RecipeError(f"{place}: there are no rows")
        loaded[key] = rows
    return loaded[key]


def _load(source: Source, data_dir: str | None, where: str, *, training: bool) -> Dataset:
    if "corpus" not in source:
        raise RecipeError(f"{where}: the key 'corpus' is missing")
    return load_rows([recipes.locate(source, data_dir)], training=training)


def warn_of_small_pools(methods: Sequence[Method], samples: Sequence[Sample]) -> None:
    """Say which controls will have no cell, or too few rows, because the training leaves no row or few of the corpus to them."""
    names = [method.name for method in methods if method.control in POOLED]
    if not names:
        return
    if not any(len(sample.pool) for sample in samples):
        log.warning(
            "%s: these controls take further rows of the corpus, and the training leaves none that the models of the methods have "
            "not seen: set `take` to train on some of its rows, or name a larger corpus under `train`", ", ".join(names),
        )  # fmt: skip
    elif few := [sample for sample in samples if len(sample.pool) < len(sample.train)]:
        log.warning(
            "%s: these controls take as many further rows of the corpus as there are counterfactuals: beside %d training rows "
            "it has %d", ", ".join(names), len(few[0].train), len(few[0].pool),
        )  # fmt: skip


def check_starts(samples: Sequence[Sample], task: Task) -> None:
    """Raise `RecipeError` for a start whose classes are not a sample's labels, or that can't read so many tokens."""
    check = getattr(load_trainer(task.trainer), "check_start", None)
    for hp, labels in {(id(hp), sample.labels): (hp, sample.labels) for sample in samples for hp in sample.hps.values()}.values():
        if isinstance(hp, Hyperparameters) and can_configure(hp.model):
            try:
                check_length(hp.model, hp.max_length)
                if check is not None:
                    check(hp, labels)
            except ValueError as error:
                raise RecipeError(f"model: {error}") from error
