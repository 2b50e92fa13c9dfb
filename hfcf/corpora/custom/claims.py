"""Claims with evidence in a user's columns: read them, and write a counterfactual in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.corpora.base import BadRow, need
from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.formats.records import pieces_of

Row = Mapping[str, Any]


def fill(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's claim and evidence into `row`."""
    row["claim"] = own[str(columns["claim"])]
    evidence = columns["evidence"]
    value = own[evidence] if isinstance(evidence, str) else [own[name] for name in _present(own, evidence)]
    if isinstance(value, Mapping):
        value = _listed(value)
    title = own[str(columns["title"])] if "title" in columns else None
    row["evidence"], problem = pieces_of(value, title)
    need({"claim": row["claim"], "evidence": value}, "claim", "evidence")
    if problem:
        raise BadRow(problem)


def write(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's claim and evidence in the form that the source's have."""
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
    """Return a piece of evidence in the form of another."""
    if isinstance(item, str):
        return piece["text"]
    if isinstance(item, list):  # a third item, between the two, is the number of a sentence
        return [piece["title"], *item[1:-1], piece["text"]]
    return {**item, "text": piece["text"], **({"title": piece["title"]} if item.get("title") is not None else {})}
