"""How many rows and candidates each stage let through, and why not the others: counted from the columns afterwards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core.columns import without_format
from hfcf.core.twins import TWIN


def funnel(ds: Dataset, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Count rows and candidates for each stage, in order.

    Args:
        ds: rows on which the stages ran.
        stages: their names. Rows rejected elsewhere (at loading) come first, under the name that their status gives.

    Returns:
        `stage`, `rows_in`, `rows_out`, `candidates_rejected`, and `reasons` of both, commonest first, numbers taken out of them.
    """
    rows: dict[str, Counter[str]] = {}
    candidates: dict[str, Counter[str]] = {}
    columns = [column for column in ("status", "candidates") if column in ds.features]
    for row in without_format(ds).select_columns(columns):
        status = row["status"]
        if status and status["accepted"] is False:
            rows.setdefault(status["stage"], Counter())[short(status["reason"])] += 1
        for one in row.get("candidates") or []:
            if one["status"] and one["status"]["accepted"] is False:
                candidates.setdefault(one["status"]["stage"], Counter())[short(one["status"]["reason"])] += 1
    entries, left = [], len(ds)
    for stage in dict.fromkeys([*(name for name in rows if name not in stages), *stages]):
        reasons, lost = rows.get(stage, Counter()), candidates.get(stage, Counter())
        entries.append(
            {
                "stage": stage,
                "rows_in": left,
                "rows_out": left - reasons.total(),
                "candidates_rejected": lost.total(),
                "reasons": dict(reasons.most_common()),
                "candidate_reasons": dict(lost.most_common()),
            }
        )
        left -= reasons.total()
    return entries


def short(reason: str) -> str:
    """Shorten a reason by what is particular to its row: counts, positions, another row, and the list after "no candidate is left".

    >>> short("no candidate is left of 10: too long (10)"), short("the claim has 200,000 characters; the limit is 20,000")
    ('no candidate is left', 'the claim has N characters; the limit is N')
    """
    reason = re.sub(r"^(no candidate is left) of .*$", r"\1", reason)
    reason = re.sub(rf"^({TWIN}) .*$", r"\1 N", reason)
    return re.sub(r"\b\d[\d,.]*\b", "N", reason)
