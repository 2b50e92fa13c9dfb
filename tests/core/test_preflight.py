"""What is known before the first stage is checked before it."""

from __future__ import annotations

import importlib.util
import json
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, Value

import hfcf
from hfcf.core import model_checks, offline, preflight
from hfcf.core.model import Model
from hfcf.core.preflight import looks_foreign
from hfcf.core.settings import models_in
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.systems import system_class, systems
from hfcf.systems._shared.judge import JudgeCandidates

ROW = {
    "id": "1", "claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "Rome is very old."}], "label": "SUPPORTS",
    "group_id": "1", "corpus": "mine", "split": "train",
}  # fmt: skip


CHECK_HUB_ID = model_checks.check_hub_id


@pytest.fixture(autouse=True)
def hub_ids_are_checked(any_hub_id: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_checks, "check_hub_id", CHECK_HUB_ID)


def race(**settings: Any) -> Any:
    return hfcf.RACE.preset("offline", **settings)


def without(*columns: str) -> Dataset:
    return Dataset.from_list([ROW]).remove_columns(list(columns))


def test_good_rows_pass() -> None:
    preflight.check_system(race())
    preflight.check_rows(race(), Dataset.from_list([ROW]))


def test_rows_in_another_language_are_counted_once_a_run(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    german = {"claim": "Rom ist eine alte Stadt.", "evidence": [{"title": "Rom", "text": "Rom ist die Hauptstadt von Italien."}]}
    rows = Dataset.from_list([ROW, {**ROW, **german, "id": "de"}, {**ROW, "id": "3", "claim": None}])
    monkeypatch.setattr("hfcf.core.runner.map_stage", lambda ds, *_: ds)
    for ds, limit, counted in (
        (rows, None, "1 of 3 rows"),
        (rows.to_iterable_dataset(), None, "1 of the first 3 rows"),
        (rows, 1, ""),
    ):
        caplog.clear()
        hfcf.EDA()(ds, limit=limit)
        assert [record.getMessage().partition(" are")[0] for record in caplog.records] == [counted] * bool(counted)
        assert all("such as 'de'" in record.getMessage() for record in caplog.records)


FOREIGN = Dataset.from_list([{**ROW, "label": "entailment"}, {**ROW, "id": "2", "label": "contradiction"}])


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (without("group_id"), ("'group_id'", "from_dataset")),
        (without("id", "group_id"), ("'id'", "'group_id'")),
        (Dataset.from_list([{**ROW, "evidence": "Rome is very old."}]), ("'evidence'", "string", "from_dataset")),
        ([ROW], ("list", "from_dataset")),
        (FOREIGN, ("contradiction", "labels=")),
        (FOREIGN.to_iterable_dataset(), ("contradiction", "labels=")),
        (Dataset.from_list([ROW, {**ROW, "id": "2"}, ROW]), (repr(ROW["id"]), "1 id")),
        (Dataset.from_list([ROW, {**ROW, "id": None}]), ("row 1", "no id")),
    ],
    ids=["a column of the last stage", "two columns", "a text", "no dataset", "labels", "labels of a stream", "joined", "no id"],
)
def test_rows_are_refused_before_the_first_stage_runs(rows: Any, named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfcf.core.runner.map_stage", lambda *_: pytest.fail("a stage ran"))
    with pytest.raises(StageError) as error:
        race()(rows)
    assert all(name in str(error.value) for name in named), str(error.value)


def test_columns_that_earlier_stages_fill_need_not_be_there() -> None:
    preflight.check_columns(race().stages, Dataset.from_list([ROW]))
    with pytest.raises(StageError, match="'entities'"):
        preflight.check_columns(race().stages[1:], Dataset.from_list([ROW]))


def test_classes_and_integers_as_labels_are_refused() -> None:
    features = Features({"id": Value("string"), "claim": Value("string"), "label": ClassLabel(names=["entailment", "neutral"])})
    stage = type("Reads", (), {"inputs": {"label": Value("string")}, "outputs": {}, "name": "reads"})()
    rows = Dataset.from_dict({"id": ["1"], "claim": ["c"], "label": [0]}, features=features)
    with pytest.raises(StageError, match=r"'label'.*entailment, neutral.*string"):
        preflight.check_columns([stage], rows)


def test_a_language_model_that_does_not_know_a_label_is_refused_with_the_line_to_type() -> None:
    rows = Dataset.from_list([{"text": "It is dull.", "label": label} for label in ("bad", "good")])
    judge = JudgeCandidates(system="llm", task="classification", verifier=Model("llm:m"))
    system: Any = SimpleNamespace(task="classification", stages=(judge,))
    with pytest.raises(ValueError, match=r'bad, good.*Model\("llm:m", labels=\{"bad": "bad", "good": "good"\}\)'):
        preflight.check_verdicts(system, rows)
    named = Model("llm:m", labels={"unfavourable": "bad", "favourable": "good"})
    preflight.check_verdicts(SimpleNamespace(task="classification", stages=(replace(judge, verifier=named),)), rows)


def test_a_language_model_chooses_between_two_relations_of_any_name() -> None:
    words = {"tokens": ["eggs", "in", "buckets"], "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}
    rows = Dataset.from_list([{**words, "label": label} for label in ("Other", "PHYS")])
    judge = JudgeCandidates(system="ccg", task="relation", verifier=Model("llm:m"))
    preflight.check_verdicts(SimpleNamespace(task="relation", stages=(judge,)), rows)  # type: ignore[arg-type]


def test_rows_that_were_rejected_when_they_were_loaded_have_any_label() -> None:
    status = {"accepted": False, "stage": "load", "reason": "the label 'x' is unknown"}
    preflight.check_rows(race(), Dataset.from_list([{**ROW, "label": "x", "status": status}]))


def test_a_verifier_whose_classes_mean_nothing_known_is_refused(tmp_path: Path) -> None:
    config = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"labels=.*LABEL_0"):
        preflight.check_system(race(verifier=str(tmp_path)))


def test_one_good_label_among_others_is_enough() -> None:
    preflight.check_rows(race(), Dataset.from_list([ROW, {**ROW, "id": "2", "label": "entailment"}]))


def test_a_missing_folder_is_an_error_with_the_command_that_trains_it(tmp_path: Path) -> None:
    system = hfcf.RACE(
        verifier=str(tmp_path / "verifier"), generator="out/no-such-generator", explainer_model="out/gates", ner=race().ner
    )
    with pytest.raises(ValueError, match="trained first") as error:
        preflight.check_system(system)
    assert "hfcf train train_generator --out out/no-such-generator" in str(error.value)
    assert "hfcf train train_explainer --out out/gates" in str(error.value)
    assert f"hfcf train train_verifier --out {tmp_path / 'verifier'}" in str(error.value)


@pytest.mark.parametrize(("system", "told"), [("polyjuice", False), ("crossaug", True)])
def test_the_offline_preset_is_a_cure_only_where_there_is_one(system: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    given = {"generator": "me/generator", "verifier": "me/verifier"} if told else {"generator": "me/generator"}
    with pytest.raises(ValueError, match="offline") as error:
        preflight.check_system(system_class(system).preset("paper", **given))
    assert ("preset=offline" in str(error.value)) == told


@pytest.mark.parametrize("name", systems())
def test_the_offline_presets_alone_need_the_package_of_the_adapters(name: str) -> None:
    for preset, settings in system_class(name).presets.items():
        models = [model for _, model in models_in(settings)]
        named = {part for model in models for part in (model.name, model.adapter or "") if part.startswith("hfcf:")}
        assert not named or preset == "offline"


@pytest.mark.parametrize("preset", ["race", "rgf", "ccg"])
def test_the_package_of_the_adapters_is_checked_before_anything_loads(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "hfcf_offline" else find(name))
    monkeypatch.setattr(offline, "folder", lambda name: pytest.fail(f"{name} is converted"))
    system = system_class(preset).preset("offline")  # needs no file
    with pytest.raises(FileNotFoundError, match=r"hfcf:.*pip install ./offline"):
        preflight.check_system(system)


def test_a_length_beyond_the_model_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"max_length.*512.*offline:minilm.*600"):
        preflight.check_system(race(max_length=600))


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9 - 5_000_000, 5_000_000))
    with pytest.raises(ValueError, match=f"{tmp_path}.*200 MB.*got 5 MB.*HFCF_CACHE"):
        preflight.check_system(race(), folders=[tmp_path / "not" / "there"])


