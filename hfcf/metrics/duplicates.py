"""Counterfactuals that a set has twice, and those that stand in a set on which models are scored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import evaluate
from datasets import Dataset

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.columns import iterate
from hfcf.core.splits import own_columns
from hfcf.core.stage import Reject, Stage
from hfcf.core.task import Task, task_of
from hfcf.metrics.shared.fit import learned_of, need_fit, to_fit
from hfcf.metrics.shared.info import TEXT, info
from hfcf.metrics.shared.near_duplicates import Near
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, changed
from hfcf.tasks import DEFAULT
from hfcf.text.normalise import bare

CITATION = "Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2"
_KINDS = ("repeat", "near", "leak", "near_leak")


def duplicates(ds: Dataset, against: Mapping[str, Dataset] | None = None, threshold: float = 0.8) -> dict[str, dict[str, str]]:
    """Find what each row of an expanded set repeats."""
    task = task_of(ds.column_names)
    held = {
        name: ((row["id"], _keys(task, row), _main(task, row)) for row in rows.select_columns(["id", *own_columns(task, rows)]))
        for name, rows in (against or {}).items()
    }
    return _repeats(_texts(ds, task), held, threshold)


def _texts(ds: Dataset, task: Task) -> Iterator[_Text]:
    for row in iterate(ds, [*task.columns, "edits", "id", "change"]):
        try:
            after = changed(row)[1]
        except Reject:
            continue
        titles = [bare(segment.text) for segment in task.segments(row) if segment.is_title]
        yield _Text(row["id"], row["change"], _keys(task, row), titles, _main(task, row), after)


class _Text(NamedTuple):
    """What is compared of a row: the keys that another row may have, its titles, its main text, and what it changed to."""

    id: str
    change: str
    keys: list[tuple[str, str]]
    titles: list[str]
    main: str
    after: str


def _repeats(
    texts: Iterable[_Text], against: Mapping[str, Iterable[tuple[str, list[tuple[str, str]], str]]], threshold: float
) -> dict[str, dict[str, str]]:
    repeats: dict[str, dict[str, str]] = {}
    held: dict[tuple[str, str], str] = {}
    near_held = Near(threshold)
    for name, rows in against.items():
        for row_id, keys, main in rows:
            for key in filter(lambda key: key[1], keys):
                held.setdefault(key, f"{name}: {row_id}")
            near_held.add(f"{name}: {row_id}", main)
    first_of: dict[bytes, str] = {}  # by hashes: the texts take as much memory as the rows
    near: dict[str, Near] = {}
    for one in texts:
        kinds: dict[str, str] = {}
        if one.change not in near:
            near[one.change] = Near(threshold)
        if (first := first_of.setdefault(_hash(one), one.id)) != one.id:
            kinds["repeat"] = first
        elif close := near[one.change].find(one.after):
            kinds["near"] = close
        else:  # one of a kind is enough: of a thousand like rows, each is compared with the first
            near[one.change].add(one.id, one.after)
        if leak := next((held[key] for key in one.keys if key in held), None):
            kinds["leak"] = leak
        elif against and (close := near_held.find(one.main)):
            kinds["near_leak"] = close
        if kinds:
            repeats[one.id] = kinds
    return repeats


def _hash(text: _Text) -> bytes:
    return hashlib.blake2b(json.dumps([text.keys, text.titles]).encode(), digest_size=16).digest()


def _main(task: Task, row: Mapping[str, Any]) -> str:
    """Return the text that tells a row apart: its claim or its sentence."""
    return task.segments(row)[0].text


def _keys(task: Task, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the texts that another row may have, too."""
    return [(kind, bare(text)) for kind, text in task.identity(row)]


@dataclass(frozen=True, kw_only=True)
class MeasureDuplicates(Stage):
    """Find counterfactuals that repeat an earlier one, or that stand in an evaluation set, exactly or nearly.

    Input columns: the task's texts, `edits`; `fit` reads `id` and `change`, too. Output column: `duplicates`,
    `{repeat, near, leak, near_leak, of}`: four verdicts as `duplicates` explains them, and the row that is repeated, the evaluation
    set's first. Of questions, `repeat` has the question and the passage of an earlier row, `near` compares questions alone, and
    `leak` has the question or the passage of an evaluation row.

    Source: Lee et al. 2022: near duplicates by MinHash. Deviation: runs of five characters in the place of their
    five-word ones, since a claim has few words.

    Args:
        task: of the rows.
        threshold: the least share of runs of characters that near texts have in common; above 0, up to 1.
        fitted: the sha256 that `fit` sets.

    >>> MeasureDuplicates().check_fitted()
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_duplicates compares all rows of the set: stage = stage.fit(ds) first
    """

    better: ClassVar = "less"
    of_candidates: ClassVar = False
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"duplicates": {**dict.fromkeys(_KINDS, schema.BOOL), "of": schema.TEXT}}

    task: str = DEFAULT
    threshold: float = 0.8
    fitted: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold={self.threshold}: above 0, up to 1")

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "compares all rows of the set")

    def fit(self, ds: Dataset, against: Mapping[str, Dataset] | None = None) -> Self:
        """Compare the rows of `ds` with one another, and with the evaluation sets `against`; returns the fitted stage."""
        rows = to_fit(self, ds, "id", "change")
        repeats = duplicates(rows, against, self.threshold)
        return replace(self, fitted=save_artifact({row_id: repeats.get(row_id, {}) for row_id in rows["id"]}))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        changed(row)  # which rejects a row that the fit left out
        return {"duplicates": _verdict(learned_of(self, self.fitted, row["id"]))}


def _verdict(kinds: Mapping[str, str]) -> dict[str, Any]:
    of = next((kinds[kind] for kind in ("leak", "near_leak", "repeat", "near") if kind in kinds), None)
    return {**{kind: kind in kinds for kind in _KINDS}, "of": of}


class Duplicates(evaluate.Metric):  # type: ignore[misc]
    """The share (0–1) of `predictions`, texts, that repeat an earlier one (`repeat`, `near`) or one of `against`, texts on which
    models are scored (`leak`, `near_leak`); None of no texts.

    `threshold` is that of `MeasureDuplicates`.
    """

    _info = info(CITATION, predictions=TEXT)

    def _compute(self, predictions: Sequence[str], against: Sequence[str] = (), threshold: float = 0.8) -> dict[str, Any]:
        if not predictions:
            return dict.fromkeys(_KINDS)
        texts = [_Text(str(i), "", [("text", bare(text))], [], text, text) for i, text in enumerate(predictions)]
        held = {"against": ((str(i), [("text", bare(text))], text) for i, text in enumerate(against))} if against else {}
        repeats = _repeats(texts, held, threshold).values()
        return {kind: sum(kind in kinds for kinds in repeats) / len(texts) for kind in _KINDS}
