"""Write the claim and the counterfactual effect of a pair: one sentence each (CheckWhy, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf import prompts
from hfcf.core.schema import TEXT
from hfcf.core.settings import Flat, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.engines.remote.engine import Remote
from hfcf.engines.retriever.bm25 import words_of
from hfcf.systems.checkwhy.chat import Chat
from hfcf.systems.checkwhy.predicates import PAIR
from hfcf.text.check import text_problem
from hfcf.text.normalise import normalise

CLAIMS, OPPOSITES = "causal_claims", "opposite_effects"


@dataclass(frozen=True, kw_only=True)
class WriteClaim(Stage):
    """Write a claim that joins cause and effect, "without accessing external information" (Table 11).

    Input columns: `cause`, `effect`. Output column: `causal_claim`. A row is rejected if no answer is valid, and if the claim is
    empty or too long, repeats the cause or the effect, or shares no word with one of them (stop words don't count).

    Args:
        chat: the language model.
        max_claim: words of the longest claim. The paper sets no limit; its claims have 24 on average.

    >>> claim_problem("Rain made the river rise.", {"cause": "It rained.", "effect": "The river rose."}, 60)
    'the claim has no word of the cause'
    """

    inputs: ClassVar = PAIR
    outputs: ClassVar = {"causal_claim": TEXT}

    engines: ClassVar = (Remote,)

    chat: Annotated[Chat, Flat()] = Chat()
    max_claim: Positive = 60

    def check(self) -> None:
        prompts.check_shots(CLAIMS, self.chat.shots)

    def __getstate__(self) -> dict[str, Any]:
        # Other words in the prompt give other rows.
        return {**super().__getstate__(), "prompt": prompts.contents(CLAIMS)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        answers = _write(self.chat, CLAIMS, "claim", [{side: row[side] for side in PAIR} for row in rows], self.seed)
        return [
            _result("causal_claim", answer, lambda claim, row=row: claim_problem(claim, row, self.max_claim))
            for row, answer in zip(rows, answers, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class WriteOppositeEffect(Stage):
    """Write the counterfactual effect, a sentence that refutes the effect (Table 13).

    Input column: `effect`. Output column: `opposite_effect`. A row is rejected if no answer is valid, and if the sentence is empty
    or too long, repeats the effect, or shares no word with it.

    Args:
        chat: the language model.
        max_claim: words of the longest sentence.

    >>> opposite_problem("The river rose.", {"effect": "the river rose"}, 60)
    'the opposite effect repeats the effect'
    """

    inputs: ClassVar = {"effect": TEXT}
    outputs: ClassVar = {"opposite_effect": TEXT}

    engines: ClassVar = (Remote,)

    chat: Annotated[Chat, Flat()] = Chat()
    max_claim: Positive = 60

    def check(self) -> None:
        prompts.check_shots(OPPOSITES, self.chat.shots)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "prompt": prompts.contents(OPPOSITES)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        answers = _write(self.chat, OPPOSITES, "opposite", [{"effect": row["effect"]} for row in rows], self.seed)
        return [
            _result("opposite_effect", answer, lambda text, row=row: opposite_problem(text, row, self.max_claim))
            for row, answer in zip(rows, answers, strict=True)
        ]


def _write(chat: Chat, template: str, key: str, questions: Sequence[Mapping[str, Any]], seed: int) -> list[str | Reject]:
    answers = chat.ask(template, {key: {"type": "string"}}, questions, seed)
    return [
        Reject(f"the language model: {answer['error']}") if "error" in answer else " ".join(answer["answer"][key].split())
        for answer in answers
    ]


def _result(column: str, answer: str | Reject, problem: Any) -> dict[str, Any] | Reject:
    if isinstance(answer, Reject):
        return answer
    why = problem(answer)
    return Reject(why, **{column: answer}) if why else {column: answer}


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


def _share_word(one: str, other: str) -> bool:
    """Whether two texts share a word that is not a stop word; also true if one of them has no other words."""
    first, second = set(words_of(one)), set(words_of(other))
    return not first or not second or bool(first & second)
