"""Counterfactuals that a set has twice, and those that stand in a set on which models are scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset, Features

from hfcf import schema
from hfcf.edits import rewrite
from hfcf.entities import read_fitted, save_fitted
from hfcf.groups import normalised, text_keys
from hfcf.metrics.info import TEXT, info
from hfcf.metrics.rows import EDITED, ByTask, changed, need_fit, texts
from hfcf.schema import task_of
from hfcf.stage import Stage

CITATION = "Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2"
_WIDTH, _PERMUTATIONS = 5, 128


def jaccard(one: str, other: str) -> float:
    """How much two texts have in common: their shared runs of five characters over all of theirs, 0–1, without case and marks.

    >>> jaccard("Rome is old.", "rome is old"), jaccard("Rome is old.", "Rome is new.")
    (1.0, 0.25)
    """
    ours, theirs = _shingles(one), _shingles(other)
    return round(len(ours & theirs) / len(ours | theirs), 5) if ours | theirs else 0.0


def _shingles(text: str) -> set[str]:
    bare = normalised(text)
    return {bare[i : i + _WIDTH] for i in range(max(1, len(bare) - _WIDTH + 1))} if bare else set()


class Near:
    """Texts by MinHash: `find` says which of those put in comes near a text.

    MinHash proposes and `jaccard` decides, so that what is found is near; of pairs just above the threshold some are missed.

    Args:
        threshold: the least `jaccard` of near texts.

    >>> index = Near(0.5)
    >>> index.add("first", "The keys are on the table.")
    >>> index.find("The keys are on the tables."), index.find("Dogs bark.")
    ('first', None)
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHash, MinHashLSH

        self.threshold, self._texts = threshold, dict[str, str]()
        self._empty = MinHash(num_perm=_PERMUTATIONS, seed=1)
        self._index = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)

    def add(self, name: str, text: str) -> None:
        """Put a text in; a name that is there keeps its text."""
        if name not in self._texts and (signature := self._signature(text)) is not None:
            self._texts[name] = text
            self._index.insert(name, signature)

    def find(self, text: str) -> str | None:
        """The name of the nearest text that is near, the first by name of equally near ones; None if none is."""
        if (signature := self._signature(text)) is None:
            return None
        found = [(-jaccard(text, self._texts[name]), name) for name in self._index.query(signature)]
        best = min(found, default=None)
        return best[1] if best and -best[0] >= self.threshold else None

    def _signature(self, text: str) -> Any:
        if not (shingles := _shingles(text)):
            return None
        made = self._empty.copy()
        made.update_batch([shingle.encode() for shingle in sorted(shingles)])
        return made


def duplicates(ds: Dataset, against: Mapping[str, Dataset] | None = None, threshold: float = 0.8) -> dict[str, dict[str, str]]:
    """What each row of an expanded set repeats.

    Args:
        ds: the set; an earlier row is never a duplicate of a later one.
        against: {name: rows of the same task} on which models are scored.
        threshold: the least `jaccard` of near texts.

    Returns:
        {id: what it repeats}, of the rows that repeat something: "repeat", the id of an earlier row of equal texts; "near", if it
        has none, that of the first row in which the same field was changed to nearly the same; "leak", "NAME: ID" of an
        evaluation row with its claim, its whole evidence or its sentence; "near_leak", if it has none, of one with nearly its
        claim or sentence. Equal is after normalisation: letters and digits, case folded.
    """
    found: dict[str, dict[str, str]] = {}
    held = {key: f"{name}: {row_id}" for name, rows in reversed(list((against or {}).items())) for row_id, key in _held(rows)}
    near_held = Near(threshold)
    for name, rows in (against or {}).items():
        for row in rows.select_columns(_text_columns(rows)):
            near_held.add(f"{name}: {row['id']}", _main(row))
    seen: dict[tuple[Any, ...], str] = {}
    near: dict[str, Near] = {}
    for row, keys in zip(ds.select_columns([*EDITED[task_of(ds.column_names)], "id", "change"]), text_keys(ds), strict=True):
        its: dict[str, str] = {}
        after, index = changed(row)[1], near.setdefault(row["change"], Near(threshold))
        if (first := seen.setdefault(tuple(keys), row["id"])) != row["id"]:
            its["repeat"] = first
        elif close := index.find(after):
            its["near"] = close
        else:  # one of a kind is enough: of a thousand like rows, each is compared with the first
            index.add(row["id"], after)
        if leak := next((held[key] for key in keys if key in held), None):
            its["leak"] = leak
        elif against and (close := near_held.find(_main(row))):
            its["near_leak"] = close
        if its:
            found[row["id"]] = its
    return found


