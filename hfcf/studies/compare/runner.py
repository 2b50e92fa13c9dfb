"""Method × sample × seed × evaluation set: one model for each method, sample of training rows and seed, scored on every set."""

from __future__ import annotations

import json
import logging
import math
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

from datasets import Dataset, load_from_disk
from filelock import FileLock, Timeout

from hfcf.core.progress import time_left
from hfcf.core.trainer import Scorer
from hfcf.studies.compare.age import UNKNOWN, VERSION, age
from hfcf.studies.compare.comparison import Comparison, Place
from hfcf.studies.compare.frame import Grid, make_grid
from hfcf.studies.compare.methods import Method
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.samples import Sample
from hfcf.studies.compare.sets import EvaluationSet, check_no_overlap
from hfcf.studies.compare.training_sets import training_rows
from hfcf.training.consistency import PairScorer
from hfcf.training.trainer import trained_model

log = logging.getLogger(__name__)

READY = "scored"
"""The file in the folder of a model whose training is complete."""


def fill(comparison: Comparison, work: Path) -> None:
    """Compute the requested cells that are missing; several processes may share the work, one for each training."""
    for training in missing_trainings(comparison):
        method, sample, seed, _ = comparison.places[training[0]]
        folder = comparison.folder(method, sample, seed, work)
        with try_lock(folder.with_suffix(".lock")) as free:
            places = [place for place in training if not comparison.finished(place)]
            if free and places:
                log.info("%s", _describe(comparison, places))
                missing = [comparison.places[place][3] for place in places]
                _train_and_score(comparison, method, sample, seed, missing, folder)


def missing_trainings(comparison: Comparison) -> list[list[Place]]:
    """Group the requested cells that are not finished by the model that they share, in the order of the first of each."""
    groups: dict[tuple[str, int, int], list[Place]] = {}
    for place in comparison.requested:
        if not comparison.finished(place):
            groups.setdefault(_training_of(comparison, place), []).append(place)
    return list(groups.values())


def _training_of(comparison: Comparison, place: Place) -> tuple[str, int, int]:
    method, sample, seed, _ = comparison.places[place]
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
    names = [training[0][0] for training in trainings]
    return sum(mean(by_method.get(name) or list(known.values())) for name in names)


def _describe(comparison: Comparison, places: Sequence[Place]) -> str:
    """Say which cells are computed now, and how long they and the rest take."""
    method, sample, seed, test_set = comparison.places[places[0]]
    trainings = missing_trainings(comparison)
    first = len(comparison.requested) - sum(map(len, trainings)) + 1
    cells = f"cell {first}" if len(places) == 1 else f"cells {first} to {first + len(places) - 1}"
    seconds = seconds_left(comparison, trainings)
    left = "" if seconds is None else f", {time_left(seconds)}"
    rows = test_set.name if comparison.columns else f"{len(sample.train)} rows"
    return f"{cells} of {len(comparison.requested)}{left}: {method.name}, {rows}, seed {seed}"


def read(comparison: Comparison, *, older: bool = False) -> list[dict[str, Any]]:
    """Read the finished cells of the table, requested or not.

    A cell's key holds versions, so a cell that is found is of today's, unless it says otherwise. With `older`, the last cell of
    other versions is taken where a cell is missing; its `age` names the versions.

    What a corpus or a method is called, and what the paper counts, may have been corrected since a cell was stored.
    """
    cells, others = [], older_cells(comparison) if older else {}
    for place, (method, _, _, test_set) in comparison.places.items():
        if (cell := comparison.cells.get(comparison.key(place)) or others.get(place)) is not None:
            if place in others or "versions" in cell:
                said = age(cell.get("versions"), comparison.versions(place))
                cell = {**cell, "age": said or UNKNOWN if place in others else said}
            about = (
                test_set.about if "gold" in cell else {"corpus": test_set.name, "setting": test_set.setting, "ids": test_set.ids}
            )
            cells.append({**cell, **about, "method": method.name, "seed": place[1], "recipe": comparison.name})
    return cells


def older_cells(comparison: Comparison) -> dict[Place, dict[str, Any]]:
    """Return the last cell of other versions of each place that has none of today's.

    Cells that have their versions are of the same settings. For the remaining cells neither versions nor settings are known.
    """
    last: dict[Any, dict[str, Any]] = {}
    for cell in comparison.cells.every():
        if "corpus" in cell:
            about = tuple(cell.get(part) for part in ("method", "seed", "size", "sample", "corpus", "ids"))
            last[cell.get("settings") or about] = cell
    found: dict[Place, dict[str, Any]] = {}
    if not last:
        return found
    for place, (method, sample, seed, test_set) in comparison.places.items():
        if not comparison.finished(place):
            about = (method.name, seed, *(sample.number or (None, None)), test_set.name, test_set.ids)
            if old := last.get(comparison.settings(place)) or last.get(about):
                found[place] = old
    return found


def arrange(comparison: Comparison, cells: Sequence[dict[str, Any]], corpora: dict[str, str] | None = None) -> Grid:
    """Put cells in the order of the recipe; `corpora` has the settings of the sets of the table, if not all are in it."""
    corpora = {test_set.name: test_set.setting for test_set in comparison.sets} if corpora is None else corpora
    seeds = dict.fromkeys(sample.seed(seed) for sample in comparison.samples for seed in comparison.seeds)
    # Columns that share their test rows are not independent corpora, so they have no average.
    alone = corpora if comparison.columns else [test_set.name for test_set in comparison.sets if not test_set.averaged]
    methods = [method.name for method in comparison.methods]
    sources = {test_set.name: test_set.source_ids for test_set in comparison.sets if test_set.sources is not None}
    grid = make_grid(cells, comparison.baseline, methods, list(seeds), corpora, alone, comparison.scorer)
    return replace(grid, sources=sources)


