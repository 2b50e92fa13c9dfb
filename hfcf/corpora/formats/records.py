"""Rows of a user's own files: JSON lines, CSV and Parquet.

    ds = hfcf.load("jsonl", data_files="claims.jsonl", split="train")
    ds = hfcf.load("csv", data_files={"train": "a.csv", "validation": "b.csv"}, on_error="reject")
    ds = hfcf.load("parquet", data_dir="out/mine/data/augmented", split="train")  # written by `hfcf run`

- Fields: `claim`, `evidence` and `label` (else `gold_label`, as in files of FEVER with text); optionally `id` and `group_id`
  (else row-1, row-2 …, and as the group the row's id; without an id, "row-" and a hash of claim and evidence, since row 1 of
  another file is another row). Others are ignored. The header of a CSV may have capitals and surrounding blanks.
- Other names: hypothesis and premise, sentence2 and sentence1, claim and context; the option `columns` names others: columns={
  "claim": "statement"}.
- Splits: "train" unless `data_files` or the file's name (`dev.jsonl`, `test.csv` …) says otherwise. A folder may have Parquet
  shards (`train-….parquet`); without any files, its `data/` or `data/default/` is read.
- Evidence, in any of these forms: a list of {"title": …, "text": …}, a list of [title, text] or of [title, number of the
  sentence, text], a list of texts, or one text. In CSV a cell is one text, or one of the lists as JSON; a column `title` is the
  title of a cell's one text. A cell that begins as a list of these (two brackets, or a bracket and a quote) and is no JSON is
  refused.
- Labels: SUPPORTS, REFUTES and NOT ENOUGH INFO in the spellings that corpora use, entailment, contradiction and neutral, true and
  false (`hfcf.text.label_names`); the option `labels` maps others, and is asked first: labels={"1": "SUPPORTS"}, numbers and
  booleans as JSON writes them, and True and False for CSV also as Python does. A class of Parquet (`ClassLabel`) is read as its
  name.
- With on_error="reject" every record becomes a row; one that can't be worked on has a `status` that says why, and its readable
  values: broken lines are `line-<number>`, a repeated id gets "#2" and so on.

One row: {"id": "1", "claim": "Rome is in Italy.", "evidence": [{"title": "Rome", "text": "Rome is the capital of Italy."}],
"label": "SUPPORTS"}.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, Files, as_text, need
from hfcf.corpora.formats import own_files
from hfcf.corpora.formats.read import Record, csv_rows, json_lines, parquet_rows
from hfcf.tasks.verification import LABELS
from hfcf.text.check import kind
from hfcf.text.label_names import label_of

_FIELDS = ("id", "group_id", "claim", "evidence", "title", "label", "gold_label")
_PAIRS = (("claim", "context"), ("hypothesis", "premise"), ("sentence2", "sentence1"))
"""Other names of claim and evidence, as `hfcf.from_dataset` knows them."""
_ENDINGS = {"jsonl": (".jsonl",), "csv": (".csv",), "parquet": own_files.PARQUET}
_FORMS = 'a list of {"title", "text"}, a list of [title, text], a list of texts, or one text'
_LISTS = ("[[", "[{", "['", '["')
_CURE = 'map yours with the option labels, in a recipe options: {labels: {"true": SUPPORTS}}'
_NO_CSV = {
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "an Excel workbook",
    b"PAR1": "Parquet (load it with corpus='parquet', --set corpus=parquet)",
}  # fmt: skip
"""First bytes of files that a spreadsheet saves in other forms."""


@dataclass
class RecordsConfig(own_files.OwnConfig):
    """Options of a user's own files."""

    labels: dict[str, str] = field(default_factory=dict)
    numbered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := [label for label in self.labels.values() if label not in LABELS]:
            raise ValueError(f"labels= maps to {unknown[0]!r}, which is none of {', '.join(LABELS)}")
        # An unquoted true of YAML is a boolean; pandas writes it with a capital, JSON without.
        capitals = {str(raw): label for raw, label in self.labels.items() if isinstance(raw, bool)}
        self.labels = capitals | {str(as_text(raw)): label for raw, label in self.labels.items()}


