"""Read filled rating sheets; refuse errors with their file and line."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hfcf.core import recipe as recipes
from hfcf.core.task import Row
from hfcf.studies.human.export import KEY, NOTE, sheet
from hfcf.studies.human.protocol import Protocol, chosen, load_protocol, parse_answer, protocol_names, show
from hfcf.studies.human.summary import ratings_table, summarise

RATINGS, TABLE, RATED = "ratings.json", "ratings.md", "rated.jsonl"
PERSON = "a person"
"""Who reads rows unless `by` says."""
_CUT = 200  # characters of a text in `RATED`, which may be published where whole passages may not
_SHOWN = 10  # problems in one message


def read_ratings(out: str | Path, *, partial: bool = False, by: str = PERSON) -> dict[str, Any]:
    """Read the filled sheets of a folder, and write `ratings.json`, `ratings.md` and `rated.jsonl` into it.

    `rated.jsonl` has a line for each row: its id, the beginnings of the texts that were read, their hash, answers, notes, and `by`.

    Args:
        out: the folder of `export`.
        partial: summarise the existing answers, even if some are missing.
        by: who read the rows, as tables name them: "one language model, no person".

    Returns:
        The content of `ratings.json`, which depends only on the sheets and `key.json`: the results of
        `hfcf.studies.human.summary.summarise`, `missing`, the number of missing answers of each sheet, and the raters' `notes`.

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
    >>> read_ratings(out)["methods"]["mine"]["correctness"]["all"]["mean"]
    0.0
    """
    folder = Path(out)
    if not (folder / KEY).exists():
        raise FileNotFoundError(f"there is no {folder / KEY}: hfcf rate export writes it; import the sheets in the same folder")
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    protocol = recipes.parse_recipe(Protocol, key["protocol"], KEY)
    sheets: dict[int, dict[str, dict[str, str]]] = {}
    notes: list[dict[str, Any]] = []
    problems: list[str] = []
    missing, blanks = dict[str, int](), list[str]()
    for rater in range(1, key["raters"] + 1):
        path = sheet(folder, key, rater)
        if path.exists():
            sheets[rater] = _read_sheet(path, key, protocol, notes, problems, blanks, rater)
        answers = sheets.get(rater, {})
        if n := sum(name not in answers.get(item, {}) for item in key["items"] for name in protocol.asked):
            missing[path.name] = n
    if missing and not partial and not problems:
        problems = [f"{name}: {n} answers are missing: fill them in, or add --partial" for name, n in missing.items()] + blanks
    if problems:
        more = f"\n… and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ValueError("\n".join(problems[:_SHOWN]) + more)
    ratings = pd.DataFrame(
        {**score, "item": item, "rater": rater}
        for rater, answers in sheets.items()
        for item, cells in answers.items()
        for score in _score(cells, key["items"][item], protocol)
    )
    if ratings.empty:
        raise ValueError(f"{folder}: no sheet has an answer")
    results = {"protocol": key["name"], "raters": key["raters"], "seed": key["seed"], **summarise(protocol, ratings, key["items"])}
    results |= {"missing": missing, "notes": notes}
    (folder / RATINGS).write_text(json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(ratings_table(results), encoding="utf-8")
    _write_rated(folder / RATED, key, ratings, notes, by)
    return results


def _read_sheet(
    path: Path, key: Mapping[str, Any], protocol: Protocol, notes: list[dict[str, Any]], problems: list[str], blanks: list[str],
    rater: int,
) -> dict[str, dict[str, str]]:  # fmt: skip
    """Return {item: {question: the filled cell}} of a sheet; add its notes, its problems and its empty cells to the lists."""
    answers: dict[str, dict[str, str]] = {}
    for line, cells in enumerate(_read_lines(path), 2 if path.suffix == ".csv" else 1):
        at, item_id = f"{path}, line {line}", str(cells.get("id", "")).strip()
        if absent := [column for column in ("id", *protocol.shows, *protocol.asked) if column not in cells]:
            problems.append(f"{at}: there is no column {absent[0]!r}")
            break
        if item_id not in key["items"]:
            problems.append(f"{at}: there is no {item_id!r}: is this the sheet of another folder?")
        elif item_id in answers:
            problems.append(f"{at}: {item_id} occurs twice: delete one of them")
        else:
            item = key["items"][item_id]
            altered = [name for name in protocol.shows if _letters(cells[name]) != _letters(item["texts"][name])]
            problems += [f"{at}: the {name} of {item_id} was altered: put back {item['texts'][name]!r}" for name in altered]
            written = {name: "" if cells[name] is None else str(cells[name]) for name in protocol.asked}  # JSON has null
            filled = {name: cell for name, cell in written.items() if cell.strip()}
            for name, cell in filled.items():
                try:
                    parse_answer(protocol.questions[name], cell, next(iter(item["methods"].values())))
                except ValueError as error:
                    problems.append(f"{at}, column {name}: {error}")
            answers[item_id] = filled
            blanks += [f"{at}, column {name}: no answer" for name in protocol.asked if name not in filled]
            if note := str(cells.get(NOTE) or "").strip():
                notes.append({"rater": rater, "id": item_id, "note": note})
    return answers


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.split("\n") if line.strip()]  # a text may hold U+2028
        # Spreadsheets in countries with decimal commas write semicolons.
        separator = max(",;\t", key=text.partition("\n")[0].count)
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restval="", strict=True)
        return [cells for cells in lines if any(cells.values())]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: save it as 'CSV UTF-8' in the spreadsheet") from error
    except (csv.Error, json.JSONDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}") from error


def _letters(text: Any) -> str:
    """Return what spreadsheets leave as it is: letters and digits."""
    return re.sub(r"[\W_]+", "", str(text))


def _score(cells: Mapping[str, str], item: Mapping[str, Any], protocol: Protocol) -> list[dict[str, Any]]:
    """Return what one rater's answers count for each method of an item."""
    records = []
    for method, scoring in item["methods"].items():
        values = {name: parse_answer(protocol.questions[name], cell, scoring) for name, cell in cells.items()}
        for name, question in protocol.questions.items():
            if question.all_of and all(part in values for part in question.all_of):
                values[name] = int(all(values[part] == 1 for part in question.all_of))
        about = {"method": method, "row": scoring["row"], "source": item["source"], "stratum": item["stratum"]}
        labels = {name: chosen(protocol.questions[name], cell, scoring) for name, cell in cells.items()}
        records += [{**about, "question": name, "value": value, "chosen": labels.get(name)} for name, value in values.items()]
    return records


