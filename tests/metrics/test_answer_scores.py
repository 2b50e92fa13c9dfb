"""SQuAD's scores, by cases that were computed by hand as `evaluate-v1.1.py` and SQuAD 2.0's script do."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset

from hfcf.metrics.scores.em_f1 import exact_match, f1, scores
from hfcf.text.normalise import normalise_answer
from hfcf.training.scorers import ANSWERS


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("The  U.S. Army\n", "us army"),
        ("an A-side", "aside"),  # the hyphen goes first, and leaves no space
        ("Theatre a la carte", "theatre la carte"),
        ("19–20", "19–20"),  # not ASCII: it stays
        ("$1,000.50", "100050"),
        ("a", ""),
        ("", ""),
    ],
)
def test_normalised_as_the_official_script_does(text: str, normalised: str) -> None:
    assert normalise_answer(text) == normalised


@pytest.mark.parametrize(
    ("gold", "predicted", "em", "of_words"),
    [
        (["Denver Broncos"], "the Denver Broncos.", 1.0, 1.0),
        (["Denver Broncos", "Broncos"], "Broncos team", 0.0, 2 / 3),  # 1 of 2 words, 1 of 1: 2·½·1 / 1½
        (["in the late 1990s"], "late 1990s and on", 0.0, 4 / 7),  # 2 of 4, 2 of 3 (“the” is gone)
        (["b b c"], "b b b", 0.0, 2 / 3),  # repeated words count as often as both have them
        (["Paris"], "", 0.0, 0.0),
        (["Paris"], "the", 0.0, 0.0),
        ([], "", 1.0, 1.0),
        ([], "Paris", 0.0, 0.0),
        ([""], "", 1.0, 1.0),
        (["A"], "the", 1.0, 1.0),  # nothing is left of either; v1.1's script has F1 0 here
        ({"regex": ["1[89]\\d\\d", "Ada"]}, "1843", 1.0, 1.0),
        ({"regex": ["1[89]\\d\\d"]}, "in 1843", 0.0, 0.0),  # from its start
        ({"regex": []}, "", 1.0, 1.0),
    ],
)
def test_scores_by_hand(gold: Any, predicted: str, em: float, of_words: float) -> None:
    assert exact_match(gold, predicted) == em
    assert f1(gold, predicted) == pytest.approx(of_words)


def test_no_answer_is_an_empty_one() -> None:
    assert exact_match(["Paris"], None) == 0.0
    assert scores([[], ["Paris"]], [None, None]) == {"em": 0.5, "f1": 0.5}
    assert scores([], []) == {"em": 0.0, "f1": 0.0}


def test_a_broken_pattern_is_told() -> None:
    with pytest.raises(ValueError, match=r"'\(Ada' is not a regular expression"):
        exact_match({"regex": ["(Ada"]}, "Ada")


def test_gold_answers_of_rows() -> None:
    rows = Dataset.from_dict(
        {
            "answers": [{"text": ["Ada", "Ada", "King"], "answer_start": []}, {"text": [], "answer_start": []}, None],
            "regex": [False, False, False],
        }
    )
    assert ANSWERS.gold(rows) == [["Ada", "King"], [], []]
    patterns = Dataset.from_dict({"answers": [{"text": ["Ad.", "Byr"], "answer_start": []}], "regex": [True]})
    assert ANSWERS.gold(patterns) == [{"regex": ["Ad.", "Byr"]}]
    assert ANSWERS.right(ANSWERS.gold(patterns), ["ada"]) == [True]
