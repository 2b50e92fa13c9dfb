"""Human evaluation: what is drawn and shown, what comes back from sheets, agreement and scores, and the command."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core import edits
from hfcf.core.task import apply_edits
from hfcf.corpora.custom.source import read_rows
from hfcf.hub.folder import write_parquet
from hfcf.studies.human.export import KEY, RATERS, build_lines, export
from hfcf.studies.human.protocol import load_protocol, parse_answer, protocol_names, show
from hfcf.studies.human.ratings import RATED, RATINGS, TABLE, rated_correct, read_ratings
from hfcf.studies.human.summary import alpha, decide, kappa, majority
from hfcf.tasks import relation as relations
from hfcf.tasks.relation import token_edits
from hfcf.tasks.verification import opposite

Rows = list[dict[str, Any]]


def source(name: str, label: str) -> dict[str, Any]:
    evidence = [{"title": "", "text": f"Ann {name} wrote =it, | she says."}, {"title": "Ann", "text": "Ann was born in Cork."}]
    return {"id": name, "claim": f"Ann {name} was born in Cork.", "evidence": evidence, "label": label}


SOURCES = [source(f"s{i:02d}", "SUPPORTS" if i % 2 else "REFUTES") for i in range(90)]


def claims(rows: Rows, place: str) -> Rows:
    """A method's counterfactuals, as `expand` gives them."""
    made = []
    for one in rows:
        new = f"'{one['id']} was born in {place}."
        edited, label = edits.rewrite("claim", one["claim"], new), opposite(one["label"])
        made.append({**one, "id": f"{one['id']}:{place}", "source_id": one["id"], "claim": new, "label": label, "edits": edited})
    return made


def kept(rows: Rows) -> Rows:
    """What a method makes that keeps the label."""
    return [{**one, "id": f"{one['id']}:eda", "source_id": one["id"], "claim": one["claim"].lower(),
             "edits": edits.rewrite("claim", one["claim"], one["claim"].lower())} for one in rows]  # fmt: skip


def run_of(folder: Path, rows: Rows, made: Rows) -> Path:
    """What a run of them leaves, as far as it is read here."""
    for config, own in (("default", made), ("augmented", [*rows, *made])):
        write_parquet(Dataset.from_list(own), folder / "data" / config, "train")
    return folder


def sentence(name: str, label: str = "Entity-Destination(e1,e2)", **columns: Any) -> dict[str, Any]:
    tokens = f"the eggs {name} moved slowly into buckets .".split()
    return {"id": name, "tokens": tokens, "head": {"start": 1, "end": 2}, "tail": {"start": 6, "end": 7}, "label": label, **columns}


def causal(name: str, *steps: tuple[list[str], str]) -> dict[str, Any]:
    evidence = [{"title": "", "text": text} for text in ("It rained.", "The roof leaks.", "The floor is wet.")]
    structure = [{"premises": premises, "conclusion": conclusion} for premises, conclusion in steps]
    infos = [{"id": f"E{i}", "useful": True, "leaf": i < 3} for i in (1, 2, 3)]
    return {"id": name, "claim": f"The floor {name} is wet.", "evidence": evidence, "evidence_info": infos, "structure": structure}


def question(name: str) -> dict[str, Any]:
    return {
        "id": name, "title": "Cork", "context": "Cork was founded on 12 May 606.", "question": f"when was {name} founded",
        "answers": {"text": ["12 May 606", "12 May 606"], "answer_start": [20, 20]},
    }  # fmt: skip


REFERENCES = [causal(f"c{i:02d}", (["E1", "E2"], "E3")) for i in range(60)]
MADE: dict[str, tuple[dict[str, Rows], Rows | None]] = {
    "pairs": ({"race": claims(SOURCES, "Dublin"), "crossaug": claims(SOURCES[:70], "Derry")}, SOURCES),
    "race": ({"race": claims(SOURCES, "Dublin"), "crossaug": claims(SOURCES[1::2], "Derry")}, SOURCES),
    "ccg_terms": ({m: [sentence(f"r{i}", causal_terms=t) for i in range(120)] for m, t in (("ccg", [3, 5]), ("coco", [0]))}, None),
    "ccg_commonsense": ({"ccg": [sentence(f"r{i}", "Entity-Origin(e1,e2)") for i in range(120)]}, None),
    "checkwhy_validity": ({"codet5": [causal(f"c{i:02d}", (["E1"], "E3")) for i in range(60)]}, None),
    "checkwhy_preference": ({"codet5": [causal(f"c{i:02d}", (["E1"], "E3")) for i in range(60)]}, REFERENCES),
    "rgf": ({"rgf": [question(f"q{i}") for i in range(320)], "agen": [question(f"q{i}") for i in range(10, 330)]}, None),
}  # fmt: skip


def read_key(folder: Path) -> dict[str, Any]:
    return json.loads((folder / KEY).read_text(encoding="utf-8"))


