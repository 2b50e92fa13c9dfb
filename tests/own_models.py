"""Tiny random classifiers as users have them: other architectures, other names and orders of the classes, other forms of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tiny
import torch
from transformers import (
    BartConfig,
    BartForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
)

_NO_DROPOUT = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
ROWS = [
    {"claim": claim, "evidence": [{"title": title, "text": text}], "label": label}
    for claim, title, text, label in [
        ("The bridge stands in Rome.", "Rome", "The bridge was built in 1901. It crosses the river.", "SUPPORTS"),
        ("A short claim.", "", "One word.", "REFUTES"),
        ("The singer was born in Paris in 1970 and won a prize.", "The singer", "The singer, born in Lyon, toured.", "REFUTES"),
        ("The film was directed by an American.", "Film", "A film of 1994, by a director of the United States.", "SUPPORTS"),
        ("The band is from London.", "Band", "The band was formed in a city of England.", "SUPPORTS"),
        ("He died in 1970.", "", "He was born in 1921 and toured for ten years, then he died in 1971.", "REFUTES"),
    ]
]


def bert(ways: int) -> Any:
    config = BertConfig(
        vocab_size=1500, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, initializer_range=0.5,
        num_labels=ways, **_NO_DROPOUT,
    )  # fmt: skip
    return BertForSequenceClassification(config), tiny.tokenizer(pair=True)


def cross_encoder(ways: int) -> Any:
    """As sentence-transformers saves one: a classifier in the folder itself, with the activation of its answers in the settings."""
    network, tokenizer = bert(ways)
    network.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity", "version": "5.1.0"}
    return network, tokenizer


def bart(ways: int) -> Any:
    """A zero-shot NLI model's architecture."""
    config = BartConfig(
        vocab_size=1500, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=512, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        decoder_start_token_id=3, forced_eos_token_id=None, init_std=0.5, num_labels=ways,
    )  # fmt: skip
    tokenizer = tiny.tokenizer(pair=True)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return BartForSequenceClassification(config), tokenizer


def gpt2(ways: int) -> Any:
    """A decoder; its tokenizer has no padding token and pads on the left, as those of language models do."""
    config = GPT2Config(
        vocab_size=1500, n_positions=512, n_embd=32, n_layer=2, n_head=4, bos_token_id=2, eos_token_id=3, pad_token_id=3,
        initializer_range=0.5, num_labels=ways,
    )  # fmt: skip
    return GPT2ForSequenceClassification(config), _decoder_tokenizer()


def llama(ways: int) -> Any:
    """A decoder whose configuration names no padding token."""
    config = LlamaConfig(
        vocab_size=1500, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        initializer_range=0.5, bos_token_id=2, eos_token_id=3, pad_token_id=None, max_position_embeddings=512, num_labels=ways,
    )  # fmt: skip
    return LlamaForSequenceClassification(config), _decoder_tokenizer()


def _decoder_tokenizer() -> Any:
    from tokenizers import processors

    tokenizer = tiny.tokenizer(pair=False)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing("$A", pair="$A $B", special_tokens=[])
    tokenizer.pad_token = None
    tokenizer.padding_side = "left"
    return tokenizer


ARCHITECTURES = {"bert": bert, "cross-encoder": cross_encoder, "bart": bart, "gpt2": gpt2, "llama": llama}


def head(network: Any) -> Any:
    """The last linear layer."""
    for name in ("classifier", "classification_head", "score"):
        if (layer := getattr(network, name, None)) is not None:
            return getattr(layer, "out_proj", layer)
    raise AssertionError(type(network).__name__)


def save(folder: Path, architecture: str, names: Sequence[str], order: Sequence[int], **config: Any) -> str:
    """Store a classifier whose output i, called `names[i]`, is the output `order[i]` of the same weights under our names."""
    torch.manual_seed(3)
    network, tokenizer = ARCHITECTURES[architecture](len(names))
    with torch.no_grad():
        layer = head(network)
        layer.weight.mul_(4)
        layer.weight.copy_(layer.weight[list(order)].clone())
        if layer.bias is not None:
            layer.bias.copy_(layer.bias[list(order)].clone())
    network.config.id2label = dict(enumerate(names))
    network.config.label2id = {name: i for i, name in enumerate(names)}
    for name, value in config.items():
        setattr(network.config, name, value)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
