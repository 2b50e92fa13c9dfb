from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from hfcf.core.model import Model
from hfcf.engines import base
from hfcf.engines.perplexity import Perplexity

TEXTS = list(dict.fromkeys(["Rome is old.", *tiny.texts()[:8], "The film"]))


@pytest.fixture
def gpt2(tiny_model: Callable[[str], str]) -> str:
    return tiny_model("gpt2")


def by_hand(folder: str, text: str, first: int) -> float:
    """From the library's own loss, one text, without padding."""
    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = torch.tensor([[first, *AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"]]])
    with torch.inference_mode():
        return math.exp(network(input_ids=ids, labels=ids).loss.item())


def test_it_is_the_exponential_of_the_mean_loss(gpt2: str) -> None:
    found = Perplexity(model=Model(gpt2)).run(TEXTS)
    first = AutoTokenizer.from_pretrained(gpt2).eos_token_id  # the tiny tokenizer has no other mark
    assert found == [pytest.approx(by_hand(gpt2, text, first), rel=1e-4) for text in TEXTS]
    assert all(float(f"{score:.5g}") == score for score in found)


@pytest.mark.parametrize("budget", ["1", "300", "100000"])
def test_batching_changes_nothing(gpt2: str, budget: str, monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> None:
    engine = Perplexity(model=Model(gpt2))
    alone = [engine.run([text])[0] for text in TEXTS]
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", budget)
    assert engine.run(TEXTS) == pytest.approx(alone, rel=1e-4)
    assert len(set(alone)) == len(TEXTS)


def test_what_is_too_long_or_empty_has_none(gpt2: str) -> None:
    text = "the " * 9
    tokens = AutoTokenizer.from_pretrained(gpt2)(text, add_special_tokens=False)["input_ids"]
    fits = Perplexity(model=Model(gpt2), max_length=len(tokens) + 1)
    short = Perplexity(model=Model(gpt2), max_length=len(tokens))
    assert fits.run([text, "", " \n"])[1:] == [None, None]
    assert fits.run([text])[0] is not None
    assert short.run([text, "the"]) == [None, fits.run(["the"])[0]]
    assert Perplexity(model=Model(gpt2), max_length=10_000).run(["the " * 600]) == [None]  # more than its 512 positions


def test_the_mark_between_documents_goes_first(gpt2: str, tmp_path: Path) -> None:
    """As in SmolLM2, whose declared beginning of text is that of a turn of a chat."""
    folder = tmp_path / "chat"
    shutil.copytree(gpt2, folder)
    tokenizer = AutoTokenizer.from_pretrained(gpt2)
    words = tokenizer.get_vocab()
    tokenizer.bos_token = "[CLS]"
    tokenizer.save_pretrained(folder)
    assert Perplexity(model=Model(str(folder))).run(TEXTS[:2]) == [
        pytest.approx(by_hand(gpt2, text, words["[CLS]"]), rel=1e-4) for text in TEXTS[:2]
    ]
    shutil.rmtree(folder)
    shutil.copytree(gpt2, folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|endoftext|>"]})
    network = AutoModelForCausalLM.from_pretrained(gpt2)
    network.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    last = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    assert last not in (tokenizer.bos_token_id, tokenizer.eos_token_id)
    assert Perplexity(model=Model(str(folder))).run(TEXTS[:2]) == [
        pytest.approx(by_hand(str(folder), text, last), rel=1e-4) for text in TEXTS[:2]
    ]


def test_answers_are_remembered(gpt2: str) -> None:
    engine = Perplexity(model=Model(gpt2))
    first = engine.run(TEXTS)
    before = base.usage()["Perplexity"].calls
    assert engine.run(TEXTS[::-1]) == first[::-1]
    assert base.usage()["Perplexity"].calls == before


@pytest.mark.parametrize("kind", ["mlm", "t5"])
def test_other_kinds_of_models_are_refused(kind: str, tiny_model: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match=r"decoder-only|Unrecognized configuration class"):
        Perplexity(model=Model(tiny_model(kind))).run(["Rome is old."])
