"""The methods of a comparison, what each adds to the training rows, and the versions of the code that makes it."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core import recipe as recipes
from hfcf.core.columns import add_null_columns
from hfcf.core.expand import expand
from hfcf.core.model import Model, is_prompted
from hfcf.core.recipe import RecipeError
from hfcf.core.schema import no_rows
from hfcf.core.settings import models_in
from hfcf.core.system import System
from hfcf.core.task import Task, get_task, task_of
from hfcf.core.trainer import load_trainer
from hfcf.engines.base import Engine
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.llm.engine import LanguageModel
from hfcf.pipeline.run import make_system
from hfcf.studies.compare.recipe import ColumnComparison, MethodRecipe, SetComparison, Source
from hfcf.studies.compare.results import digest
from hfcf.systems import system_class
from hfcf.training.data import drop_overlap, drop_related, load_rows
from hfcf.training.debias import Debias
from hfcf.training.verifier import of_labels

log = logging.getLogger(__name__)

VERSION = "3"
"""Raise it when the same recipe gives other numbers: it is part of every cell's key."""
_NEUTRAL = ("VERSION", "strict", "fitted")  # versions count apart; what a stage was fitted on are the rows, which a cell knows
_ASKED = 64  # rows that a judge labels at once
POOLED = ("real", "judged")
"""Controls that take further rows of the corpus."""


