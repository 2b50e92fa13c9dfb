"""Read filled rating sheets; refuse errors with their file and line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hfcf.studies.human.export import KEY, NOTE, sheet
from hfcf.studies.human.protocol import Protocol, Row, parse_answer
from hfcf.studies.human.protocols import PROTOCOLS, show
from hfcf.studies.human.summary import ratings_table, summarise
from hfcf.studies.spreadsheets import read_sheet, unaltered, unguarded

RATINGS, TABLE, RATED = "ratings.json", "ratings.md", "rated.jsonl"
PERSON = "a person"
"""Who reads rows unless `by` says."""
_CUT = 200  # characters of a text in `RATED`, which may be published where whole passages may not
_SHOWN = 10  # problems in one message


def import_(out: str | Path, *, partial: bool = False, by: str = PERSON) -> dict[str, Any]:
    """Read the filled sheets of a folder, and write `ratings.json`, `ratings.md` and `rated.jsonl` into it.

    `rated.jsonl` has a line for each row: its id, the beginnings of the texts that were read, their hash, answers, notes, and `by`.

    Args:
        out: the folder of `export`.
        partial: summarise the existing answers, even if some are missing.
        by: who read the rows, as tables name them: "one language model, no person".

    Returns:
        The content of `ratings.json`, which depends only on the sheets and `key.json`. It has the results of
        `hfcf.studies.human.summary.summarise`, and `missing`, the number of missing answers of each sheet. `not_asked` are the
        optional questions that a sheet has no column for (their answers are null, and not missing). `notes` are the raters' notes.

    Raises:
        FileNotFoundError: the folder has no key.
        ValueError: an id is unknown or appears twice, a text was altered, an answer is not on its scale, or answers are missing
            (unless `partial`). The message has the first ten errors, each with its file, line and cure.

    >>> import tempfile
    >>> from hfcf.studies.human.export import export
    >>> row = {"id": "1", "question": "who led", "context": "Jeff Hogg led.", "answers": {"text": ["Jeff Hogg"]}}
    >>> out = Path(tempfile.mkdtemp())
    >>> report = export({"mine": [row]}, "rgf", out, raters=1)
    >>> sheet = out / "raters" / "rater-1.csv"
    >>> filled = sheet.write_text(sheet.read_text("utf-8-sig").replace('”","",""', '”","1","0"'), "utf-8")
    >>> import_(out)["methods"]["mine"]["correctness"]["all"]["mean"]
    0.0
    """
    folder = Path(out)
    if not (folder / KEY).exists():
        raise FileNotFoundError(f"there is no {folder / KEY}: hfcf rate export writes it; import the sheets in the same folder")
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    protocol = Protocol.from_json(key["protocol"])
    answers: dict[str, dict[str, list[Any]]] = {
        item: {question.name: [None] * key["raters"] for question in protocol.asked} for item in key["items"]
    }
    not_asked: dict[str, list[str]] = {}
    problems: list[str] = []
    notes: list[dict[str, Any]] = []
    for rater in range(1, key["raters"] + 1):
        if (path := sheet(folder, rater)).exists():
            sheet_notes, sheet_problems, absent = _read(path, key, protocol, rater - 1, answers)
            notes += sheet_notes
            problems += sheet_problems
            not_asked |= {path.name: absent} if absent else {}
        elif not partial:
            problems.append(f"there is no {path}: put the filled sheet there, saved as CSV")
    cells = [(question, f"{question} of {item}", values) for item, own in answers.items() for question, values in own.items()]
    missing: dict[Path, list[str]] = {}
    gaps: list[str] = []
    for rater in range(1, key["raters"] + 1):
        path = sheet(folder, rater)
        asked = [cell for cell in cells if cell[0] not in not_asked.get(path.name, ())]
        if names := [name for _, name, values in asked if values[rater - 1] is None]:
            missing[path] = names
            if not partial and not problems:
                gaps.append(
                    f"{path}: {len(names)} of {len(asked)} answers are missing, the first of them {names[0]}: "
                    "fill them in, or summarise the existing ones with --partial"
                )
    problems += gaps
    if problems:
        more = f"\n… and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ValueError("\n".join(problems[:_SHOWN]) + more)
    complete = protocol.complete(answers)
    results = summarise(key, complete)
    counts = {path.name: len(names) for path, names in missing.items()}
    results |= {"missing": counts, "not_asked": not_asked, "notes": notes, "answers": complete}
    (folder / RATINGS).write_text(json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(ratings_table(results), encoding="utf-8")
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in _rated(key, results, by))
    (folder / RATED).write_text("".join(lines), encoding="utf-8")
    return results


def _rated(key: Mapping[str, Any], results: Mapping[str, Any], by: str) -> Iterable[dict[str, Any]]:
    """List the rows that were rated singly; what several methods share has no row."""
    notes: dict[str, list[str]] = {}
    for note in results["notes"]:
        notes.setdefault(note["id"], []).append(note["note"])
    for name, item in key["items"].items():
        if "row" in item:
            texts = {column: text if len(text) <= _CUT else f"{text[:_CUT]}…" for column, text in item["texts"].items()}
            about = {"row": item["row"], "protocol": key["protocol"]["name"], "texts": texts, "read": _hash(item["texts"])}
            yield {**about, "answers": results["answers"][name], "notes": notes.get(name, []), "by": by}


def _hash(texts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def _read(
    path: Path, key: Mapping[str, Any], protocol: Protocol, rater: int, answers: Mapping[str, Mapping[str, list[Any]]]
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Add a sheet's answers to `answers`; return its notes, its errors, and the optional questions that it does not ask."""
    notes: list[dict[str, Any]] = []
    problems: list[str] = []
    line_of: dict[str, int] = {}
    needed = [question.name for question in protocol.asked if not question.optional]
    lines = read_sheet(path, ["id", *protocol.shows, *needed])
    present = lines[0][1] if lines else {}
    asked = [question for question in protocol.asked if question.name in present]
    absent = [question.name for question in protocol.asked if lines and question.name not in present]
    for line, cells in lines:
        at = f"{path}, line {line}"
        item_id = unguarded(cells["id"])[0].strip()
        if item_id not in key["items"]:
            problems.append(f"{at}: there is no {item_id!r}: is this the sheet of another folder?")
            continue
        if item_id in line_of:
            problems.append(f"{at}: {item_id} is in line {line_of[item_id]} already: delete one of them")
            continue
        line_of[item_id] = line
        item = key["items"][item_id]
        for column in protocol.shows:
            if not unaltered(cells[column], written := item["texts"][column]):
                cure = f"{cells[column]!r} instead of {written!r}; put it back"
                problems.append(f"{at}: the {column} of {item_id} was altered: {cure}")
        for question in asked:
            if cells[question.name].strip():
                try:
                    answers[item_id][question.name][rater] = parse_answer(question, cells[question.name], item)
                except ValueError as error:
                    problems.append(f"{at}, column {question.name}: {error}")
        if note := cells.get(NOTE, "").strip():
            notes.append({"rater": rater + 1, "id": item_id, "note": note})
    return notes, problems, absent


