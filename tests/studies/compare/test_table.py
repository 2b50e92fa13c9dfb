from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from made_up import CORPORA, cell, full

from hfcf.studies.compare.grid import Layout, lay_out
from hfcf.studies.compare.set_page import csv_columns
from hfcf.studies.compare.set_page import markdown as page
from hfcf.studies.compare.stats import differences
from hfcf.studies.compare.tables import csv_text

GOLDEN = Path(__file__).parent / "golden.md"
INTRINSIC = [
    {"Method": "RACE", "Flip": 0.94571, "Sim": 0.577, "Div": 11.19, "M.h.": 0.57634, "n": 1200},
    {"Method": "−FILTER", "Flip": 0.8388, "Sim": None, "Div": float("nan"), "n": 1400},
]


def markdown(layout: Layout, *args: Any) -> str:
    return page(layout, *args, repeats=("claim", "evidence"))


def long_csv(layout: Layout) -> str:
    return csv_text(layout.cells.values(), csv_columns(layout))


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
    layout = lay_out(tiny(), "None")
    text = markdown(layout, differences(layout, 200), INTRINSIC, "compare_race")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_order_of_cells_does_not_matter_once_methods_and_corpora_are_given() -> None:
    cells = full()
    there, back = (lay_out(some, "None", ["None", "EDA", "RACE"], corpora=CORPORA) for some in (cells, cells[::-1]))
    assert markdown(there, differences(there, 100)) == markdown(back, differences(back, 100))
    assert long_csv(there) == long_csv(back)


def test_csv_reads_back() -> None:
    cells = full()
    layout = lay_out(cells, "None")
    rows = list(csv.DictReader(io.StringIO(long_csv(layout))))
    assert len(rows) == len(cells)
    assert list(rows[0]) == csv_columns(layout)
    by_key = {(c["method"], str(c["seed"]), c["corpus"]): c for c in cells}
    for row in rows:
        its = by_key[row["method"], row["seed"], row["corpus"]]
        assert float(row["accuracy"]) == its["accuracy"]
        assert float(row["macro_f1"]) == its["macro_f1"]
        assert int(row["rows"]) == its["rows"]


def test_a_table_without_cells() -> None:
    layout = lay_out([], "None", ["None", "RACE"], [13, 14], CORPORA)
    text = markdown(layout, differences(layout))
    assert "**Partial:** 24 of 24 cells (method × seed × corpus) are missing: None × 13 × HoVer;" in text
    assert "; and 14 more." in text
    assert "| RACE | – | – | – | – | – | – | – |" in text
    assert long_csv(layout).count("\n") == 1


def test_one_seed_has_no_deviation_and_no_mark() -> None:
    layout = lay_out([c for c in full() if c["seed"] == 0], "None")
    text = markdown(layout, differences(layout, 100))
    assert "One seed (0): nothing is known about other seeds" in text
    assert "±" not in text
    assert "]\\*" not in text


def test_pipes_and_line_breaks_stay_in_their_cell() -> None:
    cells = [{**c, "method": "a | b\nc"} if c["method"] == "RACE" else c for c in full()]
    layout = lay_out(cells, "None")
    lines = [line for line in markdown(layout, differences(layout, 100)).splitlines() if line.startswith(r"| a \| b c |")]
    assert len(lines) == 2


def test_a_release_that_differs_says_how() -> None:
    cells = [{**c, "expected": {"SUPPORTS": 1, "REFUTES": 3}} for c in tiny() if c["corpus"] == "FEVER"]
    layout = lay_out(cells, "None")
    assert "| differs: 2 SUPPORTS instead of 1, 2 REFUTES instead of 3 |" in markdown(layout, [])


def test_without_a_count_of_the_paper_there_is_no_column_for_it() -> None:
    text = markdown(lay_out(full(), "None"), [])
    assert "| Corpus | Setting | There | Evaluated | Of these |\n" in text
    assert "Table 8" not in text
    assert "Is it that set?" not in text


def test_cells_that_did_not_look_for_overlaps_claim_nothing() -> None:
    cells = [{**c, "removed_as_overlap": None} for c in full()]
    text = markdown(lay_out(cells, "None"), [])
    assert "Nothing that was evaluated shares" not in text
    assert "Not every cell says whether rows" in text
