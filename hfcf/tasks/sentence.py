"""A relation row as a text that a baseline rewrites, and a rewritten text as a relation row, its entities where they were.

In a text the tokens stand apart by single spaces. Entities are never touched: where a model writes a whole sentence, each of them
must be found in it again, and everything around them becomes edits of tokens. Such a model reads brackets and quotes as people
write them (`plain`), and where the row has the Penn Treebank's names of them, its answer gets these: else each were an edit.
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
    """A row's tokens with a space between each two.

    >>> text({"tokens": ["eggs", "in", "buckets", "."]})
    'eggs in buckets .'
    """
    return " ".join(row["tokens"])


def plain(tokens: Sequence[str]) -> list[str]:
    """Tokens with brackets and double quotes as people write them, in the place of the Penn Treebank's.

    >>> " ".join(plain("the `` big '' chest -LRB- f-LSB-x-RSB- -RRB-".split()))
    'the " big " chest ( f[x] )'
    """
    return ['"' if token in (_OPEN, _CLOSE) else unbracket(token) for token in tokens]


def protected(row: Mapping[str, Any]) -> frozenset[int]:
    """The characters of a row's text that no edit may touch: the entities', and what stands before "n't" ("ca" is no word).

    >>> row = {"tokens": "eggs ca n't move".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}}
    >>> "".join(text(row)[i] for i in sorted(protected(row)))
    'eggscamove'
    """
    tokens = row["tokens"]
    kept = {i for start, end in spans(row) for i in range(start, end)}
    kept |= {i for i in range(len(tokens) - 1) if _NOT.fullmatch(tokens[i + 1])}
    starts = _starts(tokens)
    return frozenset(place for i in kept for place in range(starts[i], starts[i] + len(tokens[i])))


def token_edits(tokens: Sequence[str], made: Sequence[edits.Edit]) -> list[edits.Edit]:
    """Edits of tokens from edits of their text, each of which lies in one token.

    >>> text_edit = {"field": "claim", "piece": -1, "start": 13, "end": 17, "before": "dark", "after": "very dim"}
    >>> [(edit["start"], edit["before"], edit["after"]) for edit in token_edits(["eggs", "in", "half-dark", "rooms"], [text_edit])]
    [(2, 'half-dark', 'half-very dim')]
    """
    starts, inside = _starts(tokens), dict[int, list[edits.Edit]]()
    for edit in made:
        i = bisect_right(starts, edit["start"]) - 1
        inside.setdefault(i, []).append({**edit, "start": edit["start"] - starts[i], "end": edit["end"] - starts[i]})
    return [_edit(tokens, i, i + 1, edits.replace_text(tokens[i], group)) for i, group in sorted(inside.items())]


def reworded(row: Mapping[str, Any], made: Sequence[edits.Edit], stage: str) -> list[Candidate]:
    """The candidate of edits of a row's text, which keeps the row's label; none where there are no edits.

    >>> row = {"tokens": "eggs in old pots".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}, "label": "a"}
    >>> made = [{"field": "claim", "piece": -1, "start": 8, "end": 11, "before": "old", "after": "aged"}]
    >>> reworded(row, made, "rewrite_relation_synonym")[0]["text"]
    'eggs in aged pots'
    """
    return [_new(row, candidate(row, row["label"], token_edits(row["tokens"], made)), stage)] if made else []


def rewritten(row: Mapping[str, Any], said: str, label: str, stage: str, scores: Sequence[Mapping[str, Any]] = ()) -> Candidate:
    """The candidate of a sentence that a model wrote in the place of a row's.

    It is rejected when it can be no relation row, does not have each entity exactly once (`find`), has them in the other order, for
    edits move no entity, or says what the row says. An entity keeps the row's letters where the model wrote other capitals.

    Args:
        row: the source.
        said: the new sentence.
        label: the relation that it is meant to have.
        stage: the name of the stage.
        scores: `{"name", "value"}` of the model.

    >>> row = {"tokens": "eggs are in pots .".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}, "label": "a"}
    >>> made = rewritten(row, "Eggs come from pots.", "b", "rewrite_relation_llm")
    >>> made["text"], [(edit["before"], edit["after"]) for edit in made["edits"]]
    ('eggs come from pots .', [('are in', 'come from')])
    >>> rewritten(row, "There are pots.", "b", "rewrite_relation_llm")["status"]["reason"]
    "has the head 'eggs' 0 times in its sentence, not once"
    """
    tokens = _spelt(split(said, [*row["tokens"], *plain(row["tokens"])]), row["tokens"])
    try:
        if why := text_problem(said, "the new sentence"):
            raise ValueError(why)
        made = _between(row, tokens)
    except ValueError as error:
        return reject({**candidate(row, label, [], scores), "text": " ".join(tokens)}, stage, str(error))
    return _new(row, candidate(row, label, made, scores), stage)


def split(said: str, known: Sequence[str]) -> list[str]:
    """A text in tokens like a row's: split at spaces, and punctuation, "'s" and "n't" from words that the row does not have so.

    Args:
        said: the text.
        known: the row's tokens.

    >>> split("The U.S. plant's port, isn't it?", ["U.S."])
    ['The', 'U.S.', 'plant', "'s", 'port', ',', 'is', "n't", 'it', '?']
    """
    results, kept = list[str](), set(known)
    for chunk in said.split():
        edges = _EDGES.match(chunk)
        if chunk in kept or edges is None or not edges[2]:
            results.append(chunk)
            continue
        clitic = None if edges[2] in kept else _CLITIC.search(edges[2])
        word = [edges[2]] if clitic is None else [edges[2][: clitic.start()], clitic[0]]
        results += [*edges[1], *word, *edges[3]]
    return results


def _spelt(tokens: Sequence[str], known: Sequence[str]) -> list[str]:
    """New tokens with the Penn Treebank's brackets, or quotes, or both, where the tokens that are known have them.

    >>> " ".join(_spelt('say " ( a ) " , [ b ]'.split(), "-LRB- x -RRB- `` y ''".split()))
    "say `` -LRB- a -RRB- '' , -LSB- b -RSB-"
    """
    spelling = {unbracket(token): token for token in known if unbracket(token) != token}
    if spelling and not set(BRACKETS.values()) & set(known):
        spelling |= {bracket: name for name, bracket in BRACKETS.items()}
    made = [token if token in known else spelling.get(token, token) for token in tokens]
    own = [token for token in known if token in (_OPEN, _CLOSE)]
    if not own or '"' in known:
        return made
    places = [i for i, token in enumerate(made) if token in _QUOTES]
    if len(places) == len(own):  # the row's own, of which one may mean inches
        marks = own
    else:
        marks = []
        for i in places:
            turn = _CLOSE if marks and marks[-1] == _OPEN else _OPEN
            marks.append(_QUOTES[made[i]] or turn)
    for i, mark in zip(places, marks, strict=True):
        made[i] = mark
    return made


def find(row: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, dict[str, int]]:
    """Where a row's head and tail stand in other tokens, whatever their capitals.

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
    """Where tokens stand among others, whatever their capitals.

    >>> places("In pots in Pots".split(), ["in", "pots"])
    [0, 2]
    """
    whole, group, n = folded(tokens), folded(part), len(part)
    return [i for i in range(len(whole) - n + 1) if whole[i : i + n] == group] if n else []


