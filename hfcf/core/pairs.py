"""Paired sets: each row is a counterfactual with its original row in the column `source`, so that the two never get separated."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from datasets import Dataset, Features

from hfcf.core import schema
from hfcf.core.columns import iterate, with_label_names
from hfcf.core.expand import is_sound
from hfcf.core.schema import TEXT, why_unread
from hfcf.core.task import Row, Task, task_of
from hfcf.text.normalise import normalise

log = logging.getLogger(__name__)

SOURCE = "source"
"""The column of a paired set that holds the original row, in the task's columns."""
PAIR_FORMATS: Mapping[str, tuple[str, ...]] = {
    "triplet": ("anchor", "positive", "negative"),
    "preference": ("prompt", "chosen", "rejected"),
}
"""The formats, each with its columns in order: sentence-transformers reads columns by position."""
_TRIES = 20
"""How many originals of a label are drawn before the label counts as having no different text."""
Texts = tuple[str, ...]


def pair(
    counterfactuals: Dataset, originals: Dataset, on: str | tuple[str, str] = "source_id", *, pair_format: str | None = None,
    seed: int = 13,
) -> Dataset:  # fmt: skip
    """Join each counterfactual with its original.

    Source: Paranjape et al. 2022, RGF, section 6.1. Quoref's contrast set pairs a perturbed question with the original that it
        names: `on="original_id"`. The output of a system, `hfcf.expand(ds)`, names the original in `source_id`. AdversarialQA names
        no original. There the paper draws "an original question q and a generated question q′ from the same passage":
        `on=("context", "context")`. The paper does not say how many it draws. Here each q′ comes once, with an original that its id
        and the seed draw.

    Args:
        counterfactuals: rows of a task.
        originals: rows of the same task.
        on: the column of the counterfactuals that has the originals' `id`. Or a column of each side, whose texts are equal except
            for case, spaces and punctuation.
        pair_format: "triplet" gives the columns `anchor`, `positive` and `negative`, which sentence-transformers reads.
            "preference" gives `prompt`, `chosen` and `rejected`, which TRL's `DPOTrainer` reads, in one row for the counterfactual
            and one for its original. The task decides what each text is: see docs/how-to/publish.md#triplets-and-preference-pairs.
        seed: which original is drawn where several match.

    Returns:
        The rows of `counterfactuals` in order, with the column `source` and labels as names; with a pair format, only its
        columns. With a pair of columns, a counterfactual without a match is left out. If one of the two rows can't be read, the
        column `status` says why, and `hfcf.consistency` leaves the pair out. With a pair format, a counterfactual without a sound
        row is left out, and a warning counts such rows with the reasons.

    Raises:
        ValueError: a column does not exist, the two sets are of different tasks, a counterfactual's original does not exist, or
            `pair_format` is unknown.

    >>> old = {"id": "1", "claim": "Rome is old.", "evidence": [], "label": "SUPPORTS"}
    >>> new = {**old, "id": "2", "claim": "Rome is new.", "label": "REFUTES", "original_id": "1"}
    >>> pair(Dataset.from_list([new]), Dataset.from_list([old]), "original_id")[0]["source"]["claim"]
    'Rome is old.'
    """
    if pair_format not in (None, *PAIR_FORMATS):
        raise ValueError(f"pair_format must be one of {', '.join(PAIR_FORMATS)}, got {pair_format!r}")
    counterfactuals, originals = with_label_names(counterfactuals), with_label_names(originals)
    by_id = isinstance(on, str)
    left, right = (on, "id") if isinstance(on, str) else on
    _check(counterfactuals, left, "counterfactuals")
    _check(originals, right, "originals")
    task, other = task_of(counterfactuals.features), task_of(originals.features)
    if task is not other:
        raise ValueError(f"pairs: the counterfactuals are {task.name} rows, and the originals are {other.name} rows")
    key_of = str if by_id else normalise
    places: dict[str, list[int]] = {}
    for i, value in enumerate(originals[right]):
        places.setdefault("" if value is None else key_of(value), []).append(i)
    if by_id and (twice := [name for name, here in places.items() if len(here) > 1]):
        raise ValueError(f"pairs: {len(twice)} ids of the originals are there more than once, the first: {twice[0]!r}")
    chosen: list[tuple[int, int]] = []
    for i, (row_id, value) in enumerate(zip(counterfactuals["id"], counterfactuals[left], strict=True)):
        here = [] if value in (None, "") else places.get(key_of(value), [])
        if here:
            chosen.append((i, random.Random(f"{seed}:pairs:{row_id}").choice(here)))
        elif by_id:
            raise ValueError(_say_missing(task, counterfactuals[i], left, originals))
    if by_id and "edits" in counterfactuals.features:
        for i, j in chosen:
            check_source(task, originals[j], counterfactuals[i], "pairs: ")
    joined = _join(counterfactuals.select([i for i, _ in chosen]), originals.select([j for _, j in chosen]))
    return joined if pair_format is None else _in_pair_format(joined, originals, pair_format, seed)


