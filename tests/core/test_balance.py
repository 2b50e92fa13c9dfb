"""Labels that are skewed, and rows drawn so that they are not."""

from __future__ import annotations

from collections import Counter

import pytest
from datasets import ClassLabel, Dataset, Features, Value

import hfcf
from hfcf.metrics.label_balance import describe_skew

LABELS = ["REFUTES"] * 9 + ["SUPPORTS"] * 3 + [None]


def test_balanced_rows_are_as_many_of_each_label_in_their_order() -> None:
    rows = Dataset.from_dict({"id": [str(i) for i in range(len(LABELS))], "label": LABELS})
    drawn = hfcf.balance(rows)
    assert Counter(drawn["label"]) == {"REFUTES": 3, "SUPPORTS": 3}
    assert [int(name) for name in drawn["id"]] == sorted(int(name) for name in drawn["id"])
    assert drawn["id"][:] == hfcf.balance(rows)["id"][:]
    assert any(hfcf.balance(rows, seed=seed)["id"][:] != drawn["id"][:] for seed in range(5))
    assert drawn.features == rows.features


def test_classes_are_balanced_and_unlabelled_tasks_refused() -> None:
    features = Features({"label": ClassLabel(names=["no", "yes"]), "text": Value("string")})
    rows = Dataset.from_dict({"label": [0, 0, 0, 1], "text": list("abcd")}, features=features)
    assert sorted(hfcf.balance(rows)["label"]) == [0, 1]
    assert len(hfcf.balance(rows.select([]))) == 0
    with pytest.raises(ValueError, match="label"):
        hfcf.balance(rows.remove_columns("label"))


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ({"REFUTES": 90, "SUPPORTS": 30}, ["90 REFUTES", "30 SUPPORTS", "30 of each"]),
        ({"REFUTES": 61, "SUPPORTS": 30}, ["61 REFUTES"]),
        ({"REFUTES": 1200}, ["all 1,200 are REFUTES"]),
        ({"a": 9, "b": 5, "c": 4, "d": 1}, ["9 a, 1 d"]),
    ],
)
def test_skewed_labels_are_said(counts: dict[str, int], shown: list[str]) -> None:
    line = describe_skew(counts)
    assert all(text in line for text in shown), line


@pytest.mark.parametrize("counts", [{}, {"REFUTES": 60, "SUPPORTS": 30}, {"a": 1, "b": 2, "c": 2}])
def test_even_labels_are_not(counts: dict[str, int]) -> None:
    assert describe_skew(counts) == ""
