"""The score by which pairs are ranked: by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hfcf.core import edits
from hfcf.report.measures import pair_score

SOURCE = "The film Jaws was directed by a man born in Ohio."
EVIDENCE = [
    {"title": "Jaws", "text": "Jaws is a film directed by Steven Spielberg."},
    {"title": "Steven Spielberg", "text": "He was born in Ohio."},
]


def claim(after: str, *scores: tuple[str, float], before: str = SOURCE) -> dict[str, Any]:
    named = [{"name": name, "value": value} for name, value in scores]
    return {"claim": after, "evidence": EVIDENCE, "edits": edits.rewrite("claim", before, after), "scores": named}


@pytest.mark.parametrize(
    ("row", "score"),
    [
        # Twelve words with the full stop, one of them replaced: 11/12. Its longest run is shorter than the source's.
        (claim("The film Jaws was directed by a man born in Iowa."), round(11 / 12, 4)),
        (claim("The film Jaws was directed by a man born in Iowa.", ("verifier: REFUTES", 0.6)), round(11 / 12 * 0.6, 4)),
        # The judge is less certain than the verifier; other scores say nothing of the label.
        (
            claim(
                "The film Jaws was directed by a man born in Iowa.",
                ("verifier: REFUTES", 0.6), ("judge 1: REFUTES", 0.5), ("log-probability", -9.0),
            ),
            round(11 / 12 * 0.5, 4),
        ),
        # A piece word for word, nine word edits away; the longest run of the source's claim is 3 of 11 words (born in Ohio).
        (claim("Jaws is a film directed by Steven Spielberg."), round(3 / 12 * (1 - (1 - 0.27273)), 4)),
        # Evidence of its source alone: its claim is not new.
        ({"claim": SOURCE, "evidence": EVIDENCE, "edits": [], "scores": []}, None),
        ({**claim("x"), "edits": None}, None),
        ({**claim("x"), "claim": "Somebody corrected this."}, None),
    ],
)  # fmt: skip
def test_pair_score_by_hand(row: dict[str, Any], score: float | None) -> None:
    assert pair_score(row) == score


def test_a_source_that_is_a_copy_excuses_one() -> None:
    before = "He was born in Ohio."
    assert pair_score(claim("He was born in Iowa.", before=before)) == round(5 / 6, 4)


def test_tasks_without_pieces_are_scored_by_closeness() -> None:
    question = {
        "title": "", "context": "Ada wrote it.", "question": "who wrote them",
        "answers": {"text": ["Ada"], "answer_start": [0]}, "edits": edits.rewrite("question", "who wrote it", "who wrote them"),
        "scores": None,
    }  # fmt: skip
    assert pair_score(question) == round(2 / 3, 4)
