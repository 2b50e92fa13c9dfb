"""Read a user's sentences with two entities, and write counterfactuals in their form.

The sentence is a list of tokens with places of head and tail in tokens; a text with places in characters; or a text with
`<e1>…</e1>` and `<e2>…</e2>`, where e1 is the head. Every place is compared with the entity's name where the row gives one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hfcf.corpora.base import BadRow, as_text
from hfcf.corpora.custom.cells import Column, Columns, like_cell, parse_cell, text_cell, whole_number
from hfcf.corpora.formats.tokens import TAG, Span, entity, of_text, of_tokens, untagged
from hfcf.tasks.relation import spans
from hfcf.text.check import kind
from hfcf.text.normalise import normalise

Row = Mapping[str, Any]
_FORMS = '{"start": …, "end": …} or [start, end]'
_UNMARKED = (
    "nothing marks the entities in the text: put <e1> </e1> and <e2> </e2> around them, or name the columns with their places in "
    'characters, such as columns={"head": ["head_start", "head_end"], "tail": ["tail_start", "tail_end"]}'
)
_NAMES = ("name", "text")
"""Keys of an entity's own words."""
_CUT = re.compile("[^\\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{2}")
"""Two letters or digits of a script with spaces between words: a place between them cuts a word."""
_OPENING = "“‘«([{$£€#"
"""What stands at a word without a space between them."""
_INCLUSIVE = 0.2
"""The share of entities of one word, from which ends that never lie behind the sentence are inclusive."""
_MANY = 20
"""Entities of which at least one has one word: if none has an end at its start, ends are exclusive."""


