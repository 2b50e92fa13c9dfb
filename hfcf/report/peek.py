"""`hfcf peek`: some rows of a run on the terminal, with what changed in colour."""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

from rich.text import Text

from hfcf.core import schema
from hfcf.core.edits import diff
from hfcf.core.funnel import short
from hfcf.core.names import did_you_mean
from hfcf.core.segments import blocks, plain
from hfcf.core.task import nearest_task, problem, task_of
from hfcf.report.files import files, numbers, read, read_run
from hfcf.report.measures import low_is_better, measures, ordered, phrases
from hfcf.report.page_rows import rejected_row, source_of, texts
from hfcf.report.ranking import pair_score
from hfcf.text.check import CONTROL

SEED = 13


def peek(
    folder: str | Path,
    *,
    config: str = "default",
    rows: int = 5,
    best: int | None = None,
    worst: int | None = None,
    random: int | None = None,
    by: str | None = None,
    find: str | None = None,
    stage: str | None = None,
    reason: str | None = None,
    marks: bool = False,
    scores: bool = True,
) -> Iterator[Text]:
    """Yield lines about rows of a run, without control characters: the first rows, the best, the worst or some at random.

    A counterfactual is shown with its source; rejected candidates are shown under their source, by stage and reason.

    Args:
        folder: of the run.
        config: "default", the counterfactuals, or "rejected".
        rows: how many rows, unless one of the next three is given; with "rejected", how many sources.
        best: how many of the best.
        worst: how many of the worst.
        random: how many at random, the same rows each time.
        by: the metric, or the system's score, that ranks them. The default is `hfcf.report.ranking.pair_score`: closeness to the
            source × (1 − excess copy rate) × certainty. The pairs whose main text did not change come last.
        find: words that a row's texts, id or reason must all hold, in any case.
        stage: with "rejected", the stage that rejected.
        reason: with "rejected", a part of the reason, in any case.
        marks: put `[-what went-]` and `{+what came+}` into the texts, where colours don't show.
        scores: end each row with its metrics and scores.

    Raises:
        FileNotFoundError: the folder is not a run's.
        ValueError: a configuration, a metric or a stage that the run does not have, fewer than one
            row, or two ways to choose them.

    >>> list(peek("/nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: there is no folder /nowhere, and no corpus of that name (hfcf list corpora)
    """
    _check(rows, best=best, worst=worst, random=random)
    if config != "rejected" and (stage or reason):
        raise ValueError("--stage and --reason choose among rejected rows: add --config rejected")
    run = read_run(Path(folder)) or {}
    paths = _paths(Path(folder), config, run.get("empty") or ())
    if config == "rejected":
        if best or worst:
            raise ValueError(f"--best and --worst rank counterfactuals: leave --config {config} out")
        _check_stage(stage, [entry["stage"] for entry in run.get("funnel", [])])
        shown = _rejected(paths, random or rows, random is not None, find, stage, reason, marks)
    elif paths and "source_id" not in next(read(paths, 1), {"source_id": ""}):
        shown = _plain_rows(paths, rows, find)
    else:
        columns = ordered(numbers(paths), run.get("metrics") or ())
        chosen = _choose(paths, columns, rows, best, worst, random, by, find)
        labels = _labels(files(Path(folder)), {row["source_id"] for row in chosen if row.get("source_id")})
        said = {row["id"]: phrases(row, columns) if scores else () for row in chosen}
        pairs = (pair_lines(row, labels.get(row["source_id"]), said[row["id"]], marks=marks) for row in chosen)
        shown = chain.from_iterable(pairs)
    empty = True
    for line in shown:
        empty = False
        yield line
    if empty:
        narrowed = find or stage or reason
        yield Text(f"no row of {config} is like this" if narrowed else f"{config} has no rows (--funnel shows why)", style="dim")