@dataclass(frozen=True)
class Method:
    """One method.

    Args:
        name: in the tables.
        system: what makes the counterfactuals; None: none are added.
        changes: kinds of change that it trains on; empty: all that its system makes.
        control: what is trained on instead of each counterfactual, or row of `more`. "copies", a copy of a training row of the same
            label: what more rows, and their balance of labels, do without the counterfactuals' text. "real", a further labelled
            row of the corpus, at the shares of labels of the training rows: what as much annotation does. "judged", such a row with
            the label that the system's verifier gives it: what the verifier's knowledge does without counterfactuals. "phrases",
            the counterfactual's words from one entity to the other: what they do without their sentence.
        sizes: of the samples that it is trained on; None: all.
        ratio: how many counterfactuals it trains on for each training row, if not all.
        unseen: whether evaluation rows that its models have seen are left out; else they are counted alone.
        debias: how the model is trained, if not by plain cross-entropy.
        more: where further labelled rows to train on lie, such as revisions, or what the models of a system were trained on.
        model: what is trained and how, over the recipe's.
        trainer: settings of the task's trainer, over the recipe's.
        columns: the columns that it has; None: all.
    """

    name: str
    system: System | None
    changes: tuple[str, ...] = ()
    control: str | None = None
    sizes: tuple[int, ...] | None = None
    debias: Debias | None = None
    ratio: float | None = None
    unseen: bool = True
    more: tuple[Source, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    trainer: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    @property
    def adds_nothing(self) -> bool:
        """Whether it is training on the rows as they are."""
        return self.system is None and self.debias is None and not self.more

    @cached_property
    def further(self) -> Dataset:
        """The rows of `more`."""
        return load_rows(self.more, training=True)

    @property
    def judge(self) -> tuple[Model, int] | None:
        """The verifier that checks last in its system, and the tokens that it reads; None where none does."""
        stages = reversed(self.system.stages) if self.system else ()
        checks: list[Any] = [stage for stage in stages if isinstance(getattr(stage, "verifier", None), Model)]
        return (checks[0].verifier, checks[0].max_length) if checks else None

    @cached_property
    def versions(self) -> dict[str, str]:
        """The versions of the code that makes its cells, by name."""
        if self.system is None:
            return {"comparison": VERSION}
        models = [model for _, model in models_in(self.system.values)]
        prompted = [LanguageModel] if any(map(is_prompted, models)) else []
        named = [engine for stage in self.system.stages for engine in stage.engines]
        engines = [resolve_name(engine) if isinstance(engine, str) else engine for engine in named]
        return {
            "comparison": VERSION, f"system {self.system.name}": self.system.VERSION,
            **{f"stage {stage.name}": stage.VERSION for stage in self.system.stages},
            **{f"engine {engine.__name__}": engine.VERSION for engine in [*engines, *prompted]},
        }  # fmt: skip

    @cached_property
    def making(self) -> dict[str, Any]:
        """Everything that its counterfactuals depend on, besides the rows."""
        if self.system is None:
            return {}
        return {
            "unique": self.system.unique,
            "stages": [[stage.name, described(stage.__getstate__())] for stage in self.system.stages],
            "dtype": str(Classifier(model=Model("any"), max_length=1).dtype()),  # what "auto" is on this machine
        }

    @cached_property
    def definition(self) -> dict[str, Any]:
        """Everything that its training depends on, besides the rows."""
        debias = self.debias.settings() if self.debias else None
        names = ("control", "ratio", "changes") if self.system else ("control",) if self.more else ()
        controls = {name: getattr(self, name) for name in names}
        more = digest(self.further.to_list()) if self.more else None
        return {"versions": self.versions, "debias": debias, "more": more, **controls, **self.making}


def build_methods(recipe: SetComparison | ColumnComparison, task: Task | None = None) -> list[Method]:
    """Build the recipe's methods, in order; null adds nothing. Systems of several tasks follow the task of the rows."""
    return [
        Method(name, None) if part is None else _build_method(recipe, name, part, task) for name, part in recipe.methods.items()
    ]


def _build_method(recipe: SetComparison | ColumnComparison, name: str, part: MethodRecipe, task: Task | None) -> Method:
    where = f"methods: {name}"
    options: dict[str, Any] = {
        "debias": Debias.of(part.debias, f"{where}: debias") if part.debias else None, "model": part.model, "trainer": part.trainer,
        **{key: None if (value := getattr(part, key)) is None else tuple(value) for key in ("columns", "sizes")},
    }  # fmt: skip
    if part.sizes is not None:
        samples = getattr(recipe, "low_resource", None)
        recipes.check_keys(map(str, part.sizes), map(str, samples.sizes if samples else ()), f"{where}: sizes")
    if (system := part.system or recipe.system) is None:
        alone = {"debias", "more", "model", "trainer"}
        if part.more and part.control not in (None, "copies", "real"):
            raise RecipeError(f"{where}: control: {part.control} is of a system's counterfactuals; with more, give copies or real")
        allowed_keys = {*alone, "columns", "sizes", *(["control"] if part.more else [])}
        if not part.model_fields_set & alone or not part.model_fields_set <= allowed_keys:
            raise RecipeError(f"{where}: the key 'system' is missing")
        more = tuple(recipes.locate(source, recipe.data_dir) for source in part.more or ())
        return Method(name, None, more=more, control=part.control, **options)
    if part.more:
        raise RecipeError(f"{where}: more: a system makes what is trained on: leave one of the two out")
    common = recipe.settings if system == recipe.system else None
    settings = system_class(system).locate({**(common or {}), **(part.settings or {})}, recipe.data_dir)
    built = make_system(system, preset=recipe.preset, seed=recipe.seed, settings=settings, task=task.system_task if task else None)
    allowed = load_trainer(get_task(built.task).trainer).changes if task else ()
    if allowed:  # else they are the kinds that the system writes, or the rows' task is not known yet
        recipes.check_keys(part.changes or (), allowed, f"{where}: changes")
    options |= {key: getattr(part, key) for key in ("control", "ratio", "unseen") if getattr(part, key) is not None}
    method = Method(name, built, tuple(part.changes or ()), **options)
    if task and method.control == "phrases" and type(get_task(built.task)).phrase is Task.phrase:
        raise RecipeError(f"{where}: control: phrases: nothing says which words of {built.task} rows their label rests on")
    if method.control == "judged" and method.judge is None:
        raise RecipeError(
            f"{where}: control: judged: no verifier checks what {system} makes; give it one: settings: {{verifier: …}}"
        )
    return method


def check_methods(methods: Sequence[Method], task: Task) -> None:
    """Check before anything is computed that the methods are of the task and that all their models can be read."""
    for method in methods:
        if method.system is not None and method.system.task != task.system_task:
            other = f"{method.system.name} works on {method.system.task} rows, and these are {task.name} rows"
            raise RecipeError(f"methods: {method.name}: {other}")
        if method.debias and not getattr(load_trainer(task.trainer), "debiases", False):
            raise RecipeError(f"methods: {method.name}: debias: no loss against bias is known for {task.name} rows: leave it out")
        try:
            _ = method.definition
        except OSError as error:
            raise RecipeError(f"{method.name}: a model cannot be read; train it first, or give another: {error}") from error


def described(value: Any) -> Any:
    """Return a setting as a key has it, with weights instead of their names, also inside other settings."""
    if isinstance(value, Model):
        return value.key()
    if isinstance(value, Engine):
        return value.settings()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: described(part) for name, part in value.items() if name not in _NEUTRAL}
    return [described(part) for part in value] if isinstance(value, list | tuple) else value


