"""Corner cases: each was wrong once."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset

from hfcf.core.runner import check_limit
from hfcf.core.task import find_problem, get_task
from hfcf.systems.race.edit import _ends, _last, _moved
from hfcf.systems.race.follow import edits_of
from hfcf.text.phrase_match import mentions
from hfcf.training.data import drop_related
from hfcf.training.distractors import fill_evidence
from hfcf.training.verifier import add_nei


def after(text: str, changes: dict[str, str], tagged: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    row = {"evidence": [{"title": "", "text": text}]}
    return [(edit["start"], edit["after"]) for edit in edits_of(row, changes, tagged)]


def test_a_number_inside_a_longer_number_stays() -> None:
    assert after("It has 3 parts, version 3.5, 3,000 units.", {"3": "7"}, ("3",)) == [(7, "7")]
    assert not mentions("It has 3,000 units.", "3")
    assert mentions("It has 3.", "3")


def test_a_numeral_is_no_family_name_and_an_untagged_name_inside_another_stays() -> None:
    assert (_last("Elizabeth II"), _last("Martin Luther King Jr."), _last("Ada Lovelace")) == (None, "King", "Lovelace")
    assert after("Young wrote Young Americans.", {"Young": "Presley"}) == [(0, "Presley")]


def test_a_change_to_itself_is_no_edit() -> None:
    assert after("Smith met Ada.", {"Smith": "Smith", "Ada": "Eve"}, ("Smith", "Ada")) == [(10, "Eve")]


def test_an_entity_inside_a_longer_one_becomes_what_that_became() -> None:
    entity = {"field": "evidence", "piece": 0, "start": 6, "end": 14, "text": "New York", "type": "GPE"}
    edits = [
        {"field": "evidence", "piece": 0, "start": 0, "end": 2, "before": "In", "after": "Near"},
        {"field": "evidence", "piece": 0, "start": 6, "end": 19, "before": "New York City", "after": "Oslo"},
    ]
    moved = _moved(entity, [{"title": "", "text": "Near it, Oslo."}], edits, *_ends(edits))
    assert (moved["start"], moved["end"], moved["text"]) == (8, 12, "Oslo")


def test_marks_of_gold_pieces_stay_parallel() -> None:
    rows = [
        {
            "id": str(i), "group_id": str(i), "claim": "c", "label": "SUPPORTS", "gold": [True, True] + [False] * i,
            "evidence": [{"title": "", "text": f"{i} {j}"} for j in range(2 + i)],
        }
        for i in range(20)
    ]  # fmt: skip
    made = add_nei(Dataset.from_list(rows))
    assert len(made) == 30
    assert all(len(row["gold"]) == len(row["evidence"]) for row in made)


def test_a_bad_row_passes_the_distractors_untouched() -> None:
    features = get_task("verification").features
    rows = [
        {"id": "1", "claim": "Rome fell", "evidence": [{"title": "", "text": None}], "label": "SUPPORTS"},
        {"id": "2", "claim": "Rome fell", "evidence": None, "label": "SUPPORTS"},
    ]
    ds = Dataset.from_list([{**dict.fromkeys(features), **row} for row in rows], features=features)
    made = fill_evidence(ds, [{"title": "", "text": "Rome fell late."}])
    assert made["evidence"][:] == ds["evidence"][:]


def test_null_pieces_are_told_and_a_number_alone_is_evidence() -> None:
    assert find_problem({"evidence": [None]}) == "evidence piece 0 is null"
    assert find_problem({"evidence": [{"title": "Rome", "text": "1994"}]}) is None


def test_rows_of_a_trained_group_are_no_evaluation_rows() -> None:
    def rows(*named: tuple[str, str, str]) -> Dataset:
        return Dataset.from_list(
            [
                {"id": name, "corpus": "c", "group_id": group, "claim": name, "evidence": [{"title": "", "text": text}]}
                for name, group, text in named
            ]
        )

    training = rows(("a", "1", "x"), ("b", "2", "y"))
    assert drop_related(rows(("a", "9", "z"), ("d", "1", "w"), ("e", "8", "Y."), ("f", "7", "v")), training)["id"] == ["f"]


def test_a_limit_of_numpy_is_a_number_of_rows() -> None:
    check_limit(np.int64(2))
    for limit in (0, True, 2.0, "2"):
        with pytest.raises(ValueError, match=r"limit .*\b1\b"):
            check_limit(limit)
