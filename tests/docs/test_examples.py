"""The worked examples of the systems' pages run, and print what has the form of the output that is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from offline_models import installed
from pages import ROOT, blocks, name_of

PAGES = [ROOT / "docs" / "systems" / f"{name}.md" for name in ("race", "crossaug", "ccg", "rgf", "checkwhy", "baselines")]
PAGES += [ROOT / "docs" / "explain" / "constrained_search.md"]
MODELS = ("minilm", "t5", "spacy", "smollm2", "wordnet")


def form(text: str) -> list[str]:
    """The marks at the beginning of each line, without the words: another processor may write others."""
    return [re.match(r" *→?", line)[0] for line in text.splitlines() if line]  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_an_example_prints_what_has_the_form_that_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not all(map(installed, MODELS)):
        pytest.skip("the offline models are not installed")
    monkeypatch.chdir(tmp_path)
    example = next(block.text for block in blocks(page) if block.language == "python")
    shown = next(block.text for block in blocks(page) if block.language == "text")
    capsys.readouterr()
    exec(compile(example, page.name, "exec"), {})
    assert form(capsys.readouterr().out) == form(shown)
