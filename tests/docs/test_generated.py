"""Tables and figures that repeat the code or the results are current: `make docs` writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import generate
import pytest
from pages import ROOT, each_page, name_of, text_of
from parts import figures, plots, ratings


@each_page
def test_generated_parts_are_current(page: Path) -> None:
    assert generate.rewrite(text_of(page), name_of(page)) == text_of(page), "run make docs"


def test_every_table_has_a_page_and_every_block_ends() -> None:
    names: list[str] = []
    for page in generate.pages():
        text = text_of(page)
        begun = re.findall(r"<!-- generated: (\w+) -->", text)
        assert len(begun) == text.count("<!-- end -->"), page.name
        outside = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
        marked = [found for found in figures.FIGURE.finditer(text) if found[1]]
        assert outside.count("<!-- n: ") == outside.count("<!-- /n -->") == len(marked), page.name
        names += begun
    assert set(names) == set(generate.TABLES)


def test_the_counts_of_ratings_are_those_of_the_results() -> None:
    assert text_of(ROOT / "hfcf" / "hub" / "rated_pairs.json") == ratings.count_ratings(), "run make docs"


def test_a_stale_page_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("docs", "results", "hfcf/hub"):
        (tmp_path / folder).mkdir(parents=True)
    pair = {"preset": "offline", "corpus": "fever", "date": "2026-01-01", "label": "x", "sense": 1, "counterfactual": 1}
    pairs = [
        {**pair, "system": "race", "version": "after", "read_as": "x"},
        {**pair, "system": "race", "version": "after", "read_as": "y"},
        {**pair, "system": "race", "version": "before", "read_as": "x"},
    ]
    (tmp_path / "results" / "rated_pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    page = tmp_path / "README.md"
    page.write_text(
        "<!-- generated: provenance -->\nold\n<!-- end -->\nRight: <!-- n: rated.RACE.label -->9 %<!-- /n -->.\n", encoding="utf-8"
    )
    monkeypatch.setattr(ratings, "RESULTS", tmp_path / "results")
    whole = {"hfcf/hub/rated_pairs.json": lambda _: ratings.count_ratings()}
    assert generate.main(["--check"], tmp_path, whole) == 1
    assert generate.main([], tmp_path, whole) == 0
    assert "| `source_id` |" in text_of(page)
    assert "Right: <!-- n: rated.RACE.label -->50 %<!-- /n -->." in text_of(page)
    assert generate.main(["--check"], tmp_path, whole) == 0
    counted = json.loads(text_of(tmp_path / "hfcf" / "hub" / "rated_pairs.json"))["race"]["offline"]
    numbers = {"pairs": 2, "label": 1, "all": 1, "close": 2, "both": 1}
    assert counted == {"corpus": "fever", "date": "2026-01-01", **numbers}


@pytest.mark.parametrize("name", [name for name in generate.files() if name.endswith((".md", ".html"))])
def test_wholly_generated_pages_are_current(name: str) -> None:
    assert generate.files()[name](ROOT / name) == text_of(ROOT / name), "run make docs"


@pytest.mark.parametrize("name", plots.plots())
def test_plots_show_what_is_stored_and_are_small(name: str) -> None:
    plot = plots.plots()[name]()
    for file in (f"{name}.svg", f"{name}_dark.svg"):
        svg = text_of(ROOT / plots.FOLDER / file)
        held = plots.data_of(svg)
        assert (held["about"], held["data"]) == (plot.about, json.loads(json.dumps(plot.data))), "run make docs"
        assert len(svg.encode()) < 100_000


def test_the_same_data_give_the_same_plot(tmp_path: Path) -> None:
    first, again = (make(tmp_path / "none.svg") for make in [plots.files()[f"{plots.FOLDER}/judge_curve.svg"]] * 2)
    assert first == again
    dark = plots.files()[f"{plots.FOLDER}/judge_curve_dark.svg"](tmp_path / "none.svg")
    assert plots.data_of(dark) == plots.data_of(first)
    assert "#000000" in first
    assert "#000000" not in dark


def test_the_page_of_pairs_holds_every_pair_of_today_s_versions_and_is_small() -> None:
    page = ratings.pairs_page()
    (held,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    names, *lines = json.loads(held)
    for column in map(names.index, ("source", "new")):
        for line in lines:
            if isinstance(line[column], int):  # the number of the line that has the text
                line[column] = lines[line[column]][column]
    stored = [json.loads(line) for line in text_of(ROOT / "results" / "rated_pairs.jsonl").splitlines()]
    today = [row for row in stored if row["version"] == "after" and "," not in row["system"]]
    assert [dict(zip(names, line, strict=True)) for line in lines] == [{name: row[name] for name in names} for row in today]
    assert len(page.encode()) < 300_000
    assert not re.search(r'(?:src|href)="\w+:', page), "it needs no other host"


def test_no_plot_is_left_of_results_that_are_gone() -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / plots.FOLDER).iterdir()}
    assert there == set(plots.files())


@pytest.mark.parametrize("key", ["rated.race.lable", "bench.speed.x", "compared.race.x"])
def test_a_figure_that_no_result_has_is_an_error_that_names_the_page(key: str) -> None:
    with pytest.raises(figures.UnknownFigureError, match=rf"^start/page\.md: .*{re.escape(key)}"):
        generate.rewrite(f"<!-- n: {key} -->1<!-- /n -->", "start/page.md")
