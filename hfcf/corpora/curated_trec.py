"""Curated TREC: questions of the TREC QA tracks without passages, whose answers are regular expressions.

- Files, in one of three forms. DrQA's `CuratedTrec-train.txt` and `CuratedTrec-test.txt` are JSON lines {question, answer: […]}.
  ORQA's `CuratedTrec.resplit.{train,dev,test}.jsonl` have the same form. DPR's `curatedtrec-test.qa.csv` has the question, a tab,
  and the list of answers as Python or JSON writes it. Each file is read by the form of its lines.
- A row has no context, and its answers have no positions. The texts are alternatives.
- The texts are **patterns**, as the release has them, and the extra column `regex` says so: it is true in every row. A pattern is
  right if it matches the start of the prediction, without regard to capitals and without normalisation. DrQA and DPR count exact
  match in this way: `re.match(pattern, prediction, re.IGNORECASE | re.UNICODE | re.MULTILINE)`. Comparing the texts themselves
  would take "19(63|64)" for an answer. A pattern that can't be compiled is an error.
- The release has no ids: rows are row-1, row-2 …. The group is a hash of question and answers.

One row (made up): question "When did Lake Bled freeze?", answers {"text": ["19(63|64)"], "answer_start": []}, regex true.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from datasets import Value

from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, Record, text_lines
from hfcf.corpora.formats.answers import open_answers
from hfcf.text.check import kind

_FILES = (
    ("train", "CuratedTrec-train.txt"), ("test", "CuratedTrec-test.txt"),
    ("train", "CuratedTrec.resplit.train.jsonl"), ("validation", "CuratedTrec.resplit.dev.jsonl"),
    ("test", "CuratedTrec.resplit.test.jsonl"),
    ("train", "curatedtrec-train.qa.csv"), ("validation", "curatedtrec-dev.qa.csv"), ("test", "curatedtrec-test.qa.csv"),
)  # fmt: skip
_LINE = Fields(question=str, answer=[str])


class CuratedTrec(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="curated_trec",
        title="Curated TREC: factoid questions with answer patterns",
        paper="Baudiš and Šedivý (CLEF 2015), Modeling of the Question Answering Task in the YodaQA System",
        citation="""@inproceedings{baudis-sedivy-2015-modeling,
  title = {Modeling of the Question Answering Task in the {YodaQA} System},
  author = {Baudi{\\v{s}}, Petr and {\\v{S}}ediv{\\'y}, Jan},
  booktitle = {Proceedings of CLEF},
  year = {2015}
}""",
        licence="unknown",
        splits={"train": 1_486, "test": 694},
        task="qa",
        release="with DrQA (`CuratedTrec-*.txt`), ORQA and DPR",
        layout="`CuratedTrec-{train,test}.txt`, `CuratedTrec.resplit.*.jsonl` or `curatedtrec-test.qa.csv`",
        notes="no passages; answers are regular expressions (`regex`); not checked against the real files",
    )
    FILES = _FILES
    ONE_FORM = True
    EXTRA: ClassVar = {"regex": Value("bool")}

    def records(self, path: Path) -> Iterator[Record]:
        return (line for line in text_lines(path) if line.unreadable or line.value["line"].strip())

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["regex"] = True
        question, patterns = _line(record["line"])
        row["question"] = question
        row["answers"] = open_answers(patterns, "answer")
        for pattern in row["answers"]["text"]:
            try:
                re.compile(pattern)
            except re.error as error:
                raise BadRow(f"the answer {pattern!r} is not a regular expression: {error}") from None


def _line(line: str) -> tuple[str, Any]:
    """Return the question and the answers of a line of any form."""
    if line.lstrip().startswith("{"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadRow(f"the line is not JSON: {error}") from None
        _LINE.check(record)
        return record["question"], record["answer"]
    cells = next(csv.reader([line], delimiter="\t"))
    if len(cells) != 2:
        raise BadRow(f"the line has {len(cells)} fields, not a question, a tab and the answers: {line[:60]!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A pattern may have \\d, which is not an escape of Python.
            answers = ast.literal_eval(cells[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise BadRow(f"the answers are not a list: {cells[1][:60]!r}") from None
    if not isinstance(answers, list):
        raise BadRow(f"the answers are {kind(answers)}, not a list: {cells[1][:60]!r}")
    return cells[0], answers


BUILDER = CuratedTrec
