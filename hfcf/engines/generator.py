"""Generate texts under constraints by an encoder-decoder (T5, BART) or a decoder-only model (GPT-2, Llama)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch

from hfcf.core.model import Model
from hfcf.core.pretrained import read_config, read_tokenizer
from hfcf.core.settings import Positive, check_search
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.constrained import generate_constrained
from hfcf.engines.constrained.search import NONE
from hfcf.engines.constrained.vocabulary import Vocabulary
from hfcf.engines.networks import load_network
from hfcf.engines.token_cuts import cut_texts

PROMPT = "{}\nClaim:"
"""The prompt of a decoder-only model, in training and in use: the evidence, and the words between it and the claim."""


@dataclass(frozen=True, kw_only=True)
class Generator(Engine):
    """Constrained beam search for `[text, clauses]` requests.

    An answer is a list of `{"text", "score", "finished"}`, best first, without repetitions. Every text meets the clauses of its
    request if any text of `max_new_tokens` tokens can. Without clauses this is a plain beam search.

    Args:
        model: an encoder-decoder model, or a decoder-only model that was trained on texts, `PROMPT`'s ending and the claim.
        num_beams: the number of beams.
        num_return_sequences: the number of hypotheses for each request.
        max_new_tokens: the tokens of the longest hypothesis.
        max_length: the tokens of a request that are read.
    """

    VERSION = "2"
    prompt: ClassVar[str] = PROMPT
    """The prompt of a decoder-only model; a subclass that writes other texts has its own prompt, and its name in the cache's
    keys."""

    model: Model
    num_beams: Positive = 30
    num_return_sequences: Positive = 10
    max_new_tokens: Positive = 96
    max_length: Positive = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.num_beams, num_return_sequences=self.num_return_sequences)

    @property
    def width(self) -> int:
        # The beams of a request share its text in memory, so a beam takes far less room than a request of its own.
        return -(-self.num_beams // 4)

    def load(self, device: torch.device) -> Any:
        tokenizer = load_tokenizer(self.model)
        return load_generator(self.model, self.dtype()).to(device), tokenizer, Vocabulary(tokenizer)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, _ = loaded
        texts = [text for text, _ in requests]
        rows = tokenizer(texts, truncation=True, max_length=self.max_length)["input_ids"]
        cut = cut_texts(tokenizer, texts, self.max_length, lengths=list(map(len, rows)))
        if not network.config.is_encoder_decoder:
            # Added after the cut, so that a long text does not lose the word that asks for the claim.
            ending = tokenizer(self.prompt.format(""), add_special_tokens=False)["input_ids"]
            rows = [row + ending for row in rows]
        return [Encoded({"input_ids": row}, clauses, cut=each) for row, (_, clauses), each in zip(rows, requests, cut, strict=True)]

    def count_cut(self, requests: Sequence[Any]) -> int:
        """Count the requests of which a part is not read."""
        return sum(cut_texts(load_tokenizer(self.model), [text for text, _ in requests], self.max_length))

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, vocabulary = loaded
        return search(self, network, tokenizer, encoded, [item.extra for item in encoded], vocabulary=vocabulary)


Hypotheses = list[dict[str, Any]]
"""Distinct texts for one input, best first, as `{"text", "score", "finished"}`; a text cut off at the limit is not finished."""


def search(
    engine: Any, network: Any, tokenizer: Any, encoded: Sequence[Encoded], constraints: Any, *, marks: bool = False, **settings: Any
) -> list[Hypotheses]:
    """Search with an engine's `num_beams`, `num_return_sequences` and `max_new_tokens`; see `generate_constrained`.

    With `marks`, the texts keep the tokenizer's special tokens.
    """
    settings |= {name: getattr(engine, name) for name in ("num_beams", "num_return_sequences", "max_new_tokens")}
    inputs = pad(tokenizer, encoded, network.device)
    with torch.inference_mode():
        output = generate_constrained(network, inputs, constraints, **settings)
    prompt = 0 if network.config.is_encoder_decoder else inputs["input_ids"].shape[1]
    texts = tokenizer.batch_decode(output.sequences[:, prompt:], skip_special_tokens=not marks)
    return hypotheses(texts, output.sequences_scores, output.ended, len(encoded))


def hypotheses(decoded: Sequence[str], scores: torch.Tensor, ended: torch.Tensor, inputs: int) -> list[Hypotheses]:
    """List the hypotheses of each input; drop repetitions and empty places."""
    texts = [" ".join(text.split()) for text in decoded]
    rows: list[dict[str, dict[str, Any]]] = [{} for _ in range(inputs)]
    for i, (text, score, finished) in enumerate(zip(texts, scores.float().cpu().tolist(), ended.tolist(), strict=True)):
        if text and score > NONE:
            rows[i * inputs // len(texts)].setdefault(text, {"text": text, "score": round(score, 5), "finished": finished})
    return [list(row.values()) for row in rows]


@lru_cache(maxsize=16)
def two_sided(model: Model) -> bool:
    """Return whether a model is an encoder-decoder."""

    return bool(read_config(model).is_encoder_decoder)


def pair_prompt(model: Model) -> str:
    """Return the prompt of a model that this library trained on pairs of texts, with {} for the first text of a pair."""
    return "{}" if two_sided(model) else PROMPT


def load_generator(model: Model, dtype: torch.dtype) -> Any:
    """Load the network of an encoder-decoder or decoder-only model."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    return load_network(AutoModelForSeq2SeqLM if two_sided(model) else AutoModelForCausalLM, model, dtype)


def load_tokenizer(model: Model) -> Any:
    """Load a generation model's tokenizer; a decoder-only model's pads on the left, with the end of text if it has no padding."""
    if two_sided(model):
        return read_tokenizer(model)
    tokenizer = read_tokenizer(model, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


@dataclass(frozen=True, kw_only=True)
class ProgramWriter(Generator):
    """Programs for `[text, []]` requests, which `hfcf.tasks.task_inputs.program_text` writes; an answer has the form of
    `Generator`'s.

    Lengths are CheckWhy's (Appendix A). The paper does not say how it searches; this engine searches greedily.

    >>> ProgramWriter.prompt
    '{}\\n# Program:'
    """

    VERSION = "1"
    prompt: ClassVar[str] = "{}\n# Program:"

    num_beams: Positive = 1
    num_return_sequences: Positive = 1
    max_new_tokens: Positive = 400
    max_length: Positive = 512
