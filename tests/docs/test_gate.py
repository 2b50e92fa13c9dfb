"""The workflow of the page on gates runs as it stands, with a model in the place of the reader's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from offline_models import installed
from pages import ROOT, blocks
from typer.testing import CliRunner

from hfcf.cli import app

PAGE = ROOT / "docs" / "how-to" / "gate.md"


def test_the_command_of_the_workflow_ends_with_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(installed(name) for name in ("minilm", "wordnet")):
        pytest.skip("the offline models are not installed")
    monkeypatch.chdir(tmp_path)
    (pairs,) = (block for block in blocks(PAGE) if block.file)
    (tmp_path / "pairs.jsonl").write_text(pairs.text, encoding="utf-8")
    (workflow,) = (block.text for block in blocks(PAGE) if block.language == "yaml")
    steps = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("hfcf "))
    words = shlex.split(command)[1:]
    assert words[1] == "./model"
    words[1:4] = ["offline:minilm", "--adapter", "hfcf:nli"]  # whose classes have our names
    for least, code in (("0.0", 0), ("1.0", 1)):
        words[words.index("--at-least") + 1] = least
        answer = CliRunner().invoke(app, [*words, "--overwrite"])
        assert answer.exit_code == code, answer.exception
    assert (tmp_path / "answers.jsonl").is_file()
    assert re.search(r"\| 1 \|", PAGE.read_text(encoding="utf-8"))