def _write_rated(path: Path, key: Mapping[str, Any], ratings: pd.DataFrame, notes: list[dict[str, Any]], by: str) -> None:
    values: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for record in ratings.to_dict("records"):
        values.setdefault((record["item"], record["method"]), {}).setdefault(record["question"], []).append(record["value"])
    with path.open("w", encoding="utf-8") as file:
        for (name, method), answers in values.items():
            item = key["items"][name]
            texts = {column: text if len(text) <= _CUT else f"{text[:_CUT]}…" for column, text in item["texts"].items()}
            line = {
                "row": item["methods"][method]["row"], "protocol": key["name"], "texts": texts, "read": _hash(item["texts"]),
                "answers": answers, "notes": [note["note"] for note in notes if note["id"] == name], "by": by,
            }  # fmt: skip
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _hash(texts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def rated_correct(ratings: str | Path, question: str = "correctness", *, answer: int = 1) -> dict[str, dict[str, Any]]:
    """Return the lines of `rated.jsonl` whose raters all gave the same answer to a question, by the id of the row.

    Source: RGF, section 6.1 and appendix B: incorrect triples are discarded by hand until 1,000 pairs of a category are there. The
    paper does not say how many people decide on a pair: here all that rated it.

    Args:
        ratings: the folder of `read_ratings`, or its `rated.jsonl`.
        question: a column of the sheets.
        answer: the answer.
    """
    path = Path(ratings)
    path = path / RATED if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: run hfcf rate import {path.parent} when the sheets are filled")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    if not any(question in line["answers"] for line in lines):
        raise ValueError(f"{path}: the raters were not asked for {question!r}")
    return {line["row"]: line for line in lines if {*line["answers"].get(question, ())} == {answer}}


def is_as_rated(row: Row, line: Mapping[str, Any]) -> bool:
    """Say whether a row still reads as raters read it; of a protocol of one's own that is not checked."""
    name = line["protocol"]
    return name not in protocol_names() or _hash(show(load_protocol(name), row).texts) == line["read"]