def counterfactuals(comparison: Comparison, method: Method, sample: Sample, work: Path) -> tuple[Dataset | None, float]:
    """Return what the method's system makes of the training rows, its columns included, and the CPU seconds that it took.

    It is stored in `work` for other seeds and processes. A method without a system has none.
    """
    if method.system is None:
        return None, 0.0
    folder = work / "made" / digest([VERSION, sample.making(method), method.making])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # two processes would do the same work
        if not folder.is_dir():
            start = time.process_time()
            rows = make_rows(method, sample.train)
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            rows.save_to_disk(str(part))
            (part / "seconds.json").write_text(json.dumps(round(time.process_time() - start, 1)), encoding="utf-8")
            part.rename(folder)
        rows = load_from_disk(str(folder))
        return rows, json.loads((folder / "seconds.json").read_text(encoding="utf-8"))


def make_rows(method: Method, rows: Dataset) -> Dataset:
    """Run the method's system on the training rows, fitted on them alone. Methods that share stages share their model calls."""
    assert method.system is not None
    result: Dataset = method.system(rows)
    return result


def _train_and_score(
    comparison: Comparison, method: Method, sample: Sample, seed: int, missing: Sequence[EvaluationSet], folder: Path
) -> None:
    with_counterfactuals, making = counterfactuals(comparison, method, sample, folder.parent)
    rows, dropped = training_rows(
        method, sample.train, with_counterfactuals, sample.scored, sample.pool if method.judged else None, sample.labels
    )
    added = 0 if method.more else len(rows) - len(sample.train)
    about = {
        "recipe": comparison.name, "method": method.name, "seed": seed, **sample.about, "train_rows": len(rows),
        "counterfactuals": added, "counterfactuals_dropped": dropped, "ratio": round(added / len(sample.train), 4),
        "making_cpu_seconds": making,
    }  # fmt: skip

    def put(test_set: EvaluationSet, content: dict[str, Any]) -> None:
        place = (method.name, sample.seed(seed), test_set.name)
        made = {"versions": comparison.versions(place), "settings": comparison.settings(place), "date": date.today().isoformat()}
        comparison.cells.put(comparison.key(place), {**about, **made, "corpus": test_set.name, "ids": test_set.ids, **content})

    if comparison.columns and method.system and not added:  # nothing to train on that the baseline is not trained on
        for test_set in missing:
            put(test_set, {"empty": True})
        return
    if not comparison.columns:
        check_no_overlap(sample.sets, rows)
    start, cpu = time.perf_counter(), time.process_time()
    hp = replace(sample.hp, seed=seed)
    best = comparison.trainer.train(rows, hp, folder, labels=sample.labels, dev=sample.dev, debias=method.debias)

    def answer(part: Dataset) -> list[Any]:
        return comparison.trainer.predict(part, trained_model(hp, folder), max_length=hp.max_length, labels=sample.labels)

    dev = None if sample.dev is None else (sample.dev, answer(sample.dev))
    training = time.perf_counter() - start, time.process_time() - cpu
    for test_set in missing:
        start, cpu = time.perf_counter(), time.process_time()
        predicted = answer(test_set.rows)
        letters = comparison.letters(sample, *(dev[:1] if dev else ()), *test_set.scored)
        scored = {**score(comparison.scorer, test_set.rows, predicted, letters), "seen": test_set.repeated, "best_epoch": best}
        content = {name: value for name, value in scored.items() if value is not None}
        if test_set.sources is not None:
            originals = {
                "rows": len(test_set.sources),
                "ids": test_set.ids,
                **score(comparison.scorer, test_set.sources, answer(test_set.sources), letters),
            }
            content |= {"sources": originals, **pair_scores(comparison.scorer, content, originals)}
        if dev:
            about_dev = {"rows": len(dev[0]), "ids": sample.definition["dev"]}
            content["dev"] = {**about_dev, **score(comparison.scorer, *dev, letters)}
        seconds = [time.perf_counter() - start + training[0], time.process_time() - cpu + training[1]]
        put(test_set, {**content, "seconds": round(seconds[0], 1), "cpu_seconds": round(seconds[1], 1)})
    if method.plain and not comparison.columns and not sample.number:
        (folder / READY).touch()  # intrinsic scores ask it which counterfactuals flip
    else:
        shutil.rmtree(folder)


def score(scorer: Scorer, rows: Dataset, predicted: Sequence[Any], letters: dict[str, str] | None) -> dict[str, Any]:
    """Return the scores of answers, and the answers: a letter for each row, or as they are."""
    gold = scorer.gold(rows)
    scores = scorer.scores(gold, predicted)
    if letters is None:
        return {**scores, "gold": gold, "predicted": list(predicted)}
    texts = {name: "".join(letters[label] for label in said) for name, said in (("gold", gold), ("predicted", predicted))}
    return {**scores, **texts, "letters": letters}


def answer_pairs(cell: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, list[list[Any]]]:
    """Return the true and the predicted answers of the pairs of a cell, each to the original and to the counterfactual."""
    return {name: [list(pair) for pair in zip(sources[name], cell[name], strict=True)] for name in ("gold", "predicted")}


def pair_scores(scorer: Scorer, cell: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of pairs, without scores that have no value: the consistency of a model that is right on no original."""
    scores = PairScorer(scorer).scores(**answer_pairs(cell, sources))
    return {name: value for name, value in scores.items() if not math.isnan(value)}


@contextmanager
def try_lock(lock: Path) -> Iterator[bool]:
    """Hold a lock; yield False if another process holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield True
    except Timeout:
        yield False
