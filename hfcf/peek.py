"""`hfcf peek`: some rows of a run on the terminal, with what changed in colour."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from rich.text import Text

from hfcf import schema
from hfcf.edits import diff
from hfcf.publish import pair
from hfcf.report.files import files, numbers, read
from hfcf.report.measures import low_is_better, measures, ordered
from hfcf.report.rows import rejected_row, texts

STYLE = {"same": "", "out": "red strike", "in": "bold green underline"}
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
) -> Iterator[Text]:
    """Lines about rows of a run: the first ones, or the best, the worst or some at random.

    Args:
        folder: of the run.
        config: "default", the counterfactuals, or "rejected".
        rows: how many, if none of the next three says so.
        best: how many of the best.
        worst: how many of the worst.
        random: how many at random, the same ones each time.
        by: the metric, or the system's score, that ranks them; as in the report minimality is used, else the first score.
        find: words that a row's texts, id or reason must all hold, in any case.

    Raises:
        FileNotFoundError: the folder is no run's.
        ValueError: a configuration that is not there, or a metric that no row has.

    >>> list(peek("/nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: there is no folder /nowhere, and no corpus of that name (hfcf list corpora)
    """
    paths = _paths(Path(folder), config)
    found = _found(config, paths, find)
    columns = numbers(paths)
    if best or worst:
        if config != "default":
            raise ValueError(f"--best and --worst rank counterfactuals: leave --config {config} out")
        ranked = _measure(paths, columns, by)
        turn = 1 if low_is_better(ranked) == bool(best) else -1
        there = ((its[ranked], row) for row in found if ranked in (its := measures(row, columns)))
        chosen: Iterable[Any] = (row for _, row in heapq.nsmallest(best or worst or 0, there, key=lambda one: turn * one[0]))
    elif random:
        chosen = heapq.nsmallest(random, found, key=lambda row: Random(f"{SEED}:{json.dumps(row, default=str)}").random())
    else:
        chosen = islice(found, rows)
    shown = False
    for row in chosen:
        shown = True
        yield from _rejected(row) if config == "rejected" else _lines(row, measures(row, columns))
    if not shown:
        yield Text(f"no row of {config} is like this" if find else f"{config} has no rows", style="dim")


def rows_of_corpus(rows: Iterable[Mapping[str, Any]], n: int, find: str | None) -> Iterator[Text]:
    """Lines about a corpus's rows."""
    there = (row for row in rows if _holds(find, row["id"], texts(row)[0]))
    for row in islice(there, n):
        if why := schema.problem(row):
            yield Text(f"{row['id']}  {why}", style="bold")
        else:
            yield from _lines({**row, "change": None, "edits": []}, {})


def _paths(folder: Path, config: str) -> Sequence[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}, and no corpus of that name (hfcf list corpora)")
    there = files(folder)
    if config not in there:
        raise ValueError(f"{folder} has no rows of the configuration {config!r}; it has {', '.join(there) or 'none'}")
    return there[config]


def _found(config: str, paths: Sequence[Path], find: str | None) -> Iterator[dict[str, Any]]:
    for row in read(paths):
        if config == "rejected":
            row["source"] = json.loads(row["source"])
            held = [row["reason"] or "", *texts(row["source"])[0], *texts(rejected_row(row["source"], row["candidate"]))[0]]
        else:
            held = [*texts(row)[0], *(edit["before"] for edit in row.get("edits") or [])]
        if _holds(find, row.get("id") or row.get("source_id"), held):
            yield {"edits": [], "change": None, **row}


def _holds(find: str | None, row_id: Any, held: Iterable[str]) -> bool:
    text = "\n".join([str(row_id), *held]).casefold()
    return all(word in text for word in (find or "").casefold().split())


def _measure(paths: Sequence[Path], columns: Sequence[str], by: str | None) -> str:
    """The name of the measure that is meant: "minimality" is the first part of that."""
    names = ordered([*columns, *(name for row in islice(read(paths), 1000) for name in measures(row, columns))])
    meant = [name for name in names if by is None or name == by or name.startswith(f"{by}.")]
    if not meant:
        there = f"there are {', '.join(names)}" if names else "there are none: name metrics in the recipe"
        raise ValueError(f"no row has the metric or score {by!r}: {there}" if by else f"nothing ranks these rows: {there}")
    return meant[0]


def _rejected(row: Mapping[str, Any]) -> Iterator[Text]:
    told = f"{row['source_id']} ({row['level']}, {row['stage']}): "
    yield Text(told, style="bold") + Text(row["reason"] or "")
    # What could not be read has no texts to show.
    if schema.problem(row["source"]) is None:
        yield from _texts({"id": None, **rejected_row(row["source"], row["candidate"])})
    yield Text("")


def _lines(row: Mapping[str, Any], its: Mapping[str, float]) -> Iterator[Text]:
    head = f"the {row['change']} changed → {row['label']}" if row["change"] else str(row["label"])
    yield Text(f"{row['id']}  {head}", style="bold")
    yield from _texts(row)
    if its:
        yield Text("  " + "  ".join(f"{name} {value:.4g}" for name, value in its.items()), style="dim")
    yield Text("")


def _texts(row: Mapping[str, Any]) -> Iterator[Text]:
    try:
        shown = pair(row)
    except ValueError as error:
        yield Text(f"  its edits do not fit its texts: {error}", style="red")
        return
    for text in shown["texts"]:
        line = Text(f"  {text['where']}: ", style="dim")
        for kind, part in diff(text["before"], text["after"]):
            line.append(part, style=f"not dim {STYLE[kind]}")
        yield line
    for text in shown["context"]:
        yield Text(f"  {text['where']}: {text['after']}", style="dim")