def _plain_rows(paths: Sequence[Path], rows: int, find: str | None) -> Iterator[Text]:
    """Yield the values of rows that are not counterfactuals: originals, triplets, the results of an attack."""
    matching = (row for row in read(paths) if _holds(find, "", map(str, row.values())))
    for row in islice(matching, rows):
        yield Text()
        for name, value in row.items():
            if value not in (None, [], ""):
                yield printable(Text.assemble((f"  {name}: ", "dim"), str(value)))


def highlights(folder: str | Path, n: int, *, marks: bool = False) -> Iterator[Text]:
    """Yield lines about good pairs of a run, at most one of a source, without scores: the end of `hfcf run`.

    They are the best by `hfcf.report.ranking.pair_score`. Pairs whose main text did not change come last.
    """
    configs = files(Path(folder))
    paths = configs.get("default", [])
    ranked = ((_rank(row), row) for row in _matching("default", paths, None))
    best = (min(pairs, key=itemgetter(0)) for _, pairs in groupby(ranked, key=lambda pair: pair[1]["source_id"]))
    chosen = [row for _, row in heapq.nsmallest(n, best, key=itemgetter(0))]
    labels = _labels(configs, {row["source_id"] for row in chosen})
    for row in chosen:
        yield from pair_lines(row, labels.get(row["source_id"]), (), marks=marks)


def rows_of_corpus(rows: Iterable[Mapping[str, Any]], n: int, find: str | None) -> Iterator[Text]:
    """Yield lines about a corpus's rows: outcome and texts, or why a row can't be worked on."""
    matching = (row for row in rows if _holds(find, row["id"], [*texts(row).texts, *other_texts(row, ()).values()]))
    for row in islice(matching, n):
        yield from row_lines(row, why=(row.get("status") or {}).get("reason") or problem(row))


def _check(rows: int, **ways: int | None) -> None:
    requested = {name: n for name, n in ways.items() if n is not None}
    if len(requested) > 1:
        raise ValueError(f"{' and '.join(f'--{name}' for name in requested)}: give one of them")
    for name, n in {"rows": rows, **requested}.items():
        if n < 1:
            raise ValueError(f"--{name} must be at least 1, got {n}")


def _check_stage(stage: str | None, stages: Sequence[str]) -> None:
    if stage and stages and stage not in stages:
        raise ValueError(f"--stage {stage}: the stages are {', '.join(stages)}{did_you_mean(stage, stages)}")


