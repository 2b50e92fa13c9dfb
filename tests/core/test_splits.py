from __future__ import annotations

import random

import pytest
from datasets import Dataset

from hfcf.core.splits import connected, group_safe_split, regroup, text_keys
from hfcf.text.normalise import normalise


def test_rows_are_connected_through_others() -> None:
    assert connected([["a"], ["b"], ["c"], ["a", "c"], [], ["b", "d"]]) == [0, 1, 0, 0, 4, 1]
    assert connected([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_connections_are_those_of_a_search_over_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    rows = [[rng.randrange(60) for _ in range(rng.randrange(1, 3))] for _ in range(60)]
    group = list(range(60))
    for _ in range(60):
        for i in range(60):
            group[i] = min(group[j] for j in range(60) if set(rows[i]) & set(rows[j]))
    assert connected(rows) == group
    assert 1 < len(set(group)) < 60


def test_many_rows_are_connected_in_linear_time() -> None:
    assert set(connected([i, i + 1] for i in range(100_000))) == {0}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("The U.S.", "the us", True),
        ("Straße 5", "STRASSE 5", True),
        ("in 1994", "in 1995", False),
        ("東京", "京都", False),
        ("Rome -LRB- Italy -RRB- is old .", "Rome (Italy) is old.", True),
        ("rome -lrb- italy -rrb-", "Rome [Italy]", True),
        ("-LSB- 1 -RSB- and -LCB- 2 -RCB-", "[1] and {2}", True),
        ("the left -- or -LRB- right", "the left — or (right", True),
        ("``Help!'' , it 's", "“Help!”, it’s", True),
        ("1990 -- 1995", "1990–1995", True),
        ("Beyonce\u0301", "Beyonc\u00e9", True),
        ("a\u00a0ﬁve ½", "a five 1⁄2", True),
        ("ＡＢＣ １", "abc 1", True),
        ("Rome (Italy)", "Rome (Spain)", False),
        ("lrb", "(", False),
    ],
)
def test_texts_are_compared_by_letters_and_digits(one: str, other: str, equal: bool) -> None:
    assert (normalise(one) == normalise(other)) is equal


def test_rows_without_evidence_share_none() -> None:
    rows = made(("a", "1", "Rome is old.", ""), ("a", "2", "Paris is old.", " . "))
    assert text_keys(rows) == [[("claim", "romeisold")], [("claim", "parisisold")]]
    assert list(regroup(rows)) == ["1", "2"]


def made(*rows: tuple[str, str, str, str]) -> Dataset:
    """Rows of (corpus, group, claim, evidence)."""
    keys = ("corpus", "group_id", "claim")
    return Dataset.from_list(
        [{**dict(zip(keys, row[:3], strict=True)), "evidence": [{"title": "", "text": row[3]}]} for row in rows]
    )


def test_rows_that_share_group_claim_or_evidence_are_one_group() -> None:
    found = regroup(
        made(
            ("a", "1", "Rome is old.", "e1"),
            ("a", "1", "Other claim.", "e2"),
            ("b", "9", "rome is old", "e3"),
            ("b", "8", "Third claim.", "E2!"),
            ("b", "7", "Fourth claim.", "e4"),
        )
    )
    assert list(found) == ["1", "1", "1", "1", "7"]


def test_groups_are_named_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made(*(("a", str(i), f"Claim number {i % 7}.", f"e{i}") for i in range(20))).select(range(19, -1, -1))
    whole = list(regroup(rows))
    assert len(set(whole)) == 7
    monkeypatch.setattr("hfcf.core.splits.TABLE_ROWS", 3)
    assert list(regroup(rows)) == whole
    split = group_safe_split(rows, 0.4)
    assert sum(map(len, split.values())) == 20


def test_a_split_keeps_groups_whole_and_loses_nothing() -> None:
    ds = Dataset.from_dict({"group_id": [f"g{i // 3}" for i in range(300)], "i": range(300)})
    split = group_safe_split(ds, 0.2, name="held")
    assert not set(split["train"]["group_id"]) & set(split["held"]["group_id"])
    assert sorted([*split["train"]["i"], *split["held"]["i"]]) == list(range(300))
    assert 30 < len(split["held"]) < 90
    assert len(group_safe_split(ds, 0.2, seed=14)["validation"]) > 0
    assert group_safe_split(ds, 0.2, seed=14)["validation"]["i"][:] != split["held"]["i"][:]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 30)])
def test_nothing_or_everything_is_held_out(share: float, expected: int) -> None:
    ds = Dataset.from_dict({"group_id": [str(i) for i in range(30)]})
    assert len(group_safe_split(ds, share)["validation"]) == expected


def test_new_rows_move_no_group_to_the_other_side() -> None:
    few, many = ({"group_id": [str(i) for i in range(n)]} for n in (50, 100))
    before = set(group_safe_split(Dataset.from_dict(few), 0.3)["validation"]["group_id"])
    after = set(group_safe_split(Dataset.from_dict(many), 0.3)["validation"]["group_id"])
    assert before == after & set(few["group_id"])


def test_rows_that_repeat_each_other_fall_on_one_side() -> None:
    claims = made(*((f"c{n}", f"{n}{i}", f"Claim {i}.", f"e{n}{i}") for i in range(20) for n in range(3)))
    pairs = [(0, 1), (1, 2), (0, 2)]
    sentences = [
        {
            "id": f"{i}:{n}", "group_id": f"{i}:{n}", "corpus": "own", "label": "met",
            "tokens": f"Ann{i} met Bob in Rome .".split(),
            "head": {"start": head, "end": head + 1, "type": None}, "tail": {"start": tail, "end": tail + 1, "type": None},
        }
        for i in range(20)
        for n, (head, tail) in enumerate(pairs)
    ]  # fmt: skip
    for rows, text in ((claims, "claim"), (Dataset.from_list(sentences), "tokens")):
        sides = [{str(value) for value in side[text]} for side in group_safe_split(rows, 0.5).values()]
        assert all(sides)
        assert not sides[0] & sides[1]


def test_a_salted_part_of_a_half_is_a_part_of_it() -> None:
    ds = Dataset.from_dict({"group_id": [str(i) for i in range(2000)]})
    for half in group_safe_split(ds, 0.5).values():
        part = len(group_safe_split(half, 0.1, salt="held out:")["validation"]) / len(half)
        assert 0.06 < part < 0.14
