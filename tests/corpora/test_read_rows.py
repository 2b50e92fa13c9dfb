"""Files that commands take are read as `hfcf.load` reads them: `evaluate`, `peek` and `rate`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.corpora import load
from hfcf.corpora.base import CorpusError
from hfcf.corpora.custom.source import load_file, read_rows
from hfcf.studies.human.export import export

COLUMNS = ("id", "claim", "evidence", "evidence_info", "structure", "label")
SALT = {
    "id": "salt", "claim": "Salt melted the ice.", "label": "SUPPORTS", "note": "mine",
    "evidence": {"E1": "Salt lay on the ice.", "E2": "Salt lets ice melt below zero."}, "structure": "(E1, E2) → Claim",
}  # fmt: skip


def write(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def run(*command: str) -> str:
    answer = CliRunner().invoke(app, list(command), env={"COLUMNS": "200"})
    assert answer.exit_code == 0, answer.exception
    return answer.output


def test_rows_that_have_our_form_stay_as_they_are(tmp_path: Path) -> None:
    ours = {**hfcf.load("structures", data_files={"train": write(tmp_path / "a.jsonl", [SALT])}, split="train")[0], "own": 1}
    illegal = {**ours, "id": "illegal", "structure": [{"premises": ["E9"], "conclusion": "claim"}]}
    assert list(read_rows(write(tmp_path / "b.jsonl", [ours, illegal]), COLUMNS)) == [ours, illegal]
    mixed = list(read_rows(write(tmp_path / "c.jsonl", [ours, SALT | {"id": "other"}]), COLUMNS))
    assert mixed[0] == ours
    assert mixed[1]["evidence"] == ours["evidence"]


def test_a_rating_takes_claims_with_evidence_as_texts(tmp_path: Path) -> None:
    row = {"id": "1", "claim": "Rome is old.", "evidence": ["Rome was built long ago."], "label": "entailment", "source_id": "0"}
    source = {**row, "id": "0", "claim": "Rome is young.", "label": "REFUTES", "group_id": "0"}
    sources = write(tmp_path / "sources.jsonl", [source])
    mine = write(tmp_path / "mine.jsonl", [row])
    (own,) = read_rows(mine, ("claim", "evidence", "label"))
    assert (own["label"], own["source_id"]) == ("SUPPORTS", "0")
    assert own["evidence"] == [{"title": "", "text": "Rome was built long ago."}]
    report = export({"mine": str(mine)}, "race", tmp_path / "out", sources=str(sources), raters=1)
    assert report["lines"] == 1


def test_a_file_needs_no_name_of_a_corpus(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    names = {"yes": "entailment", "no": "contradiction"}
    rows = [{"premise": f"Text {i}.", "hypothesis": f"Claim {i}.", "label": names[each]} for i, each in enumerate(("yes", "no"))]
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert load_file(tmp_path / "mine.csv")["claim"][:] == ["Claim 0.", "Claim 1."]
    assert "Claim 1." in run("peek", str(tmp_path / "mine.csv"))
    assert "mine.csv: 2 of 2 rows are scored" in run("evaluate", tiny_model("classifier"), "--corpus", str(tmp_path / "mine.csv"))
    Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    assert "saved: 2 of 2 rows are scored" in run("evaluate", tiny_model("classifier"), "--corpus", str(tmp_path / "saved"))
    parts = DatasetDict({"train": Dataset.from_list(rows[:1]), "rest": Dataset.from_list(rows[1:])})
    parts.save_to_disk(tmp_path / "parts")
    assert load(str(tmp_path / "parts"), split="train + rest")["claim"][:] == ["Claim 0.", "Claim 1."]
    with pytest.raises(CorpusError, match=r"'test'.*train, rest"):
        load(str(tmp_path / "parts"), split="train+test")
    assert load_file(write(tmp_path / "salt.jsonl", [SALT]))["structure"][0] == [{"premises": ["E1", "E2"], "conclusion": "claim"}]


def test_what_can_not_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("{\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine.jsonl, line 1 is not JSON.*write a JSON object on each line"):
        list(read_rows(file, COLUMNS))
