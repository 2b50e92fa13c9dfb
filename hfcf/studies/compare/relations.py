"""Method × column × seed: a relation classifier for each method, sample of training rows and seed (CCG, Tables 1–4, 6 and 8).

A column is a training set, the development rows that choose the epoch, and the rows that are scored. A method's counterfactuals are
made once for a training set, with the recipe's seed; the recipe's `seeds` are those of the classifiers that are trained on them.
Columns with the same training and development rows share the classifier.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, concatenate_datasets
from filelock import FileLock

from hfcf.core import expand as augment
from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.engines.relation import RelationClassifier
from hfcf.studies.compare.arms import Arm, arms, copies, made
from hfcf.studies.compare.cells import Cells, digest, slug
from hfcf.studies.compare.relation_columns import Column, ask, columns_of, scored_answers
from hfcf.studies.compare.verifiers import alone, check_arms
from hfcf.training.data import drop_overlap
from hfcf.training.loop import trained_model
from hfcf.training.relation import train_relation

log = logging.getLogger(__name__)

VERSION = "1"
"""Raise it when the same recipe gives other numbers: it is part of every cell's key."""
REPORTS = ("test", "dev")
NEEDED = {"methods", "columns", "classifier", "seeds"}
KEYS = NEEDED | {
    *("compare", "name", "preset", "data_dir", "seed", "system", "settings", "baseline", "defaults", "run", "report", "cells"),
    *("paper", "curves", "notes"),
}

Wanted = tuple[str, str, int]
"""Method, column, seed."""


@dataclass(frozen=True)
class RelationComparison:
    """What a recipe says, loaded. `wanted` is what is to be computed, in that order."""

    name: str
    arms: Sequence[Arm]
    baseline: str
    seeds: Sequence[int]
    columns: Sequence[Column]
    wanted: Sequence[Wanted]
    cells: Cells

    def together(self, column: Column) -> list[Column]:
        """The columns that share a column's classifier, itself among them."""
        return [one for one in self.columns if one.training == column.training]

    def definition(self, arm: Arm, column: Column, seed: int) -> dict[str, Any]:
        """Everything that a classifier depends on."""
        known = {"version": VERSION, **column.training, "seed": seed}
        if arm.system is None:
            return known
        # Counterfactuals that repeat a scored row are left out.
        apart = sorted({one.ids for one in self.together(column)})
        return {**known, "apart from": apart, **arm.definition()}

    def key(self, arm: Arm, column: Column, seed: int) -> tuple[list[Any], dict[str, Any]]:
        """The words and the definition of a cell."""
        return [arm.name, column.name, seed], {**self.definition(arm, column, seed), "ids": column.ids}


def open_relations(recipe: Mapping[str, Any], results: Path, *, full: bool) -> RelationComparison:
    """Load the rows, and name the cells, of a comparison recipe.

    Args:
        recipe: its content.
        results: the folder of the folders of cells; the recipe's is called as its `cells` or its `name` says.
        full: every cell of the table is wanted, whatever `run` says.

    Raises:
        RecipeError: an unknown or missing key; rows of another task; no rows.
    """
    recipes.check(recipe, KEYS, recipe["name"])
    if absent := sorted(NEEDED - set(recipe)):
        raise recipes.RecipeError(f"{recipe['name']}: the key {absent[0]!r} is missing")
    if recipe.get("report", "test") not in REPORTS:
        raise recipes.RecipeError(f"report: {recipe['report']!r}: choose one of {', '.join(REPORTS)}")
    for name, given in recipe["methods"].items():
        recipes.check(given or (), ("system", "settings", "copies"), f"methods: {name}")
    found = arms(recipe, "relation")
    check_arms(recipe, found)
    for arm in found:
        if arm.system is not None and arm.system.task != "relation":
            raise recipes.RecipeError(f"methods: {arm.name}: {arm.system.name} works on {arm.system.task} rows, not on relations")
    recipes.check(recipe.get("paper") or (), ("about", "scores", "augmentation"), "paper")
    for name, values in (recipe.get("curves") or {}).items():
        recipes.check(values.values(), [arm.name for arm in found], f"curves: {name}")
    columns = columns_of(recipe)
    every: list[Wanted] = [(arm.name, one.name, seed) for one in columns for seed in recipe["seeds"] for arm in found]
    chosen = list(dict.fromkeys([*_wanted(recipe, every), *(every if full else [])]))
    return RelationComparison(
        name=recipe["name"], arms=found, baseline=recipe.get("baseline", found[0].name), seeds=recipe["seeds"],
        columns=columns, wanted=chosen, cells=Cells(results / recipe.get("cells", recipe["name"])),
    )  # fmt: skip


def _wanted(recipe: Mapping[str, Any], every: Sequence[Wanted]) -> list[Wanted]:
    """What `run` names, in its order; everything without one."""
    if "run" not in recipe:
        return list(every)
    known = {key: list(dict.fromkeys(one[i] for one in every)) for i, key in enumerate(("methods", "columns", "seeds"))}
    found: list[Wanted] = []
    for i, given in enumerate(recipe["run"]):
        recipes.check(given, known, f"run: {i + 1}")
        for key in known:
            recipes.check(map(str, given.get(key, ())), map(str, known[key]), f"run: {i + 1}: {key}")
        named = {key: given.get(key, known[key]) for key in known}
        found += [(method, column, seed) for column in named["columns"] for seed in named["seeds"] for method in named["methods"]]
    return found


