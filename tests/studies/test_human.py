"""Human evaluation: what is drawn and shown, what comes back from spreadsheets, agreement and scores, and the command."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core import edits
from hfcf.core.task import apply_edits
from hfcf.corpora.custom.rows import read_rows
from hfcf.hub.folder import write_parquet
from hfcf.studies.human.agreement import alpha, decide, kappa, majority
from hfcf.studies.human.collect import RATINGS, TABLE, import_
from hfcf.studies.human.export import KEY, RATERS, build_lines, export, protocol_of, sheet, write
from hfcf.studies.human.protocol import Protocol, Question, parse_answer
from hfcf.studies.human.protocols import PROTOCOLS
from hfcf.studies.human.summary import summarise
from hfcf.studies.spreadsheets import read_sheet, unaltered, write_sheet
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


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(
    folder: Path, rate: Callable[[int, Mapping[str, Any], str], str], *, separator: str = ",", changed: Any = None
) -> dict[str, Any]:
    """What raters do in a spreadsheet; `rate` has the rater, the key's item and the question."""
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    for rater in range(1, key["raters"] + 1):
        rows = lines_of(sheet(folder, rater))
        for row in rows:
            for one in key["protocol"]["questions"]:
                if not one["of"]:
                    row[one["name"]] = rate(rater, key["items"][row["id"]], one["name"])
        rows = changed(rows) if changed and rater == 1 else rows
        with sheet(folder, rater).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=separator, lineterminator="\r\n")
            writer.writeheader()
            writer.writerows(rows)
    return key


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
    assert kappa([(1, 1, 1), (1, 1, 0), (0, 0, 0), (0, 0, 1)]) == pytest.approx(1 / 3)
    assert kappa([(1, 1, 1), (0, 0, 0)]) == 1
    assert kappa([(1, 0), (0, 1)]) == -1


def test_kappa_is_of_those_who_rated_everything() -> None:
    two = [(1, 1), (1, 0), (0, 0), (1, 1)]
    third = [None, 0, None, None]  # who rates only what the others differ in
    assert kappa([(*unit, one) for unit, one in zip(two, third, strict=True)]) == kappa(two)
    assert kappa([*two, (None, None)]) == kappa(two)
    assert kappa([]) is kappa([(1, 1), (1, 1)]) is kappa([(1, None), (None, 0)]) is None


def test_what_raters_decide() -> None:
    assert (majority([1, 1]), majority([1, 0]), majority([1, 1, 0, 0, 1])) == (1, None, 1)
    assert (decide([1, 3, 5]), decide([1, 1, 5]), decide([2, 3])) == (3, 1, 2.5)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_sheets_give_no_method_away_and_run_nothing(name: str, tmp_path: Path) -> None:
    sets, sources = MADE[name]
    found = export(sets, name, tmp_path, sources=sources)
    protocol = PROTOCOLS[name]
    columns = ["id", *protocol.shows, *(one.name for one in protocol.asked), "note"]
    sheets = [lines_of(sheet(tmp_path, rater)) for rater in (1, 2, 3)]
    assert sorted(path.name for path in (tmp_path / RATERS).iterdir()) == [
        "instructions.html",
        "rater-1.csv",
        "rater-2.csv",
        "rater-3.csv",
    ]
    for rows in sheets:
        assert list(rows[0]) == columns
        assert len(rows) == found["lines"]
        assert not any(cell.startswith(tuple("=+-@\t\r")) for row in rows for cell in row.values())
        assert all(row[column] == "" for row in rows for column in columns[1 + len(protocol.shows) :])
        assert all(row[column].strip() for row in rows for column in protocol.shows)
        assert not any(re.fullmatch(r"[\d.,/: -]+|\d+ \w+ \d+", cell) for row in rows for cell in row.values() if cell)
    assert sheet(tmp_path, 1).read_bytes().startswith(b"\xef\xbb\xbf")
    orders = [[row["id"] for row in rows] for rows in sheets]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
    page = (tmp_path / RATERS / "instructions.html").read_text(encoding="utf-8")
    for one in protocol.asked:
        assert all(text in page for text in (one.name, one.example.split("“")[0], *one.answers.values()))
    told = page + "".join(path.read_text("utf-8-sig") for path in (tmp_path / RATERS).glob("*.csv"))
    assert not re.search(r"\b(race|ccg|checkwhy|rgf|crossaug|coco|codet5|agen|reference)\b", told, re.IGNORECASE)


