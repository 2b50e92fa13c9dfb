"""What language models are asked: one template a prompt, its worked examples beside it, and a module that reads the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib import resources
from typing import Any, Protocol

from jinja2 import Environment, StrictUndefined

from hfcf.core.candidates import Candidate

Message = dict[str, str]


class Prompt(Protocol):
    """Ask a language model for a counterfactual of a task's row, and read the answer.

    A task names its prompt (`hfcf.tasks.rewriting.Rewriting.prompt`). All prompts get the same settings and read those that they
    need.

    Args:
        relations: the labels to choose from, where the task does not fix them.
        max_words: the longest text that is accepted.
    """

    template: str
    """The name of the template and its worked examples."""

    def __init__(self, *, relations: tuple[str, ...], max_words: int) -> None: ...

    def schema(self) -> str:
        """Return the JSON schema that an answer must fit."""

    def problem(self, row: Mapping[str, Any]) -> str | None:
        """Say why nothing can be asked about a row, or None."""

    def messages(self, row: Mapping[str, Any], shots: int) -> list[Message]:
        """Ask about a row, after so many worked examples."""

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        """Make the candidate of an answer that fits the schema; `stage` rejects one that is of no use."""


def messages(name: str, *, shots: int, **values: Any) -> list[Message]:
    """Fill in a prompt as one message of the user, which every server and chat template takes.

    Args:
        name: of the template, such as "claims".
        shots: how many worked examples it shows.
        values: what the template names.

    Raises:
        ValueError: there are not so many examples.
    """
    check_shots(name, shots)
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["json"] = partial(json.dumps, ensure_ascii=False)  # jinja2's own escapes quotes, for HTML
    text = environment.from_string(_read(f"{name}.jinja")).render(examples=examples(name)[:shots], **values)
    return [{"role": "user", "content": text}]


def check_shots(name: str, shots: int) -> None:
    """Raise `ValueError` when a prompt has not so many worked examples.

    >>> check_shots("claims", 100)
    Traceback (most recent call last):
    ValueError: shots=100: the prompt 'claims' has 0 to 4 worked examples
    """
    if not 0 <= shots <= len(examples(name)):
        raise ValueError(f"shots={shots}: the prompt {name!r} has 0 to {len(examples(name))} worked examples")


def examples(name: str) -> list[dict[str, Any]]:
    """Return a prompt's worked examples, in the order in which shots show them."""
    return json.loads(_read(f"{name}.json"))


def contents(name: str) -> str:
    """Return the sha256 of a prompt's template and examples, which is in the state of a stage that uses it."""
    return hashlib.sha256((_read(f"{name}.jinja") + _read(f"{name}.json")).encode()).hexdigest()


@lru_cache(maxsize=16)
def _read(file: str) -> str:
    return (resources.files("hfcf.prompts") / file).read_text(encoding="utf-8")