def fill(comparison: RelationComparison, work: Path) -> None:
    """Compute the wanted cells that are missing; several processes may share the work.

    Args:
        comparison: from `open_relations`.
        work: a folder for counterfactuals, and for classifiers that are in training.
    """
    by_name = {arm.name: arm for arm in comparison.arms}, {one.name: one for one in comparison.columns}
    for method, name, seed in comparison.wanted:
        arm, column = by_name[0][method], by_name[1][name]
        if comparison.cells.get(*comparison.key(arm, column, seed)) is not None:
            continue
        folder = work / f"{slug(f'{method} {name}')}-{seed}-{digest(comparison.definition(arm, column, seed))}"
        with alone(work / f"{digest(comparison.definition(arm, column, seed))}.lock") as free:
            if free and (missing := missing_of(comparison, arm, column, seed)):
                _train_and_score(comparison, arm, seed, missing, folder)


def missing_of(comparison: RelationComparison, arm: Arm, column: Column, seed: int) -> list[Column]:
    """The wanted columns without a cell that one classifier answers."""
    together = [one for one in comparison.together(column) if (arm.name, one.name, seed) in comparison.wanted]
    return [one for one in together if comparison.cells.get(*comparison.key(arm, one, seed)) is None]


def read(comparison: RelationComparison) -> list[dict[str, Any]]:
    """The finished cells of the table, wanted or not, columns then seeds then methods."""
    found = []
    for column in comparison.columns:
        for seed in comparison.seeds:
            for arm in comparison.arms:
                if (cell := comparison.cells.get(*comparison.key(arm, column, seed))) is not None:
                    about = {"corpus": column.name, "setting": column.setting, "method": arm.name, "recipe": comparison.name}
                    found.append({**cell, **about})
    return found


def counterfactuals(comparison: RelationComparison, arm: Arm, column: Column, work: Path) -> tuple[Dataset, float] | None:
    """What the arm's system makes of the training rows, and the CPU seconds that it took; None for an arm without one.

    It is kept in `work`, for the other seeds and processes.
    """
    if arm.system is None:
        return None
    cells = Cells(work / "made")
    key = [arm.name, column.name], {"version": VERSION, "rows": column.training["rows"], **replace(arm, copies=False).definition()}
    features = Features({name: schema.counterfactual("relation")[name] for name in schema.TASKS["relation"]})
    cells.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(cells.path(*key).with_suffix(".lock")):  # two processes would do the same work
        if (found := cells.get(*key)) is None:
            start = time.process_time()
            rows = augment.expand(made(arm, column.train, None)).select_columns(list(features)).to_list()
            found = {"cpu_seconds": round(time.process_time() - start, 1), "rows": rows}
            cells.put(*key, found)
    columns = {name: [row[name] for row in found["rows"]] for name in features}
    return Dataset.from_dict(columns, features=features), found["cpu_seconds"]


def training_rows(arm: Arm, column: Column, rows: Dataset | None, scored: Sequence[Dataset]) -> tuple[Dataset, int]:
    """What the arm's classifier is trained on, and how many counterfactuals were left out because a scored row has their sentence.

    Args:
        arm: the method.
        column: with the training rows of every arm.
        rows: the counterfactuals; None for an arm without them.
        scored: development and test rows.
    """
    if rows is None:
        return column.train, 0
    kept, dropped = drop_overlap(rows, concatenate_datasets([part.select_columns(["tokens"]) for part in scored]))
    if arm.copies:
        kept = copies(column.train, kept["label"])
    return concatenate_datasets([column.train, kept.cast(column.train.features)]), dropped


def _train_and_score(comparison: RelationComparison, arm: Arm, seed: int, missing: Sequence[Column], folder: Path) -> None:
    first, work = missing[0], folder.parent
    log.info("%s, %s, seed %d", arm.name, first.name, seed)
    made_rows, making = counterfactuals(comparison, arm, first, work) or (None, 0.0)
    scored = [first.dev, *(one.test for one in comparison.together(first))]
    rows, dropped = training_rows(arm, first, made_rows, scored)
    about = {
        "recipe": comparison.name, "method": arm.name, "seed": seed, "train_rows": len(rows),
        "counterfactuals": len(rows) - len(first.train), "counterfactuals_dropped": dropped,
        "ratio": round((len(rows) - len(first.train)) / len(first.train), 4), "making_cpu_seconds": making,
    }  # fmt: skip
    if arm.system is not None and len(rows) == len(first.train):
        for one in missing:  # nothing to train on that the baseline is not trained on
            comparison.cells.put(*comparison.key(arm, one, seed), {**about, "corpus": one.name, "ids": one.ids, "empty": True})
        return
    shutil.rmtree(folder, ignore_errors=True)
    start, cpu = time.perf_counter(), time.process_time()
    hp = replace(first.hp, seed=seed)
    best = train_relation(rows, hp, folder, labels=sorted(set(first.train["label"])), dev=first.dev)
    engine = RelationClassifier(model=trained_model(hp, folder), max_length=hp.max_length)
    on_dev = ask(engine, first.dev)
    training = time.perf_counter() - start, time.process_time() - cpu
    for one in missing:
        start, cpu = time.perf_counter(), time.process_time()
        on_test = ask(engine, one.test)
        seconds = [time.perf_counter() - start + training[0], time.process_time() - cpu + training[1]]
        comparison.cells.put(
            *comparison.key(arm, one, seed),
            {
                **about, "corpus": one.name, "setting": one.setting, "rows": len(one.test), "ids": one.ids,
                "seen": one.seen, **scored_answers(one.test, on_test, one.letters), "labels": one.letters, "best_epoch": best,
                "dev": {"rows": len(one.dev), "ids": one.training["dev"], **scored_answers(one.dev, on_dev, one.letters)},
                "seconds": round(seconds[0], 1), "cpu_seconds": round(seconds[1], 1),
            },
        )  # fmt: skip
    shutil.rmtree(folder)
