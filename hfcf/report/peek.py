"""`hfcf peek`: some rows of a run on the terminal, with what changed in colour."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.text import Text

from hfcf.core import schema
from hfcf.core.funnel import short
from hfcf.core.segments import compare_texts
from hfcf.core.task import find_problem, nearest_task, task_of
from hfcf.hub.run_folder import list_files, number_columns, read_rows, read_run
from hfcf.report.markup import printable, terminal
from hfcf.report.measures import measures, ordered, pair_score
from hfcf.report.rows import changed_blocks, is_changed, labels_of, list_texts, outcome_of, rejected_row, source_of

CANDIDATES = 3
"""Rejected candidates of a source that are shown for each reason."""


def peek(
    folder: str | Path, *, config: str = "default", rows: int = 5, best: int | None = None, find: str | None = None,
    marks: bool = False,
) -> Iterator[Text]:  # fmt: skip
    """Yield lines about rows of a run, without control characters: the first rows, or the best.

    A counterfactual is shown with its source; rejected candidates are shown under their source, by stage and reason.

    Args:
        folder: of the run.
        config: "default", the counterfactuals, or "rejected".
        rows: how many rows, unless `best` is given; with "rejected", how many sources.
        best: how many of the best by `hfcf.report.measures.pair_score`: closeness to the source × (1 − excess copy rate) ×
            certainty. The pairs whose main text did not change come last.
        find: words that a row's texts and id must all hold, in any case; with "rejected" also its stage and reason.
        marks: put `[-what went-]` and `{+what came+}` into the texts, where colours don't show.

    Raises:
        FileNotFoundError: the folder is not a run's.
        ValueError: a configuration that the run does not have, or fewer than one row.

    >>> list(peek("/nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: there is no folder /nowhere, and no corpus of that name (hfcf list corpora)
    """
    if low := next((name for name, n in (("rows", rows), ("best", best)) if n is not None and n < 1), None):
        raise ValueError(f"--{low} must be at least 1, got {rows if low == 'rows' else best}")
    if config == "rejected" and best:
        raise ValueError(f"--best ranks counterfactuals: leave --config {config} out")
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}, and no corpus of that name (hfcf list corpora)")
    run, files = read_run(folder) or {}, list_files(folder)
    if config not in files and config not in (run.get("empty") or ()):
        raise ValueError(f"{folder} has no rows of the configuration {config!r}; it has {', '.join(files) or 'none'}")
    paths = files.get(config, [])
    if config == "rejected":
        lines = _rejected(paths, rows, find, marks)
    elif paths and "source_id" not in next(read_rows(paths, 1), {"source_id": ""}):
        lines = _other_rows(paths, rows, find)
    else:
        columns = ordered(number_columns(paths), run.get("metrics") or ())
        matching = (
            row for row in read_rows(paths)
            if _holds(find, row["id"], [*_texts(row), *(edit["before"] for edit in row["edits"] or [])])
        )  # fmt: skip
        chosen = heapq.nsmallest(best, matching, key=_rank) if best else list(islice(matching, rows))
        labels = labels_of(files, {row["source_id"] for row in chosen})
        lines = (line for row in chosen for line in pair_lines(row, labels.get(row["source_id"]), columns, marks=marks))
    if (first := next(lines, None)) is None:
        yield Text(f"no row of {config} is like this" if find else f"{config} has no rows (--funnel shows why)", style="dim")
        return
    yield first
    yield from lines


def highlights(folder: str | Path, n: int, *, marks: bool = False) -> Iterator[Text]:
    """Yield lines about good pairs of a run, at most one of a source, without scores: the end of `hfcf run`.

    They are the best by `hfcf.report.measures.pair_score`. Pairs whose main text did not change come last.
    """
    files = list_files(Path(folder))
    pairs = groupby(read_rows(files.get("default", [])), key=itemgetter("source_id"))
    chosen = heapq.nsmallest(n, (min(rows, key=_rank) for _, rows in pairs), key=_rank)
    labels = labels_of(files, {row["source_id"] for row in chosen})
    for row in chosen:
        yield from pair_lines(row, labels.get(row["source_id"]), None, marks=marks)


def rows_of_corpus(rows: Iterable[Mapping[str, Any]], n: int, find: str | None) -> Iterator[Text]:
    """Yield lines about a corpus's rows: outcome and texts, or why a row can't be worked on."""
    matching = (row for row in rows if _holds(find, row["id"], [*_texts(row), *other_texts(row, ()).values()]))
    for row in islice(matching, n):
        yield from row_lines(row, why=(row.get("status") or {}).get("reason") or find_problem(row))


def _other_rows(paths: Sequence[Path], rows: int, find: str | None) -> Iterator[Text]:
    """Yield the values of rows that are not counterfactuals: originals, triplets."""
    for row in islice((row for row in read_rows(paths) if _holds(find, "", map(str, row.values()))), rows):
        yield Text()
        for name, value in row.items():
            if value not in (None, [], ""):
                yield printable(Text.assemble((f"  {name}: ", "dim"), str(value)))


def _rank(row: Mapping[str, Any]) -> tuple[bool, float, str]:
    """Order pairs by their score, the best first; equal pairs by id; last pairs without a score."""
    score = pair_score(row)
    return score is None, -(score or 0.0), str(row["id"])


def _texts(row: Mapping[str, Any]) -> list[str]:
    return [segment.text for segment in list_texts(row)]


def _holds(find: str | None, row_id: Any, texts: Iterable[str]) -> bool:
    text = "\n".join([str(row_id), *texts]).casefold() if find else ""
    return all(word in text for word in (find or "").casefold().split())


def _rejected(paths: Sequence[Path], n: int, find: str | None, marks: bool) -> Iterator[Text]:
    """Yield lines about what was rejected of the first sources."""

    def matches(row: Mapping[str, Any]) -> bool:
        texts = [*_texts(row["source"]), *_texts(rejected_row(row["source"], row["candidate"]))]
        return _holds(find, row["source_id"], [row["stage"], row["reason"] or "", *texts])

    sources = groupby(filter(matches, read_rows(paths)), key=itemgetter("source_id"))
    return (line for _, rejections in islice(sources, n) for line in rejected_lines(list(rejections), marks=marks))


def row_lines(row: Mapping[str, Any], *, why: str | None = None, texts: bool = True, end: bool = True) -> Iterator[Text]:
    """Yield a row from which nothing was made: its id, its outcome and its texts."""
    task, segments = nearest_task(frozenset(row)), list_texts(row)
    yield printable(Text(f"{row['id']}  {(task.outcome(row) if task else None) or ''}".rstrip(), style="bold"))
    if why:
        yield printable(Text(f"  {why}", style="red"))
    shown = {block.name: block.after for block in compare_texts(segments, segments)}
    for name, text in {**shown, **other_texts(row, shown.values())}.items():
        if text and texts:
            yield printable(Text(f"  {name}: ", style="dim").append(text, style="not dim"))
    if end:
        yield Text("")


def other_texts(row: Mapping[str, Any], shown: Collection[str]) -> dict[str, str]:
    """Return the texts of a row that its task does not show: a cause and its effect, and columns that a corpus adds."""
    texts = {}
    for name in set(row) - {*schema.COMMON, "id", "label", "status"}:
        value = row[name]
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            value = " / ".join(value)
        if isinstance(value, str) and value and not any(value in other for other in shown):
            texts[name] = value
    return {name: texts[name] for name in row if name in texts}


def pair_lines(
    row: Mapping[str, Any], label: str | None, columns: Sequence[str] | None, *, marks: bool
) -> Iterator[Text]:  # fmt: skip
    """Yield a counterfactual: what changed, its outcome, the texts before and after, the other texts, and its numbers.

    Args:
        row: of the default configuration.
        label: its source's.
        columns: the metrics' columns; None shows no numbers.
        marks: see `hfcf.report.markup.terminal`.
    """
    task, source = task_of(row), source_of(row)
    after, before = task.outcome(row), label or outcome_of(source)
    turn = f": {before} → {after}" if before is not None and before != after else f" → {after}"
    change = f"the {task.change_names.get(row['change'], row['change']).removeprefix('the ')} changed" if row["change"] else ""
    yield printable(Text(f"{row['id']}  {change}{turn}", style="bold"))
    if source is row and row["edits"]:
        yield printable(Text("  its edits do not fit its texts", style="red"))
    texts = compare_texts(list_texts(source), list_texts(row))
    changed = [block for block in texts if is_changed(block)]
    for block in changed:
        where = f"{block.name} " if len(changed) > 1 else ""
        for name, side in (("before: ", "before"), ("after:  ", "after")):
            if (line := terminal(block, side, signs=marks)).plain:
                yield printable(Text(f"  {where}{name}", style="dim").append_text(line))
    for block in texts:
        if block not in changed and block.after:
            yield printable(Text(f"  {block.name}: {block.after}", style="dim"))
    if columns is not None and (numbers := measures(row, columns)):
        details = dict(str(score["name"]).split(": ", 1) for score in row.get("scores") or [] if ": " in str(score["name"]))
        values = (f"{name} {details.get(name, '')} {value:.3g}".replace("  ", " ") for name, value in numbers.items())
        yield printable(Text("  " + " · ".join(values), style="cyan"))
    yield Text("")


def rejected_lines(rejections: Sequence[Mapping[str, Any]], *, marks: bool) -> Iterator[Text]:
    """Yield what was rejected of a source: its texts once, then rejections by stage and reason, whatever its numbers."""
    source = rejections[0]["source"]
    yield from row_lines(source, end=False)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rejections:
        groups.setdefault((row["level"], row["stage"], short(row["reason"] or "")), []).append(row)
    for (level, stage, _), rows in groups.items():
        reasons = dict.fromkeys(row["reason"] or "" for row in rows)
        what = "the row" if level == "row" else "a candidate" if len(rows) == 1 else f"{len(rows)} candidates"
        reason = next(iter(reasons)) + " and the like" * (len(reasons) > 1)
        yield printable(Text(f"  {stage} rejects {what}: ", style="bold").append(reason, style="not bold"))
        for candidate in (row["candidate"] for row in rows[:CANDIDATES] if row["candidate"]):
            blocks = changed_blocks(source, candidate)
            if not blocks:
                yield Text("    as the source", style="dim")
            for block in blocks:
                yield printable(Text(f"    {block.name}: ", style="dim").append_text(terminal(block, signs=marks)))
        if (more := len(rows) - CANDIDATES) > 0:
            yield Text(f"    and {more} more", style="dim")
    yield Text("")
