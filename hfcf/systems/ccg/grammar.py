"""Check by part-of-speech tags whether new terms fit into their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle, undecided
from hfcf.core.stage import Reject, Stage
from hfcf.engines.parser import Parser
from hfcf.tasks.relation import CANDIDATES, TASK

_FINITE = ("VBD", "VBP", "VBZ", "MD")
_DETERMINERS = ("DT", "PRP$")
_NO_NOUN = (*_DETERMINERS, "IN", "VBD", "VBZ", ".")
"""What can't follow a determiner."""


def finite_verbs(tags: Sequence[str]) -> int:
    """Count finite verbs by their Penn tags.

    >>> finite_verbs(["PRP", "VBD", "MD", "VB", "VBN"])
    2
    """
    return sum(tag in _FINITE for tag in tags)


def bare_determiners(tags: Sequence[str]) -> int:
    """Count determiners after which no noun can stand.

    >>> bare_determiners(["IN", "DT", "JJ", "NN"]), bare_determiners(["IN", "DT", "DT", "JJ", "NN"])
    (0, 1)
    """
    return sum(one in _DETERMINERS and other in _NO_NOUN for one, other in pairwise(tags))


@dataclass(frozen=True, kw_only=True)
class CheckGrammar(Stage):
    """Reject the candidates whose sentence has another number of finite verbs than its source, or a determiner without a noun.

    Input columns: `tokens`, `head`, `tail`, `label`, `candidates`. Output column: `candidates`. A row is rejected when no candidate
    is left. A term that a relation has in one sentence does not fit into each: "was contained in" in the place of "into" gives "We
    poured the coffee was contained in a cup". CCG's paper has no such check.

    Args:
        tagger: whose Penn tags are read; None checks nothing.

    >>> row = {"id": "1", "tokens": "eggs in buckets".split(), "label": "in", "status": None, "candidates": []}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 2, "end": 3, "type": None}}
    >>> CheckGrammar()(row)["candidates"]
    []
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    tagger: Parser | None = None

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.tagger is None:
            return [{"candidates": row["candidates"]} for row in rows]
        texts = [tokens for row in rows for tokens in (row["tokens"], *_edited(row))]
        tags = iter([parse["tags"] for parse in self.tagger.run(texts)])
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            before = next(tags)
            judged = [self._judge(one, before, next(tags)) if undecided(one) else one for one in row["candidates"]]
            results.append(settle(judged, "") if judged else {"candidates": []})
        return results

    def _judge(self, one: Candidate, before: Sequence[str], after: Sequence[str]) -> Candidate:
        if finite_verbs(before) != finite_verbs(after):
            return reject(one, self.name, "the sentence has another number of finite verbs than its source")
        if bare_determiners(after) > bare_determiners(before):
            return reject(one, self.name, "a determiner has no noun")
        return one


def _edited(row: Mapping[str, Any]) -> list[list[str]]:
    """List the tokens of a row's undecided candidates."""
    return [list(TASK.apply_edits(row, one["edits"])["tokens"]) for one in row["candidates"] if undecided(one)]