@pytest.mark.parametrize(
    ("name", "lines", "rows"),
    [
        ("pairs", 100, {"race": {"all": 50}, "crossaug": {"all": 50}}),
        ("race", 90, {"race": {"SUPPORTS": 30, "REFUTES": 30}, "crossaug": {"SUPPORTS": 30, "REFUTES": 0}}),
        ("ccg_terms", 100, {"ccg": {"all": 100}, "coco": {"all": 100}}),
        ("ccg_commonsense", 100, {"ccg": {"all": 100}}),
        ("checkwhy_validity", 50, {"codet5": {"all": 50}}),
        ("checkwhy_preference", 50, {"codet5": {"all": 50}}),
        ("rgf", 600, {"rgf": {"all": 300}, "agen": {"all": 300}}),
    ],
)
def test_numbers_are_the_papers(name: str, lines: int, rows: Any, tmp_path: Path) -> None:
    sets, sources = MADE[name]
    found = export(sets, name, tmp_path, sources=sources)
    assert found["lines"] == lines
    assert found["shared"] == {"pairs": 50, "race": 30, "rgf": 300}.get(name, lines)
    assert {method: told["rows"] for method, told in found["methods"].items()} == rows
    short = {"REFUTES": 30} if name == "race" else {}
    assert list(found["methods"].values())[-1]["short"] == short


def test_methods_are_rated_on_the_same_sources_and_nothing_but_the_seed_matters(tmp_path: Path) -> None:
    sets, _ = MADE["rgf"]
    drawn = []
    for folder, seed, order in (("a", 13, 1), ("b", 13, -1), ("c", 14, 1)):
        export({method: rows[::order] for method, rows in sets.items()}, "rgf", tmp_path / folder, seed=seed)
        items = json.loads((tmp_path / folder / KEY).read_text())["items"]
        drawn.append({method: {item["source"] for item in items.values() if item["method"] == method} for method in sets})
        # 310 sources are both methods'.
        assert drawn[-1]["rgf"] == drawn[-1]["agen"]
    assert drawn[0] == drawn[1] != drawn[2]
    # A sheet says nothing of the order of the methods.
    first = [item["method"] for item in list(items.values())[:100]]
    assert 20 < first.count("rgf") < 80


def test_of_a_source_one_row_is_rated() -> None:
    rows = [{**question(f"q{i}"), "source_id": f"s{i % 5}"} for i in range(20)]
    one, left_out = build_lines(PROTOCOLS["rgf"], "m", rows, None, 13)
    other, _ = build_lines(PROTOCOLS["rgf"], "m", rows[::-1], None, 13)
    assert sorted(line.row for line in one) == sorted(line.row for line in other)
    assert sorted(line.source for line in one) == [f"s{i}" for i in range(5)]
    assert left_out == {"another row of its source was drawn": 15}


def test_claims_are_shown_beside_their_sources_whatever_tells_of_them(tmp_path: Path) -> None:
    rows = claims(SOURCES, "Dublin")
    export({"mine": run_of(tmp_path / "run", SOURCES, rows)}, "race", tmp_path / "own")
    export({"mine": rows}, "race", tmp_path / "sources", sources=SOURCES)
    assert (tmp_path / "own" / KEY).read_text() == (tmp_path / "sources" / KEY).read_text()
    item = _items(tmp_path / "own")[0]
    first = next(one for one in SOURCES if one["id"] == item["source"])
    assert item["texts"] == {
        "claim": first["claim"], "label": first["label"], "new_label": opposite(first["label"]),
        "evidence": f"1. Ann {first['id']} wrote =it, | she says.\n2. [Ann] Ann was born in Cork.",
        "new_claim": f"'{first['id']} was born in Dublin.",
    }  # fmt: skip
    told = r"mine, row 0: race .* source rows: .* sources \(--sources\)"
    with pytest.raises(ValueError, match=told):
        export({"mine": rows}, "race", tmp_path)


