"""The prompts for language models: a template for each prompt, its worked examples, and modules that read the answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from jinja2 import TemplateError

from hfcf.core.candidates import Candidate
from hfcf.core.model import Model, is_prompted
from hfcf.prompts.own import environment, read

Message = dict[str, str]
_FORM = "2"
"""Raise it when templates get a row in another form."""


class Prompt(Protocol):
    """Ask a language model for a counterfactual of a task's row, and read the answer.

    A task names its prompt (`hfcf.tasks.rewriting.Rewriting.prompt`). All prompts get the same settings, and each prompt reads the
    settings that it needs.

    Args:
        relations: the labels to choose from, where the task does not fix them.
        max_words: the maximum number of words of an accepted text.
    """

    template: str
    """The name of the template and its worked examples."""
    default_labels: tuple[str, ...] | None
    """The labels to choose from if none are given; None: the labels of the rows."""

    def __init__(self, *, relations: tuple[str, ...], max_words: int) -> None: ...

    def schema(self) -> str:
        """Return the JSON schema that an answer must fit."""

    def problem(self, row: Mapping[str, Any]) -> str | None:
        """Say why no prompt can be made of a row, or None."""

    def messages(self, row: Mapping[str, Any], shots: int, folder: str | None = None) -> list[Message]:
        """Ask about a row, after `shots` worked examples; the prompts in `folder` replace the prompts of this library."""

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        """Make the candidate of an answer that fits the schema; `stage` rejects an answer that is unusable."""


def messages(name: str, *, shots: int, folder: str | None = None, **values: Any) -> list[Message]:
    """Fill in a prompt as one message of the user, which every server and chat template accepts.

    A text of a row is data: it is on a single line, after its name. The model still reads its content. A folder (`Model.prompts`)
    has templates and examples that replace the library's; if it has fewer examples than `shots`, all are shown.
    """
    if not folder:
        check_shots(name, shots)
    template = environment().from_string(read(f"{name}.jinja", folder))
    with _name_template(name, folder):
        text = template.render(examples=examples(name, folder)[:shots], **_one_line(values))
    return [{"role": "user", "content": text}]


def dialogue(
    name: str, *, shots: int, folder: str | None = None, answers: Sequence[Mapping[str, Any]] = (), **values: Any
) -> list[Message]:  # fmt: skip
    """Fill in a prompt as a conversation: each worked example is a question of the user with the answer of the assistant.

    Small models keep to a form that they see in turns; they mistake the same examples inside one message for part of the question.
    The template has two blocks: `task`, written once, and `question`, written before every answer. An example has values that the
    template names, and `answers`. A question with several answers is asked step by step, and `step` counts from 1.
    """
    if not folder:
        check_shots(name, shots)
    values = _one_line(values)
    template = environment().from_string(read(f"{name}.jinja", folder))

    def block(block_name: str, **context: Any) -> str:
        with _name_template(name, folder):
            return "".join(template.blocks[block_name](template.new_context(context))).strip()

    turns: list[Message] = []
    for example in examples(name, folder)[:shots]:
        for step, answer in enumerate(example["answers"], 1):
            turns += _turns(block("question", **{**values, **example, "step": step}), answer)
    for step, answer in enumerate(answers, 1):
        turns += _turns(block("question", **values, step=step), answer)
    turns.append({"role": "user", "content": block("question", **values, step=len(answers) + 1)})
    turns[0]["content"] = f"{block('task', **values)}\n\n{turns[0]['content']}"
    return turns


def _one_line(value: Any) -> Any:
    """Put every text of a row on one line: a separate line could be mistaken for a part of the prompt, such as an answer."""
    if isinstance(value, str):
        return " ".join(value.splitlines()) if len(value.splitlines()) > 1 else value
    if isinstance(value, Mapping):
        return {key: _one_line(part) for key, part in value.items()}
    return [_one_line(part) for part in value] if isinstance(value, list | tuple) else value


def _turns(question: str, answer: Mapping[str, Any]) -> list[Message]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}]


@contextmanager
def _name_template(name: str, folder: str | None) -> Iterator[None]:
    """Add the file name to the error of a template that can't be filled in."""
    try:
        yield
    except TemplateError as error:
        raise ValueError(f"prompts: {folder or 'hfcf'}/{name}.jinja: {error}") from error


def check_shots(name: str, shots: int, folder: str | None = None) -> None:
    """Raise `ValueError` when a prompt has fewer worked examples than `shots`."""
    if not 0 <= shots <= (number := len(examples(name, folder))):
        raise ValueError(f"shots must be between 0 and {number}, the worked examples of the prompt {name!r}, got {shots}")


def examples(name: str, folder: str | None = None) -> list[dict[str, Any]]:
    """Return a prompt's worked examples, in the order in which shots show them."""
    return json.loads(read(f"{name}.json", folder))


def contents(name: str, folder: str | None = None) -> str:
    """Return the sha256 of a prompt's template and examples, which is in the state of a stage that uses it."""
    return hashlib.sha256((_FORM + read(f"{name}.jinja", folder) + read(f"{name}.json", folder)).encode()).hexdigest()


def state(names: Sequence[str], *models: Model | None) -> dict[str, Any]:
    """Return what belongs to the state of a stage that asks these models by these prompts: changed words change the rows."""
    folders = dict.fromkeys(model.prompts for model in models if model is not None and is_prompted(model))
    return {"prompts": [contents(name, folder) for folder in folders for name in names]} if folders else {}