def rated_correct(ratings: str | Path, question: str = "correctness", *, answer: int = 1) -> dict[str, dict[str, Any]]:
    """Return the lines of `rated.jsonl` whose raters all gave the same answer to a question, by the id of the row.

    Source: RGF, section 6.1 and appendix B: incorrect triples are discarded by hand until 1,000 pairs of a category are there. The
    paper does not say how many people decide on a pair: here all that rated it.

    Args:
        ratings: the folder of `import_`, or its `rated.jsonl`.
        question: a column of the sheets.
        answer: the answer.
    """
    path = Path(ratings)
    path = path / RATED if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: run hfcf rate import {path.parent} when the sheets are filled")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not lines or question not in lines[0]["answers"]:
        asked = ", ".join(lines[0]["answers"]) if lines else "nothing"
        raise ValueError(f"{path}: the raters were not asked for {question!r} of single rows; they were asked for {asked}")
    return {line["row"]: line for line in lines if all(said == answer for said in line["answers"][question])}


def is_as_rated(row: Row, line: Mapping[str, Any]) -> bool:
    """Say whether a row still reads as raters read it; of a protocol of one's own that is not checked."""
    protocol = PROTOCOLS.get(line["protocol"])
    return protocol is None or _hash(dict(show(protocol, row, None, "1").texts)) == line["read"]