def items_of(folder: Path) -> Rows:
    return list(read_key(folder)["items"].values())


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(folder: Path, rate: Callable[[int, Mapping[str, Any], str], str], *, separator: str = ",", changed: Any = None) -> None:
    """What raters do in a spreadsheet; `rate` has the rater, the key's item and the question."""
    key = read_key(folder)
    asked = [name for name, question in key["protocol"]["questions"].items() if not question["all_of"]]
    for rater in range(1, key["raters"] + 1):
        path = folder / RATERS / f"rater-{rater}.csv"
        rows = lines_of(path)
        for row in rows:
            row |= {name: rate(rater, key["items"][row["id"]], name) for name in asked}
        rows = changed(rows) if changed and rater == 1 else rows
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=separator, lineterminator="\r\n")
            writer.writeheader()
            writer.writerows(rows)


# Krippendorff 2011: A and B by two observers, C by four with missing ratings; his values have three digits.
TWO = [(0, 1), (1, 1), (0, 1), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0), (1, 0), (0, 0)]
LETTERS = list(zip(map(ord, "aabbdcccedda"), map(ord, "babbbcccedDd".lower()), strict=True))
_ = None
FOUR = list(
    zip(
        (1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _), (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3), (_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _), strict=True,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("units", "level", "value"),
    [
        (TWO, "nominal", 0.095),
        (LETTERS, "nominal", 0.692),
        (FOUR, "nominal", 0.743),
        (FOUR, "ordinal", 0.815),
        (FOUR, "interval", 0.849),
    ],
)
def test_alpha_is_krippendorffs(units: Any, level: Any, value: float) -> None:
    found = alpha(units, level)
    assert found == pytest.approx(value, abs=5e-4)
    assert alpha([unit[::-1] for unit in reversed(units)], level) == found


def test_alpha_at_its_ends() -> None:
    assert alpha([(1, 1, 1), (5, 5), (2, None)]) == 1
    # 1·3, 3·1: always apart. Of four ratings 1, 1, 3, 3 observed is 4 of 4, expected 8 of 12: 1 − 12 / 8.
    assert alpha([(1, 3), (3, 1)], "interval") == -0.5
    assert alpha([]) is alpha([(1, 1), (1, 1)]) is alpha([(1, None), (2,)]) is None


# A table as Fleiss' papers have them: how many of fourteen raters chose each of five categories for ten things. κ is 0.210.
COUNTS = [
    "0 0 0 0 14",
    "0 2 6 4 2",
    "0 0 3 5 6",
    "0 3 9 2 0",
    "2 2 8 1 1",
    "7 7 0 0 0",
    "3 2 6 3 0",
    "2 5 3 2 2",
    "6 5 2 1 0",
    "0 2 2 3 7",
]
FOURTEEN = [[value for value, n in enumerate(counts.split()) for _ in range(int(n))] for counts in COUNTS]


def test_kappa_is_fleiss() -> None:
    assert kappa(FOURTEEN) == pytest.approx(0.210, abs=5e-4)
    # Three raters, four things: agreement 1, 1/3, 1, 1/3 on each, 2/3 on average; both answers as often, so 1/2 by chance.
    assert kappa([(1, 1, 1), (1, 1, 0), (0, 0, 0), (0, 0, 1)]) == pytest.approx(1 / 3, abs=1e-5)
    assert kappa([(1, 1, 1), (0, 0, 0)]) == 1
    assert kappa([(1, 0), (0, 1)]) == -1


def test_kappa_is_of_those_who_rated_everything() -> None:
    two = [(1, 1), (1, 0), (0, 0), (1, 1)]
    third = [None, 0, None, None]  # who rates only what the others differ in
    assert kappa([(*unit, one) for unit, one in zip(two, third, strict=True)]) == kappa(two)
    assert kappa([]) is kappa([(1, 1), (1, 1)]) is kappa([(1, None), (None, 0)]) is None


def test_what_raters_decide() -> None:
    assert (majority([1, 1]), majority([1, 0]), majority([1, 1, 0, 0, 1])) == (1, None, 1)
    assert (decide([1, 3, 5]), decide([1, 1, 5]), decide([2, 3])) == (3, 1, 2.5)


@pytest.mark.parametrize("name", protocol_names())
def test_sheets_give_no_method_away(name: str, tmp_path: Path) -> None:
    sets, sources = MADE[name]
    lines = export(sets, name, tmp_path, sources=sources)["lines"]
    protocol = load_protocol(name)
    sheets = [lines_of(tmp_path / RATERS / f"rater-{rater}.csv") for rater in (1, 2, 3)]
    assert {path.name for path in (tmp_path / RATERS).iterdir()} == {"instructions.md", *(f"rater-{i}.csv" for i in (1, 2, 3))}
    for rows in sheets:
        assert list(rows[0]) == ["id", *protocol.shows, *protocol.asked, "note"]
        assert len(rows) == lines
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row.values())
        assert all(row[column].strip() for row in rows for column in protocol.shows)
        assert not any(row[column] for row in rows for column in (*protocol.asked, "note"))
    orders = [[row["id"] for row in rows] for rows in sheets]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert {*orders[0]} == {*orders[1]} == {*orders[2]}
    page = (tmp_path / RATERS / "instructions.md").read_text(encoding="utf-8")
    for title, question in protocol.asked.items():
        assert all(text in page for text in (title, question.example.split("“")[0], *question.answers.values()))
    told = page + "".join(path.read_text("utf-8-sig") for path in (tmp_path / RATERS).glob("*.csv"))
    assert not re.search(r"\b(race|ccg|checkwhy|rgf|crossaug|coco|codet5|agen|reference)\b", told, re.IGNORECASE)


