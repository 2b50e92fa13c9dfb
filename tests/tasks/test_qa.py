"""Rows of questions: what is said of bad ones, candidates as rows, and words on cards."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.task import find_problem, get_task, task_of
from hfcf.metrics.shared.measure import candidates
from hfcf.report.rows import rejected_row
from hfcf.tasks.qa import NO_ANSWERS, TASK, rewrite_all, span_problem

CONTEXT = "𝔄da 👩🏽‍🚀 wrote it in Zu\u0308rich in 1843."


def row(context: str, texts: list[str], starts: list[int], question: str = "who wrote it") -> dict[str, Any]:
    return {
        "id": "1", "title": "Notes", "context": context, "question": question,
        "answers": {"text": texts, "answer_start": starts}, "group_id": "1", "corpus": "made", "split": "train",
    }  # fmt: skip


def test_places_of_answers_count_code_points() -> None:
    start = CONTEXT.index("1843")
    assert TASK.validate(row(CONTEXT, ["1843"], [start])) is None
    utf16 = len(CONTEXT[:start].encode("utf-16-le")) // 2
    assert "it counts UTF-16 code units" in str(TASK.validate(row(CONTEXT, ["1843"], [utf16])))
    utf8 = len(CONTEXT[:start].encode())
    assert "it counts bytes of UTF-8" in str(TASK.validate(row(CONTEXT, ["1843"], [utf8])))
    assert "is not at character 0" in str(TASK.validate(row(CONTEXT, ["Bob"], [0])))
    assert "is not at character -4" in str(TASK.validate(row(CONTEXT, ["843."], [-4])))


def test_several_answers_have_a_place_each_or_none() -> None:
    assert TASK.validate(row("Ada and Bob", ["Ada", "Bob"], [0, 8])) is None
    assert TASK.validate(row("Ada and Bob", ["Ada", "Bob"], [])) is None
    assert "2 answers and 1 places" in str(TASK.validate(row("Ada and Bob", ["Ada", "Bob"], [0])))


def test_rows_without_spans_are_rows_and_say_why_they_have_none() -> None:
    rows = {
        "the row has no context": row("", ["Ada"], []),
        "the row has no answer": row("Ada.", [], []),
        "its answers are not spans of its context": row("Is it? It is.", ["yes"], []),
    }
    assert {why: (TASK.validate(row), span_problem(row)) for why, row in rows.items()} == {why: (None, why) for why in rows}


def test_a_long_context_is_worked_on_and_control_characters_are_not() -> None:
    words = " ".join(["word"] * 20_000) + " Ada"
    assert TASK.validate(row(words, ["Ada"], [len(words) - 3])) is None
    assert "the limit is 2,000,000" in str(TASK.validate(row("a" * 2_000_001, [], [])))
    assert "control character" in str(TASK.validate(row("a\x07b", [], [])))
    assert "the question is empty" in str(find_problem({"question": " ", "answers": NO_ANSWERS}))


def test_edits_lead_there_and_back_with_the_answers() -> None:
    source = row(CONTEXT, ["1843"], [CONTEXT.index("1843")])
    new = {
        "title": "Other",
        "context": "Bob read it.",
        "question": "who read it",
        "answers": {"text": ["Bob"], "answer_start": [0]},
    }
    edits = rewrite_all(source, **new)
    there = TASK.apply_edits(source, edits)
    assert there == new
    assert TASK.revert_edits({**source, **there}, edits) == {name: source[name] for name in TASK.columns}
    assert TASK.changed({**source, **there, "edits": edits}) == ("who wrote it", "who read it")
    assert [mark[:2] for segment in TASK.segments(there) for mark in segment.marks] == [(0, 3)]


def rejected_candidate(**changes: Any) -> dict[str, Any]:
    candidate = {
        "title": "Other", "context": "Bob read it.", "question": "who read it", "answers": {"text": ["Bob"], "answer_start": [0]},
        "change": None, "edits": [], "scores": [],
    }  # fmt: skip
    return {**candidate, **changes}


def test_a_rejected_candidate_is_shown_and_measured_as_it_is() -> None:
    source = row("Ada wrote it.", ["Ada"], [0])
    asked, unasked = rejected_candidate(), rejected_candidate(question=None)
    shown = rejected_row(source, asked)
    assert (shown["question"], shown["context"], shown["answers"]["text"]) == ("who read it", "Bob read it.", ["Bob"])
    common = {"source_id": "1", "group_id": "1", "system": "rgf", "level": "candidate", "stage": "round_trip", "reason": "no"}
    rows = [{**common, "source": source, "candidate": one} for one in (asked, unasked)]
    [measured] = candidates(Dataset.from_list(rows))  # the other has no question yet
    assert TASK.changed(measured) == ("who wrote it", "who read it")
    assert rejected_row(source, unasked)["question"] == "who wrote it"
    assert rejected_row(source, unasked)["answers"]["text"] == ["Bob"]


def test_a_candidate_without_a_question_makes_no_row() -> None:
    with pytest.raises(ValueError, match="no question yet"):
        TASK.counterfactual_row(row("Ada wrote it.", ["Ada"], [0]), rejected_candidate(question=None))


def test_the_task_is_known_by_its_columns() -> None:
    assert task_of(TASK.features) is get_task("qa")