class Records(own_files.OwnFiles, Corpus):
    """JSON lines, CSV or Parquet → rows; `corpus` is "jsonl", "csv" or "parquet"."""

    BUILDER_CONFIG_CLASS = RecordsConfig
    INFO = CorpusInfo(
        name="records",
        title="Rows from a user's own files",
        paper="",
        citation="",
        licence="unknown",
        splits={},
        labels={label: label for label in LABELS},
        release="yours",
        layout="`data_files=`, or `{train,dev,test}.*` in a folder; what `hfcf run` made",
        notes="`id, claim, evidence, label`; see [columns.md](columns.md)",
    )
    FILES = own_files.patterns(*(ending for endings in _ENDINGS.values() for ending in endings))
    FIELDS = _FIELDS
    OPTIONS: ClassVar = {
        **own_files.OwnFiles.OPTIONS,
        "labels": "label of the file → SUPPORTS, REFUTES or NOT ENOUGH INFO",
        "numbered": "true: rows are numbered by line, and the file's id is their group",
    }

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        return own_files.find(data_dir, own_files.patterns(*_ENDINGS[name]))

    def records(self, path: Path) -> Iterator[Record]:
        if self.config.name == "parquet":
            return parquet_rows(path, [*self.columns, *(name for pair in _PAIRS for name in pair)])
        return table_rows(path, self.columns) if self.config.name == "csv" else json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        record = self.rename(record)
        if "evidence" not in record and (pair := next((pair for pair in _PAIRS if set(pair) <= set(record)), None)):
            # What the user named as the claim stays it.
            claim = record["claim" if "claim" in self.config.columns else pair[0]]
            record = {**record, "claim": claim, "evidence": record[pair[1]]}
        if "label" not in record and "gold_label" in record:
            record = {**record, "label": record["gold_label"]}
        row |= {key: record.get(key) for key in ("id", "group_id", "claim", "label")}
        if self.config.numbered:
            row |= {"id": None, "group_id": row["group_id"] or row["id"]}
        evidence = self._evidence(record)
        row["evidence"], problem = pieces_of(evidence, record.get("title"))
        need(record, "claim", "evidence", "label")
        if problem:
            raise BadRow(problem)
        if self.config.name == "csv" and isinstance(evidence, str) and evidence.lstrip().startswith(_LISTS):
            raise BadRow("evidence begins as a list and is no JSON: write it with json.dumps")
        raw = str(as_text(row["label"]))
        known = label_of(raw) if isinstance(row["label"], str | bool) else None
        row["label"] = self.config.labels.get(raw) or known or row["label"]
        try:
            row["label"] = self.label(row["label"])
        except BadRow as error:
            raise BadRow(f"{error}; {_CURE}") from None

    def _evidence(self, record: dict[str, Any]) -> Any:
        value = record.get("evidence")
        if self.config.name == "csv" and isinstance(value, str) and value.lstrip().startswith("["):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value  # A text may start with a bracket.
        return value


def table_rows(path: Path, fields: Collection[str]) -> Iterator[Record]:
    """Yield the rows of a user's CSV, in whose header the known fields may have capitals and surrounding blanks."""
    with path.open("rb") as file:
        line = file.readline()
    for mark, form in _NO_CSV.items():
        if line.startswith(mark):
            raise CorpusError(f"{path}: the file is {form}: save it as CSV UTF-8")
    header = line.decode("utf-8-sig", "replace").strip()
    if len(next(csv.reader([header]), [])) == 1 and (separator := next((mark for mark in ";\t" if mark in header), None)):
        raise CorpusError(f"{path}: the file is separated by {separator!r}, not by commas: save it with commas")
    for record in csv_rows(path):
        yield replace(record, value=_rename_columns(record.value, fields))


def _rename_columns(value: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Give the known columns their names, however the header spells them."""
    plain = {name: name.strip().lower() for name in value}
    return {plain[name] if plain[name] in fields and plain[name] not in value else name: cell for name, cell in value.items()}


def pieces_of(value: Any, title: Any) -> tuple[list[dict[str, Any]], str | None]:
    """Return the readable pieces, and the first problem of the others."""
    if value is None:
        return [], None
    if isinstance(value, str):
        return ([{"title": title if isinstance(title, str) else "", "text": value}] if value else []), None
    if not isinstance(value, list):
        return [_raw(value)], f"the evidence is {_kind(value)}; the known forms are {_FORMS}"
    pieces: list[dict[str, Any]] = []
    problem = None
    for i, item in enumerate(value):
        piece: dict[str, Any]
        if isinstance(item, str):
            piece = {"title": "", "text": item}
        elif isinstance(item, list) and (len(item) == 2 or (len(item) == 3 and str(item[1]).isdigit())):
            piece = {"title": item[0], "text": item[-1]}  # copies of FEVER have the number of the sentence in between
        elif isinstance(item, dict) and "text" in item:
            piece = {"title": item.get("title"), "text": item["text"]}
        else:
            piece = _raw(item)
            problem = problem or f"evidence piece {i} is {_kind(item)}; the known forms are {_FORMS}"
        if piece["title"] is None:
            piece["title"] = ""
        if not isinstance(piece["title"], str):
            problem = problem or f"the title of evidence piece {i} is {_kind(piece['title'])}, not text"
            piece["title"] = as_text(piece["title"])
        pieces.append(piece)
    return pieces, problem


def _raw(value: Any) -> dict[str, Any]:
    return {"title": "", "text": as_text(value)}


def _kind(value: Any) -> str:
    return f"{kind(value)} ({(as_text(value) or 'null')[:60]})"


BUILDER = Records
