"""Count from the columns of a finished run how many rows and candidates each stage accepted, and why it rejected the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from hfcf.core.columns import tables, without_format
from hfcf.core.dedup import TWIN

_NUMBER = re.compile(r"(\bjudge )?\b\d[\d,.]*\b( at (?:most|least)\b)?")


def funnel(ds: Dataset, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Count the rows and candidates that each stage rejects, in order, by reason."""
    ds, rows, candidates = without_format(ds), dict[str, Counter[str]](), dict[str, Counter[str]]()
    examples: dict[str, dict[str, str]] = {}
    for table in tables(ds, [column for column in ("status", "candidates") if column in ds.features]):
        if "status" in table.column_names:
            _count(table["status"], rows, examples)
        if "candidates" in table.column_names and not pa.types.is_null(table["candidates"].type):
            _count(pc.struct_field(pc.list_flatten(table["candidates"]), "status"), candidates, examples)
    entries, left = [], len(ds)
    for stage in dict.fromkeys([*(name for name in rows if name not in stages), *stages]):
        reasons, lost, shown = rows.get(stage, Counter()), candidates.get(stage, Counter()), examples.get(stage, {})
        entries.append({
            "stage": stage, "rows_in": left, "rows_out": left - reasons.total(), "candidates_rejected": lost.total(),
            "reasons": group_reasons(reasons, shown), "candidate_reasons": group_reasons(lost, shown), "examples": shown,
        })  # fmt: skip
        left -= reasons.total()
    return entries


def _count(statuses: pa.ChunkedArray, counters: dict[str, Counter[str]], examples: dict[str, dict[str, str]]) -> None:
    """Count the reasons of rejections by stage, without what is particular to a row, and keep an example of each."""
    rejected = statuses.filter(pc.invert(pc.fill_null(pc.struct_field(statuses, "accepted"), True)))
    for status in rejected.to_pylist():
        stage, reason = status["stage"], short(status["reason"])
        counters.setdefault(stage, Counter())[reason] += 1
        if reason != status["reason"]:
            examples.setdefault(stage, {}).setdefault(reason, status["reason"])


REST = "…"
"""Stands in a pattern of reasons for the part in which they differ."""
_MANY = 4
"""So many reasons that differ in one part are one pattern. Fewer may differ by what a setting names, such as a judge."""
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|(?<!\w)\'[^\']*\'(?!\w)')


def group_reasons(reasons: Mapping[str, int], examples: dict[str, str]) -> dict[str, int]:
    """Count reasons by pattern, the commonest first: those that differ in one word, in what they quote, or after the last colon.

    Args:
        reasons: how often each was given.
        examples: gets an example of each pattern, one of its reasons.

    >>> group_reasons({f"says what it does not mention: {word}": 1 for word in "abcd"}, examples := {})
    {'says what it does not mention: …': 4}
    >>> examples
    {'says what it does not mention: …': 'says what it does not mention: a'}
    """
    patterns: dict[str, list[str]] = {}
    for reason in reasons:
        for pattern in _patterns(reason):
            patterns.setdefault(pattern, []).append(reason)
    left, groups = dict(reasons), Counter[str]()
    for pattern, alike in sorted(patterns.items(), key=lambda item: (-len(item[1]), -len(item[0]), item[0])):
        if len(members := [reason for reason in alike if reason in left]) >= _MANY:
            common = max(members, key=lambda reason: left[reason])
            examples[pattern] = examples.get(common, common)
            groups[pattern] = sum(left.pop(reason) for reason in members)
    groups.update(left)
    return dict(groups.most_common())


def _patterns(reason: str) -> set[str]:
    words = reason.split(" ")
    alike = {" ".join([*words[:i], REST, *words[i + 1 :]]) for i in range(len(words) if len(words) > 2 else 0)}
    head, colon, _ = reason.rpartition(": ")
    return {*alike, _QUOTED.sub(REST, reason), *([f"{head}: {REST}"] if colon else ())} - {reason}


def find_group(reason: str, groups: Iterable[str]) -> str:
    """Return which group of reasons, as the funnel has them, a reason is counted in.

    >>> find_group("the label 'x' is unknown", ["the label … is unknown", "there is no label"])
    'the label … is unknown'
    """
    exact = short(reason)
    return exact if exact in groups else next((each for each in groups if REST in each and each in _patterns(exact)), exact)


def short(reason: str) -> str:
    """Shorten a reason by what is particular to its row: counts, positions, another row's id, the list of candidates.

    >>> short("is over 2.0 times as perplexing: 812.4, 300 at most"), short("judge 2 says REFUTES, 0.41, 0.5 at least")
    ('is over N times as perplexing: N, 300 at most', 'judge 2 says REFUTES, N, 0.5 at least')
    """
    reason = re.sub(r"^(no candidate is left) of .*$", r"\1", reason)
    reason = re.sub(rf"^({TWIN}) .*$", r"\1 N", reason)
    # The number of a judge and a limit come from settings, so they stay.
    return _NUMBER.sub(lambda found: found[0] if found[1] or found[2] else "N", reason)
