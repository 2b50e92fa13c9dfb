"""The presets `hub` as they are, on tiny random models under the checkpoints' own names and commits.

Only what is not a checkpoint is replaced: Stanza's models and spaCy's own pipeline, by the offline pipeline. A random chat model
writes nothing of use, so a rule answers for it where the models after it are to be asked; one test lets the tiny Qwen2 write.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import near_misses
import pytest
import scripted_llm
import tiny_public_models
from datasets import Dataset, Features, List
from offline_models import installed

import hfcf
from hfcf.core import offline, recipe
from hfcf.core.model import Model
from hfcf.core.public_models import public_models
from hfcf.core.schema import TEXT
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.engines.base import usage
from hfcf.engines.llm.engine import LanguageModel
from hfcf.engines.ner import Ner
from hfcf.engines.parser import Parser
from hfcf.pipeline.run import make_system
from hfcf.systems import system_class

pytestmark = pytest.mark.skipif(
    not (installed("spacy") and installed("wordnet")), reason=f"the offline spaCy and WordNet are not installed: {offline.INSTALL}"
)
SPACY = Model("offline:spacy")
NER, PARSER = Ner(backend="spacy", model=SPACY), Parser(backend="spacy", model=SPACY)
# Random verifiers and readers are sure of nothing: no floor may hide what the stages after them do.
LOOSE: dict[str, Any] = {"certainty": 0.0}
NO_FLOORS = {"no_answer_margin": None, "min_probability": 0.0, "min_vote": 0.0, "elsewhere": None}
HERE: dict[str, dict[str, Any]] = {
    "race": {"ner": NER, **LOOSE}, "crossaug": LOOSE, "ccg": {"tagger": PARSER},
    "checkwhy": {"parser": PARSER, "distractors": (2, 3), "max_tokens": 48, "attempts": 1},
    "rgf": {"phrases": SPACY, "k": 3, "agree": 1, **NO_FLOORS},
    "paraphrase": {}, "masked_lm": {}, "back_translation": {"max_new_tokens": 8, "num_beams": 2},
}  # fmt: skip
ASKED = {
    "race": {"Attribution", "Classifier", "LanguageModel"}, "crossaug": {"Classifier", "LanguageModel"}, "ccg": {"LanguageModel"},
    "checkwhy": {"LanguageModel", "Rescorer"}, "rgf": {"Reader", "LanguageModel"}, "paraphrase": {"LanguageModel"},
    "masked_lm": {"MaskFiller"}, "back_translation": {"Continuation"},
}  # fmt: skip
"""The engines that a run must ask."""
every = pytest.mark.parametrize("name", sorted(HERE))


@pytest.fixture(autouse=True)
def hub(shared: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    def refuse(*_: Any) -> NoReturn:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    usage().clear()
    return tiny_public_models.use(shared, monkeypatch)


@pytest.fixture
def by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_public_models.answer_by_rule(monkeypatch)


def rows(name: str, demo: Dataset) -> Dataset:
    if name == "rgf":
        return near_misses.rows().select(range(3))
    if name == "ccg":
        folder = recipe.folder() / "demo_relations"
        return hfcf.load("relations", data_dir=folder, split="train", on_error="reject").select(range(16))
    if name == "checkwhy":
        features = Features({**get_task("structures").features, "explanation": List(TEXT)})
        return Dataset.from_list(scripted_llm.rows(), features=features)
    return demo.select(range(8))


def make(name: str, **changes: Any) -> System:
    passages = {"passages": near_misses.collection()} if name == "rgf" else {}
    return system_class(name).preset("hub", **{**HERE[name], **passages, **changes})


@every
def test_the_whole_chain_runs_and_asks_its_checkpoints(name: str, demo: Dataset, by_rule: None) -> None:
    ds = make(name)(rows(name, demo), load_from_cache_file=False)
    assert len(ds)
    assert all(row["accepted"] is not None for row in ds["status"])
    asked = {engine for engine, record in usage().items() if record.calls or record.attempts}
    assert ASKED[name] <= asked
    assert len(hfcf.expand(ds)) + len(hfcf.rejected(ds)) >= len(ds)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "rgf" else [])
        for name, engines in sorted(ASKED.items())
        if "LanguageModel" in engines
    ],
)
def test_a_tiny_chat_model_writes_itself(name: str, demo: Dataset) -> None:
    ds = make(name)(rows(name, demo).select(range(2)), load_from_cache_file=False)
    assert all(row["accepted"] is not None for row in ds["status"])
    assert usage()["LanguageModel"].attempts > 0 or name == "rgf"  # its tiny readers may find no near miss to ask for


@every
def test_a_preset_is_there_before_anything_loads(name: str) -> None:
    system = make_system(name, preset="hub", settings={"size": "7b"} if "LanguageModel" in ASKED[name] else {})
    assert not usage()
    assert ("Qwen2.5-7B" in str(system.settings)) == ("LanguageModel" in ASKED[name])


def test_the_chat_models_name_their_sizes(hub: Path) -> None:
    names = {one.name for one in public_models() if one.architecture == "Qwen2ForCausalLM"}
    for size in ("1.5b", "7b"):
        model = make("crossaug", size=size).generator
        assert model.name.removeprefix("chat:") in names
        assert size.upper() in model.name
        engine = LanguageModel(model=model, schema='{"type": "object"}', max_tokens=4, attempts=1)
        assert len(engine.run([[{"role": "user", "content": "Hello"}]])) == 1


def test_another_commit_is_not_read_in_the_place_of_the_pinned_one(demo: Dataset, by_rule: None) -> None:
    crossaug = make("crossaug")
    # Without the check by words, which leaves none of these claims to a verifier.
    other = make("crossaug", verifier=replace(crossaug.verifier, revision="0" * 40), exclusive=False)
    with pytest.raises(OSError, match="cached"):
        other(demo.select(range(2)), load_from_cache_file=False)
