"""Single texts of a user's own files, each with a label: JSON lines, CSV and Parquet.

    ds = hfcf.load("texts", data_files={"train": "a.jsonl", "test": "b.csv"}, on_error="reject")
    ds = hfcf.load("texts", data_dir="out/mine/data/augmented", split="train")  # written by `hfcf run`

- Files: `train`, `validation` (or `dev`) and `test`, in the forms that `hfcf` and the Hub write. Each split is a `.jsonl`, else a
  `.csv`, else a `.parquet`, else shards `<split>-….parquet`. They are in `data_dir`, or its `data/` or `data/default/`; the first
  folder that has any is read. `data_files` names other files. They are train unless their names, or a mapping, say otherwise; their
  ending is their form.
- Fields: `text` (else `sentence` or `review`) and `label`; optionally `id` and `group_id`. Other fields are ignored.
- The option `columns` names fields with different names: columns={"label": "intent"}.
- Labels: any text. A class of Parquet (`ClassLabel`) is read as its name; a number is refused, because it has no name.

One row: {"id": "1", "text": "The acting was superb.", "label": "positive"}.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, need, text_of
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.custom.files import OwnFiles, patterns
from hfcf.text.check import kind

Row = Mapping[str, Any]


class Texts(OwnFiles, Corpus):
    """JSON lines, CSV or Parquet → rows. The labels are the file's own, so `INFO` lists none."""

    INFO = CorpusInfo(
        name="texts",
        title="Single texts from a user's own files",
        task="classification",
        release="yours",
        layout="`{train,dev,test}.jsonl`, `.csv` or `.parquet`, or `data_files=`",
        notes="any labels; see below",
    )
    FILES = patterns("jsonl", "csv", "parquet")
    FIELDS = ("id", "group_id", "text", "label")
    SYNONYMS: ClassVar = ("sentence", "review")

    def form(self, path: Path) -> str:
        if not path.name.endswith((".jsonl", ".jsonl.gz", ".jsonlines", ".csv", ".parquet")):
            raise CorpusError(f"{path}: its name must end in .jsonl, .csv or .parquet")
        return "csv" if path.suffix == ".csv" else super().form(path)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*super().columns, *self.SYNONYMS)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        record = self.rename(record)
        own = next((name for name in ("text", *self.SYNONYMS) if name in record), "text")
        row |= {name: record.get(name) for name in ("id", "group_id", "label")} | {"text": record.get(own)}
        need(record, own, "label")
        row["text"] = text_of(record, own)
        if not isinstance(label := row["label"], str):
            raise BadRow(f"the label is {kind(label)} ({label!r}), not text; write the label's name, or in Parquet a ClassLabel")


# --- columns of a user's dataset: `hfcf.from_dataset` and back


def read_columns(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's text into `row`."""
    row["text"] = text_of(own, str(columns["text"]))


def write_columns(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's text."""
    return {str(columns["text"]): new["text"]}


BUILDER = Texts
