"""What a comparison is evaluated on: rows of each corpus, apart from the training rows, the same for every method."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from datasets import Dataset

from hfcf.core import recipe as recipes
from hfcf.core.schema import LABELS
from hfcf.studies.compare.cells import digest
from hfcf.studies.compare.layout import SETTINGS
from hfcf.training.data import drop_related, load_rows
from hfcf.training.verifier import of_labels

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EvaluationSet:
    """The rows of one corpus.

    Args:
        name: in the tables.
        setting: "in-domain", "out-of-domain" or "challenge" (RACE, section 4).
        rows: what is evaluated, in the order of a hash of their ids.
        available: rows by label before anything is left out.
        removed: how many overlap with training rows.
        expected: rows by label of the paper's Table 8, if it counts this corpus.
        averaged: whether it counts in the averages over corpora; one whose rows stand in another should not.
    """

    name: str
    setting: str
    rows: Dataset
    available: Mapping[str, int]
    removed: int
    expected: Mapping[str, int] | None
    averaged: bool = True

    @cached_property
    def ids(self) -> str:
        """A hash of which rows these are, and of what is in them."""
        return rows_digest(self.rows)

    def about(self) -> dict[str, Any]:
        """What a cell says of its corpus."""
        return {
            "corpus": self.name, "setting": self.setting, "rows": len(self.rows), "labels": _counts(self.rows),
            "available": sum(self.available.values()), "available_labels": dict(self.available),
            "expected": self.expected, "removed_as_overlap": self.removed, "ids": self.ids,
        }  # fmt: skip


def rows_digest(rows: Dataset) -> str:
    """A hash of verification rows, their order included."""
    return digest(rows.select_columns(["id", "claim", "evidence", "label"]).to_list())


def evaluation_sets(
    sources: Sequence[Mapping[str, Any]],
    data_dir: str | None,
    training: Dataset,
    take: int | None,
    labels: Sequence[str] = LABELS[:2],
) -> list[EvaluationSet]:
    """The recipe's `evaluate`, without the corpora of which no row is left.

    Rows of `labels` only; those that share a group, a claim or their whole evidence with a training row are left out; of the rest
    the first `take` by a hash of name and id.

    Args:
        sources: arguments of `hfcf.load` with `corpus`, `name`, `setting` and optionally `expected` and `averaged`.
        data_dir: what their folders are relative to.
        training: the training rows before augmentation.
        take: how many; None: all.
        labels: that the verifiers tell apart.
    """
    names = [source.get("name", source.get("corpus")) for source in sources]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise recipes.RecipeError(f"evaluate: {twice[0]} comes twice: give each a name of its own")
    found = []
    for name, source in zip(names, sources, strict=True):
        options = {key: value for key, value in source.items() if key not in ("name", "setting", "expected", "averaged")}
        if "corpus" not in source:
            raise recipes.RecipeError(f"evaluate: {name}: the key 'corpus' is missing")
        if source.get("setting") not in SETTINGS:
            raise recipes.RecipeError(f"evaluate: {name}: setting: choose one of {', '.join(SETTINGS)}")
        rows = of_labels(load_rows([recipes.located(options, data_dir)]), labels)
        if not len(rows):
            raise recipes.RecipeError(f"evaluate: {name}: no row is {' or '.join(labels)}")
        kept = drop_related(rows, training)
        if not len(kept):
            log.warning("%s is not evaluated on: each of its %d rows overlaps with a training row", name, len(rows))
            continue
        order = sorted(range(len(kept)), key=lambda i, ids=kept["id"]: _rank(name, ids[i]))  # type: ignore[misc]
        found.append(
            EvaluationSet(
                name, source["setting"], kept.select(order[:take]), _counts(rows), len(rows) - len(kept), source.get("expected"),
                source.get("averaged", True),
            )
        )  # fmt: skip
    return found


def check_apart(sets: Sequence[EvaluationSet], training: Dataset) -> None:
    """Check that no evaluation row shares a group, a claim or its evidence with the training rows, counterfactuals included.

    Raises:
        ValueError: one does.
    """
    for one in sets:
        if shared := len(one.rows) - len(drop_related(one.rows, training)):
            raise ValueError(f"{shared} evaluation rows of {one.name} overlap with the training rows")


def _rank(name: str, row_id: str) -> str:
    return hashlib.sha256(f"{name}:{row_id}".encode()).hexdigest()


def _counts(rows: Dataset) -> dict[str, int]:
    counts = Counter(rows["label"])
    return {label: counts[label] for label in LABELS if label in LABELS[:2] or counts[label]}
