"""What a baseline may rewrite in a row of a task, and how rewritten texts become candidates.

Baselines that replace words of a text, or ask a model for a new text, use `Rewriting`. A task names its own in `Task.rewriting`:
verification rewrites claims, and relation extraction rewrites sentences around their entities.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from pkgutil import resolve_name
from random import Random
from typing import Any, Protocol

from datasets import Dataset, IterableDataset, List

from hfcf.core import edits, schema
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.candidates import Candidate, reject
from hfcf.core.stage import Stage
from hfcf.core.task import Task, get_task
from hfcf.tasks import DEFAULT
from hfcf.tasks.relation import candidate, entities, overlap, spans, token_starts
from hfcf.tasks.verification import NOT_ENOUGH_INFO, opposite, rewritten
from hfcf.text.check import text_problem, why_lost
from hfcf.text.normalise import BRACKETS, normalise, unbracket

Row = Mapping[str, Any]
Scores = Sequence[Mapping[str, Any]]

_EDGES = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
_CLITIC = re.compile(r"(?<=\w)(n['’]t|['’](?:s|re|ve|ll|d|m))$", re.IGNORECASE)
_NOT = re.compile(r"n['’]t", re.IGNORECASE)
# The Penn Treebank's double quotes, which may also come back as typographic quotes.
_OPEN, _CLOSE = "``", "''"
_QUOTES = {_OPEN: _OPEN, "“": _OPEN, _CLOSE: _CLOSE, "”": _CLOSE, '"': None}


class Rewriting(Protocol):
    """The text of a row that baselines rewrite."""

    noun: str
    """The name of the text in reasons: "claim"."""
    editable: str
    """Where the editable words are, in reasons: "of the claim"."""
    columns: tuple[str, ...]
    """The columns of a row that are read to edit words of the text."""
    prompt: str
    """"module:attribute" of the prompt by which a language model writes a counterfactual (`hfcf.prompts.Prompt`)."""

    negated: bool
    """Whether a negation of the text may change the label to its opposite."""

    def text(self, row: Row) -> str:
        """Return the text; `protected` and edits count its characters."""

    def readable(self, row: Row) -> str:
        """Return the text as a model reads it."""

    def protected(self, row: Row) -> Container[int]:
        """Return the spans of the text that no edit may touch, in characters."""

    def edited(self, row: Row, text_edits: Sequence[edits.Edit], stage: str) -> list[Candidate]:
        """Make the candidate of edits of the text, which keeps the row's label; [] if there are no edits."""

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Scores = ()) -> Candidate:
        """Make the candidate of a text that a model wrote instead of the row's; reject a text that repeats the row's."""

    def opposite(self, row: Row, labels: Sequence[str]) -> str:
        """Return the label, one of the set's `labels`, that the row's negated text has; raise `ValueError` with the reason if it
        has none."""


class ClaimRewriting:
    """The claim of a verification row; its evidence stays."""

    noun = "claim"
    editable = "of the claim"
    columns = ("claim", "label")
    prompt = "hfcf.prompts.counterfactuals:ClaimPrompt"
    negated = True

    def text(self, row: Row) -> str:
        return row["claim"]

    readable = text

    def protected(self, row: Row) -> Container[int]:
        return ()

    def edited(self, row: Row, text_edits: Sequence[edits.Edit], stage: str) -> list[Candidate]:
        new = edits.replace_text(row["claim"], text_edits)
        return [rewritten(row["claim"], new, row["label"], stage, edited=text_edits)] if text_edits else []

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Scores = ()) -> Candidate:
        return rewritten(row["claim"], text, label, stage, scores=scores)

    def opposite(self, row: Row, labels: Sequence[str]) -> str:
        if row["label"] == NOT_ENOUGH_INFO:
            raise ValueError(f"a {NOT_ENOUGH_INFO} row has no opposite label")
        return opposite(row["label"])


