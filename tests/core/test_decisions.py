"""What decides about scores: equal ones, and edges."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hfcf.core.candidates import scored
from hfcf.core.decisions import DIGITS, TOLERANCE, best, exceeds, ranked, reaches
from hfcf.engines.classifier import choose

PAIRS = [("b", 0.5), ("a", 0.49995), ("c", 0.9), ("d", 0.49985)]


def test_what_is_equal_to_a_threshold_reaches_it_and_does_not_exceed_it() -> None:
    assert reaches(0.7, 0.7)
    assert reaches(0.6999, 0.7)
    assert not reaches(0.69989, 0.7)
    assert not exceeds(0.7, 0.7)
    assert not exceeds(0.7001, 0.7)
    assert exceeds(0.70011, 0.7)


def test_a_published_score_as_a_threshold_accepts_its_row() -> None:
    draw = random.Random(0)
    scores = [draw.random() for _ in range(1000)]
    published = [scored("verifier: SUPPORTS", score)["value"] for score in scores]
    assert all(round(value, DIGITS) == value for value in published)
    assert all(reaches(score, value) for score, value in zip(scores, published, strict=True))


def test_of_equal_scores_the_least_text_is_best_in_any_order() -> None:
    for seed in range(20):
        shuffled = random.Random(seed).sample(PAIRS, len(PAIRS))
        assert best(shuffled[:], lambda pair: pair[1], lambda pair: pair[0])[0] == "c"
        assert best([pair for pair in shuffled if pair[0] != "c"], lambda pair: pair[1], lambda pair: pair[0])[0] == "a"
        # d equals a, and not b, the highest of its group.
        assert [text for text, _ in ranked(shuffled, lambda pair: pair[1], lambda pair: pair[0])] == ["c", "a", "b", "d"]


def test_best_needs_something_to_choose_from() -> None:
    with pytest.raises(ValueError, match="empty"):
        best([], float, str)


def test_equal_labels_are_chosen_by_name_whatever_a_batch_adds() -> None:
    for noise in (-3e-6, 0.0, 3e-6):
        assert choose({"REFUTES": 0.5 + noise, "SUPPORTS": 0.5 - noise}, ["REFUTES", "SUPPORTS"]) == "SUPPORTS"


def test_the_tolerance_is_wider_than_the_rounding_of_answers() -> None:
    from hfcf.engines.classifier import ROUND

    noise: Any = 1e-5
    assert 10**-ROUND + noise < TOLERANCE
