"""Protocols of human evaluations: YAML files that say which rows are rated, what raters see of each, and what they answer.

The papers' protocols and ours are in `protocols/`. All hide the methods and draw an order for each rater; the papers mention
neither. Wordings and examples are ours: the papers print criteria, not their rating sheets. A comment in a file says where it
differs from its paper otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field

from hfcf.core import recipe as recipes
from hfcf.core.recipe import Recipe
from hfcf.core.safe_yaml import read_yaml_file
from hfcf.core.segments import Segment, pair
from hfcf.core.settings import Positive
from hfcf.core.task import Row, Task, task_of
from hfcf.tasks import relation
from hfcf.text.check import text_problem

YES_NO = {"1": "yes", "0": "no"}
NEITHER = "neither"
"""The last choice of rows whose labels are open."""
_FOLDER = Path(__file__).parent / "protocols"


class Question(Recipe):
    """A column that raters fill."""

    asks: str
    """The full question."""
    answers: dict[str, str] = Field(default_factory=dict)
    """Each allowed answer and its meaning; empty for words and choices."""
    example: str = ""
    """A worked answer with its reason, for the instructions."""
    level: Literal["nominal", "ordinal", "interval"] = "ordinal"
    """The distance between two answers, for Krippendorff's α."""
    kind: Literal["scale", "sides", "words", "choice"] = "scale"
    """Answers of "scale" are numbers. "sides" are 1, 2 or tie, for two texts in an order drawn for each source; they count as 1
    (win), 0 (tie) and -1 (lose) of the method. "words" are numbers of words, as the sentence shows them, 0 for none. "choice" are
    numbers of the line's choices; they count as 1 for the row's own label, else 0."""
    all_of: list[str] = Field(default_factory=list)
    """Yes-or-no questions: this question is not asked, and is yes if a rater says yes to all of them."""

    @property
    def yes_or_no(self) -> bool:
        """Whether each answer counts as 1 or 0, yes or no."""
        return self.kind == "choice" or set(self.answers) == set(YES_NO)


class Protocol(Recipe):
    """A rating task.

    Its texts are templates of Jinja over `row`, `source`, `side` ("1" or "2", drawn for each source) and the variables of its view.
    """

    title: str
    """Shown to raters; it names no method."""
    guide: str
    """What raters see and do, in a few sentences."""
    paper: str
    """Whose human evaluation this is, with the section."""
    columns: list[str]
    """Columns that a row must have."""
    source: bool = False
    """Whether a line also shows the row's source."""
    view: Literal["pair", "terms"] | None = None
    """More variables of the templates: see `VIEWS`."""
    leave_out: dict[str, str] = Field(default_factory=dict)
    """{reason: an expression that is true of the rows that are not rated}."""
    shows: dict[str, str]
    """{a column that raters read: its template}."""
    stratum: str = ""
    """A template: rows are drawn and summarised for each of its values in `strata`."""
    strata: list[str] = Field(default_factory=list)
    questions: dict[str, Question]
    rows: Positive
    """How many to draw of each method; of each stratum, if there are any."""

    @property
    def asked(self) -> dict[str, Question]:
        """The questions that are columns of the sheet."""
        return {name: question for name, question in self.questions.items() if not question.all_of}


def protocol_names() -> list[str]:
    """List the protocols that ship with this library."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load_protocol(name: str) -> Protocol:
    """Read a protocol: one that ships with this library, by name, or a YAML file.

    >>> list(load_protocol("rgf").questions)
    ['fluency', 'correctness']
    """
    path = Path(name) if Path(name).suffix == ".yaml" else _FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise ValueError(f"there is no protocol {name!r}: choose one of {', '.join(protocol_names())}, or give a YAML file")
    return recipes.parse_recipe(Protocol, read_yaml_file(path), path.name)


@dataclass(frozen=True)
class Display:
    """What a line of a sheet shows of a row."""

    texts: dict[str, str]
    """The columns that raters read."""
    stratum: str = ""
    scoring: dict[str, Any] = field(default_factory=dict)
    """What `parse_answer` reads answers with, and raters don't see."""


def show(protocol: Protocol, row: Row, source: Row | None = None, side: str = "1") -> Display:
    """Write what raters see of a row; raise `ValueError` with the reason why it can't be rated."""
    try:
        variables, scoring = VIEWS[protocol.view](row, source, side) if protocol.view else ({}, {"side": side})
        variables = {"row": row, "source": source, "side": side, **variables}
        for reason, expression in protocol.leave_out.items():
            if _environment().compile_expression(expression, undefined_to_none=False)(**variables):
                raise ValueError(reason)
        texts = {column: _render(template, variables) for column, template in protocol.shows.items()}
        stratum = _render(protocol.stratum, variables)
    except (KeyError, TypeError, IndexError, AttributeError, TemplateError) as error:
        raise ValueError(f"it can't be shown: {f'there is no {error}' if isinstance(error, KeyError) else error}") from error
    for column, text in texts.items():
        if problem := text_problem(text, f"the {column.replace('_', ' ')}", letters=False):
            raise ValueError(problem)
    if protocol.strata and stratum not in protocol.strata:
        raise ValueError(f"its source's label is {stratum}")
    return Display(texts, stratum, scoring)


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    environment.globals |= {"marked": _marked_sentence, "roles": relation.roles, "argument": _write_argument}
    return environment


@cache
def _compile(template: str) -> Template:
    return _environment().from_string(template)


def _render(template: str, variables: Mapping[str, Any]) -> str:
    return _compile(template).render(**variables)


