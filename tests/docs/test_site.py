"""The site has every page and every public name, and builds strictly without the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT, text_of
from test_docs import resolve

import hfcf

DOCS = ROOT / "docs"


class Loader(yaml.SafeLoader):
    """Read mkdocs.yml without calling what its tags name."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
CONFIG: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def entries(nav: Any) -> Iterator[str]:
    """The pages of a navigation, from top to bottom."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from entries(part)


def shown() -> list[str]:
    """The names of all objects of the API that pages list, of which the site shows the docstrings."""
    listed = re.compile(r"^\| `(hfcf\.[\w.]+)` \||^<!-- objects: (.*) -->$", re.MULTILINE)
    texts = [text_of(page) for page in (DOCS / "reference").rglob("*.md")]
    return [name for text in texts for one, more in listed.findall(text) for name in ([one] if one else more.split())]


def test_the_navigation_has_every_page_once() -> None:
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(entries(CONFIG["nav"])) == sorted([*pages, "index.md"])  # the front page is README.md


def test_the_api_pages_show_all_that_the_library_exports_once() -> None:
    names = shown()
    assert {f"hfcf.{name}" for name in hfcf.__all__} <= set(names)
    assert len(set(map(id, map(resolve, names)))) == len(names)


@pytest.mark.slow
def test_the_site_builds_strictly_and_asks_no_other_host(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason='the site is not installed: pip install ".[docs]"')
    pytest.importorskip("mkdocstrings_handlers.python", reason='the site is not installed: pip install ".[docs]"')
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    loads = re.compile(r'<(?:script|img|iframe|source)\b[^>]*?\bsrc(?:set)?="(\w+:[^"]+)|<link\b[^>]*?\bhref="(\w+:[^"]+)')
    for page in tmp_path.rglob("*.html"):
        assert not loads.findall(text_of(page)), page.name
    assert '<h3 id="hfcf.load"' in text_of(tmp_path / "reference" / "api" / "data.html")
    assert '<h3 id="hfcf.metrics.copy_rate.measure_copy_rate"' in text_of(tmp_path / "reference" / "metrics.html")
    assert "hfcf.load" in text_of(tmp_path / "search" / "search_index.json")
