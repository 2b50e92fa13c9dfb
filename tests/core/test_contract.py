"""The contract of DESIGN §3, for every stage of RACE: however it is mapped, the same rows; nothing but settings inside."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import parrot
import pytest
from datasets import Dataset, load_from_disk
from datasets.fingerprint import Hasher
from safetensors.torch import load_file, save_file

import hfcf
from hfcf.core import recipe, schema
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.paths import cache_dir
from hfcf.core.settings import settings_of
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines import base
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

pytestmark = pytest.mark.usefixtures("no_request_cache")
every_stage = pytest.mark.parametrize("name", list(RACE.parts))
# Of both labels, and of every fate that tiny models can give: kept, rejected as an edit, as a claim, without an entity to edit.
ROWS = [0, 1, 2, 4, 5, 8, 9, 13]


@dataclass
class Chain:
    """A fitted system, the rows as they come to each stage, where its fitted files lie, and the rows mapped one by one."""

    race: RACE
    before: dict[str, Dataset]
    folder: Path
    mapped: dict[str, Dataset] = field(default_factory=dict)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable[[str], str], spacy_ner: Ner) -> Chain:
    folder, converted = tmp_path_factory.mktemp("chain"), cache_dir() / "offline"
    (folder / "offline").symlink_to(converted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HFCF_CACHE", str(folder))
        patch.setenv("HFCF_REQUEST_CACHE", "off")
        race = RACE(
            verifier=Model(tiny_model("verifier")), generator=Model(tiny_model("t5")), encoder=Model(tiny_model("classifier")),
            ner=spacy_ner, explainer="gradient_x_input", num_beams=3, num_candidates=2, max_new_tokens=8, max_length=96,
        )  # fmt: skip
        demo = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
        race = race.fit(demo)
        rows = list(demo.select(ROWS))
        rows += [{**rows[0], "id": "no claim", "claim": None}, {**rows[0], "id": "no label", "label": NOT_ENOUGH_INFO}]
        ds = hfcf.prepare(Dataset.from_list(rows, features=demo.features), race)
        before = {}
        for name in race.parts:
            before[name] = Dataset.from_list(list(ds), features=ds.features)
            if name == "generate_claim":  # random models name nothing of what they must
                patch.setattr(Generator, "forward", parrot.forward)
            ds = map_stage(ds, getattr(race, name), {})
        before["end"] = ds
    return Chain(race, before, folder)


@pytest.fixture(autouse=True)
def fitted_files(chain: Chain, cache: Path) -> None:
    (cache / "fitted").symlink_to(chain.folder / "fitted")


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(base, "load", refuse)


def stage_of(chain: Chain, name: str) -> Any:
    return getattr(chain.race, name)


def mapped_row_by_row(chain: Chain, name: str) -> Dataset:
    """The rows after a stage that gets them one by one; made once, since most tests compare with them."""
    if name not in chain.mapped:
        chain.mapped[name] = chain.before[name].map(stage_of(chain, name))
    return chain.mapped[name]


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Equal, floats within 1e-4."""
    if isinstance(one, float) and isinstance(other, float):
        assert abs(one - other) <= 1e-4, where
    elif isinstance(one, dict) and isinstance(other, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    else:
        assert (type(one), one) == (type(other), other), where


def rejected_at(row: dict[str, Any]) -> str | None:
    return row["status"]["stage"] if row["status"] and not row["status"]["accepted"] else None


# --- what the other tests rest on


@every_stage
def test_the_test_rows_give_every_stage_something_to_do(chain: Chain, name: str) -> None:
    undecided = [row for row in chain.before[name] if not row["status"]]
    assert {row["label"] for row in undecided} >= {SUPPORTS, REFUTES}
    assert any(rejected_at(row) for row in chain.before[name]) or name == "tag_entities"
    if name in ("check_claim", "filter_claim"):
        assert sum(one["status"] is None for row in undecided for one in row["candidates"]) >= 4


def test_the_test_rows_meet_every_fate(chain: Chain) -> None:
    fates = {rejected_at(row) for row in chain.before["end"]}
    assert fates == {"tag_entities", "explain", "edit_evidence", "check_edit", "check_claim", None}
    accepted = [row for row in chain.before["end"] if not rejected_at(row)]
    assert {one["change"] for row in accepted for one in row["counterfactuals"]} == {"claim", "evidence"}


# --- however it is mapped

WAYS: dict[str, Callable[[Dataset, Stage], Any]] = {
    "batches of 4": lambda ds, stage: ds.map(stage, batched=True, batch_size=4),
    "one batch": lambda ds, stage: ds.map(stage, batched=True, batch_size=1000),
    "stream": lambda ds, stage: ds.to_iterable_dataset(num_shards=2).map(stage),
    "stream of batches": lambda ds, stage: ds.to_iterable_dataset().map(stage, batched=True, batch_size=4),
    "the system's own call": lambda ds, stage: map_stage(ds, stage, {}),
}
PARALLEL: dict[str, Callable[[Dataset, Stage], Any]] = {
    "two processes": lambda ds, stage: ds.map(stage, batched=True, batch_size=3, num_proc=2, with_rank=True),
    "two processes, row by row": lambda ds, stage: ds.map(stage, num_proc=2),
}
# A stage without a model and one with a model show processes; in those of the others every model is loaded anew.
PARALLEL_STAGES = [
    name if name in ("edit_evidence", "check_edit") else pytest.param(name, marks=pytest.mark.slow) for name in RACE.parts
]


@every_stage
def test_row_by_row_is_batched_is_streaming(chain: Chain, name: str) -> None:
    assert_mapped_alike(chain, name, WAYS)


@pytest.mark.parametrize("name", PARALLEL_STAGES)
def test_one_process_is_two(chain: Chain, name: str) -> None:
    assert_mapped_alike(chain, name, PARALLEL)


def assert_mapped_alike(chain: Chain, name: str, ways: dict[str, Callable[[Dataset, Stage], Any]]) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    mapped = mapped_row_by_row(chain, name)
    expected = list(mapped)
    assert expected != list(ds)
    for way, run in ways.items():
        found = run(ds, stage)
        assert_same(list(found), expected, way)
        assert not isinstance(found, Dataset) or found.features == mapped.features == ds.features, way


@every_stage
def test_shuffled_rows_and_single_rows_are_the_same_rows(chain: Chain, name: str) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    expected = {row["id"]: row for row in mapped_row_by_row(chain, name)}
    for other in (ds.shuffle(seed=1), ds.select([3])):
        rows = list(other.map(stage, batched=True))
        assert len(rows) == len(other)
        for row in rows:
            assert_same(row, expected[row["id"]], row["id"])


@every_stage
def test_arrays_as_ray_hands_them_over_give_the_same_rows(chain: Chain, name: str) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    arrays = {column: array([array(v) if isinstance(v, list) else v for v in ds[column]]) for column in ds.column_names}
    assert_same(stage(arrays), stage(ds[:]))


def array(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@every_stage
def test_rejected_rows_pass_untouched(chain: Chain, name: str, no_model: None) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    verdict = {"accepted": False, "stage": "earlier", "reason": "told"}
    rows = [{**row, "status": verdict, "claim": None, "entities": None} for row in ds]
    assert list(Dataset.from_list(rows, features=ds.features).map(stage, batched=True)) == rows


@every_stage
def test_it_returns_its_own_columns_and_reads_no_others(chain: Chain, name: str) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    needed = ["id", *{**stage.inputs, **stage.columns()}]
    found = stage(ds.select_columns(list(dict.fromkeys(needed)))[:])
    assert list(found) == [*stage.outputs, "status"]
    assert_same(found, stage(ds[:]))


# --- what it holds


@every_stage
def test_it_pickles_to_its_settings(chain: Chain, name: str) -> None:
    stage = stage_of(chain, name)
    before = pickle.dumps(stage)
    stage(chain.before[name][:])
    assert pickle.dumps(stage) == before
    assert len(before) < 2000
    assert pickle.loads(before) == stage
    assert pickle.dumps(pickle.loads(before)) == before


def map_stored(folder: str) -> str:
    """Map every stage over its rows on disk: hashes before and after, cache files with their times, calls and rows, as JSON."""
    found = {}
    for name in RACE.parts:
        stage = pickle.loads(Path(folder, f"{name}.pickle").read_bytes())
        hashed, before = Hasher.hash(stage), sum(record.calls for record in base.usage().values())
        ds = load_from_disk(f"{folder}/{name}").map(stage, batched=True, batch_size=4)
        files = [file["filename"] for file in ds.cache_files]
        calls = sum(record.calls for record in base.usage().values()) - before
        found[name] = [hashed, Hasher.hash(stage), files, [os.stat(file).st_mtime_ns for file in files], calls, list(ds)]
    return json.dumps(found)


@pytest.fixture(scope="module")
def elsewhere(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What this process, and after it a new one, find when they map every stage over rows on disk."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in RACE.parts:
        chain.before[name].save_to_disk(folder / name)
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(stage_of(chain, name)))
    code = f"import sys; sys.path[:0] = {sys.path}; import test_contract; print(test_contract.map_stored({str(folder)!r}))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HFCF_CACHE", str(chain.folder))
        patch.setenv("HFCF_REQUEST_CACHE", "off")
        here = map_stored(str(folder))
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return [json.loads(here), json.loads(run.stdout.splitlines()[-1])]


@every_stage
def test_its_hash_is_the_same_in_every_process_and_after_use(chain: Chain, elsewhere: list[dict[str, Any]], name: str) -> None:
    assert {hashed for run in elsewhere for hashed in run[name][:2]} == {Hasher.hash(stage_of(chain, name))}


@every_stage
def test_a_new_process_finds_the_rows_in_the_map_cache(chain: Chain, elsewhere: list[dict[str, Any]], name: str) -> None:
    (_, _, files, times, calls, rows), (_, _, files_again, times_again, calls_again, rows_again) = (run[name] for run in elsewhere)
    assert files
    assert (files, times) == (files_again, times_again)
    assert calls > 0 or name == "edit_evidence"
    assert calls_again == 0
    assert rows == rows_again
    assert_same(rows, list(mapped_row_by_row(chain, name)))


NEUTRAL = {"explain": ("explainer_model",)}
"""Settings that count for nothing here: gates, where gradients explain."""


def again(stage: Any, **changes: Any) -> Any:
    """The stage with other settings, and what it learned."""
    return replace(stage, **changes).with_fitted(stage.fitted)


def other(value: Any, name: str, chain: Chain) -> Any:
    """Some other value of the same setting."""
    special: dict[str, Any] = {"explainer": "integrated_gradients", "flip": "opposite", "script": "HEBREW"}
    special |= {
        "explainer_model": Model("me/gates"),
        "fluency_model": Model("me/lm"),
        "corrector": Model("me/corrector"),
        "max_unsupported": 2,
        "min_log_probability": -0.5,
        "max_copied": 0.8,
        "min_kept": 0.5,
        "num_candidates": 1,
        "judges": (Model("me/judge"),),
        "certainty": 0.5,
    }
    if name in special:
        return special[name]
    if isinstance(value, Model):
        return replace(value, dtype="bfloat16")
    if isinstance(value, Ner):
        return replace(value, processors="ner")
    return not value if isinstance(value, bool) else value / 2 if isinstance(value, float) else value + 1


@every_stage
def test_any_other_setting_or_version_is_another_hash(chain: Chain, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = stage_of(chain, name)
    names = [setting for setting in settings_of(type(stage)) if setting not in NEUTRAL.get(name, ())]
    changed = [again(stage, **{setting: other(getattr(stage, setting), setting, chain)}) for setting in names]
    hashes = [Hasher.hash(one) for one in (stage, stage.with_fitted("0" * 64), *changed)]
    monkeypatch.setattr(type(stage), "VERSION", stage.VERSION + "+")
    hashes.append(Hasher.hash(stage))
    assert len(set(hashes)) == len(names) + 3


@pytest.mark.parametrize("name", ["edit_evidence", "check_edit"])  # of the others, the hash alone: the test above
def test_another_setting_or_version_misses_the_map_cache(
    chain: Chain, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.before[name].save_to_disk(tmp_path / "rows")
    ds, stage = load_from_disk(tmp_path / "rows"), stage_of(chain, name)

    def file(one: Stage) -> str:
        return str(ds.map(one, batched=True).cache_files[0]["filename"])

    first = file(stage)
    assert file(stage) == first != file(again(stage, seed=14))
    monkeypatch.setattr(type(stage), "VERSION", stage.VERSION + "+")
    assert file(stage) != first


MODELS = {
    "explain": "verifier",
    "check_edit": "verifier",
    "generate_claim": "t5",
    "check_claim": "verifier",
    "filter_claim": "classifier",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_trained_again_in_place_is_another_model(
    chain: Chain, name: str, tmp_path: Path, tiny_model: Callable[[str], str]
) -> None:
    shutil.copytree(tiny_model(MODELS[name]), tmp_path / "model")
    old = stage_of(chain, name)
    model_setting = next(setting for setting in settings_of(type(old)) if isinstance(getattr(old, setting), Model))
    stage = again(old, **{model_setting: Model(str(tmp_path / "model"))})
    ds = chain.before[name]
    before, rows = Hasher.hash(stage), list(ds.map(stage, batched=True))
    assert_same(rows, list(mapped_row_by_row(chain, name)))
    weights = tmp_path / "model" / "model.safetensors"
    save_file({key: value.flip(0) for key, value in load_file(weights).items()}, weights, metadata={"format": "pt"})
    assert Hasher.hash(stage) != before
    assert list(ds.map(stage, batched=True)) != rows


# --- what it refuses


def refused(ds: Dataset, stage: Stage, *named: str) -> None:
    """The stage refuses the rows in one message that begins with its name and names all of these."""
    with pytest.raises(StageError) as error:
        ds.map(stage, batched=True)
    assert str(error.value).startswith(stage.name)
    assert all(name in str(error.value) for name in named), str(error.value)


@every_stage
def test_a_column_that_is_missing_or_null_or_not_prepared_is_named_with_its_cure(chain: Chain, name: str, no_model: None) -> None:
    ds, stage = chain.before[name], stage_of(chain, name)
    for column in stage.inputs.keys() - {"id"}:
        refused(ds.remove_columns(column), stage, repr(column), stage.produced_by.get(column, "hfcf.load"))
    refused(ds.remove_columns("id"), stage, "'id'", "hfcf.load")
    undecided = next(row for row in ds if not row["status"])
    for column, cure in stage.produced_by.items():
        rows = Dataset.from_list([{**undecided, column: None}], features=ds.features)
        refused(rows, stage, repr(column), "null", repr(undecided["id"]), cure)
    for column in {**stage.columns()}.keys() - stage.inputs.keys():
        refused(ds.remove_columns(column), stage, repr(column), "hfcf.prepare")


@pytest.mark.parametrize("name", ["edit_evidence", "filter_claim"])
def test_an_unfitted_stage_is_refused_with_the_cure(chain: Chain, name: str, no_model: None) -> None:
    refused(chain.before[name], stage_of(chain, name).with_fitted(None), "system.fit(ds)")


@every_stage
def test_a_bad_row_is_rejected_and_named_when_strict(chain: Chain, name: str, no_model: None) -> None:
    row = next(row for row in chain.before[name] if not row["status"])
    row |= {"id": "the bad one", "claim": " ", "evidence": [], "edited_evidence": []}
    stage = stage_of(chain, name)
    found = stage(row)["status"]
    assert (found["accepted"], found["stage"]) == (False, name)
    assert "empty" in found["reason"] or "no evidence" in found["reason"]
    with pytest.raises(StageError) as error:
        again(stage, strict=True)(row)
    assert all(part in str(error.value) for part in (name, "'the bad one'", found["reason"]))


@dataclass(frozen=True, kw_only=True)
class Careless(Stage):
    inputs: ClassVar = {"claim": schema.TEXT}
    outputs: ClassVar = {"edits": schema.EDITS}

    answer: Any = None

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["claim"] == "bad":
            raise Reject("it is bad")
        return dict(self.answer)


ROW = {"id": "7", "claim": "c", "edits": None, "status": None}


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"edit": []}, ("'edit'", "'7'")),
        ({"edits": [{"at": 1}]}, ("edits[0]", "['at']")),
        ({"edits": [{"start": "1"}]}, ("edits[0].start", "int64", "'1'")),
        ({"edits": [{"start": True}]}, ("edits[0].start", "int64", "True")),
        ({"edits": {"start": 1}}, ("edits", "list")),
    ],
)
def test_an_answer_that_is_not_as_declared_is_an_error(answer: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(StageError) as error:
        Careless(answer=answer)(ROW)
    assert all(name in str(error.value) for name in ("careless", *named)), str(error.value)


def test_answers_are_filled_to_the_declared_columns() -> None:
    found = Careless(answer={"edits": [{"start": 1}]})(ROW)
    assert found["edits"] == [{"field": None, "piece": None, "start": 1, "end": None, "before": None, "after": None}]


def test_a_column_that_stays_null_for_a_thousand_rows_is_filled_at_the_next() -> None:
    claims = ["bad"] * 1500 + ["c"]
    ds = Dataset.from_dict({"id": [str(i) for i in range(1501)], "claim": claims})
    stage = Careless(answer={"edits": [{"start": 1}]})
    mapped = hfcf.prepare(ds, stage).map(stage, batched=True, batch_size=100)
    assert mapped[1500]["edits"][0]["start"] == 1
    assert mapped.features["edits"] == schema.EDITS


def test_a_map_over_no_rows_keeps_the_columns(chain: Chain) -> None:
    ds = hfcf.prepare(chain.before["tag_entities"].select([]), chain.race)
    assert set(chain.race(ds).features) >= {"entities", "candidates", "counterfactuals", "status"}


def test_prepare_refuses_a_column_of_another_type() -> None:
    ds = Dataset.from_dict({"id": ["1"], "claim": ["c"], "edits": ["mine"]})
    with pytest.raises(ValueError, match=r"'edits'.*rename yours"):
        hfcf.prepare(ds, Careless())


def test_a_row_draws_the_same_in_any_process_and_place(chain: Chain) -> None:
    stage = stage_of(chain, "edit_evidence")
    assert stage.random("a").random() == stage.random("a").random() != stage.random("b").random()
    assert stage.random("a").random() != replace(stage, seed=14).random("a").random()