class SentenceRewriting:
    """The sentence of a relation row around its entities.

    In a text, single spaces separate the tokens. Entities are never changed. If a model writes a whole sentence, each entity must
    be found in it again, and everything around the entities becomes edits of tokens. Such a model reads brackets and quotes as
    people write them (`plain`). If the row has the Penn Treebank's names of brackets and quotes, the answer gets these names;
    otherwise each would be an edit.
    """

    noun = "sentence"
    editable = "outside the entities"
    columns = ("tokens", "head", "tail", "label")
    prompt = "hfcf.prompts.counterfactuals:RelationPrompt"
    negated = False

    def text(self, row: Row) -> str:
        return " ".join(row["tokens"])

    def readable(self, row: Row) -> str:
        return " ".join(plain(row["tokens"]))

    def protected(self, row: Row) -> frozenset[int]:
        """Return the spans of the entities, and of the word before "n't" ("ca" is not a word)."""
        tokens = row["tokens"]
        indices = {i for start, end in spans(row) for i in range(start, end)}
        indices |= {i for i in range(len(tokens) - 1) if _NOT.fullmatch(tokens[i + 1])}
        starts = token_starts(tokens)
        return frozenset(place for i in indices for place in range(starts[i], starts[i] + len(tokens[i])))

    def edited(self, row: Row, text_edits: Sequence[edits.Edit], stage: str) -> list[Candidate]:
        new = candidate(row, row["label"], token_edits(row["tokens"], text_edits))
        return [_reject_repeat(row, new, stage)] if text_edits else []

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Scores = ()) -> Candidate:
        """Make the candidate of a sentence that a model wrote instead of a row's sentence.

        It is rejected if it can't be a relation row or repeats the row. It is also rejected if it does not have each entity exactly
        once, or has them in the other order, because edits move no entity. An entity keeps the row's capitals.
        """
        tokens = _spell(split(text, [*row["tokens"], *plain(row["tokens"])]), row["tokens"])
        try:
            if problem := text_problem(text, "the new sentence"):
                raise ValueError(problem)
            new_edits = _between(row, tokens)
        except ValueError as error:
            return reject({**candidate(row, label, [], scores), "text": " ".join(tokens)}, stage, str(error))
        return _reject_repeat(row, candidate(row, label, new_edits, scores), stage)

    def opposite(self, row: Row, labels: Sequence[str]) -> str:
        raise ValueError("a relation has no opposite")


def rewriting_of(task: str) -> Rewriting:
    """Return what may be rewritten in the rows of a task; raise `ValueError` if the task has no `rewriting`."""
    if not (reference := get_task(task).rewriting):
        raise ValueError(
            f"the task {task!r} has no `rewriting`, which names the text of its rows that may be rewritten: set Task.rewriting"
        )
    return resolve_name(reference)()


def edit_columns(task: Task) -> dict[str, Any]:
    """Return the columns that a baseline reads to edit words of a text."""
    return {name: task.features[name] for name in rewriting_of(task.name).columns}


def candidate_columns(task: Task) -> dict[str, Any]:
    return {"candidates": List(task.candidate_features)}


def model_columns(task: Task) -> dict[str, Any]:
    """Return the columns that a baseline reads before it runs a model: all texts, so that broken rows are rejected first."""
    return {**task.columns, "label": schema.TEXT}


def learn_labels(ds: Dataset | IterableDataset) -> str:
    """Store the labels of the rows that were not rejected, sorted, as a fitted file; return its sha256."""
    columns = [name for name in ("label", "status") if name in (ds.column_names or [])]
    rows = (row for row in ds.select_columns(columns) if (row.get("status") or {}).get("accepted") is not False)
    return save_artifact({"labels": sorted({row["label"] for row in rows} - {None})})


@lru_cache(maxsize=16)
def learned_labels(sha: str) -> tuple[str, ...]:
    """Return what `learn_labels` stored."""
    return tuple(read_artifact(sha, "run system = system.fit(ds) again")["labels"])


def rng_for(stage: Stage, task: str, row_id: str) -> Random:
    """Return a row's random generator in a stage that edits words; each task has its own seeds."""
    verb, _, baseline = stage.name.partition("_")
    return Random(f"{stage.seed}:{verb}_{'' if task == DEFAULT else f'{task}_'}{baseline}:{row_id}")


def plain(tokens: Sequence[str]) -> list[str]:
    """Write the Penn Treebank's brackets and double quotes as people do."""
    return ['"' if token in (_OPEN, _CLOSE) else unbracket(token) for token in tokens]


def token_edits(tokens: Sequence[str], text_edits: Sequence[edits.Edit]) -> list[edits.Edit]:
    """Turn edits of a text, each within one token, into edits of its tokens."""
    starts, by_token = token_starts(tokens), dict[int, list[edits.Edit]]()
    for edit in text_edits:
        i = bisect_right(starts, edit["start"]) - 1
        by_token.setdefault(i, []).append({**edit, "start": edit["start"] - starts[i], "end": edit["end"] - starts[i]})
    return [_edit(tokens, i, i + 1, edits.replace_text(tokens[i], inside)) for i, inside in sorted(by_token.items())]


