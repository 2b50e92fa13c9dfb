"""Ask the language model of a stage a question in one of the forms of `hfcf/prompts/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from hfcf import prompts
from hfcf.core.model import REMOTE, Model
from hfcf.core.settings import Endpoint, NonNegative, Positive
from hfcf.engines.remote.slots import ask

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Chat:
    """Name a language model behind an endpoint, and say how it is asked; see `hfcf.engines.remote.engine.Remote`.

    The paper asks GPT-4 and names no decoding settings for what it generates; the temperature is that of its experiments.

    Args:
        model: "llm:NAME", the name by which the server knows it.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        attempts: how often a question is asked until the answer is JSON of the right form.
        shots: worked examples in each question. The paper shows one of each and does not say how many it used.

    Raises:
        ValueError: the model has no name of this form.

    >>> Chat(model=Model("llm:gpt-4o-mini")).attempts
    3
    """

    model: Annotated[Model, Endpoint()] = Model("llm:gpt-4-1106-preview")
    temperature: Annotated[float, Field(ge=0)] | None = 0.1
    max_tokens: Positive = 512
    attempts: Positive = 3
    shots: NonNegative = 1

    def __post_init__(self) -> None:
        if not self.model.name.removeprefix(REMOTE) or not self.model.name.startswith(REMOTE):
            raise ValueError(f"model must be a language model behind an endpoint, {REMOTE}NAME, got {self.model.name!r}")

    def ask(self, template: str, schema: Mapping[str, Any], questions: Sequence[Values], seed: int) -> list[dict[str, Any]]:
        """Ask all questions; return `{"answer": …}` or `{"error": why}` for each.

        Args:
            template: of `hfcf.prompts.dialogue`.
            schema: {name: JSON schema} of the answer's fields, all of them required.
            questions: what the template names.
            seed: of the first attempt at each.
        """
        return ask(
            self.model, schema, [prompts.dialogue(template, shots=self.shots, **values) for values in questions],
            temperature=self.temperature, max_tokens=self.max_tokens, seed=seed, attempts=self.attempts,
        )  # fmt: skip
