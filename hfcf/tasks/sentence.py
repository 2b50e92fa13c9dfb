"""Turn a relation row into a text that a baseline rewrites, and a rewritten text into a candidate.

A text is the tokens with single spaces. Entities are never edited: a sentence that a model writes must have each of them, and its
other words become edits of tokens. Models read brackets and quotes as people write them (`plain`); where the row has the Penn
Treebank's names for them, so gets the answer, or else each would be an edit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any

from hfcf.core import edits
from hfcf.core.candidates import Candidate, reject
from hfcf.tasks.relation import candidate, entities, overlap, spans
from hfcf.text.check import text_problem
from hfcf.text.normalise import BRACKETS, normalise, unbracket

_EDGES = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
_CLITIC = re.compile(r"(?<=\w)(n['’]t|['’](?:s|re|ve|ll|d|m))$", re.IGNORECASE)
_NOT = re.compile(r"n['’]t", re.IGNORECASE)
# The Penn Treebank's double quotes, which may also come back as typographic ones.
_OPEN, _CLOSE = "``", "''"
_QUOTES = {_OPEN: _OPEN, "“": _OPEN, _CLOSE: _CLOSE, "”": _CLOSE, '"': None}


def text(row: Mapping[str, Any]) -> str:
    """Join a row's tokens by spaces."""
    return " ".join(row["tokens"])


def plain(tokens: Sequence[str]) -> list[str]:
    """Write brackets and double quotes in tokens as people do, in the place of the Penn Treebank's names.

    >>> " ".join(plain("the `` big '' chest -LRB- f-LSB-x-RSB- -RRB-".split()))
    'the " big " chest ( f[x] )'
    """
    return ['"' if token in (_OPEN, _CLOSE) else unbracket(token) for token in tokens]


def protected(row: Mapping[str, Any]) -> frozenset[int]:
    """List the characters of a row's text that no edit may touch: the entities', and those before "n't" ("ca" is no word).

    >>> row = {"tokens": "eggs ca n't move".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}}
    >>> "".join(text(row)[i] for i in sorted(protected(row)))
    'eggscamove'
    """
    tokens = row["tokens"]
    fixed = {i for start, end in spans(row) for i in range(start, end)}
    fixed |= {i for i in range(len(tokens) - 1) if _NOT.fullmatch(tokens[i + 1])}
    starts = _starts(tokens)
    return frozenset(place for i in fixed for place in range(starts[i], starts[i] + len(tokens[i])))


def token_edits(tokens: Sequence[str], text_edits: Sequence[edits.Edit]) -> list[edits.Edit]:
    """Turn edits of a text, each of which lies in one token, into edits of tokens.

    >>> edit = {"field": "claim", "piece": -1, "start": 8, "end": 12, "before": "dark", "after": "very dim"}
    >>> token_edits(["in", "half-dark", "rooms"], [edit])[0]["after"]
    'half-very dim'
    """
    starts, inside = _starts(tokens), dict[int, list[edits.Edit]]()
    for edit in text_edits:
        i = bisect_right(starts, edit["start"]) - 1
        inside.setdefault(i, []).append({**edit, "start": edit["start"] - starts[i], "end": edit["end"] - starts[i]})
    return [_edit(tokens, i, i + 1, edits.replace_text(tokens[i], group)) for i, group in sorted(inside.items())]


def edited(row: Mapping[str, Any], edited: Sequence[edits.Edit], stage: str) -> list[Candidate]:
    """Make the candidate of edits of a row's text, which keeps the row's label; none where there are no edits."""
    return [_checked(row, candidate(row, row["label"], token_edits(row["tokens"], edited)), stage)] if edited else []


def rewritten(row: Mapping[str, Any], said: str, label: str, stage: str, scores: Sequence[Mapping[str, Any]] = ()) -> Candidate:
    """Make the candidate of a sentence that a model wrote in the place of a row's.

    It is rejected when it can be no relation row, does not have each entity exactly once (`find`), has them in the other order, for
    edits move no entity, or says what the row says. An entity keeps the row's letters where the model wrote other capitals.

    Args:
        row: the source.
        said: the new sentence.
        label: the relation that it is meant to have.
        stage: the name of the stage.
        scores: `{"name", "value"}` of the model.

    >>> row = {"tokens": "eggs are in pots .".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}, "label": "a"}
    >>> rewritten(row, "Eggs come from pots.", "b", "rewrite_llm")["text"]
    'eggs come from pots .'
    """
    tokens = _spell(split(said, [*row["tokens"], *plain(row["tokens"])]), row["tokens"])
    try:
        if why := text_problem(said, "the new sentence"):
            raise ValueError(why)
        around = _edits_around(row, tokens)
    except ValueError as error:
        return reject({**candidate(row, label, [], scores), "text": " ".join(tokens)}, stage, str(error))
    return _checked(row, candidate(row, label, around, scores), stage)


