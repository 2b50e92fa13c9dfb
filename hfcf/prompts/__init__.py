"""The prompts for language models: for each a template and a JSON file with the fields of its answer and worked examples.

A prompt is a conversation. The template has two blocks: `task`, the message of the system, and `question`, the user's message
before every answer. Each worked example is a question of the user with the answer of the assistant. Small models keep to a form
that they see in turns; they mistake the same examples inside one message for part of the question.

A prompt that changes a text asks for edits of it (`hfcf.prompts.edits`): what comes back is then close to its source, and an
answer of 15 tokens does what took 60. RACE's alone, `evidence_claims`, asks for the claim as a whole: several of its facts can be
wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hfcf.core.candidates import Candidate
from hfcf.core.model import Model, is_prompted
from hfcf.core.names import did_you_mean
from hfcf.engines.llm.answers import object_schema
from hfcf.engines.llm.engine import LanguageModel
from hfcf.text.slips import why_named, without_name
from hfcf.text.words import FUNCTION_WORDS, split

Message = dict[str, str]
Values = Mapping[str, Any]
"""What a template is filled in with."""
Limits = Mapping[str, Mapping[str, Any]]
"""Keywords of JSON Schema to add to fields of an answer."""
SHOTS = 2
"""The worked examples that a prompt shows by default."""
FAILED = "the language model: {}"
"""The reason of a row or candidate for which a language model gave no valid answer."""
_OURS = resources.files("hfcf.prompts")
_BLOCKS = ("task", "question")
_FORMAT = "6"
"""Raise it when all prompts put a row into other words, or the same answer gives another text."""


class Prompt(Protocol):
    """Ask a language model for a counterfactual of a task's row, and read the answer.

    A task names its prompt (`hfcf.tasks.rewriting.Rewriting.prompt`). All prompts get the same settings, and each prompt reads the
    settings that it needs.

    Args:
        relations: the labels to choose from, where the task does not fix them.
        max_words: the maximum number of words of an accepted text.
    """

    template: str
    """The name of the template, and of the file with its worked examples."""
    default_labels: tuple[str, ...] | None
    """The labels to choose from if none are given; None: the labels of the rows."""
    limits: Limits
    """Keywords of JSON Schema to add to fields of the answer: see `ask`."""

    def __init__(self, *, relations: tuple[str, ...], max_words: int) -> None: ...

    def row_limits(self, row: Mapping[str, Any]) -> Limits:
        """Return the keywords for a row alone: the words of its text, and the labels that it does not have."""

    def find_problem(self, row: Mapping[str, Any]) -> str | None:
        """Say why no prompt can be made of a row, or None."""

    def values(self, row: Mapping[str, Any]) -> Values:
        """Return what the template says about a row."""

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        """Make the candidate of an answer that fits the schema; `stage` rejects an answer that is unusable."""


def ask(
    model: Model, name: str, rows: Sequence[Values], *, shots: int = SHOTS, folder: str | None = None,
    examples: Sequence[Values] | None = None, limits: Limits | None = None, row_limits: Sequence[Limits] | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Ask a language model about rows by a prompt.

    Args:
        model: "llm:NAME" or "chat:NAME".
        name: the prompt.
        rows: what the template says about each row.
        shots: worked examples in the prompt.
        folder: a folder with prompts that replace the library's; by default the model's.
        examples: worked examples instead of the prompt's own.
        limits: keywords of JSON Schema to add to fields of the answer, such as {"label": {"enum": […]}}.
        row_limits: the same for each row alone.
        settings: of `hfcf.engines.llm.engine.LanguageModel`.

    Returns:
        `{"answer": {field: value}}` for each row, or `{"error": why}` (see `failure`).
    """
    folder = folder or model.prompts
    requests = [messages(name, shots=shots, folder=folder, examples=examples, **values) for values in rows]
    engine = LanguageModel(model=model, schema=schema(name, limits), **settings)
    schemas = None if row_limits is None else [schema(name, {**(limits or {}), **own}) for own in row_limits]
    return engine.run(requests, schemas)


