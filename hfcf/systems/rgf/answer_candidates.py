"""Candidates of RGF: a passage with an answer, then a question; and what stages write down about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from datasets import List

from hfcf.core.candidates import Candidate, reject, scored, settle
from hfcf.core.schema import BOOL, FLOAT, INT, TEXT
from hfcf.core.stage import Reject
from hfcf.tasks.qa import MAX_CONTEXT, TASK
from hfcf.text.check import text_problem
from hfcf.text.normalise import matches, normalise_answer, overlaps

PASSAGES = List({"id": TEXT, "title": TEXT, "text": TEXT, "score": FLOAT, "rank": INT})
"""The passages of a row: what the collection has of them, the retriever's score (higher is nearer), and the rank from 1."""
CANDIDATES = List(TASK.candidate_features)
ALIASES = {"aliases": List(TEXT)}
"""The column in which some corpora have right answers that are not in the context."""

PATTERNS = {"regex": BOOL}
"""The column in which some corpora say that a row's answers are patterns."""

RANK, RETRIEVAL, READER = "retrieval rank", "retrieval score", "reader probability"
ANSWER, QUESTION = "log-probability of the answer", "log-probability of the question"
AGREE, DISTANCE = "readers that agree", "word edit distance"
Row = Mapping[str, Any]
Found = tuple[str, int, Sequence[tuple[str, float | None]], str | None]
"""An answer in a passage: its text and place, its scores, and why it is not sure, or None."""


def value(candidate: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    """Return a score of a candidate."""
    return next((score["value"] for score in candidate["scores"] if score["name"] == name), default)


def passage_problem(passage: Mapping[str, Any]) -> str | None:
    """Say why nothing can be made of a passage."""
    title = passage["title"] and text_problem(passage["title"], "the title of the passage", letters=False)
    return title or text_problem(passage["text"], "the passage", limit=MAX_CONTEXT)


def why_not_comparable(row: Mapping[str, Any]) -> str | None:
    """Say why no other answer can be told from the right answers of a row."""
    if not row["answers"]["text"]:
        return "the row has no answer"
    return "the row's answers are patterns, with which other answers are not compared" if row.get("regex") else None


def gold_answers(row: Mapping[str, Any]) -> list[str]:
    """List the right answers of a row: its answers, and the aliases that its corpus knows."""
    aliases = row.get("aliases") or []
    return [*row["answers"]["text"], *([aliases] if isinstance(aliases, str) else aliases)]


def answer_candidates(
    stage: str, rows: Sequence[Row], ask: Callable[[list[tuple[Row, Row]]], Iterable[Sequence[Found]]], *, keep_partial: bool
) -> list[dict[str, Any] | Reject]:
    """Make a candidate of each answer in the passages of rows, without a question yet; answers that can't be used are rejected.

    Args:
        stage: the stage that makes them.
        rows: with `passages`.
        ask: returns the answers in each of many (row, passage).
        keep_partial: keep answers that hold a gold answer, or are inside one.
    """
    sound = [(row, passage) for row in rows for passage in row["passages"] if passage_problem(passage) is None]
    answers = iter(ask(sound))
    results: list[dict[str, Any] | Reject] = []
    for row in rows:
        candidates, seen = list[Candidate](), set[tuple[str, str]]()
        for passage in row["passages"]:
            found = next(answers) if passage_problem(passage) is None else ()
            candidates += _of_passage(stage, passage, gold_answers(row), found, seen, keep_partial)
        results.append(settle(candidates, "there is no passage"))
    return results


def _of_passage(
    stage: str, passage: Row, gold: Sequence[str], answers: Sequence[Found], seen: set[tuple[str, str]], keep_partial: bool
) -> list[Candidate]:
    if why := passage_problem(passage):
        return [reject(_candidate(passage, "", -1, []), stage, why)]
    if not answers:
        return [reject(_candidate(passage, "", -1, []), stage, "no answer was found in the passage")]
    candidates = []
    for text, start, scores, doubt in answers:
        candidate, key = _candidate(passage, text, start, scores), (passage["text"], normalise_answer(text))
        if start < 0 or passage["text"][start : start + len(text)] != text or not text.strip():
            candidate = reject(candidate, stage, "the answer is not in the passage")
        elif not key[1]:  # no reader could be scored on it
            candidate = reject(candidate, stage, "nothing is left of the answer after SQuAD's normalisation")
        elif matches(text, gold):
            candidate = reject(candidate, stage, "the answer is a gold answer of the source")
        elif not keep_partial and overlaps(text, gold):
            candidate = reject(candidate, stage, "the answer holds a gold answer of the source, or is inside it")
        elif key in seen:
            candidate = reject(candidate, stage, "the answer repeats another answer of the passage")
        elif doubt:
            candidate = reject(candidate, stage, doubt)
        else:
            seen.add(key)
        candidates.append(candidate)
    return candidates


def _candidate(passage: Mapping[str, Any], text: str, start: int, scores: Sequence[tuple[str, float | None]]) -> Candidate:
    numbers = [(RANK, passage["rank"]), (RETRIEVAL, passage["score"]), *scores]
    return {
        "title": passage["title"] or "", "context": passage["text"] or "", "question": None,
        "answers": {"text": [text] if text else [], "answer_start": [start] if text and start >= 0 else []},
        # Only an accepted candidate has edits: they repeat both passages, and most candidates are rejected.
        "change": None, "edits": [],
        "scores": [scored(name, number) for name, number in numbers if number is not None], "status": None,
    }  # fmt: skip
