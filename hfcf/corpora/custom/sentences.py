"""Sentences with two entities in a user's columns: read them, and write a counterfactual in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.corpora.base import BadRow
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.formats.tokens import TAG, Span, untagged
from hfcf.corpora.relations import fill_sentence
from hfcf.tasks.relation import spans
from hfcf.text.check import kind

Row = Mapping[str, Any]


def fill(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's sentence and entities into `row`."""
    record = {field: own[str(columns[field])] for field in ("tokens", "text") if field in columns}
    record |= {name: _read_place(own, columns[name], ends) for name in ("head", "tail") if name in columns}
    fill_sentence(row, record)


def write(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
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
    """Say whether the last places of entities are inclusive; None where the rows don't tell.

    An exclusive end is never the start, and an inclusive one never the length of the sentence. TACRED's own files are inclusive,
    and copies of them on the Hub are not.
    """
    size = str(columns["tokens"])
    places = [(row[name[0]], row[name[1]], len(row[size] or ())) for row in rows for name in (columns["head"], columns["tail"])]
    sound = [(start, end, n) for start, end, n in places if isinstance(start, int) and isinstance(end, int)]
    same, last = any(start == end for start, end, _ in sound), any(end == n for _, end, n in sound)
    return None if same == last else same


def edit_text(text: str, places: Sequence[Span], offsets: Sequence[Row], edits: Sequence[Row]) -> tuple[str, list[Span]]:
    """Apply edits of tokens to the text that they are tokens of; also return where entities stand afterwards."""
    moved = list(places)
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        start, end, after = _in_characters(text, edit, offsets, moved)
        shift = len(after) - (end - start)
        # An insertion at an entity's end stays outside it.
        moved = [(a + shift, b + shift) if end <= a and not start == end == b else (a, b) for a, b in moved]
        text = text[:start] + after + text[end:]
    return text, moved


def _in_characters(text: str, edit: Row, offsets: Sequence[Row], places: Sequence[Span]) -> tuple[int, int, str]:
    """Return an edit of tokens as one of characters, with the spaces that words need."""
    first, last, after = edit["start"], edit["end"], edit["after"]
    if first == last:  # an insertion, after the token before
        place = offsets[first - 1]["end"] if first else 0
        return place, place, f" {after}" if first else f"{after} "
    start, end = offsets[first]["start"], offsets[last - 1]["end"]
    if not after:  # a deletion takes a space along, but none of an entity
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
        raise BadRow(f"the places {mentions} of an entity are no words one after the other")
    return [places[0], places[-1] + 1]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(number, int) for number in value)


def is_tagged(text: Any) -> bool:
    """Say whether a text has tags of entities."""
    return isinstance(text, str) and TAG.search(text) is not None
