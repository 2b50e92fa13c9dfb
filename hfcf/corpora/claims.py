"""A user's own claims with evidence: the corpora `jsonl`, `csv` and `parquet`, and columns of `hfcf.from_dataset`.

    ds = hfcf.load("jsonl", data_files="claims.jsonl", split="train")
    ds = hfcf.load("csv", data_files={"train": "a.csv", "validation": "b.csv"}, on_error="reject")
    ds = hfcf.load("parquet", data_dir="out/mine/data/augmented", split="train")  # written by `hfcf run`

- Fields: `claim`, `evidence` and `label` (else `gold_label`, as in files of FEVER with text); optionally `id` and `group_id`.
  Without an id, ids are row-1, row-2 …; without a group, the group is the row's id. Without both, it is "row-" and a hash of claim
  and evidence, because row 1 of another file is another row. Other fields are ignored. The header of a CSV may have capitals and
  surrounding blanks.
- Other names: hypothesis and premise, sentence2 and sentence1, claim and context; the option `columns` adds names:
  columns={"claim": "statement"}.
- Splits: "train" unless `data_files` or the file's name (`dev.jsonl`, `test.csv` …) says otherwise. A folder may have Parquet
  shards (`train-….parquet`); without any files, its `data/` or `data/default/` is read.
- Evidence, in one of five forms: a list of `{"title": …, "text": …}`, of `[title, text]`, of `[title, number of the sentence,
  text]`, or of texts; or one text. In CSV a cell is one text, or one of the lists as JSON; a column `title` is the title of a
  cell's text. A cell that begins like such a list (two brackets, or a bracket and a quote) but is not JSON is refused.
- Labels: SUPPORTS, REFUTES and NOT ENOUGH INFO in the spellings that corpora use, entailment, contradiction and neutral, true and
  false (`hfcf.text.label_names`). The option `labels` maps other labels, and comes first: labels={"1": "SUPPORTS"}. Numbers and
  booleans are written as in JSON; for CSV, True and False may also be written as in Python. A class of Parquet (`ClassLabel`) is
  read as its name.
- With on_error="reject" every record becomes a row; an unusable record has a `status` with the reason, and its readable
  values: broken lines are `line-<number>`, a repeated id gets "#2" and so on.

One row: {"id": "1", "claim": "Rome is in Italy.", "evidence": [{"title": "Rome", "text": "Rome is the capital of Italy."}],
"label": "SUPPORTS"}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, as_text, need
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.custom.files import OwnConfig, OwnFiles, patterns
from hfcf.tasks.verification import LABELS
from hfcf.text.check import kind
from hfcf.text.label_names import label_of

Row = Mapping[str, Any]
_PAIRS = (("claim", "context"), ("hypothesis", "premise"), ("sentence2", "sentence1"))
"""Other names of claim and evidence, as `hfcf.from_dataset` knows them."""
_FORMS = 'a list of {"title", "text"}, a list of [title, text], a list of texts, or one text'
_LISTS = ("[[", "[{", "['", '["')
_CURE = 'map yours with the option labels, in a recipe options: {labels: {"true": SUPPORTS}}'


@dataclass
class ClaimsConfig(OwnConfig):
    """Options of a user's own files."""

    labels: dict[str, str] = field(default_factory=dict)
    numbered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.labels, list | tuple):  # the names of integer classes, in order
            self.labels = {str(number): label_of(str(name)) or str(name) for number, name in enumerate(self.labels)}
        if unknown := [label for label in self.labels.values() if label not in LABELS]:
            raise ValueError(f"labels= maps to {unknown[0]!r}, which must be one of {', '.join(LABELS)}")
        # An unquoted true of YAML is a boolean; pandas writes it with a capital, JSON without.
        capitals = {str(raw): label for raw, label in self.labels.items() if isinstance(raw, bool)}
        self.labels = capitals | {str(as_text(raw)): label for raw, label in self.labels.items()}


