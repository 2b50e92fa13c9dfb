"""Find which column of a user's rows has which field, from known layouts and the user's settings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfcf.core.names import did_you_mean
from hfcf.corpora.custom import OWN
from hfcf.corpora.custom.cells import (
    Column,
    Columns,
    read_claim,
    read_question,
    read_text,
    write_claim,
    write_question,
    write_text,
)
from hfcf.corpora.custom.relations import read_sentence, write_sentence
from hfcf.corpora.custom.structures import read_structure
from hfcf.corpora.formats.read import CorpusError
from hfcf.corpora.formats.tokens import TAG
from hfcf.tasks.relation import relation_of


class LayoutError(CorpusError):
    """Columns or labels that only the user can interpret.

    Args:
        what: the columns or labels found, and the problem.
        cures: the arguments to type, by their purpose; "" if there is only one cure.
        call: the start of the call that takes them.

    >>> error = LayoutError("the labels are 0 and 1, without names", {"": {"labels": {0: "…", 1: "…"}}})
    >>> print(error)
    the labels are 0 and 1, without names; write
      hfcf.from_dataset(ds, labels={0: "…", 1: "…"})
    >>> print(error.in_recipe())
    the labels are 0 and 1, without names; write
      labels: {0: "…", 1: "…"}
    """

    def __init__(self, what: str, cures: Mapping[str, Mapping[str, Any]], call: str = "hfcf.from_dataset(ds") -> None:
        self.what, self.cures, self.call = what, cures, call
        arguments_of = {
            use: ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items()) for use, arguments in cures.items()
        }
        super().__init__(_message(what, {use: f"{call}, {given})" for use, given in arguments_of.items()}))

    def with_arguments(self, given: Mapping[str, Any], call: str | None = None) -> LayoutError:
        """Return the error with the arguments that the user gave, so that its lines are whole calls; `call` is another start."""
        known = {name: value for name, value in given.items() if value is not None}
        cures = {use: {**known, **cure} for use, cure in self.cures.items()}
        for cure in cures.values():
            if "columns" in cure:
                cure["columns"] = {**cure["columns"], **known.get("columns", {})}
        return LayoutError(self.what, cures, call or self.call)

    def in_recipe(self, command: str = "", *, options: bool = False) -> str:
        """Return the message with a recipe's keys instead of Python's arguments, and a command's option that takes them.

        Args:
            command: the command, such as "hfcf peek"; "" for a recipe's file.
            options: whether keys other than `columns` and `labels` stand under `options`, as in a recipe of `hfcf run`.
        """
        cures = {use: _under_options(arguments) if options else arguments for use, arguments in self.cures.items()}
        keys = {use: "\n  ".join(f"{key}: {_literal(value, 'null')}" for key, value in cure.items()) for use, cure in cures.items()}
        first = {key: _literal(value, "null") for key, value in next(iter(cures.values())).items()}
        # What the user has to fill in stands in the lines above.
        changes = [f"{key}={{…}}" if '"…"' in value else f"{key}={value}" for key, value in first.items()]
        given = " ".join(f"--set {shlex.quote(change)}" for change in changes)
        return _message(self.what, keys) + (f"\nGive it to {command} as {given}" if command else "")


_OF_RECIPES = ("columns", "labels")
"""The arguments that are keys of every recipe."""


def _under_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in arguments.items() if key in _OF_RECIPES}
    return own if len(own) == len(arguments) else {**own, "options": {k: v for k, v in arguments.items() if k not in own}}


@dataclass(frozen=True)
class Layouts:
    """The known layouts of the rows of a task.

    Args:
        task: its name.
        title: the name of such rows in errors.
        heading: the name of such rows as a title.
        forms: field → possible columns, the first choice first. A form fits if each field has a column.
        optional: further fields.
        example: the setting `columns` to type if no form fits.
        read: writes the user's values into a row of ours.
        write: returns the user's columns of texts with those of a counterfactual; None: such rows are not written.
        open_labels: what a label is called and how it is read, where any name is a label.
        labelled: whether the rows need a label.
        tags: whether a text without other fields must have tags of entities.
        last: whether rows get this layout only if no other layout fits, unless the user names the text.
    """

    task: str
    title: str
    heading: str
    forms: tuple[Mapping[str, tuple[Column, ...]], ...]
    optional: Mapping[str, tuple[Column, ...]]
    example: Mapping[str, str]
    read: Callable[..., None]
    write: Callable[..., dict[str, Any]] | None = None
    open_labels: tuple[str, Callable[[str], str | None]] | None = None
    labelled: bool = True
    tags: bool = False
    last: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that `columns=` may name."""
        core = dict.fromkeys(field for form in self.forms for field in form)
        return (*core, *(["label"] if self.labelled else []), *(field for field in self.optional if field != "label"))


