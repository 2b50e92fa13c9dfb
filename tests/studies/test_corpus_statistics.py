"""`hfcf describe`: the numbers of CheckWhy's Table 1."""

from __future__ import annotations

import json
from pathlib import Path

from structure_rows import dataset, row, rows
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.studies.corpus_statistics import describe, read_corpus, to_page

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"


def test_what_structures_have() -> None:
    described = describe(dataset([*rows(), row("again", "(s2, s1) → s3 → s4 (s5, s4) → Claim", "SUPPORTS")]))
    assert described["labels"] == {"SUPPORTS": 2, "REFUTES": 1, "NOT ENOUGH INFO": 1}
    means = described["means"]
    assert (means["evidence"], means["words per claim"], means["steps"]) == (7.0, 9.0, 3.33)
    assert means["distractors"] == 2.0
    assert "| mean steps | 3.33 |" in to_page(described)


def test_a_label_may_be_named_as_a_split() -> None:
    page = to_page(
        {"task": "classification", "rows": 3, "splits": {"train": 3}, "labels": {"train": 1, "bus": 2}, "means": {}, "rejected": {}}
    )
    assert [line for line in page.splitlines() if "train" in line] == ["| train | 3 |", "| train | 1 |"]


def test_rows_that_can_not_be_read_are_counted(tmp_path: Path) -> None:
    records = json.loads((FIXTURES / "checkwhy" / "train.json").read_text(encoding="utf-8"))
    (tmp_path / "train.json").write_text(json.dumps([*records, {**records[0], "evidences": 3}]), encoding="utf-8")
    described = describe(read_corpus(f"checkwhy={tmp_path}"))
    assert described["rows"] == len(records)
    [(why, number)] = described["rejected"].items()
    assert (number, "'evidences'" in why, why in to_page(described)) == (1, True, True)


def test_the_command_describes_any_corpus(tmp_path: Path) -> None:
    out = tmp_path / "numbers.json"
    answer = CliRunner().invoke(app, ["describe", f"qed={FIXTURES / 'qed'}", "--json", str(out)])
    assert answer.exit_code == 0, answer.exception
    described = json.loads(out.read_text(encoding="utf-8"))
    assert described["splits"].keys() == {"train", "validation"}
    assert f"{described['rows']}" in answer.output
    assert {"answers", "questions", "words per answer"} <= described["means"].keys()
    assert describe(read_corpus(f"qed={FIXTURES / 'qed'}:validation"))["rows"] == described["splits"]["validation"]
    assert describe(read_corpus(f"qed={FIXTURES / 'qed'}:validation[:1]"))["rows"] == 1
    assert describe(read_corpus("hover=recipes:demo:train[:3]+train[3:5]"))["rows"] == 5
