"""Filled rating sheets, read back: what is not sound is refused with its file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfcf.studies.human.export import KEY, NOTE, sheet
from hfcf.studies.human.protocol import Protocol, answer
from hfcf.studies.human.summary import summary
from hfcf.studies.human.table import table
from hfcf.studies.sheets import read_sheet, unaltered, unguarded

RATINGS, TABLE = "ratings.json", "ratings.md"
_SHOWN = 10  # problems in one message


def import_(out: str | Path, *, partial: bool = False) -> dict[str, Any]:
    """Read the filled sheets of a folder, and write `ratings.json` and `ratings.md` into it.

    Import again, and the same is written: all follows from the sheets and `key.json`.

    Args:
        out: the folder of `export`.
        partial: sum up what is there, though answers are missing.

    Returns:
        What `ratings.json` holds: see `hfcf.studies.human.summary.summary`; besides `missing`, answers of each sheet that are not
        there, and `notes`.

    Raises:
        FileNotFoundError: the folder has no key.
        ValueError: an id is unknown or there twice, a text was altered, an answer is not on its scale, or answers are missing
            (unless `partial`). The message has the first ten, each with its file, line and cure.

    >>> import tempfile
    >>> from hfcf.studies.human.export import export
    >>> row = {"id": "1", "question": "who led", "context": "Jeff Hogg led.", "answers": {"text": ["Jeff Hogg"]}}
    >>> out = Path(tempfile.mkdtemp())
    >>> found = export({"mine": [row]}, "rgf", out, raters=1)
    >>> sheet = out / "raters" / "rater-1.csv"
    >>> filled = sheet.write_text(sheet.read_text("utf-8-sig").replace('”","",""', '”","1","0"'), "utf-8")
    >>> import_(out)["methods"]["mine"]["correctness"]["all"]["mean"]
    0.0
    """
    folder = Path(out)
    if not (folder / KEY).exists():
        raise FileNotFoundError(
            f"{folder / KEY} is not there: it is written by hfcf rate export, and stays where the sheets come back to"
        )
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    protocol = Protocol.from_json(key["protocol"])
    answers: dict[str, dict[str, list[Any]]] = {
        item: {question.name: [None] * key["raters"] for question in protocol.questions} for item in key["items"]
    }
    problems: list[str] = []
    notes: list[dict[str, Any]] = []
    for rater in range(1, key["raters"] + 1):
        path = sheet(folder, rater)
        if not path.exists():
            if not partial:
                problems.append(f"{path} is not there: put the filled sheet back in its place, saved as CSV")
            continue
        _read(path, key, protocol, rater - 1, answers, problems, notes)
    missing = _missing(folder, key, protocol, answers)
    if not partial and not problems:
        problems += [
            f"{path}: {n} of {len(key['items']) * len(protocol.questions)} answers are missing, the first of them {first}: "
            "fill them in, or sum up what is there with --partial"
            for path, (n, first) in missing.items()
        ]
    if problems:
        more = f"\n… and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ValueError("\n".join(problems[:_SHOWN]) + more)
    found = summary(key, answers)
    found |= {"missing": {Path(path).name: n for path, (n, _) in missing.items()}, "notes": notes, "answers": answers}
    (folder / RATINGS).write_text(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(table(found), encoding="utf-8")
    return found


def _read(
    path: Path,
    key: Mapping[str, Any],
    protocol: Protocol,
    rater: int,
    answers: Mapping[str, Mapping[str, list[Any]]],
    problems: list[str],
    notes: list[dict[str, Any]],
) -> None:
    """Put a sheet's answers in their places, and what is wrong with it among the problems."""
    seen: dict[str, int] = {}
    names = [question.name for question in protocol.questions]
    for line, cells in read_sheet(path, ["id", *protocol.shows, *names]):
        at = f"{path}, line {line}"
        item_id = unguarded(cells["id"])[0].strip()
        if item_id not in key["items"]:
            problems.append(f"{at}: there is no {item_id!r}: is this the sheet of another folder?")
            continue
        if item_id in seen:
            problems.append(f"{at}: {item_id} is in line {seen[item_id]} already: delete one of them")
            continue
        seen[item_id] = line
        item = key["items"][item_id]
        for column in protocol.shows:
            if not unaltered(cells[column], ours := item["texts"][column]):
                problems.append(
                    f"{at}: the {column} of {item_id} was altered: {cells[column]!r} in the place of {ours!r}; put it back"
                )
        for question in protocol.questions:
            if cells[question.name].strip():
                try:
                    answers[item_id][question.name][rater] = answer(question, cells[question.name], item)
                except ValueError as error:
                    problems.append(f"{at}, column {question.name}: {error}")
        if note := cells.get(NOTE, "").strip():
            notes.append({"rater": rater + 1, "id": item_id, "note": note})


def _missing(
    folder: Path, key: Mapping[str, Any], protocol: Protocol, answers: Mapping[str, Mapping[str, list[Any]]]
) -> dict[str, tuple[int, str]]:
    """Of each sheet that lacks answers how many, and the first of them."""
    found = {}
    for rater in range(key["raters"]):
        gaps = [f"{question.name} of {item}" for item in key["items"] for question in protocol.questions
                if answers[item][question.name][rater] is None]  # fmt: skip
        if gaps:
            found[str(sheet(folder, rater + 1))] = (len(gaps), gaps[0])
    return found