def _choose(
    paths: Sequence[Path], columns: Sequence[str], rows: int, best: int | None, worst: int | None, random: int | None,
    by: str | None, find: str | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Choose rows of the default configuration: ranked, at random, or the first."""
    matching = _matching("default", paths, find)
    if (best or worst) and not by:
        return heapq.nsmallest(best or worst or 0, matching, key=partial(_rank, turn=-1 if best else 1))
    if paths and by and (best or worst):
        ranked = _measure(paths, columns, by)
        turn = 1 if low_is_better(ranked) == bool(best) else -1
        scored = ((values[ranked], row) for row in matching if ranked in (values := measures(row, columns)))
        return [row for _, row in heapq.nsmallest(best or worst or 0, scored, key=lambda pair: turn * pair[0])]
    if random:
        return heapq.nsmallest(random, matching, key=lambda row: _draw(json.dumps(row, default=str)))
    return list(islice(matching, rows))


def _rank(row: Mapping[str, Any], turn: int = -1) -> tuple[bool, float, str]:
    """Order pairs by their score, the best first, or the worst with `turn` 1; equal pairs by id; last pairs without a score."""
    score = pair_score(row)
    return score is None, turn * (score or 0.0), str(row["id"])


def _draw(key: str) -> float:
    return Random(f"{SEED}:{key}").random()


def _labels(configs: Mapping[str, Sequence[Path]], ids: Collection[str]) -> dict[str, str]:
    """Return the labels of sources, from the configuration "augmented"."""
    rows = read(configs.get("augmented", []), columns=["id", "label"])
    return {row["id"]: row["label"] for row in rows if row["id"] in ids and row.get("label") is not None}


def _paths(folder: Path, config: str, empty: Collection[str]) -> Sequence[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}, and no corpus of that name (hfcf list corpora)")
    configs = files(folder)
    if config not in configs and config not in empty:
        raise ValueError(f"{folder} has no rows of the configuration {config!r}; it has {', '.join(configs) or 'none'}")
    return configs.get(config, [])


def _matching(config: str, paths: Sequence[Path], find: str | None) -> Iterator[dict[str, Any]]:
    for row in read(paths):
        if config == "rejected":
            held = [row["reason"] or "", *texts(row["source"]).texts, *texts(rejected_row(row["source"], row["candidate"])).texts]
        else:
            held = [*texts(row).texts, *(edit["before"] for edit in row.get("edits") or [])]
        if _holds(find, row.get("id") or row.get("source_id"), held):
            yield {"edits": [], "change": None, **row}


def _holds(find: str | None, row_id: Any, held: Iterable[str]) -> bool:
    text = "\n".join([str(row_id), *held]).casefold()
    return all(word in text for word in (find or "").casefold().split())


def _measure(paths: Sequence[Path], columns: Sequence[str], by: str) -> str:
    """Find the measure of a name or of its first part, as "minimality"."""
    names = ordered([*columns, *(name for row in islice(read(paths), 1000) for name in measures(row, columns))])
    matches = [name for name in names if name == by or name.startswith(f"{by}.")]
    if not matches:
        available = f"there are {', '.join(names)}" if names else "there are none: name metrics in the recipe"
        raise ValueError(f"no row has the metric or score {by!r}: {available}")
    return matches[0]


def _rejected(
    paths: Sequence[Path], n: int, drawn: bool, find: str | None, stage: str | None, reason: str | None, marks: bool
) -> Iterator[Text]:
    """Yield lines about what was rejected of some sources, the first sources or some at random."""
    matching = (
        row for row in _matching("rejected", paths, find)
        if stage in (None, row["stage"]) and (reason or "").casefold() in (row["reason"] or "").casefold()
    )  # fmt: skip
    sources = ((source, list(rows)) for source, rows in groupby(matching, key=itemgetter("source_id")))
    chosen = heapq.nsmallest(n, sources, key=lambda pair: _draw(str(pair[0]))) if drawn else islice(sources, n)
    return (line for _, rejections in chosen for line in rejected_lines(rejections, marks=marks))


STYLE = {"same": "", "out": "red", "in": "bold green"}
MARKS = {"same": ("", ""), "out": ("[-", "-]"), "in": ("{+", "+}")}
ALIKE = 0.3
"""The share of two texts that must be the same for their differences to be marked."""
CANDIDATES = 3
"""Rejected candidates of a source that are shown for each reason."""


def printable(line: Text) -> Text:
    """Replace each control character by �, so that data can't drive the terminal or show otherwise than it is stored."""
    line.plain = CONTROL.sub("�", line.plain)
    return line


def row_lines(row: Mapping[str, Any], *, why: str | None = None, texts: bool = True, end: bool = True) -> Iterator[Text]:
    """Yield a row from which nothing was made: its id, its outcome and its texts."""
    task = nearest_task(frozenset(row))
    outcome = (task.outcome(row) if task else None) or ""
    yield printable(Text(f"{row['id']}  {outcome}".rstrip(), style="bold"))
    if why:
        yield printable(Text(f"  {why}", style="red"))
    shown = {name: plain(parts) for name, parts in blocks(task.segments(row)).items()} if task else {}
    for name, text in {**shown, **other_texts(row, shown.values())}.items():
        if text and texts:
            yield printable(Text(f"  {name}: ", style="dim").append(text, style="not dim"))
    if end:
        yield Text("")


def other_texts(row: Mapping[str, Any], shown: Collection[str]) -> dict[str, str]:
    """Return the texts of a row that its task does not show: a cause and its effect, and columns that a corpus adds."""
    names = [name for name in row if name not in (*schema.COMMON, "id", "label", "status")]
    joined = {name: " / ".join(value) if _is_texts(value) else value for name in names if (value := row[name])}
    texts = {name: text for name, text in joined.items() if isinstance(text, str)}
    return {name: text for name, text in texts.items() if not any(text in other for other in shown)}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def pair_lines(row: Mapping[str, Any], label: str | None, said: Sequence[str], *, marks: bool) -> Iterator[Text]:
    """Yield a counterfactual: what changed, its outcome, the texts before and after, the other texts, and its numbers."""
    task = task_of(row)
    outcome, before = task.outcome(row), label if task.labelled else task.outcome(source_of(row))
    turn = f": {before} → {outcome}" if before is not None and before != outcome else f" → {outcome}"
    change = f"the {task.change_names.get(row['change'], row['change']).removeprefix('the ')} changed" if row["change"] else ""
    yield printable(Text(f"{row['id']}  {change}{turn}", style="bold"))
    try:
        shown = task.pair(row)
    except ValueError as error:
        yield printable(Text(f"  its edits do not fit its texts: {error}", style="red"))
        shown = {"texts": [], "context": []}
    for text in shown["texts"]:
        where = f"{text['where']} " if len(shown["texts"]) > 1 else ""
        for name, side in zip(("before: ", "after:  "), _sides(text["before"], text["after"], marks), strict=True):
            if side.plain:
                yield printable(Text(f"  {where}{name}", style="dim").append_text(side))
    for text in shown["context"]:
        yield printable(Text(f"  {text['where']}: {text['after']}", style="dim"))
    if said:
        yield printable(Text("  " + " · ".join(said), style="cyan"))
    yield Text("")


def rejected_lines(rejections: Sequence[Mapping[str, Any]], *, marks: bool) -> Iterator[Text]:
    """Yield what was rejected of a source: its texts once, then rejections by stage and reason, whatever its numbers."""
    source = rejections[0]["source"]
    yield from row_lines(source, end=False)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rejections:
        groups.setdefault((row["level"], row["stage"], short(row["reason"] or "")), []).append(row)
    for (level, stage, _), rows in groups.items():
        candidates, reasons = [row["candidate"] for row in rows], dict.fromkeys(row["reason"] or "" for row in rows)
        what = "the row" if level == "row" else "a candidate" if len(candidates) == 1 else f"{len(candidates)} candidates"
        reason = next(iter(reasons)) + " and the like" * (len(reasons) > 1)
        yield printable(Text(f"  {stage} rejects {what}: ", style="bold").append(reason, style="not bold"))
        for candidate in candidates[:CANDIDATES]:
            yield from _candidate(source, candidate, marks)
        if (more := len(candidates) - CANDIDATES) > 0:
            yield Text(f"    and {more} more", style="dim")
    yield Text("")


def _candidate(source: Mapping[str, Any], candidate: Mapping[str, Any] | None, marks: bool) -> Iterator[Text]:
    """Yield the texts of a rejected candidate that are not its source's; None, where the source itself was rejected, has none."""
    if candidate is None:
        return
    for text in task_of(source).pair({"id": None, **rejected_row(source, candidate)})["texts"]:
        side = _sides(text["before"], text["after"], marks)[1]
        yield printable(Text(f"    {text['where']}: ", style="dim").append_text(side))


def _sides(before: str, after: str, marks: bool) -> tuple[Text, Text]:
    """Return two texts with the different words marked, unless hardly a word is the same."""
    parts = diff(before, after)
    alike = sum(len(part) for kind, part in parts if kind == "same") >= ALIKE * max(len(before), len(after))
    sides = Text(style="not dim"), Text(style="not dim")
    for kind, part in parts:
        if marks and alike:  # around the words, not the white space before them
            bare, (opening, closing) = part.lstrip(), MARKS[kind]
            part = part[: len(part) - len(bare)] + opening + bare + closing
        for side, hidden in zip(sides, ("in", "out"), strict=True):
            if kind != hidden:
                side.append(part, style=STYLE[kind] if alike else "")
    return sides
