"""Counterfactuals that a set has twice, and those that stand in a set on which models are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset, Features

from hfcf.core import schema
from hfcf.core.edits import rewrite
from hfcf.core.schema import task_of
from hfcf.core.stage import Reject, Stage
from hfcf.metrics.shared.fitting import learned_of, need_fit, to_fit
from hfcf.metrics.shared.info import TEXT, info
from hfcf.metrics.shared.near import Near, bare
from hfcf.metrics.shared.rows import EDITED, ByTask, changed
from hfcf.text.entities import save_fitted

CITATION = "Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2"
_KINDS = ("repeat", "near", "leak", "near_leak")


def duplicates(ds: Dataset, against: Mapping[str, Dataset] | None = None, threshold: float = 0.8) -> dict[str, dict[str, str]]:
    """What each row of an expanded set repeats.

    Args:
        ds: the set; an earlier row is never a duplicate of a later one.
        against: {name: rows of the same task} on which models are scored.
        threshold: the least `jaccard` of near texts.

    Returns:
        {id: what it repeats}, of the rows that repeat something: "repeat", the id of an earlier row of equal texts, titles
        included; "near", if it has none, that of the nearest earlier row in which the same field was changed to nearly the same,
        of the rows that have neither themselves; "leak", "NAME: ID" of an evaluation row with its claim, its whole evidence or
        its sentence; "near_leak", if it has none, of one with nearly its claim or sentence. Equal is what `bare` makes equal.
        Of a row whose edits do not fit its texts nothing is said.
    """
    found: dict[str, dict[str, str]] = {}
    held: dict[tuple[str, str], str] = {}
    near_held = Near(threshold)
    for name, rows in (against or {}).items():
        for row in rows.select_columns(_text_columns(rows)):
            for key in filter(lambda key: key[1], _keys(row)):
                held.setdefault(key, f"{name}: {row['id']}")
            near_held.add(f"{name}: {row['id']}", _main(row))
    seen: dict[tuple[Any, ...], str] = {}
    near: dict[str, Near] = {}
    for row in ds.select_columns([*EDITED[task_of(ds.column_names)], "id", "change"]):
        its: dict[str, str] = {}
        try:
            after = changed(row)[1]
        except Reject:
            continue
        if row["change"] not in near:
            near[row["change"]] = Near(threshold)
        keys = _keys(row)
        if (first := seen.setdefault((*keys, *_titles(row)), row["id"])) != row["id"]:
            its["repeat"] = first
        elif close := near[row["change"]].find(after):
            its["near"] = close
        else:  # one of a kind is enough: of a thousand like rows, each is compared with the first
            near[row["change"]].add(row["id"], after)
        if leak := next((held[key] for key in keys if key in held), None):
            its["leak"] = leak
        elif against and (close := near_held.find(_main(row))):
            its["near_leak"] = close
        if its:
            found[row["id"]] = its
    return found


def _text_columns(rows: Dataset) -> list[str]:
    return ["id", "tokens"] if task_of(rows.column_names) == "relation" else ["id", "claim", "evidence"]


def _main(row: Mapping[str, Any]) -> str | None:
    """The claim or the sentence."""
    return " ".join(row["tokens"] or []) if "tokens" in row else row["claim"]


def _keys(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What another row may have, too: the claim and the whole evidence, or the sentence."""
    if "tokens" in row:
        return [("sentence", bare(_main(row)))]
    return [("claim", bare(row["claim"])), ("evidence", bare(" ".join(piece["text"] or "" for piece in _pieces(row))))]


def _titles(row: Mapping[str, Any]) -> list[str]:
    return [bare(piece["title"]) for piece in _pieces(row)]


def _pieces(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Evaluation sets may have rows that could not be read, whose texts are null."""
    return [piece for piece in row.get("evidence") or [] if piece]


@dataclass(frozen=True, kw_only=True)
class MeasureDuplicates(Stage):
    """Find counterfactuals that repeat an earlier one, or that stand in an evaluation set, exactly or nearly.

    Input columns: the task's texts, `edits`; `fit` reads `id` and `change`, too. Output column: `duplicates`,
    `{repeat, near, leak, near_leak, of}`: four verdicts as `duplicates` explains them, and the row that is repeated, the evaluation
    set's first.

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
    inputs: ClassVar[Any] = ByTask(EDITED)
    outputs: ClassVar = {
        "duplicates": {**dict.fromkeys(_KINDS, schema.BOOL), "of": schema.TEXT},
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
        rows = to_fit(self, ds, "id", "change")
        found = duplicates(rows, against, self.threshold)
        return replace(self, fitted=save_fitted({row_id: found.get(row_id, {}) for row_id in rows["id"]}))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        changed(row)  # which rejects a row that the fit left out
        return {"duplicates": _verdict(learned_of(self, self.fitted, row["id"]))}


def _verdict(its: Mapping[str, str]) -> dict[str, Any]:
    of = next((its[kind] for kind in ("leak", "near_leak", "repeat", "near") if kind in its), None)
    return {**{kind: kind in its for kind in _KINDS}, "of": of}


class Duplicates(evaluate.Metric):  # type: ignore[misc]
    """The share (0–1) of `predictions`, texts, that repeat an earlier one (`repeat`, `near`) or one of `against`, texts on which
    models are scored (`leak`, `near_leak`); None of no texts.

    `threshold` is that of `MeasureDuplicates`.
    """

    def _info(self) -> evaluate.MetricInfo:
        return info(self, CITATION, predictions=TEXT)

    def _compute(self, predictions: Sequence[str], against: Sequence[str] = (), threshold: float = 0.8) -> dict[str, Any]:
        if not predictions:
            return dict.fromkeys(_KINDS)
        edited = {"evidence": [], "change": "claim"}
        # A text as a claim without evidence, all of which was changed.
        rows = [{"id": str(i), "claim": text, "edits": rewrite("claim", "", text), **edited} for i, text in enumerate(predictions)]
        held = [{"id": str(i), "claim": text, "evidence": []} for i, text in enumerate(against)]
        features = Features({"id": schema.TEXT, "change": schema.TEXT, **EDITED["verification"]})
        rest = Features({name: features[name] for name in ("id", "claim", "evidence")})
        sets = {"against": Dataset.from_list(held, features=rest)} if held else {}
        found = duplicates(Dataset.from_list(rows, features=features), sets, threshold).values()
        return {kind: sum(kind in its for its in found) / len(rows) for kind in _KINDS}
