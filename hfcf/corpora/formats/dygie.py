"""Read DyGIE's JSON lines, one document a line, as relation rows: SciERC, and ACE 2005 as its preprocessing writes it.

A document has `doc_key`, `sentences` (lists of tokens) and, parallel to them, `ner` and `relations`. An entry of `ner` is [start,
end, type], and an entry of `relations` is [start, end, start, end, label]. Positions count the document's tokens and include the
last token. Every relation is a row: its sentence, with end-exclusive positions in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hfcf.corpora.base import BadRow, Fields, Record, as_text, json_lines, split_records
from hfcf.corpora.formats.tokens import entity, of_tokens
from hfcf.text.check import kind

_DOCUMENT = Fields(doc_key=Any, sentences=[[str]], ner=[list[Any]], relations=[list[Any]])


def relations(path: Path) -> Iterator[Record]:
    """Yield a record for each relation of each document; an unreadable document is one record with the reason."""
    return split_records(json_lines(path), _relations)


def _relations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    _DOCUMENT.check(document)
    sentences = document["sentences"]
    for field in ("ner", "relations"):
        if len(parallel := document[field]) != len(sentences):
            raise BadRow(f"{field!r} has {len(parallel)} lists for {len(sentences)} sentences: they must be parallel")
    first = 0
    for i, (tokens, ner, relations) in enumerate(zip(sentences, document["ner"], document["relations"], strict=True)):
        for j, relation in enumerate(relations):
            yield {
                "doc_key": document["doc_key"], "sentence": i, "number": j, "relation": relation,
                "tokens": tokens, "ner": ner, "first": first,
            }  # fmt: skip
        first += len(tokens)


def _is_entity(item: Any) -> bool:
    """Say whether an entry of `ner` has a position and a type. Other entries are ignored: a relation's positions need no type."""
    return isinstance(item, list) and len(item) > 2 and all(type(place) is int for place in item[:2]) and isinstance(item[2], str)


def fill(row: dict[str, Any], record: Mapping[str, Any]) -> str:
    """Write one relation's id, group and sentence into `row`, and return its label as in the file."""
    document = str(as_text(record["doc_key"]))
    row |= {"id": f"{document}-{record['sentence']}-{record['number']}", "group_id": document}
    row |= of_tokens(record["tokens"])
    relation = record["relation"]
    where = f"relation {record['number'] + 1} of sentence {record['sentence'] + 1}"
    if not isinstance(relation, list) or len(relation) < 5 or not all(type(place) is int for place in relation[:4]):
        raise BadRow(f"{where} is {relation!r}: not [start, end, start, end, label]")
    label = relation[4]
    if not isinstance(label, str):
        raise BadRow(f"{where}: the label is {kind(label)}, not text")
    types = {tuple(item[:2]): item[2] for item in record["ner"] if _is_entity(item)}
    begin, size = record["first"], len(record["tokens"])
    for name, (start, last) in (("head", relation[:2]), ("tail", relation[2:4])):
        if not begin <= start <= last < begin + size:
            raise BadRow(
                f"{where}: the {name} is at {start}–{last}, outside its sentence, which has the document's tokens "
                f"{begin}–{begin + size - 1}; places must count the document's tokens and include the last"
            )
        row[name] = entity((start - begin, last - begin + 1), types.get((start, last), ""))
    return label
