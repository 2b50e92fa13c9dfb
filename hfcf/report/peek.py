"""`hfcf peek`: some rows of a run on the terminal, with what changed in colour."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

from rich.text import Text

from hfcf.core.edits import diff
from hfcf.core.task import problem, task_of
from hfcf.report.files import files, numbers, read, read_run
from hfcf.report.measures import low_is_better, measures, ordered
from hfcf.report.rows import rejected_row, texts
from hfcf.text.check import CONTROL

STYLE = {"same": "", "out": "red strike", "in": "bold green underline"}
MARKS = {"same": ("", ""), "out": ("[-", "-]"), "in": ("{+", "+}")}
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
    marks: bool = False,
    scores: bool = True,
) -> Iterator[Text]:
    """Yield lines about rows of a run, without control characters: the first rows, the best, the worst or some at random.

    Args:
        folder: of the run.
        config: "default", the counterfactuals, or "rejected".
        rows: how many, if none of the next three says so.
        best: how many of the best.
        worst: how many of the worst.
        random: how many at random, the same ones each time.
        by: the metric, or the system's score, that ranks them; as in the report minimality, else the run's first metric, else the
            first score.
        find: words that a row's texts, id or reason must all hold, in any case.
        marks: put `[-what went-]` and `{+what came+}` into the texts, for where colours don't show.
        scores: end each row with its metrics and scores.

    Raises:
        FileNotFoundError: the folder is no run's.
        ValueError: a configuration that is not there, a metric that no row has, fewer than one row, or two ways to choose them.

    >>> list(peek("/nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: there is no folder /nowhere, and no corpus of that name (hfcf list corpora)
    """
    _check(rows, best=best, worst=worst, random=random)
    run = read_run(Path(folder)) or {}
    paths = _paths(Path(folder), config, run.get("empty") or ())
    matching = _matching(config, paths, find)
    columns = ordered(numbers(paths), run.get("metrics") or ())
    if paths and (best or worst):
        if config != "default":
            raise ValueError(f"--best and --worst rank counterfactuals: leave --config {config} out")
        ranked = _measure(paths, columns, by)
        turn = 1 if low_is_better(ranked) == bool(best) else -1
        scored = ((values[ranked], row) for row in matching if ranked in (values := measures(row, columns)))
        chosen: Iterable[Any] = (row for _, row in heapq.nsmallest(best or worst or 0, scored, key=lambda one: turn * one[0]))
    elif random:
        chosen = heapq.nsmallest(random, matching, key=lambda row: Random(f"{SEED}:{json.dumps(row, default=str)}").random())
    else:
        chosen = islice(matching, rows)
    shown = False
    for row in chosen:
        shown = True
        lines = _rejected(row, marks) if config == "rejected" else _lines(row, measures(row, columns) if scores else {}, marks)
        yield from map(printable, lines)
    if not shown:
        yield Text(f"no row of {config} is like this" if find else f"{config} has no rows", style="dim")


def highlights(folder: str | Path, n: int, *, marks: bool = False) -> Iterator[Text]:
    """Yield lines about good pairs of a run, at most one of a source, without scores: the end of `hfcf run`.

    Pairs whose main text changed come first, ranked by the probability that the models that wrote and judged them give. Pairs
    without such scores are ranked as in the report.

    Args:
        folder: of the run.
        n: how many.
        marks: see `peek`.
    """
    paths = files(Path(folder)).get("default", [])
    columns = ordered(numbers(paths), (read_run(Path(folder)) or {}).get("metrics") or ())
    turn = 1 if columns and low_is_better(columns[0]) else -1

    def rank(row: Mapping[str, Any]) -> tuple[bool, float, float]:
        values = measures(row, columns)
        probability = math.exp(values.get("log-probability", 0.0)) * values.get("verifier", 1.0)
        main = task_of(row).segments(row)[0].field
        value = min((turn * values[name] for name in columns[:1] if name in values), default=math.inf)
        return all(edit["field"] != main for edit in row["edits"]), -probability, value

    best = (min(pairs, key=rank) for _, pairs in groupby(_matching("default", paths, None), key=itemgetter("source_id")))
    for row in heapq.nsmallest(n, best, key=rank):
        yield from map(printable, _lines(row, {}, marks))


def rows_of_corpus(rows: Iterable[Mapping[str, Any]], n: int, find: str | None) -> Iterator[Text]:
    """Yield lines about a corpus's rows."""
    matching = (row for row in rows if _holds(find, row["id"], texts(row).texts))
    for row in islice(matching, n):
        if why := problem(row):
            yield printable(Text(f"{row['id']}  {why}", style="bold"))
        else:
            yield from map(printable, _lines({**row, "change": None, "edits": []}, {}, marks=False))


def printable(line: Text) -> Text:
    """Replace each control character by �, so that data can't drive the terminal or show otherwise than it is stored.

    >>> printable(Text("\\x1b[2J\\u202eevil")).plain
    '�[2J�evil'
    """
    line.plain = CONTROL.sub("�", line.plain)
    return line


def _check(rows: int, **ways: int | None) -> None:
    requested = {name: n for name, n in ways.items() if n is not None}
    if len(requested) > 1:
        raise ValueError(f"{' and '.join(f'--{name}' for name in requested)}: give one of them")
    for name, n in {"rows": rows, **requested}.items():
        if n < 1:
            raise ValueError(f"--{name} {n}: one row or more")


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
            row["source"] = json.loads(row["source"])
            held = [row["reason"] or "", *texts(row["source"]).texts, *texts(rejected_row(row["source"], row["candidate"])).texts]
        else:
            held = [*texts(row).texts, *(edit["before"] for edit in row.get("edits") or [])]
        if _holds(find, row.get("id") or row.get("source_id"), held):
            yield {"edits": [], "change": None, **row}


def _holds(find: str | None, row_id: Any, held: Iterable[str]) -> bool:
    text = "\n".join([str(row_id), *held]).casefold()
    return all(word in text for word in (find or "").casefold().split())


def _measure(paths: Sequence[Path], columns: Sequence[str], by: str | None) -> str:
    """Find the measure of a name or of its first part, as "minimality"."""
    names = ordered([*columns, *(name for row in islice(read(paths), 1000) for name in measures(row, columns))])
    matches = [name for name in names if by is None or name == by or name.startswith(f"{by}.")]
    if not matches:
        available = f"there are {', '.join(names)}" if names else "there are none: name metrics in the recipe"
        raise ValueError(f"no row has the metric or score {by!r}: {available}" if by else f"nothing ranks these rows: {available}")
    return matches[0]


def _rejected(row: Mapping[str, Any], marks: bool) -> Iterator[Text]:
    heading = f"{row['source_id']} ({row['level']}, {row['stage']}): "
    yield Text(heading, style="bold") + Text(row["reason"] or "")
    # What could not be read has no texts to show.
    if problem(row["source"]) is None:
        yield from _texts({"id": None, **rejected_row(row["source"], row["candidate"])}, marks)
    yield Text("")


def _lines(row: Mapping[str, Any], values: Mapping[str, float], marks: bool) -> Iterator[Text]:
    outcome = task_of(row).outcome(row)
    head = f"the {row['change']} changed → {outcome}" if row["change"] else str(outcome)
    yield Text(f"{row['id']}  {head}", style="bold")
    yield from _texts(row, marks)
    if values:
        yield Text("  " + "  ".join(f"{name} {value:.4g}" for name, value in values.items()), style="dim")
    yield Text("")


def _texts(row: Mapping[str, Any], marks: bool) -> Iterator[Text]:
    try:
        shown = task_of(row).pair(row)
    except ValueError as error:
        yield Text(f"  its edits do not fit its texts: {error}", style="red")
        return
    for text in shown["texts"]:
        line = Text(f"  {text['where']}: ", style="dim")
        for kind, part in diff(text["before"], text["after"]):
            if marks:  # around the words, not the white space before them
                bare, (opening, closing) = part.lstrip(), MARKS[kind]
                part = part[: len(part) - len(bare)] + opening + bare + closing
            line.append(part, style=f"not dim {STYLE[kind]}")
        yield line
    for text in shown["context"]:
        yield Text(f"  {text['where']}: {text['after']}", style="dim")
