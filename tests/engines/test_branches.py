"""Losses of continuations that share a beginning: those of each sentence by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from hfcf.core.model import Model
from hfcf.engines import perplexity
from hfcf.engines.perplexity import Branches

pytestmark = pytest.mark.usefixtures("no_request_cache")

BEGINNING, TEXTS = "The film", [" was directed by a woman in the city", " is", " was made", ""]


def by_hand(folder: str, beginning: str, text: str) -> float:
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    before, after = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in (beginning, text))
    ids = torch.tensor([[tokenizer.eos_token_id, *before, *after]])
    with torch.inference_mode():
        logits = network(ids).logits[0, len(before) : -1]
    return float(functional.cross_entropy(logits, ids[0, len(before) + 1 :], reduction="sum")) if after else 0.0


@pytest.mark.parametrize("side_by_side", [1, 2, 64])
def test_they_are_those_of_each_sentence_alone(
    side_by_side: int, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perplexity, "_SIDE_BY_SIDE", side_by_side)
    folder = tiny_model("gpt2")
    engine = Branches(model=Model(folder))
    told = engine.run([[BEGINNING, TEXTS], ["", TEXTS[:2]], [BEGINNING, []]])
    assert told[0] == [pytest.approx(by_hand(folder, BEGINNING, text), abs=2e-3) for text in TEXTS]
    assert told[1] == [pytest.approx(by_hand(folder, "", text), abs=2e-3) for text in TEXTS[:2]]
    assert told[2] == []


def test_what_is_too_long_has_no_answer(tiny_model: Callable[[str], str]) -> None:
    engine = Branches(model=Model(tiny_model("gpt2")), max_length=4)
    long, short = engine.run([[BEGINNING, TEXTS], ["The", [" film"]]])
    assert long is None
    assert len(short) == 1


def test_more_tokens_than_the_model_has_positions_are_no_answer(tiny_model: Callable[[str], str]) -> None:
    positions = AutoModelForCausalLM.from_pretrained(tiny_model("gpt2")).config.max_position_embeddings
    engine = Branches(model=Model(tiny_model("gpt2")), max_length=10 * positions)
    assert engine.run([["film " * 2 * positions, [" is"]], [BEGINNING, [" is"]]])[0] is None
