"""Sentences of a user's own files with two entities and a relation: JSON lines and Parquet.

    ds = hfcf.load("relations", data_files={"train": "a.jsonl", "test": "b.parquet"}, on_error="reject")
    ds = hfcf.load("relations", data_dir="mine", split="test")

- Files: `train`, `validation` (or `dev`) and `test`, in the forms that `hfcf` and the Hub write. Each split is a `.jsonl`, else a
  `.parquet`, else shards `<split>-….parquet`. They are in `data_dir`, or its `data/` or `data/default/`; the first folder that has
  any is read. `data_files` names other files, which are train unless their names, or a mapping, say otherwise.
- Fields: a sentence, `label`, and optionally `id` and `group_id` (as for a user's own claims: `hfcf.corpora.claims`). Other fields
  are ignored, including `corpus` and `split`: the corpus is "relations", and the split is the file's.
- The option `columns` names fields with different names: columns={"label": "relation"}.
- The sentence, in one of three forms. `tokens`, a list of words, with `head` and `tail` in tokens. `text` with `head` and `tail` in
  characters. `text` with `<e1>…</e1>` and `<e2>…</e2>` in it, in either order; e1 is the head. Our rules tokenise texts
  (`hfcf.corpora.formats.tokens`). If there are tokens, `text` is not read.
- A position is {"start": 0, "end": 1}, optionally with a "type", or [0, 1]. It starts at 0 and its end is exclusive.
- Labels: any text; "Other" means no relation. A class of Parquet (`ClassLabel`) is read as its name.
- Extra columns: `text` and `offsets`.

One row: {"id": "1", "tokens": ["Eggs", "came", "in", "buckets", "."], "head": [0, 1], "tail": [3, 4], "label":
"Content-Container(e1,e2)"}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, as_text, need, text_of
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.custom.files import OwnFiles, patterns
from hfcf.corpora.formats.tokens import EXTRA, TAG, Span, entity, of_text, of_tokens, untagged
from hfcf.tasks.relation import spans
from hfcf.text.check import kind

Row = Mapping[str, Any]
_FORMS = '{"start": …, "end": …} or [start, end]'


class RelationRecords(OwnFiles, Corpus):
    """JSON lines or Parquet → rows. The labels are the file's own, so `INFO` lists none."""

    INFO = CorpusInfo(
        name="relations",
        title="Relation rows from a user's own files",
        task="relation",
        release="yours",
        layout="`{train,dev,test}.jsonl` or `.parquet`, or `data_files=`",
        notes="any labels; see below",
    )
    FILES = patterns("jsonl", "parquet")
    FIELDS = ("id", "group_id", "tokens", "text", "head", "tail", "label")
    EXTRA: ClassVar = EXTRA

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
            raise BadRow('the label is empty; a row without a relation must have the label "Other"')


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
        raise BadRow(f"the text has the tag {tagged[0]} and the row a {placed[0]}: use only one way to mark the entities")
    if not placed and not tagged:
        raise BadRow("the entities have no places: give head and tail, or put <e1>…</e1> and <e2>…</e2> into the text")
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
        raise BadRow(f"the {name} is at {start}–{end}, outside the {size} {unit}; places start at 0 and their end is exclusive")
    return (start, end), as_text(of) or ""


# --- columns of a user's dataset: `hfcf.from_dataset` and back


