"""Which candidates become the attack set: a person marks them in a spreadsheet, or, where nobody reads, the least perplexing.

A cell that a spreadsheet would take for a formula gets an apostrophe before it, which is taken off again on the way back. Ids hold
letters, so that none is taken for a number or a date.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features

from hfcf import schema
from hfcf.attack.build import of_rows
from hfcf.publish import marked

COLUMNS = ("id", "kind", "rank", "source_label", "source", "label", "sentence", "perplexity", "chosen")
"""Of the spreadsheet."""
_OWN = {
    "source_id": schema.TEXT, "kind": schema.TEXT, "donor_id": schema.TEXT, "perplexity": schema.FLOAT, "edits": schema.EDITS,
}  # fmt: skip
ATTACK = Features({**schema.TASKS["relation"], **_OWN})
"""Columns of an attack set."""

_YES, _NO = ("x", "1", "yes", "y", "true"), ("", "0", "no", "n", "false")
_FORMULA = tuple("=+-@＝＋－＠\t\r\n'")


def export_choices(candidates: Dataset, path: str | Path) -> None:
    """Write a CSV file for a person: one line for each candidate, its entities in brackets, the head's marked ₁.

    UTF-8 with the mark by which spreadsheets know it. In the column `chosen` the person puts x, 1 or yes beside at most one line of
    each source and kind; lines may be sorted or deleted, but not altered.

    Args:
        candidates: from `build_attack`.
        path: the file.

    >>> import tempfile
    >>> from hfcf.attack.build import CANDIDATES, of_rows
    >>> file = Path(tempfile.mkdtemp()) / "candidates.csv"
    >>> export_choices(of_rows([], CANDIDATES), file)
    >>> file.read_text("utf-8-sig").strip()
    'id,kind,rank,source_label,source,label,sentence,perplexity,chosen'
    """
    with Path(path).open("w", encoding="utf-8-sig", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for row in candidates:
            cells = {**row, "sentence": marked(row), "chosen": "x" if row["chosen"] else ""}
            lines.writerow([_guarded(str(cells[column])) for column in COLUMNS])


def import_choices(candidates: Dataset, path: str | Path) -> Dataset:
    """The attack set that a person chose.

    Args:
        candidates: those that were exported.
        path: the file, with x, 1, yes, y or true in the column `chosen` of some lines; separated by commas, semicolons or tabs.

    Returns:
        The chosen ones as relation rows, see `ATTACK`: `<source id>:<kind>`, in the source's group, of the corpus
        `attack:<corpus>`, split test. They are in the order of `candidates`.

    Raises:
        ValueError: two lines of one source and kind are marked, an id is unknown or there twice, a sentence or label was altered,
            a mark can't be read, or the file is no such CSV. The message has the line.
    """
    where = Path(path)
    known = {row_id: i for i, row_id in enumerate(candidates["id"])}
    seen: dict[str, int] = {}
    marks: dict[tuple[str, str], int] = {}
    picked = []
    for line, cells in _lines(where):
        row_id = next((each for each in _unguarded(cells["id"]) if each in known), cells["id"])
        if row_id not in known:
            raise ValueError(f"{where}, line {line}: there is no candidate {row_id!r}: is this the file of another set?")
        if row_id in seen:
            raise ValueError(f"{where}, line {line}: the candidate {row_id!r} is in line {seen[row_id]} already")
        seen[row_id] = line
        row = candidates[known[row_id]]
        for column, ours in (("sentence", marked(row)), ("label", row["label"])):
            if _one_end(ours) not in map(_one_end, _unguarded(cells[column])):
                raise ValueError(
                    f"{where}, line {line}: the {column} of {row_id!r} was altered: {cells[column]!r} in the place of {ours!r}; "
                    "put it back, and mark another candidate if it is not good enough"
                )
        mark = cells["chosen"].strip().lower()
        if mark not in (*_YES, *_NO):
            raise ValueError(f"{where}, line {line}: the mark {cells['chosen']!r} is neither x, 1 or yes nor empty")
        if mark in _YES:
            which = (row["source_id"], row["kind"])
            if which in marks:
                raise ValueError(
                    f"{where}, lines {marks[which]} and {line}: two {which[1]} sentences of {which[0]!r} are marked; mark one"
                )
            marks[which] = line
            picked.append(known[row_id])
    return _attack_set(candidates, picked)


def choose_first(candidates: Dataset, *, max_perplexity_ratio: float = 1.5) -> Dataset:
    """An attack set that nobody has read: of each source and kind the least perplexing candidate, if it is fluent enough.

    This is not the paper's procedure, in which people choose: no one has checked that the sentences make sense, or that a flipped
    one has its label. Use it to try things out, and say so of every number that comes of it.

    Args:
        candidates: from `build_attack`.
        max_perplexity_ratio: how many times as perplexing as its source a sentence may be.

    Returns:
        As of `import_choices`.

    Raises:
        ValueError: `max_perplexity_ratio` is not positive.
    """
    if not max_perplexity_ratio > 0:
        raise ValueError(f"max_perplexity_ratio={max_perplexity_ratio}: more than 0")
    best: dict[tuple[str, str], tuple[float, int, int]] = {}
    read = candidates.select_columns(["source_id", "kind", "rank", "perplexity", "source_perplexity"])
    for i, row in enumerate(read):
        source = row["source_perplexity"]
        if source is not None and row["perplexity"] <= max_perplexity_ratio * source:
            which = (row["source_id"], row["kind"])
            best[which] = min(best.get(which, (float("inf"), 0, 0)), (row["perplexity"], row["rank"], i))
    return _attack_set(candidates, [i for *_, i in best.values()])


def marked_lines(path: Path) -> int:
    """How many lines of a file of choices a person has marked."""
    return sum(cells["chosen"].strip() != "" for _, cells in _lines(path))


def _attack_set(candidates: Dataset, picked: Iterable[int]) -> Dataset:
    def row(one: Mapping[str, Any]) -> dict[str, Any]:
        own = {"id": f"{one['source_id']}:{one['kind']}", "corpus": f"attack:{one['corpus'] or ''}", "split": "test"}
        return {**{column: one[column] for column in ATTACK}, **own}

    return of_rows([row(candidates[i]) for i in sorted(picked)], ATTACK)


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The lines of a file of choices, with their numbers."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: save it as 'CSV UTF-8' in the spreadsheet") from error
    first = text.split("\n", 1)[0]
    # Spreadsheets of countries with decimal commas write semicolons.
    separator = max(",;\t", key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    names = next(lines, [])
    if missing := [column for column in ("id", "label", "sentence", "chosen") if column not in names]:
        raise ValueError(f"{path} has no column {missing[0]!r} in its first line; it has {', '.join(names) or 'nothing'}")
    found = []
    for cells in lines:
        if any(cell.strip() for cell in cells):
            # Spreadsheets leave out empty cells at a line's end.
            found.append((lines.line_num, {name: cells[i] if i < len(cells) else "" for i, name in enumerate(names)}))
    return found


def _guarded(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _unguarded(cell: str) -> tuple[str, str]:
    """What a cell may have been: some spreadsheets take the apostrophe off themselves."""
    return cell.removeprefix("'"), cell


def _one_end(text: str) -> str:
    """Spreadsheets write their own line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
