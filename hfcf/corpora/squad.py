"""SQuAD v1.1: questions that crowd workers wrote on paragraphs of Wikipedia, answered by a span of the paragraph.

- Files: `train-v1.1.json` and `dev-v1.1.json`. The official test split is not public.
- `data_files` may also name the files of v2.0: an impossible question is a row without an answer.
- Titles are the release's, with underscores ("Super_Bowl_50"). Group: the title; the official splits share none.
- Layout: {"data": [{title, paragraphs: [{context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]}. Every answer must
  be at its place in the context, or the row is an error. `plausible_answers` (v2.0) are not read.
- Several answers come from several annotators: each is right, and an answer that two annotators gave is listed twice.

One row: question "Which NFL team represented the AFC at Super Bowl 50?", title "Super_Bowl_50", context "Super Bowl 50 was an
American football game …", answers {"text": ["Denver Broncos", "Denver Broncos", "Denver Broncos"], "answer_start": [177, 177,
177]}.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from hfcf.corpora.base import (
    Corpus,
    CorpusInfo,
    Fields,
    Record,
    json_list,
    split_files,
    split_records,
)
from hfcf.corpora.formats.answers import check_places

_ARTICLE, _PARAGRAPH = Fields(paragraphs=[dict[str, Any]]), Fields(qas=[dict[str, Any]])
_QUESTION = Fields(id=Any, title=str, context=str, question=str)
_ANSWERED = Fields(answers=[{"text": str, "answer_start": int}])


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
    paragraphs = split_records(
        json_list(path, key="data"),
        lambda article: [{**article, **paragraph} for paragraph in _ARTICLE.check(article)["paragraphs"]],
    )
    records = split_records(
        paragraphs, lambda paragraph: [{**paragraph, **question} for question in _PARAGRAPH.check(paragraph)["qas"]]
    )
    for question in records:
        yield question if question.unreadable else Record("question", next(number), question.value)


def fill_question(row: dict[str, Any], record: dict[str, Any]) -> dict[str, list[Any]]:
    """Write a question's texts and its group into `row`, and return its answers, whose places are not checked."""
    row["id"] = record.get("id")
    _QUESTION.check(record)
    row |= {"context": record["context"], "question": record["question"]}
    row["title"] = row["group_id"] = record["title"]
    answers = [] if record.get("is_impossible") else _ANSWERED.check(record)["answers"]
    return {name: [answer[name] for answer in answers] for name in ("text", "answer_start")}


class Squad(SquadLayout):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="squad",
        title="SQuAD v1.1: the Stanford Question Answering Dataset",
        paper="Rajpurkar et al. (EMNLP 2016), SQuAD: 100,000+ Questions for Machine Comprehension of Text",
        citation="""@inproceedings{rajpurkar-etal-2016-squad,
  title = {{SQ}u{AD}: 100,000+ Questions for Machine Comprehension of Text},
  author = {Rajpurkar, Pranav and Zhang, Jian and Lopyrev, Konstantin and Liang, Percy},
  booktitle = {Proceedings of EMNLP},
  year = {2016}
}""",
        licence="cc-by-sa-4.0",
        hub_id="rajpurkar/squad",
        splits={"train": 87_599, "validation": 10_570},
        task="qa",
        release="rajpurkar.github.io/SQuAD-explorer",
        layout="`train-v1.1.json`, `dev-v1.1.json`",
        notes="the group is the article; `data_files` may be the files of v2.0; not checked against the real files",
    )
    FILES = split_files("{}-v1.1.json", names=(("train", "train"), ("validation", "dev")))


BUILDER = Squad
