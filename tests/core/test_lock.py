"""Two processes on one folder: the second is refused, and a lock that a killed one left hinders nobody."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hfcf
from hfcf.core import recipe
from hfcf.core.faults import explain
from hfcf.core.lock import LOCK, FolderInUseError, hold_folder
from hfcf.core.paths import remove_parts, replace_file

HOLDER = """
import sys, time
from hfcf.core.lock import hold_folder
with hold_folder(sys.argv[1], "hfcf run mine --out out"):
    print("holds", flush=True)
    time.sleep(100)
"""


def test_a_second_process_is_refused_until_the_first_is_gone_even_by_a_kill(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        with pytest.raises(FolderInUseError, match="wait until it ends") as raised:
            hfcf.run({"corpus": "hover", "data_dir": str(recipe.folder() / "demo"), "system": "eda"}, out)
        lines = explain(raised.value).splitlines()
        assert len(lines) == 1
        assert f"`hfcf run mine --out out` (process {process.pid}, since" in lines[0]
        process.send_signal(signal.SIGKILL)
    assert (out / LOCK).exists()  # what the killed process left
    with hold_folder(out, "hfcf run mine --out out"):
        pass
    assert not out.exists() or not list(out.iterdir())


def test_a_folder_that_was_not_there_and_stays_empty_goes_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="of a recipe"), hold_folder(tmp_path / "a" / "out", "hfcf run"):
        raise ValueError("of a recipe")
    assert not (tmp_path / "a" / "out").exists()
    with hold_folder(tmp_path / "out", "hfcf run"):
        (tmp_path / "out" / "mine").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_lock_without_words_refuses_too(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "hfcf run"):
        (tmp_path / LOCK).write_text("[1]")
        with pytest.raises(FolderInUseError, match="another process of hfcf"), hold_folder(tmp_path, "hfcf run"):
            pass


def test_further_processes_of_one_launch_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold_folder(tmp_path, "accelerate launch -m hfcf run"):
        for name, number in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
            monkeypatch.setenv(name, number)
        with hold_folder(tmp_path, "accelerate launch -m hfcf run"):
            pass
        assert json.loads((tmp_path / LOCK).read_text())["command"] == "accelerate launch -m hfcf run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_a_file_that_could_not_be_written_leaves_the_old_one_and_no_part(folder: Path) -> None:
    file = folder / "run.json"
    file.write_text("old")

    def write() -> None:
        with replace_file(file) as part:
            part.write_text("ne")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write()
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("run.json", "old")]


def test_parts_of_killed_processes_are_removed_and_a_users_files_are_not(folder: Path) -> None:
    left = [".README.md.0123abcd.part"]
    for name in (*left, ".mine.part", "README.md.part", ".README.md.part.txt"):
        (folder / name).touch()
    remove_parts(folder, "README.md")
    assert not any((folder / name).exists() for name in left)
    assert len(list(folder.iterdir())) == 3