_IDS = ("id", "unique_id", "uid", "guid", "pairID", "example_id", "claim_id", "idx")
_SEVERAL = ("evidence", "head", "tail")
"""Fields that several columns may make up."""
_GROUPS = ("group_id", "case_id", "promptID")
LAYOUTS = (
    Layouts(
        task="verification",
        title="claims with evidence",
        heading="Claims",
        forms=(
            {"claim": ("claim",), "evidence": ("evidence", "context")},
            {"claim": ("hypothesis",), "evidence": ("premise",)},
            {"claim": ("sentence2",), "evidence": ("sentence1",)},
        ),
        optional={"label": ("label", "gold_label", "verdict"), "title": ("title",), "id": _IDS, "group": _GROUPS},
        example={"claim": "…", "evidence": "…", "label": "…"},
        read=read_claim,
        write=write_claim,
    ),
    Layouts(
        task="structures",
        title="claims with argument structures",
        heading="Claims with argument structures",
        forms=(
            {"claim": ("claim",), "evidence": ("evidence",), "structure": ("structure",)},
            {"claim": ("claim",), "evidence": ("evidence",)},
        ),
        optional={
            "evidence_info": ("evidence_info",), "cause": ("cause",), "effect": ("effect",), "label": ("label",), "id": _IDS,
            "group": _GROUPS,
        },
        example={"claim": "…", "evidence": "…", "structure": "…", "label": "…"},
        read=read_structure,
    ),
    Layouts(
        task="relation",
        title="sentences with a relation, and tags of its entities",
        heading="Relation rows",
        forms=(
            {
                "tokens": ("tokens", "token"),
                "head": ("head", "h", ("subj_start", "subj_end", "subj_type"), ("subj_start", "subj_end")),
                "tail": ("tail", "t", ("obj_start", "obj_end", "obj_type"), ("obj_start", "obj_end")),
            },
            {"text": ("text", "sentence"), "head": ("head", "h"), "tail": ("tail", "t")},
            {"text": ("text", "sentence")},
        ),
        optional={"label": ("relation", "label"), "id": _IDS, "group": _GROUPS},
        example={"text": "…", "label": "…"},
        read=read_sentence,
        write=write_sentence,
        open_labels=("the name of a relation", relation_of),
        tags=True,
    ),
    Layouts(
        task="qa",
        title="questions",
        heading="Questions",
        forms=({"question": ("question",), "answers": ("answers",)}, {"question": ("question",), "answer": ("answer",)}),
        optional={
            "answer": ("answer",), "context": ("context", "passage"), "title": ("title",), "answer_start": ("answer_start",),
            "answer_end": ("answer_end",), "aliases": ("aliases",), "id": _IDS, "group": _GROUPS,
        },
        example={"question": "…", "answers": "…", "context": "…"},
        read=read_question,
        write=write_question,
        labelled=False,
    ),
    Layouts(
        task="classification",
        title="single texts",
        heading="Single texts",
        forms=({"text": ("text", "sentence", "review")},),
        optional={"label": ("label",), "id": _IDS, "group": _GROUPS},
        example={"text": "…", "label": "…"},
        read=read_text,
        write=write_text,
        open_labels=("the name of a label", str),
        last=True,
    ),
)  # fmt: skip


def layouts_of(task: str) -> Layouts:
    """Return the layouts of the rows of a task."""
    return next(layouts for layouts in LAYOUTS if layouts.task == task)


