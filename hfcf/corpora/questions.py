"""Questions of a user's own files, with or without passages: JSON lines, CSV and Parquet.

    ds = hfcf.load("questions", data_files="mine.jsonl", split="train", on_error="reject")
    ds = hfcf.load("questions", data_dir="out/squad", split="validation")  # written by a dataset script, or Dataset.to_parquet

- Files: `train`, `validation` (or `dev`) and `test`, in the forms that `hfcf` and the Hub write. Each split is a `.jsonl`, else a
  `.csv`, else a `.parquet`, else shards `<split>-….parquet`. They are in `data_dir`, or its `data/` or `data/default/`; the first
  folder that has any is read. `data_files` names other files. They are train unless their names, or a mapping, say otherwise; their
  ending is their form.
- Fields: `question`, and `answers` or `answer`; optionally `context`, `title`, `id`, `group_id`, `aliases`. Other fields are
  ignored.
- The option `columns` names fields with different names: columns={"context": "passage"}.
- Answers, in any of these forms. SQuAD's {"text": […], "answer_start": […]}. A list of {"text": …, "answer_start": …}. A list of
  texts. A single text, which may have its position in a field `answer_start`. In CSV a cell is a single text, or another form as
  JSON. A question without an answer has [] or null.
- Positions are characters (code points), and all are checked. A wrong position is an error. It says what the context has there, and
  whether the position counts UTF-16 or bytes instead.
- Answers whose form has no positions are looked up in the context, as whole words and with the same capitals. Every occurrence is
  written, because the intended position is unknown. Only answers in the context are written; `aliases` keeps all answers. If no
  answer is in the context, the answers stay without positions, and stages that need spans reject the row. "yes" and "no" are never
  looked up. In SQuAD's form, an empty list `answer_start` marks answers that are not spans: they are not looked up.
- Group: `group_id`, else the title, else the context, else the row's id; without an id, a hash of the row's texts.
- Extra column: `aliases`, every right answer, as the row lists them.

One row: {"question": "Where is Lake Bled?", "context": "Lake Bled lies in Slovenia.", "answer": "Slovenia"}.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusError,
    CorpusInfo,
    Record,
    as_text,
    is_list_of,
    need,
)
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.custom.files import OwnFiles, patterns
from hfcf.corpora.formats.answers import check_places, context_group, listed_answers, looked_up, open_answers, typed_answers
from hfcf.text.check import kind

Row = Mapping[str, Any]
_FORMS = '{"text": […], "answer_start": […]}, a list of {"text", "answer_start"}, a list of texts, or one text'


class Questions(OwnFiles, Corpus):
    """JSON lines, CSV or Parquet → rows."""

    INFO = CorpusInfo(
        name="questions",
        title="Questions from a user's own files",
        task="qa",
        release="yours",
        layout="`{train,dev,test}.jsonl`, `.csv` or `.parquet`, or `data_files=`",
        notes="SQuAD's columns, or answers as texts; see below",
    )
    FILES = patterns("jsonl", "csv", "parquet")
    FIELDS = ("id", "group_id", "title", "context", "question", "answers", "answer", "answer_start", "aliases")
    EXTRA: ClassVar = {"aliases": List(TEXT)}

    def form(self, path: Path) -> str:
        if not path.name.endswith((".jsonl", ".jsonl.gz", ".jsonlines", ".csv", ".parquet")):
            raise CorpusError(f"{path}: its name must end in .jsonl, .csv or .parquet")
        return "csv" if path.suffix == ".csv" else super().form(path)

    def records(self, path: Path) -> Iterator[Record]:
        records = super().records(path)
        return map(_parsed, records) if self.form(path) == "csv" else records

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        fill_question(row, self.rename(record))


def fill_question(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    """Write a record's question into `row`, with its passage, answers, aliases, id and group."""
    row |= {name: record.get(name) for name in ("id", "group_id", "question")}
    row |= {name: "" if record.get(name) is None else record[name] for name in ("title", "context")}
    need(record, "question")
    for name in ("title", "context"):
        if not isinstance(row[name], str):
            raise BadRow(f"the field {name!r} is {kind(row[name])}, not text")
    row["group_id"] = row["group_id"] or row["title"] or (context_group(row["context"]) if row["context"] else None)
    answers, aliases = _answers(record, row["context"])
    if record.get("aliases") is not None:
        aliases = open_answers(record["aliases"], "aliases")["text"]
    row["aliases"] = list(map(as_text, aliases))
    row["answers"] = check_places(row["context"], answers)


