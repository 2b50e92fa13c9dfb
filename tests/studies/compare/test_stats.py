from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_up import cell, draw, full

from hfcf.studies.compare.grid import Grid, make_grid
from hfcf.studies.compare.stats import Difference, differences, holm, paired_bootstrap


def two(none: list[str], race: list[str], gold: str = "SSRR") -> list[dict[str, Any]]:
    """Cells of two methods on one corpus, from their predictions by seed."""
    both = {"None": none, "RACE": race}
    return [cell(method, seed, "FM2", "challenge", gold, said) for method, all_ in both.items() for seed, said in enumerate(all_)]


def test_holm_by_hand() -> None:
    # Sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, and never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_identical_methods_differ_by_exactly_nothing() -> None:
    one = [one for one in full(("None",)) if one["seed"] < 2]
    found = differences(make_grid([*one, *({**c, "method": "RACE"} for c in one)], "None"), resamples=500)
    assert len(found) == 2 * (6 + 2 + 1)  # metrics × (corpora, settings of more than one corpus, all)
    assert {(d.value, d.low, d.high, d.p, d.beyond_noise) for d in found} == {(0.0, 0.0, 0.0, 1.0, False)}


def test_always_right_against_always_wrong() -> None:
    found = differences(make_grid(two(["RRSS"] * 3, ["SSRR"] * 3), "None"), resamples=200)
    assert [(d.value, d.low, d.high, d.beyond_noise) for d in found if d.metric == "accuracy"] == [(1.0, 1.0, 1.0, True)]


def test_observed_differences_by_hand() -> None:
    accuracy, f1 = paired_bootstrap(make_grid(two(["SSSS", "SSRS"], ["SSRR", "SSRS"]), "None"), "RACE", resamples=200)
    assert accuracy.value == pytest.approx((0.5 + 0) / 2)
    assert f1.value == pytest.approx((1 - (2 / 3 + 0) / 2 + 0) / 2)
    assert accuracy.seeds == (0, 1)


def test_interval_of_one_seed_is_that_of_rows_drawn_one_by_one() -> None:
    random = np.random.default_rng(5)
    cells = draw(random, 150, {"None": 0.6, "RACE": 0.7}, seeds=1)
    none, race = (np.array([int(a == b) for a, b in zip(c["gold"], c["predicted"], strict=True)]) for c in cells)
    drawn = [(race - none)[random.integers(0, 150, 150)].mean() for _ in range(4000)]
    found = paired_bootstrap(make_grid(cells, "None"), "RACE")[0]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.012)
    assert found.p == 1.0  # nothing is known of other seeds


def test_three_seeds_that_disagree_reach_from_the_worst_to_the_best() -> None:
    gold = "SR" * 20
    wrong = gold.translate(str.maketrans("SR", "RS"))
    said = [wrong, gold[:20] + wrong[20:], gold]  # 0, 0.5 and 1 right, whatever else is drawn
    found = paired_bootstrap(make_grid(two([wrong] * 3, said, gold), "None"), "RACE")[0]
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    # t = 0.5 / sqrt(0.25 / 3) with two degrees of freedom, were it not for the rows.
    assert 0.2 < found.p < 0.25


def test_average_is_of_corpora_not_of_rows() -> None:
    big = two(["RRSS" * 10] * 2, ["SSRR" * 10] * 2, "SSRR" * 10)
    small = [{**c, "corpus": "VitaminC"} for c in two(["SSRR"] * 2, ["SSRR"] * 2)]
    overall = [d for d in paired_bootstrap(make_grid([*big, *small], "None"), "RACE", 200) if d.corpus is None]
    assert [(d.setting, d.value, d.low, d.high) for d in overall if d.metric == "accuracy"] == [(None, 0.5, 0.5, 0.5)]


def test_only_shared_seeds_are_read_and_said() -> None:
    cells = [
        c for c in full(("None", "RACE")) if (c["method"], c["seed"], c["corpus"]) not in (("RACE", 0, "FM2"), ("None", 2, "FEVER"))
    ]
    seeds = {(d.setting, d.corpus): d.seeds for d in paired_bootstrap(make_grid(cells, "None"), "RACE", 100)}
    assert seeds["challenge", "FM2"] == (1, 2)
    assert seeds["in-domain", "FEVER"] == seeds["in-domain", None] == (0, 1)
    assert seeds["in-domain", "HoVer"] == (0, 1, 2)
    assert seeds[None, None] == (1,)


def test_a_corpus_without_shared_seeds_has_no_difference_and_no_average() -> None:
    cells = [c for c in full(("None", "RACE")) if not (c["corpus"] == "FM2" and c["method"] == "RACE")]
    places = {(d.setting, d.corpus) for d in paired_bootstrap(make_grid(cells, "None"), "RACE", 100)}
    assert ("challenge", "FM2") not in places
    assert (None, None) not in places
    assert ("in-domain", None) in places


