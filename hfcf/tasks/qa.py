"""Question answering: a question, a passage with its title, and the answers, in SQuAD's columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import List

from hfcf.core.edits import Edit, by_place, refuse_rest, replace_text, rewrite
from hfcf.core.form import Entry, read_pieces, write_pieces
from hfcf.core.model import Model
from hfcf.core.schema import INT, TEXT
from hfcf.core.segments import Mark, Segment
from hfcf.core.task import HubNames, Row, Task
from hfcf.text.check import text_problem
from hfcf.text.normalise import normalise

MAX_CONTEXT = 2_000_000
"""Characters of the longest passage that is worked on: readers read it in windows."""
TEXTS = ("title", "context", "question")
NO_ANSWERS: dict[str, list[Any]] = {"text": [], "answer_start": []}


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionAnswering(Task):
    """Rows of `title`, `context`, `question` and `answers`, `{text, answer_start}`.

    Several `text`s are alternatives: one of them is a right answer. `answer_start` has the position of each in the context, in code
    points. It is empty where the answers are not spans of the context (yes and no) or where there is no context (open questions).

    >>> row = {"question": "who?", "context": "Ada wrote it.", "answers": {"text": ["Ada"], "answer_start": [0]}}
    >>> TASK.validate(row), TASK.validate({**row, "answers": {"text": ["Ada"], "answer_start": [4]}})
    (None, "the answer 'Ada' is not at character 4 of the context, where 'wro' is")
    """

    def validate(self, row: Row) -> str | None:
        if "question" in row and (why := text_problem(row["question"], "the question")):
            return why
        if row.get("title") and (why := text_problem(row["title"], "the title", letters=False)):
            return why
        # No context is an open question, which has no spans.
        if row.get("context") and (why := text_problem(row["context"], "the context", limit=MAX_CONTEXT)):
            return why
        if "answers" not in row:
            return None
        answers = row["answers"]
        if answers is None or answers["text"] is None:
            return "the answers are null"
        for text in answers["text"]:
            if why := text_problem(text, "an answer", letters=False):
                return why
        return why_misplaced(row["context"] or "", answers) if "context" in row else None

    def segments(self, row: Row) -> list[Segment]:
        question, title, context = (str(row.get(name) or "") for name in ("question", "title", "context"))
        answers = row.get("answers") or NO_ANSWERS
        places = sorted(set(zip(answers["answer_start"] or [], answers["text"] or [], strict=False)))
        marks = tuple(Mark(at, at + len(text), "answer") for at, text in places if context[at : at + len(text)] == text)
        return [
            Segment("question", -1, question, "question"),
            Segment("context.title", -1, title, "context"),
            Segment("context", -1, context, "context", marks),
            Segment("answers", -1, " / ".join(dict.fromkeys(answers["text"] or [])), "answer"),
        ]

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        texts = [(f"the {name}", row[name]) for name in TEXTS]
        return texts + [("an answer", text) for text in (row["answers"] or NO_ANSWERS)["text"] or []]

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        places = by_place(edits)
        texts: dict[str, Any] = {name: replace_text(row.get(name) or "", places.pop((name, -1), [])) for name in TEXTS}
        if answers := places.pop(("answers", -1), []):
            texts["answers"] = json.loads(replace_text(answers_text(row["answers"]), answers))
        elif "answers" in row:
            texts["answers"] = row["answers"]
        refuse_rest(places)
        return texts

    def identity(self, row: Row) -> list[tuple[str, str]]:
        texts = [("question", row.get("question") or ""), ("context", row.get("context") or "")]
        return [(kind, text) for kind, text in texts if text]  # open questions share no context

    def candidate_edits(self, row: Row, candidate: Row) -> Sequence[Row]:
        """Return a candidate's edits; if it was rejected before it had any, derive them from its texts."""
        fields = {name: value for name in self.columns if (value := candidate.get(name)) is not None}
        if not (fields.get("answers") or NO_ANSWERS)["text"]:
            fields.pop("answers", None)
        return candidate["edits"] or rewrite_all(row, **fields)

    def counterfactual_row(self, row: Row, candidate: Row) -> dict[str, Any]:
        """Return the counterfactual that a candidate makes of a row; raise `ValueError` if it has no question yet."""
        if candidate["question"] is None:
            raise ValueError("the candidate has no question yet")
        return super().counterfactual_row(row, {**candidate, "edits": self.candidate_edits(row, candidate)})

    def outcome(self, row: Row) -> str | None:
        return ((row.get("answers") or NO_ANSWERS)["text"] or [None])[0]

    def right_answers(self, row: Row) -> list[str]:
        return list(dict.fromkeys((row.get("answers") or NO_ANSWERS)["text"] or []))

    def prompt(self, row: Row) -> str:
        passage = ": ".join(filter(None, (row.get("title"), row.get("context"))))
        return "\n".join([*([f"Passage: {passage}"] if passage else []), f"Question: {row['question']}", "Answer:"])

    def triplet(self, source: Row, row: Row, alike: Callable[[], Row | None]) -> tuple[str, str, str]:
        """Return the source's question, the passage that answers it, and the counterfactual's passage, which is similar but does
        not."""
        if not source["context"] or not row["context"]:
            raise ValueError("one of the two has no passage")
        if source["context"] == row["context"]:
            raise ValueError("both questions are about one passage")
        if any(normalise(answer) in normalise(row["context"]) for answer in self.right_answers(source)):
            raise ValueError("the counterfactual's passage holds the answer to the source's question")
        passages = [": ".join(filter(None, (one["title"], one["context"]))) for one in (source, row)]
        return source["question"], passages[0], passages[1]

    def read_form(self, texts: Mapping[str, str]) -> dict[str, Any]:
        title, context = "", " ".join(texts["context"].split())
        if pieces := read_pieces(context):
            title, context = pieces[0]["title"], pieces[0]["text"]
        columns = {"question": texts["question"].strip(), "title": title, "context": context, "answer": texts["answer"].strip()}
        return {name: text for name, text in columns.items() if text or name != "title"}

    def fill_form(self, row: Row) -> dict[str, str]:
        context = write_pieces([{"title": row["title"], "text": row["context"]}])
        return {"question": row["question"], "context": context, "answer": (row["answers"]["text"] or [""])[0]}

    def changed(self, row: Row) -> tuple[str, str]:
        """Return the question before and after; the context is left out, because it is another passage and not a rewritten
        passage."""
        return self.revert_edits(row, row["edits"])["question"], row["question"]

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        from hfcf.engines.reader import Reader

        requests = [[row["question"], row["context"] or "", row["title"] or ""] for row in rows]
        answers = Reader(model=model, max_length=max_length).run(requests)
        return [{span["text"]: span["probability"] for span in reversed(spans)} or None for spans in answers]


