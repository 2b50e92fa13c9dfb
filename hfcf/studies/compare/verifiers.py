"""Method × seed × corpus: a verifier for each method and seed, scored on every corpus (RACE, Table 2; CrossAug, Table 1)."""

from __future__ import annotations

import itertools
import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets
from filelock import FileLock, Timeout

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.schema import LABELS, NOT_ENOUGH_INFO
from hfcf.engines.classifier import Classifier, choose
from hfcf.studies.compare.arms import Arm, arms, made, training_rows
from hfcf.studies.compare.cells import Cells, digest, slug
from hfcf.studies.compare.evaluation import EvaluationSet, check_apart, evaluation_sets, rows_digest
from hfcf.training.data import load_rows
from hfcf.training.loop import Hyperparameters, trained_model
from hfcf.training.verifier import of_labels, predict, scores, train_verifier

log = logging.getLogger(__name__)

VERSION = "1"
"""Raise it when the same recipe gives other numbers: it is part of every cell's key."""
READY = "scored"
"""The file beside a verifier that is whole."""


@dataclass(frozen=True)
class Comparison:
    """What a recipe says, loaded. `sample` is the size and the seed of the sub-sample that its rows are, if they are one."""

    name: str
    arms: Sequence[Arm]
    seeds: Sequence[int]
    hp: Hyperparameters
    rows: Dataset
    originals: Dataset
    take: int | None
    sets: Sequence[EvaluationSet]
    encoder: Model
    cells: Cells
    labels: Sequence[str] = LABELS[:2]
    sample: tuple[int, int] | None = None

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What the verifiers of all arms depend on; hashing the rows takes its time."""
        hp = {key: value for key, value in asdict(self.hp).items() if key not in ("seed", "model")}
        ways: dict[str, Any] = {"ways": len(self.labels)} if len(self.labels) > 2 else {}
        return {"version": VERSION, "hp": hp, "model": self.hp.model.key(), "rows": rows_digest(self.originals), **ways}

    @cached_property
    def _known_of_systems(self) -> dict[str, Any]:
        """What the counterfactuals of all arms depend on: those that repeat an evaluation row are left out."""
        return {"fitted on": rows_digest(self.rows), "apart from": sorted(one.ids for one in self.sets)}

    @cached_property
    def _groups(self) -> str:
        return digest(list(zip(self.originals["corpus"], self.originals["group_id"], strict=True)))

    @cached_property
    def evaluated(self) -> Dataset:
        """All evaluation rows."""
        return concatenate_datasets([one.rows for one in self.sets])

    def which(self) -> dict[str, int]:
        """What a cell says of its sample."""
        return dict(zip(("size", "sample"), self.sample, strict=True)) if self.sample else {}

    def definition(self, arm: Arm, seed: int) -> dict[str, Any]:
        """Everything that a trained verifier depends on."""
        # Biased models and contrasts keep rows of a group together; other trainings do not know of groups.
        groups = {"groups": self._groups} if arm.debias and arm.debias.kind != "reweight" else {}
        systems = self._known_of_systems if arm.system else {}
        return {**self._known, "seed": seed, **systems, **groups, **arm.definition()}


def open_comparison(recipe: Mapping[str, Any], results: Path, *, full: bool) -> Comparison:
    """Load the rows, and name the cells, of a comparison recipe.

    Raises:
        RecipeError: an unknown key.
    """
    hp = hyperparameters(recipe["verifier"], "verifier")
    found = arms(recipe)
    check_arms(recipe, found)
    train = {**recipe["train"], **({"split": recipe["split"]} if recipe.get("split") else {})}
    if recipe.get("ways", 2) not in (2, 3):
        raise recipes.RecipeError(f"ways: {recipe['ways']!r}: 2, or 3 with NOT ENOUGH INFO")
    labels = LABELS[: recipe.get("ways", 2)]
    rows = of_labels(load_rows([recipes.located(train, recipe.get("data_dir"))], training=True), labels)
    take = None if full else recipe.get("take")
    originals = rows if take is None else rows.select(range(min(take, len(rows))))
    sets = evaluation_sets(
        recipe["evaluate"], recipe.get("data_dir"), originals, None if full else recipe.get("evaluate_take"), labels
    )
    return Comparison(
        name=recipe["name"], arms=found, seeds=recipe["seeds"], hp=hp, rows=rows, originals=originals, take=take, sets=sets,
        encoder=Model.of(recipe["encoder"]), cells=Cells(results / recipe["name"]), labels=labels,
    )  # fmt: skip


def hyperparameters(given: Mapping[str, Any], where: str) -> Hyperparameters:
    """How a recipe trains what it compares; the seeds are its own.

    >>> hyperparameters({"epochs": 2}, "verifier")
    Traceback (most recent call last):
    hfcf.core.recipe.RecipeError: verifier: the key 'model' is missing
    """
    recipes.check(given, [field.name for field in fields(Hyperparameters) if field.name != "seed"], where)
    if "model" not in given:
        raise recipes.RecipeError(f"{where}: the key 'model' is missing")
    return Hyperparameters(**{**given, "model": Model.of(given["model"])})


def check_arms(recipe: Mapping[str, Any], found: Sequence[Arm]) -> None:
    """Say now, not after hours, that the baseline is no method or that a model of a method is not there."""
    if recipe.get("baseline", found[0].name) not in [arm.name for arm in found]:
        raise recipes.RecipeError(f"baseline: {recipe['baseline']} is none of the methods {', '.join(arm.name for arm in found)}")
    for arm in found:
        try:
            arm.definition()
        except OSError as error:
            raise recipes.RecipeError(f"{arm.name}: a model cannot be read; train it first, or give another: {error}") from error


def fill(comparison: Comparison, work: Path) -> None:
    """Compute the cells that are missing; several processes may share the work, each (method, seed) is one's.

    Args:
        comparison: from `open_comparison`.
        work: a folder for verifiers that are in training.
    """
    for seed in comparison.seeds:
        for arm in comparison.arms:
            if not _missing(comparison, arm, seed):
                continue
            folder = folder_of(comparison, arm, seed, work)
            with alone(work / f"{folder.name}.lock") as free:
                if free and (missing := _missing(comparison, arm, seed)):
                    _train_and_score(comparison, arm, seed, missing, folder)


def read(comparison: Comparison) -> list[dict[str, Any]]:
    """The finished cells, in the order of the recipe.

    What a corpus or a method is called, and what the paper counts, may have been corrected since a cell was stored.
    """
    found = []
    for arm, seed, one in itertools.product(comparison.arms, comparison.seeds, comparison.sets):
        if (cell := comparison.cells.get(*_key(comparison, arm, seed, one))) is not None:
            found.append({**cell, **one.about(), "method": arm.name, "recipe": comparison.name})
    return found


def counterfactuals(comparison: Comparison, arm: Arm, work: Path) -> Dataset | None:
    """The rows that the arm's system was run on, with its columns; None for an arm without one."""
    if arm.system is None:
        return None
    work.mkdir(parents=True, exist_ok=True)
    # Two processes would do the same work; the second finds it in the caches.
    with FileLock(work / f"{digest(arm.definition()['stages'])}.lock"):
        return made(arm, comparison.rows, comparison.take)