def test_rows_of_no_task_are_not_prepared() -> None:
    with pytest.raises(ValueError, match=r"premise.*from_dataset"):
        hfcf.prepare(Dataset.from_dict({"id": ["1"], "premise": ["a"], "hypothesis": ["b"]}), race())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: hfcf.RACE(num_beam=10), ("RACE", "'num_beam'", "'num_beams'")),  # type: ignore[call-arg]
        (lambda: race(num_beam=10), ("'num_beam'", "'num_beams'")),
        (lambda: type(race().filter_claim)(encodr="race"), ("FilterClaim", "'encodr'", "'encoder'")),
    ],
)
def test_misspelt_settings_have_a_suggestion(make: Callable[[], Any], named: tuple[str, ...]) -> None:
    with pytest.raises(TypeError) as error:
        make()
    assert all(name in str(error.value) for name in named), str(error.value)


@pytest.mark.parametrize("evidence", [None, [None], [{"title": None, "text": None}]])
def test_rows_that_stages_reject_do_not_end_a_run_before(evidence: Any) -> None:
    features = get_task("verification").features
    bad = {
        **dict.fromkeys(features),
        "id": "bad",
        "claim": "Rome is old.",
        "label": "SUPPORTS",
        "evidence": evidence,
        "split": "train",
    }
    rows = Dataset.from_list([bad], features=features)
    for ds in (rows, rows.to_iterable_dataset()):
        (row,) = list(hfcf.EDA()(ds))
        assert row["status"]["accepted"] is False
        assert "evidence" in row["status"]["reason"]


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Rom ist die Hauptstadt von Italien.", True),
        ("Rome est la capitale de l'Italie.", True),
        ("Roma es la capital de Italia y una de las ciudades más antiguas.", True),
        ("罗马是意大利的首都。", True),
        ("روما هي عاصمة إيطاليا.", True),
        ("Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom.", True),  # twelve words without one of English
        ("Rome is the capital of Italy.", False),
        ("Robert De Niro acted.", False),
        ("El Camino de los Muertos is a road in Spain.", False),
        ("Three men walking outdoors. Three men act.", False),  # "men" is Danish, too
        ("Łódź, Kraków.", False),
        ("", False),
        ("1984, 2001.", False),
    ],
)
def test_a_text_that_is_plainly_not_english(text: str, foreign: bool) -> None:
    assert looks_foreign(text) == foreign
