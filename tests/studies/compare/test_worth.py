"""What counterfactuals are worth in labelled rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from hfcf.studies.compare.grid import SampleTraining, make_grid
from hfcf.studies.compare.worth import worths

ROWS = 200
RIGHT = {100: 100, 200: 120, 400: 140}
"""Right answers of the baseline by size: a doubling adds ten points."""


def cell(method: str, size: int, sample: int, right: int, added: int = 0) -> dict[str, Any]:
    return {
        "recipe": "r", "method": method, "seed": SampleTraining(size, sample, 13), "corpus": "C", "setting": "challenge",
        "ids": "i",
        "rows": ROWS, "gold": "S" * ROWS, "predicted": "S" * right + "R" * (ROWS - right), "train_rows": size + added,
    }  # fmt: skip


def cells(right: int, sizes: dict[int, int] | None = None) -> list[dict[str, Any]]:
    samples = (1, 2)
    baseline = [cell("none", size, sample, n) for (size, n), sample in product((sizes or RIGHT).items(), samples)]
    return [*baseline, *(cell("method", 100, sample, right, added=50) for sample in samples)]


@pytest.mark.parametrize(("right", "rows"), [(120, 100), (110, 41.4), (100, 0), (80, -50), (180, 300)])
def test_the_gain_is_read_off_the_line_of_the_baseline(right: int, rows: float) -> None:
    (challenge, every) = worths(make_grid(cells(right), "none"), "accuracy", resamples=200)
    assert (challenge.setting, every.setting) == ("challenge", None)
    assert (challenge.method, challenge.size, challenge.added, challenge.limit) == ("method", 100, 50, 300)
    assert challenge.doubling == pytest.approx(0.1)
    assert challenge.gain == pytest.approx((right - 100) / ROWS)
    assert challenge.rows == pytest.approx(rows, abs=0.1)
    assert challenge.low <= challenge.rows <= challenge.high <= challenge.limit


def test_columns_on_the_same_rows_are_sizes() -> None:
    of_samples = cells(120)
    columns = [
        {**each, "seed": each["seed"].sample, "corpus": f"{each['seed'].size} rows", "averaged": False} for each in of_samples
    ]
    (first, _), (same, _) = (worths(make_grid(each, "none"), "accuracy", resamples=50) for each in (columns, of_samples))
    assert (first.method, first.size, first.added, first.rows) == ("method", 100, 50, pytest.approx(same.rows))
    others = [{**each, "ids": each["corpus"]} for each in columns]
    assert worths(make_grid(others, "none"), "accuracy", resamples=10) == []


def test_methods_that_add_real_rows_are_sizes() -> None:
    of_samples = cells(120)
    names = {100: "none", 200: "100 further rows", 400: "300 further rows"}
    one_size = [
        {
            **each, "seed": each["seed"].sample, "control": None if each["seed"].size == 100 else "real",
            "method": names[each["seed"].size] if each["method"] == "none" else each["method"],
        }
        for each in of_samples
    ]  # fmt: skip
    for places in (slice(0, None), slice(None, None, -1)):
        grid = make_grid(one_size[places], "none")
        assert [each.method for each in worths(grid, "accuracy", resamples=50)] == ["method", "method"]
        assert worths(grid, "accuracy", resamples=50) == worths(make_grid(of_samples, "none"), "accuracy", resamples=50)
    copies = [{**each, "control": each["control"] and "copies"} for each in one_size]
    assert worths(make_grid(copies, "none"), "accuracy", resamples=10) == []


def test_two_sizes_are_no_curve() -> None:
    assert worths(make_grid(cells(120, {100: 100, 200: 120}), "none"), "accuracy", resamples=10) == []


def test_at_the_largest_size_a_gain_has_no_worth() -> None:
    at_the_largest = [cell("method", max(RIGHT), sample, 190, added=50) for sample in (1, 2)]
    found = worths(make_grid([*cells(120), *at_the_largest], "none"), "accuracy", resamples=10)
    assert {each.size for each in found} == {100}


def test_where_more_rows_add_nothing_a_gain_is_worth_more_than_was_measured() -> None:
    flat = worths(make_grid(cells(120, dict.fromkeys(RIGHT, 100)), "none"), "accuracy", resamples=10)
    assert [each.rows for each in flat] == [300, 300]


def test_a_loss_where_more_rows_lose_is_worth_all_rows() -> None:
    falling = worths(make_grid(cells(90, {100: 100, 200: 98, 400: 96}), "none"), "accuracy", resamples=10)
    assert [each.rows for each in falling] == [-100, -100]


def test_seeds_that_are_missing_are_no_error() -> None:
    more = [{**each, "seed": each["seed"]._replace(seed=14)} for each in cells(120)]
    whole, fewer = (worths(make_grid([*cells(120), *some], "none"), "accuracy", resamples=50) for some in (more, more[1:]))
    assert [each.rows for each in fewer] == pytest.approx([each.rows for each in whole])


def test_rows_of_one_source_are_drawn_together() -> None:
    apart = worths(make_grid(cells(110), "none"), "accuracy", resamples=500)[0]
    sources = [i // 20 for i in range(ROWS)]
    together = worths(make_grid([{**each, "sources": sources} for each in cells(110)], "none"), "accuracy", resamples=500)[0]
    assert together.rows == pytest.approx(apart.rows)
    assert together.high - together.low > apart.high - apart.low
