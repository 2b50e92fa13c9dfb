"""Which candidates become the attack set: a person marks them in a spreadsheet, or, where nobody reads, the least perplexing.

Ids hold letters, so that a spreadsheet takes none for a number or a date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features

from hfcf.core import schema
from hfcf.studies.attack.build import of_rows
from hfcf.studies.sheets import read_sheet, unaltered, unguarded, write_sheet
from hfcf.tasks.relation import marked

COLUMNS = ("id", "kind", "rank", "source_label", "source", "label", "sentence", "perplexity", "chosen")
"""Of the spreadsheet."""
_OWN = {
    "source_id": schema.TEXT, "kind": schema.TEXT, "donor_id": schema.TEXT, "perplexity": schema.FLOAT, "edits": schema.EDITS,
}  # fmt: skip
ATTACK = Features({**schema.TASKS["relation"], **_OWN})
"""Columns of an attack set."""

_YES, _NO = ("x", "1", "yes", "y", "true"), ("", "0", "no", "n", "false")
_NEEDED = ("id", "label", "sentence", "chosen")


def export_choices(candidates: Dataset, path: str | Path) -> None:
    """Write a CSV file for a person: one line for each candidate, its entities in brackets, the head's marked ₁.

    UTF-8 with the mark by which spreadsheets know it. In the column `chosen` the person puts x, 1 or yes beside at most one line of
    each source and kind; lines may be sorted or deleted, but not altered.

    Args:
        candidates: from `build_attack`.
        path: the file.

    >>> import tempfile
    >>> from hfcf.studies.attack.build import CANDIDATES, of_rows
    >>> file = Path(tempfile.mkdtemp()) / "candidates.csv"
    >>> export_choices(of_rows([], CANDIDATES), file)
    >>> file.read_text("utf-8-sig").strip()
    '"id","kind","rank","source_label","source","label","sentence","perplexity","chosen"'
    """
    rows = ({**row, "sentence": marked(row), "chosen": "x" if row["chosen"] else ""} for row in candidates)
    write_sheet(Path(path), COLUMNS, rows)


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
    for line, cells in read_sheet(where, _NEEDED):
        row_id = next((each for each in unguarded(cells["id"]) if each in known), cells["id"])
        if row_id not in known:
            raise ValueError(f"{where}, line {line}: there is no candidate {row_id!r}: is this the file of another set?")
        if row_id in seen:
            raise ValueError(f"{where}, line {line}: the candidate {row_id!r} is in line {seen[row_id]} already")
        seen[row_id] = line
        row = candidates[known[row_id]]
        for column, ours in (("sentence", marked(row)), ("label", row["label"])):
            if not unaltered(cells[column], ours):
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
    return sum(cells["chosen"].strip() != "" for _, cells in read_sheet(path, _NEEDED))


def _attack_set(candidates: Dataset, picked: Iterable[int]) -> Dataset:
    def row(one: Mapping[str, Any]) -> dict[str, Any]:
        own = {"id": f"{one['source_id']}:{one['kind']}", "corpus": f"attack:{one['corpus'] or ''}", "split": "test"}
        return {**{column: one[column] for column in ATTACK}, **own}

    return of_rows([row(candidates[i]) for i in sorted(picked)], ATTACK)
