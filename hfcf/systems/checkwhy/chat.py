"""Ask a language model by a template of `hfcf/prompts/`: the settings of the stages that do, and their base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from hfcf import prompts
from hfcf.core.model import CHAT, REMOTE, Model, is_prompted
from hfcf.core.settings import Flat, NonNegative, Positive, Prompted, check_numbers
from hfcf.core.stage import Stage
from hfcf.engines.llm.engine import LanguageModel


@dataclass(frozen=True, kw_only=True)
class Chat:
    """Say which language model is asked, and how; see `hfcf.engines.llm.engine.LanguageModel`.

    Args:
        model: "llm:NAME", the name by which the server knows it, or "chat:NAME", a model in this process.
        temperature: sampling temperature; None leaves it to the server, or to the model's own settings.
        max_tokens: tokens of an answer.
        attempts: how often a question is asked until the answer is JSON of the right form.
        shots: worked examples in each question.

    Raises:
        ValueError: the model is not of the form "llm:NAME" or "chat:NAME".

    >>> Chat(model=Model("llm:gpt-4o-mini")).attempts
    3
    """

    model: Annotated[Model, Prompted()] = Model("llm:gpt-4-1106-preview")
    # The paper names no decoding settings for what it generates: this is the temperature of its experiments.
    temperature: Annotated[float, Field(ge=0)] | None = 0.1
    max_tokens: Positive = 512
    attempts: Positive = 3
    # The paper prints one example of each kind and gives no number.
    shots: NonNegative = 1

    def __post_init__(self) -> None:
        check_numbers(self)
        if not is_prompted(self.model):
            raise ValueError(f"model must be a language model, {REMOTE}NAME or {CHAT}NAME, got {self.model.name!r}")

    def ask(self, template: str, questions: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
        """Ask all questions by a prompt; return `{"answer": …}` or `{"error": why}` for each."""
        return prompts.ask(
            self.model, template, questions, shots=self.shots, temperature=self.temperature, max_tokens=self.max_tokens, seed=seed,
            attempts=self.attempts,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ChatStage(Stage):
    """A stage that asks a language model by one template; other words in the template give other rows."""

    template: ClassVar[str] = ""
    engines: ClassVar = (LanguageModel,)

    chat: Annotated[Chat, Flat()] = Chat()

    def check(self) -> None:
        prompts.check_shots(self.template, self.chat.shots, self.chat.model.prompts)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "prompt": prompts.contents(self.template, self.chat.model.prompts)}
