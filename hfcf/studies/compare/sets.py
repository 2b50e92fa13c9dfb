"""What a comparison is evaluated on: named rows, the same for every method."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from datasets import Dataset, Features

from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.core.expand import expand
from hfcf.core.pairs import is_paired, pair, pair_within
from hfcf.core.pairs import sources as sources_of
from hfcf.core.recipe import RecipeError, check_distinct
from hfcf.core.schema import COMMON
from hfcf.core.task import task_of
from hfcf.corpora import corpus_name
from hfcf.corpora.custom.source import read_rows
from hfcf.metrics.scores.consistency import strata_of
from hfcf.pipeline.run import make_system
from hfcf.studies.compare.contamination import MethodModel, Overlap, count_overlap, mark_seen, unseen_rows
from hfcf.studies.compare.recipe import EvaluationSource, Pairs, SecondModels
from hfcf.studies.compare.results import digest
from hfcf.studies.human.ratings import is_as_rated, rated_correct
from hfcf.systems import system_class
from hfcf.training.data import drop_related, load_rows, unrelated
from hfcf.training.verifier import of_labels

log = logging.getLogger(__name__)

NOT_CLEANED = "not cleaned"
"""The value for pairs that a system made: nobody has sorted out the bad pairs."""


@dataclass(frozen=True)
class EvaluationSet:
    """The rows of one corpus, or of one column.

    Args:
        name: in the tables.
        setting: "in-domain", "out-of-domain" or "challenge" (RACE, section 4).
        rows: what is evaluated; of a paired set the counterfactuals, with their originals.
        available: how many rows there are before any is left out.
        removed: how many share a group or a text with training rows and were left out.
        repeated: how many rows repeat a training row and were not left out.
        averaged: whether it counts in the averages over sets; a set whose rows are in another set should not.
        order: its position in the recipe.
        cleaned: for pairs that a system made, by whom the bad pairs were sorted out, or `NOT_CLEANED`.
        overlap: how many of its rows the models of the methods have seen; None where nobody looked.
        ask: settings of the trainer when a model is asked.
        reader: the second models, which read what the first ones write.
    """

    name: str
    setting: str
    rows: Dataset
    available: int = 0
    removed: int = 0
    repeated: int = 0
    averaged: bool = True
    order: int = 0
    cleaned: str | None = None
    overlap: Overlap | None = None
    ask: Mapping[str, Any] = field(default_factory=dict)
    reader: SecondModels | None = None

    @cached_property
    def ids(self) -> str:
        """A hash of which rows the set has, and of what is in them."""
        of_rows = rows_digest(self.rows)
        names = task_of(self.rows.features).answer_columns
        if self.sources is None:
            own = {name: self.rows[name][:] for name in names if name in self.rows.features}
            return digest([of_rows, own]) if own else of_rows
        names = tuple(name for name in names if name in self.sources.features)
        alone = {name: self.sources[name][:] for name in names if name not in self.rows.features}  # else pairs lacked them
        return digest([of_rows, rows_digest(self.sources), alone])

    @cached_property
    def sources(self) -> Dataset | None:
        """The original of each row, of a paired set."""
        return sources_of(self.rows) if is_paired(self.rows) else None

    @property
    def scored(self) -> list[Dataset]:
        """All rows that models are scored on."""
        return [self.rows] if self.sources is None else [self.rows, self.sources]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What a cell says of its set."""
        labels = Counter(self.rows["label"]) if "label" in self.rows.features else {}
        return {
            "corpus": self.name, "setting": self.setting, "averaged": self.averaged, "rows": len(self.rows), "ids": self.ids,
            "labels": dict(sorted(labels.items())), "available": self.available, "removed": self.removed, "seen": self.repeated,
            "cleaned": self.cleaned,
        }  # fmt: skip

    @cached_property
    def shared(self) -> dict[str, Any]:
        """What its cells store once: of a paired set, a number for each row's source, and strata such as the kind of change."""
        if self.sources is None:
            return {}
        keys = list(zip(self.sources["corpus"], self.sources["id"], strict=True))
        numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return {"sources": [numbers[key] for key in keys], "strata": strata_of(self.rows)}


def rows_digest(rows: Dataset) -> str:
    """Return a hash of rows, their order included: of what is their task's own, not of their groups and splits."""
    return digest(rows.select_columns([name for name in task_of(rows.features).features if name not in COMMON]).to_list())