def _say_missing(task: Task, row: Mapping[str, Any], left: str, originals: Dataset) -> str:
    """Say why a counterfactual's original is not found by its id: the same row has another id, or there is none."""
    what = f"pairs: row {row['id']!r}: its {left} is {row[left]!r}, which is not an id of the originals"
    try:
        texts: dict[str, Any] = task.revert_edits(row, row["edits"]) if row.get("edits") else {}
    except ValueError:
        texts = {}
    same = next(
        (own for own in originals if texts and all(_plain(own[name]) == _plain(text) for name, text in texts.items())), None
    )
    if same is not None:
        return (
            f"{what}. The original {same['id']!r} has the texts of its source: the same rows were read with other ids. Read them "
            "as for the run, with the same id and numbered settings, or pass the originals that the run wrote (configuration "
            "augmented)"
        )
    first = f", such as {originals[0]['id']!r}" if len(originals) else ", which are none"
    return f"{what}{first}. Pass the set from which it was made, or select the rows whose originals you have"


def check_source(task: Task, source: Mapping[str, Any], row: Mapping[str, Any], where: str = "") -> None:
    """Raise `ValueError` unless a counterfactual's edits lead back to the texts of its source; two sets may use the same ids.

    A counterfactual whose edits are null does not describe its source and passes.
    """
    if row["edits"] is None:
        return
    try:
        texts = task.revert_edits(row, row["edits"])
    except ValueError:
        texts = {}
    if not texts or any(_plain(text) != _plain(source[name]) for name, text in texts.items()):
        raise ValueError(
            f"{where}the counterfactual {row['id']!r} was not made from the row {source['id']!r}, which has different texts: "
            "pass the rows from which it was made"
        )


def _plain(value: Any) -> Any:
    """Return a value with null for empty texts and lists."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value or None


def pair_within(rows: Dataset, by: str | Sequence[str], *, seed: int = 13) -> Dataset:
    """Draw two rows of each group: one becomes the original, the other row becomes the counterfactual.

    Source: Paranjape et al. 2022, RGF, section 6.1: "For AmbigQA, we pair two disambiguated questions". The paper does not say
        which two of several questions it pairs, nor which of them is the original. Here the group's name and the seed draw both.

    Args:
        rows: rows of a task.
        by: the column, or columns, whose value the rows of a group share, such as the ambiguous question. A row that lacks a value
            is in no group: for AmbigQA, `by=("group_id", "annotation")` leaves out questions that are not ambiguous.
        seed: of the draw.

    Returns:
        A row for each group that has at least two different rows, in the order of the groups, with the column `source`.

    Raises:
        ValueError: the column does not exist.

    >>> row = {"claim": "Rome is old.", "evidence": [], "label": "SUPPORTS"}
    >>> ds = Dataset.from_list([{**row, "id": name, "case": name[0]} for name in ("a1", "a2", "b1")])
    >>> pairs = pair_within(ds, "case")
    >>> len(pairs), sorted([pairs[0]["id"], pairs[0]["source"]["id"]])
    (1, ['a1', 'a2'])
    """
    columns, rows = [by] if isinstance(by, str) else list(by), with_label_names(rows)
    for column in columns:
        _check(rows, column, "rows")
    groups: dict[Any, list[int]] = {}
    for i, names in enumerate(zip(*(rows[column] for column in columns), strict=True)):
        if all(name not in (None, "") for name in names):
            groups.setdefault(":".join(map(str, names)), []).append(i)
    drawn = [random.Random(f"{seed}:pairs:{name}").sample(places, 2) for name, places in groups.items() if len(places) > 1]
    return _join(rows.select([original for original, _ in drawn]), rows.select([changed for _, changed in drawn]))


def is_paired(ds: Dataset) -> bool:
    """Return whether each row of a set is joined with its original."""
    return SOURCE in ds.features


def sources(pairs: Dataset) -> Dataset:
    """Return the originals of a paired set, one for each of its rows, in the task's columns."""
    if not is_paired(pairs):
        raise ValueError(f"the set is not paired, it has no column {SOURCE!r}: make it by hfcf.pair(counterfactuals, originals)")
    features = Features(pairs.features[SOURCE])
    rows = Dataset.from_list(pairs[SOURCE][:], features=features) if len(pairs) else schema.no_rows(features)
    return with_label_names(rows)