View = tuple[dict[str, Any], dict[str, Any]]
"""Variables of templates, and what answers are scored with."""


def view_pair(row: Row, source: Row | None, side: str) -> View:
    """View a counterfactual with its source, in any task: what changed, what both share, and the choices for its label."""
    assert source is not None
    task = task_of(row)
    shown = pair(row, _hide_outcome(task, source), _hide_outcome(task, row))
    changed: list[dict[str, str]] = shown["texts"]  # type: ignore[assignment]
    shared: list[dict[str, str]] = shown["context"]  # type: ignore[assignment]
    if not changed:
        raise ValueError("nothing that raters read was changed")
    label, old = task.outcome(row), task.outcome(source)
    if not label or not old:
        raise ValueError(f"it or its source has no {task.outcome_name}")
    if task.labels is not None and label not in task.labels:
        raise ValueError(f"its label is {label!r}, and the labels are {', '.join(task.labels)}")
    if task.labels is None and label == old:
        raise ValueError(f"its {task.outcome_name} stays {label!r}, and as the only choice it would be given away")
    # Open labels: the row's and its source's, in an order drawn for each source, and neither.
    open_labels = [*dict.fromkeys([label, old] if side == "1" else [old, label]), NEITHER]
    choices = open_labels if task.labels is None else list(task.labels)
    texts = {
        "before": _name_texts(changed, "before"),
        "after": _name_texts(changed, "after"),
        "context": _name_texts(shared, "after"),
    }
    return {**texts, "source_label": old, "choices": choices}, {"choices": choices, "answer": label}


def _hide_outcome(task: Task, row: Row) -> list[Segment]:
    """Return a row's segments without what would tell its outcome, such as the answer and its place."""
    return [
        segment._replace(marks=tuple(mark for mark in segment.marks if mark.name != task.outcome_name))
        for segment in task.segments(row)
        if segment.block != task.outcome_name
    ]


def _name_texts(texts: Sequence[Mapping[str, str]], side: str) -> str:
    """Write texts below each other, each with its name where there are several."""
    written = [(text["where"], text[side]) for text in texts if text[side]]
    return "\n".join(f"{where}: {text}" if len(written) > 1 else text for where, text in written)


def view_terms(row: Row, source: Row | None, side: str) -> View:
    """View a sentence with numbered words, and a method's causal terms in it: the row's own, or what its edits removed."""
    if "causal_terms" in row:
        sentence, terms = row, row["causal_terms"] or []
    elif source is not None:
        relation.TASK.apply_edits(source, row["edits"])  # raises if they do not fit the source
        sentence, terms = source, [i for edit in row["edits"] for i in range(edit["start"], edit["end"])]
    else:
        raise ValueError("it has no causal_terms, and no source row is given")
    if problem := relation.TASK.validate(sentence) or relation.overlap(sentence):
        raise ValueError(problem)
    free = relation.context(sentence)
    numbered = [f"{token}({i + 1})" if i in free else token for i, token in enumerate(sentence["tokens"])]
    return {"numbered": relation.marked({**sentence, "tokens": numbered})}, {"free": free, "terms": sorted(terms)}


VIEWS: Mapping[str, Callable[[Row, Row | None, str], View]] = {"pair": view_pair, "terms": view_terms}
"""What templates of a protocol can use beside the row and its source, by name."""


def _marked_sentence(row: Row) -> str:
    if problem := relation.TASK.validate(row):
        raise ValueError(problem)
    return relation.marked(row)


def _write_argument(row: Row) -> str:
    """Write the pieces of evidence with their names, and the steps between them."""
    infos = row.get("evidence_info") or [{"id": f"E{i}"} for i in range(1, len(row["evidence"]) + 1)]
    nodes = [f"{info['id']}: {piece['text']}" for info, piece in zip(infos, row["evidence"], strict=True)]
    if not row["structure"]:
        raise ValueError("there is no argument structure")
    steps = [f"{' + '.join(map(str, step['premises']))} → {step['conclusion']}" for step in row["structure"]]
    return "\n".join([*nodes, *steps])


def chosen(question: Question, cell: str, scoring: Mapping[str, Any]) -> str | None:
    """Return the label that a filled cell chooses; None for a question without labels to choose from."""
    return scoring["choices"][int(_plain(cell)) - 1] if question.kind == "choice" else None


def _plain(cell: str) -> str:
    """Return a cell as it was filled: a spreadsheet may write 4 as 4.0 or 4,0, and an apostrophe before a formula."""
    return re.sub(r"^(\d+)[.,]0+$", r"\1", cell.strip().removeprefix("'").lower())


def parse_answer(question: Question, cell: str, scoring: Mapping[str, Any]) -> Any:
    """Read a filled cell as what it counts for a method: a number, or the sorted places of words."""
    text = _plain(cell)
    if question.kind == "words":
        words = {str(place + 1): place for place in scoring["free"]}
        numbers = [] if text == "0" else text.split()
        if unknown := [number for number in numbers if number not in words]:
            raise ValueError(f"the answer must be numbers of words with spaces between them, or 0 for none, got {unknown[0]!r}")
        return sorted({words[number] for number in numbers})
    allowed = [str(i) for i, _ in enumerate(scoring["choices"], 1)] if question.kind == "choice" else list(question.answers)
    if text not in allowed:
        raise ValueError(f"the answer must be one of {', '.join(allowed)}, got {text!r}")
    if question.kind == "choice":
        return int(chosen(question, text, scoring) == scoring["answer"])
    if question.kind == "sides":
        return 0 if text == "tie" else 1 if text == scoring["side"] else -1
    return int(text)
