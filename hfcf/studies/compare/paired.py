"""The paired sets of a comparison: the rows of an evaluation set, with what they are paired with."""

from __future__ import annotations

import logging
from typing import Any

from datasets import Dataset, Features

from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.core.expand import expand
from hfcf.core.pairs import pair, pair_within
from hfcf.core.recipe import RecipeError
from hfcf.core.task import task_of
from hfcf.pipeline.run import make_system
from hfcf.studies.compare.recipe import Evaluation, Pairs
from hfcf.studies.human.clean import rated_correct
from hfcf.studies.human.sets import read_rows
from hfcf.systems import system_class
from hfcf.training.data import load_rows

log = logging.getLogger(__name__)


def load_pairs(rows: Dataset, source: Evaluation, data_dir: str | None, where: str) -> tuple[Dataset, bool | None]:
    """Pair the rows of an evaluation set as its recipe says."""
    assert source.pairs is not None
    how, cleaned = source.pairs, None
    try:
        if how.within is not None:
            pairs = pair_within(rows, how.within)
        elif how.run is not None:
            pairs, cleaned = pair(read_counterfactuals(rows, how.run, how.ratings), rows), how.ratings is not None
        elif how.system is not None:
            pairs, cleaned = pair(make_counterfactuals(rows, how, data_dir), rows), False
        else:
            of = recipes.locate({**source.source, **(how.originals or {})}, data_dir)
            by = how.by or ""
            pairs = pair(rows, load_rows([of], extra=None), by if isinstance(by, str) else (by[0], by[1]))
    except (ValueError, OSError) as error:
        raise RecipeError(f"{where}: {error}") from error
    if not len(pairs):
        raise RecipeError(f"{where}: there are no pairs")
    return pairs, cleaned


def make_counterfactuals(originals: Dataset, how: Pairs, data_dir: str | None) -> Dataset:
    """Run a system on some originals; the request cache keeps what its models answer."""
    assert how.system is not None
    task, settings = task_of(originals.features), system_class(how.system).locate(how.settings or {}, data_dir)
    system = make_system(how.system, preset=how.preset or "paper", settings=settings, task=task.system_task)
    return expand(system(originals))


def read_counterfactuals(originals: Dataset, run: str, ratings: str | None) -> Dataset:
    """Read a run's counterfactuals of some originals."""
    task, ids = task_of(originals.features), set(originals["id"])
    features = Features({**task.features, **{name: schema.PROVENANCE[name] for name in ("source_id", "change")}})
    made: list[dict[str, Any]] = [{name: row[name] for name in features} for row in read_rows(run)]
    of_these = [row for row in made if row["source_id"] in ids]
    log.info("%s: %d of its %d counterfactuals are of the set's rows", run, len(of_these), len(made))
    if ratings is not None:
        correct = rated_correct(ratings)
        of_these = [row for row in of_these if row["id"] in correct]
    return Dataset.from_list(of_these, features=features) if of_these else schema.no_rows(features)
