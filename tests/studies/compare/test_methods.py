"""What a cell's key knows of a method: versions, settings and weights, not what its stages call them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from swap_system import SwapRelation

from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.engines.ner import Ner
from hfcf.studies.compare.age import age, versions_of
from hfcf.studies.compare.methods import Method, plain
from hfcf.studies.compare.samples import Sample
from hfcf.systems import system_class
from hfcf.systems.race.system import RACE
from hfcf.training.trainer import Hyperparameters


@dataclass(frozen=True, kw_only=True)
class Draw(SwapRelation):
    share: float = 0.5
    model: Model = Model("m")


@dataclass(frozen=True, kw_only=True)
class Pick(SwapRelation):
    """`Draw` under other names."""

    weights: Model = Model("m")
    part: float = 0.5


def system_of(stage: type[Stage], version: str = "1", **fields: Any) -> System:
    class Made(System):
        VERSION = version
        task = "relation"
        chain = (stage,)

    return Made(**fields)


def making(*args: Any, **fields: Any) -> Any:
    return Method("any", system_of(*args, **fields)).making


@pytest.fixture(autouse=True)
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def test_names_of_stages_and_of_their_settings_do_not_count() -> None:
    assert making(Draw) == making(Pick)


def test_settings_versions_and_weights_count(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = making(Draw)
    assert making(Draw, share=0.25) != before
    assert making(Draw, version="2") != before
    (weights / "config.json").write_text('{"layers": 3}', encoding="utf-8")
    assert making(Draw) != before
    (weights / "config.json").write_text("{}", encoding="utf-8")
    assert making(Draw) == before
    monkeypatch.setattr(Draw, "VERSION", "2")
    assert making(Draw) != before


def test_what_is_trained_on_counts_and_a_name_does_not() -> None:
    system = system_of(Draw)
    one = Method("one", system).definition
    assert Method("another", system).definition == one
    assert Method("one", system, copies=True).definition != one
    assert Method("one", system, changes=("claim",)).definition != Method("one", system, changes=("evidence",)).definition
    assert Method("one", system, changes=("claim",)).making == Method("one", system).making


def test_a_fluency_model_and_its_engine_count_where_there_is_one() -> None:
    race = RACE(verifier="m", generator="m", encoder="m", explainer="gradient_x_input", ner=Ner(backend="spacy", model=Model("m")))
    before, after = Method("RACE", race).making, Method("RACE", race.replace(fluency_model="m")).making
    assert after["stages"] != before["stages"]


def test_trainings_without_bf16_keep_the_cells_of_before_there_was_a_choice(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    hp = Hyperparameters(model=Model(str(tmp_path)))
    row = {"id": "1", "claim": "Rome is old.", "evidence": [{"title": "", "text": "It is."}], "label": "SUPPORTS"}
    sample = Sample(Dataset.from_list([row]), None, [], hp, ())
    before = ["max_length", "batch_size", "learning_rate", "epochs", "warmup", "weight_decay", "tune", "rank"]
    assert list(sample.definition["hp"]) == before
    mixed = replace(hp, bf16=True)
    assert replace(sample, hp=mixed).definition["hp"] == {**sample.definition["hp"], "bf16": True}
    # A system that trains has such settings, too.
    assert "bf16" not in plain({"classifier": hp})["classifier"]
    assert plain({"classifier": mixed})["classifier"]["bf16"] is True


def test_the_age_of_a_cell_names_what_changed() -> None:
    today = {"comparison": "2", "edit": "5"}
    assert age(today, today) == ""
    assert age(None, today) == "of unknown version"
    old = {"comparison": "2", "explain": "1"}
    assert age(old, today) == "computed before edit 5 (its version: none), explain was removed (its version: 1)"
    assert versions_of(None).keys() == {"comparison"}
    assert {"system ccg", "expand_relation", "engine Parser"} <= versions_of(system_class("ccg")).keys()
