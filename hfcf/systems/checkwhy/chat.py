"""Ask the language model of a stage a question in one of the forms of `hfcf/prompts/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from hfcf import prompts
from hfcf.core.model import REMOTE, Model
from hfcf.core.settings import Endpoint, NonNegative, Positive
from hfcf.engines.remote.llm_backend import ask

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Chat:
    """Say which language model behind an endpoint is asked, and how; see `hfcf.engines.remote.engine.Remote`.

    Args:
        model: "llm:NAME", the name by which the server knows it.
        temperature: sampling temperature; None leaves it to the server.
        max_tokens: tokens of an answer.
        attempts: how often a question is asked until the answer is JSON of the right form.
        shots: worked examples in each question.

    Raises:
        ValueError: the model is not of the form "llm:NAME".

    >>> Chat(model=Model("llm:gpt-4o-mini")).attempts
    3
    """

    model: Annotated[Model, Endpoint()] = Model("llm:gpt-4-1106-preview")
    # The paper names no decoding settings for what it generates: this is the temperature of its experiments.
    temperature: Annotated[float, Field(ge=0)] | None = 0.1
    max_tokens: Positive = 512
    attempts: Positive = 3
    # The paper prints one example of each kind and does not say how many it used.
    shots: NonNegative = 1

    def __post_init__(self) -> None:
        if not self.model.name.removeprefix(REMOTE) or not self.model.name.startswith(REMOTE):
            raise ValueError(f"model must be a language model behind an endpoint, {REMOTE}NAME, got {self.model.name!r}")

    def ask(
        self, template: str, schema: Mapping[str, Any], questions: Sequence[Mapping[str, Any]], seed: int
    ) -> list[dict[str, Any]]:
        """Ask all questions with a template of `hfcf.prompts.dialogue`; return `{"answer": …}` or `{"error": why}` for each."""
        return ask(
            self.model, schema, [prompts.dialogue(template, shots=self.shots, **values) for values in questions],
            temperature=self.temperature, max_tokens=self.max_tokens, seed=seed, attempts=self.attempts,
        )  # fmt: skip