def read_sentence(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's sentence and entities into `row`: tokens, head, tail, text and offsets."""
    if "tokens" in columns:
        tokens = parse_cell(own[str(columns["tokens"])])
        if not isinstance(tokens, list):
            what = "one text" if isinstance(tokens, str) else kind(tokens)
            raise BadRow(f"the field 'tokens' is {what}, not a list of words; a sentence in one piece goes into 'text'")
        row["tokens"] = tokens
        if (i := next((i for i, token in enumerate(tokens) if not isinstance(token, str)), None)) is not None:
            raise BadRow(f"token {i} is {kind(tokens[i])}, not text")
        row |= of_tokens(tokens)
        for name in ("head", "tail"):
            span, type_ = _place(own, columns[name], name, ends, tokens)
            row[name] = entity(span, type_)
        return
    text = text_cell(own[str(columns["text"])])
    if not isinstance(text, str):
        raise BadRow(f"the field 'text' is {kind(text)}, not text")
    row["text"] = as_text(text)
    if "head" not in columns:
        if not TAG.search(text):
            raise BadRow(_UNMARKED)
        row |= of_text(*untagged(text))
        return
    if tagged := TAG.search(text):
        raise BadRow(f"the text has the tag {tagged[0]} and the row a head: use only one way to mark the entities")
    (head, first), (tail, second) = (_place(own, columns[name], name, ends, text) for name in ("head", "tail"))
    row |= of_text(text, head, tail)
    row["head"]["type"], row["tail"]["type"] = first, second


def _place(own: Row, column: Column, name: str, ends: int, words: str | list[str]) -> tuple[Span, str]:
    """Return an entity's place, whose end is exclusive, and its type."""
    unit = "characters" if isinstance(words, str) else "tokens"
    start, end, type_, given = _read_place(own, column)
    if start is None and end is None:
        raise BadRow(f"the {name} has no place; give it in {unit}, {_FORMS}")
    if type(start) is not int or type(end) is not int:
        raise BadRow(f"the {name} is at {(as_text([start, end]) or '')[:60]}; a place is {_FORMS}, in {unit}")
    end += ends if not _is_mention(own, column) else 0
    if not 0 <= start < end <= len(words):
        how = "inclusive" if ends else "exclusive"
        raise BadRow(f"the {name} is at {start}–{end - ends}, and the sentence has {len(words)} {unit}; ends are {how}")
    if why := _misplaced((start, end), given, words):
        raise BadRow(f"the {name}'s place {why}")
    return (start, end), as_text(type_) or ""


def _read_place(own: Row, column: Column) -> tuple[Any, Any, Any, str | None]:
    """Return an entity's start, end as the row has it, type, and its own words."""
    if not isinstance(column, str):
        start, end, *types = (own[name] for name in column)
        return whole_number(start), whole_number(end), types[0] if types else None, None
    value = parse_cell(own[column], numbers=True)
    if isinstance(value, list):
        return (*map(whole_number, value), None, None) if len(value) == 2 else (value, None, None, None)
    if not isinstance(value, Mapping):
        return value, None, None, None
    words = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
    if isinstance(mentions := value.get("indices"), list):  # FewRel, which lists the places of the words of each mention
        first = mentions[0] if mentions else None
        if not isinstance(first, list) or not first or first != list(range(first[0], first[0] + len(first))):
            raise BadRow(f"the places {mentions} of an entity are not consecutive words")
        return first[0], first[-1] + 1, None, words
    if isinstance(pos := value.get("pos"), list) and len(pos) == 2:  # OpenNRE
        return whole_number(pos[0]), whole_number(pos[1]), value.get("type"), words
    return whole_number(value.get("start")), whole_number(value.get("end")), value.get("type"), words


def _is_mention(own: Row, column: Column) -> bool:
    """Say whether an entity's place is a list of words, which has no end."""
    return isinstance(column, str) and isinstance(value := parse_cell(own[column], numbers=True), Mapping) and "indices" in value


def _misplaced(span: Span, given: str | None, words: str | list[str]) -> str | None:
    """Say why an entity can't be at a place, or None: its name is elsewhere in the sentence, or the place cuts a word."""
    start, end = span
    if name := normalise(given or ""):
        whole, held = (words, words[start:end]) if isinstance(words, str) else (" ".join(words), " ".join(words[start:end]))
        if normalise(held) != name and name in normalise(whole):
            units = isinstance(words, str) and _utf16(words, start, end)
            why = "; it counts UTF-16 units instead of characters" if units and normalise(units) == name else ""
            return f"holds {held!r}, its name is {given!r}{why}"
    if isinstance(words, str):
        for place in (start, end):
            if _CUT.fullmatch(words[max(0, place - 1) : place + 1]) and 0 < place < len(words):
                return f"{start}–{end} cuts a word: it holds {words[start:end]!r}"
    return None


def _utf16(text: str, start: int, end: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le", "replace")


def inclusive_ends(rows: Sequence[Row], columns: Columns) -> bool | None:
    """Say whether the last positions of entities are inclusive, by most rows; None if they do not show it.

    An entity's name, or a word that is cut, shows it. Of places in tokens alone, an exclusive end never equals the start, and an
    inclusive end never equals the length of the sentence: TACRED's own files are inclusive, and copies on the Hub are not.
    """
    votes = list(_votes(rows, columns))
    exclusive, inclusive = sum(one and not other for one, other in votes), sum(other and not one for one, other in votes)
    if exclusive == inclusive == 0:
        return False if len(votes) >= _MANY or not isinstance(columns["head"], tuple) else None
    named = not isinstance(columns["head"], tuple)
    return inclusive > exclusive and (named or inclusive >= _INCLUSIVE * len(votes))


def _votes(rows: Sequence[Row], columns: Columns) -> Iterator[tuple[bool, bool]]:
    """Yield for each entity whether its end can be exclusive, and whether it can be inclusive."""
    for row in rows:
        words = parse_cell(row[str(columns["tokens" if "tokens" in columns else "text"])], text=True)
        for column in (columns["head"], columns["tail"]):
            try:
                start, end, _, given = _read_place(row, column)
            except BadRow:
                continue
            if type(start) is not int or type(end) is not int or not isinstance(words, str | list) or _is_mention(row, column):
                continue
            if not isinstance(words, str) and not given and isinstance(column, str):
                continue  # our own form of a place, whose end is exclusive
            yield tuple(0 <= start < last <= len(words) and not _misplaced((start, last), given, words) for last in (end, end + 1))  # type: ignore[misc]


def write_sentence(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's sentence and entities in the form that the source's have."""
    names = ("head", "tail")
    if "tokens" in columns:
        column, tokens = str(columns["tokens"]), list(new["tokens"])
        written: dict[str, Any] = {column: like_cell(own[column], tokens)}
        for name, span, old in zip(names, spans(new), spans(source), strict=True):
            words = " ".join(source["tokens"][slice(*old)]), " ".join(tokens[slice(*span)])
            written |= _write_place(own, columns[name], span, ends, *words)
        return written
    column = str(columns["text"])
    if "head" in columns:
        before = [_characters(source["offsets"], span) for span in spans(source)]
        text, after = edit_text(own[column], before, source["offsets"], new["edits"])
        written = {column: text}
        for name, span, old in zip(names, after, before, strict=True):
            written |= _write_place(own, columns[name], span, ends, own[column][slice(*old)], text[slice(*span)])
        return written
    plain, *tagged = untagged(own[column])
    text, places = edit_text(plain, tagged, source["offsets"], new["edits"])
    marks = [
        (place, sign)
        for span, n in zip(places, (1, 2), strict=True)
        for place, sign in ((span[1], f"</e{n}>"), (span[0], f"<e{n}>"))
    ]
    # From the end; where one entity ends and the other begins, the opening tag first, so that the closing one is before it.
    for place, sign in sorted(marks, key=lambda mark: (mark[0], not mark[1].startswith("</")), reverse=True):
        text = text[:place] + sign + text[place:]
    return {column: text}


def _write_place(own: Row, column: Column, span: Span, ends: int, before: str, after: str) -> dict[str, Any]:
    """Return an entity's place in its form; other words are its new name, and an id of the old words is null."""
    start, end = span[0], span[1] - ends
    if not isinstance(column, str):
        return {column[0]: start, column[1]: end}
    value = parse_cell(own[column], numbers=True)
    if not isinstance(value, Mapping):
        return {column: like_cell(own[column], [start, end])}
    changed = {
        **dict.fromkeys(name for name in ("id",) if name in value),
        **dict.fromkeys((n for n in _NAMES if n in value), after),
    }
    place = {"indices": [list(range(*span))]} if "indices" in value else {"pos": [start, end]} if "pos" in value else None
    new = {**value, **(changed if before != after else {}), **(place or {"start": start, "end": end})}
    return {column: like_cell(own[column], new)}


def edit_text(text: str, places: Sequence[Span], offsets: Sequence[Row], edits: Sequence[Row]) -> tuple[str, list[Span]]:
    """Apply edits of tokens to their text; also return the new places of entities."""
    moved = list(places)
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        start, end, after = _in_characters(text, edit, offsets, moved)
        shift = len(after) - (end - start)
        # An insertion at an entity's end stays outside it.
        moved = [_moved(place, start, end, shift) for place in moved]
        text = text[:start] + after + text[end:]
    return text, moved


def _moved(place: Span, start: int, end: int, shift: int) -> Span:
    first, last = place
    if end <= first and not start == end == last:
        return first + shift, last + shift
    return (first, last + shift) if first <= start < end <= last else place


def _in_characters(text: str, edit: Row, offsets: Sequence[Row], places: Sequence[Span]) -> tuple[int, int, str]:
    """Return an edit of tokens as an edit of characters, with the spaces that words need."""
    first, last, after = edit["start"], edit["end"], edit["after"]
    if first == last:  # an insertion, after the previous token
        place = offsets[first - 1]["end"] if first else 0
        right = " " if not first or text[place : place + 1].isalnum() else ""
        return place, place, f"{' ' if first else ''}{after}{right}"
    start, end = offsets[first]["start"], offsets[last - 1]["end"]
    if not after:  # a deletion also removes a space, but not from an entity, nor between words
        following = text[end : end + 1]
        if start and text[start - 1].isalnum() and following.isalnum():
            return start, end, " "
        apart = bool(following) and (following.isalnum() or following in _OPENING)
        if start and text[start - 1].isspace() and not apart and not any(a < start <= b for a, b in places):
            start -= 1
        elif not start and text[end : end + 1].isspace() and not any(a <= end < b for a, b in places):
            end += 1
        return start, end, ""
    left = " " if start and text[start - 1].isalnum() and after[0].isalnum() else ""
    right = " " if text[end : end + 1].isalnum() and after[-1].isalnum() else ""
    return start, end, left + after + right


def _characters(offsets: Sequence[Row], span: Span) -> Span:
    return offsets[span[0]]["start"], offsets[span[1] - 1]["end"]