@pytest.mark.parametrize(
    ("name", "lines", "shared", "rows"),
    [
        ("pairs", 100, 50, {"race": {"all": 50}, "crossaug": {"all": 50}}),
        ("race", 90, 30, {"race": {"SUPPORTS": 30, "REFUTES": 30}, "crossaug": {"SUPPORTS": 30, "REFUTES": 0}}),
        ("ccg_terms", 100, 100, {"ccg": {"all": 100}, "coco": {"all": 100}}),
        ("ccg_commonsense", 100, 100, {"ccg": {"all": 100}}),
        ("checkwhy_validity", 50, 50, {"codet5": {"all": 50}}),
        ("checkwhy_preference", 50, 50, {"codet5": {"all": 50}}),
        ("rgf", 300, 300, {"rgf": {"all": 300}, "agen": {"all": 300}}),  # equal lines of both methods are read once
    ],
)
def test_numbers_are_the_papers(name: str, lines: int, shared: int, rows: Any, tmp_path: Path) -> None:
    sets, sources = MADE[name]
    report = export(sets, name, tmp_path, sources=sources)
    assert (report["lines"], report["shared"]) == (lines, shared)
    assert {method: counts["rows"] for method, counts in report["methods"].items()} == rows
    assert list(report["methods"].values())[-1]["short"] == ({"REFUTES": 30} if name == "race" else {})


def test_nothing_but_the_seed_decides_what_is_drawn(tmp_path: Path) -> None:
    sets = {"rgf": [question(f"q{i}") for i in range(320)], "agen": [question(f"q{i}") for i in range(10, 330)]}
    drawn = []
    for folder, seed, order in (("a", 13, 1), ("b", 13, -1), ("c", 14, 1)):
        export({method: rows[::order] for method, rows in sets.items()}, "rgf", tmp_path / folder, seed=seed)
        drawn.append({item["source"] for item in items_of(tmp_path / folder)})
    assert drawn[0] == drawn[1] != drawn[2]


def test_of_a_source_one_row_is_rated() -> None:
    rows = [{**question(f"q{i}"), "source_id": f"s{i % 5}"} for i in range(20)]
    lines, left_out = build_lines(load_protocol("rgf"), "m", rows, None, 13)
    reverse, _ = build_lines(load_protocol("rgf"), "m", rows[::-1], None, 13)
    assert sorted(line.row for line in lines) == sorted(line.row for line in reverse)
    assert sorted(line.source for line in lines) == [f"s{i}" for i in range(5)]
    assert left_out == {"another row of its source was drawn": 15}


def test_claims_are_shown_beside_their_sources(tmp_path: Path) -> None:
    rows = claims(SOURCES, "Dublin")
    export({"mine": run_of(tmp_path / "run", SOURCES, rows)}, "race", tmp_path / "own")
    export({"mine": rows}, "race", tmp_path / "sources", sources=SOURCES)
    assert read_key(tmp_path / "own") == read_key(tmp_path / "sources")
    item = items_of(tmp_path / "own")[0]
    first = next(row for row in SOURCES if row["id"] == item["source"])
    assert item["texts"] == {
        "claim": first["claim"], "label": first["label"], "new_label": opposite(first["label"]),
        "evidence": f"1. Ann {first['id']} wrote =it, | she says.\n2. [Ann] Ann was born in Cork.",
        "new_claim": f"'{first['id']} was born in Dublin.",
    }  # fmt: skip
    with pytest.raises(ValueError, match="--sources"):
        export({"mine": rows}, "race", tmp_path)


def test_methods_are_compared_on_shared_sources(tmp_path: Path) -> None:
    sets = {"race": claims(SOURCES, "Dublin"), "eda": kept(SOURCES)}
    report = export(sets, "race", tmp_path, sources=SOURCES, rows=3)
    assert [counts["rows"] for counts in report["methods"].values()] == [{"SUPPORTS": 3, "REFUTES": 3}] * 2
    assert report["shared"] == 6
    fill(tmp_path, lambda rater, item, name: "5" if "race" in item["methods"] else "1")
    versus = read_ratings(tmp_path)["versus"]
    assert [(pair["rows"], pair["win"], pair["lose"], pair["other"]) for pair in versus] == [(6, 0, 6, "race")] * 5


