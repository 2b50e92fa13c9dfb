"""Every row of a run, accepted and rejected, as the page holds them: a source's texts once, and what each of its rows changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfcf.core.funnel import find_group
from hfcf.core.segments import Block, Segment, compare_texts
from hfcf.core.task import apply_edits, nearest_task, revert_edits, task_of
from hfcf.hub.run_folder import count_rows, number_columns, read_rows
from hfcf.report.markup import block_html
from hfcf.report.measures import low_is_better, measures, ordered
from hfcf.text.check import MAX_CHARACTERS

LIMIT = 10_000
"""Rows that a page holds: browsers open so many at once."""


def page_rows(
    files: Mapping[str, Sequence[Path]], *, limit: int = LIMIT, first: Iterable[str] = (),
    funnel: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:  # fmt: skip
    """Prepare what the page's script reads.

    Args:
        files: of each configuration.
        limit: rows that the page holds at most.
        first: metrics in the order in which the run has them.
        funnel: of the run; its reasons lead to their rows.
    """
    reasons = {entry["stage"]: {**entry["reasons"], **entry["candidate_reasons"]} for entry in funnel}
    default, lost = files.get("default", []), files.get("rejected", [])
    accepted, rejected = count_rows(default), count_rows(lost)
    accepted_share, rejected_share = share_page(accepted, rejected, limit)
    columns = ordered(number_columns(default), first)
    sources: dict[tuple[Any, ...], int] = {}
    page_sources: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []

    def add(source: Mapping[str, Any], row: Mapping[str, Any], label: str | None, reason: list[str] | None) -> None:
        texts = list_texts(source)
        number = sources.setdefault((row["source_id"], *texts), len(sources))
        if number == len(page_sources):
            unchanged = [block_html(block) for block in compare_texts(texts, texts)]
            page_sources.append({"id": row["source_id"], "label": label, "blocks": unchanged})
        changed = {n: block_html(block) for n, block in enumerate(compare_texts(texts, list_texts(row))) if is_changed(block)}
        rows.append({
            "source": number, "id": row.get("id") or row["source_id"], "label": row.get("label") or outcome_of(row) or label,
            "change": row.get("change"), "reason": reason, "changed": changed, "measures": measures(row, columns),
        })  # fmt: skip

    kept = list(read_rows(default, accepted_share))
    originals = labels_of(files, {row["source_id"] for row in kept})
    for row in kept:
        source = source_of(row)
        add(source, row, originals.get(row["source_id"]) or outcome_of(source), None)
    for row in read_rows(lost, rejected_share):
        source, reason = row["source"], row["reason"] or ""
        rebuilt = {**rejected_row(source, row["candidate"]), "source_id": row["source_id"]}
        label = source.get("label") or outcome_of(source)
        add(source, rebuilt, label, [row["stage"], row["level"], reason, find_group(reason, reasons.get(row["stage"], {}))])
    names = ordered([*columns, *(name for row in rows for name in row["measures"])])
    for entry in rows:
        values = entry["measures"]
        entry["measures"] = [float(f"{values[name]:.5g}") if name in values else None for name in names]
    return {
        "accepted": accepted,
        "rejected": rejected,
        "labels": list(dict.fromkeys(row["label"] for row in rows if row["label"] is not None)),
        "changes": list(dict.fromkeys(row["change"] for row in rows if row["change"])),
        "measures": [[name, low_is_better(name)] for name in names],
        "sources": page_sources,
        "rows": rows,
    }


def share_page(accepted: int, rejected: int, limit: int) -> tuple[int, int]:
    """Divide a page of `limit` rows between the accepted and the rejected: all, or else half of each if there are as many."""
    accepted_share = min(accepted, max(limit // 2, limit - rejected))
    return accepted_share, min(rejected, limit - accepted_share)


def is_changed(block: Block) -> bool:
    """Return whether a block has another text or other marks than the source's."""
    return block.old != block.new


def outcome_of(row: Mapping[str, Any]) -> str | None:
    """Return what a row of a task without labels has instead of a label."""
    task = nearest_task(frozenset(row))
    return None if task is None or task.labelled else task.outcome(row)


def labels_of(files: Mapping[str, Sequence[Path]], ids: set[str]) -> dict[str, str]:
    """Return the labels of sources, from the configuration "augmented"."""
    rows = read_rows(files.get("augmented", []), columns=["id", "label"])
    return {row["id"]: row["label"] for row in rows if row["id"] in ids and row.get("label") is not None}


def list_texts(row: Mapping[str, Any]) -> list[Segment]:
    """List a row's texts, those that are too long to show cut; a row of no task has none."""
    task = nearest_task(frozenset(row))
    return [segment._replace(text=_shorten(segment.text or "")) for segment in (task.segments(row) if task else ())]


def _shorten(text: str) -> str:
    more = len(text) - MAX_CHARACTERS
    return text if more <= 0 else f"{text[:MAX_CHARACTERS]} … ({more:,} more characters)"


def source_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a counterfactual's source; where its edits don't fit it any more, as of rows edited by hand, the row itself."""
    try:
        return {**row, **revert_edits(row, row["edits"] or [])}
    except ValueError:
        return row


def rejected_row(source: Mapping[str, Any], candidate: Mapping[str, Any] | None) -> dict[str, Any]:
    """Rebuild what was rejected as a row: the candidate, or the source if there is no candidate.

    Args:
        source: the source row.
        candidate: as in the `rejected` configuration. If its edits do not fit the source, which may be why it was rejected, the row
            has the source's texts.
    """
    content = candidate or {}
    try:
        edited = task_of(source).candidate_edits(source, content) if content else []
        columns = apply_edits(source, edited) if edited else {}
    except (ValueError, KeyError, TypeError):
        columns, edited = {}, []
    return {**source, **columns, **{key: content.get(key) for key in ("label", "change", "scores")}, "edits": edited}


def changed_blocks(source: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[Block]:
    """List the texts of a rejected candidate that are not its source's."""
    return [block for block in compare_texts(list_texts(source), list_texts(rejected_row(source, candidate))) if is_changed(block)]
