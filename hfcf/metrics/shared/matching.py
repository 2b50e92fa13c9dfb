"""The best matching of two lists of sentences, by the similarity of their tokens in an encoder (BERTScore)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hfcf.core.model import Model
from hfcf.core.pretrained import read_config, read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.networks import load_encoder
from hfcf.metrics.shared.batching import windows

Array = NDArray[Any]


@dataclass(eq=False)
class Sentence:
    """A different sentence of a run; it has its vectors from the first request that needs them to the last."""

    ids: list[int]
    weights: Array
    """The weight of each token in a mean: special tokens have none."""
    waiting: int = 0
    """Requests that still need the vectors."""
    vectors: torch.Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Matching(Engine):
    """Total similarities of the best one-to-one matching of `[references, hypotheses]` requests, two lists of sentences.

    The similarity of two sentences is BERTScore's F1 (Zhang et al. 2020), without IDF and without rescaling, as in Saha et al.
    2021. Each token goes to the nearest token of the other sentence by the cosine of their vectors. Precision is the mean over the
    hypothesis's tokens, recall over the reference's. Special tokens can be the nearest and have no weight, as in the authors'
    `bert_score`; the results are the same. Deviation: in a padded batch `bert_score` gives padding the cosine 0, which is nearest
    to a token with cosines below 0. So its result depends on the batch; here padding is never read.

    Answers have six decimals. A total is between 0 and the length of the shorter list. For two lists of one sentence it is their
    similarity, and an empty list gives 0.

    Each different sentence of a run is encoded once, in a batch with sentences of its length. Its vectors are kept until the last
    request that needs them. Consecutive requests with the same references are compared at once. It needs memory for the vectors of
    65,536 tokens, 100 MB for an encoder with 384 dimensions, and of sentences that requests further apart share.

    Args:
        model: an encoder.
        layer: the number of layers that are computed; None: all.
        max_length: the number of tokens of a sentence that are read.
    """

    model: Model
    layer: Positive | None = None
    max_length: Positive = 512

    def load(self, device: torch.device) -> Any:
        config = read_config(self.model)
        if self.layer is not None:
            if not 1 <= self.layer <= config.num_hidden_layers:  # further layers would get random weights
                raise ValueError(
                    f"layer must be between 1 and {config.num_hidden_layers}, the layers of {self.model.name}, got {self.layer}"
                )
            config.num_hidden_layers = self.layer
        network = load_encoder(self.model, self.dtype(), type(self).__name__, config=config)
        return network.to(device).eval(), read_tokenizer(self.model)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        texts = list(dict.fromkeys(text for request in requests for side in request for text in side))
        # A tokenizer refuses an empty list.
        tokens = loaded[1](texts or [""], truncation=True, max_length=self.max_length, return_special_tokens_mask=True)
        columns = zip(tokens["input_ids"], tokens["special_tokens_mask"], strict=True)
        sentences = {text: Sentence(ids, _weights(special)) for text, (ids, special) in zip(texts, columns, strict=False)}
        encoded = []
        for request in requests:
            sides = [[sentences[text] for text in side] for side in request]
            for sentence in _both(sides):
                sentence.waiting += 1
            # Both sides' tokens make the length; `extra` keeps them apart.
            ids = [token for side in sides for sentence in side for token in sentence.ids]
            encoded.append(Encoded({"input_ids": ids}, sides))
        return encoded

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batch requests in their order, so that requests with the same sentences stay together; `WINDOW` tokens to a batch."""
        return windows(lengths)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        needed = dict.fromkeys(sentence for item in encoded for sentence in _both(item.extra))
        new = [sentence for sentence in needed if sentence.vectors is None]
        for batch in super().batches([len(sentence.ids) for sentence in new]):
            _embed(loaded, [new[i] for i in batch])
        answers = [total for _, group in groupby(encoded, lambda item: item.extra[0]) for total in _totals(list(group))]
        for item in encoded:  # only now: a batch that memory did not hold comes again in halves
            for sentence in _both(item.extra):
                sentence.waiting -= 1
                if not sentence.waiting:
                    sentence.vectors = None
        return answers


def similarities(references: Sequence[Sentence], hypotheses: Sequence[Sentence]) -> Array:
    """Compute the similarity of each reference with each hypothesis, references × hypotheses; all of them have vectors."""
    if not references or not hypotheses:
        return np.zeros((len(references), len(hypotheses)))
    sides = (references, hypotheses)
    left, right = (torch.cat([sentence.vectors for sentence in side if sentence.vectors is not None]) for side in sides)
    cosines = (left @ right.T).numpy()
    left_weights, right_weights = (np.concatenate([sentence.weights for sentence in side]) for side in sides)
    starts, right_starts = (np.cumsum([0, *(len(sentence.ids) for sentence in side[:-1])]) for side in sides)
    # Along the first axis a loop over slices takes a quarter of the time of `reduceat`.
    nearest = np.stack([cosines[i : i + len(reference.ids)].max(axis=0) for reference, i in zip(references, starts, strict=True)])
    precision = np.add.reduceat(nearest * right_weights, right_starts, axis=1)
    nearest = np.maximum.reduceat(cosines, right_starts, axis=1)
    recall = np.add.reduceat(nearest * left_weights[:, None], starts, axis=0)
    # A sentence without a token of weight has similarity 0; opposite vectors, below 0, count as much.
    precision, recall = (np.clip(side.astype(np.float64), 0, 1) for side in (precision, recall))
    return np.round(2 * precision * recall / np.maximum(precision + recall, 1e-9), 6)


def _totals(encoded: Sequence[Encoded]) -> list[float]:
    """Match requests with the same references: each different pair of sentences is compared once."""
    columns = {sentence: i for i, sentence in enumerate(dict.fromkeys(sentence for item in encoded for sentence in item.extra[1]))}
    compared = similarities(encoded[0].extra[0], list(columns))
    totals = []
    for item in encoded:
        chosen = compared[:, [columns[sentence] for sentence in item.extra[1]]]
        totals.append(round(float(chosen[linear_sum_assignment(chosen, maximize=True)].sum()), 6))
    return totals


def _embed(loaded: Any, sentences: Sequence[Sentence]) -> None:
    """Compute the unit vectors of a batch of sentences."""
    network, tokenizer = loaded
    batch = pad(tokenizer, [Encoded({"input_ids": sentence.ids}) for sentence in sentences], network.device)
    with torch.inference_mode():
        hidden = torch.nn.functional.normalize(network(**batch).last_hidden_state.float(), dim=-1).cpu()
    for sentence, vectors in zip(sentences, hidden, strict=True):
        sentence.vectors = vectors[: len(sentence.ids)].clone()  # not a view, which would keep the whole batch


def _weights(special: Sequence[int]) -> Array:
    weights = 1 - np.array(special, dtype=np.float32)
    return weights / max(float(weights.sum()), 1.0)


def _both(sides: Sequence[Sequence[Sentence]]) -> list[Sentence]:
    """List the different sentences of a request."""
    return list(dict.fromkeys(sentence for side in sides for sentence in side))
