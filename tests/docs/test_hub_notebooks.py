"""The notebooks of the presets `hub` run on tiny models under the checkpoints' names; a rule answers for the chat model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import tiny_public_models
from offline_models import installed

from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.engines.parser import Parser
from hfcf.systems.ccg import system as ccg
from hfcf.systems.checkwhy import system as checkwhy
from hfcf.systems.crossaug import system as crossaug
from hfcf.systems.rgf import system as rgf

FOLDER = Path(__file__).parents[2] / "notebooks" / "hub"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LINES = 40
SPACY: dict[str, Any] = {"backend": "spacy", "model": Model("offline:spacy")}
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def code(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.fixture
def here(
    shared: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> pytest.MonkeyPatch:
    """Tiny checkpoints, and the offline pipeline where Stanza's or spaCy's own is named."""
    if not (installed("spacy") and installed("wordnet")):
        pytest.skip(f"the offline spaCy and WordNet are not installed: {offline.INSTALL}")
    tiny_public_models.use(shared, monkeypatch)
    tiny_public_models.answer_by_rule(monkeypatch)
    monkeypatch.setitem(ccg.HUB, "tagger", Parser(**SPACY))
    monkeypatch.setitem(checkwhy.HUB, "parser", Parser(**SPACY))
    monkeypatch.setitem(rgf.HUB, "phrases", Model("offline:spacy"))
    monkeypatch.setitem(crossaug.HUB, "certainty", 0.0)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_there_is_one_for_each_task() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["causal_claims", "claims", "questions", "relations"]


@each
def test_a_notebook_is_short_and_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert sum(len(cell.splitlines()) for cell in code(path)) < LINES
    assert code(path)[0].startswith("%pip install")
    assert "push_to_hub(REPO)" in code(path)[-1]
    assert not any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")  # no one ran them on the checkpoints


@each
def test_a_notebook_runs(path: Path, here: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    _, own, run, keep = code(path)  # the first installs

    def execute(cell: str) -> None:
        exec(compile(cell, str(path), "exec"), names)

    execute(own)
    execute(run)
    assert all(row["accepted"] is not None for row in names["ds"]["status"])
    assert len(names["cf"]) <= 10
    # Random verifiers may accept nothing: the source rows have the columns that are printed and kept.
    names["cf"] = names["rows"]
    capsys.readouterr()
    execute(run[run.index("for row in cf") :])
    assert len(capsys.readouterr().out.splitlines()) > len(names["rows"])
    pushed: list[str] = []
    here.setattr("datasets.Dataset.push_to_hub", lambda ds, name: pushed.append(name))
    execute(keep)
    assert Path("counterfactuals.parquet").is_file()
    assert pushed == []
    execute(keep.replace('REPO = ""', 'REPO = "me/made"'))
    assert pushed == ["me/made"]