# --- what a method adds to the training rows


def training_rows(
    method: Method, originals: Dataset, rows: Dataset | None, scored: Sequence[Dataset], pool: Dataset | None = None,
    labels: Sequence[str] = (),
) -> tuple[Dataset, int]:  # fmt: skip
    """Return a method's training rows, and how many that it adds were left out because a scored row repeats them."""
    if not method.more and rows is None:
        return originals, 0
    apart = _scored_rows(originals, scored)
    if rows is None:
        rest, dropped = _further(method, originals, apart, labels)
    else:
        rest, dropped = _counterfactuals(method, originals, rows, apart)
    number = len(rest)
    if method.control == "copies":
        rest = copies(originals, rest["label"] if "label" in rest.features else [""] * len(rest))
    elif method.control == "phrases":
        rest = rest.map(task_of(rest.features).phrase, desc="phrases")
    elif method.control and pool is not None:
        further = drop_related(pool, apart)
        if method.control == "real":
            rest = further_rows(originals, further, number)
        elif method.judge:
            rest = label_rows(further, rest["label"], *method.judge, labels)
        if len(rest) < number:
            log.warning("%s: the corpus has %d further rows for the control, not %d", method.name, len(rest), number)
    return concatenate_datasets([originals, rest.cast(originals.features)]), dropped


def _counterfactuals(method: Method, originals: Dataset, rows: Dataset, apart: Dataset) -> tuple[Dataset, int]:
    """Select a method's counterfactuals of the kinds and number that it trains on, apart from scored rows."""
    additions = expand(rows)
    if method.changes:
        kinds = sorted(set(additions["change"]))
        additions = additions.select([i for i, change in enumerate(additions["change"]) if change in method.changes])
        if not len(additions):
            names, made = ", ".join(method.changes), ", ".join(kinds) or "none"
            log.warning("%s: no counterfactual is a change of %s; they are changes of: %s", method.name, names, made)
    rest, dropped = drop_overlap(additions, apart)
    if method.ratio:
        rest = in_turn(rest, round(method.ratio * len(originals)), method.name)
    return _in_columns(rest, originals), dropped


def _in_columns(rows: Dataset, originals: Dataset) -> Dataset:
    """Return rows in the columns of the originals, with null in those that they lack, such as aliases of answers."""
    return add_null_columns(rows, originals.features).select_columns(originals.column_names)


def _scored_rows(originals: Dataset, scored: Sequence[Dataset]) -> Dataset:
    columns = [name for name in originals.column_names if all(name in part.features for part in scored)]
    return concatenate_datasets([part.select_columns(columns) for part in scored])