def ask_texts(model: Model, name: str, rows: Sequence[Values], *, number: int, **settings: Any) -> list[Any]:
    """Request up to `number` different texts for each row, best first; return them as a local generator does."""
    (field,) = read_prompt(name)["fields"]
    rows = [{**values, "number": number} for values in rows]
    answers = ask(model, name, rows, limits={field: {"maxItems": max(number, 1)}}, **settings)
    shown = read_prompt(name, model.prompts)["examples"]
    return [
        answer
        if "error" in answer
        else [as_hypothesis(text, why_example(text, own, shown)) for text in drop_repeats(answer["answer"][field], own)[:number]]
        for own, answer in zip(rows, answers, strict=True)
    ]


def as_hypothesis(text: str, fault: str | None) -> dict[str, Any]:
    """Return a language model's text as a local generator gives one; `fault` says why it is of no use."""
    return {"text": text, "score": None, "finished": True, "fault": fault}


def why_example(text: str, values: Values, examples: Sequence[Values]) -> str | None:
    """Say so if a text has more content words of a worked example than of its row, or names of the prompt: small models copy.

    >>> examples = [{"passage": "Vienna lies on the Danube.", "answers": [{"question": "which river is vienna on"}]}]
    >>> why_example("which river is Vienna on", {"passage": "Rome is on the Tiber."}, examples)
    'repeats an example of the prompt'
    """
    if named := why_named(text, texts_of(values)):
        return named
    words, own = content_words(text), content_words(texts_of(values))
    copied = max((len((words - own) & content_words(texts_of(example))) for example in examples), default=0)
    return "repeats an example of the prompt" if copied > len(words & own) else None


def content_words(text: str) -> set[str]:
    """Return the words of a text in lower case that are no function words."""
    return {word.key.lower() for word in split(text) if word.key[0].isalnum()} - FUNCTION_WORDS


def texts_of(value: Any) -> str:
    """Join all texts of a row or an example."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return " ".join(map(texts_of, parts))


def drop_repeats(texts: Iterable[str], values: Values) -> list[str]:
    """Return the different texts in order, with single spaces, and without a name of the prompt's before them."""
    own = texts_of(values)
    return [text for text in dict.fromkeys(without_name(" ".join(text.split()), own) for text in texts) if text]


def failure(answer: Any) -> str | None:
    """Return the reason of a row for which there is no answer; None if there is an answer."""
    return FAILED.format(answer["error"]) if isinstance(answer, Mapping) and "error" in answer else None


def messages(
    name: str, *, shots: int = SHOTS, folder: str | None = None, examples: Sequence[Values] | None = None,
    answers: Sequence[Values] = (), **values: Any,
) -> list[Message]:  # fmt: skip
    """Fill in a prompt as a conversation: the task, worked examples, the `answers` so far, and the question.

    An example has values that the template names, and `answers`. A question with several answers is asked step by step, and `step`
    counts from 1. An example with `when` is only shown to rows with these values. Its answers show no more texts than the `number`
    that is requested.

    A text of a row is data: it is on a single line, after its name. The model still reads its content.

    Raises:
        ValueError: the template can't be filled in.

    >>> messages("opposite_effects", shots=1, effect="It rained.")[2:]  # doctest: +NORMALIZE_WHITESPACE
    [{'role': 'assistant', 'content': '{"opposite": "The series was renewed for a further season."}'},
     {'role': 'user', 'content': 'Sentence: It rained.'}]
    """
    values = _one_line(values)
    shown = read_prompt(name, folder)["examples"] if examples is None else examples
    shown = [example for example in shown if all(values[key] == value for key, value in example.get("when", {}).items())]
    template = _environment().from_string(_read(f"{name}.jinja", folder))

    def render_block(block: str, context: Values) -> str:
        try:
            return "".join(template.blocks[block](template.new_context(dict(context)))).strip()
        except TemplateError as error:
            raise ValueError(f"prompts: {folder or 'hfcf'}/{name}.jinja: {error}") from error

    turns: list[Message] = []
    for context in (*shown[:shots], {"answers": answers}):
        for step, answer in enumerate(context["answers"], 1):
            turns.append({"role": "user", "content": render_block("question", {**values, **context, "step": step})})
            turns.append({"role": "assistant", "content": json.dumps(_cut(answer, values.get("number")), ensure_ascii=False)})
    turns.append({"role": "user", "content": render_block("question", {**values, "step": len(answers) + 1})})
    return [{"role": "system", "content": render_block("task", values)}, *turns]


def _cut(answer: Values, number: int | None) -> Values:
    return {key: value[:number] if isinstance(value, list) else value for key, value in answer.items()}


