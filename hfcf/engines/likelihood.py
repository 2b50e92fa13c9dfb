"""Compute the likelihood of a text as a model's answer to a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import BaseModelOutput

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad, skip_empty
from hfcf.engines.classifier import ROUND
from hfcf.engines.generator import load_generator, load_tokenizer
from hfcf.engines.networks import most_tokens


@dataclass(frozen=True, kw_only=True)
class Likelihood(Engine):
    """The mean log-probability of a text's tokens after a prompt, with the end of text: the score by which beam search ranks.

    Requests are `[prompt, text]`. The answer is None if the two together have more tokens than are read. A decoder-only model
    continues the prompt after a space, as `hfcf.training.generator.train_texts` teaches it; an encoder-decoder reads the prompt.

    Args:
        model: a decoder-only or encoder-decoder model.
        max_length: the number of tokens of prompt and text together.

    >>> Likelihood(model=Model("me/editor")).max_length
    512
    """

    model: Model
    max_length: Positive = 512

    def load(self, device: torch.device) -> Any:
        tokenizer = load_tokenizer(self.model)
        # A causal model's tokens see no padding on their right; for generation it is on the left.
        tokenizer.padding_side = "right"
        return load_generator(self.model, self.dtype()).to(device), tokenizer

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer = loaded
        prompts = tokenizer([prompt for prompt, _ in requests])["input_ids"]
        if network.config.is_encoder_decoder:
            texts = tokenizer(text_target=[text for _, text in requests])["input_ids"]
        else:
            # A prompt must not end with an end of text.
            prompts = [ids[:-1] if ids[-1:] == [tokenizer.eos_token_id] else ids for ids in prompts]
            texts = tokenizer([f" {text}" for _, text in requests], add_special_tokens=False)["input_ids"]
            texts = [[*ids, tokenizer.eos_token_id] for ids in texts]
            prompts = [ids or [tokenizer.eos_token_id] for ids in prompts]  # the first token is predicted from something
        most = most_tokens(network, self.max_length)
        items = []
        for prompt, text in zip(prompts, texts, strict=True):
            ids = prompt if network.config.is_encoder_decoder else [*prompt, *text]
            items.append(Encoded({"input_ids": ids if len(prompt) + len(text) <= most else []}, extra=text))
        return items

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return skip_empty(encoded, partial(_means, *loaded))


def _means(network: Any, tokenizer: Any, encoded: Sequence[Encoded]) -> list[float]:
    labels = [torch.tensor(item.extra, device=network.device) for item in encoded]
    texts = pad_sequence(labels, batch_first=True, padding_value=-100)
    with torch.inference_mode():
        if network.config.is_encoder_decoder:
            logits = _answers(network, tokenizer, encoded, texts)
        else:
            logits = network(**pad(tokenizer, encoded, network.device), use_cache=False).logits
            # A token is predicted at the place before it.
            starts = torch.tensor([len(item) - len(item.extra) - 1 for item in encoded], device=network.device)
            places = (starts[:, None] + torch.arange(texts.shape[1], device=network.device)).clamp(max=logits.shape[1] - 1)
            logits = logits.gather(1, places[:, :, None].expand(-1, -1, logits.shape[2]))
    losses = functional.cross_entropy(logits.float().transpose(1, 2), texts, reduction="none", ignore_index=-100)
    return [round(-float(loss.double().sum()) / len(item.extra), ROUND) for loss, item in zip(losses, encoded, strict=True)]


def _answers(network: Any, tokenizer: Any, encoded: Sequence[Encoded], texts: torch.Tensor) -> torch.Tensor:
    # Many texts share a prompt, which is encoded once.
    prompts = [tuple(item.features["input_ids"]) for item in encoded]
    places = {ids: i for i, ids in enumerate(dict.fromkeys(prompts))}
    batch = pad(tokenizer, [Encoded({"input_ids": list(ids)}) for ids in places], network.device)
    states = network.get_encoder()(**batch).last_hidden_state
    rows = torch.tensor([places[ids] for ids in prompts], device=network.device)
    inputs = {"encoder_outputs": BaseModelOutput(last_hidden_state=states[rows]), "attention_mask": batch["attention_mask"][rows]}
    logits: torch.Tensor = network(**inputs, labels=texts).logits
    return logits