def _key(comparison: Comparison, arm: Arm, seed: int, one: EvaluationSet) -> tuple[list[Any], dict[str, Any]]:
    of_sample = ["{} rows sample {}".format(*comparison.sample)] if comparison.sample else []
    return [arm.name, *of_sample, seed, one.name], {**comparison.definition(arm, seed), "ids": one.ids}


def _missing(comparison: Comparison, arm: Arm, seed: int) -> list[EvaluationSet]:
    return [one for one in comparison.sets if comparison.cells.get(*_key(comparison, arm, seed, one)) is None]


def folder_of(comparison: Comparison, arm: Arm, seed: int, work: Path) -> Path:
    """Where the verifier of an arm and a seed is trained: an interrupted training goes on only as what it was."""
    return work / f"{slug(arm.name)}-{seed}-{digest(comparison.definition(arm, seed))}"


def _train_and_score(comparison: Comparison, arm: Arm, seed: int, missing: Sequence[EvaluationSet], folder: Path) -> None:
    log.info("%s, seed %d", arm.name, seed)
    made_rows = counterfactuals(comparison, arm, folder.parent)
    rows, repeats = training_rows(arm, comparison.originals, made_rows, comparison.evaluated)
    check_apart(comparison.sets, rows)
    hp = replace(comparison.hp, seed=seed)
    start, cpu = time.perf_counter(), time.process_time()
    train_verifier(rows, hp, folder, labels=comparison.labels, debias=arm.debias)
    training = time.perf_counter() - start, time.process_time() - cpu
    engine = Classifier(model=trained_model(hp, folder), max_length=hp.max_length)
    for one in missing:
        start, cpu = time.perf_counter(), time.process_time()
        predicted = [choose(answer, comparison.labels) for answer in predict(one.rows, engine)]
        seconds = [time.perf_counter() - start + training[0], time.process_time() - cpu + training[1]]
        comparison.cells.put(
            *_key(comparison, arm, seed, one),
            {
                "recipe": comparison.name, "method": arm.name, "seed": seed, **comparison.which(), **one.about(),
                "train_rows": len(rows), "counterfactuals": len(rows) - len(comparison.originals),
                "counterfactuals_dropped": repeats, **scores(one.rows["label"], predicted, scored_labels(one.rows["label"])),
                "gold": _letters(one.rows["label"]), "predicted": _letters(predicted),
                "correct": "".join("01"[a == b] for a, b in zip(one.rows["label"], predicted, strict=True)),
                "seconds": round(seconds[0], 1), "cpu_seconds": round(seconds[1], 1),
            },
        )  # fmt: skip
    if arm.plain and comparison.sample is None:
        (folder / READY).touch()  # it says later which counterfactuals flip
    else:
        shutil.rmtree(folder)


def scored_labels(gold: Iterable[str]) -> list[str]:
    """The labels that macro-F1 is the mean over: SUPPORTS and REFUTES, and NOT ENOUGH INFO where rows have it.

    >>> scored_labels(["REFUTES", "REFUTES"])
    ['SUPPORTS', 'REFUTES']
    """
    return [*LABELS[:2], *([NOT_ENOUGH_INFO] if NOT_ENOUGH_INFO in set(gold) else [])]


def _letters(labels: Sequence[str]) -> str:
    return "".join(label[0] for label in labels)


@contextmanager
def alone(lock: Path) -> Iterator[bool]:
    """Whether nobody else holds the lock, which is held meanwhile."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield True
    except Timeout:
        yield False