def test_labels_that_are_kept_are_shown_and_drawn_as_their_sources(tmp_path: Path) -> None:
    label_of = {one["id"]: one["label"] for one in SOURCES}
    eda = run_of(tmp_path / "run", SOURCES, kept(SOURCES))
    flipped = run_of(tmp_path / "flipped", SOURCES, claims(SOURCES, "Dublin"))
    found = export({"race": flipped, "eda": eda}, replace(PROTOCOLS["race"], rows=3), tmp_path / "out")
    assert [told["rows"] for told in found["methods"].values()] == [{"SUPPORTS": 3, "REFUTES": 3}] * 2
    assert found["shared"] == 6
    for item in _items(tmp_path / "out"):
        assert item["texts"]["label"] == item["stratum"] == label_of[item["source"]]
        assert (item["texts"]["new_label"] == item["stratum"]) == (item["method"] == "eda")
    fill(tmp_path / "out", lambda rater, item, name: "5" if item["method"] == "race" else "1")
    versus = import_(tmp_path / "out")["versus"]
    assert [(one["rows"], one["win"], one["lose"]) for one in versus] == [(6, 6, 0)] * 5
    # Of another corpus with the same ids.
    others = [{**one, "label": opposite(one["label"])} for one in SOURCES]
    other = run_of(tmp_path / "other", others, claims(others, "Dublin"))
    with pytest.raises(ValueError, match=r"source 's\d+'.*\w+ for one method.*\w+ for eda"):
        export({"race": other, "eda": eda}, "race", tmp_path / "none")


def test_methods_are_compared_on_a_source_whatever_its_label_was_taken_for() -> None:
    items = {method: {"method": method, "source": "1", "stratum": label} for method, label in (("a", "SUPPORTS"), ("b", "REFUTES"))}
    key = {"protocol": PROTOCOLS["race"].as_json(), "seed": 13, "raters": 1, "methods": "ab", "items": items}
    answers = {method: {one.name: [rating] for one in PROTOCOLS["race"].questions} for method, rating in (("a", 5), ("b", 1))}
    assert [(one["rows"], one["win"]) for one in summarise(key, answers)["versus"]] == [(1, 1)] * 5


def test_rows_that_cannot_be_rated_are_told_of(tmp_path: Path) -> None:
    good, *rest = claims(SOURCES[:7], "Dublin")
    long = [{"title": "", "text": "Eve " + "x" * 20_000}]
    bad = [
        {**rest[0], "evidence": [{"title": "", "text": "Eve wrote it."}]},
        rest[1],
        {**rest[2], "claim": "a\x07b"},
        {**rest[3], "claim": SOURCES[4]["claim"]},
        {**rest[4], "evidence": None},
        {**rest[5], "evidence": long},
    ]
    sources = [*SOURCES[:2], {**SOURCES[2], "label": "NOT ENOUGH INFO"}, *SOURCES[3:6], {**SOURCES[6], "evidence": long}]
    found = export({"mine": [good, *bad]}, "race", tmp_path, sources=sources)["methods"]["mine"]
    assert found["rows"] == {"SUPPORTS": 0, "REFUTES": 1}
    assert found["short"] == {"SUPPORTS": 30, "REFUTES": 29}
    reasons = list(found["left_out"])
    assert sum(found["left_out"].values()) == 6
    for part in (
        "its evidence was edited",
        "its source's label is NOT ENOUGH INFO",
        "control character U+0007",
        "its claim is its source's",
        "can't be shown",
        "the limit is 20,000",
    ):
        assert any(part in reason for reason in reasons), part
    edited = {**claims(SOURCES[:1], "Dublin")[0], "evidence": [{"title": "", "text": "Eve wrote it."}]}
    with pytest.raises(ValueError, match=r"mine.*race.*1 rows.*evidence"):
        export({"mine": [edited]}, "race", tmp_path / "none", sources=SOURCES)
    with pytest.raises(ValueError, match=r"1 rows.*source"):
        export({"mine": [{**plain, "source_id": "x"} for plain in SOURCES[:1]]}, "race", tmp_path / "none", sources=SOURCES)


