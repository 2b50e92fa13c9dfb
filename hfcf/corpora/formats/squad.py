"""Read the layout of SQuAD v1.1: articles with paragraphs, paragraphs with questions, questions with answers.

- A file is {"data": [{title, paragraphs: [{context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]}.
- Several answers are alternatives, those of several annotators, and are kept as they stand, repetitions too.
- A question with `is_impossible` (SQuAD v2) is a row without an answer; its `plausible_answers` are not read.
- Every answer must stand at its place in the context, or the row is an error.
- Group: the article's title.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from hfcf.corpora.base import Corpus, Record, as_text, is_list_of, json_list, need, text_of
from hfcf.corpora.formats.answers import check_places, listed_answers
from hfcf.text.check import kind


class SquadLayout(Corpus):
    """A corpus in the layout of SQuAD v1.1; a subclass defines `INFO` and `FILES`."""

    def records(self, path: Path) -> Iterator[Record]:
        return questions(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        answers = fill_question(row, record)
        row["answers"] = check_places(row["context"], answers)


def questions(path: Path) -> Iterator[Record]:
    """Yield the questions of a file, each with the fields of its article and its paragraph."""
    number = count(1)
    for article in json_list(path, key="data"):
        if article.unreadable:
            yield article
            continue
        for paragraph in _items(article, "paragraphs", "context, qas"):
            if isinstance(paragraph, Record):
                yield paragraph
                continue
            shared = {**article.value, **paragraph}
            for question in _items(Record("article", article.number, paragraph), "qas", "id, question, answers"):
                fields = {name: value for name, value in shared.items() if name not in ("paragraphs", "qas")}
                yield question if isinstance(question, Record) else Record("question", next(number), {**fields, **question})


def fill_question(row: dict[str, Any], record: dict[str, Any]) -> dict[str, list[Any]]:
    """Write a question's texts and its group into `row`, and return its answers, whose places are to be checked."""
    row["id"] = record.get("id")
    need(record, "id", "title", "context", "question", *([] if record.get("is_impossible") else ["answers"]))
    row |= {"context": record["context"], "question": record["question"]}
    row["title"] = row["group_id"] = as_text(text_of(record, "title"))
    for name in ("context", "question"):
        text_of(record, name)
    if record.get("is_impossible"):
        return listed_answers([])
    return listed_answers(record["answers"])


def _items(record: Record, field: str, fields: str) -> Iterator[Any]:
    """Yield the objects of a list, or one record that says why there is none."""
    items = record.value.get(field)
    if not is_list_of(items, dict):
        found = ", ".join(map(repr, record.value)) or "no fields"
        what = "missing" if field not in record.value else f"{kind(items)}, not a list of objects"
        why = f"{record.place}: {field!r} is {what} ({{{fields}}} are expected in it; found {found})"
        yield Record("article", record.number, unreadable=why)
    else:
        yield from items
