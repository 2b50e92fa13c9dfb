"""The oracle of the constrained search: every text there is, on models of a handful of tokens."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

Clauses = list[list[list[int]]]
END = 1
KINDS = ("t5", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("bart", "gpt2")))


def model(kind: str, vocabulary: int, seed: int = 0, layers: int = 1) -> Any:
    """A random model with the end token 1; its weights are large, so that its texts differ."""
    torch.manual_seed(seed)
    shapes = {"pad_token_id": 0, "eos_token_id": END, "bos_token_id": END}
    if kind == "t5":
        made: Any = T5ForConditionalGeneration(
            T5Config(
                vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=32, num_layers=layers, num_heads=2,
                decoder_start_token_id=0, **shapes,
            )
        )  # fmt: skip
    elif kind == "bart":
        made = BartForConditionalGeneration(
            BartConfig(
                vocab_size=vocabulary, d_model=16, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=2,
                decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=160,
                decoder_start_token_id=END, forced_eos_token_id=None, **shapes,
            )
        )  # fmt: skip
    elif kind == "llama":
        made = LlamaForCausalLM(
            LlamaConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=layers,
                        num_attention_heads=4, num_key_value_heads=2, **shapes)
        )  # fmt: skip
    else:
        made = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_embd=16, n_layer=layers, n_head=2, n_positions=160, **shapes))
    with torch.no_grad():
        for weights in made.parameters():
            if weights.dim() > 1:
                weights.mul_(6)
    return made.eval()


def inputs(kind: str, vocabulary: int, rows: int, seed: int, length: int = 5) -> dict[str, torch.Tensor]:
    """Random inputs of different lengths, padded on the side that the kind of model needs."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(2, vocabulary, (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(rows):
        missing = row % length
        if kind in ("t5", "bart"):
            mask[row, length - missing :] = 0
        else:
            mask[row, :missing] = 0
    return {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}


def texts(vocabulary: int, length: int) -> list[tuple[int, ...]]:
    """Every text of at most `length` tokens: it ends with the end token, or is cut off."""
    going = [token for token in range(vocabulary) if token != END]
    ended = [(*start, END) for n in range(length) for start in itertools.product(going, repeat=n)]
    return ended + list(itertools.product(going, repeat=length))


@torch.no_grad()
def log_probabilities(network: Any, given: dict[str, torch.Tensor], row: int, every: list[tuple[int, ...]]) -> list[float]:
    """Of every text after one row's input, without a cache or padding: nothing that the search relies on."""
    seen = given["attention_mask"][row].bool()
    prompt = given["input_ids"][row][seen]
    longest = max(len(text) for text in every)
    targets = torch.tensor([[*text, *[-1] * (longest - len(text))] for text in every])
    shown = targets.clamp(min=0)
    if network.config.is_encoder_decoder:
        start = torch.full((len(every), 1), network.config.decoder_start_token_id)
        encoded = network.get_encoder()(input_ids=prompt[None])
        encoded.last_hidden_state = encoded.last_hidden_state.expand(len(every), -1, -1)
        logits = network(encoder_outputs=encoded, decoder_input_ids=torch.cat([start, shown[:, :-1]], 1)).logits
    else:
        whole = torch.cat([prompt.expand(len(every), -1), shown[:, :-1]], 1)
        logits = network(input_ids=whole).logits[:, len(prompt) - 1 :]
    chosen = logits.float().log_softmax(-1).gather(2, shown[..., None]).squeeze(-1)
    return chosen.masked_fill(targets < 0, 0.0).sum(1).tolist()


def holds(text: tuple[int, ...] | list[int], phrase: list[int]) -> bool:
    return any(list(text[i : i + len(phrase)]) == phrase for i in range(len(text) - len(phrase) + 1))


def meets(text: tuple[int, ...] | list[int], clauses: Clauses) -> list[bool]:
    """Which clauses a text meets, looked up phrase by phrase."""
    body = list(text[: text.index(END)]) if END in text else list(text)
    return [any(holds(body, phrase) for phrase in clause) for clause in clauses]
