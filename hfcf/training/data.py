"""Rows for training and evaluation: from several corpora, without what an evaluation set repeats, split by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core.recipe import RecipeError
from hfcf.core.splits import group_safe_split, text_keys
from hfcf.core.task import task_of
from hfcf.training.distractors import from_recipe


def load_rows(sources: Sequence[Mapping[str, Any]], *, training: bool = False, extra: Sequence[str] = ()) -> Dataset:
    """The canonical columns of several corpora, one after the other.

    Args:
        sources: arguments of `hfcf.load` (`split` is "train" if not said), each with `corpus`, its name; `take: n` keeps its
            first n rows and `skip: n` leaves them out; `half: 0` or `half: 1` keeps one half of its groups; `distractors` as in
            the recipe of a run; with `on_error: reject`, rows that can't be read are left out.
        training: the rows are trained on, so those of a dev or test split need `role: train`.
        extra: columns that are kept besides the canonical ones; every corpus must have them.

    Raises:
        RecipeError: `training`, and rows of another split than "train" whose source does not say `role: train`.
    """
    parts = []
    for source in sources:
        options = dict(source)
        name, take, skip, half = (options.pop(key, None) for key in ("corpus", "take", "skip", "half"))
        options.setdefault("split", "train")
        distractors = options.pop("distractors", None)
        try:
            ds = corpora.load(name, **options)
        except TypeError as error:  # an option that the corpus does not have
            raise RecipeError(str(error)) from error
        if options.get("on_error") == "reject":
            ds = ds.select([i for i, status in enumerate(ds["status"]) if status is None or status["accepted"] is not False])
        ds = from_recipe(ds.select_columns([*task_of(ds.features).features, *extra]), distractors)
        if training and (others := not_for_training(ds["split"], source.get("role"))):
            raise RecipeError(
                f"data: {name}: these are rows of the split {others[0]!r}, which are not for training; "
                "if they shall be trained on, say so in their source: role: train"
            )
        ds = ds.select(range(min(skip or 0, len(ds)), len(ds) if take is None else min(len(ds), take)))
        if half is not None:
            if half not in (0, 1):
                raise RecipeError(f"data: {name}: half: {half}: 0 or 1")
            ds = group_safe_split(ds, 0.5)[("train", "validation")[half]]
        parts.append(ds)
    return concatenate_datasets(parts)


def not_for_training(splits: Iterable[str], role: str | None) -> list[str]:
    """Which of a corpus's own splits nothing may be trained on: all but train, unless `role` says to train on them.

    >>> not_for_training(["train", "paper_dev"], None), not_for_training(["paper_dev"], "train")
    (['paper_dev'], [])
    """
    return [] if role == "train" else sorted(set(splits) - {"train"})


def without_repeats(ds: Dataset, of: Dataset) -> tuple[Dataset, int]:
    """`ds` less the rows whose claim, whole evidence or sentence stands in `of`; and how many those were."""
    taken = {key for keys in text_keys(of) for key in keys}
    keep = [i for i, keys in enumerate(text_keys(ds)) if taken.isdisjoint(keys)]
    return ds.select(keep), len(ds) - len(keep)


def apart(ds: Dataset, training: Dataset) -> Dataset:
    """`ds` without the rows that share a group, a claim, their evidence or their sentence with rows that were trained on."""
    groups = set(zip(training["corpus"], training["group_id"], strict=True))
    keep = [i for i, key in enumerate(zip(ds["corpus"], ds["group_id"], strict=True)) if key not in groups]
    return without_repeats(ds.select(keep), training)[0]