def _held(rows: Dataset) -> Iterator[tuple[str, tuple[str, str]]]:
    """Every key of every row with the row's id, last row first: a mapping then keeps the first row of each key."""
    pairs = [(row_id, key) for row_id, keys in zip(rows["id"], text_keys(rows), strict=True) for key in keys if key[1]]
    return reversed(pairs)


def _text_columns(rows: Dataset) -> list[str]:
    return ["id", "tokens"] if task_of(rows.column_names) == "relation" else ["id", "claim", "evidence"]


def _main(row: Mapping[str, Any]) -> str:
    """The claim or the sentence."""
    return next(iter(texts(row).values()))


@dataclass(frozen=True, kw_only=True)
class MeasureDuplicates(Stage):
    """Whether each counterfactual repeats an earlier one, or stands in a set on which models are scored.

    Input columns: the task's texts, `edits`. Output column: `duplicates`, `{repeat, near, leak, near_leak, of}`: four verdicts as
    `duplicates` explains them, and the row that is repeated, the evaluation set's first.

    Source: near duplicates by MinHash as Lee et al. 2022 find them. Deviation: runs of five characters in the place of their
    five-word ones, since a claim has few words.

    Args:
        task: of the rows.
        threshold: the least share of runs of characters that near texts have in common.
        fitted: the sha256 that `fit` sets.

    >>> MeasureDuplicates().check_fitted()
    Traceback (most recent call last):
    hfcf.stage.StageError: measure_duplicates compares all rows of the set: stage = stage.fit(ds) first
    """

    inputs: ClassVar[Any] = ByTask(EDITED)
    outputs: ClassVar = {
        "duplicates": {**dict.fromkeys(("repeat", "near", "leak", "near_leak"), schema.BOOL), "of": schema.TEXT},
    }

    task: str = "verification"
    threshold: float = 0.8
    fitted: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold={self.threshold}: above 0, up to 1")

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "compares all rows of the set")

    def fit(self, ds: Dataset, against: Mapping[str, Dataset] | None = None) -> Self:
        """Compare the rows of `ds` with one another, and with the evaluation sets `against`; returns the fitted stage."""
        return replace(self, fitted=save_fitted(duplicates(ds, against, self.threshold)))

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        known = read_fitted(self.fitted or "", "stage = stage.fit(ds)")
        return [{"duplicates": _verdict(known.get(row["id"], {}))} for row in rows]


def _verdict(its: Mapping[str, str]) -> dict[str, Any]:
    kinds = ("repeat", "near", "leak", "near_leak")
    of = next((its[kind] for kind in ("leak", "near_leak", "repeat", "near") if kind in its), None)
    return {**{kind: kind in its for kind in kinds}, "of": of}


class Duplicates(evaluate.Metric):  # type: ignore[misc]
    """The share (0–1) of `predictions`, texts, that repeat an earlier one (`repeat`, `near`) or one of `against`, texts on which
    models are scored (`leak`, `near_leak`).

    `threshold` is that of `MeasureDuplicates`.
    """

    def _info(self) -> evaluate.MetricInfo:
        return info(self, CITATION, predictions=TEXT)

    def _compute(self, predictions: Sequence[str], against: Sequence[str] = (), threshold: float = 0.8) -> dict[str, Any]:
        edited = {"evidence": [], "change": "claim"}
        # A text as a claim without evidence, all of which was changed.
        rows = [{"id": str(i), "claim": text, "edits": rewrite("claim", "", text), **edited} for i, text in enumerate(predictions)]
        held = [{"id": str(i), "claim": text, "evidence": []} for i, text in enumerate(against)]
        features = Features({"id": schema.TEXT, "change": schema.TEXT, **EDITED["verification"]})
        rest = Features({name: features[name] for name in ("id", "claim", "evidence")})
        sets = {"against": Dataset.from_list(held, features=rest)} if held else {}
        found = duplicates(Dataset.from_list(rows, features=features), sets, threshold).values()
        kinds = ("repeat", "near", "leak", "near_leak")
        return {kind: sum(kind in its for its in found) / len(rows) if rows else None for kind in kinds}
