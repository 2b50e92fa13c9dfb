"""Tiny chat models: a random one with a tokenizer of bytes, and one whose answers are scripted token by token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hfcf.engines.chat import writing

MARKS = ["<|pad|>", "<|start|>", "<|end|>"]
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and the marks of a conversation."""
    vocabulary = {byte: i for i, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(MARKS)
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token=MARKS[0], eos_token=MARKS[2], chat_template=TEMPLATE)


def chat(folder: Path, positions: int = 16_384) -> str:
    """A tiny random Llama that can be asked."""
    torch.manual_seed(0)
    made = tokenizer()
    config = LlamaConfig(
        vocab_size=len(made), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=positions, initializer_range=0.5, bos_token_id=None, pad_token_id=256,
        eos_token_id=258,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    made.save_pretrained(folder)
    return str(folder)


Answer = Callable[[Mapping[str, Any]], str]


def script(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> list[Mapping[str, Any]]:
    """Let chat models write the answers of a function of the request; return the list of requests that are computed.

    Only the logits are replaced: grammar, choice, log-probabilities and what follows are those of the library.
    """
    asked: list[Mapping[str, Any]] = []
    scripts: dict[int, tuple[writing.Row, list[int]]] = {}
    choose = writing.Writer.__call__

    def scripted(self: writing.Writer, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        made = self.loaded.tokenizer
        for i, row in enumerate(self.rows):
            if id(row) not in scripts:
                asked.append(row.prompt.question)
                scripts[id(row)] = row, made(answer(row.prompt.question), add_special_tokens=False)["input_ids"]
            text = scripts[id(row)][1]
            scores[i] -= 100.0
            scores[i, text[len(row.ids)] if len(row.ids) < len(text) else made.eos_token_id] = 100.0
        return choose(self, input_ids, scores)

    monkeypatch.setattr(writing.Writer, "__call__", scripted)
    return asked


def key(question: Mapping[str, Any]) -> str:
    """Tell requests apart."""
    return json.dumps([question["messages"], question["seed"]])
