"""A user's own questions: the forms of their answers, bad ones, and sets that other libraries write."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import hfcf
from hfcf.core.task import find_problem
from hfcf.corpora.base import CorpusError
from hfcf.tasks.qa import span_problem

CONTEXT = "Ada 🛶 rowed to Bled. Then Ada slept, not Adalbert."
PLACED: dict[str, list[Any]] = {"text": ["Ada", "Bled"], "answer_start": [0, 15]}
FOUND: dict[str, list[Any]] = {"text": ["Ada", "Ada", "Bled"], "answer_start": [0, 26, 15]}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def load(path: Path, **options: Any) -> Dataset:
    return hfcf.load("questions", data_files=path, split="train", **options)


FORMS: list[tuple[dict[str, Any], dict[str, list[Any]], list[str]]] = [
    ({"answers": PLACED}, PLACED, ["Ada", "Bled"]),
    ({"answers": [{"text": "Ada", "answer_start": 0}, {"text": "Bled", "answer_start": 15}]}, PLACED, ["Ada", "Bled"]),
    ({"answers": {"text": "Bled", "answer_start": 15}}, {"text": ["Bled"], "answer_start": [15]}, ["Bled"]),
    ({"answer": "Bled", "answer_start": 15}, {"text": ["Bled"], "answer_start": [15]}, ["Bled"]),
    ({"answers": ["Ada", "Bled"]}, FOUND, ["Ada", "Bled"]),
    ({"answers": {"text": ["Ada", "Bled"]}}, FOUND, ["Ada", "Bled"]),
    ({"answers": [{"text": "Ada"}, {"text": "Bled"}]}, FOUND, ["Ada", "Bled"]),
    ({"answer": "Bled"}, {"text": ["Bled"], "answer_start": [15]}, ["Bled"]),
    # The texts that stand there are the answers; all of them stay in `aliases`.
    ({"answers": ["Lake Bled", "Bled"]}, {"text": ["Bled"], "answer_start": [15]}, ["Lake Bled", "Bled"]),
    ({"answers": ["Bled", "Bled"], "aliases": ["Veldes", ""]}, {"text": ["Bled"], "answer_start": [15]}, ["Bled", "Veldes"]),
    ({"answers": ["Lake Bled", "Bled"], "aliases": []}, {"text": ["Bled"], "answer_start": [15]}, ["Lake Bled", "Bled"]),
    # An empty answer is none.
    ({"answers": ["", "Bled"]}, {"text": ["Bled"], "answer_start": [15]}, ["Bled"]),
    # No spans.
    ({"answer": "Slovenia"}, {"text": ["Slovenia"], "answer_start": []}, ["Slovenia"]),
    ({"answer": "bled"}, {"text": ["bled"], "answer_start": []}, ["bled"]),
    ({"answer": "No", "context": "No one knows."}, {"text": ["No"], "answer_start": []}, ["No"]),
    ({"answers": {"text": ["Ada"], "answer_start": []}}, {"text": ["Ada"], "answer_start": []}, ["Ada"]),
    ({"answer": "Ada", "context": ""}, {"text": ["Ada"], "answer_start": []}, ["Ada"]),
    ({"answer": "Ada", "context": None}, {"text": ["Ada"], "answer_start": []}, ["Ada"]),
    # No answer.
    ({"answers": []}, {"text": [], "answer_start": []}, []),
    ({"answer": None}, {"text": [], "answer_start": []}, []),
    ({"answers": {"text": [], "answer_start": []}}, {"text": [], "answer_start": []}, []),
    ({"answers": ["", " "]}, {"text": [], "answer_start": []}, []),
    ({"answer": "", "answer_start": -1}, {"text": [], "answer_start": []}, []),
    ({"answers": {"text": [""], "answer_start": [-1]}}, {"text": [], "answer_start": []}, []),
    ({"answers": [{"text": "", "answer_start": -1}]}, {"text": [], "answer_start": []}, []),
]


def test_forms_of_answers(tmp_path: Path) -> None:
    def read(i: int, fields: dict[str, Any]) -> dict[str, Any]:
        row = {"question": "Who?", "context": CONTEXT, **fields}
        return dict(load(write(tmp_path / f"{i}.jsonl", row))[0])

    rows = [read(i, fields) for i, (fields, _, _) in enumerate(FORMS)]
    assert [row["answers"] for row in rows] == [answers for _, answers, _ in FORMS]
    assert [row["aliases"] for row in rows] == [aliases for _, _, aliases in FORMS]
    assert [find_problem(row) for row in rows if find_problem(row)] == []
    reasons = [span_problem(row) for row in rows]
    assert reasons[:12] == [None] * 12
    assert reasons[12:16] == ["its answers are not spans of its context"] * 4
    assert reasons[16:] == ["the row has no context"] * 2 + ["the row has no answer"] * 7


BAD: list[tuple[Any, str]] = [
    ({"answers": {"text": ["Bled"], "answer_start": [16]}}, "UTF-16"),
    ({"answers": {"text": ["Bled"], "answer_start": [18]}}, "bytes"),
    ({"answers": {"text": ["Oslo"], "answer_start": [0]}}, "'Ada '"),
    ({"answers": {"text": ["Ada", "Bled"], "answer_start": [0]}}, "2 answers and 1 places"),
    ({"answers": {"text": ["Ada"], "answer_start": ["zero"]}}, "answer_start[0]"),
    ({"answers": {"text": ["Ada"], "answer_start": 0}}, "both are lists"),
    ({"answers": [{"text": "Ada", "answer_start": 0}, {"text": "Bled"}]}, "answer_start[1]"),
    ({"answers": ["Ada", ["b"]]}, "answers[1]"),
    ({"answers": ["Ada"], "answer_start": 0}, "answer_start"),
    ({"answers": "Ada", "question": None}, "the question is null"),
    ({"answers": "Ada", "question": " "}, "the question is empty"),
    ({"answers": "Ada", "context": ["Ada"]}, "'context' is a list"),
    ({"answers": "Ada", "context": "Ada\u0007"}, "control character"),
    ({"answers": "Ada", "context": "Ada \ud800"}, "half of a surrogate pair"),
]


def test_bad_rows_are_rejected_alone(tmp_path: Path) -> None:
    lines: list[Any] = []
    for n, (fields, _) in enumerate(BAD):
        lines.append({"id": f"bad-{n}", "question": "Who?", "context": CONTEXT, **fields})
        lines.append({"id": f"good-{n}", "question": "Who?", "context": CONTEXT, "answers": "Bled"})
    ds = load(write(tmp_path / "mine.jsonl", *lines, '{"id": "cut'), on_error="reject")
    assert len(ds) == 2 * len(BAD) + 1
    for (_, reason), bad, good in zip(BAD, ds.select(range(0, len(ds) - 1, 2)), ds.select(range(1, len(ds), 2)), strict=True):
        assert bad["status"]["stage"] == "load"
        assert reason in bad["status"]["reason"]
        assert (good["status"], good["answers"]) == (None, {"text": ["Bled"], "answer_start": [15]})
    assert "is not JSON" in ds[-1]["status"]["reason"]


def test_groups(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "question": "Q?", "answer": "A", "group_id": "mine", "title": "Bled"},
        {"id": "2", "question": "Q?", "answer": "A", "title": "Bled", "context": "A lake."},
        {"id": "3", "question": "Q?", "answer": "A", "context": "A lake."},
        {"id": "4", "question": "Who?", "answer": "A", "context": "A lake."},
        {"id": "5", "question": "Q?", "answer": "A"},
        {"question": "Q?", "answer": "A"},
    ]
    groups = load(write(tmp_path / "mine.jsonl", *rows))["group_id"]
    assert groups[:2] == ["mine", "Bled"]
    assert groups[2] == groups[3] != groups[1]
    assert groups[2].startswith("context-")
    assert groups[5].startswith("row-")


def test_a_long_context(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(20_000))
    context = f"{words} 🛶 Ada left."
    row = {"question": "Who left?", "context": context, "answer": "Ada"}
    ds = load(write(tmp_path / "mine.jsonl", row))
    assert ds[0]["answers"] == {"text": ["Ada"], "answer_start": [len(words) + 3]}
    assert find_problem(ds[0]) is None


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = ["ID", "Question", "context", "Answers", "answer_start"]
    cells = [
        ["1", "Who?", CONTEXT, "Bled", ""],
        ["2", "Who?", CONTEXT, "Bled", "15"],
        ["3", "Who?", CONTEXT, json.dumps(PLACED), ""],
        ["4", "Who?", CONTEXT, '["Ada", "Bled"]', ""],
        ["5", "Who?", CONTEXT, "['Ada']", ""],
        ["6", "Who?", CONTEXT, "Bled", "sixteen"],
        ["7", "Who?", CONTEXT, "", ""],
        ["8", "Who?", "[1] is cited.", "[1]", ""],
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *cells])
    ds = load(path, on_error="reject")
    reasons = [row["status"]["reason"] if row["status"] else None for row in ds]
    assert [reason is None for reason in reasons] == [True, True, True, True, True, False, True, True]
    assert "answer_start[0]" in str(reasons[5])
    single = {"text": ["Bled"], "answer_start": [15]}
    assert ds["answers"][:4] == [single, single, PLACED, FOUND]
    assert ds["answers"][6] == {"text": [], "answer_start": []}


def test_squads_columns_from_parquet(tmp_path: Path) -> None:
    """`load_dataset("squad")` has these columns."""
    rows = [
        {"id": "5733", "title": "Bled", "context": CONTEXT, "question": "Who?", "answers": PLACED},
        {"id": "5734", "title": "Bled", "context": CONTEXT, "question": "When?", "answers": {"text": [], "answer_start": []}},
    ]
    (tmp_path / "data").mkdir()
    Dataset.from_list(rows).to_parquet(str(tmp_path / "data" / "validation-00000-of-00001.parquet"))
    ds = hfcf.load("questions", data_dir=tmp_path, split="dev")
    assert [{name: row[name] for name in rows[0]} for row in ds] == rows
    assert ds["group_id"] == ["Bled", "Bled"]


def test_an_unknown_ending_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"mine\.txt: its name must end in"):
        load(write(tmp_path / "mine.txt", {"question": "Who?"}))