@pytest.mark.parametrize(
    ("change", "of_source", "reason"),
    [
        ({"evidence": [{"title": "", "text": "Eve wrote it."}]}, {}, "its evidence was edited"),
        ({}, {"label": "NOT ENOUGH INFO"}, "NOT ENOUGH INFO"),
        ({"claim": "a\x07b"}, {}, "U+0007"),
        ({"claim": SOURCES[0]["claim"]}, {}, "its claim is its source's"),
        ({"evidence": None}, {"evidence": None}, "can't be shown"),
        ({"evidence": [{"title": "", "text": "x" * 20_001}]}, {"evidence": [{"title": "", "text": "x" * 20_001}]}, "20,000"),
    ],
)
def test_rows_that_cannot_be_rated_have_a_reason(change: Any, of_source: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        show(load_protocol("race"), claims(SOURCES[:1], "Dublin")[0] | change, SOURCES[0] | of_source)


@pytest.mark.parametrize(
    ("sets", "name", "told"),
    [
        ({"m": [question("1")]}, "rfg", ("rfg", "checkwhy_preference")),
        ({"m": [{"id": "1"}]}, "rgf", ("m, row 0", "'question'", "id, question, context, answers")),
        ({"m": []}, "rgf", ("m", "rgf")),
        ({}, "rgf", ("0 and 3",)),
        ({"m": REFERENCES, "n": REFERENCES}, "checkwhy_preference", ("m, n",)),
        ({"m": REFERENCES}, "checkwhy_preference", ("--sources",)),
    ],
)  # fmt: skip
def test_exports_that_cannot_work(sets: Any, name: Any, told: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=".*".join(told)):
        export(sets, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_scales_are_summarised(separator: str, tmp_path: Path) -> None:
    sets, sources = MADE["race"]
    export(sets, "race", tmp_path, sources=sources, rows=2)
    ours: dict[str, int] = {}

    def rate(rater: int, item: Mapping[str, Any], name: str) -> str:
        """Fluency: 4 and 2 of one method by all raters; 1, 2 and 3 of the other."""
        if name != "fluency":
            return "3"
        if "crossaug" in item["methods"]:
            return str(rater)
        return f"{ours.setdefault(item['source'], 4 - 2 * (len(ours) % 2))}{',0' if separator == ';' else ''}"

    fill(tmp_path, rate, separator=separator, changed=lambda rows: [{**row, "note": "hm"} for row in rows[:1]] + rows[:0:-1])
    results = read_ratings(tmp_path)
    fluency = results["methods"]["race"]["fluency"]
    assert {stratum: numbers["rows"] for stratum, numbers in fluency.items()} == {"SUPPORTS": 2, "REFUTES": 2, "all": 4}
    numbers = fluency["all"]
    assert (numbers["ratings"], numbers["mean"], numbers["sd"], numbers["decided"]) == (12, 3.0, 1.1547, {"4": 2, "2": 2})
    other = results["methods"]["crossaug"]["fluency"]["all"]
    assert (other["mean"], other["sd"], other["no_majority"], other["decided"]) == (2.0, 0.0, 2, {"2": 2})
    assert results["agreement"]["diversity"] == {"alpha": None, "level": "ordinal", "ratings": 18}
    assert results["agreement"]["all"]["ratings"] == 90
    assert [note["note"] for note in results["notes"]] == ["hm"]
    assert json.loads((tmp_path / RATINGS).read_text("utf-8")) == results == read_ratings(tmp_path)
    page = (tmp_path / TABLE).read_text("utf-8")
    assert "| race | 4 | 3.00 ± 0.00 | 3.00 ± 1.15 | 3.00 ± 0.00 |" in page
    assert "## Of SUPPORTS sources" in page


def edited(**cells: str) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    return lambda rows: [rows[0], {**rows[1], **cells}, *rows[2:]]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (edited(id="item-999"), ("rater-1.csv, line 3", "item-999")),
        (edited(question="why"), ("line 3", "question", "founded")),
        (edited(answer="“12-May-06”"), ("line 3", "answer", "12 May 606")),
        (edited(fluency="2"), ("line 3, column fluency", "1, 0, got '2'")),
        (edited(correctness=" "), ("rater-1.csv", "1 answers")),
        (lambda rows: [*rows, rows[0]], ("line 8", "twice")),
        (lambda rows: [{"id": row["id"]} for row in rows], ("'question'",)),
    ],
)
def test_sheets_that_are_not_sound(changed: Any, told: tuple[str, ...], tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)
    fill(tmp_path, lambda rater, item, name: "1", changed=changed)
    with pytest.raises(ValueError, match=".*".join(told)):
        read_ratings(tmp_path)
    assert not (tmp_path / RATINGS).exists()


def test_many_problems_are_told_of_at_once(tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)
    fill(tmp_path, lambda rater, item, name: "yes" if rater < 3 else "1")
    with pytest.raises(ValueError, match="14 more") as error:
        read_ratings(tmp_path)
    assert str(error.value).count("'yes'") == 10
    with pytest.raises(FileNotFoundError):
        read_ratings(tmp_path / RATERS)
    with pytest.raises(ValueError, match="lost"):
        export({"m": [question("q0")]}, "rgf", tmp_path)


