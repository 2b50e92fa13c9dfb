"""What is known of models before they load: from the table of public models, from files, from the Hub, or nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import ModelInfo
from safetensors.numpy import save_file

import hfcf
from hfcf.core import offline
from hfcf.core.hub_http import httpx
from hfcf.core.model import Model
from hfcf.core.model_facts import ABSENT, ENDPOINT, HUB, LIBRARY, LOCAL, ModelFacts, find_facts, list_models
from hfcf.core.public_models import public_model
from hfcf.core.safe_yaml import front_matter
from hfcf.systems import system_class

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(folder: Path, licence: str = "mit") -> Path:
    """A folder with the files of a small repository: 43 parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"w": np.zeros((4, 10), np.float32), "positions": np.zeros(3, np.int64)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n# A model\n")
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub; the Hub itself must not be asked."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.model_info", lambda *_, **__: pytest.fail("the Hub was asked"))
    return tmp_path / "hub"


def test_a_folder_is_read_and_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    folder = str(repository(tmp_path / "mine"))
    assert find_facts(Model(folder)) == ModelFacts(folder, (), LOCAL, "mit", 43)
    weights = Path(folder, "model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-4])
    assert find_facts(Model(folder)).parameters is None, "the file was cut off"


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("# no front matter", None),
        ("---\n[: broken\n---\n", None),
        ("---\nlicense: other\nlicense_name: qwen-research\n---\n", "qwen-research"),
        ("---\nlicense:\n- mit\n- apache-2.0\n---\n", "mit, apache-2.0"),
    ],
)
def test_the_licence_is_that_of_the_card(card: str, licence: str | None, tmp_path: Path) -> None:
    (repository(tmp_path) / "README.md").write_text(card)
    assert find_facts(Model(str(tmp_path))).licence == licence


def test_the_licence_of_an_offline_model_is_the_one_of_its_package_or_card() -> None:
    assert set(offline.LICENCES) == {*offline.REQUIREMENTS, *offline.BASE_REQUIREMENTS}
    for name, requirement in offline.REQUIREMENTS.items():
        assert find_facts(Model(f"offline:{name}")).licence == offline.LICENCES[name]
        package = metadata(requirement.partition("==")[0])
        if name not in ("minilm", "wordnet"):  # packages of other people's work, under a licence of the package's own
            assert (package.get("License-Expression") or package["License"]).lower() == offline.LICENCES[name]
    card = offline.folder("minilm") / "README.md"
    assert front_matter(card.read_text(encoding="utf-8"))["license"] == offline.LICENCES["minilm"]


