"""Read a user's cells as claims, questions and texts, and write counterfactuals in the form that the cells have.

A cell may hold its value, or a list or an object as JSON or as Python writes it: a CSV has no other way.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hfcf.corpora.base import BadRow, as_text
from hfcf.corpora.custom.tables import is_missing
from hfcf.corpora.formats.answers import check_places, context_group, looked_up, open_answers, placed_answers
from hfcf.text.check import kind

Row = Mapping[str, Any]
Column = str | tuple[str, ...]
"""A column, or several columns that make up a field: the pieces of evidence, or an entity's start, end and type."""
Columns = Mapping[str, Column]
"""The user's column of each field of ours."""
_LISTS = ('[["', "[['", "[{", "['", '["', "{'", '{"')
"""How a list or an object begins, and hardly any text: "[[Rome]]" is a link."""


def parse_cell(value: Any, *, numbers: bool = False, text: bool = False) -> Any:
    """Return the list or object that a text holds as JSON or as Python writes it; any other value as it is.

    Args:
        value: the cell.
        numbers: whether a list of numbers is a list: "[1]" may also be a text.
        text: whether the cell must be a text, which may begin as a list and be none.
    """
    if not isinstance(value, str) or not (start := value.strip()).startswith(("[", "{")):
        return None if is_missing(value) else value
    found = _literal(start)
    if isinstance(found, dict) or (isinstance(found, list) and (numbers or not found or not isinstance(found[0], int | float))):
        return found
    if start.startswith(_LISTS) and not text:
        raise BadRow(f"{start[:30]}… begins as a list or an object and is neither JSON nor Python: write it with json.dumps")
    return value


def _literal(text: str) -> Any:
    """Return what a text holds as JSON or Python; None if it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        found = ast.literal_eval(text)
        kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return None
    # Two texts without a comma, as NumPy prints its arrays: Python would join them.
    joined = any(one == other == tokenize.STRING for one, other in pairwise(kinds))
    return None if joined else found


def like_cell(cell: Any, value: Any) -> Any:
    """Return a list or an object in the form of a cell: as it is, as JSON, or as Python writes it."""
    if not isinstance(cell, str) or isinstance(value, str):
        return value
    try:
        json.loads(cell)
    except ValueError:
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def text_cell(value: Any) -> Any:
    """Return a text; a number is written as text, since a table does not tell "1889" from 1889."""
    if isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value):
        return str(int(value)) if float(value).is_integer() else str(value)
    return parse_cell(value, text=True)


def name_cell(value: Any) -> str | None:
    """Return an id or the name of a group as text, without the ".0" of numbers that pandas made floats; None if it is missing."""
    if value is None or is_missing(value) or not str(value).strip():
        return None
    return as_text(int(value) if isinstance(value, float) and value.is_integer() else value)


def as_known(text: str, known: Container[str]) -> str:
    """Return a text without the ".0" that pandas writes after a whole number, if only the number is known.

    >>> as_known("1889.0", "It opened in 1889."), as_known("12.0", {"12", "12.0"})
    ('1889', '12.0')
    """
    number = text.removesuffix(".0")
    return number if text not in known and number in known else text


def whole_number(value: Any) -> Any:
    """Return a whole number, which a cell may hold as text, as 1.0 or as "1.0"; any other value as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    text = value.strip().removesuffix(".0") if isinstance(value, str) else ""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else value


# --- claims with evidence

_FORMS = 'a list of {"title", "text"}, a list of [title, text], a list of texts, or one text'