def test_what_is_there_can_be_summed_up(tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)

    def rate(rater: int, item: Mapping[str, Any], name: str) -> str:
        return "" if rater == 2 or (item["source"], name) == ("q3", "fluency") else "10"[item["source"] == "q1"]

    fill(tmp_path, rate)
    with pytest.raises(ValueError, match=r"rater-2\.csv") as error:
        read_ratings(tmp_path)
    sheet = list(csv.DictReader((tmp_path / RATERS / "rater-1.csv").read_text(encoding="utf-8-sig").splitlines()))
    (blank,) = [line for line, cells in enumerate(sheet, 2) if not cells["fluency"]]
    assert f"rater-1.csv, line {blank}, column fluency" in str(error.value)
    (tmp_path / RATERS / "rater-3.csv").unlink()
    results = read_ratings(tmp_path, partial=True)
    assert results["missing"] == {"rater-1.csv": 1, "rater-2.csv": 12, "rater-3.csv": 12}
    numbers = results["methods"]["m"]
    assert (numbers["fluency"]["all"]["rows"], numbers["correctness"]["all"]["rows"]) == (5, 6)
    assert numbers["fluency"]["all"]["mean"] == 0.8
    assert "1 of rater-1.csv, 12 of rater-2.csv" in (tmp_path / TABLE).read_text(encoding="utf-8")


def test_json_lines_are_written_and_read(tmp_path: Path) -> None:
    export({"m": [question("q0"), question("q1")]}, "rgf", tmp_path, raters=1, file_format="jsonl")
    path = tmp_path / RATERS / "rater-1.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[0]["answer"] == "“12 May 606”"
    path.write_text("".join(json.dumps({**row, "fluency": 1, "correctness": "0"}) + "\n" for row in rows), encoding="utf-8")
    numbers = read_ratings(tmp_path)["methods"]["m"]
    assert (numbers["fluency"]["all"]["share"], numbers["correctness"]["all"]["share"]) == (1.0, 0.0)
    path.write_text("".join(json.dumps({**row, "fluency": 1, "correctness": None}) + "\n" for row in rows), encoding="utf-8")
    assert read_ratings(tmp_path, partial=True)["missing"] == {path.name: 2}


def test_which_argument_is_better_whatever_its_side(tmp_path: Path) -> None:
    ours = [causal(f"c{i:02d}", (["E1"], "E3")) for i in range(60)]
    export({"codet5": ours}, "checkwhy_preference", tmp_path, sources=REFERENCES, rows=10)
    items = items_of(tmp_path)
    assert {item["methods"]["codet5"]["side"] for item in items} == {"1", "2"}
    for item in items:
        side = item["methods"]["codet5"]["side"]
        assert item["texts"][f"argument_{side}"] == "E1: It rained.\nE2: The roof leaks.\nE3: The floor is wet.\nE1 → E3"
        assert item["texts"][f"argument_{3 - int(side)}"].endswith("E1 + E2 → E3")
    ranks = {item["source"]: rank for rank, item in enumerate(items)}

    def rate(rater: int, item: Mapping[str, Any], name: str) -> str:
        """Five rows are won by two of three, one is lost by all, one has all three answers, three are ties."""
        side = item["methods"]["codet5"]["side"]
        reference, rank = str(3 - int(side)), ranks[item["source"]]
        if rank < 5:
            return reference if rater == 3 else side
        return reference if rank == 5 else (side, " TIE", reference)[rater - 1] if rank == 6 else "tie"

    fill(tmp_path, rate)
    results = read_ratings(tmp_path)
    numbers = results["methods"]["codet5"]["preferred"]["all"]
    assert (numbers["answers"], numbers["decided"]) == ({"1": 11, "0": 10, "-1": 9}, {"1": 5, "0": 4, "-1": 1})
    assert numbers["p"] == 0.21875  # of six, one or fewer on one side, twice: 2 · (1 + 6) / 64
    assert results["versus"] == []
    assert "36.7 / 33.3 / 30.0 %; decided 5 / 4 / 1, p 0.2188" in (tmp_path / TABLE).read_text(encoding="utf-8")


def test_causal_terms_are_scored_by_the_words_that_most_raters_mark(tmp_path: Path) -> None:
    sets = {
        "ccg": [sentence("a", causal_terms=[3, 5]), sentence("b", causal_terms=[3, 5]), sentence("c", causal_terms=[])],
        "coco": [sentence("a", causal_terms=[0]), sentence("b", causal_terms=[3, 4, 5]), sentence("c", causal_terms=None)],
        "mice": [sentence("a", causal_terms=[5])],
    }
    assert export(sets, "ccg_terms", tmp_path)["lines"] == 3
    texts = next(item for item in items_of(tmp_path) if item["source"] == "a")["texts"]
    assert texts["sentence"] == "the(1) [eggs]₁ a(3) moved(4) slowly(5) into(6) [buckets]₂ .(8)"
    assert texts["relation"] == "₁–₂: entity-destination"
    # The majority: moved and into of a, moved alone of b, none of c.
    marks = {"a": ("4 6", "4", "6 1"), "b": ("4", "4 6", "'4"), "c": ("0", "0", "1")}
    fill(tmp_path, lambda rater, item, name: marks[item["source"]][rater - 1])
    results = read_ratings(tmp_path)
    numbers = {method: questions["words"]["all"] for method, questions in results["methods"].items()}
    assert {method: (scores["rows"], scores["f1"]) for method, scores in numbers.items()} == {
        "ccg": (3, round((1 + 2 / 3 + 1) / 3, 5)), "coco": (3, round((0 + 1 / 2 + 1) / 3, 5)), "mice": (1, round(2 / 3, 5)),
    }  # fmt: skip
    assert (numbers["ccg"]["precision"], numbers["ccg"]["recall"]) == (round((1 + 0.5 + 1) / 3, 5), 1.0)
    places = [(0, 2, 3, 4, 5, 7)] * 3
    given = [[{3, 5}, {3}, {5, 0}], [{3}, {3, 5}, {3}], [set(), set(), {0}]]
    words = [[float(place in one) for one in row] for row, free in zip(given, places, strict=True) for place in free]
    assert results["agreement"]["words"]["alpha"] == alpha(words, "nominal")
    assert "| ccg | 3 | 0.889 (P 0.833, R 1.000) |" in (tmp_path / TABLE).read_text(encoding="utf-8")


