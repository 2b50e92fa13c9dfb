"""A wheel holds all of the library: an editable installation works without what `setup.cfg` forgot."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).parent.parent


def test_setup_finds_every_package() -> None:
    there = {".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "hfcf").rglob("*.py")}
    assert set(setuptools.find_packages(str(ROOT), include=["hfcf*"])) == there


@pytest.mark.slow
def test_a_wheel_holds_every_file(tmp_path: Path) -> None:
    """Built in an environment of its own, which needs a package registry."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in tracked:  # a build leaves files behind
        if (ROOT / name).exists():
            (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "source" / name, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(tmp_path / "source")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No matching distribution found for setuptools" in built.stderr:
        pytest.skip("no package registry answers")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    inside = [name for name in tracked if name.startswith(("hfcf/", "recipes/")) and (ROOT / name).is_file()]
    assert {f"hfcf/{name}" if name.startswith("recipes/") else name for name in inside} <= names
