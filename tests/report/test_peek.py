"""`hfcf peek`: rows of a run or a corpus on the terminal, and that data can't be anything but text there."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from rich.console import Console
from run_folder import measured, published, verification
from typer.testing import CliRunner

from hfcf import cli
from hfcf.cli import console, runs
from hfcf.core import edits
from hfcf.report.peek import highlights, peek


def shown(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> str:
    runs.peek(*arguments, **options)
    return capsys.readouterr().out


def lines(folder: Path, **options: Any) -> list[str]:
    return [line.plain for line in peek(folder, **options)]


def test_peek_shows_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(verification([f"Town{i}q is old." for i in range(9)]), tmp_path)
    text = shown(capsys, str(tmp_path), 2)
    assert text.count(":made:") == 2
    assert text.startswith("0:made:claim  the claim changed: SUPPORTS → REFUTES\n  before: ")
    assert "  before: Town0q is old. It was founded in [-1994-].\n  after:  Town0q is old. It was founded in {+2006+}.\n" in text
    assert "  verifier REFUTES 0\n" in text
    assert "Funnel" not in text
    # The verifier is surest of the last accepted claim, and all are equally close.
    assert shown(capsys, str(tmp_path), best=1).startswith("7:made:claim")
    assert shown(capsys, str(tmp_path), find="TOWN4Q founded").count(":made:") == 2
    assert "no row of default is like this" in shown(capsys, str(tmp_path), find="nowhere")


def test_a_run_ends_with_the_best_pairs_whose_main_text_changed_one_of_a_source(tmp_path: Path) -> None:
    published(verification([f"Town{i}q is old." for i in range(9)]), tmp_path)
    headings = [line.plain.split()[0] for line in highlights(tmp_path, 3) if ":made:" in line.plain]
    assert headings == ["7:made:claim", "6:made:claim", "4:made:claim"]
    assert sum(":made:" in line.plain for line in highlights(tmp_path, 99)) == 6, "sources that were accepted"


def test_changes_are_in_colour_where_there_are_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published(verification(["Rome is old."]), tmp_path)
    monkeypatch.setattr(console, "out", Console(force_terminal=True, color_system="standard", width=120))
    text = shown(capsys, str(tmp_path), 1)
    assert "\x1b[31m 1994\x1b[0m" in text
    assert "\x1b[1;32m 2006\x1b[0m" in text
    assert "[-" not in text


def test_peek_shows_what_was_rejected_by_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(verification(("[/b] Rome is old.", "b", "c")), tmp_path)
    text = shown(capsys, str(tmp_path), 9, "rejected", find="needle0")
    assert text.startswith("0  SUPPORTS\n  claim: [/b] Rome is old. It was founded in 1994.\n")
    assert "check rejects a candidate: is cut off at 0 tokens <b>" in text
    assert "    claim: [/b] Rome is old. It was founded in {+2006+}. {+needle0+}" in text
    text = shown(capsys, str(tmp_path), 9, "rejected")
    assert [line for line in text.splitlines() if not line.startswith(" ") and line] == [f"{i}  SUPPORTS" for i in range(3)]
    assert text.count("  claim: c It was founded in 1994.") == 1, "a source's texts stand once"
    assert "check rejects the row: no candidate is left" in text
    assert "check rejects 2 candidates: the verifier says SUPPORTS" in text


def test_rejected_rows_are_found_by_stage_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(verification([f"Town{i}q is old." for i in range(6)]), tmp_path)
    text = shown(capsys, str(tmp_path), 9, "rejected", find="check VERIFIER says")
    assert [line.split()[0] for line in text.splitlines() if not line.startswith(" ") and line] == ["2", "5"]
    assert "cut off" not in text
    assert shown(capsys, str(tmp_path), 1, "rejected", find="cut off").count("SUPPORTS") == 1, "--rows counts sources"
    assert "no row of rejected is like this" in shown(capsys, str(tmp_path), 9, "rejected", find="nowhere")


def test_many_candidates_of_one_reason_are_counted(tmp_path: Path) -> None:
    rows = verification(["Rome is old."]).to_list()
    rows[0]["candidates"] += [rows[0]["candidates"][2]] * 9
    published(Dataset.from_list(rows, features=verification().features), tmp_path)
    found = lines(tmp_path, config="rejected")
    assert "  check rejects 10 candidates: is cut off at 0 tokens <b>" in found
    assert sum("needle0" in line for line in found) == 3
    assert "    and 7 more" in found


def test_the_funnel_is_printed_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(verification(["a", "b", "c"]), tmp_path)
    text = shown(capsys, str(tmp_path), funnel=True)
    assert text.splitlines()[0].split() == ["Funnel", "rows", "in", "rows", "out", "candidates", "rejected"]
    assert text.splitlines()[1].split() == ["check", "3", "2", "5"]
    assert ":made:" not in text
    (tmp_path / "run.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no run\.json"):
        runs.peek(str(tmp_path), funnel=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"config": "rejected", "best": 1}, r"--best.*rejected"),
        ({"config": "mine"}, r"'mine'.*default, augmented, rejected"),
        ({"best": 0}, r"^--best must be at least 1, got 0"),
        ({"rows": -1}, r"^--rows must be at least 1, got -1"),
    ],
)
def test_peek_names_what_is_wrong(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    published(verification(), tmp_path)
    with pytest.raises(ValueError, match=told):
        runs.peek(str(tmp_path), **options)


@pytest.mark.parametrize("option", ["--rows", "--best"])
def test_no_rows_are_none_to_ask_for(option: str) -> None:
    done = CliRunner().invoke(cli.app, ["peek", "anything", option, "0"])
    assert done.exit_code == 2
    assert option in done.output


def test_numbers_are_in_the_order_of_the_run(tmp_path: Path) -> None:
    published(verification(), tmp_path)
    measured(tmp_path, {"fluency": [0.0, 1.0, 2.0, 3.0], "similarity": [3.0, 4.0, 2.0, 1.0]}, {"similarity": {}, "fluency": {}})
    assert lines(tmp_path, rows=1)[-2] == "  similarity 3 · fluency 0 · verifier REFUTES 0"


def test_a_copied_claim_ranks_below_an_edited_one(tmp_path: Path) -> None:
    """The verifier is surer of the copy, and the copy is the source whose claim the evidence nearly says, too."""
    rows = verification(["Rome is old.", "Oslo is cold."]).to_list()
    copied, edited = (row["counterfactuals"][0] for row in rows)
    copied |= {"claim": "Nothing else.", "edits": edits.rewrite("claim", rows[0]["claim"], "Nothing else.")}
    copied["scores"], edited["scores"] = ([{"name": "verifier: REFUTES", "value": value}] for value in (0.99, 0.6))
    published(Dataset.from_list(rows, features=verification().features), tmp_path)
    for found in (lines(tmp_path, best=4), [line.plain for line in highlights(tmp_path, 4)]):
        claims = [line.split()[0] for line in found if ":made:claim" in line]
        assert claims == ["1:made:claim", "0:made:claim"]


def test_peek_of_a_run_that_accepted_nothing_tells_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = verification(["a", "b", "c"])
    published(rows.select([2]), tmp_path)
    for options in ({}, {"best": 1}, {"find": "c"}):
        assert "no row" in shown(capsys, str(tmp_path), **options)
    assert shown(capsys, str(tmp_path)).startswith("default has no rows (--funnel shows why)")
    assert "check rejects the row: no candidate is left" in shown(capsys, str(tmp_path), 9, "rejected")
    with pytest.raises(ValueError, match="configuration 'mine'"):
        lines(tmp_path, config="mine")


def test_data_cannot_drive_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b[2J\x9b31m\u202e"
    rows = verification(["Rome is old."]).to_list()
    rows[0] |= {"id": evil}
    for made in rows[0]["counterfactuals"]:
        made |= {"id": f"{evil}:made", "source_id": evil}
    rows[0]["candidates"][2]["status"]["reason"] = f"it holds {evil}"
    published(verification().from_list(rows, features=verification().features), tmp_path)
    run = json.loads((tmp_path / "run.json").read_text())
    run["funnel"][0]["stage"] = f"[/b]{evil}"
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "mine.jsonl").write_text(
        "\n".join(json.dumps({"id": f"{i}{evil}", "claim": claim, "evidence": ["It is."], "label": "SUPPORTS"})
                  for i, claim in enumerate(("Rome is old.", f"Rome {evil} is old.")))
    )  # fmt: skip
    out = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=out, width=200))
    runs.peek(str(tmp_path))
    runs.peek(str(tmp_path), config="rejected")
    runs.peek(str(tmp_path), funnel=True)
    runs.peek("jsonl", set_=[f"data_files={tmp_path / 'mine.jsonl'}", "on_error=reject"])
    assert not {"\x1b", "\x9b", "\u202e"} & set(out.getvalue())
    for told in ("�[2J�31m�:made", "check rejects a candidate: it holds �[2J", "[/b]�[2J", "0�[2J�31m�  SUPPORTS"):
        assert told in out.getvalue()


def test_peek_shows_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"id": f"{i}", "claim": f"City {i} is old.", "evidence": ["It is."], "label": "SUPPORTS"} for i in range(5)]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    text = shown(capsys, "jsonl", 2, set_=[f"data_files={tmp_path / 'mine.jsonl'}"])
    assert text.count("SUPPORTS") == 2
    assert "claim: City 1 is old." in text
    own = [{"statement": f"City {i} is old.", "proof": "It is.", "verdict": "yes"} for i in range(3)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, own)))
    with pytest.raises(ValueError, match=r"Give it to hfcf peek as --set 'columns=\{…\}'"):
        shown(capsys, str(tmp_path / "own.jsonl"), 2)
    set_ = ["columns={claim: statement, evidence: proof, label: verdict}", "labels={yes: SUPPORTS}"]
    assert shown(capsys, str(tmp_path / "own.jsonl"), 2, set_=set_).count("SUPPORTS") == 2
    Dataset.from_list([{"claim": "Rome is old.", "evidence": "It is.", "label": "SUPPORTS"}]).save_to_disk(tmp_path / "saved")
    assert "claim: Rome is old." in shown(capsys, str(tmp_path / "saved"), 2)