def read_columns(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's sentence and entities into `row`."""
    record = {field: own[str(columns[field])] for field in ("tokens", "text") if field in columns}
    record |= {name: _read_place(own, columns[name], ends) for name in ("head", "tail") if name in columns}
    fill_sentence(row, record)


def write_columns(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's sentence and entities in the form that the source's have."""
    if "tokens" in columns:
        written: dict[str, Any] = {str(columns["tokens"]): list(new["tokens"])}
        for name, span in zip(("head", "tail"), spans(new), strict=True):
            written |= _write_place(own, columns[name], span, ends)
        return written
    column = str(columns["text"])
    if "head" in columns:
        places = [_characters(source["offsets"], span) for span in spans(source)]
        text, places = edit_text(own[column], places, source["offsets"], new["edits"])
        head, tail = (_write_place(own, columns[name], place, ends) for name, place in zip(("head", "tail"), places, strict=True))
        return {column: text, **head, **tail}
    plain, *tagged = untagged(own[column])
    text, (head_place, tail_place) = edit_text(plain, tagged, source["offsets"], new["edits"])
    marks = [
        (place, sign)
        for span, n in ((head_place, 1), (tail_place, 2))
        for place, sign in ((span[1], f"</e{n}>"), (span[0], f"<e{n}>"))
    ]
    for place, sign in sorted(marks, key=lambda mark: (mark[0], mark[1].startswith("</")), reverse=True):
        text = text[:place] + sign + text[place:]
    return {column: text}


def inclusive_ends(rows: Sequence[Row], columns: Columns) -> bool | None:
    """Say whether the last positions of entities are inclusive; None if the rows do not show it.

    An exclusive end never equals the start, and an inclusive end never equals the length of the sentence. TACRED's own files are
    inclusive, and copies of them on the Hub are not.
    """
    size = str(columns["tokens"])
    places = [(row[name[0]], row[name[1]], len(row[size] or ())) for row in rows for name in (columns["head"], columns["tail"])]
    sound = [(start, end, n) for start, end, n in places if isinstance(start, int) and isinstance(end, int)]
    same, last = any(start == end for start, end, _ in sound), any(end == n for _, end, n in sound)
    return None if same == last else same


def edit_text(text: str, places: Sequence[Span], offsets: Sequence[Row], edits: Sequence[Row]) -> tuple[str, list[Span]]:
    """Apply edits of tokens to their text; also return the new places of entities."""
    moved = list(places)
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        start, end, after = _in_characters(text, edit, offsets, moved)
        shift = len(after) - (end - start)
        # An insertion at an entity's end stays outside it.
        moved = [(a + shift, b + shift) if end <= a and not start == end == b else (a, b) for a, b in moved]
        text = text[:start] + after + text[end:]
    return text, moved


def _in_characters(text: str, edit: Row, offsets: Sequence[Row], places: Sequence[Span]) -> tuple[int, int, str]:
    """Return an edit of tokens as an edit of characters, with the spaces that words need."""
    first, last, after = edit["start"], edit["end"], edit["after"]
    if first == last:  # an insertion, after the previous token
        place = offsets[first - 1]["end"] if first else 0
        return place, place, f" {after}" if first else f"{after} "
    start, end = offsets[first]["start"], offsets[last - 1]["end"]
    if not after:  # a deletion also removes a space, but not from an entity
        if start and text[start - 1].isspace() and not any(a < start <= b for a, b in places):
            start -= 1
        elif not start and text[end : end + 1].isspace() and not any(a <= end < b for a, b in places):
            end += 1
        return start, end, ""
    left = " " if start and text[start - 1].isalnum() and after[0].isalnum() else ""
    right = " " if text[end : end + 1].isalnum() and after[-1].isalnum() else ""
    return start, end, left + after + right


def _characters(offsets: Sequence[Row], span: Span) -> Span:
    return offsets[span[0]]["start"], offsets[span[1] - 1]["end"]


def _read_place(own: Row, column: str | tuple[str, ...], ends: int) -> Any:
    """Return an entity's place as `fill_sentence` reads it, with an exclusive end."""
    if isinstance(column, str):
        value = own[column]
        if isinstance(value, Mapping) and "pos" in value:  # OpenNRE
            return {"start": value["pos"][0], "end": value["pos"][1] + ends} if _is_pair(value["pos"]) else value
        if isinstance(value, Mapping) and "indices" in value:  # FewRel, which lists the places of each mention
            return _mention(value["indices"])
        if isinstance(value, Mapping) and isinstance(value.get("end"), int):
            return {**value, "end": value["end"] + ends}
        return [value[0], value[1] + ends] if _is_pair(value) else value
    start, end, *types = (own[name] for name in column)
    if not isinstance(start, int) or not isinstance(end, int):
        raise BadRow(f"the places {column[0]} and {column[1]} are {kind(start)} and {kind(end)}, not whole numbers")
    return {"start": start, "end": end + ends, "type": types[0] if types else None}


def _write_place(own: Row, column: str | tuple[str, ...], span: Span, ends: int) -> dict[str, Any]:
    start, end = span[0], span[1] - ends
    if not isinstance(column, str):
        return {column[0]: start, column[1]: end}
    value = own[column]
    if isinstance(value, Mapping) and "indices" in value:
        return {column: {**value, "indices": [list(range(*span))]}}
    if isinstance(value, Mapping):
        return {column: {**value, **({"pos": [start, end]} if "pos" in value else {"start": start, "end": end})}}
    return {column: [start, end]}


def _mention(mentions: Any) -> list[int]:
    """Return the place of the first mention, from the places of its words."""
    places = mentions[0] if isinstance(mentions, list) and mentions else None
    if not isinstance(places, list) or not places or places != list(range(places[0], places[0] + len(places))):
        raise BadRow(f"the places {mentions} of an entity are not consecutive words")
    return [places[0], places[-1] + 1]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(number, int) for number in value)


BUILDER = RelationRecords