def folded(tokens: Sequence[str]) -> list[str]:
    """Tokens without regard to capitals."""
    return [token.casefold() for token in tokens]


def _between(row: Mapping[str, Any], tokens: Sequence[str]) -> list[edits.Edit]:
    """Edits that make these of a row's tokens: of what stands before, between and after the entities."""
    if why := overlap(row):
        raise ValueError(why)
    results = find(row, tokens)
    new = [(span["start"], span["end"]) for span in (results["head"], results["tail"])]
    if (new[0] < new[1]) != (spans(row)[0] < spans(row)[1]):
        raise ValueError("has the two entities in the other order")
    made: list[edits.Edit] = []
    for (start, stop), (begin, end) in zip(_gaps(spans(row), row["tokens"]), _gaps(new, tokens), strict=True):
        # A list of strings; junk heuristics would make other edits of long sentences.
        for kind, i, j, k, m in SequenceMatcher(None, row["tokens"][start:stop], tokens[begin:end], autojunk=False).get_opcodes():
            if kind != "equal":
                made.append(_edit(row["tokens"], start + i, start + j, " ".join(tokens[begin + k : begin + m])))
    return made


def _gaps(two: Sequence[tuple[int, int]], tokens: Sequence[str]) -> list[tuple[int, int]]:
    """What lies before, between and after two spans."""
    (start, end), (begin, stop) = sorted(two)
    return [(0, start), (end, begin), (stop, len(tokens))]


def _new(row: Mapping[str, Any], made: Candidate, stage: str) -> Candidate:
    same = normalise(made["text"]) == normalise(text(row))
    return reject(made, stage, "repeats the source's sentence") if same else made


def _edit(tokens: Sequence[str], start: int, end: int, after: str) -> edits.Edit:
    before = " ".join(tokens[start:end])
    return {"field": "tokens", "piece": -1, "start": start, "end": end, "before": before, "after": after}


def _starts(tokens: Sequence[str]) -> list[int]:
    return list(accumulate((len(token) + 1 for token in tokens), initial=0))