def test_same_seed_same_numbers_and_no_global_state() -> None:
    grid = make_grid(full(), "None")
    before = np.random.get_state()[1].tolist()
    found = differences(grid, 300)
    assert differences(grid, 300) == found
    assert differences(grid, 300, seed=1) != found
    assert np.random.get_state()[1].tolist() == before


def test_a_corpus_does_not_depend_on_what_else_is_there() -> None:
    def numbers(found: list[Difference]) -> list[tuple[float, ...]]:
        return [d[5:9] for d in found if d.corpus == "FM2" and d.method == "RACE"]

    cells = full()
    alone = [c for c in cells if c["corpus"] == "FM2" and c["method"] != "EDA"]
    assert numbers(differences(make_grid(cells, "None"), 300)) == numbers(differences(make_grid(alone, "None"), 300))


@pytest.mark.parametrize(("shake", "least"), [(0.0, 0.93), (0.1, 0.6)])
def test_coverage_without_a_true_difference(shake: float, least: float) -> None:
    """Where seeds are the only noise three of them cover about 75 %, as the docstring says; the p value holds its level anyway."""
    random = np.random.default_rng(11)
    times, covered, small = 120, 0, 0
    for _ in range(times):
        found = paired_bootstrap(make_grid(draw(random, 200, {"None": 0.7, "RACE": 0.7}, 3, shake), "None"), "RACE", 300)[0]
        covered += found.low <= 0 <= found.high
        small += found.p < 0.05
    assert covered / times >= least
    assert small / times <= 0.11


def test_a_large_difference_is_beyond_noise_and_a_small_one_is_not() -> None:
    random = np.random.default_rng(2)
    found = differences(make_grid(draw(random, 400, {"None": 0.6, "EDA": 0.61, "RACE": 0.85}, 3, 0.005), "None"), 1000)
    assert {d.method: d.beyond_noise for d in found if d.metric == "accuracy"} == {"EDA": False, "RACE": True}


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"setting": "in-domain"}, {"predicted": "S"}, {"gold": ""}, {"ids": "others"}, {"method": "other"}]
)
def test_a_bad_cell_is_named(change: dict[str, Any]) -> None:
    cells = full()
    cells[-1].update(change)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        make_grid(cells, "None", ["None", "EDA", "RACE"])
    assert f"{cells[-1]['method']} × {cells[-1]['seed']} × FM2" in str(error.value)


def test_a_grid_needs_its_baseline_and_known_settings() -> None:
    for facts, settings in (("EDA", {"methods": ["EDA"]}), ("elsewhere", {"corpora": {"FM2": "elsewhere"}})):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            make_grid([], "None", **settings)
        assert facts in str(error.value)


def test_a_corpus_that_stands_in_another_counts_in_no_average() -> None:
    cells = [
        {"setting": "challenge", "corpus": corpus, "ids": corpus, "gold": "SR", "seed": 13, "method": method, **answers}
        for corpus, right in (("one", True), ("two", False), ("more of one", True))
        for method, answers in (
            ("None", {"predicted": "RS", "correct": "00"}),
            ("RACE", {"predicted": "SR", "correct": "11"} if right else {"predicted": "RS", "correct": "00"}),
        )
    ]
    for averaged, mean in ((True, 2 / 3), (False, 1 / 2)):
        cells = [{**each, "averaged": averaged or each["corpus"] != "more of one"} for each in cells]
        found = paired_bootstrap(make_grid(cells, "None"), "RACE", resamples=50)
        (average,) = [one.value for one in found if one.corpus is None and one.metric == "accuracy"]
        assert average == pytest.approx(mean)
        assert len([one for one in found if one.corpus and one.metric == "accuracy"]) == 3


def of_sources(counterfactuals: int, numbers: bool = True, only: bool = False) -> Grid:
    """Twelve sources; the method is right on the last six, and the first of these has many counterfactuals."""
    sizes = [1] * 6 + [counterfactuals] + [1] * 5
    names = [name for name, size in enumerate(sizes) for _ in range(size)]
    gold = "S" * len(names)
    cells = two(["R" * len(names)] * 3, ["".join("RS"[name > 5] for name in names)] * 3, gold)
    return make_grid([{**each, "sources": [0] * len(names) if only else names} if numbers else each for each in cells], "None")


def test_counterfactuals_of_a_source_are_drawn_together() -> None:
    (together, *_), (apart, *_) = (paired_bootstrap(of_sources(50, numbers), "RACE") for numbers in (True, False))
    assert together.value == apart.value == pytest.approx(55 / 61)
    # Without the source of 50, which (11/12)^12 = 35 % of the samples lack, about half of the rest is right.
    assert together.low < 0.4
    assert apart.low > 0.8
    assert together.p > 10 * apart.p


def test_sources_of_one_counterfactual_each_change_nothing() -> None:
    assert paired_bootstrap(of_sources(1), "RACE", 300) == paired_bootstrap(of_sources(1, numbers=False), "RACE", 300)


def test_of_one_source_nothing_is_beyond_noise() -> None:
    found = paired_bootstrap(of_sources(3, only=True), "RACE", 200)
    assert {each.p for each in found} == {1.0}
