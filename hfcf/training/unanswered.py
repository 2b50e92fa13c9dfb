"""Pair questions with passages that do not answer them, so that a reader learns to say so."""

from __future__ import annotations

from random import Random
from typing import Any

from datasets import Dataset

from hfcf.tasks.qa import NO_ANSWERS
from hfcf.text.phrase_match import find_answer

_HITS = 20
"""How many passages are looked at for each question."""


def unanswered(rows: Dataset, share: float, *, seed: int = 13) -> Dataset:
    """Repeat a share of the questions, each with the nearest passage of another group that holds none of its answers.

    Passages are ranked by BM25, so they share words with the question: a reader that has only seen passages with an answer finds
    one in them, too. Rajpurkar et al. 2018 (SQuAD 2.0) had people write such questions.

    Args:
        rows: question answering rows with contexts and answers.
        share: how many of the questions (0–1).
        seed: for the choice of the questions.

    Returns: New rows without answers; fewer where no such passage shares a word with the question.

    >>> rows = [{"context": f"The {thing} was built in {year}.", "question": f"When was the {thing} built?", "group_id": thing,
    ...          "answers": {"text": [year], "answer_start": [10]}} for thing, year in (("tower", "1889"), ("bridge", "1937"))]
    >>> [(row["question"], row["context"]) for row in unanswered(Dataset.from_list(rows), 0.5)]
    [('When was the tower built?', 'The bridge was built in 1937.')]
    """
    import bm25s

    groups = dict(zip(rows["context"], rows["group_id"], strict=True))
    passages = list(groups)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(passages, show_progress=False), show_progress=False)
    chosen = sorted(Random(f"{seed}:unanswered").sample(range(len(rows)), round(share * len(rows))))
    questions = rows.select(chosen)
    queries = bm25s.tokenize(questions["question"][:], show_progress=False)
    hits = index.retrieve(queries, k=min(_HITS, len(passages)), show_progress=False)
    found: dict[int, str] = {}
    for n, (row, documents, scores) in enumerate(zip(questions, hits.documents, hits.scores, strict=True)):
        near = (passages[int(hit)] for hit, score in zip(documents, scores, strict=True) if score > 0)
        others = (text for text in near if groups[text] != row["group_id"])
        if (passage := next((text for text in others if not _answers(row, text)), None)) is not None:
            found[n] = passage

    def without_answer(row: dict[str, Any], n: int) -> dict[str, Any]:
        return {"context": contexts[n], "answers": NO_ANSWERS}

    contexts = list(found.values())
    kept = questions.select(list(found))
    return kept.map(without_answer, with_indices=True, features=rows.features, desc="unanswered")


def _answers(row: dict[str, Any], passage: str) -> bool:
    return any(find_answer(answer, passage)[1] >= 0 for answer in row["answers"]["text"])
