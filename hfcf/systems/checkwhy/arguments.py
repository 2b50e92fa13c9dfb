"""Argue step by step from the cause to an effect; each inference is a piece of evidence (CheckWhy, section 3.2, Table 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.core.settings import Flat, Positive, check_numbers
from hfcf.core.stage import Reject
from hfcf.prompts import failure
from hfcf.systems.checkwhy.causal_claims import PAIR, sentence_problem
from hfcf.systems.checkwhy.chat import Chat, ChatStage
from hfcf.text.normalise import normalise

TEMPLATE = "causal_steps"
REASON, CONDITION, FINISH = ("further reasoning", "add a condition", "finish")
STEPS = List({"thought": TEXT, "action": TEXT, "inference": TEXT})
"""The steps of an argument; the inference of the last step, whose action is "finish", is not evidence."""


class Argument(NamedTuple):
    """The two ends of an argument, and the explanation that it rests on ("": none)."""

    cause: str
    effect: str
    anchor: str = ""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The loop of thought, action and inference, and its limits.

    Deviation: the paper prints one text with all steps. Here each step is a question of its own, with the steps so far as the
    conversation. So each step is checked at once, repeated alone if its form is wrong, and stored when it comes.

    Args:
        max_words: words of an inference; the paper's limit.
        max_steps: questions until the argument must be finished.
        min_inferences: inferences before "finish"; the paper asks for "multiple steps".

    Raises:
        ValueError: `min_inferences` is not less than `max_steps`.

    >>> Loop().max_words
    25
    """

    max_words: Positive = 25
    # The paper sets no limit; its arguments have 4 inferences on average (Table 1: 13.7 pieces of evidence, 9.5 distractors).
    max_steps: Positive = 9
    min_inferences: Positive = 2

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.min_inferences >= self.max_steps:
            raise ValueError(f"min_inferences must be less than max_steps ({self.max_steps}), got {self.min_inferences}")

    def run(self, chat: Chat, arguments: Sequence[Argument], seed: int) -> list[tuple[list[dict[str, str]], str | None]]:
        """Return the steps of each argument, and why it is rejected, or None."""
        traces: list[list[dict[str, str]]] = [[] for _ in arguments]
        faults: list[str | None] = [None] * len(arguments)
        unfinished = list(range(len(arguments)))
        for _ in range(self.max_steps):
            if not unfinished:
                break
            answers = chat.ask(TEMPLATE, [self._question(arguments[i], traces[i]) for i in unfinished], seed)
            for i, answer in zip(unfinished, answers, strict=True):
                if why := failure(answer):
                    faults[i] = why
                    continue
                step = {name: " ".join(answer["answer"][name].split()) for name in ("thought", "action", "inference")}
                faults[i] = self._problem(step, traces[i], arguments[i])
                traces[i].append(step)
            unfinished = [i for i in unfinished if faults[i] is None and traces[i][-1]["action"] != FINISH]
        for i in unfinished:
            faults[i] = f"the argument is not finished after {self.max_steps} steps"
        return list(zip(traces, faults, strict=True))

    def _question(self, argument: Argument, trace: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        return {**argument._asdict(), "anchored": bool(argument.anchor), "max_words": self.max_words, "answers": trace}

    def _problem(self, step: Mapping[str, str], before: Sequence[Mapping[str, str]], argument: Argument) -> str | None:
        """Say why a step can't follow those before it."""
        inference = step["inference"]
        if step["action"] == FINISH:
            early = f"the argument is finished before its inference {self.min_inferences}"
            return early if len(before) < self.min_inferences else None
        if why := sentence_problem(inference, "an inference", self.max_words):
            return why
        if normalise(inference) in {normalise(earlier["inference"]) for earlier in before}:
            return "an inference repeats an earlier one"
        return "an inference repeats the effect" if normalise(inference) == normalise(argument.effect) else None


@dataclass(frozen=True, kw_only=True)
class SupportClaim(ChatStage):
    """Argue from the cause to the effect: the evidence of the SUPPORTS row.

    Input columns: `cause`, `effect`, and `explanation` where the corpus has it, on which the argument then rests. Output column:
    `support`, the steps. A row is rejected if no answer is valid, or if the argument is finished too early or never. It is also
    rejected if an inference is empty, has more than `loop.max_words` words, or repeats an earlier inference or the effect.

    Args:
        chat: the language model.
        loop: limits of the argument.

    >>> inferences([{"action": REASON, "inference": "a"}, {"action": FINISH, "inference": "so a"}])
    ['a']
    """

    inputs: ClassVar = PAIR
    optional: ClassVar = {"explanation": List(TEXT)}
    outputs: ClassVar = {"support": STEPS}
    template: ClassVar = TEMPLATE

    loop: Annotated[Loop, Flat()] = Loop()

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        arguments = [Argument(row["cause"], row["effect"], _anchor(row["explanation"])) for row in rows]
        return _results("support", self.loop.run(self.chat, arguments, self.seed))


@dataclass(frozen=True, kw_only=True)
class RefuteClaim(ChatStage):
    """Argue from the cause to the counterfactual effect: the evidence of the REFUTES row.

    Input columns: `cause`, `opposite_effect`. Output column: `refutation`, the steps. Rows are rejected as by `SupportClaim`.

    Args:
        chat: the language model.
        loop: limits of the argument.

    >>> list(RefuteClaim.outputs)
    ['refutation']
    """

    inputs: ClassVar = {"cause": TEXT, "opposite_effect": TEXT}
    outputs: ClassVar = {"refutation": STEPS}
    produced_by: ClassVar = {"opposite_effect": "checkwhy.write_opposite_effect"}
    template: ClassVar = TEMPLATE

    loop: Annotated[Loop, Flat()] = Loop()

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        # Without the explanation, which leads to the effect.
        arguments = [Argument(row["cause"], row["opposite_effect"]) for row in rows]
        return _results("refutation", self.loop.run(self.chat, arguments, self.seed))


def _results(column: str, arguments: Sequence[tuple[list[dict[str, str]], str | None]]) -> list[dict[str, Any] | Reject]:
    return [Reject(why, **{column: steps}) if why else {column: steps} for steps, why in arguments]


def _anchor(explanation: Any) -> str:
    """Join the texts of an explanation; a user's own may be one text, or none."""
    texts = [explanation] if isinstance(explanation, str) else explanation or []
    return " ".join(" ".join(text.split()) for text in texts if text)


def inferences(steps: Sequence[Mapping[str, str]]) -> list[str]:
    """List the pieces of evidence of an argument."""
    return [step["inference"] for step in steps if step["action"] != FINISH]