def _answers(record: Mapping[str, Any], context: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the answers with the record's positions or positions in the context, and all right answers."""
    fields = [name for name in ("answers", "answer") if name in record]
    filled = [name for name in fields if record[name] is not None]
    if not fields:
        names = ", ".join(map(repr, record)) or "no fields"
        raise BadRow(f"there is neither 'answers' nor 'answer': found {names}; a question without an answer has \"answers\": []")
    if len(filled) == 2:
        raise BadRow("there are both 'answers' and 'answer': leave one out")
    if not filled:
        return {"text": [], "answer_start": []}, []
    name, value, start = filled[0], record[filled[0]], record.get("answer_start")
    if start is not None:
        if not isinstance(value, str):
            raise BadRow(
                f"answer_start is given for {kind(value)} in {name!r}; only a single text may have a separate answer_start"
            )
        return typed_answers([value], [start]), [value]
    if isinstance(value, dict):
        need(value, "text")
        texts, starts = value["text"], value.get("answer_start")
        if starts is None:
            return _looked_up(texts, f"{name}.text", context)
        if isinstance(texts, str) and not isinstance(starts, list):
            texts, starts = [texts], [starts]
        if not isinstance(texts, list) or not isinstance(starts, list):
            raise BadRow(f"{name}.text is {kind(texts)} and {name}.answer_start {kind(starts)}; both are lists of the same length")
        return typed_answers(texts, starts), list(dict.fromkeys(texts))
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        if any(isinstance(item, dict) and item.get("answer_start") is not None for item in value):
            answers = listed_answers(value, name)
            return answers, list(dict.fromkeys(answers["text"]))
        texts = [item.get("text") if isinstance(item, dict) else item for item in value]
        return _looked_up(texts, f"{name}.text", context)
    if isinstance(value, str):
        return _looked_up([value] if value.strip() else [], name, context)
    if not isinstance(value, list):
        raise BadRow(f"{name!r} is {kind(value)} ({(as_text(value) or '')[:60]}); the known forms are {_FORMS}")
    return _looked_up(value, name, context)


def _looked_up(texts: Any, field: str, context: str) -> tuple[dict[str, list[Any]], list[str]]:
    unique = open_answers([texts] if isinstance(texts, str) else texts, field)["text"]
    return looked_up(context, unique), unique


def _parsed(record: Record) -> Record:
    """Return a CSV's record with the cells of lists, objects and numbers read as JSON."""
    cells = dict(record.value)
    for name in ("answers", "answer", "aliases"):
        if str(cells.get(name, "")).lstrip().startswith(("[", "{")):
            try:
                value = json.loads(cells[name])
                # A text may be [1], a list without answers.
                if isinstance(value, dict) or is_list_of(value, dict) or is_list_of(value, str):
                    cells[name] = value
            except (ValueError, RecursionError):
                if str(cells[name]).lstrip().startswith(("[{", '["', "['", '{"', "{'")):
                    why = f"{record.place}: {name} begins as a list or an object and is not JSON: write it with json.dumps"
                    return Record(record.kind, record.number, record.value, unreadable=why)
    if "aliases" in cells and not cells["aliases"]:
        cells["aliases"] = None
    start = str(cells.get("answer_start", "")).strip()
    if "answer_start" in cells:
        cells["answer_start"] = int(start) if start.lstrip("-").isdigit() else start or None
    return Record(record.kind, record.number, cells, record.unreadable)


# --- columns of a user's dataset: `hfcf.from_dataset` and back


def read_columns(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's question, passage and answers into `row`, and its group: the title, else the passage."""
    record = {field: own[str(column)] for field, column in columns.items() if field not in ("id", "group")}
    fill_question(row, record)


def write_columns(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's question, passage and answers in the form that the source's have."""
    written = {str(columns[field]): new[field] for field in ("question", "context", "title") if field in columns}
    field = "answers" if "answers" in columns else "answer"
    column, answers = str(columns[field]), new["answers"]
    texts, starts = list(answers["text"]), list(answers["answer_start"])
    written[column] = _like(own[column], texts, starts)
    if "answer_start" in columns:
        written[str(columns["answer_start"])] = starts[0] if starts else None
    return written


def _like(value: Any, texts: list[str], starts: list[int]) -> Any:
    """Return answers in the form of the source's."""
    if isinstance(value, Mapping):
        if isinstance(value["text"], str):
            return {
                **value,
                "text": texts[0],
                **({"answer_start": starts[0] if starts else None} if "answer_start" in value else {}),
            }
        return {**value, "text": texts, **({"answer_start": starts} if "answer_start" in value else {})}
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        places: list[int | None] = [*starts, *[None] * (len(texts) - len(starts))]
        with_places = any(isinstance(item, Mapping) and "answer_start" in item for item in value)
        pairs = zip(texts, places, strict=True)
        return [{"text": text, **({"answer_start": at} if with_places else {})} for text, at in pairs]
    return texts[0] if isinstance(value, str) else texts


BUILDER = Questions
