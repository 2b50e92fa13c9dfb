from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas
from made_up import CORPORA, cell, full
from pandas import DataFrame

from hfcf.studies.compare.frame import Grid, make_grid
from hfcf.studies.compare.page import markdown as page
from hfcf.studies.compare.stats import differences
from hfcf.studies.compare.tables import score_texts, spread, table

GOLDEN = Path(__file__).parent / "golden.md"
INTRINSIC = [
    {"Method": "RACE", "Flip": 0.94571, "Sim": 0.577, "Div": 11.19, "M.h.": 0.57634, "n": 1200},
    {"Method": "−FILTER", "Flip": 0.8388, "Sim": None, "Div": float("nan"), "n": 1400},
]


def markdown(grid: Grid, *args: Any) -> str:
    return page(grid, *args, repeats=("claim", "evidence"))


def tiny() -> list[dict[str, object]]:
    """None and RACE, two seeds, two corpora; one cell is missing. RACE is always right on FEVER."""
    sizes = {"counterfactuals": 112, "train_rows": 624}
    fever = {"expected": {"SUPPORTS": 2, "REFUTES": 2}}
    table_8 = {"SUPPORTS": 596, "REFUTES": 573}
    fm2 = {"expected": table_8, "available_labels": table_8, "removed_as_overlap": 3}
    return [
        cell("None", 13, "FEVER", "in-domain", "SSRR", "RRSS", **fever),
        cell("None", 14, "FEVER", "in-domain", "SSRR", "RRSS", **fever),
        cell("RACE", 13, "FEVER", "in-domain", "SSRR", "SSRR", **fever, **sizes),
        cell("RACE", 14, "FEVER", "in-domain", "SSRR", "SSRR", **fever, **sizes),
        cell("None", 13, "FM2", "challenge", "SSSR", "SSSS", **fm2),
        cell("None", 14, "FM2", "challenge", "SSSR", "SSRR", **fm2),
        cell("RACE", 13, "FM2", "challenge", "SSSR", "SSSS", **fm2, **sizes),
    ]


def test_golden_markdown() -> None:
    grid = make_grid(tiny(), "None")
    text = markdown(grid, differences(grid, 200), INTRINSIC, "compare_race")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_order_of_cells_does_not_matter_once_methods_and_corpora_are_given() -> None:
    cells = full()
    there, back = (make_grid(some, "None", ["None", "EDA", "RACE"], corpora=CORPORA) for some in (cells, cells[::-1]))
    assert markdown(there, differences(there, 100)) == markdown(back, differences(back, 100))
    assert there.long.equals(back.long)


def test_csv_reads_back() -> None:
    cells = full()
    grid = make_grid(cells, "None")
    table = pandas.read_csv(io.StringIO(grid.long.to_csv(index=False)), keep_default_na=False)  # a method is called "None"
    wide = table.pivot(index=["method", "seed", "corpus"], columns="metric", values="value")
    assert len(wide) == len(cells)
    for made in cells:
        row = wide.loc[made["method"], made["seed"], made["corpus"]]
        assert all(row[name] == made[name] for name in ("accuracy", "macro_f1", "rows", "train_rows"))


def test_a_table_without_cells() -> None:
    grid = make_grid([], "None", ["None", "RACE"], [13, 14], CORPORA)
    text = markdown(grid, differences(grid))
    assert "**Partial:** 24 of 24 cells (method × seed × corpus) are missing: None × 13 × HoVer;" in text
    assert "; and 14 more." in text
    assert "| RACE | – | – | – | – | – | – |" in text
    assert grid.long.empty


def test_one_seed_has_no_deviation_and_no_mark() -> None:
    grid = make_grid([c for c in full() if c["seed"] == 0], "None")
    text = markdown(grid, differences(grid, 100))
    assert "One seed (0): nothing is known about other seeds" in text
    assert "±" not in text
    assert "]\\*" not in text


def test_pipes_and_line_breaks_stay_in_their_cell() -> None:
    cells = [{**c, "method": "a | b\nc"} if c["method"] == "RACE" else c for c in full()]
    grid = make_grid(cells, "None")
    lines = [line for line in markdown(grid, differences(grid, 100)).splitlines() if line.startswith(r"| a \| b c |")]
    assert len(lines) == 3, "of two metrics, and of the training rows"


def test_a_release_that_differs_says_how() -> None:
    cells = [{**c, "expected": {"SUPPORTS": 1, "REFUTES": 3}} for c in tiny() if c["corpus"] == "FEVER"]
    grid = make_grid(cells, "None")
    assert "| differs: 2 SUPPORTS instead of 1, 2 REFUTES instead of 3 |" in markdown(grid, [])


def test_without_a_count_of_the_paper_there_is_no_column_for_it() -> None:
    text = markdown(make_grid(full(), "None"), [])
    assert "| Corpus | Setting | There | Evaluated | By label | Removed as overlapping |\n" in text
    assert "Table 8" not in text
    assert "Is it that set?" not in text


def test_cells_that_did_not_look_for_overlaps_claim_nothing() -> None:
    cells = [{**c, "removed_as_overlap": None} for c in full()]
    text = markdown(make_grid(cells, "None"), [])
    assert "Evaluated rows share no" not in text
    assert "Not every cell says whether rows" in text


def test_marks_and_counts_of_a_column() -> None:
    def marked(scores: dict[str, list[float]], expected: int, *starred: tuple[str, str]) -> dict[str, str]:
        values = DataFrame(
            [(method, "FM2", score) for method in scores for score in scores[method]], columns=["method", "corpus", "value"]
        )
        texts = score_texts(values, "corpus", expected, starred, second=True)
        return {method: text for (method, _), text in texts.items()}

    whole = marked({"none": [0.5, 0.6], "EDA": [0.5], "RACE": [0.7, 0.7]}, 2, ("RACE", "FM2"))
    assert whole == {"none": "<u>55.0 ± 7.1</u>", "EDA": "50.0 (1 of 2)", "RACE": r"**70.0 ± 0.0**\*"}
    assert marked({"a": [0.663], "b": [0.663], "c": [0.628]}, 1) == {"a": "**66.3**", "b": "**66.3**", "c": "<u>62.8</u>"}


def test_numbers_on_which_cells_differ_are_a_range() -> None:
    assert spread([{"rows": 1000}, {"rows": 1200}], "rows") == "1,000–1,200"
    assert spread([{"rows": None}], "rows") == "–"


def test_a_table_escapes_its_header() -> None:
    assert table(["|D|"], [["1 | 2"]]) == "| \\|D\\| |\n|---|\n| 1 \\| 2 |"


def test_nothing_below_the_majority_label_is_the_best() -> None:
    cells = [
        cell("None", 1, "FM2", "challenge", "SSSR", "SRRR"),
        cell("RACE", 1, "FM2", "challenge", "SSSR", "SSRR", age="of unknown version"),
        cell("None", 1, "FEVER", "in-domain", "SSSR", "SSSR"),
        cell("RACE", 1, "FEVER", "in-domain", "SSSR", "SSSS"),
    ]
    grid = make_grid(cells, "None")
    text = markdown(grid, [])
    # Equal is not below.
    assert "| *majority label* | 75.0 | 75.0 |\n| None | **100.0** | 50.0 |\n| RACE | 75.0 | **75.0**† |" in text
    cells[1] = cell("RACE", 1, "FM2", "challenge", "SSSR", "RSRR")
    assert "| None | **100.0** | 50.0 |\n| RACE | 75.0 | 50.0 |" in markdown(make_grid(cells, "None"), [])