def find_columns(
    names: Sequence[str], head: Sequence[Mapping[str, Any]], task: str | None = None, given: Mapping[str, Any] | None = None
) -> tuple[Layouts, Columns]:
    """Return the layouts of the rows' task, and the column of each field."""
    given = {field: _named(column) for field, column in (given or {}).items()}
    if several := next((field for field, column in given.items() if isinstance(column, tuple) and field not in _SEVERAL), None):
        raise ValueError(
            f"columns: {several} is one column, got {', '.join(given[several])}: join them into a column of your own first; "
            f"only {', '.join(_SEVERAL)} may be several"
        )
    layouts = [layout for layout in LAYOUTS if task in (None, layout.task)]
    if not layouts:
        raise ValueError(f"task must be one of {', '.join(layout.task for layout in LAYOUTS)} for from_dataset, got {task!r}")
    layouts = [layout for layout in layouts if set(given) <= set(layout.fields)]
    if not layouts:
        _refuse_fields(given, task)
    for column in given.values():
        for name in (column,) if isinstance(column, str) else column:
            if name not in names:
                raise ValueError(f"there is no column {name!r}; the columns are {', '.join(names)}{did_you_mean(name, names)}")
    fitting = [(layout, columns) for layout in layouts if (columns := _fit(layout, names, head, given, task)) is not None]
    if task is None:
        firm = [(layout, columns) for layout, columns in fitting if not layout.last]
        fitting = firm or (
            fitting if set(given) & _core(layouts) else [fit for fit in fitting if not _may_be_others(names, fit[1])]
        )
    complete = [(layout, columns) for layout, columns in fitting if not layout.labelled or "label" in columns]
    if len(complete) > 1 and complete[-1][0].task == "structures":  # they are claims too
        complete = complete[-1:]
    if len(complete) == 1:
        layout, columns = complete[0]
        if layout.task == "structures" and isinstance(columns["evidence"], tuple):
            raise ValueError("columns: evidence of a structure is one column, a list of sentences or an object of them by name")
        return complete[0]
    present = f"the columns are {', '.join(names)}"
    if complete:
        options = {layout.title: {"task": layout.task} for layout, _ in complete}
        raise LayoutError(f"{present}: the rows may be {' or '.join(layout.title for layout, _ in complete)}", options)
    if fitting:
        others = _by_label(layouts, names)
        cures = {**others, fitting[0][0].title if others else "": {"columns": {"label": "…"}}}
        raise LayoutError(f"{present}: {_arrows(fitting[0][1])}, but no known column has the label", cures)
    examples = {layout.title: {"columns": dict(layout.example)} for layout in layouts}
    raise LayoutError(f"{present}: no known layout has these columns", examples)


