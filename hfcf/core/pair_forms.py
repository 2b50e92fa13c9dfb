"""Pairs in the columns of other libraries: triplets for sentence-transformers, preferences for TRL's `DPOTrainer`."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from datasets import Dataset, Features

from hfcf.core.columns import iterate
from hfcf.core.expand import is_sound
from hfcf.core.schema import TEXT
from hfcf.core.task import Row, Task, task_of
from hfcf.text.normalise import normalise

log = logging.getLogger(__name__)

FORMS: Mapping[str, tuple[str, ...]] = {
    "triplet": ("anchor", "positive", "negative"),
    "preference": ("prompt", "chosen", "rejected"),
}
"""The forms, each with its columns in order: sentence-transformers reads columns by position."""
_TRIES = 20
"""How many originals of a label are drawn before the label counts as having no different text."""
Texts = tuple[str, ...]


def check_form(form: str) -> None:
    """Raise `ValueError` for a form that is not in `FORMS`."""
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}")


def shape(pairs: Dataset, originals: Dataset, form: str, *, seed: int = 13) -> Dataset:
    """Turn a paired set into a form.

    Args:
        pairs: counterfactuals with their originals in `source`, labels as strings.
        originals: the rows from which a triplet's positive is drawn, where it must be a third row.
        form: a key of `FORMS`.
        seed: of the draw.

    Returns:
        Only the texts, each row once. How many counterfactuals give no such row is logged, with the reasons.
    """
    check_form(form)
    task, rows, reasons = task_of(originals.features), dict[Texts, None](), Counter[str]()
    make = _Triplets(task, originals, seed) if form == "triplet" else partial(_preferences, task)
    answer_key: Callable[[str], str] = str if task.labelled else normalise
    for row in iterate(pairs, pairs.column_names):
        source = row["source"]
        before, after = ({answer_key(answer) for answer in task.right_answers(one)} for one in (source, row))
        try:
            if not before or not after:
                raise ValueError(f"one of the two has no {task.outcome_name}")
            if before & after:
                raise ValueError(f"the {task.outcome_name} stays")
            rows |= dict.fromkeys(make(source, row))
        except ValueError as error:
            reasons[str(error)] += 1
    if reasons:
        told = "; ".join(f"{n} because {reason}" for reason, n in reasons.most_common())
        log.warning("%d of %d counterfactuals give no %s: %s", reasons.total(), len(pairs), form, told)
    features = Features(dict.fromkeys(FORMS[form], TEXT))
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
