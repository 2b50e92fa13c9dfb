"""Sentences of a user's own files with two entities and a relation: JSON lines and Parquet.

    ds = hfcf.load("relations", data_files={"train": "a.jsonl", "test": "b.parquet"}, on_error="reject")
    ds = hfcf.load("relations", data_dir="out/attack", split="test")  # written by `hfcf attack choose out/attack`

- Files: `train`, `validation` (or `dev`) and `test`, each as `.jsonl`, else `.parquet`, else `<split>-….parquet` (shards), as
  `hfcf` and the Hub write them; in `data_dir`, or its `data/` or `data/default/`, whichever has any first. `data_files` names
  other files, which are train unless their names, or a mapping, say otherwise.
- Fields: a sentence, `label`, and optionally `id` and `group_id` (as of a user's own claims: `hfcf.corpora.formats.records`).
  Others are ignored, `corpus` and `split` too: the corpus is "relations", and the split is the file's.
- The option `columns` names fields that are called otherwise: columns={"label": "relation"}.
- The sentence, in one of three forms: `tokens`, a list of words, with `head` and `tail` in tokens; `text` with `head` and `tail`
  in characters; or `text` with `<e1>…</e1>` and `<e2>…</e2>` in it, in either order: e1 is the head. Our rules tokenise texts
  (`hfcf.corpora.formats.tokens`). Beside tokens, `text` is not read.
- A place is {"start": 0, "end": 1}, optionally with a "type", or [0, 1]. It starts at 0 and its end is exclusive.
- Labels: any text; only "Other" names no relation. A class of Parquet (`ClassLabel`) is read as its name.
- Extra columns: `text` and `offsets`.

One row: {"id": "1", "tokens": ["Eggs", "came", "in", "buckets", "."], "head": [0, 1], "tail": [3, 4], "label":
"Content-Container(e1,e2)"}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Record, as_text, json_lines, need, parquet_rows, text_of
from hfcf.corpora.formats.own_files import PARQUET, OwnFiles, patterns
from hfcf.corpora.formats.tokens import EXTRA, TAG, Span, entity, of_text, of_tokens, untagged
from hfcf.text.check import kind

_FIELDS = ("id", "group_id", "tokens", "text", "head", "tail", "label")
_FORMS = '{"start": …, "end": …} or [start, end]'


class RelationRecords(OwnFiles, Corpus):
    """JSON lines or Parquet → rows. The labels are the file's own, so `INFO` lists none."""

    INFO = CorpusInfo(
        name="relations",
        title="Relation rows from a user's own files",
        paper="",
        citation="",
        licence="unknown",
        splits={},
        labels={},
        task="relation",
        release="yours",
        layout="`{train,dev,test}.jsonl` or `.parquet`, or `data_files=`",
        notes="any labels; see below",
    )
    FILES = patterns(".jsonl", *PARQUET)
    FIELDS = _FIELDS
    EXTRA: ClassVar = EXTRA

    def records(self, path: Path) -> Iterator[Record]:
        return parquet_rows(path, self.columns) if path.suffix == ".parquet" else json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        record = self.rename(record)
        row |= {name: record.get(name) for name in ("id", "group_id", "label")}
        fill_sentence(row, record)
        need(record, "label")
        label = row["label"]
        if not isinstance(label, str):
            cure = "; write the label's name, or in Parquet make the column a ClassLabel with names" if label is not None else ""
            raise BadRow(f"the label is {kind(label)}{'' if label is None else f' ({label!r}), not text'}{cure}")
        if not label.strip():
            raise BadRow('the label is empty; a row of no relation has the label "Other"')


def fill_sentence(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    """Write a record's sentence into `row`: tokens, head, tail, text and offsets, of any of the three forms."""
    if record.get("tokens") is not None:
        _fill_tokens(row, record)
    elif record.get("text") is not None:
        _fill_text(row, record)
    else:
        names = ", ".join(map(repr, record)) or "no fields"
        raise BadRow(f"there is neither 'tokens' nor 'text': found {names}; give tokens, or a text with <e1>…</e1> and <e2>…</e2>")


def _fill_tokens(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    tokens = record["tokens"]
    if not isinstance(tokens, list):
        what = "one text" if isinstance(tokens, str) else kind(tokens)
        raise BadRow(f"the field 'tokens' is {what}, not a list of words; a sentence in one piece goes into 'text'")
    row["tokens"] = tokens
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise BadRow(f"token {i} is {kind(token)}, not text")
    row |= of_tokens(tokens)
    for name in ("head", "tail"):
        row[name] = entity(*_place(record, name, len(tokens), "tokens"))


def _fill_text(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    text = text_of(record, "text")
    row["text"] = as_text(text)
    placed, tagged = [name for name in ("head", "tail") if record.get(name) is not None], TAG.search(text)
    if placed and tagged:
        raise BadRow(f"the text has the tag {tagged[0]} and the row a {placed[0]}: mark the entities in one way")
    if not placed and not tagged:
        raise BadRow("nothing says where the entities are: give head and tail, or put <e1>…</e1> and <e2>…</e2> into the text")
    if not placed:
        row |= of_text(*untagged(text))
        return
    (head, first), (tail, second) = (_place(record, name, len(text), "characters") for name in ("head", "tail"))
    row |= of_text(text, head, tail)
    row["head"]["type"], row["tail"]["type"] = first, second


def _place(record: Mapping[str, Any], name: str, size: int, unit: str) -> tuple[Span, str]:
    """Return an entity's place and type."""
    place = record.get(name)
    if place is None:
        raise BadRow(f"there is no {name}; give its place in {unit}, {_FORMS}")
    start, end, of = None, None, None
    if isinstance(place, dict):
        start, end, of = place.get("start"), place.get("end"), place.get("type")
    elif isinstance(place, list) and len(place) == 2:
        start, end = place
    if type(start) is not int or type(end) is not int:
        raise BadRow(f"the {name} is {(as_text(place) or '')[:60]}; a place is {_FORMS}, in {unit}")
    if not 0 <= start < end <= size:
        raise BadRow(f"the {name} is at {start}–{end}, no place in the {size} {unit}; places start at 0 and their end is exclusive")
    return (start, end), as_text(of) or ""


BUILDER = RelationRecords
