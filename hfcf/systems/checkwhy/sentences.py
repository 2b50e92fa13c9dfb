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
    empty or too long, repeats the cause or the effect, or has no word of one of them ("the" and its like don't count).

    Args:
        chat: the language model.
        max_claim: words of the longest claim; the paper's have 24 on average, and it sets no limit.

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
        answers = write(self.chat, CLAIMS, "claim", [{side: row[side] for side in PAIR} for row in rows], self.seed)
        return [
            _result("causal_claim", answer, lambda claim, row=row: claim_problem(claim, row, self.max_claim))
            for row, answer in zip(rows, answers, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class WriteOppositeEffect(Stage):
    """Write the counterfactual effect, a sentence that refutes the effect (Table 13).

    Input column: `effect`. Output column: `opposite_effect`. A row is rejected if no answer is valid, and if the sentence is empty
    or too long, repeats the effect, or has no word of it.

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
        answers = write(self.chat, OPPOSITES, "opposite", [{"effect": row["effect"]} for row in rows], self.seed)
        return [
            _result("opposite_effect", answer, lambda text, row=row: opposite_problem(text, row, self.max_claim))
            for row, answer in zip(rows, answers, strict=True)
        ]


def write(chat: Chat, template: str, key: str, questions: Sequence[Mapping[str, Any]], seed: int) -> list[str | Reject]:
    """Ask for one text each, and return it with single spaces, or why there is none."""
    answers = chat.ask(template, {key: {"type": "string"}}, questions, seed)
    return [
        Reject(f"the language model: {one['error']}") if "error" in one else " ".join(one["answer"][key].split()) for one in answers
    ]


def _result(column: str, answer: str | Reject, problem: Any) -> dict[str, Any] | Reject:
    if isinstance(answer, Reject):
        return answer
    why = problem(answer)
    return Reject(why, **{column: answer}) if why else {column: answer}


def claim_problem(claim: str, row: Mapping[str, Any], limit: int) -> str | None:
    """Say why a text is no claim of a pair, or None."""
    if why := sentence_problem(claim, "the claim", limit):
        return why
    for side in PAIR:
        if normalise(claim) == normalise(row[side]):
            return f"the claim repeats the {side}"
        if not shared(claim, row[side]):
            return f"the claim has no word of the {side}"
    return None


def opposite_problem(text: str, row: Mapping[str, Any], limit: int) -> str | None:
    """Say why a text can't be the opposite of an effect, or None."""
    if why := sentence_problem(text, "the opposite effect", limit):
        return why
    if normalise(text) == normalise(row["effect"]):
        return "the opposite effect repeats the effect"
    return None if shared(text, row["effect"]) else "the opposite effect has no word of the effect"


def sentence_problem(text: str, what: str, limit: int) -> str | None:
    """Say why a text is no sentence of at most so many words, or None.

    >>> sentence_problem("It rained all day.", "the inference", 3)
    'the inference has 4 words; the limit is 3'
    """
    if why := text_problem(text, what):
        return why
    words = len(text.split())
    return f"{what} has {words} words; the limit is {limit}" if words > limit else None


def shared(one: str, other: str) -> bool:
    """Say whether two texts share a word that is no stop word; true if one of them has none."""
    first, second = set(words_of(one)), set(words_of(other))
    return not first or not second or bool(first & second)
