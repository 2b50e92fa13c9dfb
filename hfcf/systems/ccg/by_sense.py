"""Choose among the phrases of all relations that a row's entities may have the one whose sentence loses least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from hfcf.core.model import Model
from hfcf.engines.branches import Branches
from hfcf.engines.parser import Parser
from hfcf.systems.ccg.phrases import FINITE, RELATIVE, Phrases, forms
from hfcf.systems.ccg.predicate import Gap, find_gap, is_whole
from hfcf.systems.ccg.terms import normalised, order
from hfcf.tasks.relation import TASK, spans, token_edits
from hfcf.tasks.rewriting import plain

Row = Mapping[str, Any]

_BEHIND = 3
"""Words behind the second entity that the language model reads of each sentence."""
_DIGITS = 3
"""Losses are compared with so many digits: processors differ in the fifth."""


class Option(NamedTuple):
    """A phrase in a row's gap."""

    relation: str
    text: str
    loss: float = 0.0
    """What the phrase and the second entity cost more than the source's words do there, in nats."""
    prior: float = 0.0
    """What the phrase costs after any noun."""


def inverse(relation: str) -> str:
    """Name the relation of the other direction; a label without directions has none."""
    for end, other in (("(e1,e2)", "(e2,e1)"), ("(e2,e1)", "(e1,e2)")):
        if relation.endswith(end):
            return relation.removesuffix(end) + other
    return ""


def options(row: Row, gap: Gap, phrases: Phrases, relations: Sequence[str], most: int, random: Random) -> list[Option]:
    """List the phrases of relations in the forms that fit a row's gap: of each relation at most `most`, drawn at random."""
    first, second = sorted(spans(row))
    found: dict[tuple[str, str], None] = {}
    for relation in relations:
        of_relation = phrases.get(relation, {}).get(order(row), ())
        passives = {text.split(" ", 1)[1] for text in of_relation if text.split()[0] in ("was", "were", "is", "are") and " " in text}
        fitting = []
        for phrase in of_relation:
            words = forms(
                phrase, gap.kind, past=gap.past, plural=gap.plural, relativizer=gap.relativizer, passive=phrase in passives
            )
            if words:
                fitting.append(words)
        for words in random.sample(fitting, min(most, len(fitting))):
            found.update(dict.fromkeys((relation, text) for text in words))
    return [Option(*key) for key in found]


def score(model: Model, requests: Sequence[tuple[Row, Gap, Sequence[Option]]]) -> list[list[Option]]:
    """Give the options of each row their losses."""
    engine = Branches(model=model)
    asked = []
    for row, gap, group in requests:
        words = plain(row["tokens"])
        _, second = sorted(spans(row))
        behind = " ".join(words[gap.end : second[1] + _BEHIND])
        own = " ".join(words[gap.start : gap.end])
        asked.append([" ".join(words[: gap.start]), [f" {text} {behind}" for text in (own, *(option.text for option in group))]])
    answers = engine.run(asked)
    general = {(begins, option.text) for _, gap, group in requests for option in group for begins in [_subject(gap)]}
    keys = sorted(general)
    prior = dict(zip(keys, engine.run([[begins, [f" {text}"]] for begins, text in keys]), strict=True))
    results = []
    for (row, gap, group), answer in zip(requests, answers, strict=True):
        if answer is None:
            results.append([])
            continue
        own, *losses = answer
        results.append(
            [
                option._replace(loss=round(loss - own, _DIGITS), prior=round(prior[_subject(gap), option.text][0], _DIGITS))
                for option, loss in zip(group, losses, strict=True)
            ]
        )
    return results


def _subject(gap: Gap) -> str:
    return "The things" if gap.plural else "The thing"
