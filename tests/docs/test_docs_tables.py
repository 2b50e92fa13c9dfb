"""What pages repeat of the code is what the code says: columns, defaults of settings, citations."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest
import yaml
from pages import ROOT, code, first_column, section, tables, text_of

import hfcf
from hfcf.core import recipe, schema
from hfcf.core.model import Model
from hfcf.core.settings import Setting, settings_of
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import get_task, tasks
from hfcf.systems import system_class, systems
from hfcf.text.normalise import normalise

COLUMNS, INDEX = ROOT / "docs" / "reference" / "columns.md", ROOT / "docs" / "reference" / "paper_index.md"


def stages_of(name: str) -> dict[str, list[Stage]]:
    """The stages of a system on each task that it works on, as `hfcf list systems` has them."""
    cls = system_class(name)
    preset, works_on = "offline" if "offline" in cls.presets else "paper", cls.works_on()
    return {task: list(cls.preset(preset, **({"task": task} if len(works_on) > 1 else {})).stages) for task in works_on}


def test_the_columns_page_has_what_every_stage_reads_and_fills() -> None:
    shown = {
        (system, *code(stage), "*row*" in reads, *map(tuple, (code(reads), code(fills))))
        for stage, names, reads, fills in tables(COLUMNS, "stage", "in", "reads", "fills")
        for system in code(names)
    }
    expected = set()
    for name in systems():
        for task, stages in stages_of(name).items():
            row = list(get_task(task).features)
            for stage in stages:
                whole = set(row) <= set(stage.inputs)
                reads = [column for column in stage.inputs if not whole or column not in row]
                expected.add((name, stage.name, whole, tuple(reads), tuple(stage.outputs)))
    assert shown == expected


def test_the_columns_page_has_every_column() -> None:
    shown: dict[str, list[str]] = {}
    for task, column, _ in tables(COLUMNS, "task", "column", "type"):
        shown.setdefault(task or list(shown)[-1], []).extend(code(column))
    assert shown == {name: list(task.features) for name, task in tasks().items()}
    assert first_column(section(COLUMNS, "Provenance")) == set(schema.PROVENANCE)
    assert set(schema.REJECTED) <= set(code(section(COLUMNS, "Status")))
    filled = {column for name in systems() for stages in stages_of(name).values() for stage in stages for column in stage.outputs}
    assert filled <= first_column(text_of(COLUMNS))


def test_the_paper_index_names_files_and_settings_that_exist() -> None:
    rows = [
        *tables(INDEX, "section", "what", "file", "setting", "deviation"),
        *tables(INDEX, "paper", "as in", "file", "setting", "deviation"),
    ]
    assert len(rows) > 60
    for cells in rows:
        assert len(cells) == 5, cells
        files = code(cells[2])
        assert files, cells
        for setting in code(cells[3]):
            assert (in_recipe if re.match(r"[\w.]+: ", setting) else in_code)(setting, files), setting


def in_recipe(setting: str, files: Sequence[str]) -> bool:
    """Whether one of the recipes has "key: value", with its default preset; a dotted key reaches inside."""
    key, _, value = setting.partition(": ")
    found = []
    for file in files:
        content: Any = recipe.read_recipe(ROOT / file) if file.endswith(".yaml") else {}
        for part in key.split("."):
            content = content.get(part) if isinstance(content, dict) else None
        found.append(content)
    return yaml.safe_load(value) in found


def in_code(setting: str, files: Sequence[str]) -> bool:
    """Whether a class of one of the files has the field, with that default if one is told."""
    name, _, value = setting.partition("=")
    of, _, attribute = name.partition(".")
    for file in files:
        module = (
            import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")) if file.endswith(".py") else None
        )
        if cls := getattr(module, of, None):
            known = cls.schema if issubclass(cls, System) else settings_of(cls)
            return default(known[attribute]) == ast.literal_eval(value) if value else attribute in known or hasattr(cls, attribute)
    return False


def default(setting: Setting) -> Any:
    return setting.default.name if isinstance(setting.default, Model) else setting.default


@pytest.mark.parametrize("name", ["race", "crossaug", "ccg", "rgf"])
def test_the_citation_file_names_the_papers_as_the_systems_cite_them(name: str) -> None:
    entry = dict(re.findall(r"^\s*(\w+) = \{(.*)\},?$", system_class(name).citation, re.MULTILINE))
    cited = yaml.safe_load(text_of(ROOT / "CITATION.cff"))
    (found,) = [one for one in cited["references"] if normalise(one["title"]) == normalise(entry["title"])]
    authors = [f"{one['family-names']}, {one['given-names']}" for one in found["authors"]]
    assert authors == entry["author"].split(" and ")
    assert found["year"] == int(entry["year"])
    assert cited["version"] == hfcf.__version__