@pytest.mark.parametrize(
    ("sets", "name", "message"),
    [
        ({"m": [question("1")]}, "rfg", r"'rfg'.*choose one of"),
        ({"m": [{"id": "1"}]}, "rgf", r"m, row 0.*column 'question'.*rgf.*id, question, context, answers"),
        ({"m": []}, "rgf", r"m.*rgf.*no rows"),
        ({}, "rgf", "0 sets, 3 raters and 300 rows"),
        ({"m": [question("1")]}, replace(PROTOCOLS["rgf"], rows=0), "1 sets, 3 raters and 0 rows"),
        ({"m": [question("1")]}, replace(PROTOCOLS["rgf"], rows=-5), "3 raters and -5 rows"),
        ({" ": [question("1")]}, "rgf", "METHOD=FOLDER"),
        ({"m": REFERENCES, "n": REFERENCES}, "checkwhy_preference", r"m, n.*claim.*twice.*reference"),
        ({"m": REFERENCES}, "checkwhy_preference", r"checkwhy_preference.*source"),
        (
            {"m": [sentence("a", causal_terms=[3])], "n": [sentence("a", "Other", causal_terms=[3])]}, "ccg_terms",
            r"m and n.*source 'a'",
        ),
    ],
)  # fmt: skip
def test_exports_that_cannot_work(sets: Any, name: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        export(sets, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_comes_back_from_a_spreadsheet_is_summed_up(separator: str, tmp_path: Path) -> None:
    sets, sources = MADE["race"]
    export(sets, replace(PROTOCOLS["race"], rows=2), tmp_path, sources=sources)
    # The method's rows have 4 and 2 of fluency by all raters; the other's 1, 2 and 3.
    ours: dict[str, int] = {}

    def rate(rater: int, item: Mapping[str, Any], name: str) -> str:
        if name != "fluency":
            return "3"
        if item["method"] == "crossaug":
            return str(rater)
        return f"{ours.setdefault(item['source'], 4 - 2 * (len(ours) % 2))}{',0' if separator == ';' else ''}"

    fill(tmp_path, rate, separator=separator, changed=lambda rows: [{**row, "note": "hm"} for row in rows[:1]] + rows[:0:-1])
    found = import_(tmp_path)
    told = found["methods"]["race"]["fluency"]
    assert {stratum: numbers["rows"] for stratum, numbers in told.items()} == {"SUPPORTS": 2, "REFUTES": 2, "all": 4}
    assert told["all"]["ratings"] == 12
    assert told["all"]["mean"] == told["all"]["decided_mean"] == 3.0
    assert told["all"]["sd"] == round(math.sqrt(4 / 3), 5)
    assert told["all"]["decided"] == {"2": 2, "4": 2}
    other = found["methods"]["crossaug"]["fluency"]
    assert list(other) == ["SUPPORTS", "all"]
    assert (other["all"]["mean"], other["all"]["sd"], other["all"]["no_majority"], other["all"]["decided"]) == (
        2.0,
        0.0,
        2,
        {"2": 2},
    )
    assert found["agreement"]["diversity"] == {"alpha": None, "level": "ordinal", "ratings": 18}
    assert found["agreement"]["all"]["ratings"] == 90
    assert found["agreement"]["all"]["alpha"] == round(alpha([a[q] for a in found["answers"].values() for q in a]) or 0, 5)
    wins = Counter(ours[item["source"]] for item in _items(tmp_path) if item["method"] == "crossaug")
    assert found["versus"][1] == {
        "question": "fluency", "method": "race", "other": "crossaug", "rows": 2, "win": wins[4], "tie": wins[2], "lose": 0,
        "p": 0.5 if wins[4] == 2 else 1.0, "adjusted": 1.0,
    }  # fmt: skip
    assert found["notes"] == [{"rater": 1, "id": lines_first(tmp_path, separator), "note": "hm"}]
    assert found["missing"] == {}
    stored = (tmp_path / RATINGS).read_bytes(), (tmp_path / TABLE).read_bytes()
    assert json.loads(stored[0]) == found == import_(tmp_path)
    assert stored == ((tmp_path / RATINGS).read_bytes(), (tmp_path / TABLE).read_bytes())
    page = stored[1].decode()
    assert "| race | 4 | 3.00 ± 0.00 | 3.00 ± 1.15 | 3.00 ± 0.00 |" in page
    assert "## Of SUPPORTS sources" in page


def _items(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / KEY).read_text(encoding="utf-8"))["items"].values())


