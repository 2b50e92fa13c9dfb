"""The notebooks run from their first cell to their last, and are stored with what they print."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from offline_models import installed

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def printed(notebook: nbformat.NotebookNode) -> list[list[nbformat.NotebookNode]]:
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def unexpected(notebook: nbformat.NotebookNode) -> list[str]:
    """The lines on stderr that do not say how a user's rows are read."""
    streams = [output.text for outputs in printed(notebook) for output in outputs if output.get("name") == "stderr"]
    return [line for text in streams for line in text.splitlines() if not line.startswith("hfcf.from_dataset: ")]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@each_notebook
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(printed(notebook)), "make notebooks runs and stores them"
    text = path.read_text(encoding="utf-8")
    for mark in ("/tmp", "/home", "/root", "Traceback"):
        assert mark not in text, mark
    assert unexpected(notebook) == []


@pytest.mark.slow
@each_notebook
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(installed(name) for name in ("minilm", "t5", "spacy", "wordnet")):
        pytest.skip("the offline models are not installed")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a notebook writes
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    assert unexpected(notebook) == []
