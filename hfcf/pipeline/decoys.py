"""Decoys: how often a run's judges accept a wrong label. Source rows are shown to them with a label that is known to be wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from datasets import Dataset
from scipy.stats import binomtest

from hfcf.core.columns import iterate
from hfcf.core.contamination import seen_rows
from hfcf.core.model import Model, is_prompted
from hfcf.core.system import System
from hfcf.core.task import find_problem, task_of
from hfcf.tasks.ensemble import vote


def show_decoys(rows: Dataset, system: System, number: int) -> dict[str, Any] | None:
    """Ask the judges of a system about source rows, and count how often they accept the wrong label and the right one.

    A judge names the label that it finds, so one answer tells both: what it would say to the row with its own label, and to the
    row with the label that the row's candidates claim. An edit that changes nothing is such a row. Rows that a judge says it was
    trained on are not shown.

    Args:
        rows: on which all stages of the system ran.
        system: what made them.
        number: how many source rows to show; which ones, the seed draws. 0 shows none.

    Returns:
        `shown`; `wrong_accepted` and `right_accepted`, how many of them the judges accept with each label; `false_acceptance`, the
        share of the wrong ones, and `precision`, the share of right labels among all that are accepted, if as many wrong as right
        labels are shown: each {`share`, `low`, `high`} with Wilson's interval of 95 %, None without any. None where no model
        judges, or no candidate claims another label than its source's.
    """
    stage = next((stage for stage in reversed(system.stages) if isinstance(getattr(stage, "verifier", None), Model)), None)
    if stage is None or not number or "candidates" not in rows.features:
        return None
    judges = (stage.verifier, *stage.judges)  # type: ignore[attr-defined]
    task, decoys = task_of(rows.features), list(_decoys(rows, judges))
    if not decoys or (task.labels is None and any(map(is_prompted, judges))):  # such a judge compares a row with its source
        return None
    drawn = random.Random(f"{system.seed}:decoys").sample(decoys, min(number, len(decoys)))
    labels = [(row["label"], wrong) for row, wrong in drawn]
    verdicts = vote(task, [row for row, _ in drawn], labels, judges, stage.max_length, stage.certainty)  # type: ignore[attr-defined]
    accepted = [verdict.label if verdict.reason is None else None for verdict in verdicts]
    right, wrong = (sum(label == pair[side] for label, pair in zip(accepted, labels, strict=True)) for side in (0, 1))
    return {
        "shown": len(drawn), "wrong_accepted": wrong, "right_accepted": right,
        "false_acceptance": share(wrong, len(drawn)), "precision": share(right, right + wrong),
    }  # fmt: skip


def _decoys(rows: Dataset, judges: Sequence[Model]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each sound source row with the label that its candidates claim, if that is another label than its own."""
    task = task_of(rows.features)
    if not task.labelled:
        return
    seen = [marks for judge in judges if (marks := seen_rows(rows, judge)) is not None]
    for i, row in enumerate(iterate(rows, [*task.columns, "label", "candidates"])):
        if any(marks[i] for marks in seen):
            continue
        wrong = next((one["label"] for one in row["candidates"] or () if one["label"] not in (None, row["label"])), None)
        source = {name: row[name] for name in (*task.columns, "label")}
        if wrong is not None and find_problem(source) is None:
            yield source, wrong


def share(part: int, of: int) -> dict[str, float] | None:
    """Return a share with Wilson's interval of 95 %, to three decimals; None of nothing."""
    if not of:
        return None
    low, high = binomtest(part, of).proportion_ci(0.95, method="wilson")
    return {"share": round(part / of, 3), "low": round(low, 3), "high": round(high, 3)}