def lines_first(folder: Path, separator: str) -> str:
    return sheet(folder, 1).read_text(encoding="utf-8").splitlines()[1].split(separator)[0]


def edited(**cells: str) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    return lambda rows: [rows[0], {**rows[1], **cells}, *rows[2:]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (edited(id="item-999"), r"rater-1\.csv, line 3.*'item-999'"),
        (
            edited(question="why"),
            r"line 3.*question.*item-\d+.*'why'.*'when was q\d+ founded'",
        ),
        (edited(answer="“12-May-06”"), r"line 3.*answer.*item-"),
        (edited(fluency="2"), r"line 3, column fluency.*'2'.*1 or 0"),
        (edited(fluency="0,5"), r"line 3, column fluency.*'0,5'"),
        (
            edited(correctness=" "),
            r"rater-1\.csv.*1 of 12 answers.*correctness of item-\d+",
        ),
        (lambda rows: [*rows, rows[0]], r"line 8.*item-\d+.*line 2"),
        (lambda rows: rows[:4], "4 of 12 answers"),
        (lambda rows: [{"id": row["id"]} for row in rows], "column 'question'"),
    ],
)
def test_sheets_that_are_not_sound(changed: Any, message: str, tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)
    fill(tmp_path, lambda rater, item, name: "1", changed=changed)
    with pytest.raises(ValueError, match=message):
        import_(tmp_path)
    assert not (tmp_path / RATINGS).exists()


def test_every_problem_is_told_of_at_once(tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)
    fill(tmp_path, lambda rater, item, name: "yes" if rater < 3 else "1")
    sheet(tmp_path, 3).unlink()
    with pytest.raises(ValueError, match=r"line 2, column fluency: 'yes'.*\n(.*\n)*… and 15 more"):
        import_(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"key\.json.*hfcf rate export"):
        import_(tmp_path / RATERS)


def test_what_is_there_can_be_summed_up(tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(6)]}, "rgf", tmp_path)
    fill(
        tmp_path,
        lambda rater, item, name: "" if rater == 2 or (item["source"], name) == ("q3", "fluency") else "10"[item["source"] == "q1"],
    )
    sheet(tmp_path, 3).unlink()
    with pytest.raises(ValueError, match=r"rater-3\.csv.*sheet"):
        import_(tmp_path)
    found = import_(tmp_path, partial=True)
    assert found["missing"] == {"rater-1.csv": 1, "rater-2.csv": 12, "rater-3.csv": 12}
    told = found["methods"]["m"]
    assert (told["fluency"]["all"]["rows"], told["correctness"]["all"]["rows"]) == (5, 6)
    assert told["fluency"]["all"]["mean"] == 0.8
    assert found["agreement"]["fluency"]["alpha"] is None
    assert "**Answers are missing:** 1 of rater-1.csv, 12 of rater-2.csv" in (tmp_path / TABLE).read_text(encoding="utf-8")


def test_nothing_that_was_filled_is_written_over_and_lost_sheets_come_back(tmp_path: Path) -> None:
    sets = {"m": [question(f"q{i}") for i in range(6)]}
    export(sets, "rgf", tmp_path, raters=4)
    export(sets, "rgf", tmp_path)  # nobody has filled anything
    assert len(list((tmp_path / RATERS).glob("*.csv"))) == 3
    before = {path.name: path.read_bytes() for path in (tmp_path / RATERS).iterdir()}
    write(json.loads((tmp_path / KEY).read_text(encoding="utf-8")), tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again" / RATERS).iterdir()} == before
    assert (tmp_path / "again" / KEY).read_bytes() == (tmp_path / KEY).read_bytes()
    fill(tmp_path, lambda rater, item, name: "1" if (rater, item["source"]) == (2, "q0") else "")
    with pytest.raises(ValueError, match=r"rater-2\.csv.*2 answers.*lost"):
        export(sets, "rgf", tmp_path)


@pytest.mark.parametrize("lost", ["key", "notes", "more"])
def test_no_sheet_is_written_over_unread(lost: str, tmp_path: Path) -> None:
    sets = {"m": [question(f"q{i}") for i in range(6)]}
    export(sets, "rgf", tmp_path)
    told = r"holds 1 answers and notes, which would be lost"
    if lost == "key":
        (tmp_path / KEY).unlink()
        told = r"rater-1\.csv .*key\.json.*: give another folder, or move the file"
    elif lost == "notes":
        fill(tmp_path, lambda rater, item, name: "", changed=edited(note="hm"))
    else:
        rows = lines_of(sheet(tmp_path, 3))
        write_sheet(sheet(tmp_path, 4), list(rows[0]), [{**rows[0], "fluency": "1"}])
    before = {path: path.read_bytes() for path in (tmp_path / RATERS).iterdir()}
    with pytest.raises(ValueError, match=told):
        export(sets, "rgf", tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / RATERS).iterdir()} == before


