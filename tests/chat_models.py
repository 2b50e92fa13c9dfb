"""Tiny chat models: a random one with a tokenizer of bytes, and one whose answers are scripted token by token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hfcf.engines.llm import in_process

MARKS = ["<|pad|>", "<|start|>", "<|end|>"]
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


STRICT = (
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('the user and the assistant must take turns') }}{% endif %}{% endfor %}"
) + TEMPLATE
"""Without a role of the system, as Gemma's."""
SILENT = "{% for message in messages if message['role'] != 'system' %}" + TEMPLATE.partition("%}")[2]
"""Leaves messages of the system out, without a word."""


def tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """A token for each byte, and the marks of a conversation."""
    vocabulary = {byte: i for i, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocabulary, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(MARKS)
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token=MARKS[0], eos_token=MARKS[2], chat_template=template)


def chat(folder: Path, positions: int = 16_384, template: str = TEMPLATE) -> str:
    """A tiny random Llama that can be asked."""
    torch.manual_seed(0)
    made = tokenizer(template)
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

    Prompts are encoded and answers are read as ever; an answer that does not fit into its limit is cut off. The first label of a
    schema that the answer names is almost certain.
    """
    asked: list[Mapping[str, Any]] = []

    def write(loaded: Any, prompts: Sequence[in_process.ChatPrompt], temperature: Any, alternatives: int) -> list[Any]:
        raws = []
        for prompt in prompts:
            messages, seed = json.loads(prompt.seed)
            form = {"type": "json_schema", "json_schema": {"schema": json.loads(prompt.schema)}}
            asked.append({"messages": messages, "seed": seed, "response_format": form})
            text = answer(asked[-1])
            written = text[: prompt.limit]
            raw = {
                "text": written, "finish": "stop" if written == text else "length",
                "usage": {"prompt": len(prompt.ids) - len(prompt.start), "completion": len(written)},
            }  # fmt: skip
            raws.append({**raw, "logprobs": [[token, -1e-6, [[token, -1e-6]]] for token in written]} if alternatives else raw)
        return raws

    monkeypatch.setattr(in_process, "write_answers", write)
    return asked


def key(question: Mapping[str, Any]) -> str:
    """Tell requests apart."""
    return json.dumps([question["messages"], question["seed"]])
