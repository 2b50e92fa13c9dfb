"""Single texts with a label: sentiment, intent, topic."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfcf.core.candidates import Candidate, reject
from hfcf.core.edits import Edit, by_place, refuse_rest, replace_text, rewrite
from hfcf.core.form import Entry
from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.segments import Segment
from hfcf.core.task import HubNames, Row, Task
from hfcf.text.check import text_problem, why_lost
from hfcf.text.normalise import normalise


@dataclass(frozen=True, kw_only=True, eq=False)
class Classification(Task):
    """Rows of `text` and `label`. A label is null on a text without a label; methods that keep labels also work on it.

    >>> edit = {"field": "text", "piece": -1, "start": 7, "end": 11, "before": "good", "after": "poor"}
    >>> TASK.apply_edits({"text": "It was good.", "label": "positive"}, [edit])
    {'text': 'It was poor.'}
    """

    def validate(self, row: Row) -> str | None:
        if "text" not in row:  # a label alone may belong to another task
            return None
        if why := text_problem(row["text"], "the text"):
            return why
        return "the label is empty" if row.get("label") is not None and not row["label"].strip() else None

    def segments(self, row: Row) -> list[Segment]:
        return [Segment("text", -1, str(row.get("text") or ""), "text")]

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        return [("the text", row["text"])]

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        places = by_place(edits)
        text = replace_text(row["text"], places.pop(("text", -1), []))
        refuse_rest(places)
        return {"text": text}

    def identity(self, row: Row) -> list[tuple[str, str]]:
        return [("text", row.get("text") or "")]

    def read_form(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return {name: texts[name].strip() for name in ("text", "label")}

    def fill_form(self, row: Row) -> dict[str, str]:
        return {"text": row["text"], "label": row["label"] or ""}

    def check_model(self, model: Model, max_length: int | None) -> None:
        from hfcf.core.model import is_prompted
        from hfcf.engines.classifier_spec import text_spec

        if not is_prompted(model):
            text_spec(model)

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        from hfcf.engines.text_classifier import TextClassifier

        return list(TextClassifier(model=model, max_length=max_length).run([row["text"] for row in rows]))


class TextRewriting:
    """The text of a row; see `hfcf.tasks.rewriting.Rewriting`."""

    noun = "text"
    editable = "of the text"
    columns = ("text", "label")
    prompt = "hfcf.prompts.counterfactuals:TextPrompt"
    negated = True

    def text(self, row: Row) -> str:
        return row["text"]

    readable = text

    def protected(self, row: Row) -> Container[int]:
        return ()

    def edited(self, row: Row, text_edits: Sequence[Edit], stage: str) -> list[Candidate]:
        own: list[Edit] = [{**edit, "field": "text"} for edit in text_edits]
        return [_candidate(row, row["label"], own, stage)] if own else []

    def rewritten(self, row: Row, text: str, label: str, stage: str, scores: Sequence[Mapping[str, Any]] = ()) -> Candidate:
        return _candidate(row, label, rewrite("text", row["text"], text), stage, scores)

    def opposite(self, row: Row, labels: Sequence[str]) -> str:
        others = [label for label in labels if label != row["label"]]
        if row["label"] is None:
            raise ValueError("the row has no label")
        if len(others) != 1:
            raise ValueError(f"the rows have {len(labels)} labels: only of two is one the opposite of the other")
        return others[0]


def _candidate(row: Row, label: str, edits: Sequence[Edit], stage: str, scores: Sequence[Mapping[str, Any]] = ()) -> Candidate:
    """Make a candidate without a verdict; reject a candidate that repeats the source."""
    text = replace_text(row["text"], edits)
    new = {"text": text, "label": label, "change": "text", "edits": list(edits), "scores": list(scores), "status": None}
    why = "repeats the source's text" if normalise(text) == normalise(row["text"]) else why_lost(row["text"], text)
    return reject(new, stage, why) if why else new


TASK = Classification(
    name="classification",
    columns={"text": TEXT},
    signature=("text",),
    empty_row={"text": None, "label": None},
    candidate={"text": TEXT, "label": TEXT},
    recipe="train_classification",
    trainer="hfcf.training.text_classifier:TRAINER",
    scorer="hfcf.training.scorers:VERDICTS",
    verdict_prompt="hfcf.prompts.verdicts:TEXTS",
    rewriting="hfcf.tasks.classification:TextRewriting",
    hub=HubNames(categories=("text-classification",), tag="text-classification"),
    form=(
        Entry(name="text", title="Text", lines=5),
        Entry(name="label", title="Label", hint="Any name, such as positive."),
    ),
    demo="demo_texts",
)
