"""The wheels of the library and of its adapters: an editable installation works without what the two `setup.cfg` forgot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
import setuptools
from datasets import load_dataset

ROOT = Path(__file__).parent.parent
ADAPTERS = "hfcf/adapters/"
LARGEST = 3_000_000  # bytes of the library's wheel
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def tracked() -> list[str]:
    """The files of the checkout, without what builds leave behind."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def wheels(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheels of hfcf and of hfcf-offline, built in an environment of their own, which needs a package registry."""
    out = tmp_path_factory.mktemp("wheels")
    built = run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, source, source / "offline", cwd=out
    )
    if "No matching distribution found for setuptools" in built.stderr:
        pytest.skip("no package registry answers")
    assert built.returncode == 0, built.stderr
    [library], [adapters] = out.glob("hfcf-[0-9]*.whl"), out.glob("hfcf_offline-[0-9]*.whl")
    return library, adapters


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def in_offline(names: list[str]) -> set[str]:
    """Where the package hfcf-offline has the adapters' files."""
    return {name.replace(ADAPTERS, "hfcf_offline/adapters/") for name in names if name.startswith(ADAPTERS)}


def test_setup_finds_every_package() -> None:
    there = {".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "hfcf").rglob("*.py")}
    assert set(setuptools.find_packages(str(ROOT), include=["hfcf*"])) == there


def test_an_editable_installation_is_found_beside_a_clone_of_its_name(tmp_path: Path) -> None:
    """Python takes the clone, `hfcf/`, for a namespace package, unless the installation is a folder of the path."""
    clone, site = tmp_path / "hfcf", tmp_path / "site"
    (clone / "hfcf").mkdir(parents=True)
    site.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "hfcf/__init__.py"):
        shutil.copy(ROOT / name, clone / name)
    built = run(sys.executable, "-c", WHEEL.replace("build_wheel", "build_editable"), site, cwd=clone)
    assert built.returncode == 0, built.stderr
    [wheel] = site.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = f"import sys, site; site.addsitedir({str(site)!r}); import hfcf; print(hfcf.__file__)"
    shown = run(sys.executable, "-S", "-c", code, cwd=tmp_path, env={})
    assert shown.stdout.strip() == str(clone / "hfcf" / "__init__.py"), shown.stderr


def test_the_package_of_the_adapters_is_a_link_to_them() -> None:
    link = ROOT / "offline" / "hfcf_offline" / "adapters"
    assert os.readlink(link) == "../../hfcf/adapters"
    assert link.is_dir()
    assert {name.count("/") for name in tracked() if name.startswith(ADAPTERS)} == {3}  # of which its setup.cfg takes all


def test_the_licences_of_the_adapters_are_those_of_their_cards() -> None:
    page = (ROOT / "offline" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `hfcf:(\w+)` \| (\S+) \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    cards = sorted((ROOT / ADAPTERS).glob("*/README.md"))
    assert [name for name, _, _ in rows] == [card.parent.name for card in cards]
    notice = (ROOT / "offline" / "LICENSE").read_text(encoding="utf-8")
    grants = re.findall(r"^  (\w[\w, ]+)\n      .+ \(([\w.-]+)\)$", notice, re.MULTILINE)
    granted = {name: licence for names, licence in grants for name in names.split(", ")}
    for (name, licence, corpora), card in zip(rows, cards, strict=True):
        [table] = re.findall(
            r"^\| corpus \| rows read from \| licence \|\n.*\n((?:\|.*\n)+)", card.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert corpora.split(", ") == sorted({row.strip("|").split("|")[-1].strip() for row in table.splitlines()}), name
        shared = sorted(one for one in corpora.split(", ") if one.startswith("cc-by-sa"))
        assert licence.lower() == granted[name].lower() == (shared[-1] if shared else corpora)


def test_a_copy_without_the_adapters_makes_no_empty_wheel(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "offline", tmp_path / "offline", symlinks=True, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    built = run(sys.executable, "-c", WHEEL, tmp_path, cwd=tmp_path / "offline")
    assert built.returncode != 0
    assert re.search(r"hfcf_offline.adapters' does not exist", built.stderr)
    assert not list(tmp_path.glob("*.whl"))


def test_a_wheel_holds_every_file(wheels: tuple[Path, Path]) -> None:
    library, adapters = map(contents, wheels)
    inside = [name for name in tracked() if name.startswith(("hfcf/", "recipes/")) and (ROOT / name).is_file()]
    ours = {f"hfcf/{name}" if name.startswith("recipes/") else name for name in inside if not name.startswith(ADAPTERS)}
    assert ours <= library
    assert not [name for name in library if name.startswith(ADAPTERS) or name.endswith((".safetensors", ".npy"))]
    assert wheels[0].stat().st_size < LARGEST
    assert adapters == in_offline(inside) | {"hfcf_offline/__init__.py"}


@pytest.mark.slow
def test_source_distributions_hold_what_wheels_are_built_from(source: Path, tmp_path: Path) -> None:
    for folder in (source, source / "offline"):
        built = run(sys.executable, "-c", SDIST, tmp_path, cwd=folder)
        assert built.returncode == 0, built.stderr
    [library], [adapters] = tmp_path.glob("hfcf-[0-9]*.tar.gz"), tmp_path.glob("hfcf_offline-[0-9]*.tar.gz")
    assert library.stat().st_size < LARGEST
    with tarfile.open(adapters) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = (path for path in tmp_path.glob("hfcf_offline-*") if path.is_dir())
    built = run(sys.executable, "-c", WHEEL, tmp_path, cwd=unpacked)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert in_offline(tracked()) <= contents(wheel)


@pytest.mark.slow
def test_the_wheels_run_the_demo_outside_the_checkout(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment that has the two wheels, and finds what they need in that of the tests."""
    fresh = tmp_path / "env"
    assert run(sys.executable, "-m", "venv", "--without-pip", fresh, cwd=tmp_path).returncode == 0
    python, pip = fresh / "bin" / "python", (sys.executable, "-m", "pip", "--python", fresh / "bin" / "python")
    installed = run(*pip, "install", "--no-deps", "--no-index", *wheels, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    site = Path(sysconfig.get_path("purelib", vars={"base": str(fresh)}))
    (site / "tests.pth").write_text(sysconfig.get_path("purelib"))  # the links of an editable installation there are not followed
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    find = "from importlib.util import find_spec; print(*(find_spec(name).origin for name in ('hfcf', 'hfcf_offline')))"
    assert run(python, "-c", find, cwd=tmp_path, env=env).stdout.split() == [
        str(site / name / "__init__.py") for name in ("hfcf", "hfcf_offline")
    ]

    demo = (fresh / "bin" / "hfcf", "run", "demo", "--out")
    made = run(*demo, "out", cwd=tmp_path, env=env)
    assert made.returncode == 0, made.stderr
    assert len(load_dataset(str(tmp_path / "out"), split="train")) > 0

    assert run(*pip, "uninstall", "--yes", "hfcf-offline", cwd=tmp_path).returncode == 0
    refused = run(*demo, "refused", cwd=tmp_path, env=env)
    assert refused.returncode == 2
    assert re.search(r'"hfcf:\w+" is in the package hfcf-offline, which is not installed.*pip install ./offline', refused.stderr)
    assert not (tmp_path / "refused").exists()
