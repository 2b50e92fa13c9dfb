"""Read a document of ACE's LDC release: its text, the sentences in it, and the relation mentions of its annotation.

Positions in an .apf.xml count the characters of the .sgm without its tags, from 0, and the last is inclusive. A line end counts as
one character, and an entity such as &amp; counts as in the file, five characters. The released preprocessing scripts count in the
same way. Here the text is decoded ("&"), and every position is shifted.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hfcf.corpora.base import BadRow
from hfcf.corpora.formats.tokens import Span
from hfcf.corpora.formats.wikipedia import split_sentences

_TAG = re.compile(r"<[^<>]+>")
_ESCAPE = re.compile(r"&(?:amp|AMP|lt|LT|gt|GT|quot|QUOT|apos);")  # the release has &AMP; as well
# Boundaries of sentences: the tags of turns, posts and paragraphs, and a blank line.
_BREAK = re.compile(r"<[^<>]+>|\n[ \t]*\n")
_ROLES = ("Arg-1", "Arg-2")


@dataclass
class Mention:
    """An entity's mention: the words of its head."""

    type: str
    place: Span = (0, 0)
    trouble: str | None = None
    """Why it has no position in the text."""


@dataclass
class Document:
    """A document's text with its tags removed and its escapes decoded."""

    name: str
    text: str
    sentences: list[Span]
    """Sentences of the TEXT element."""
    root: ElementTree.Element
    mentions: dict[str, Mention]

    def relations(self) -> Iterator[dict[str, Any]]:
        """Yield each relation mention: `id`, `type`, `subtype`, and the ids of its two arguments or null."""
        for relation in self.root.iter("relation"):
            for mention in relation.iter("relation_mention"):
                arguments = {item.get("ROLE"): item.get("REFID") for item in mention.iter("relation_mention_argument")}
                yield {
                    "id": mention.get("ID"), "type": relation.get("TYPE"), "subtype": relation.get("SUBTYPE"),
                    "arguments": [arguments.get(role) for role in _ROLES],
                }  # fmt: skip

    def sentence(self, place: Span) -> int | None:
        """Return the number of the sentence that includes a place."""
        i = bisect_right(self.sentences, place[0], key=lambda sentence: sentence[0]) - 1
        return i if i >= 0 and place[1] <= self.sentences[i][1] else None


def read(sgm: Path, apf: Path) -> Document:
    """Read a document's text (.sgm) and its annotation (.apf.xml); raise `BadRow` if a file can't be read."""
    try:
        # The places count LF, which a copy may have turned into CRLF.
        raw = sgm.read_bytes().decode("utf-8").replace("\r\n", "\n")
        root = ElementTree.fromstring(apf.read_bytes())
    except UnicodeDecodeError as error:
        raise BadRow(f"{sgm.name} is not UTF-8: {error.reason} at byte {error.start}") from None
    except ElementTree.ParseError as error:
        raise BadRow(f"{apf.name} is not XML: {error}") from None
    text, moved = _decoded(_TAG.sub("", raw))
    document = root.find("document")
    name = (document.get("DOCID") if document is not None else None) or sgm.stem
    mentions = {}
    for entity in root.iter("entity"):
        for mention in entity.iter("entity_mention"):
            head = Mention(entity.get("TYPE") or "")
            try:
                head.place = _place(mention, text, moved)
            except BadRow as error:  # for the relations that name it only
                head.trouble = str(error)
            mentions[str(mention.get("ID"))] = head
    blocks = [(moved[start], moved[end]) for start, end in _blocks(raw)]
    entities = [mention.place for mention in mentions.values() if not mention.trouble]
    return Document(name, text, list(_sentences(text, blocks, entities)), root, mentions)


def _decoded(raw: str) -> tuple[str, list[int]]:
    """Decode a text's escapes; also return the new place of each raw character, the end included."""
    parts: list[str] = []
    moved: list[int] = []
    done = length = 0
    for escape in _ESCAPE.finditer(raw):
        moved += range(length, length + escape.start() - done)
        length += escape.start() - done
        moved += [length] * len(escape[0])
        parts += [raw[done : escape.start()], html.unescape(escape[0])]
        length, done = length + 1, escape.end()
    moved += range(length, length + len(raw) - done + 1)
    return "".join([*parts, raw[done:]]), moved


def _place(mention: ElementTree.Element, text: str, moved: list[int]) -> Span:
    what, chars = f"the head of the entity mention {mention.get('ID')}", mention.find("head/charseq")
    if chars is None:
        raise BadRow(f"{what} is missing")
    try:
        start, last = int(chars.get("START", "")), int(chars.get("END", ""))
    except ValueError:
        raise BadRow(f"{what} has no place: START and END are {chars.get('START')!r} and {chars.get('END')!r}") from None
    if not 0 <= start <= last < len(moved) - 1:
        raise BadRow(f"{what} is at {start}–{last}, outside the text of {len(moved) - 1} characters")
    place = moved[start], moved[last + 1]
    found, expected = " ".join(text[slice(*place)].split()), " ".join(html.unescape(chars.text or "").split())
    if found != expected:
        raise BadRow(f"{what} is {expected!r} at {start}–{last}, where the text has {found!r}: the .sgm and the .apf.xml differ")
    return place


def _blocks(raw: str) -> Iterator[Span]:
    """Yield the parts of the TEXT element between tags and blank lines, as places in the text without tags."""
    inside, start, removed = False, 0, 0
    for gap in _BREAK.finditer(raw):
        end = gap.start() - removed
        if inside and end > start:
            yield start, end
        removed += len(gap[0]) if gap[0].startswith("<") else 0
        start = gap.end() - removed
        if re.match(r"</?TEXT\b", gap[0], re.IGNORECASE):
            inside = not gap[0].startswith("</")


def _sentences(text: str, blocks: list[Span], entities: list[Span]) -> Iterator[Span]:
    """Yield the sentences of each block; none ends inside an entity."""
    for start, end in blocks:
        flat = text[start:end].replace("\n", " ").replace("\t", " ")
        places: list[Span] = []
        at = 0
        for sentence in split_sentences(flat):
            at = flat.index(sentence, at)
            place = start + at, start + at + len(sentence)
            if places and any(left < place[0] < right for left, right in entities):
                place = places.pop()[0], place[1]
            places.append(place)
            at += len(sentence)
        yield from places