def _further(method: Method, originals: Dataset, apart: Dataset, labels: Sequence[str]) -> tuple[Dataset, int]:
    """Select the rows of `more` that are new, of the models' labels, and share nothing with a scored row; count the last."""
    further = of_labels(method.further, labels, f"methods: {method.name}: more") if labels else method.further
    known = set(zip(originals["corpus"], originals["id"], strict=True))
    new = [i for i, key in enumerate(zip(further["corpus"], further["id"], strict=True)) if key not in known]
    rest = drop_related(further.select(new), apart)
    return _in_columns(rest, originals), len(new) - len(rest)


def in_turn(rows: Dataset, number: int, name: str) -> Dataset:
    """Take as many counterfactuals as are to be trained on: the first of each source, in the order of a hash, then the second."""
    counts, ranks = Counter[str](), []
    for source, row_id in zip(rows["source_id"], rows["id"], strict=True):
        ranks.append((counts[source], digest(row_id)))
        counts[source] += 1
    if len(rows) < number:
        log.warning("%s: there are %d counterfactuals, and ratio asks for %d", name, len(rows), number)
    return rows.select(sorted(sorted(range(len(rows)), key=ranks.__getitem__)[:number]))


def copies(originals: Dataset, labels: Iterable[str]) -> Dataset:
    """Return a row for each label, each row in turn, in the order of a hash of their ids; "" for rows without labels."""
    ids, given = originals["id"], originals["label"] if "label" in originals.features else [""] * len(originals)
    order = sorted(range(len(originals)), key=lambda i: digest(ids[i]))
    cycles = {label: itertools.cycle([i for i in order if given[i] == label]) for label in set(given)}
    labels = list(labels)
    if lacking := set(labels) - cycles.keys():
        raise RecipeError(f"control: copies: no training row has the label {min(lacking)!r} to copy: take more rows")
    return originals.select([next(cycles[label]) for label in labels])


def further_rows(originals: Dataset, pool: Dataset, number: int) -> Dataset:
    """Return so many rows of a pool at the shares of labels of the originals, in the order of a hash of their ids."""
    labels = originals["label"] if "label" in originals.features else [""] * len(originals)
    ids, given = pool["id"], pool["label"] if "label" in pool.features else [""] * len(pool)
    order, counts = sorted(range(len(pool)), key=lambda i: digest(ids[i])), Counter(labels)
    bounds = [0, *(round(number * part / len(originals)) for part in itertools.accumulate(counts.values()))]
    chosen: list[int] = []
    for label, (low, high) in zip(counts, itertools.pairwise(bounds), strict=True):
        chosen += [i for i in order if given[i] == label][: high - low]
    return _in_columns(pool.select(sorted(chosen)), originals)


def label_rows(pool: Dataset, wanted: Iterable[str], judge: Model, max_length: int, labels: Sequence[str]) -> Dataset:
    """Return as many rows of a pool as labels are wanted, each with the label that a judge gives it; its own is not read.

    Rows come in the order of a hash of their ids. As many of each label are taken as are wanted. Where the pool has too few rows
    of a label, rows of other labels are taken. A row is passed over if the judge can't read it, or gives it a label that the
    models don't have. The check of a counterfactual rejects such a row in the same way.
    """
    task, ids, open_ = task_of(pool.features), pool["id"], Counter(wanted)
    number, chosen, spare = open_.total(), list[tuple[int, str]](), list[tuple[int, str]]()
    order = sorted(range(len(pool)), key=lambda i: digest(ids[i]))
    texts = pool.remove_columns("label")
    for start in range(0, len(order), _ASKED):
        if len(chosen) == number:
            break
        part = order[start : start + _ASKED]
        for i, answer in zip(part, task.verdicts(texts.select(part).to_list(), judge, max_length), strict=True):
            if not isinstance(answer, Mapping) or (label := choose(answer, task.class_names(answer))) not in labels:
                continue
            (chosen if open_[label] > 0 else spare).append((i, label))
            open_[label] -= 1
    chosen += spare[: number - len(chosen)]
    if not chosen:
        return no_rows(pool.features)
    return Dataset.from_list([{**pool[i], "label": label} for i, label in chosen], features=pool.features)
