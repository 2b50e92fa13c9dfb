"""The facts of the presets' public checkpoints, the settings that rest on them, and tiny models of the same form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_public_models
import torch
import transformers
from transformers import AutoConfig, AutoTokenizer

from hfcf.core.model import Model
from hfcf.core.model_checks import longest_input
from hfcf.core.public_models import SIZES, PublicModel, chat_model, pinned, public_model, public_models, sized
from hfcf.core.settings import models_in
from hfcf.engines.classifier import Classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.reader import Reader
from hfcf.systems import system_class, systems
from hfcf.text.label_names import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

every = pytest.mark.parametrize("known", public_models(), ids=lambda known: known.name)
verifiers = pytest.mark.parametrize("name", [one.name for one in public_models() if one.labels])
# Licences of public checkpoints that let anyone use them, also in a company; the last wants its authors named.
FREE = {"mit", "apache-2.0", "cc-by-4.0"}
OURS = {"entailment": SUPPORTS, "neutral": NOT_ENOUGH_INFO, "contradiction": REFUTES}


@pytest.fixture
def hub(shared: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    return tiny_public_models.use(shared, monkeypatch)


def presets() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in systems():
        if "hub" in (cls := system_class(name)).presets:
            for size in (None, *SIZES):
                if size is None or chat_model() in cls.presets["hub"].values():
                    yield name, cls.preset("hub", **({} if size is None else {"size": size})).values


@every
def test_every_fact_has_a_form_that_can_be_checked(known: PublicModel) -> None:
    assert known.revision is None or re.fullmatch(r"[0-9a-f]{40}", known.revision)
    assert known.licence in FREE
    assert 100e6 < known.parameters < 8e9
    assert 2 * known.parameters < known.download_bytes < 4.2 * known.parameters  # half or single precision
    assert hasattr(transformers, known.architecture)
    assert hasattr(transformers, known.tokenizer)
    assert all(address.startswith("https://huggingface.co/") for _, address in known.pages)
    stated = " ".join(what for what, _ in known.pages)
    assert all(fact in stated for fact in ("card", "licence", "revision", "files"))
    assert "classes" in stated or not known.labels
    assert any(str(known.revision) in address for _, address in known.pages)


def test_a_preset_hub_names_checkpoints_alone_with_their_pinned_commits() -> None:
    named = set()
    for system, values in presets():
        for setting, model in models_in(values):
            if model.name in ("en", "en_core_web_sm"):  # pipelines that Stanza and spaCy install themselves
                continue
            known = public_model(model.name)
            assert known is not None, f"{system}: {setting} is {model.name}"
            assert model.revision == known.revision
            assert dict(model.labels or ()) == {name: OURS[name] for name in known.labels}
            assert model.inputs == (known.inputs if known.labels else None)
            named.add(known.name)
    assert named == {one.name for one in public_models()}


def test_no_setting_of_a_preset_reads_more_than_its_checkpoint_does(hub: Path) -> None:
    readers = {"verifier": "max_length", "judges": "max_length", "reader": "reader_length", "readers": "reader_length"}
    for system, values in presets():
        for setting, model in models_in(values):
            known, length = public_model(model.name), values.get(readers.get(setting.split()[0], ""))
            if known and known.max_length and length:
                assert length <= known.max_length, f"{system}: {setting}"


def test_the_families_of_those_who_vote_differ() -> None:
    race, rgf = system_class("race").preset("hub"), system_class("rgf").preset("hub")

    def architecture(model: Model) -> str:
        known = public_model(model.name)
        assert known is not None
        return known.architecture

    assert len({architecture(model) for model in (race.verifier, *race.judges)}) == 2
    assert len({architecture(model) for model in (rgf.reader, *rgf.readers)}) == 3


@every
def test_a_tiny_model_of_the_same_form_is_read_at_the_pinned_commit(known: PublicModel, hub: Path) -> None:
    config = AutoConfig.from_pretrained(known.name, revision=known.revision)
    assert config.architectures == [known.architecture]
    if known.labels:
        assert tuple(config.id2label[i] for i in range(len(known.labels))) == known.labels
    tokenizer = AutoTokenizer.from_pretrained(known.name, revision=known.revision)
    assert type(tokenizer).__name__ == known.tokenizer
    longest = longest_input(pinned(known.name))
    assert longest is None or known.max_length is None or longest >= known.max_length
    with pytest.raises(OSError, match="cached"):
        AutoConfig.from_pretrained(known.name, revision="0" * 40)


@verifiers
def test_a_verifier_is_read_by_the_names_of_its_classes_premise_first(name: str, hub: Path) -> None:
    known, model = public_model(name), pinned(name)
    assert known is not None
    spec = read_spec(model)
    assert spec.labels == tuple(OURS[own] for own in known.labels)
    assert not spec.inputs.claim_first
    pairs = [["Rome is old.", "Rome: Rome was founded in 753 BC."], ["It rained.", "The sun shone all day."]]
    answers = Classifier(model=model, max_length=96).run(pairs)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(name, revision=model.revision)
    tokenizer = AutoTokenizer.from_pretrained(name, revision=model.revision)
    for (claim, evidence), answer in zip(pairs, answers, strict=True):
        with torch.inference_mode():
            raw = network(**tokenizer(evidence, claim, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        by_name = {OURS[network.config.id2label[i]]: probability for i, probability in enumerate(raw)}
        assert answer == pytest.approx(by_name, abs=1e-4)


def test_the_two_verifiers_state_their_classes_in_different_orders() -> None:
    orders = [one.labels for one in public_models() if one.labels]
    assert len(orders) == len(set(orders)) == 2
    assert len({frozenset(order) for order in orders}) == 1


@pytest.mark.parametrize("name", [one.name for one in public_models() if one.architecture.endswith("QuestionAnswering")])
def test_a_reader_reads_the_question_first(name: str, hub: Path) -> None:
    text = "Rome was founded in 753 BC, and Lima in 1535."
    (answers,) = Reader(model=pinned(name), max_length=128, n_best=2).run([["When was Rome founded?", text, ""]])
    assert answers
    assert all(answer["text"] in text and 0 <= answer["no_answer"] <= 1 for answer in answers)


def test_a_size_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="3b"):
        system_class("race").preset("hub", size="3b")
    with pytest.raises(ValueError, match="offline"):
        system_class("race").preset("offline", size="7b")
    with pytest.raises(ValueError, match=r"preset offline of ccg.*base"):  # not the sizes of a chat model that it does not have
        system_class("ccg").preset("offline", size="base")
    with pytest.raises(ValueError, match="me/nli"):
        pinned("me/nli")
    own = Model("chat:me/own")
    assert system_class("crossaug").preset("hub", size="7b", generator=own).generator == own
    assert sized({"a": chat_model(), "b": 1}, "7b", "")["b"] == 1
