"""The folders that recipes read stand in docs/reference/corpora.md, with where to get what they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hfcf import corpora
from hfcf.core import recipe as recipes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "corpora.md").read_text(encoding="utf-8")
DATA = os.environ.get("HFCF_DATA")
ROW = re.compile(r"^\| (`[^|]+`) \| `(\w+)` \| (.+) \|$", re.MULTILINE)
FOLDERS = {folder.strip("`/"): corpus for folders, corpus, _ in ROW.findall(PAGE) for folder in folders.split(", ")}


def sources(content: Any) -> Iterator[tuple[str, str]]:
    """The corpus and folder of every source in a recipe whose folder lies in `data_dir`."""
    if isinstance(content, dict):
        folder = content.get("data_dir") or content.get("data_files")
        if isinstance(content.get("corpus"), str) and isinstance(folder, str) and not folder.startswith("recipes:"):
            yield content["corpus"], folder
        for value in content.values():
            yield from sources(value)
    elif isinstance(content, list):
        for value in content:
            yield from sources(value)


def known(folder: str) -> str | None:
    """The corpus of a folder or of one above it."""
    parts = Path(folder).parts
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if corpus := FOLDERS.get(name, name if name in corpora.names() else None):
            return corpus
    return None


@pytest.mark.parametrize("name", recipes.names())
def test_every_folder_of_a_recipe_is_in_the_docs(name: str) -> None:
    content = yaml.safe_load(recipes.find_recipe(name).read_text(encoding="utf-8"))
    for corpus, folder in sources(content):
        assert known(folder) == corpus or (corpus in ("csv", "jsonl") and known(folder)), f"{name}: {folder}"


def test_every_folder_in_the_docs_is_one_of_a_recipe() -> None:
    contents = [yaml.safe_load(recipes.find_recipe(name).read_text(encoding="utf-8")) for name in recipes.names()]
    read = {folder for content in contents for _, folder in sources(content)}
    assert [folder for folder in FOLDERS if not any(path == folder or path.startswith(f"{folder}/") for path in read)] == []


def test_errors_point_to_lines_that_are_there() -> None:
    for name in corpora.names():
        if corpora.builder_class(name).INFO.paper:
            assert f'<a id="{name}"></a>' in PAGE, name


@pytest.mark.skipif(not DATA, reason="HFCF_DATA names no folder of releases")
@pytest.mark.parametrize("name", ["train_verifier", "train_generator", "compare_race", "compare_crossaug", "compare_crossaug_low"])
def test_the_folders_of_the_offline_presets_are_read(name: str) -> None:
    content = yaml.safe_load(recipes.find_recipe(name).read_text(encoding="utf-8"))
    for corpus, folder in sources(content["presets"]["offline"]):
        place = Path(str(DATA)) / folder
        assert place.is_file() if corpus in ("csv", "jsonl") else corpora.builder_class(corpus).find(place, corpus), folder
