"""Candidates of RGF: a passage with an answer, then a question; and what stages write down about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import List

from hfcf.core.candidates import Candidate, reject
from hfcf.core.schema import FLOAT, INT, TEXT
from hfcf.tasks.qa import MAX_CONTEXT, TASK
from hfcf.text.check import text_problem
from hfcf.text.squad import matches, normalise_answer

PASSAGES = List({"id": TEXT, "title": TEXT, "text": TEXT, "score": FLOAT, "rank": INT})
"""The passages of a row: what the collection has of them, the retriever's score (higher is nearer), and the rank from 1."""
CANDIDATES = List(TASK.candidate_features)

RANK, RETRIEVAL, READER = "retrieval rank", "retrieval score", "reader probability"
ANSWER, QUESTION = "log-probability of the answer", "log-probability of the question"
AGREE, DISTANCE = "readers that agree", "word edit distance"


def value(candidate: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    """Return a score of a candidate.

    >>> value({"scores": [{"name": RANK, "value": 2.0}]}, RANK), value({"scores": []}, RANK)
    (2.0, 0.0)
    """
    return next((score["value"] for score in candidate["scores"] if score["name"] == name), default)


def passage_problem(passage: Mapping[str, Any]) -> str | None:
    """Say why nothing can be made of a passage, or None.

    >>> passage_problem({"title": "", "text": " "})
    'the passage is empty'
    """
    title = passage["title"] and text_problem(passage["title"], "the title of the passage", letters=False)
    return title or text_problem(passage["text"], "the passage", limit=MAX_CONTEXT)


def answer_candidates(
    stage: str,
    passage: Mapping[str, Any],
    gold: Sequence[str],
    answers: Sequence[tuple[str, int, Sequence[tuple[str, float]]]],
    seen: set[tuple[str, str]],
) -> list[Candidate]:
    """Make a candidate of each answer in a passage, without a question yet; one of no use is rejected, with the reason.

    Rejected are: an answer that matches a gold one (`hfcf.text.squad.matches`: equal after SQuAD's normalisation), one that does
    not stand at its place, one of which the normalisation leaves nothing, since no reader could be scored on it, and one that
    repeats another of the same passage text.

    Args:
        stage: that asks.
        passage: of the column `passages`.
        gold: the source's answers, with their aliases.
        answers: (text, start in the passage or −1, scores as (name, value)), the best first.
        seen: passage texts and normalised answers of the row so far; those of this passage are added.
    """
    if why := passage_problem(passage):
        return [reject(_candidate(passage, "", -1, []), stage, why)]
    if not answers:
        return [reject(_candidate(passage, "", -1, []), stage, "no answer was found in the passage")]
    candidates = []
    for text, start, scores in answers:
        one, key = _candidate(passage, text, start, scores), (passage["text"], normalise_answer(text))
        if start < 0 or passage["text"][start : start + len(text)] != text or not text.strip():
            one = reject(one, stage, "the answer does not stand in the passage")
        elif not key[1]:
            one = reject(one, stage, "nothing is left of the answer after SQuAD's normalisation")
        elif matches(text, gold):
            one = reject(one, stage, "the answer is a gold answer of the source")
        elif key in seen:
            one = reject(one, stage, "the answer repeats another one of the passage")
        else:
            seen.add(key)
        candidates.append(one)
    return candidates


def _candidate(passage: Mapping[str, Any], text: str, start: int, scores: Sequence[tuple[str, float]]) -> Candidate:
    ranked = [(RANK, float(passage["rank"]))] if passage["rank"] is not None else []
    retrieval = [(RETRIEVAL, passage["score"])] if passage["score"] is not None else []
    return {
        "title": passage["title"] or "", "context": passage["text"] or "", "question": None,
        "answers": {"text": [text] if text else [], "answer_start": [start] if text and start >= 0 else []},
        # Only an accepted candidate has edits: they repeat both passages, and most candidates are rejected.
        "change": None, "edits": [],
        "scores": [{"name": name, "value": number} for name, number in [*ranked, *retrieval, *scores]], "status": None,
    }  # fmt: skip