def split(text: str, row_tokens: Sequence[str]) -> list[str]:
    """Split a text into tokens like a row's: at spaces; punctuation, "'s" and "n't" are separate unless the row joins them to the
    word."""
    tokens, unsplit = list[str](), set(row_tokens)
    for chunk in text.split():
        edges = _EDGES.match(chunk)
        if chunk in unsplit or edges is None or not edges[2]:
            tokens.append(chunk)
            continue
        clitic = None if edges[2] in unsplit else _CLITIC.search(edges[2])
        word = [edges[2]] if clitic is None else [edges[2][: clitic.start()], clitic[0]]
        tokens += [*edges[1], *word, *edges[3]]
    return tokens


def _spell(tokens: Sequence[str], row_tokens: Sequence[str]) -> list[str]:
    """Spell brackets, quotes, or both, as the Penn Treebank does, where the row's tokens are spelt so."""
    spelling = {unbracket(token): token for token in row_tokens if unbracket(token) != token}
    if spelling and not set(BRACKETS.values()) & set(row_tokens):
        spelling |= {bracket: name for name, bracket in BRACKETS.items()}
    spelt = [token if token in row_tokens else spelling.get(token, token) for token in tokens]
    quotes = [token for token in row_tokens if token in (_OPEN, _CLOSE)]
    if not quotes or '"' in row_tokens:
        return spelt
    places = [i for i, token in enumerate(spelt) if token in _QUOTES]
    if len(places) == len(quotes):  # the row's own quotes; a mark may mean inches
        marks = quotes
    else:
        marks = []
        for i in places:
            turn = _CLOSE if marks and marks[-1] == _OPEN else _OPEN
            marks.append(_QUOTES[spelt[i]] or turn)
    for i, mark in zip(places, marks, strict=True):
        spelt[i] = mark
    return spelt


def find(row: Row, tokens: Sequence[str]) -> dict[str, dict[str, int]]:
    """Find a row's head and tail in other tokens, without regard to capitals; raise `ValueError` unless each occurs once."""
    spans_of = {}
    for name, entity in zip(("head", "tail"), entities(row), strict=True):
        part = entity.split()
        at = places(tokens, part)
        if len(at) != 1:
            raise ValueError(f"has the {name} {entity!r} {len(at)} times in its sentence, not once")
        spans_of[name] = {"start": at[0], "end": at[0] + len(part)}
    if overlap(spans_of):
        raise ValueError("lets the two entities overlap")
    return spans_of


def places(tokens: Sequence[str], part: Sequence[str]) -> list[int]:
    """List where tokens occur in a longer list of tokens, without regard to capitals."""
    texts, part_texts, n = folded(tokens), folded(part), len(part)
    return [i for i in range(len(texts) - n + 1) if texts[i : i + n] == part_texts] if n else []


def folded(tokens: Sequence[str]) -> list[str]:
    return [token.casefold() for token in tokens]


def _between(row: Row, tokens: Sequence[str]) -> list[edits.Edit]:
    """Make the edits that turn a row's tokens into new tokens, before, between and after the entities."""
    if why := overlap(row):
        raise ValueError(why)
    old, new = spans(row), spans(find(row, tokens))
    if (new[0] < new[1]) != (old[0] < old[1]):
        raise ValueError("has the two entities in the other order")
    new_edits: list[edits.Edit] = []
    for (start, stop), (begin, end) in zip(_gaps(old, row["tokens"]), _gaps(new, tokens), strict=True):
        for kind, i, j, k, m in edits.opcodes(row["tokens"][start:stop], tokens[begin:end]):
            if kind != "equal":
                new_edits.append(_edit(row["tokens"], start + i, start + j, " ".join(tokens[begin + k : begin + m])))
    return new_edits


def _gaps(entity_spans: Sequence[tuple[int, int]], tokens: Sequence[str]) -> list[tuple[int, int]]:
    (start, end), (begin, stop) = sorted(entity_spans)
    return [(0, start), (end, begin), (stop, len(tokens))]


def _reject_repeat(row: Row, new: Candidate, stage: str) -> Candidate:
    source = " ".join(row["tokens"])
    why = "repeats the source's sentence" if normalise(new["text"]) == normalise(source) else why_lost(source, new["text"])
    return reject(new, stage, why) if why else new


def _edit(tokens: Sequence[str], start: int, end: int, after: str) -> edits.Edit:
    before = " ".join(tokens[start:end])
    return {"field": "tokens", "piece": -1, "start": start, "end": end, "before": before, "after": after}
