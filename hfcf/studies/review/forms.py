"""The forms in which people fill reviews: a page or JSON lines, a sheet, and Argilla; each is written and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from hfcf.corpora.formats.read import json_lines, json_list
from hfcf.hub.render import render
from hfcf.report.page import embed_json, hash_script, read_style, read_template
from hfcf.studies.review.criteria import DECISION, FILTER, OF_STRUCTURE
from hfcf.studies.review.entry import ASKED, EDITED, NOTE, SHOWN, Entry, to_texts
from hfcf.studies.review.version import ROLES, needs_structure
from hfcf.studies.spreadsheets import read_sheet, unaltered, unguarded, write_sheet

PACKAGE = "hfcf.studies"
SCRIPTS = ("review_rules.js", "review_drawing.js", "review_page.js")


def render_page(entries: Sequence[Mapping[str, Any]], number: int) -> str:
    """Write the page of one person.

    It asks the network for nothing. The legality check and the drawing follow every edit, in the page's own script, by the rules
    of `hfcf.tasks.structures`; what people type stays text. The page works by keyboard: nodes of the drawing are buttons.
    """
    data = {
        "entries": entries,
        "structured": {entry["id"]: needs_structure(entry["label"], bool(entry["structure"])) for entry in entries},
        # Names that a piece had: a new one under the name of a deleted one would be taken for it.
        "names": {entry["id"]: [piece["id"] for piece in entry["evidence"]] for entry in entries},
        "questions": [
            {"name": question.name, "asks": question.asks, "answers": list(question.answers.items())}
            for question in FILTER.questions
        ],
        "roles": ROLES,
        "decision": DECISION,
        "structural": OF_STRUCTURE,
        "file": f"rater-{number}.jsonl",
    }
    script = "\n".join([read_template("report_element.js"), *(read_template(name, PACKAGE) for name in SCRIPTS)])
    return render(
        "review.html.jinja",
        package=PACKAGE,
        protocol=FILTER,
        file=data["file"],
        data=Markup(embed_json(data)),
        style=Markup(read_style() + read_template("review.css", PACKAGE)),
        script=Markup(script),
        script_hash=hash_script(script),
    )


RECORDS = "records.json"
_SUGGESTED = "edited_"
"""Questions of Argilla that hold edits: "edited_claim" …; a field and a question can't share a name."""


class Filled(NamedTuple):
    """An entry that came back, or why it can't be read."""

    place: str
    person: int
    entry: Entry
    unreadable: str | None = None


class Form(NamedTuple):
    """How entries are written for each person, and read back."""

    write: Callable[[Path, Sequence[Sequence[Entry]]], None]
    """From the raters' folder and the entries of each person in order."""
    read: Callable[[Path, int, Mapping[str, Entry], Sequence[str]], Iterator[Filled]]
    """From the raters' folder, the number of people, the entries as they were written, by id, and the people's names."""


def _write_pages(folder: Path, people: Sequence[Sequence[Entry]]) -> None:
    for number, entries in enumerate(people, 1):
        (folder / f"rater-{number}.html").write_text(render_page(entries, number), encoding="utf-8", errors="backslashreplace")


def _write_lines(folder: Path, people: Sequence[Sequence[Entry]]) -> None:
    for number, entries in enumerate(people, 1):
        lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        (folder / f"rater-{number}.jsonl").write_text("".join(lines), encoding="utf-8")


def _read_lines(folder: Path, people: int, written: Mapping[str, Entry], names: Sequence[str]) -> Iterator[Filled]:
    for person in range(people):
        path = folder / f"rater-{person + 1}.jsonl"
        for record in json_lines(path) if path.exists() else ():
            yield Filled(f"{path}, {record.place}", person, record.value, record.unreadable)


def _write_sheets(folder: Path, people: Sequence[Sequence[Entry]]) -> None:
    columns = ["id", *SHOWN, *EDITED, *ASKED, NOTE]
    for number, entries in enumerate(people, 1):
        write_sheet(folder / f"rater-{number}.csv", columns, map(to_texts, entries))


def _read_sheets(folder: Path, people: int, written: Mapping[str, Entry], names: Sequence[str]) -> Iterator[Filled]:
    for person in range(people):
        path = folder / f"rater-{person + 1}.csv"
        for line, cells in read_sheet(path, ["id", *EDITED, *ASKED]) if path.exists() else ():
            row_id = next((text for text in unguarded(cells["id"]) if text in written), cells["id"])
            old = to_texts(written[row_id]) if row_id in written else {}
            texts = {name: old[name] if unaltered(cell, old.get(name, "")) and name in old else unguarded(cell)[0]
                     for name, cell in cells.items()}  # fmt: skip
            yield Filled(f"{path}, line {line}", person, {**texts, "id": row_id})


def _write_records(folder: Path, people: Sequence[Sequence[Entry]]) -> None:
    """Write what Argilla's `dataset.records.from_json` reads: fields to show, and the texts to edit as suggestions."""
    records = [
        {
            "id": entry["id"],
            "fields": {name: text for name, text in texts.items() if name in (*SHOWN, *EDITED) and text},
            "metadata": {},
            "suggestions": {f"{_SUGGESTED}{name}": {"value": texts[name], "score": None, "agent": None} for name in EDITED},
            "responses": {},
            "vectors": {},
        }
        for entry in people[0]
        for texts in [to_texts(entry)]
    ]
    (folder / RECORDS).write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_records(folder: Path, people: int, written: Mapping[str, Entry], names: Sequence[str]) -> Iterator[Filled]:
    path = folder / RECORDS
    records = list(json_list(path)) if path.exists() else []
    users = sorted({response["user_id"] for record in records for _, response in _responses(record.value)})
    if set(users) - set(names) or len(names) > people:
        raise ValueError(
            f"{path} has responses of the users {', '.join(users)}: name them in their order (--user), at most {people}; "
            "the last one resolves where they differ"
        )
    for record in records:
        filled: dict[str, Entry] = {}
        for question, response in _responses(record.value):
            filled.setdefault(response["user_id"], {})[question.removeprefix(_SUGGESTED)] = response["value"]
        for user, entry in filled.items():
            row_id = str(record.value.get("id"))
            # Who leaves a suggestion as it is may send no response to it.
            unedited = (
                {name: text for name, text in to_texts(written[row_id]).items() if name in EDITED} if row_id in written else {}
            )
            yield Filled(f"{path}, {record.place}, user {user}", names.index(user), {**unedited, **entry, "id": row_id})


def _responses(record: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for question, responses in (record.get("responses") or {}).items():
        yield from ((question, response) for response in responses)


FORMS = {
    "page": Form(_write_pages, _read_lines),
    "jsonl": Form(_write_lines, _read_lines),
    "csv": Form(_write_sheets, _read_sheets),
    "argilla": Form(_write_records, _read_records),
}
"""By the name that `hfcf review export --as` has for them."""
