from __future__ import annotations

import random

import pytest
from sklearn.metrics import f1_score

from hfcf.metrics.scores.relation import micro_f1, official_macro_f1, scores

A, A_BACK, B, B_BACK, OTHER = (
    "Cause-Effect(e1,e2)",
    "Cause-Effect(e2,e1)",
    "Member-Collection(e1,e2)",
    "Member-Collection(e2,e1)",
    "Other",
)

# gold \ predicted     A  A_BACK  B  B_BACK  Other
#   A          (8)     5       2  0       0      1
#   A_BACK     (4)     1       2  1       0      0
#   B          (4)     0       0  3       0      1
#   B_BACK     (2)     0       0  1       1      0
#   Other      (6)     1       0  0       1      4
# predicted            7       4  5       2      6
TABLE = {
    A: {A: 5, A_BACK: 2, OTHER: 1},
    A_BACK: {A: 1, A_BACK: 2, B: 1},
    B: {B: 3, OTHER: 1},
    B_BACK: {B: 1, B_BACK: 1},
    OTHER: {A: 1, B_BACK: 1, OTHER: 4},
}
PAIRS = [(gold, predicted) for gold, row in TABLE.items() for predicted, n in row.items() for _ in range(n)]
GOLD, PREDICTED = [gold for gold, _ in PAIRS], [predicted for _, predicted in PAIRS]


def test_micro_f1_by_hand() -> None:
    # Right without Other: 5 + 2 + 3 + 1 = 11; predicted to be a relation: 24 - 6 = 18; relations: 24 - 6 = 18.
    assert micro_f1(GOLD, PREDICTED) == pytest.approx(11 / 18)


def test_the_official_score_by_hand() -> None:
    # Cause-Effect: right 5 + 2 = 7, of 7 + 4 = 11 predictions and of 8 + 4 = 12 rows: F1 = 14 / 23.
    # Member-Collection: right 3 + 1 = 4, of 5 + 2 = 7 predictions and of 4 + 2 = 6 rows: F1 = 8 / 13.
    assert official_macro_f1(GOLD, PREDICTED) == pytest.approx((14 / 23 + 8 / 13) / 2)
    # The wrong direction is a wrong prediction of that type: as another type it would lower that one's precision in its place.
    turned = [A if (gold, predicted) == (A, A_BACK) else predicted for gold, predicted in PAIRS]
    assert official_macro_f1(GOLD, turned) == pytest.approx((18 / 23 + 8 / 13) / 2)


def test_all_scores_to_four_decimals() -> None:
    assert scores(GOLD, PREDICTED) == {"micro_f1": 0.6111, "macro_f1": 0.612, "accuracy": 0.625}


def test_a_type_that_no_row_has_is_no_part_of_the_mean() -> None:
    # Its predictions are wrong relations all the same: one of two is right.
    assert official_macro_f1([A, A], [A, B]) == pytest.approx(2 / 3)
    assert micro_f1([A, A], [A, B]) == pytest.approx(1 / 2)


def test_what_is_not_read_is_not_found() -> None:
    assert micro_f1([A, B], [A, None]) == micro_f1([A, B], [A, OTHER]) == pytest.approx(2 / 3)
    assert official_macro_f1([A, B], [A, None]) == pytest.approx(1 / 2)
    assert scores([OTHER], [None]) == {"micro_f1": 0.0, "macro_f1": 0.0, "accuracy": 0.0}


def test_no_relation_at_all_is_nothing_found() -> None:
    assert scores([], []) == scores([A], [OTHER]) == {"micro_f1": 0.0, "macro_f1": 0.0, "accuracy": 0.0}
    assert scores([OTHER], [OTHER])["accuracy"] == 1.0


@pytest.mark.parametrize("names", [["PHYS", "ART", "GEN-AFF"], ["USED-FOR", "PART-OF", "Other"]])
def test_labels_without_a_direction_are_scored_as_usual(names: list[str]) -> None:
    rng = random.Random(3)
    gold, predicted = ([rng.choice(names) for _ in range(200)] for _ in range(2))
    real = [name for name in names if name != "Other"]
    assert official_macro_f1(gold, predicted) == pytest.approx(f1_score(gold, predicted, labels=real, average="macro"))
    assert micro_f1(gold, predicted) == pytest.approx(f1_score(gold, predicted, labels=real, average="micro"))


def test_as_many_predictions_as_rows() -> None:
    with pytest.raises(ValueError, match="shorter"):
        scores([A, B], [A])