def _check(ds: Dataset, column: str, name: str) -> None:
    if column not in ds.features:
        raise ValueError(f"pairs: the {name} have no column {column!r}; they have {', '.join(ds.column_names)}")


def _join(counterfactuals: Dataset, originals: Dataset) -> Dataset:
    # A column that both sides have belongs to their rows. A system made the other columns, except columns of further right answers.
    task, shared = task_of(originals.features), {*counterfactuals.features} - {SOURCE, "status"}
    own_columns = {*task.features, *task.answer_columns}
    columns = [name for name in originals.features if name in own_columns or name in shared]
    rows: Sequence[Mapping[str, Any]] = originals.select_columns(columns).to_list()
    features = Features({name: originals.features[name] for name in columns})
    kept = counterfactuals.remove_columns([SOURCE]) if SOURCE in counterfactuals.features else counterfactuals
    theirs = originals["status"][:] if "status" in originals.features else []
    if any(map(why_unread, theirs)):
        own = kept["status"][:] if "status" in kept.features else [None] * len(kept)
        kept = kept.remove_columns(["status"]) if "status" in kept.features else kept
        statuses = [mine or (status if why_unread(status) else None) for mine, status in zip(own, theirs, strict=True)]
        kept = kept.add_column("status", statuses, feature=schema.STATUS)
    return kept.add_column(SOURCE, list(rows), feature=dict(features))


def _in_pair_format(pairs: Dataset, originals: Dataset, pair_format: str, seed: int) -> Dataset:
    """Return only the texts of a paired set, each row once; how many counterfactuals give no row is logged, with the reasons."""
    task, rows, reasons = task_of(originals.features), dict[Texts, None](), Counter[str]()
    make = _Triplets(task, originals, seed) if pair_format == "triplet" else partial(_preferences, task)
    answer_key: Callable[[str], str] = str if task.labelled else normalise
    for row in iterate(pairs, pairs.column_names):
        source = row["source"]
        unread = why_unread(row.get("status"))
        before, after = ({answer_key(answer) for answer in task.right_answers(one)} for one in (source, row))
        try:
            if unread:
                raise ValueError(unread)
            if not before or not after:
                raise ValueError(f"one of the two has no {task.outcome_name}")
            if before & after:
                raise ValueError(f"the {task.outcome_name} stays")
            rows |= dict.fromkeys(make(source, row))
        except ValueError as error:
            reasons[str(error)] += 1
    if reasons:
        counts = "; ".join(f"{n} because {reason}" for reason, n in reasons.most_common())
        log.warning("%d of %d counterfactuals give no %s: %s", reasons.total(), len(pairs), pair_format, counts)
    features = Features(dict.fromkeys(PAIR_FORMATS[pair_format], TEXT))
    columns = zip(*rows, strict=True) if rows else [()] * len(features)
    return Dataset.from_dict(dict(zip(features, map(list, columns), strict=True)), features=features)


def _preferences(task: Task, source: Row, row: Row) -> Iterator[Texts]:
    """Yield one row for the counterfactual and one for its source: the right answer to each is the wrong answer to the other
    row."""
    for one, other in ((row, source), (source, row)):
        yield task.prompt(one), f" {task.right_answers(one)[0]}", f" {task.right_answers(other)[0]}"


class _Triplets:
    """Makes the triplet of a pair; draws originals of a label."""

    def __init__(self, task: Task, originals: Dataset, seed: int) -> None:
        self.task, self.originals, self.seed = task, originals, seed
        self.places: dict[Any, list[int]] = {}
        if task.labelled:
            for i, label in enumerate(originals["label"]):
                self.places.setdefault(label, []).append(i)

    def __call__(self, source: Row, row: Row) -> Iterator[Texts]:
        triplet = self.task.triplet(source, row, partial(self._draw, source, row))
        if len(set(map(normalise, triplet))) < len(triplet):
            raise ValueError("two of its texts are the same")
        yield triplet

    def _draw(self, source: Row, row: Row) -> Row | None:
        """Draw another original of the source's label, from another group and with different texts."""
        places, draw = self.places.get(source["label"], []), random.Random(f"{self.seed}:triplet:{row['id']}")
        texts = {normalise(self.task.as_text(one)) for one in (source, row)}
        for i in draw.sample(places, min(_TRIES, len(places))):
            other: Row = self.originals[i]
            alone = other["id"] != source["id"] and (other.get("group_id") or other["id"]) != source.get("group_id")
            if alone and is_sound({"status": None, **other}) and normalise(self.task.as_text(other)) not in texts:
                return other
        return None