@pytest.mark.parametrize(("line", "before", "after"), [(2, '606.",', "606.,"), (3, '""\r\n', '"\r\n'), (4, '""\r\n', '"\r\n')])
def test_a_quotation_mark_that_is_lost_is_named(line: int, before: str, after: str, tmp_path: Path) -> None:
    export({"m": [question(f"q{i}") for i in range(3)]}, "rgf", tmp_path, raters=1)
    lines = sheet(tmp_path, 1).read_bytes().decode().splitlines(keepends=True)
    assert before in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(before, after)
    sheet(tmp_path, 1).write_bytes("".join(lines).encode())
    with pytest.raises(ValueError, match=rf"rater-1\.csv, line {line}:.*quotation mark"):
        import_(tmp_path)


@pytest.mark.parametrize("text", ["x;=cmd|' /C calc'!A0;y", "x\t+1", 'x; "=1+1"', "x\n@y", "=1;-1", "'=1", "x;'=1", "\t=1", "a;b"])
def test_no_cell_is_a_formula_however_a_spreadsheet_reads_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, ["id", "text", "more"], [{"id": "item-001", "text": text, "more": text}])
    written = path.read_text("utf-8-sig")
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
            assert not any(cell.lstrip(' "').startswith(tuple("=+-@")) for cell in row), (separator, row)
    [(_, cells)] = read_sheet(path, ["id", "text", "more"])
    for cell in (cells["text"], cells["text"].removeprefix("'"), cells["text"].replace("\n", "\r\n"), text):
        assert unaltered(cell, text)
    assert not unaltered(cells["text"] + "x", text)


def test_which_argument_is_better_whatever_its_side(tmp_path: Path) -> None:
    ours = [causal(f"c{i:02d}", (["E1"], "E3")) for i in range(60)]
    export({"codet5": ours}, replace(PROTOCOLS["checkwhy_preference"], rows=10), tmp_path, sources=REFERENCES)
    items = _items(tmp_path)
    assert {item["side"] for item in items} == {"1", "2"}
    for item in items:
        mine = item["texts"][f"argument_{item['side']}"]
        assert mine == "E1: It rained.\nE2: The roof leaks.\nE3: The floor is wet.\nE1 → E3"
        assert item["texts"][f"argument_{3 - int(item['side'])}"].endswith("E1 + E2 → E3")
    ranks = {item["source"]: rank for rank, item in enumerate(items)}

    def rate(rater: int, item: Mapping[str, Any], name: str) -> str:
        """Five rows are won by two of three, one is lost by all, one has all three answers, three are ties."""
        reference = str(3 - int(item["side"]))
        rank = ranks[item["source"]]
        if rank < 5:
            return reference if rater == 3 else item["side"]
        return reference if rank == 5 else (item["side"], " TIE", reference)[rater - 1] if rank == 6 else "tie"

    fill(tmp_path, rate)
    found = import_(tmp_path)
    told = found["methods"]["codet5"]["preferred"]["all"]
    assert told["judgements"] == {"win": 11, "tie": 10, "lose": 9}
    assert told["decided"] == {"win": 5, "tie": 4, "lose": 1}
    # Of six, one or fewer on one side, twice: 2 · (1 + 6) / 64.
    assert told["p"] == 0.21875
    assert found["versus"] == []
    assert "win / tie / lose 36.7 / 33.3 / 30.0 %; decided 5 / 4 / 1, p 0.2188" in (tmp_path / TABLE).read_text(encoding="utf-8")