def test_classes_and_inputs_are_those_of_the_configuration(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model("classifier"), tmp_path / "own"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hfcf_inputs": "evidence-claim"}))
    facts = find_facts(Model(str(folder)))
    assert (facts.classes, facts.inputs) == (tuple(config["id2label"].values()), "evidence-claim")
    assert find_facts(Model(str(folder), inputs="claim-evidence")).inputs == "claim-evidence"
    assert find_facts(Model(tiny_model("t5"))).classes == ()


def test_the_cache_is_looked_at_by_revision(hub_cache: Path) -> None:
    assert find_facts(Model("me/model")) == ModelFacts("me/model", (), HUB)
    root = hub_cache / "models--me--model"
    repository(root / "snapshots" / COMMIT)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(COMMIT)
    assert find_facts(Model("me/model")) == ModelFacts("me/model", (), LOCAL, "mit", 43)
    assert find_facts(Model("me/model", revision=COMMIT)).place == LOCAL
    assert find_facts(Model("me/model", revision="other")).place == HUB


def test_the_table_of_public_models_counts_for_its_own_revision_alone(hub_cache: Path) -> None:
    name = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"
    known = public_model(name)
    assert known is not None
    facts = find_facts(Model(name, revision=known.revision))
    assert (facts.place, facts.licence, facts.parameters, facts.classes) == (HUB, known.licence, known.parameters, known.labels)
    assert find_facts(Model(name)).parameters is None, "another upload may have another size"


@pytest.mark.parametrize("system", ["race", "crossaug", "ccg", "rgf", "checkwhy"])
def test_every_public_model_of_a_hub_preset_is_known_without_a_network(system: str, hub_cache: Path) -> None:
    found = [facts for facts in list_models(system_class(system).preset("hub")) if public_model(facts.model.partition("@")[0])]
    assert found
    assert all(facts.place == HUB and facts.licence and facts.parameters for facts in found)


def test_the_hub_says_the_rest_where_it_may_be_asked(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = {
        "id": "me/model",
        "sha": COMMIT,
        "cardData": {"license": "apache-2.0"},
        "safetensors": {"parameters": {}, "total": 1002},
    }
    asked: list[tuple[str, Any]] = []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("hfcf.core.model_facts.read_tuned_config", lambda model: (_ for _ in ()).throw(OSError("no network")))
    monkeypatch.setattr(
        "huggingface_hub.model_info",
        lambda name, **settings: asked.append((name, settings["revision"])) or ModelInfo(**json.loads(json.dumps(info))),
    )
    assert find_facts(Model("me/model", revision="v1")) == ModelFacts("me/model@v1", (), HUB, "apache-2.0", 1002)
    assert asked == [("me/model", "v1")]


@pytest.mark.parametrize(
    ("error", "place", "noted"),
    [
        (httpx.ConnectError("no route"), HUB, "ConnectError"),
        (
            RepositoryNotFoundError("404", response=httpx.Response(404, request=httpx.Request("GET", "https://hub"))),
            ABSENT,
            "RepositoryNotFoundError",
        ),
    ],
)
def test_what_the_hub_does_not_say_is_unknown(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, place: str, noted: str
) -> None:
    def refuse(*_: Any, **__: Any) -> ModelInfo:
        raise error

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.model_info", refuse)
    monkeypatch.setattr("hfcf.core.model_facts.read_tuned_config", refuse)
    monkeypatch.setattr("hfcf.core.model_facts.can_configure", lambda model: False)
    facts = find_facts(Model("me/model"))
    assert (facts.place, facts.licence, facts.parameters) == (place, None, None)
    assert noted in facts.note
    assert "me/model" in facts.note


def test_an_adapter_comes_with_its_base(tmp_path: Path, hub_cache: Path) -> None:
    base, adapter = repository(tmp_path / "base"), repository(tmp_path / "peft", "cc-by-4.0")
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    facts = find_facts(Model(str(adapter)))
    assert (facts.model, facts.place, facts.licence, facts.parameters) == (f"{base} + {adapter}", LOCAL, "mit + cc-by-4.0", 43)
    assert find_facts(Model(str(base), adapter="me/adapter")).place == HUB
    (base / "README.md").unlink()
    assert find_facts(Model(str(adapter))).licence == f"unknown for {base} + cc-by-4.0"
    (adapter / "README.md").unlink()
    assert find_facts(Model(str(adapter))).licence is None


def test_models_of_packages_say_whether_they_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hub_cache: Path) -> None:
    package = repository(tmp_path / "package", "bsd")
    monkeypatch.setattr(offline, "check_installed", lambda name: package)
    monkeypatch.setitem(offline._PACKAGES, "plain", [("p", ".")])
    monkeypatch.setitem(offline._PACKAGES, "made", [("p", ".")])
    monkeypatch.setitem(offline._CONVERSIONS, "made", lambda source, out: pytest.fail("it is converted"))
    for name in ("offline:plain", "offline:made"):
        facts = find_facts(Model(name))
        assert (facts.place, facts.licence) == (LOCAL, "bsd")
    monkeypatch.undo()
    absent = find_facts(Model("offline:absent"))
    assert absent.place == ABSENT
    assert "absent" in absent.note
    assert find_facts(Model("json")).place == find_facts(Model("stanza:en")).place == LIBRARY


def test_each_model_is_listed_once_with_all_its_settings(hub_cache: Path, tmp_path: Path) -> None:
    folder = str(repository(tmp_path / "mine"))
    verifier = Model(folder, labels={"LABEL_0": "REFUTES"})
    race = hfcf.RACE.preset("llm", verifier=verifier, judges=[folder, "me/judge"], explainer="gradient_x_input", encoder=folder)
    facts = {one.model: one for one in list_models(race, {"flip_rate.verifier": Model(folder)})}
    assert facts[folder].used_by == ("verifier", "judges[0]", "encoder", "flip_rate.verifier")
    assert facts["me/judge"].used_by == ("judges[1]",)
    assert facts["llm:gpt-4o-mini"] == ModelFacts("llm:gpt-4o-mini", ("generator",), ENDPOINT)


def test_what_a_setting_replaces_is_not_listed(hub_cache: Path) -> None:
    def used(system: Any) -> set[str]:
        return {name for facts in list_models(system) for name in facts.used_by}

    trained, chosen = hfcf.CCG.preset("paper"), hfcf.CCG.preset("paper", indicator="me/indicator", editor="me/editor")
    assert {"classifier", "editor_training", "masked"} <= used(trained)
    assert "indicator" in used(chosen)
    assert not {"classifier", "editor_training"} & used(chosen)
    assert "masked" not in used(hfcf.CCG.preset("llm"))
    assert {facts.model for facts in list_models(trained)} >= {"stanza:en", "gpt2"}