class Claims(OwnFiles, Corpus):
    """JSON lines, CSV or Parquet → rows; `corpus` is "jsonl", "csv" or "parquet"."""

    BUILDER_CONFIG_CLASS = ClaimsConfig
    INFO = CorpusInfo(
        name="records",
        title="Rows from a user's own files",
        labels={label: label for label in LABELS},
        release="yours",
        layout="`data_files=`, or `{train,dev,test}.*` in a folder; what `hfcf run` made",
        notes="`id, claim, evidence, label`; see [Columns](columns.md)",
    )
    FILES = patterns("jsonl", "csv", "parquet")
    FIELDS = ("id", "group_id", "claim", "evidence", "title", "label", "gold_label")
    SYNONYMS = tuple(name for pair in _PAIRS for name in pair)
    OPTIONS: ClassVar = {
        **OwnFiles.OPTIONS,
        "labels": "label of the file → SUPPORTS, REFUTES or NOT ENOUGH INFO",
        "numbered": "true: rows are numbered by line, and the file's id is their group",
    }

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        record = self.rename(record)
        if "evidence" not in record and (pair := next((pair for pair in _PAIRS if set(pair) <= set(record)), None)):
            # The user's choice of the claim wins.
            claim = record["claim" if "claim" in self.config.columns else pair[0]]
            record = {**record, "claim": claim, "evidence": record[pair[1]]}
        if "label" not in record and "gold_label" in record:
            record = {**record, "label": record["gold_label"]}
        row |= {key: record.get(key) for key in ("id", "group_id", "claim", "label")}
        if self.config.numbered:
            row |= {"id": None, "group_id": row["group_id"] or row["id"]}
        evidence = self._evidence(record)
        row["evidence"], problem = _pieces(evidence, record.get("title"))
        need(record, "claim", "evidence", "label")
        if problem:
            raise BadRow(problem)
        if self.config.name == "csv" and isinstance(evidence, str) and evidence.lstrip().startswith(_LISTS):
            raise BadRow("evidence begins as a list and is not JSON: write it with json.dumps")
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


def _pieces(value: Any, title: Any) -> tuple[list[dict[str, Any]], str | None]:
    """Return the pieces, and the first problem of unreadable pieces."""
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


# --- columns of a user's dataset: `hfcf.from_dataset` and back


def read_columns(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's claim and evidence into `row`."""
    row["claim"] = own[str(columns["claim"])]
    evidence = columns["evidence"]
    value = own[evidence] if isinstance(evidence, str) else [own[name] for name in _present(own, evidence)]
    if isinstance(value, Mapping):
        value = _listed(value)
    title = own[str(columns["title"])] if "title" in columns else None
    row["evidence"], problem = _pieces(value, title)
    if problem:
        raise BadRow(problem)


def write_columns(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's claim and evidence in the form of the source's."""
    written = {str(columns["claim"]): new["claim"]}
    evidence, pieces = columns["evidence"], new["evidence"]
    if not isinstance(evidence, str):
        names = _present(own, evidence)
        return {**written, **{name: own[name] for name in evidence}, **_texts(names, pieces)}
    value = own[evidence]
    if isinstance(value, str):
        written[evidence] = pieces[0]["text"]
        if "title" in columns and isinstance(own[str(columns["title"])], str):
            written[str(columns["title"])] = pieces[0]["title"]
    elif isinstance(value, Mapping):
        fields = ("text", "title") if value.get("title") is not None else ("text",)
        written[evidence] = {**value, **{field: [piece[field] for piece in pieces] for field in fields}}
    else:
        written[evidence] = [_like(item, piece) for item, piece in zip(value, pieces, strict=True)]
    return written


def _present(own: Row, names: Sequence[str]) -> list[str]:
    """List the columns whose piece a row has: rows may have fewer pieces than there are columns."""
    return [name for name in names if own[name]]


def _texts(names: Sequence[str], pieces: Sequence[Row]) -> dict[str, str]:
    return {name: piece["text"] for name, piece in zip(names, pieces, strict=True)}


def _listed(value: Mapping[str, Any]) -> Any:
    """Return the pieces of {"title": [...], "text": [...]}, as `datasets` stored lists of objects."""
    texts, titles = value.get("text"), value.get("title")
    if not isinstance(texts, list):
        return value
    titles = titles if isinstance(titles, list) else [None] * len(texts)
    if len(titles) != len(texts):
        raise BadRow(f"the evidence has {len(texts)} texts and {len(titles)} titles")
    return [{"title": title, "text": text} for title, text in zip(titles, texts, strict=True)]


def _like(item: Any, piece: Row) -> Any:
    """Return a piece of evidence in the form of the source's."""
    if isinstance(item, str):
        return piece["text"]
    if isinstance(item, list):  # a third item, in between, is the number of a sentence
        return [piece["title"], *item[1:-1], piece["text"]]
    return {**item, "text": piece["text"], **({"title": piece["title"]} if item.get("title") is not None else {})}


BUILDER = Claims