def test_causal_terms_are_scored_by_the_words_that_most_raters_mark(tmp_path: Path) -> None:
    sets = {
        "ccg": [sentence("a", causal_terms=[3, 5]), sentence("b", causal_terms=[3, 5]), sentence("c", causal_terms=[])],
        "coco": [sentence("a", causal_terms=[0]), sentence("b", causal_terms=[3, 4, 5]), sentence("c", causal_terms=None)],
        "mice": [sentence("a", causal_terms=[5])],
    }
    export(sets, "ccg_terms", tmp_path)
    texts = next(item for item in _items(tmp_path) if item["source"] == "a")["texts"]
    assert texts["sentence"] == "the(1) [eggs]₁ a(3) moved(4) slowly(5) into(6) [buckets]₂ .(8)"
    assert texts["relation"] == "₁–₂: entity-destination"
    # The majority: moved and into of a, moved alone of b, none of c.
    marks = {"a": ("4 6", "moved(4)", "INTO(6) 1"), "b": ("4", "4 6", "'4"), "c": ("0", "0", "1")}
    fill(tmp_path, lambda rater, item, name: marks[item["source"]][rater - 1])
    found = import_(tmp_path)
    told = {method: numbers["words"]["all"] for method, numbers in found["methods"].items()}
    assert {method: (one["rows"], one["f1"]) for method, one in told.items()} == {
        "ccg": (3, round((1 + 2 / 3 + 1) / 3, 5)), "coco": (3, round((0 + 1 / 2 + 1) / 3, 5)), "mice": (1, round(2 / 3, 5)),
    }  # fmt: skip
    assert (told["ccg"]["precision"], told["ccg"]["recall"]) == (round((1 + 0.5 + 1) / 3, 5), 1.0)
    places = [(0, 2, 3, 4, 5, 7)] * 3
    given = [[{3, 5}, {3}, {5, 0}], [{3}, {3, 5}, {3}], [set(), set(), {0}]]
    words = [[float(place in one) for one in row] for row, free in zip(given, places, strict=True) for place in free]
    assert found["agreement"]["words"]["alpha"] == round(alpha(words, "nominal") or 0, 5)
    assert "| ccg | 3 | 0.889 (P 0.833, R 1.000) |" in (tmp_path / TABLE).read_text(encoding="utf-8")


def test_terms_are_what_an_edit_takes_out_where_no_column_has_them(tmp_path: Path) -> None:
    rows = [sentence(f"r{i}") for i in range(5)]
    made = []
    for row in rows:
        candidate = relations.candidate(row, "Entity-Origin(e1,e2)", token_edits(row["tokens"], [3, 5], "came from"))
        made.append({**apply_edits(row, candidate["edits"]), "id": f"{row['id']}:1", "source_id": row["id"],
                     "label": candidate["label"], "edits": candidate["edits"]})  # fmt: skip
    made[4]["edits"] = [{**made[4]["edits"][0], "before": "went"}]
    found = export({"ccg": made}, "ccg_terms", tmp_path, sources=rows)
    assert found["methods"]["ccg"]["left_out"] == {"the text at 3 is 'moved', not 'went'": 1}
    assert [item["terms"] for item in _items(tmp_path)] == [{"ccg": [3, 5]}] * 4
    assert {item["texts"]["relation"] for item in _items(tmp_path)} == {"₁–₂: entity-destination"}


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("4,6", r"'4,6'.*number.*spaces"),
        ("2", r"'2'.*number 2\b"),
        ("46", r"number 46\b"),
        ("into(4)", r"'into\(4\)'.*'moved'"),
        ("0 4", r"number 0\b"),
        ("'2", r"'2'.*number 2\b"),
    ],
)
def test_marks_that_cannot_be_read(cell: str, message: str) -> None:
    words: Question = PROTOCOLS["ccg_terms"].questions[0]
    with pytest.raises(ValueError, match=message):
        parse_answer(words, cell, {"tokens": sentence("a")["tokens"], "free": [0, 2, 3, 4, 5, 7]})


