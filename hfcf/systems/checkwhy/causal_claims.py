"""Check a pair of cause and effect, and write its claim and its counterfactual effect (CheckWhy, sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.core.settings import Positive
from hfcf.core.stage import Reject, Stage
from hfcf.engines.parser import Parser
from hfcf.engines.retriever.bm25 import words_of
from hfcf.prompts import failure
from hfcf.systems.checkwhy.chat import ChatStage
from hfcf.text.check import text_problem
from hfcf.text.normalise import normalise
from hfcf.text.words import split

PAIR = {"cause": TEXT, "effect": TEXT}
FINITE = ("MD", "VBD", "VBP", "VBZ")


@dataclass(frozen=True, kw_only=True)
class CheckPredicates(Stage):
    """Reject a row whose cause or effect has no predicate.

    Input columns: `cause`, `effect`. Output columns: none but `status`.

    The paper keeps 79 % of WikiWhy's pairs, without pairs that have "the absence of a predicate component", and does not say what
    a predicate is. Here it is a verb or modal of any form. By spaCy, 81 % of 1,500 pairs have a predicate in both texts, 72 % a
    finite predicate.

    Args:
        parser: the tagger that finds predicates; the paper's is Stanza, the default.
        finite: count finite verbs only: "rising costs" is then no predicate, "costs rose" is.

    >>> CheckPredicates().missing_predicate({"cause": ["JJ", "NN"], "effect": ["VBD"]})
    'the cause has no predicate'
    """

    inputs: ClassVar = PAIR
    outputs: ClassVar[Mapping[str, Any]] = {}

    engines: ClassVar = (Parser,)

    parser: Parser = field(default_factory=Parser)
    finite: bool = False

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        readable = [row for row in rows if _text_problem(row) is None]
        texts = list(dict.fromkeys(row[side] for row in readable for side in PAIR))
        tags = {
            text: parse["tags"]
            for text, parse in zip(texts, self.parser.run([[word.key for word in split(text)] for text in texts]), strict=True)
        }
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            why = _text_problem(row) or self.missing_predicate({side: tags[row[side]] for side in PAIR})
            results.append(Reject(why) if why else {})
        return results

    def missing_predicate(self, tags: Mapping[str, Sequence[str]]) -> str | None:
        """Say which side of a row has no predicate, by the Penn tags of both."""
        for side in PAIR:
            if not any(tag in FINITE if self.finite else tag.startswith(("VB", "MD")) for tag in tags[side]):
                return f"the {side} has no {'finite verb' if self.finite else 'predicate'}"
        return None


@dataclass(frozen=True, kw_only=True)
class WriteClaim(ChatStage):
    """Write a claim that joins cause and effect (Table 11: "without accessing external information").

    Input columns: `cause`, `effect`. Output column: `causal_claim`. A row is rejected if no answer is valid, or if the claim is
    empty or too long. It is also rejected if the claim repeats the cause or the effect, or shares no word with one of them (stop
    words don't count).

    Args:
        chat: the language model.
        max_claim: words of the longest claim. The paper sets no limit; its claims have 24 on average.

    >>> claim_problem("Rain made the river rise.", {"cause": "It rained.", "effect": "The river rose."}, 60)
    'the claim has no word of the cause'
    """

    inputs: ClassVar = PAIR
    outputs: ClassVar = {"causal_claim": TEXT}
    template: ClassVar = "causal_claims"

    max_claim: Positive = 60

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        return _write(self, self.max_claim, "claim", rows, claim_problem)


@dataclass(frozen=True, kw_only=True)
class WriteOppositeEffect(ChatStage):
    """Write the counterfactual effect, a sentence that refutes the effect (Table 13).

    Input column: `effect`. Output column: `opposite_effect`. A row is rejected if no answer is valid, or if the sentence is empty
    or too long. It is also rejected if the sentence repeats the effect, or shares no word with it.

    Args:
        chat: the language model.
        max_claim: words of the longest sentence.

    >>> opposite_problem("The river rose.", {"effect": "the river rose"}, 60)
    'the opposite effect repeats the effect'
    """

    inputs: ClassVar = {"effect": TEXT}
    outputs: ClassVar = {"opposite_effect": TEXT}
    template: ClassVar = "opposite_effects"

    max_claim: Positive = 60

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        return _write(self, self.max_claim, "opposite", rows, opposite_problem)


def _write(
    stage: ChatStage, limit: int, key: str, rows: Sequence[Mapping[str, Any]], problem: Callable[..., str | None]
) -> list[dict[str, Any] | Reject]:
    (column,) = stage.outputs
    questions = [{name: row[name] for name in stage.inputs} for row in rows]
    results: list[dict[str, Any] | Reject] = []
    for row, answer in zip(rows, stage.chat.ask(stage.template, questions, stage.seed), strict=True):
        if why := failure(answer):
            results.append(Reject(why))
            continue
        text = " ".join(answer["answer"][key].split())
        why = problem(text, row, limit)
        results.append(Reject(why, **{column: text}) if why else {column: text})
    return results


def claim_problem(claim: str, row: Mapping[str, Any], limit: int) -> str | None:
    """Say why a text can't be the claim of a pair."""
    if why := sentence_problem(claim, "the claim", limit):
        return why
    for side in PAIR:
        if normalise(claim) == normalise(row[side]):
            return f"the claim repeats the {side}"
        if not _share_word(claim, row[side]):
            return f"the claim has no word of the {side}"
    return None


def opposite_problem(text: str, row: Mapping[str, Any], limit: int) -> str | None:
    """Say why a text can't be the opposite of an effect."""
    if why := sentence_problem(text, "the opposite effect", limit):
        return why
    if normalise(text) == normalise(row["effect"]):
        return "the opposite effect repeats the effect"
    return None if _share_word(text, row["effect"]) else "the opposite effect has no word of the effect"


def sentence_problem(text: str, what: str, limit: int) -> str | None:
    """Say why a text can't be a sentence of at most `limit` words."""
    if why := text_problem(text, what):
        return why
    words = len(text.split())
    return f"{what} has {words} words; the limit is {limit}" if words > limit else None


def _share_word(text: str, other: str) -> bool:
    """Whether two texts share a word that is not a stop word; also true if a text has no other words."""
    first, second = set(words_of(text)), set(words_of(other))
    return not first or not second or bool(first & second)


def _text_problem(row: Mapping[str, Any]) -> str | None:
    return next((why for side in PAIR if (why := text_problem(row[side], f"the {side}"))), None)
