"""What the README shows works as pasted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from offline_models import installed

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_example_runs_and_finds_counterfactuals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not all(installed(name) for name in ("minilm", "t5", "spacy")):
        pytest.skip("the offline models are not installed")
    monkeypatch.chdir(tmp_path)
    example = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {})
    told = capsys.readouterr().out
    assert int(told.split()[0]) >= 20
    assert "generate_claim" in told
    assert (tmp_path / "counterfactuals.parquet").is_file()


def test_the_first_screen_has_an_example_and_the_readme_both_commands() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert "```python" in lines[:15]
    assert any(line.startswith("make demo ") for line in lines)
    assert any(line.startswith("make test ") for line in lines)


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) < 950


def test_the_shown_rows_are_said_to_be_unpicked() -> None:
    assert "Nobody chose them" in README.read_text(encoding="utf-8")