def _by_label(layouts: Sequence[Layouts], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the fields to name for each layout whose own name of a label is a column: rows with a `relation` have entities."""
    plain, found = {name.strip().lower() for name in names}, dict[str, dict[str, Any]]()
    for layout in layouts:
        if plain.intersection(map(str, layout.optional.get("label", ()))) - {"label"}:
            lacking = [[field for field, columns in form.items() if plain.isdisjoint(map(str, columns))] for form in layout.forms]
            if fields := min(filter(None, lacking), key=len, default=None):
                found[layout.title] = {"columns": dict.fromkeys(fields, "…")}
    return found


def _named(column: Any) -> Column:
    """Return the column, or the several columns, that the user names."""
    names = tuple(map(str, column)) if isinstance(column, list | tuple) else ()
    return names if len(names) > 1 else names[0] if names else str(column)


def _core(layouts: Sequence[Layouts]) -> set[str]:
    """List the fields that make up the forms of layouts."""
    return {field for layout in layouts for form in layout.forms for field in form}


def _may_be_others(names: Sequence[str], columns: Columns) -> bool:
    """Say whether a column that is not read marks rows of another task: a question, a premise."""
    signs = {
        name
        for layout in LAYOUTS
        for form in layout.forms
        for candidates in form.values()
        for candidate in candidates
        for name in ((candidate,) if isinstance(candidate, str) else candidate)
    }
    signs -= {name for layout in LAYOUTS if layout.last for form in layout.forms for own in form.values() for name in own}
    return any(name.strip().lower() in signs for name in names if name not in columns.values())


def _fit(
    layouts: Layouts, names: Sequence[str], head: Sequence[Mapping[str, Any]], given: Columns, task: str | None
) -> dict[str, Column] | None:
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(name.strip().lower(), []).append(name)
    core = _core([layouts])
    for form in layouts.forms:
        if not core.intersection(given) <= set(form):
            continue
        fitting = {field: given.get(field) or _first(candidates, plain) for field, candidates in form.items()}
        columns: dict[str, Column] = {field: column for field, column in fitting.items() if column is not None}
        if len(columns) < len(form):
            continue
        # A text is a sentence with a relation if tags mark its entities, or if the user says so.
        if layouts.tags and set(form) == {"text"} and task is None and not _has_tags(head, str(columns["text"])):
            continue
        if layouts.task == "structures" and "structure" not in form and task is None:
            continue
        used = set(columns.values())
        for field, candidates in layouts.optional.items():
            if field == "answer" and "answers" in given:
                continue
            if (column := given.get(field) or _first(candidates, plain)) is not None and column not in used:
                columns[field] = column
        if "label" in given:
            columns["label"] = given["label"]
        return columns
    return None


def _has_tags(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    return any(TAG.search(str(row.get(column))) for row in rows)


def _first(candidates: Sequence[Column], plain: Mapping[str, Sequence[str]]) -> Column | None:
    """Return the first existing column, ignoring capitals."""
    for candidate in candidates:
        parts = (candidate,) if isinstance(candidate, str) else candidate
        found = [plain[part.lower()] for part in parts if part.lower() in plain]
        if len(found) < len(parts):
            continue
        if unclear := next((names for names in found if len(names) > 1), None):
            cures = {"": {"columns": {candidate if isinstance(candidate, str) else "…": unclear[0]}}}
            raise LayoutError(f"the columns {', '.join(map(repr, unclear))} have one name in other spellings", cures)
        own = tuple(names[0] for names in found)
        return own[0] if isinstance(candidate, str) else own
    return None


def _refuse_fields(given: Columns, task: str | None) -> None:
    """Raise an error for `columns=` whose fields do not belong to one task."""
    layouts = [layout for layout in LAYOUTS if task in (None, layout.task)]
    known = list(dict.fromkeys(field for layout in layouts for field in layout.fields))
    unknown = next((field for field in given if field not in known), None)
    if unknown is None:
        raise ValueError(f"columns= must name fields of one task, got {', '.join(given)}; {_fields(layouts)}")
    turned = f'; write our field first: columns={{"{given[unknown]}": "{unknown}"}}' if given[unknown] in known else ""
    if fitting := [layout for layout in LAYOUTS if set(given) <= set(layout.fields)]:
        corpora = {task: name for name, task in OWN.items()}
        cures = (f"{each.title} have it: task={each.task!r}, in a recipe corpus: {corpora[each.task]}" for each in fitting)
        turned = f" ({'; '.join(cures)})"
    raise ValueError(f"columns= has the key {unknown!r}{turned or did_you_mean(unknown, known)}; {_fields(layouts)}")


def _fields(layouts: Sequence[Layouts]) -> str:
    return "; ".join(f"{layout.title} have {', '.join(layout.fields)}" for layout in layouts)


def _arrows(columns: Columns) -> str:
    return ", ".join(f"{field} ← {column if isinstance(column, str) else ' + '.join(column)}" for field, column in columns.items())


def _message(what: str, lines: Mapping[str, str]) -> str:
    return f"{what}; write\n" + "\n".join(f"  {line}{f'  # {use}' if use else ''}" for use, line in lines.items())


def _literal(value: Any, none: str = "None") -> str:
    """Write a value as both Python and YAML read it, but for None."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(key, none)}: {_literal(item, none)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(item, none) for item in value) + "]"
    return none if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
