"""The command: light, and with the line to type where Gradio is missing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from hfcf import app as page
from hfcf.app.run import tasks_with_forms
from hfcf.cli import app

ROOT = Path(__file__).parents[2]


def test_without_gradio_the_error_has_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "gradio" else found(name, *more))
    with pytest.raises(ModuleNotFoundError, match=r'pip install "\.\[app\]"'):
        page.check_installed()
    assert ".[app]" in str(CliRunner().invoke(app, ["app"]).exception)


def test_the_command_line_loads_no_gradio() -> None:
    code = "import sys, hfcf.cli, hfcf.app; print([name for name in ('gradio', 'torch', 'datasets') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_space_has_a_header_that_fits_its_files() -> None:
    folder = ROOT / "spaces"
    header = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert (header["sdk"], header["pinned"]) == ("gradio", False)
    assert (folder / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.iterdir() if file.is_file()) <= 30


CONFIG = """
import json
from hfcf.app.page import build
page = build("offline")
config = page.get_config_file()
print(json.dumps({
    "titles": [one["props"]["label"] for one in config["components"] if one["type"] == "tabitem"],
    "limits": [fn.concurrency_limit for fn in page.fns.values() if fn.concurrency_id == "models"],
    "public": [fn.name for fn in page.fns.values() if fn.fn and fn.api_visibility != "private"],
    "analytics": page.analytics_enabled,
}))
"""


@pytest.mark.skipif(importlib.util.find_spec("gradio") is None, reason='Gradio is not installed: pip install ".[app]"')
def test_the_page_has_a_tab_for_each_task_and_runs_one_at_a_time() -> None:
    """In a process of its own: Gradio leaves event loops open."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CONFIG], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    config = json.loads(done.stdout.splitlines()[-1])
    assert config["titles"] == [task.form[0].title for task in reversed(tasks_with_forms())]
    assert set(config["limits"]) == {1}
    assert config["public"] == []
    assert config["analytics"] is False