def _one_line(value: Any) -> Any:
    """Put every text of a row on one line: a separate line could be mistaken for a part of the prompt, such as an answer."""
    if isinstance(value, str):
        return " ".join(value.splitlines()) if len(value.splitlines()) > 1 else value
    if isinstance(value, Mapping):
        return {key: _one_line(part) for key, part in value.items()}
    return [_one_line(part) for part in value] if isinstance(value, list | tuple) else value


def schema(name: str, limits: Limits | None = None) -> str:
    """Return the JSON schema of the answer to a prompt, with further keywords for some of its fields."""
    fields: dict[str, Any] = read_prompt(name)["fields"]
    return object_schema({**fields, **{field: {**fields.get(field, {}), **limit} for field, limit in (limits or {}).items()}})


def check_shots(name: str, shots: int, folder: str | None = None) -> None:
    """Raise `ValueError` when a prompt has fewer worked examples than `shots`."""
    if not 0 <= shots <= (number := len(read_prompt(name, folder)["examples"])):
        raise ValueError(f"shots must be between 0 and {number}, the worked examples of the prompt {name!r}, got {shots}")


def contents(name: str, folder: str | None = None) -> str:
    """Return the sha256 of a prompt's files, which is in the state of a stage that uses it."""
    texts = [_read(f"{name}.jinja", folder), json.dumps(read_prompt(name, folder), sort_keys=True)]
    return hashlib.sha256("\n".join([_FORMAT, *texts]).encode()).hexdigest()


def state(names: Sequence[str], *models: Model | None) -> dict[str, Any]:
    """Return what belongs to the state of a stage that asks these models by these prompts: changed words change the rows."""
    folders = dict.fromkeys(model.prompts for model in models if model is not None and is_prompted(model))
    return {"prompts": [contents(name, folder) for folder in folders for name in names]} if folders else {}


def read_prompt(name: str, folder: str | None = None) -> dict[str, Any]:
    """Return the `fields` of the answer to a prompt and its `examples`; a user's file replaces the examples alone."""
    ours: dict[str, Any] = json.loads(_ours(f"{name}.json"))
    return {**ours, "examples": json.loads(_read(f"{name}.json", folder))["examples"]}


def read_folder(folder: str) -> dict[str, str]:
    """Return the texts of a folder of prompts by the names of their files, for `run.json`."""
    return {path.name: path.read_text(encoding="utf-8") for path in check_folder(folder)}


def check_folder(folder: str) -> list[Path]:
    """Return the files of a folder of prompts.

    Raises:
        ValueError: there is no such folder, or a file in it has an unknown name or can't be read. Variables that the library does
            not know are found when a template is filled in, before a model is asked.
    """
    root = Path(folder).expanduser()
    files = sorted(path for path in root.iterdir() if path.suffix in (".jinja", ".json")) if root.is_dir() else []
    ours = sorted(Path(path.name).stem for path in _OURS.iterdir() if path.name.endswith(".jinja"))
    if not files:
        raise ValueError(
            f"prompts: {folder} holds no prompt: put a template there with the name of one of ours, such as {ours[0]}.jinja"
        )
    for path in files:
        if path.stem not in ours:
            raise ValueError(f"{path}: there is no prompt {path.stem!r}{did_you_mean(path.stem, ours) or f'; there are {ours}'}")
        text = path.read_text(encoding="utf-8")
        try:
            if path.suffix == ".jinja":
                missing = [block for block in _BLOCKS if block not in _environment().from_string(text).blocks]
            else:
                missing = [name for name in ("examples",) if not isinstance(json.loads(text), dict) or name not in json.loads(text)]
        except (TemplateError, ValueError) as error:
            raise ValueError(f"{path}:{getattr(error, 'lineno', 1)}: {error}") from error
        if missing:
            raise ValueError(f"{path}: {missing[0]!r} is missing; our {path.name} shows where it belongs")
    return files


def _environment() -> ImmutableSandboxedEnvironment:
    # A template may come from a stranger, so it can read only its variables.
    env = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters["json"] = partial(json.dumps, ensure_ascii=False)  # jinja2's own escapes quotes, for HTML
    return env


def _read(file: str, folder: str | None) -> str:
    if folder and (path := Path(folder).expanduser() / file).is_file():
        return path.read_text(encoding="utf-8")
    return _ours(file)


@lru_cache(maxsize=64)
def _ours(file: str) -> str:
    return (_OURS / file).read_text(encoding="utf-8")