def why_misplaced(context: str, answers: Mapping[str, Any]) -> str | None:
    """Say which answer is not at its position in the context, or None."""
    texts, starts = answers["text"], answers["answer_start"] or []
    if starts and len(starts) != len(texts):
        return f"there are {len(texts)} answers and {len(starts)} places of answers"
    for text, start in zip(texts, starts, strict=False):
        if start is None or start < 0 or context[start : start + len(text)] != text:
            at = "null" if start is None else f"character {start}"
            found = context[start : start + len(text)] if start is not None and start >= 0 else ""
            why = f"the answer {text!r} is not at {at} of the context, where {found!r} is"
            return why + _other_unit(context, text, start)
    return None


def _other_unit(context: str, text: str, start: int | None) -> str:
    """Say in which other unit the position would be right: JavaScript and Java count UTF-16, C and Rust count bytes."""
    for codec, width, unit in (("utf-16-le", 2, "UTF-16 code units"), ("utf-8", 1, "bytes of UTF-8")):
        if start is not None and start >= 0 and context.encode(codec)[start * width :].startswith(text.encode(codec)):
            return f"; it counts {unit}: count characters (code points)"
    return ""


def span_problem(row: Row) -> str | None:
    """Say why a row has no spans to work on, or None: stages that need the positions of answers reject it with this reason."""
    if not row["context"]:
        return "the row has no context"
    if not row["answers"]["text"]:
        return "the row has no answer"
    return None if row["answers"]["answer_start"] else "its answers are not spans of its context"


def answers_text(answers: Mapping[str, Any]) -> str:
    """Write answers as the text that an edit of the field `answers` changes."""
    return json.dumps({name: list(answers[name] or []) for name in NO_ANSWERS}, ensure_ascii=False)


def rewrite_all(row: Row, **new: Any) -> list[Edit]:
    """Return the edits that change a row's texts and answers to `new`: one edit for each text that differs.

    >>> row = {"title": "", "context": "Ada wrote it.", "question": "who?", "answers": {"text": ["Ada"], "answer_start": [0]}}
    >>> [edit["field"] for edit in rewrite_all(row, question="what?", answers={"text": ["it"], "answer_start": [10]})]
    ['question', 'answers']
    """
    before = {**{name: row.get(name) or "" for name in TEXTS}, "answers": answers_text(row["answers"])}
    after = {name: answers_text(value) if name == "answers" else value for name, value in new.items()}
    changes = [name for name in before if name in after and before[name] != after[name]]
    return [edit for name in changes for edit in rewrite(name, before[name], after[name])]


ANSWERS = {"text": List(TEXT), "answer_start": List(INT)}
TASK = QuestionAnswering(
    name="qa",
    columns={"title": TEXT, "context": TEXT, "question": TEXT, "answers": ANSWERS},
    signature=("question", "answers"),
    empty_row={"title": "", "context": "", "question": None, "answers": NO_ANSWERS},
    labelled=False,
    outcome_name="answer",
    change_names={"both": "the reference and the predicate"},
    shared="a question or a passage",
    candidate={"title": TEXT, "context": TEXT, "question": TEXT, "answers": ANSWERS},
    recipe="train_reader",
    trainer="hfcf.training.reader_trainer:TRAINER",
    scorer="hfcf.training.scorers:ANSWERS",
    answer_columns=("aliases", "regex"),
    passages=("context",),
    hub=HubNames(categories=("question-answering",), ids=("extractive-qa",), tag="question-answering"),
    form=(
        Entry(name="question", title="Question"),
        Entry(name="context", title="Passage with the answer", lines=3, hint="Its title may come before it in brackets."),
        Entry(name="answer", title="Answer", hint="Exactly as in the passage."),
        Entry(
            name="passages",
            title="Passages to search for other answers",
            lines=6,
            hint="One a line: [Title] Text. Systems that search no passages leave them.",
            setting=True,
        ),
    ),
    demo="demo_qa",
)
