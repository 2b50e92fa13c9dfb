"""Files that can be made again, and folders that one process holds."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hfcf
from hfcf.core import recipe
from hfcf.core.artifacts import artifact_path, read_artifact, save_artifact
from hfcf.core.paths import LOCK, FolderInUseError, fill_once, hold_folder, remove_parts, replace_file

HOLDER = """
import sys, time
from hfcf.core.paths import hold_folder
with hold_folder(sys.argv[1]):
    print("holds", flush=True)
    time.sleep(100)
"""


def test_a_second_process_is_refused_until_the_first_is_gone_even_by_a_kill(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        with pytest.raises(FolderInUseError) as raised:
            hfcf.run({"corpus": "hover", "data_dir": str(recipe.folder() / "demo"), "system": "eda"}, out)
        assert str(out) in str(raised.value)
        process.send_signal(signal.SIGKILL)
    assert (out / LOCK).exists()  # what the killed process left
    with hold_folder(out):
        pass
    with pytest.raises(ValueError, match="of a recipe"), hold_folder(tmp_path / "new" / "out"):
        raise ValueError("of a recipe")
    assert not (tmp_path / "new").exists()


def test_further_processes_of_one_launch_share_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold_folder(tmp_path / "out"):
        (tmp_path / "out" / "mine").touch()
        for name, number in (("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "2")):
            monkeypatch.setenv(name, number)
        with hold_folder(tmp_path / "out"):
            pass
        monkeypatch.undo()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


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
    names = {".README.md.0123abcd.part", ".mine.part", "README.md.part", ".README.md.part.txt"}
    for name in names:
        (folder / name).touch()
    remove_parts(folder, "README.md")
    assert {path.name for path in folder.iterdir()} == names - {".README.md.0123abcd.part"}


def test_a_folder_is_filled_whole_or_not_at_all(folder: Path) -> None:
    def fill(index: Path) -> None:
        index.mkdir()
        (index / "words").write_text("a")

    def fail(index: Path) -> None:
        fill(index)
        raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fill_once(folder / "index", fail)
    assert not list(folder.iterdir())
    assert (fill_once(folder / "index", fill) / "words").read_text() == "a"
    assert fill_once(folder / "index", fail) == folder / "index"


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.write_text('{"relations": ["of"]}')])
def test_an_artifact_is_what_its_name_says(damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture) -> None:
    content = {"relations": ["in", "of"]}
    path = artifact_path(save_artifact(content))
    damage(path)
    with pytest.raises(FileNotFoundError) as raised:
        read_artifact(path.stem, "fit again")
    assert "fit again" in str(raised.value)
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert str(path) in warning
    assert path.with_name(f"{path.name}.damaged").exists()
    damage(path)
    assert read_artifact(save_artifact(content), "") == content