@pytest.mark.parametrize("cell", ["4,6", "2", "46", "0 4", "into"])
def test_marks_that_cannot_be_read(cell: str) -> None:
    with pytest.raises(ValueError, match=repr(cell.split()[0])):
        parse_answer(load_protocol("ccg_terms").questions["words"], cell, {"free": [0, 2, 3, 4, 5, 7]})


def test_terms_are_what_an_edit_takes_out_where_no_column_has_them(tmp_path: Path) -> None:
    rows = [sentence(f"r{i}") for i in range(5)]
    made = []
    for row in rows:
        candidate = relations.candidate(row, "Entity-Origin(e1,e2)", token_edits(row["tokens"], [3, 5], "came from"))
        made.append({**apply_edits(row, candidate["edits"]), "id": f"{row['id']}:1", "source_id": row["id"],
                     "label": candidate["label"], "edits": candidate["edits"]})  # fmt: skip
    made[4]["edits"] = [{**made[4]["edits"][0], "before": "went"}]
    report = export({"ccg": made}, "ccg_terms", tmp_path, sources=rows)
    assert report["methods"]["ccg"]["left_out"] == {"the text at 3 is 'moved', not 'went'": 1}
    assert [item["methods"]["ccg"]["terms"] for item in items_of(tmp_path)] == [[3, 5]] * 4
    assert {item["texts"]["relation"] for item in items_of(tmp_path)} == {"₁–₂: entity-destination"}


def test_a_protocol_of_ones_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    content = 'title: T\nguide: G\npaper: ours\ncolumns: [id, text]\nshows: {text: "{{ row.text }}"}\nrows: 2\n'
    content += 'questions: {good: {asks: "Good?", answers: {"1": "yes", "0": "no"}, example: "x → 1", level: nominal}}\n'
    path.write_text(content, encoding="utf-8")
    export({"m": [{"id": "1", "text": "=1"}]}, str(path), tmp_path / "out", raters=2)
    assert lines_of(tmp_path / "out" / RATERS / "rater-1.csv")[0]["text"] == "'=1"
    fill(tmp_path / "out", lambda rater, item, name: "10"[rater - 1])
    results = read_ratings(tmp_path / "out", by="two people")
    assert results["methods"]["m"]["good"]["all"]["share"] == 0.0  # raters who differ are no yes
    line = json.loads((tmp_path / "out" / RATED).read_text("utf-8"))
    assert (line["row"], line["protocol"], line["answers"], line["by"]) == ("1", "mine", {"good": [1, 0]}, "two people")


def test_sets_are_read_from_folders_and_files(tmp_path: Path) -> None:
    ds = Dataset.from_list([{**sentence("a"), "label": 1}, {**sentence("b"), "label": 0}])
    ds = ds.cast_column("label", ClassLabel(names=["Cause", "Origin"]))
    write_parquet(ds, tmp_path / "run" / "data" / "default", "train")
    write_parquet(ds.select([0]), tmp_path / "run" / "data" / "rejected", "train")
    assert [row["label"] for row in read_rows(tmp_path / "run")] == [row["label"] for row in read_rows(ds)] == ["Origin", "Cause"]


def test_the_command(tmp_path: Path) -> None:
    Dataset.from_list([question(f"q{i}") for i in range(8)]).to_parquet(str(tmp_path / "mine.parquet"))
    out, run = tmp_path / "out", CliRunner().invoke
    told = run(
        app, ["rate", "export", "rgf", f"[/b]={tmp_path / 'mine.parquet'}", "--out", str(out), "--rows", "5", "--raters", "2"]
    )
    assert told.exit_code == 0, told.exception
    assert "5 lines a sheet" in told.output
    assert "[/b]" in told.output
    assert isinstance(run(app, ["rate", "export", "rgf", "mine", "--out", str(out)]).exception, ValueError)
    fill(out, lambda rater, item, name: "1" if rater == 1 else "")
    assert isinstance(run(app, ["rate", "import", str(out)]).exception, ValueError)
    told = run(app, ["rate", "import", str(out), "--partial"])
    assert told.exit_code == 0, told.output
    assert "| 5 | 100 % (57–100) | 100 % (57–100) |" in told.output


