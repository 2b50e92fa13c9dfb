"""What pages repeat of the code is what the code says: columns, defaults of settings, citations."""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import Any

import pytest
import yaml
from pages import ROOT, code, first_column, section, tables, text_of
from parts.reference import KINDS, PARTS, TABLES, path_of
from parts.settings import SHARED, settings_list

import hfcf
from hfcf.core import recipe, schema
from hfcf.core.model import Model
from hfcf.core.settings import Setting
from hfcf.core.stage import Stage
from hfcf.core.task import get_task, tasks
from hfcf.systems import system_class, systems
from hfcf.text.normalise import normalise

REFERENCE = ROOT / "docs" / "reference"
COLUMNS, INDEX, STAGES = REFERENCE / "columns.md", REFERENCE / "paper_index.md", REFERENCE / "api" / "stages.md"


def stages_of(name: str) -> dict[str, list[Stage]]:
    """The stages of a system on each task that it works on, as `hfcf list systems` has them."""
    cls = system_class(name)
    preset, works_on = "offline" if "offline" in cls.presets else "paper", cls.works_on()
    return {task: list(cls.preset(preset, **({"task": task} if len(works_on) > 1 else {})).stages) for task in works_on}


def test_the_page_of_stages_has_what_each_needs_and_fills() -> None:
    shown = {}
    for path, about, columns in tables(STAGES, "stage", "what it does", "needs → fills"):
        needs, fills = (tuple(code(part)) for part in columns.split("→"))
        shown[code(path)[0]] = {(needs, fills)}
        assert about
    expected: dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for name in systems():
        for task, stages in stages_of(name).items():
            for stage in stages:
                path = "hfcf.JudgeCandidates" if type(stage) is hfcf.JudgeCandidates else path_of(type(stage))
                needs = tuple(column for column in stage.inputs if column not in get_task(task).features)
                expected.setdefault(path, set()).add((needs, tuple(stage.outputs)))
    assert shown == expected


def test_every_setting_of_a_paper_s_system_is_on_its_list() -> None:
    owners = {name: set(system_class(name).schema) for name in ("race", "crossaug", "ccg", "rgf", "checkwhy")}
    assert all(sum(name in known for known in owners.values()) > 1 for name in SHARED)
    for name, known in owners.items():
        told = {re.split("[=`]", line)[0] for line in re.findall(r"`(\w+[^`]*`)", settings_list(name))}
        assert known - told <= {"seed", "strict", "unique"}, name


def test_a_setting_is_described_by_a_whole_clause() -> None:
    told = {line.partition("=")[0].removeprefix("- `"): line for line in section(REFERENCE / "settings.md", "CCG").splitlines()}
    assert '"all"' in told["phrases"]
    for line in told.values():
        assert all(line.count(opened) == line.count(closed) for opened, closed in ("()", "{}", "[]")), line


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("keys_")])
def test_every_key_of_a_recipe_is_explained(name: str) -> None:
    lines = TABLES[name]().splitlines()
    assert len(lines) > 2
    for line in lines:
        assert re.fullmatch(r"- `\w+(: [^`]+)?`: [^ ].{6,}", line), line


@pytest.mark.parametrize(("title", "kind"), [("Of a run", "run"), ("Of a training", "train"), ("Of a comparison", "compare")])
def test_the_page_of_recipes_has_every_key_of_a_kind_once(title: str, kind: str) -> None:
    lists = [section(REFERENCE / "recipes.md", one).partition("An entry of")[0] for one in ("Keys", title)]
    shared, own = (re.findall(r"^- `(\w+)", text, re.MULTILINE) for text in lists)
    fields = resolve_name(KINDS[kind]).model_fields
    assert sorted([*(key for key in shared if key in fields), *own]) == sorted(fields)


def test_the_page_of_stages_names_every_system_that_has_one() -> None:
    papers = ("race", "crossaug", "ccg", "rgf", "checkwhy")
    shown: dict[str, set[str]] = {}
    for title in ("RACE", "CrossAug", "CCG", "RGF", "CheckWhy", "Baselines"):
        for line in section(STAGES, title).splitlines():
            if line.startswith("| `hfcf"):
                _, path, about, *_ = line.split("|")
                named = {name for one in re.findall(r"\((?:also )?in (.*)\) $", about) for name in re.findall(r"\w+", one)}
                shown.setdefault(code(path)[0], set()).update({title.lower()} - {"baselines"}, named)
    expected: dict[str, set[str]] = {}
    for name in systems():
        for part in system_class(name).parts.values():
            path = "hfcf.JudgeCandidates" if part.stage is hfcf.JudgeCandidates else path_of(part.stage)
            expected.setdefault(path, set()).add(name)
    for path, users in expected.items():
        if users & set(papers) and users - set(papers):
            expected[path] = users & set(papers) | {"baselines"}
    assert shown == expected


def test_the_columns_page_has_every_column() -> None:
    shown = {
        task: {*re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", columns))} for task, columns in tables(COLUMNS, "task", "columns")
    }
    everywhere = {"id", "group_id", "corpus", "split"}
    assert shown == {name: set(task.features) - everywhere for name, task in tasks().items()}
    assert everywhere <= set(code(section(COLUMNS, "Your rows")))
    assert first_column(section(COLUMNS, "Provenance")) == set(schema.PROVENANCE)
    assert set(schema.REJECTED) <= set(code(section(COLUMNS, "Status")))
    filled = {column for name in systems() for stages in stages_of(name).values() for stage in stages for column in stage.outputs}
    assert filled <= first_column(text_of(COLUMNS))


@pytest.mark.parametrize("title", ["RACE", "CrossAug", "CCG", "RGF", "CheckWhy"])
def test_the_paper_index_names_settings_and_recipes_that_exist(title: str) -> None:
    system = system_class(title.lower())
    rows = [line.strip("| ").split(" | ") for line in section(INDEX, title).splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 6
    for _, here, differs in rows:
        assert code(here), here
        for name in code(f"{here} {differs}"):
            setting, equals, value = name.partition("=")
            if equals:
                assert str(system.presets["paper"].get(setting, default(system.schema[setting]))) == value, name
            else:
                assert name.startswith(("hfcf", "--")) or name in {*system.schema, *known_keys()}, name


def test_the_paper_index_has_every_baseline_of_a_paper() -> None:
    named = {name for _, here, _ in tables(INDEX, "paper", "here", "what differs") for name in code(here)}
    others = {"gold_agen_qgen", "rand_agen_qgen", "revisions"}  # of RGF's paper; not compared by a paper that they are of
    baselines = {name for name in systems() if ".baselines." in system_class(name).__module__}
    assert named - {"similarity"} == baselines - others


def known_keys() -> set[str]:
    """The names of recipes, of their presets and of their keys."""
    contents = {name: yaml.safe_load(recipe.find_recipe(name).read_text(encoding="utf-8")) for name in recipe.names()}
    keys = {key for content in contents.values() for key in (*content, *content.get("presets", ()))}
    paths = [*KINDS.values(), *(path for path, _ in PARTS.values())]
    fields = {field for path in paths for field in resolve_name(path).model_fields}
    return {*contents, *keys, *fields}


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
