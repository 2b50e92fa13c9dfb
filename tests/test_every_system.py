"""CrossAug and every baseline: the same rows however they are mapped, nothing lost, and each result leads back to its source."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from conftest import installed
from datasets import Dataset

import hfcf
from hfcf import edits, recipe, schema
from hfcf.engines.model import Model
from hfcf.runner import SYSTEMS, system_class
from hfcf.stage import StageError, System

pytestmark = pytest.mark.usefixtures("no_request_cache")

# Which tiny model each setting names. (The LLM asks a server: tests/baselines/test_llm.py has one.)
MODELS = {
    "crossaug": {"generator": "t5"},
    "eda": {},
    "synonym": {},
    "masked_lm": {"model": "mlm"},
    "back_translation": {"forward": "bart", "backward": "t5"},
    "paraphrase": {"generator": "gpt2"},
    "polyjuice": {"generator": "gpt2"},
}
SMALL = {
    "crossaug": {"num_beams": 2, "max_new_tokens": 8},
    "back_translation": {"num_beams": 2, "max_new_tokens": 8},
    "paraphrase": {"num_beams": 2, "max_new_tokens": 8},
    "polyjuice": {"num_beams": 2, "max_new_tokens": 8},
}
every_system = pytest.mark.parametrize("name", MODELS)


def test_all_systems_are_tested() -> None:
    assert set(MODELS) | {"race", "llm"} == set(SYSTEMS)


@pytest.fixture
def system(name: str, tiny_model: Callable[[str], str]) -> System:
    if name in ("eda", "synonym") and not installed("wordnet"):
        pytest.skip("the offline WordNet is not installed")
    models = {setting: Model(tiny_model(kind)) for setting, kind in MODELS[name].items()}
    return system_class(name)(**models, **SMALL.get(name, {}))


@pytest.fixture
def rows() -> Dataset:
    demo = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    made = list(demo.select(range(4)))
    made += [{**made[0], "id": "nei", "label": schema.NOT_ENOUGH_INFO}, {**made[0], "id": "no claim", "claim": " "}]
    made += [{**made[0], "id": "no letters", "claim": "1994–2006: Αθήνα!"}, {**made[0], "id": "no evidence", "evidence": []}]
    return Dataset.from_list(made, features=demo.features)


WAYS: dict[str, Callable[[Dataset, Any], Any]] = {
    "row by row": lambda ds, stage: ds.map(stage),
    "two processes": lambda ds, stage: ds.map(stage, batched=True, batch_size=2, num_proc=2),
    "stream": lambda ds, stage: ds.to_iterable_dataset().map(stage, batched=True, batch_size=5),
    "backwards": lambda ds, stage: reversed(list(ds.select(range(len(ds) - 1, -1, -1)).map(stage, batched=True))),
}


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


@every_system
def test_every_stage_gives_equal_rows_however_it_is_mapped(name: str, system: System, rows: Dataset) -> None:
    ds = hfcf.prepare(rows, for_=system)
    for stage in system.stages:
        expected = ds.map(stage, batched=True)
        assert pickle.loads(pickle.dumps(stage)) == stage
        # The check is the same stage in every system, so one shows it; its input alone differs.
        for way, run in WAYS.items() if stage.name != "check_pairs" or name == "crossaug" else ():
            assert rounded(list(run(ds, stage))) == rounded(list(expected)), (stage.name, way)
        ds = Dataset.from_list(list(expected), features=expected.features)
    decided = list(ds)
    assert [row["id"] for row in decided] == list(rows["id"])
    assert all(row["status"] and row["status"]["accepted"] is bool(row["counterfactuals"]) for row in decided)


@every_system
def test_counterfactuals_lead_back_to_their_source(name: str, system: System, rows: Dataset) -> None:
    ds = system(rows)
    sources, made = {row["id"]: row for row in rows}, hfcf.expand(ds)
    for row in made:
        source = sources[row["source_id"]]
        assert (row["system"], row["group_id"]) == (name, source["group_id"])
        assert edits.revert(row, row["edits"]) == {key: source[key] for key in ("claim", "evidence")}
        assert (row["label"] != source["label"]) == (type(system).flips and row["change"] != "both")
    lost = {row["source_id"] for row in hfcf.rejected(ds, system=name) if row["level"] == "row"}
    assert lost | set(made["source_id"]) == set(rows["id"])
    assert not lost & set(made["source_id"])
    assert {"no claim", "no evidence"} <= lost


@every_system
def test_a_stage_that_comes_too_early_says_so(name: str, system: System, rows: Dataset) -> None:
    ds = hfcf.prepare(rows, for_=system)
    with pytest.raises(StageError, match="reads the column 'candidates', which is null"):
        ds.map(system.check_pairs, batched=True)  # type: ignore[attr-defined]


@every_system
def test_its_presets_are_known(name: str) -> None:
    cls = system_class(name)
    # The paraphraser of the paper has no name that could be a default.
    models = {"generator": Model("mine")} if name == "paraphrase" else {}
    for preset in cls.presets:
        assert cls.preset(preset, **models).chain[-1] == "check_pairs"
    with pytest.raises(ValueError, match=f"{cls.__name__.lower()} has no preset 'small': choose one of paper"):
        cls.preset("small")