def test_semeval_is_rated(data: Path, tmp_path: Path) -> None:
    ds = hfcf.load("ccg_semeval", data_dir=data / "ccg_semeval", split="test")
    between = ds.map(lambda row: {"causal_terms": list(relations.between(row))})
    sets = {"between": between, "all": ds.map(lambda row: {"causal_terms": relations.context(row)})}
    assert export(sets, "ccg_terms", tmp_path)["lines"] == 100
    fill(tmp_path, lambda rater, item, name: " ".join(str(i + 1) for i in item["methods"]["between"]["terms"]) or "0")
    methods = read_ratings(tmp_path)["methods"]
    assert methods["between"]["words"]["all"]["f1"] == 1.0
    assert 0 < methods["all"]["words"]["all"]["f1"] < 1


# --- pairs of any task

EVIDENCE = [{"title": "Oslo", "text": "Oslo is the capital of Norway."}, {"title": "", "text": "It is old."}]


def claim_pair(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    before = {"id": name, "claim": f"Oslo {name} is old.", "evidence": EVIDENCE, "label": "SUPPORTS"}
    new = f"Oslo {name} is new."
    made = {"id": f"{name}:new", "source_id": name, "claim": new, "label": "REFUTES", "change": "claim"}
    return before, {**before, **made, "edits": edits.rewrite("claim", before["claim"], new)}


def relation_pair() -> tuple[dict[str, Any], dict[str, Any]]:
    before = {
        "id": "r", "tokens": ["the", "eggs", "were", "moved", "into", "buckets", "."], "head": {"start": 1, "end": 2},
        "tail": {"start": 5, "end": 6}, "label": "Entity-Destination(e1,e2)",
    }  # fmt: skip
    edit = {"field": "tokens", "piece": -1, "start": 3, "end": 5, "before": "moved into", "after": "taken out of"}
    made = {"id": "r:new", "source_id": "r", "label": "Entity-Origin(e1,e2)", "change": "relation", "edits": [edit]}
    return before, {**before, **apply_edits(before, [edit]), **made}


def export_pairs(folder: Path, *pairs: tuple[dict[str, Any], dict[str, Any]], **options: Any) -> dict[str, Any]:
    """The key's items by row."""
    export({"mine": [made for _, made in pairs]}, "pairs", folder, sources=[before for before, _ in pairs], **options)
    return {item["methods"]["mine"]["row"]: item for item in items_of(folder)}


def test_claims_are_shown_without_their_label(tmp_path: Path) -> None:
    item = export_pairs(tmp_path, claim_pair("a"))["a:new"]
    assert item["texts"] == {
        "source": "Oslo a is old.", "source_label": "“SUPPORTS”", "new": "Oslo a is new.",
        "context": "evidence 0: [Oslo] Oslo is the capital of Norway.\nevidence 1: It is old.",
        "choices": "1. SUPPORTS\n2. REFUTES\n3. NOT ENOUGH INFO",
    }  # fmt: skip
    assert item["methods"]["mine"]["answer"] == "REFUTES"


def test_open_labels_have_choices_that_give_nothing_away(tmp_path: Path) -> None:
    item = export_pairs(tmp_path / "r", relation_pair())["r:new"]
    assert (item["texts"]["new"], item["texts"]["context"]) == ("the [eggs]₁ were taken out of [buckets]₂ .", "–")
    choices = item["methods"]["mine"]["choices"]
    assert (sorted(choices[:2]), choices[2]) == (["Entity-Destination(e1,e2)", "Entity-Origin(e1,e2)"], "neither")
    items = [export_pairs(tmp_path / f"{seed}", relation_pair(), seed=seed)["r:new"] for seed in range(16)]
    assert len({item["methods"]["mine"]["choices"][0] for item in items}) == 2  # which of the two comes first is drawn


def test_an_open_label_that_stays_is_not_rated() -> None:
    before, made = relation_pair()
    with pytest.raises(ValueError, match=r"stays .*Entity-Destination"):
        show(load_protocol("pairs"), {**made, "label": before["label"]}, before)


def test_files_of_ones_own_are_paired_with_their_sources(tmp_path: Path) -> None:
    rows = {"premise": "Oslo is the capital of Norway.", "hypothesis": "Oslo is in Norway.", "label": "entailment"}
    made = {**rows, "hypothesis": "Oslo is in Sweden.", "label": "contradiction", "source_id": "a"}
    for name, row in (("sources", {"id": "a", **rows}), ("made", {"id": "b", **made})):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row), encoding="utf-8")
    export({"mine": tmp_path / "made.jsonl"}, "pairs", tmp_path / "out", sources=tmp_path / "sources.jsonl", raters=1)
    [item] = json.loads((tmp_path / "out" / "key.json").read_text(encoding="utf-8"))["items"].values()
    texts = item["texts"]
    assert (texts["source"], texts["new"], texts["context"]) == ("Oslo is in Norway.", "Oslo is in Sweden.", rows["premise"])
    (tmp_path / "sources.jsonl").write_text(json.dumps({"id": "a", "text": "A dull film.", "label": 0}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'label'.* 0"):
        export({"mine": tmp_path / "made.jsonl"}, "pairs", tmp_path / "new", sources=tmp_path / "sources.jsonl", raters=1)


def test_answers_are_hidden(tmp_path: Path) -> None:
    before = {
        "id": "q", "title": "Richmond", "context": "Jeff Hogg led the side in 1994.", "question": "who led in 1994",
        "answers": {"text": ["Jeff Hogg"], "answer_start": [0]},
    }  # fmt: skip
    new = {**before, "context": "Ann Lee led it in 1995.", "question": "who led in 1995"}
    new |= {"answers": {"text": ["Ann Lee"], "answer_start": [0]}}
    change = [edit for name in ("context", "question") for edit in edits.rewrite(name, str(before[name]), str(new[name]))]
    change += edits.rewrite("answers", json.dumps(before["answers"]), json.dumps(new["answers"]))
    made = {**new, "id": "q:new", "source_id": "q", "change": "question", "edits": change}
    item = export_pairs(tmp_path, (before, made))["q:new"]
    assert item["texts"]["new"] == "question: who led in 1995\ncontext: [Richmond] Ann Lee led it in 1995."
    assert item["texts"]["source_label"] == "“Jeff Hogg”"
    assert sorted(item["methods"]["mine"]["choices"]) == ["Ann Lee", "Jeff Hogg", "neither"]


def test_shares_and_intervals_by_hand(tmp_path: Path) -> None:
    rows = [f"{name}:new" for name in "abcd"]
    export_pairs(tmp_path, *(claim_pair(name) for name in "abcd"), raters=1)
    answers = {
        "label": dict(zip(rows, "2212", strict=True)),  # REFUTES is the rows' own: three of four are right
        "sense": dict(zip(rows, "1010", strict=True)),
        "close": dict(zip(rows, "1100", strict=True)),
    }
    fill(tmp_path, lambda rater, item, name: answers[name][item["methods"]["mine"]["row"]])
    numbers = {name: strata["all"] for name, strata in read_ratings(tmp_path)["methods"]["mine"].items()}
    assert {name: scores["share"] for name, scores in numbers.items()} == {
        "label": 0.75, "sense": 0.5, "fully right": 0.25, "close": 0.5,
    }  # fmt: skip
    # Wilson: (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n), with z = 1.96 and n = 4.
    assert numbers["label"]["interval"] == pytest.approx([0.30064, 0.95441], abs=1e-4)
    assert numbers["fully right"]["interval"] == pytest.approx([0.04559, 0.69936], abs=1e-4)
    assert list(rated_correct(tmp_path, "fully right")) == ["a:new"]
    assert "| mine | 4 | 75 % (30–95) | 50 % (15–85) | 25 % (5–70) | 50 % (15–85) |" in (tmp_path / TABLE).read_text("utf-8")


def test_raters_who_choose_two_wrong_labels_do_not_agree(tmp_path: Path) -> None:
    export_pairs(tmp_path, *(claim_pair(name) for name in "abcd"), raters=2)
    chosen = {1: dict(zip("abcd", "2211", strict=True)), 2: dict(zip("abcd", "2213", strict=True))}  # REFUTES is right: 2
    fill(
        tmp_path,
        lambda rater, item, name: chosen[rater][item["methods"]["mine"]["row"][0]] if name == "label" else "1",
    )
    results = read_ratings(tmp_path)
    assert results["methods"]["mine"]["label"]["all"]["share"] == 0.5
    units = [(2, 2), (2, 2), (1, 1), (1, 3)]
    assert results["agreement"]["label"]["alpha"] == alpha(units, "nominal")
    assert results["agreement"]["label"]["kappa"] == kappa(units)


def test_ids_are_matched_as_tables_write_them(tmp_path: Path) -> None:
    pairs = [claim_pair(name) for name in "ab"]
    numbered = [({**before, "id": n}, {**made, "source_id": n}) for n, (before, made) in enumerate(pairs)]
    assert {item["source"] for item in export_pairs(tmp_path / "numbers", *numbered).values()} == {"0", "1"}
    floats = [({**before, "id": str(n)}, {**made, "source_id": f"{n}.0"}) for n, (before, made) in enumerate(pairs)]
    assert {item["source"] for item in export_pairs(tmp_path / "floats", *floats).values()} == {"0", "1"}


def test_ids_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    (before, made), (other, more) = claim_pair("a"), claim_pair("b")
    with pytest.raises(ValueError, match=r"mine, row 1.*'a:new'"):
        export_pairs(tmp_path / "rows", (before, made), (other, {**more, "id": "a:new"}))
    with pytest.raises(ValueError, match=r"sources.*'a'"):
        export_pairs(tmp_path / "sources", (before, made), ({**other, "id": "a"}, more))


@pytest.mark.parametrize("cell", ["REFUTES", "4", "0"])
def test_a_choice_is_a_number_of_the_line(cell: str) -> None:
    with pytest.raises(ValueError, match="1, 2, 3"):
        parse_answer(load_protocol("pairs").questions["label"], cell, {"choices": ["a", "b", "c"], "answer": "a"})


def test_separators_within_a_text_end_no_line(tmp_path: Path) -> None:
    line = {"row": "a\u2028b", "answers": {"correct": ["yes"]}}
    (tmp_path / RATED).write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    assert set(rated_correct(tmp_path, question="correct", answer="yes")) == {"a\u2028b"}
