"""Likelihoods of texts after prompts: the mean over their tokens, however requests are batched."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import AutoTokenizer, GPT2LMHeadModel, T5ForConditionalGeneration

from hfcf.core.model import Model
from hfcf.engines.likelihood import Likelihood

pytestmark = pytest.mark.usefixtures("no_request_cache")
PROMPTS = ["a film of 1994", "the band released one album in the city", "x"]


def step_by_step(kind: str, folder: str, prompt: str, text: str) -> float:
    """The mean log-probability, one token after another."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    read = tokenizer(prompt)["input_ids"]
    said = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    if kind == "t5":
        network = T5ForConditionalGeneration.from_pretrained(folder).eval()
        start, known = [network.config.decoder_start_token_id], {"input_ids": torch.tensor([read])}
    else:
        network = GPT2LMHeadModel.from_pretrained(folder).eval()
        start, known = read[:-1] if read[-1] == tokenizer.eos_token_id else read, {}
    total = 0.0
    for i, token in enumerate(said):
        before = torch.tensor([[*start, *said[:i]]])
        with torch.no_grad():
            logits = network(**known, **{"decoder_input_ids" if kind == "t5" else "input_ids": before}).logits
        total += float(logits[0, -1].double().log_softmax(-1)[token])
    return total / len(said)


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_it_is_the_mean_over_tokens_and_the_end(kind: str, tiny_model: Callable[[str], str]) -> None:
    folder = tiny_model(kind)
    requests = [[prompt, text] for prompt in PROMPTS for text in ("of", "was released in the city")]
    expected = [step_by_step(kind, folder, *request) for request in requests]
    assert Likelihood(model=Model(folder)).run(requests) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["t5", "gpt2", "bart"])
def test_answers_do_not_depend_on_the_batch(kind: str, tiny_model: Callable[[str], str]) -> None:
    model = Model(tiny_model(kind))
    requests = [[prompt, text] for prompt in PROMPTS for text in ("of", "was released in the city by one", "one film")]
    alone = [Likelihood(model=model).run([request])[0] for request in requests]
    assert Likelihood(model=model).run(requests) == pytest.approx(alone, abs=1e-4)
    assert len(set(alone)) > 3
    assert all(score < 0 for score in alone)


def test_what_is_too_long_is_not_cut(tiny_model: Callable[[str], str]) -> None:
    engine = Likelihood(model=Model(tiny_model("t5")), max_length=12)
    assert [score is None for score in engine.run([["a " * 20, "of"], ["a", "of"]])] == [True, False]
