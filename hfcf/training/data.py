"""Load rows for training and evaluation from several corpora, and drop rows that overlap with other rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf import corpora
from hfcf.core.pairs import is_paired, sources
from hfcf.core.passages import repeated_rows
from hfcf.core.recipe import RecipeError
from hfcf.core.splits import group_safe_split, part, text_keys
from hfcf.core.task import task_of
from hfcf.corpora.custom.columns import LayoutError
from hfcf.training.distractors import from_recipe


def load_rows(sources: Sequence[Mapping[str, Any]], *, training: bool = False, extra: Sequence[str] | None = ()) -> Dataset:
    """Load several corpora and concatenate their canonical columns; rows of a user that can't be read are named and left out."""
    return concatenate_datasets([_load(source, training, extra) for source in sources])


def _load(source: Mapping[str, Any], training: bool, extra: Sequence[str] | None) -> Dataset:
    is_users = source["corpus"] != corpora.PASSAGES and "labels" in corpora.builder_class(source["corpus"]).OPTIONS
    options = {"split": "train", **({"on_error": "reject"} if is_users else {}), **source}
    keys = ("corpus", "pieces", "take", "skip", "half", "distractors")
    name, pieces, take, skip, half, distractors = (options.pop(key, None) for key in keys)
    try:
        ds = corpora.load(name, **options)
    except LayoutError as error:
        raise RecipeError(error.in_recipe()) from error
    except TypeError as error:  # an option that the corpus does not have
        raise RecipeError(str(error)) from error
    if options.get("on_error") == "reject":
        ds = ds.select([i for i, status in enumerate(ds["status"]) if status is None or status["accepted"] is not False])
    task = task_of(ds.features)
    if extra is None:
        extra = [name for name in ds.column_names if name != "status"]
    # What tells right answers from wrong ones always stays.
    kept = dict.fromkeys([*task.features, *extra, *(name for name in task.answer_columns if name in ds.column_names)])
    ds = from_recipe(ds.select_columns([*kept]), distractors)
    if training and (others := not_for_training(ds["split"], source.get("role"))):
        cure = "which are not for training; add role: train to their source to train on them"
        raise RecipeError(f"data: {name}: these are rows of the split {others[0]!r}, {cure}")
    if pieces:
        if not (column := task_of(ds.features).pieces):
            raise RecipeError(f"data: {name}: pieces counts pieces of evidence, and {task_of(ds.features).name} rows have none")
        ds = ds.select([i for i, parts in enumerate(ds[column]) if len(parts) >= pieces])
    ds = part(ds, take, skip)
    return ds if half is None else _half(ds, half, name)


def _half(ds: Dataset, half: Any, name: str) -> Dataset:
    """Select half of the groups, or half of a half, each time with a different seed."""
    for seed, side in enumerate(sides := half if isinstance(half, list) else [half], 13):
        if side not in (0, 1):
            raise RecipeError(f"data: {name}: half: {half}: 0 or 1, or for halves of halves a list of them")
        ds = group_safe_split(ds, 0.5, seed=seed)[("train", "validation")[side]]
    if not sides:
        raise RecipeError(f"data: {name}: half: {half}: 0 or 1, or for halves of halves a list of them")
    return ds


def not_for_training(splits: Iterable[str], role: str | None) -> list[str]:
    """Return the splits that are not for training: all but train, unless `role` is "train"."""
    return [] if role == "train" else sorted(set(splits) - {"train"})


def drop_overlap(ds: Dataset, of: Dataset) -> tuple[Dataset, int]:
    """Drop the rows of `ds` whose claim, whole evidence or sentence occurs in `of`, or whose passage repeats one of `of` in part.

    Returns the other rows and the number dropped.
    """
    texts = {key for keys in text_keys(of) for key in keys}
    repeated = repeated_rows(ds, of)
    keep = [i for i, keys in enumerate(text_keys(ds)) if texts.isdisjoint(keys) and not repeated[i]]
    return ds.select(keep), len(ds) - len(keep)


def drop_related(ds: Dataset, training: Dataset) -> Dataset:
    """Drop the rows of `ds` that share a group or a text of `Task.identity` with training rows, or repeat part of a passage.

    A pair is dropped if either side does. `hfcf.core.passages` says how much of a passage.
    """
    return ds.select(unrelated(ds, training))


def unrelated(ds: Dataset, training: Dataset) -> list[int]:
    """List the indices of the rows that `drop_related` keeps."""
    groups = set(zip(training["corpus"], training["group_id"], strict=True))
    texts = {key for keys in text_keys(training) for key in keys}
    keep = set(range(len(ds)))
    for side in (ds, sources(ds)) if is_paired(ds) else (ds,):
        known = zip(zip(side["corpus"], side["group_id"], strict=True), text_keys(side), strict=True)
        keep -= {i for i, (group, keys) in enumerate(known) if group in groups or not texts.isdisjoint(keys)}
        keep -= {i for i, repeated in enumerate(repeated_rows(side, training)) if repeated}
    return sorted(keep)
