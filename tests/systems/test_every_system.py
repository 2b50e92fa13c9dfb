"""CrossAug, CCG and baselines: the same rows however they are mapped, nothing lost, and each result leads back to its source."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping

import pytest
import tiny_systems
from datasets import Dataset, Features, Value
from same_rows import WAYS, assert_near

import hfcf
from hfcf.cli import console
from hfcf.cli.listing import list_
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.schema import STATUS
from hfcf.core.stage import StageError
from hfcf.core.system import System
from hfcf.core.task import get_task, revert_edits
from hfcf.systems import system_class, systems

pytestmark = pytest.mark.usefixtures("no_request_cache")

# An untrained generator never ends its sentence, and what is cut off is rejected. In tests of their own these have one that does.
# Nobody revised the tiny texts.
SILENT = {"crossaug", "back_translation", "paraphrase", "polyjuice", "revisions"}
BROKEN = {"verification": {"no claim", "no evidence"}, "relation": {"no tokens", "no place"}, "classification": {"no text"}}


CASES = [(name, task) for name in systems() if name not in tiny_systems.ELSEWHERE for task in system_class(name).works_on()]
every_system = pytest.mark.parametrize(("name", "task"), CASES)


def test_rewriting_baselines_work_on_every_task_with_a_text_to_rewrite() -> None:
    rewriting = {name for name in systems() if len(system_class(name).works_on()) > 1}
    assert {"synonym", "masked_lm", "back_translation", "paraphrase", "llm", "eda", "polyjuice"} <= rewriting
    assert sorted(system_class("synonym").works_on()) == ["classification", "relation", "verification"]
    assert sorted(system_class("polyjuice").works_on()) == ["classification", "verification"]


def test_an_unknown_system_leads_to_the_nearest_name() -> None:
    with pytest.raises(RecipeError, match=r"'synonyms'.*'synonym'"):
        system_class("synonyms")


def test_the_list_names_every_task_of_a_system(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "width", 200)
    list_("systems")
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line for line in lines if line.startswith("synonym")) == [
        "synonym  classification",
        "synonym  relation",
        "synonym  verification",
    ]
    assert sum("rewrite_synonym" in line for line in lines) == 3


@pytest.fixture
def system(name: str, task: str, tiny_model: Callable[[str], str]) -> System:
    return tiny_systems.make(name, task, tiny_model)


@pytest.fixture
def rows(task: str) -> Dataset:
    return tiny_systems.rows(task)


# Stage's own mapping is the same code for every stage, and tests/core/test_contract.py maps RACE's stages every way.
@every_system
@pytest.mark.parametrize("ways", [["row by row"], pytest.param(list(WAYS), marks=pytest.mark.slow)], ids=["row", "all"])
def test_every_stage_gives_equal_rows_however_it_is_mapped(
    name: str, task: str, system: System, rows: Dataset, ways: list[str]
) -> None:
    ds = hfcf.prepare(rows, system)
    for stage in system.fit(ds).stages:
        expected = ds.map(stage, batched=True)
        assert pickle.loads(pickle.dumps(stage)) == stage
        # The check is the same stage in every system, so one shows it; its input alone differs.
        for way in ways if stage != system.stages[-1] or name in ("crossaug", "ccg") else ():
            assert_near(list(WAYS[way](ds, stage)), list(expected), f"{stage.name}, {way}")
        ds = Dataset.from_list(list(expected), features=expected.features)
    decided = list(ds)
    assert [row["id"] for row in decided] == list(rows["id"])
    assert all(row["status"] and row["status"]["accepted"] is bool(row["counterfactuals"]) for row in decided)


@every_system
def test_counterfactuals_lead_back_to_their_source(name: str, task: str, system: System, rows: Dataset) -> None:
    ds = system(rows)
    sources, made = {row["id"]: row for row in rows}, hfcf.expand(ds)
    for row in made:
        source = sources[row["source_id"]]
        assert (row["system"], row["group_id"]) == (name, source["group_id"])
        assert revert_edits(row, row["edits"]) == {key: source[key] for key in get_task(task).columns}
        assert (row["label"] != source["label"]) == (type(system).flips and row["change"] != "both")
    rejections = hfcf.rejected(ds)
    assert set(rejections["system"]) == {name}
    lost = {row["source_id"] for row in rejections if row["level"] == "row"}
    assert lost | set(made["source_id"]) == set(rows["id"])
    assert not lost & set(made["source_id"])
    assert BROKEN[task] <= lost
    assert len(made) or name in SILENT


@every_system
def test_a_stage_that_comes_too_early_says_so(name: str, task: str, system: System, rows: Dataset) -> None:
    ds = hfcf.prepare(rows, system)
    with pytest.raises(StageError, match=r"column 'candidates'.*null"):
        ds.map(system.stages[-1], batched=True)


@every_system
def test_a_system_takes_its_task_from_the_rows(name: str, task: str, system: System, rows: Dataset) -> None:
    if len(system_class(name).works_on()) > 1:
        other = next(task_name for task_name in system_class(name).works_on() if task_name != task)
        assert list(system.replace(task=other)(rows)) == list(system(rows))
    else:
        assert system.task == task


@every_system
def test_its_presets_are_known(name: str, task: str) -> None:
    cls = system_class(name)
    # The paraphraser of the paper has no name that could be a default.
    models = {"generator": Model("mine")} if name == "paraphrase" else {}
    for preset in cls.presets:
        assert cls.preset(preset, **models).stages[-1].name == "judge_candidates"
    with pytest.raises(ValueError, match=rf"{name}.*'small'.*paper"):
        cls.preset("small")


@pytest.mark.parametrize("name", ["race", "crossaug", "ccg", "rgf", "checkwhy"])
def test_rejections_name_their_system_where_nothing_was_made(name: str) -> None:
    for other in systems():
        system_class(other)
    cls = system_class(name)
    outputs = [part.stage.outputs for part in cls.parts.values()]
    columns = {column: Value("string") for own in outputs if isinstance(own, Mapping) for column in own}
    features = Features({**columns, **get_task(cls.works_on()[0]).features, "status": STATUS})

    def ending(*stages: str) -> Dataset:
        row = dict.fromkeys(features)
        rows = [{**row, "id": one, "group_id": one, "status": {"accepted": False, "stage": one, "reason": "no"}} for one in stages]
        return Dataset.from_list(rows, features=features)

    assert set(hfcf.rejected(ending(*cls.parts))["system"]) == {name}
    if name in ("race", "crossaug"):  # both tag entities: their columns tell them apart
        assert hfcf.rejected(ending("tag_entities"))["system"] == [name]
    if name == "ccg":  # MICE and AutoCAD have the same stage and the same columns
        assert hfcf.rejected(ending("identify_causal_terms"))["system"] == [None]
    with pytest.raises(ValueError, match="system"):  # whatever system it is
        hfcf.rejected(ending("load").remove_columns("status"))