def read_claim(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's claim and evidence into `row`."""
    row["claim"] = text_cell(own[str(columns["claim"])])
    evidence = columns["evidence"]
    value = parse_cell(own[evidence]) if isinstance(evidence, str) else [own[name] for name in _present(own, evidence)]
    title = text_cell(own[str(columns["title"])]) if "title" in columns else None
    row["evidence"], problem = _pieces(_listed(value) if isinstance(value, Mapping) else value, title)
    if problem:
        raise BadRow(problem)


def write_claim(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's claim and evidence in the form of the source's."""
    written = {str(columns["claim"]): new["claim"]}
    evidence, pieces = columns["evidence"], new["evidence"]
    if not isinstance(evidence, str):
        texts = {name: piece["text"] for name, piece in zip(_present(own, evidence), pieces, strict=True)}
        return {**written, **{name: own[name] for name in evidence}, **texts}
    value = parse_cell(own[evidence])
    if not isinstance(value, Mapping | list):
        written[evidence] = pieces[0]["text"]
        if "title" in columns and isinstance(own[str(columns["title"])], str):
            written[str(columns["title"])] = pieces[0]["title"]
        return written
    if isinstance(value, Mapping):
        fields = ("text", "title") if value.get("title") is not None else ("text",)
        new_value: Any = {**value, **{field: [piece[field] for piece in pieces] for field in fields}}
    else:
        new_value = [_piece_like(item, piece) for item, piece in zip(value, pieces, strict=True)]
    return {**written, evidence: like_cell(own[evidence], new_value)}


def _present(own: Row, names: Sequence[str]) -> list[str]:
    """List the columns whose piece a row has: rows may have fewer pieces than there are columns."""
    return [name for name in names if own[name] and not is_missing(own[name])]


def _listed(value: Mapping[str, Any]) -> Any:
    """Return the pieces of {"title": [...], "text": [...]}, as `datasets` stored lists of objects."""
    texts, titles = value.get("text"), value.get("title")
    if not isinstance(texts, list):
        return value
    titles = titles if isinstance(titles, list) else [None] * len(texts)
    if len(titles) != len(texts):
        raise BadRow(f"the evidence has {len(texts)} texts and {len(titles)} titles")
    return [{"title": title, "text": text} for title, text in zip(titles, texts, strict=True)]


def _pieces(value: Any, title: Any) -> tuple[list[dict[str, Any]], str | None]:
    """Return the pieces of evidence, and the first problem of unreadable pieces."""
    if value is None or value == "":
        return [], None
    title = title if isinstance(title, str) else ""
    if not isinstance(value, list):
        piece = {"title": title, "text": text_cell(value)}
        sound = isinstance(piece["text"], str) and not piece["text"].strip().isdigit()
        problem = None if sound else f"the evidence is {_kind(whole_number(value))}; the known forms are {_FORMS}"
        return [piece if sound else _raw(value)], problem
    pieces: list[dict[str, Any]] = []
    problem = None
    for i, item in enumerate(value):
        piece = _raw(item)
        if isinstance(item, str):
            piece = {"title": title, "text": item}
        elif isinstance(item, list) and (len(item) == 2 or (len(item) == 3 and str(item[1]).isdigit())):
            piece = {"title": item[0], "text": item[-1]}  # copies of FEVER have the number of the sentence in between
        elif isinstance(item, dict) and "text" in item:
            piece = {"title": item.get("title"), "text": item["text"]}
        else:
            problem = problem or f"evidence piece {i} is {_kind(item)}; the known forms are {_FORMS}"
        if piece["title"] is None:
            piece["title"] = title
        if not isinstance(piece["title"], str):
            problem = problem or f"the title of evidence piece {i} is {_kind(piece['title'])}, not text"
            piece["title"] = as_text(piece["title"])
        pieces.append(piece)
    return pieces, problem


def _raw(value: Any) -> dict[str, Any]:
    return {"title": "", "text": as_text(value)}


def _kind(value: Any) -> str:
    return f"{kind(value)} ({(as_text(value) or 'null')[:60]})"


def _piece_like(item: Any, piece: Row) -> Any:
    """Return a piece of evidence in the form of the source's."""
    if isinstance(item, str):
        return piece["text"]
    if isinstance(item, list):  # a third item, in between, is the number of a sentence
        return [piece["title"], *item[1:-1], piece["text"]]
    return {**item, "text": piece["text"], **({"title": piece["title"]} if item.get("title") is not None else {})}


# --- questions

_ANSWERS = '{"text": […], "answer_start": […]}, a list of {"text", "answer_start"}, a list of texts, or one text'


def read_question(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's question, passage, answers and aliases into `row`, and its group: the title, else the passage.

    Positions are code points, and all are checked. Answers whose form has no positions are looked up in the context as whole words;
    every occurrence is written. Without one, they stay without positions, and stages that need spans reject the row.

    An empty answer is none, as in SQuAD 2.0's script: it does not count beside others, and alone it says that the row has no
    answer. A file may write it with the position -1. The column of aliases adds to the answers, which stay right.
    """
    record = {field: own[str(column)] for field, column in columns.items() if field not in ("id", "group")}
    row["question"] = text_cell(record["question"])
    row |= {name: "" if (value := text_cell(record.get(name))) is None else value for name in ("title", "context")}
    for name in ("title", "context"):
        if not isinstance(row[name], str):
            raise BadRow(f"the field {name!r} is {kind(row[name])}, not text")
    row["group_id"] = row["title"] or (context_group(row["context"]) if row["context"] else None)
    answers, aliases = _read_answers(record, row["context"])
    if (listed := parse_cell(record.get("aliases"))) is not None and listed != "":
        aliases = [*aliases, *open_answers(listed, "aliases")["text"]]
    row["aliases"] = [as_text(text) for text in dict.fromkeys(aliases) if not _is_blank(text)]
    row["answers"] = check_places(row["context"], answers)


def _read_answers(record: Row, context: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the answers with the record's positions or positions in the context, and all right answers."""
    filled = {name: value for name in ("answers", "answer") if (value := _answer(record.get(name))) is not None}
    if not filled:
        return {"text": [], "answer_start": []}, []
    name, value = next(iter(filled.items()))  # a row that has both may name one answer beside all of them
    if (start := whole_number(parse_cell(record.get("answer_start"), numbers=True))) not in (None, ""):
        if not isinstance(value, str):
            raise BadRow(f"answer_start is given for {kind(value)} in {name!r}; only a single text may have its own answer_start")
        return _placed([value], [start])
    if isinstance(value, dict):
        if "text" not in value:
            raise BadRow(f"{name!r} has no 'text', only {', '.join(map(repr, value))}; the known forms are {_ANSWERS}")
        texts, starts = _answer(value["text"]), value.get("answer_start")
        if starts is None:
            return _looked_up(texts, f"{name}.text", context)
        if not isinstance(texts, list) and not isinstance(starts, list):
            texts, starts = [texts], [starts]
        if not isinstance(texts, list) or not isinstance(starts, list):
            raise BadRow(f"{name}.text is {kind(texts)} and {name}.answer_start {kind(starts)}; both are lists of the same length")
        return _placed(texts, list(map(whole_number, starts)))
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        if any(isinstance(item, dict) and item.get("answer_start") is not None for item in value):
            items = [item if isinstance(item, dict) else {"text": item} for item in value]
            return _placed([item.get("text") for item in items], [whole_number(item.get("answer_start")) for item in items])
        texts = [item.get("text") if isinstance(item, dict) else item for item in value]
        return _looked_up(texts, f"{name}.text", context)
    if isinstance(value, str | list):
        return _looked_up(value, name, context)
    raise BadRow(f"{name!r} is {kind(value)} ({(as_text(value) or '')[:60]}); the known forms are {_ANSWERS}")


def _answer(value: Any) -> Any:
    """Return an answer, or a list of them, with numbers, true and false as texts, as in a table of texts."""
    value = parse_cell(value, numbers=True)
    return list(map(_one_answer, value)) if isinstance(value, list) else _one_answer(value)


def _one_answer(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_cell(value) if isinstance(value, int | float) else value


def _is_blank(text: Any) -> bool:
    return isinstance(text, str) and not text.strip()


def _placed(texts: Sequence[Any], starts: Sequence[Any]) -> tuple[dict[str, list[Any]], list[str]]:
    """Return answers with their positions, and their texts; an empty answer at -1 is none."""
    if len(texts) == len(starts):
        kept = [i for i, (text, start) in enumerate(zip(texts, starts, strict=True)) if start != -1 or not _is_blank(text)]
        texts, starts = ([values[i] for i in kept] for values in (texts, starts))
    answers = placed_answers(texts, starts)
    return answers, list(dict.fromkeys(answers["text"]))


def _looked_up(texts: Any, field: str, context: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return answers with their positions in the context, and their texts."""
    given = open_answers([texts] if isinstance(texts, str) else texts, field)["text"]
    unique = list(dict.fromkeys(as_known(text.strip(), context) for text in given if not _is_blank(text)))
    return looked_up(context, unique), unique


def write_question(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's question, passage and answers in the form that the source's have."""
    written = {str(columns[field]): new[field] for field in ("question", "context", "title") if field in columns}
    known = [str(columns[name]) for name in ("answers", "answer") if name in columns]
    filled = [column for column in known if _answer(own[column]) is not None] or known[:1]
    texts, starts = list(new["answers"]["text"]), list(new["answers"]["answer_start"])
    same = new["answers"] == source["answers"]
    for column in filled:
        value = parse_cell(own[column], numbers=True)
        written[column] = own[column] if same else like_cell(own[column], _answers_like(value, texts, starts))
    value = parse_cell(own[filled[0]], numbers=True)
    places = {field: columns[field] for field in ("answer_start", "answer_end") if field in columns}
    if places:
        old = {"text": value, **{field: whole_number(own[str(name)]) for field, name in places.items()}}
        moved = _one_like(old, texts[0] if texts else "", starts[0] if starts else None)
        written |= {str(name): moved[field] for field, name in places.items()}
    if "aliases" in columns:
        written[str(columns["aliases"])] = like_cell(own[str(columns["aliases"])], texts)
    return written


def _answers_like(value: Any, texts: list[str], starts: list[int]) -> Any:
    """Return answers in the form of the source's."""
    if isinstance(value, Mapping) and not isinstance(value["text"], list):
        return _one_like(value, texts[0], starts[0] if starts else None)
    places: list[int | None] = [*starts, *[None] * (len(texts) - len(starts))]
    if isinstance(value, Mapping):
        first = {name: items[0] if isinstance(items, list) and items else None for name, items in value.items()}
        answers = [_one_like(first, text, start) for text, start in zip(texts, places, strict=True)]
        new = {name: [answer[name] for answer in answers if answer[name] is not None or name != "answer_start"] for name in value}
        # What is no list says something of the old answers, or is missing.
        return new | {name: None for name, old in value.items() if not isinstance(old, list) and name != "answer_start"}
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        like = next(item for item in value if isinstance(item, Mapping))
        return [_one_like(like, text, start) for text, start in zip(texts, places, strict=True)]
    return texts if isinstance(value, list) else _like_number(value, texts[0])


def _like_number(old: Any, text: str) -> Any:
    """Return an answer as a number, or as true or false, where the source's cell is one."""
    if not isinstance(old, int | float):
        return text
    try:
        return {"true": True, "false": False}[text] if isinstance(old, bool) else type(old)(text)
    except (ValueError, KeyError):
        what = "true and false" if isinstance(old, bool) else "numbers"
        raise BadRow(f"the column of answers has {what}, and the answer {text!r} is none: make your answers texts") from None


def _one_like(old: Row, text: str, start: int | None) -> dict[str, Any]:
    """Return one answer with the fields of another: text and places are the new answer's, and what else described it is null."""
    new: dict[str, Any] = {**dict.fromkeys(old), "text": text}
    if "answer_start" in old:
        new["answer_start"] = start
    old_start, old_end = old.get("answer_start"), old.get("answer_end")
    if start is not None and isinstance(old_start, int) and isinstance(old_end, int):
        beyond = old_end - old_start - len(str(old["text"]))  # 0 if ends are exclusive, -1 if they are inclusive
        new["answer_end"] = start + len(text) + beyond if beyond in (0, -1) else None
    return new


# --- single texts


def read_text(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's text into `row`."""
    row["text"] = text_cell(own[str(columns["text"])])


def write_text(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's text."""
    return {str(columns["text"]): new["text"]}
