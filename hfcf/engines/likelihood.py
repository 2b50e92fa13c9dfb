"""How likely a text is as a model's answer to a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from transformers.modeling_outputs import BaseModelOutput

from hfcf.core.model import Model
from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.generator import load_tokenizer, two_sided


@dataclass(frozen=True, kw_only=True)
class Likelihood(Engine):
    """The mean log-probability of a text's tokens, its end of text included, after a prompt: what beam search ranks texts by.

    Requests are `[prompt, text]`. The answer is None where the two have more tokens than are read. A decoder-only model goes on
    with the prompt after a space, as `hfcf.training.generator.train_texts` teaches it; an encoder-decoder reads it.

    Args:
        model: a decoder-only or encoder-decoder model.
        max_length: tokens of prompt and text together.

    >>> Likelihood(model=Model("me/editor")).max_length
    512
    """

    model: Model
    max_length: int = 512

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        auto = AutoModelForSeq2SeqLM if two_sided(self.model) else AutoModelForCausalLM
        tokenizer = load_tokenizer(self.model)
        # On the right, where a causal model's tokens see nothing of it: it may have been set for writing.
        tokenizer.padding_side = "right"
        return load_network(auto, self.model, self.dtype()).to(device), tokenizer

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer = loaded
        prompts = tokenizer([prompt for prompt, _ in requests])["input_ids"]
        if network.config.is_encoder_decoder:
            texts = tokenizer(text_target=[text for _, text in requests])["input_ids"]
        else:
            # The prompt's own end would end it.
            prompts = [ids[:-1] if ids[-1:] == [tokenizer.eos_token_id] else ids for ids in prompts]
            texts = tokenizer([f" {text}" for _, text in requests], add_special_tokens=False)["input_ids"]
            texts = [[*ids, tokenizer.eos_token_id] for ids in texts]
        found = []
        for prompt, text in zip(prompts, texts, strict=True):
            fits = len(prompt) + len(text) <= self.max_length
            ids = prompt if network.config.is_encoder_decoder else [*prompt, *text]
            found.append(Encoded({"input_ids": ids if fits else []}, extra=text))
        return found

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        read = [item for item in encoded if len(item)]
        answers = iter(self._means(network, tokenizer, read) if read else [])
        return [next(answers) if len(item) else None for item in encoded]

    def _means(self, network: Any, tokenizer: Any, encoded: Sequence[Encoded]) -> list[float]:
        longest = max(len(item.extra) for item in encoded)
        texts = torch.full((len(encoded), longest), -100, device=network.device)
        for row, item in enumerate(encoded):
            texts[row, : len(item.extra)] = torch.tensor(item.extra, device=network.device)
        with torch.inference_mode():
            if network.config.is_encoder_decoder:
                logits = self._answers(network, tokenizer, encoded, texts)
            else:
                whole = network(**pad(tokenizer, encoded, network.device), use_cache=False).logits
                # A token is predicted at the place before it.
                starts = torch.tensor([len(item) - len(item.extra) - 1 for item in encoded], device=network.device)
                places = (starts[:, None] + torch.arange(longest, device=network.device)).clamp(max=whole.shape[1] - 1)
                logits = whole.gather(1, places[:, :, None].expand(-1, -1, whole.shape[2]))
        losses = functional.cross_entropy(logits.float().transpose(1, 2), texts, reduction="none", ignore_index=-100)
        return [round(-float(loss.double().sum()) / len(item.extra), ROUND) for loss, item in zip(losses, encoded, strict=True)]

    @staticmethod
    def _answers(network: Any, tokenizer: Any, encoded: Sequence[Encoded], texts: torch.Tensor) -> torch.Tensor:
        """The logits of an encoder-decoder. Many texts share a prompt, which is encoded once."""
        prompts = [tuple(item.features["input_ids"]) for item in encoded]
        places = {ids: i for i, ids in enumerate(dict.fromkeys(prompts))}
        batch = pad(tokenizer, [Encoded({"input_ids": list(ids)}) for ids in places], network.device)
        states = network.get_encoder()(**batch).last_hidden_state
        rows = torch.tensor([places[ids] for ids in prompts], device=network.device)
        read = {"encoder_outputs": BaseModelOutput(last_hidden_state=states[rows]), "attention_mask": batch["attention_mask"][rows]}
        logits: torch.Tensor = network(**read, labels=texts).logits
        return logits