def split(said: str, source: Sequence[str]) -> list[str]:
    """Split a text into tokens as a row's are: at spaces, and punctuation, "'s" and "n't" from words that the row does not have.

    Args:
        said: the text.
        source: the row's tokens.

    >>> split("The U.S. plant's port, isn't it?", ["U.S."])
    ['The', 'U.S.', 'plant', "'s", 'port', ',', 'is', "n't", 'it', '?']
    """
    results, words = list[str](), set(source)
    for chunk in said.split():
        edges = _EDGES.match(chunk)
        if chunk in words or edges is None or not edges[2]:
            results.append(chunk)
            continue
        clitic = None if edges[2] in words else _CLITIC.search(edges[2])
        word = [edges[2]] if clitic is None else [edges[2][: clitic.start()], clitic[0]]
        results += [*edges[1], *word, *edges[3]]
    return results


def _spell(tokens: Sequence[str], source: Sequence[str]) -> list[str]:
    """Write the Penn Treebank's names of brackets, of quotes, or of both in new tokens where the source has them.

    >>> " ".join(_spell('say " ( a ) " , [ b ]'.split(), "-LRB- x -RRB- `` y ''".split()))
    "say `` -LRB- a -RRB- '' , -LSB- b -RSB-"
    """
    spelling = {unbracket(token): token for token in source if unbracket(token) != token}
    if spelling and not set(BRACKETS.values()) & set(source):
        spelling |= {bracket: name for name, bracket in BRACKETS.items()}
    results = [token if token in source else spelling.get(token, token) for token in tokens]
    marks = [token for token in source if token in (_OPEN, _CLOSE)]
    if not marks or '"' in source:
        return results
    places = [i for i, token in enumerate(results) if token in _QUOTES]
    if len(places) != len(marks):  # else they are the row's own, of which one may mean inches
        marks = []
        for i in places:
            turn = _CLOSE if marks and marks[-1] == _OPEN else _OPEN
            marks.append(_QUOTES[results[i]] or turn)
    for i, mark in zip(places, marks, strict=True):
        results[i] = mark
    return results


def find(row: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, dict[str, int]]:
    """Find a row's head and tail in other tokens, whatever their capitals.

    Raises:
        ValueError: one of them does not stand there exactly once, or they overlap.

    >>> row = {"tokens": "eggs in pots".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}
    >>> find(row, "Pots hold eggs".split())
    {'head': {'start': 2, 'end': 3}, 'tail': {'start': 0, 'end': 1}}
    """
    results = {}
    for name, entity in zip(("head", "tail"), entities(row), strict=True):
        part = entity.split()
        at = places(tokens, part)
        if len(at) != 1:
            raise ValueError(f"has the {name} {entity!r} {len(at)} times in its sentence, not once")
        results[name] = {"start": at[0], "end": at[0] + len(part)}
    first, second = sorted(results.values(), key=lambda span: span["start"])
    if second["start"] < first["end"]:
        raise ValueError("lets the two entities overlap")
    return results


def places(tokens: Sequence[str], part: Sequence[str]) -> list[int]:
    """Find tokens among others, whatever their capitals.

    >>> places("In pots in Pots".split(), ["in", "pots"])
    [0, 2]
    """
    words, group, n = folded(tokens), folded(part), len(part)
    return [i for i in range(len(words) - n + 1) if words[i : i + n] == group] if n else []


def folded(tokens: Sequence[str]) -> list[str]:
    """Fold the case of tokens."""
    return [token.casefold() for token in tokens]


def _edits_around(row: Mapping[str, Any], tokens: Sequence[str]) -> list[edits.Edit]:
    """Find edits that turn a row's tokens into others: before, between and after the entities."""
    if why := overlap(row):
        raise ValueError(why)
    new = [(span["start"], span["end"]) for span in find(row, tokens).values()]
    if (new[0] < new[1]) != (spans(row)[0] < spans(row)[1]):
        raise ValueError("has the two entities in the other order")
    around: list[edits.Edit] = []
    for (start, stop), (begin, end) in zip(_gaps(spans(row), row["tokens"]), _gaps(new, tokens), strict=True):
        # A list of strings; junk heuristics would make other edits of long sentences.
        for kind, i, j, k, m in SequenceMatcher(None, row["tokens"][start:stop], tokens[begin:end], autojunk=False).get_opcodes():
            if kind != "equal":
                around.append(_edit(row["tokens"], start + i, start + j, " ".join(tokens[begin + k : begin + m])))
    return around


def _gaps(two: Sequence[tuple[int, int]], tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Return the gaps before, between and after two spans."""
    (start, end), (begin, stop) = sorted(two)
    return [(0, start), (end, begin), (stop, len(tokens))]


def _checked(row: Mapping[str, Any], new: Candidate, stage: str) -> Candidate:
    same = normalise(new["text"]) == normalise(text(row))
    return reject(new, stage, "repeats the source's sentence") if same else new


def _edit(tokens: Sequence[str], start: int, end: int, after: str) -> edits.Edit:
    before = " ".join(tokens[start:end])
    return {"field": "tokens", "piece": -1, "start": start, "end": end, "before": before, "after": after}


def _starts(tokens: Sequence[str]) -> list[int]:
    return list(accumulate((len(token) + 1 for token in tokens), initial=0))
