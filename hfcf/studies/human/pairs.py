"""Whether pairs of any task are what one wants of a counterfactual: its label, the rest of it, and its closeness to the source."""

from __future__ import annotations

from collections.abc import Sequence

from hfcf.core.segments import Segment, pair
from hfcf.core.task import Task, task_of
from hfcf.studies.human.protocol import YES_NO, Display, Protocol, Question, Row, Unit

NEITHER = "neither"
"""The last choice of rows whose labels are open."""

COUNTERFACTUAL = Question(
    "counterfactual",
    "Is the new text a counterfactual of the source: does it talk about the same thing in the same structure, and differ where the "
    "label rests? Judge this whatever the label is.",
    YES_NO,
    "Source: “Jaws was directed by a man born in Ohio.” New: “Jaws was directed by a man born in Iowa.” → 1. New: “Jaws is a 1975 "
    "thriller.” → 0: nothing is left of what the source says of the director.",
    level="nominal",
    optional=True,
)
"""Sheets that were written without this question are read all the same: it was not asked there."""

PAIRS = Protocol(
    name="pairs",
    title="Pairs of texts",
    guide=(
        "Each line has a source with its label, and a new text that was made from it and should have another label, with what both "
        "are judged by. The new text's own label is hidden. In the name of a relation, e1 is the thing marked ₁ and e2 the thing "
        "marked ₂. Judge by the texts as shown, not by what you know."
    ),
    paper="ours: a set is judged by all of these together, never by one",
    unit="pair",
    shows=("source", "source_label", "new", "context", "choices"),
    questions=(
        Question(
            "label",
            "Which of the choices is right of the new text? Write its number. An answer to a question must be the one that the "
            "passage gives.",
            {},
            "Context: “Oslo is the capital of Norway.” New: “Bergen is the capital of Norway.” Choices: 1. SUPPORTS 2. REFUTES "
            "3. NOT ENOUGH INFO → 2: the evidence plainly refutes it.",
            level="nominal",
            kind="choice",
        ),
        Question(
            "sense",
            "Leaving the label aside, is all else right: is the new text grammatical, and does all that was changed make sense?",
            YES_NO,
            "“The film film was directed in by a Swede.” → 0. “The southernmost region of Israel was born in 1871.” → 0: it means "
            "nothing.",
            level="nominal",
        ),
        Question("everything", "The label and the sense are right.", YES_NO, "", level="nominal", of=("label", "sense")),
        COUNTERFACTUAL,
    ),
    rows=50,
)
"""The label is the row's if the rater chose it: raters never read it as the row's."""


def show_pair(row: Row, source: Row | None, side: str) -> Display:
    """Return a counterfactual with its source, in any task: what changed, what both share, and the choices for its label."""
    assert source is not None
    task = task_of(row)
    before = {**row, **task.revert_edits(row, row["edits"])}
    shown = pair(row, _shown(task, before), _shown(task, row))
    changed: list[dict[str, str]] = shown["texts"]  # type: ignore[assignment]
    shared: list[dict[str, str]] = shown["context"]  # type: ignore[assignment]
    if not changed:
        raise ValueError("nothing that raters read was changed")
    label, own = task.outcome(row), task.outcome(source)
    if not label or not own:
        raise ValueError(f"it or its source has no {task.outcome_name}")
    choices = _choices(task, label, own, side)
    texts = {
        "source": _named(changed, "before"), "source_label": f"“{own}”", "new": _named(changed, "after"),
        "context": _named(shared, "after") or "–",
        "choices": "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, 1)),
    }  # fmt: skip
    return Display(texts, extras={"choices": choices, "answer": label})


def _choices(task: Task, label: str, own: str, side: str) -> list[str]:
    """List all labels of a task; of open labels the row's and its source's, in an order drawn for each line, and neither."""
    if task.labels is not None:
        if label not in task.labels:
            raise ValueError(f"its label is {label!r}, and the labels are {', '.join(task.labels)}")
        return list(task.labels)
    return [*dict.fromkeys([label, own] if side == "1" else [own, label]), NEITHER]


def _shown(task: Task, row: Row) -> list[Segment]:
    """Return a row's segments without what would tell its outcome, such as the answer and its place."""
    return [
        segment._replace(marks=tuple(mark for mark in segment.marks if mark.name != task.outcome_name))
        for segment in task.segments(row)
        if segment.block != task.outcome_name
    ]


def _named(texts: Sequence[dict[str, str]], side: str) -> str:
    """Write texts below each other, each with its name where there are several."""
    written = [(text["where"], text[side]) for text in texts if text[side]]
    return "\n".join(f"{where}: {text}" if len(written) > 1 else text for where, text in written)


PAIR = Unit(("id", "edits", "source_id"), show_pair, sourced=True)
