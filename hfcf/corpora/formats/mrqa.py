"""Read the form of the MRQA 2019 shared task: a header line, then contexts with their questions and the detected answers.

- A file is JSON lines, compressed (`.jsonl.gz`) or not. Its first line is {"header": {"dataset": …, "split": …}}; the split may
  also be called `mrqa_split`.
- A context line is {context, qas: [{qid, question, answers, detected_answers: [{text, char_spans: [[start, end]]}]}]}. The end of
  a place is inclusive. The tokens of the lines are not read.
- Answers: each place of each detected answer, with the text that stands there. It must be the answer's `text`, but for capitals,
  accents, and blanks and punctuation inside, which a detection may ignore.
- `aliases`: the answers that are right by `answers`, whether they stand in the context or not; the shared task's metric takes
  these.
- [PAR], [TLE] and [DOC] stay in the context, which stands for no title. Group: the context.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, CorpusError, Record, as_text, is_list_of, json_lines, need, text_of
from hfcf.corpora.base.splits import ALIASES
from hfcf.corpora.formats.answers import context_group, open_answers
from hfcf.text.check import kind

EXTRA = {"aliases": List(TEXT)}
"""The columns that this form adds."""
ENDINGS = (".jsonl", ".jsonl.gz")
_SPLIT = re.compile(r"\w+(\.\w+)*")


def header(path: Path) -> dict[str, Any] | None:
    """Return what the first line of a file says of it, or None when it is no header."""
    first = next(json_lines(path), None)
    found = first.value.get("header") if first else None
    return found if isinstance(found, dict) else None


def split_of(path: Path) -> str | None:
    """Return the split that a file's header names, see `named_split`."""
    return named_split((header(path) or {}) if path.is_file() else {})


def named_split(header: Mapping[str, Any]) -> str | None:
    """Return the split that a header names, or None where it names none that `datasets` allows."""
    split = header.get("split", header.get("mrqa_split"))
    allowed = isinstance(split, str) and split != "all" and _SPLIT.fullmatch(split)
    return ALIASES.get(split, split) if allowed else None


def questions(path: Path) -> Iterator[Record]:
    """Yield the questions of a file, each with its context and the name of its dataset."""
    if (first := header(path)) is None:
        raise CorpusError(f'{path}: the first line is no header; a file of MRQA starts with {{"header": {{"dataset": …}}}}')
    dataset = first.get("dataset")
    for line in json_lines(path):
        if line.number == 1 or line.unreadable:
            if line.unreadable:
                yield line
            continue
        qas = line.value.get("qas")
        if not is_list_of(qas, dict):
            found = ", ".join(map(repr, line.value)) or "no fields"
            yield Record("line", line.number, unreadable=f"'qas' is {kind(qas)}, not a list of questions; found {found}")
            continue
        for question in qas:
            yield Record("line", line.number, {"dataset": dataset, "context": line.value.get("context"), **question})


def fill_question(row: dict[str, Any], record: dict[str, Any]) -> None:
    """Write a question of `questions` into `row`."""
    name = "qid" if "qid" in record else "id"
    need(record, name, "context", "question", "answers", "detected_answers")
    context = text_of(record, "context")
    row |= {"id": record[name], "context": context, "question": text_of(record, "question"), "group_id": context_group(context)}
    row["aliases"] = list(map(as_text, open_answers(record["answers"], "answers")["text"]))
    detected = record["detected_answers"]
    if not is_list_of(detected, dict):
        raise BadRow(f"detected_answers is {kind(detected)}, not a list of {{text, char_spans}}")
    spans: dict[tuple[int, str], None] = {}
    for answer in detected:
        need(answer, "text", "char_spans")
        for place in answer["char_spans"] if isinstance(answer["char_spans"], list) else [answer["char_spans"]]:
            spans[_span(context, text_of(answer, "text"), place)] = None
    row["answers"] = {"text": [text for _, text in spans], "answer_start": [start for start, _ in spans]}


def _span(context: str, text: str, place: Any) -> tuple[int, str]:
    if not (isinstance(place, list) and len(place) == 2 and all(type(at) is int for at in place)):
        raise BadRow(f"a place of the answer {text!r} is {as_text(place)}; a place is [start, end], and the end is inclusive")
    start, end = place
    there = context[start : end + 1] if 0 <= start <= end else ""
    # An end that was exclusive would take a blank or a full stop along.
    edges = there and all(there[at].isalnum() or there[at] == (text.strip() or " ")[at] for at in (0, -1))
    if not edges or _plain(there) != _plain(text):
        raise BadRow(f"the answer {text!r} does not stand at {start}–{end} (inclusive) of the context, where {there!r} stands")
    return start, there


def _plain(text: str) -> str:
    """Return a text without capitals, accents, blanks and punctuation; a text of nothing else stays as it is."""
    plain = "".join(character for character in unicodedata.normalize("NFKD", text).casefold() if character.isalnum())
    return plain or "".join(text.split())
