"""`hfcf evaluate`: a few rows of a file of one's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from datasets import Dataset
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.contamination import save_seen
from hfcf.core.model import Model


def test_a_limit_scores_the_first_rows_and_says_so(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    labels = ["SUPPORTS", "SUPPORTS", "REFUTES", "REFUTES"]
    rows = [{"id": str(i), "claim": f"Claim {i}.", "evidence": ["A text."], "label": label} for i, label in enumerate(labels)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["evaluate", tiny_model("classifier"), "--corpus", f"jsonl={tmp_path / 'mine.jsonl'}:test"]

    def shown(*options: str) -> tuple[str, ...]:
        answer = CliRunner().invoke(app, [*command, *options])
        assert answer.exit_code == 0, answer.exception
        return next(tuple(map(str.strip, line.split("│")[1:3])) for line in answer.output.splitlines() if "jsonl (" in line)

    assert shown() == ("jsonl (test)", "4")
    assert shown("--limit", "2") == ("jsonl (test, first 2)", "2")
    assert CliRunner().invoke(app, [*command, "--limit", "0"]).exit_code == 2


def test_rows_that_the_model_was_trained_on_are_counted(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = [{"id": str(i), "claim": f"Claim {i}.", "evidence": [f"Text {i}."], "label": "SUPPORTS"} for i in range(3)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = Path(shutil.copytree(tiny_model("classifier"), tmp_path / "model"))
    command = ["evaluate", str(model), "--corpus", f"jsonl={tmp_path / 'mine.jsonl'}:test"]

    assert "trained on" not in CliRunner().invoke(app, command).output
    trained = [{"corpus": "other", "group_id": "1", "claim": "CLAIM 1", "evidence": [{"title": "", "text": "Another text."}]}]
    save_seen(model, Dataset.from_list(trained), Model("offline:minilm"))
    answer = " ".join(CliRunner().invoke(app, command).output.split())
    assert "jsonl (test): the model was trained on the group or a text of 1 of the 3 rows: its scores there are too good." in answer