def load_sets(
    sources: Sequence[EvaluationSource], data_dir: str | None, training: Dataset, take: int | None, labels: Sequence[str],
    models: Sequence[MethodModel] = (), *, unseen: bool = True,
) -> list[EvaluationSet]:  # fmt: skip
    """Load a recipe's `evaluate`; of some corpora no row may be left.

    Rows have one of `labels`. Rows that share a group or a text with a training row are left out. So are rows that a model of a
    method was trained on. The first `take` of the remaining rows count, by a hash of name and id.
    """
    names = [source.name or corpus_name(source.corpus) for source in sources]
    check_distinct(names, "evaluate")
    sets = []
    for order, (name, source) in enumerate(zip(names, sources, strict=True)):
        rows, cleaned = load_rows([recipes.locate(source.source, data_dir)], extra=None), None
        if source.pairs:
            rows, cleaned = load_pairs(rows, source, data_dir, f"evaluate: {name}: pairs")
        rows = _of_labels(rows, labels, f"evaluate: {name}") if labels else rows
        if not len(rows):
            raise RecipeError(
                f"evaluate: {name}: no row is {' or '.join(labels)}" if labels else f"evaluate: {name}: there are no rows"
            )
        separate, marks, ids = unrelated(rows, training), mark_seen(rows, models), rows["id"]
        new = set(unseen_rows(marks, models, len(rows)) if unseen else separate)
        left = [i for i in separate if i in new]
        if not left:
            why = "overlaps with a training row" + (" or was seen by a model of a method" if separate else "")
            log.warning("%s is not evaluated on: each of its %d rows %s", name, len(rows), why)
        rank = {i: hashlib.sha256(f"{name}:{ids[i]}".encode()).hexdigest() for i in left}
        first = sorted(left, key=rank.__getitem__)[:take]
        overlap = count_overlap(name, marks, models, len(rows), first, len(separate) - len(left))
        test_set = EvaluationSet(
            name, source.setting, rows.select(first), len(rows), len(rows) - len(separate), averaged=source.averaged, order=order,
            cleaned=cleaned, overlap=overlap,
        )  # fmt: skip
        sets.append(test_set)
    return sets


def _of_labels(rows: Dataset, labels: Sequence[str], where: str) -> Dataset:
    """Select the rows of some labels; for pairs, the pairs that have them on both sides."""
    if is_paired(rows):
        rows = rows.select([i for i, label in enumerate(sources_of(rows)["label"]) if label in labels])
    return of_labels(rows, labels, where)


def check_no_overlap(sets: Sequence[EvaluationSet], training: Dataset) -> None:
    """Check that no evaluation row shares a group or a text with the training rows, counterfactuals included."""
    for test_set in sets:
        if shared := len(test_set.rows) - len(drop_related(test_set.rows, training)):
            raise ValueError(f"{shared} evaluation rows of {test_set.name} overlap with the training rows")


def load_pairs(rows: Dataset, source: EvaluationSource, data_dir: str | None, where: str) -> tuple[Dataset, str | None]:
    """Pair the rows of an evaluation set; say who cleaned the pairs, None if people wrote the pairs."""
    assert source.pairs is not None
    how, cleaned = source.pairs, None
    try:
        if how.within is not None:
            pairs = pair_within(rows, how.within)
        elif how.run is not None or how.system is not None:
            made = make_counterfactuals(rows, how, data_dir) if how.run is None else read_counterfactuals(rows, how.run)
            made, cleaned = (made, NOT_CLEANED) if how.ratings is None else keep_correct(made, how.ratings)
            pairs = pair(made, rows)
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


def read_counterfactuals(originals: Dataset, run: str) -> Dataset:
    """Read a run's counterfactuals of some originals."""
    task, ids = task_of(originals.features), set(originals["id"])
    features = Features({**task.features, **{name: schema.PROVENANCE[name] for name in ("source_id", "change", "scores")}})
    rows = ({"scores": None, **row} for row in read_rows(run))  # files of one's own may have none
    made: list[dict[str, Any]] = [{name: row[name] for name in features} for row in rows]
    of_these = [row for row in made if row["source_id"] in ids]
    log.info("%s: %d of its %d counterfactuals are of the set's rows", run, len(of_these), len(made))
    return Dataset.from_list(of_these, features=features) if of_these else schema.no_rows(features)


def keep_correct(made: Dataset, ratings: str) -> tuple[Dataset, str]:
    """Keep the counterfactuals that each rater found correct, as they read now; say who cleaned them."""
    correct = rated_correct(recipes.resolve_folder(ratings) or ratings)
    known = [i for i, row_id in enumerate(made["id"]) if row_id in correct]
    kept = [i for i in known if is_as_rated(made[i], correct[made[i]["id"]])]
    if len(kept) < len(known):
        log.warning("%s: %d rows read otherwise than when they were rated, and are left out", ratings, len(known) - len(kept))
    by = dict.fromkeys(line["by"] for line in correct.values())
    return made.select(kept), f"cleaned by {' and '.join(by)}"