@pytest.mark.parametrize("cell", ["'s(4)", "''s(4)", "'4", "'S(4) 3", "3 's(4)", "'bank(3) 's(4)"])
def test_words_that_begin_with_an_apostrophe_can_be_marked(cell: str) -> None:
    item = {"tokens": ["the", "company", "bank", "'s", "owner"], "free": [0, 2, 3]}
    assert parse_answer(PROTOCOLS["ccg_terms"].questions[0], cell, item) == ([2, 3] if "3" in cell else [3])


def test_sets_are_read_from_folders_and_files(tmp_path: Path) -> None:
    rows = [{**sentence("a"), "label": 1}, {**sentence("b"), "label": 0}]
    ds = Dataset.from_list(rows).cast_column("label", ClassLabel(names=["Cause", "Origin"]))
    write_parquet(ds, tmp_path / "run" / "data" / "default", "train")
    write_parquet(ds.select([0]), tmp_path / "run" / "data" / "rejected", "train")
    assert [row["label"] for row in read_rows(tmp_path / "run")] == [row["label"] for row in read_rows(ds)] == ["Origin", "Cause"]
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "b.jsonl").write_text('\ufeff{"id": "1"}\n\n{"id": "2"}\n', encoding="utf-8")
    assert list(read_rows(tmp_path / "plain")) == list(read_rows(tmp_path / "plain" / "b.jsonl")) == [{"id": "1"}, {"id": "2"}]
    (tmp_path / "plain" / "b.jsonl").write_text('{"id": "1"}\n[]\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"b.jsonl, line 2.*JSON"):
        list(read_rows(tmp_path / "plain"))
    for empty in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=r"run\Ws folder"):
            list(read_rows(empty))


def test_protocols_outlive_a_file() -> None:
    for protocol in PROTOCOLS.values():
        assert Protocol.from_json(json.loads(json.dumps(protocol.as_json()))) == protocol
        assert protocol_of(protocol) is protocol
        assert all((one.answers == {}) == (one.kind in ("words", "choice")) for one in protocol.questions)


def test_the_command(tmp_path: Path) -> None:
    for method, rows in MADE["rgf"][0].items():
        Dataset.from_list(rows).to_parquet(str(tmp_path / f"{method}.parquet"))
    sets = [f"{method}={tmp_path / f'{method}.parquet'}" for method in MADE["rgf"][0]]
    out, run = tmp_path / "out", CliRunner().invoke
    told = run(app, ["rate", "export", "rgf", *sets, "--out", str(out), "--rows", "5", "--raters", "2"])
    assert told.exit_code == 0, told.output
    assert "10 lines a sheet" in told.output
    assert isinstance(run(app, ["rate", "export", "rgf", "mine", "--out", str(out)]).exception, ValueError)
    bracketed = run(app, ["rate", "export", "rgf", f"[/b]={tmp_path / 'rgf.parquet'}", "--out", str(tmp_path / "other")])
    assert bracketed.exit_code == 0, bracketed.exception
    assert "[/b]" in bracketed.output
    assert isinstance(run(app, ["rate", "import", str(out)]).exception, ValueError)
    fill(out, lambda rater, item, name: "1" if rater == 1 else "")
    assert isinstance(run(app, ["rate", "import", str(out)]).exception, ValueError)
    told = run(app, ["rate", "import", str(out), "--partial"])
    assert told.exit_code == 0, told.output
    assert "| agen | 5 | 100 % (57–100) | 100 % (57–100) |" in told.output


def test_semeval_is_rated(data: Path, tmp_path: Path) -> None:
    ds = hfcf.load("ccg_semeval", data_dir=data / "ccg_semeval", split="test")
    between = ds.map(lambda row: {"causal_terms": list(relations.between(row))})
    found = export({"between": between, "all": ds.map(lambda row: {"causal_terms": relations.context(row)})}, "ccg_terms", tmp_path)
    assert found["lines"] == 100
    fill(tmp_path, lambda rater, item, name: " ".join(str(place + 1) for place in item["terms"]["between"]) or "0")
    told = import_(tmp_path)["methods"]
    assert told["between"]["words"]["all"]["f1"] == 1.0
    assert 0 < told["all"]["words"]["all"]["f1"] < 1
