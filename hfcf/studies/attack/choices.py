"""Choose the candidates of the attack set: a person marks them in a spreadsheet, or the least perplexing are chosen unread.

Ids contain letters, so that a spreadsheet does not read one as a number or a date.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from datasets import Dataset

from hfcf.core.decisions import exceeds
from hfcf.studies.spreadsheets import read_sheet, unaltered, unguarded, write_sheet
from hfcf.systems.ccg.attack import ATTACK, dataset_of
from hfcf.tasks.relation import marked

COLUMNS = ("id", "kind", "rank", "source_label", "source", "label", "sentence", "perplexity", "chosen")
"""The columns of the spreadsheet."""
_YES, _NO = ("x", "1", "yes", "y", "true"), ("", "0", "no", "n", "false")
_NEEDED = ("id", "label", "sentence", "chosen")


def export_choices(candidates: Dataset, path: str | Path) -> None:
    """Write a CSV file for a person: one line for each candidate, its entities in brackets, the head's marked ₁.

    The file is UTF-8 with a byte order mark, which spreadsheets need. In the column `chosen` the person writes x, 1 or yes on at
    most one line of each source and kind. Lines may be sorted or deleted, but not altered.
    """
    rows = ({**row, "sentence": marked(row), "chosen": "x" if row["chosen"] else ""} for row in candidates)
    write_sheet(Path(path), COLUMNS, rows)


def import_choices(candidates: Dataset, path: str | Path) -> Dataset:
    """Return the attack set that a person chose."""
    where = Path(path)
    place_of = {row_id: i for i, row_id in enumerate(candidates["id"])}
    line_of: dict[str, int] = {}
    marks: dict[tuple[str, str], int] = {}
    picked = []
    for line, cells in read_sheet(where, _NEEDED):
        at = f"{where}, line {line}"
        row_id = next((each for each in unguarded(cells["id"]) if each in place_of), cells["id"])
        if row_id not in place_of:
            raise ValueError(f"{at}: there is no candidate {row_id!r}: is this the file of another set?")
        if row_id in line_of:
            raise ValueError(f"{at}: the candidate {row_id!r} is in line {line_of[row_id]} already")
        line_of[row_id] = line
        row = candidates[place_of[row_id]]
        for column, written in (("sentence", marked(row)), ("label", row["label"])):
            if not unaltered(cells[column], written):
                cure = f"{cells[column]!r} instead of {written!r}; put it back, and mark another candidate if it is not good enough"
                raise ValueError(f"{at}: the {column} of {row_id!r} was altered: {cure}")
        mark = cells["chosen"].strip().lower()
        if mark not in (*_YES, *_NO):
            raise ValueError(f"{at}: the mark {cells['chosen']!r} is neither x, 1 or yes nor empty")
        if mark in _YES:
            which = (row["source_id"], row["kind"])
            if which in marks:
                at = f"{where}, lines {marks[which]} and {line}"
                raise ValueError(f"{at}: two {which[1]} sentences of {which[0]!r} are marked; mark one")
            marks[which] = line
            picked.append(place_of[row_id])
    return _attack_set(candidates, picked)


def choose_first(candidates: Dataset, *, max_perplexity_ratio: float = 1.5) -> Dataset:
    """Choose the least perplexing candidate of each source and kind, if it is fluent enough; nobody reads the set.

    This is not the paper's procedure, in which people choose. Nobody has checked that the sentences make sense, or that a flipped
    sentence has its label. Use it for trials, and say so with every number that results.

    Args:
        candidates: from `build_attack`.
        max_perplexity_ratio: the largest allowed perplexity of a sentence, relative to its source's; more than 0.

    Returns:
        See `import_choices`.
    """
    if not max_perplexity_ratio > 0:
        raise ValueError(f"max_perplexity_ratio must be more than 0, got {max_perplexity_ratio}")
    best: dict[tuple[str, str], tuple[int, int]] = {}
    columns = ["source_id", "kind", "rank", "perplexity", "source_perplexity"]
    for i, row in enumerate(candidates.select_columns(columns)):
        source = row["source_perplexity"]
        if source is not None and not exceeds(row["perplexity"] / source, max_perplexity_ratio):
            which = (row["source_id"], row["kind"])
            best[which] = min(best.get(which, (row["rank"], i)), (row["rank"], i))
    return _attack_set(candidates, [i for _, i in best.values()])


def marked_lines(path: Path) -> int:
    """Count the lines that a person has marked in a file of choices."""
    return sum(cells["chosen"].strip() != "" for _, cells in read_sheet(path, _NEEDED))


def _attack_set(candidates: Dataset, picked: Iterable[int]) -> Dataset:
    rows = []
    for i in sorted(picked):
        row = {column: candidates[i][column] for column in ATTACK}
        names = {"id": f"{row['source_id']}:{row['kind']}", "corpus": f"attack:{row['corpus'] or ''}", "split": "test"}
        rows.append({**row, **names})
    return dataset_of(rows, ATTACK)
