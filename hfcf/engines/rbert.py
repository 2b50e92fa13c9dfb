"""R-BERT: an encoder that reads a sentence with two marked entities, and a head over [CLS] and the entities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.engines.base import Encoded, pad
from hfcf.engines.classifier import label_probabilities
from hfcf.engines.classifier_spec import RBERT, output_names
from hfcf.engines.networks import load_whole, name_classes, save_whole

MARKERS = ("$", "#")
"""The markers around the first and the second argument, in whatever order they occur."""


class RBert(nn.Module):
    """The relation classifier of Wu and He 2019, "Enriching Pre-trained Language Model with Entity Information for Relation
    Classification" (CIKM).

    The state of [CLS] and the mean state of each entity go through tanh and a fully connected layer; the two entities share this
    layer. A last layer over the three gives the classes. Dropout precedes each layer.

    Deviations: none from the paper. A widely used reimplementation reads the encoder's pooled output instead of the state of [CLS],
        and the mean over an entity's pieces and its markers. Here the mean is over the entity's own pieces, as in the paper. The
        paper does not mention a [SEP] at the end. It is added because encoders have learned to read sentences that end with it.

    Args:
        encoder: an encoder that `AutoModel` loads.
        labels: the classes, in the order of the outputs.
        dropout: the paper's rate.
    """

    def __init__(self, encoder: Any, labels: Sequence[str], dropout: float = 0.1) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.sentence = nn.Linear(size, size)
        self.entity = nn.Linear(size, size)
        self.classifier = nn.Linear(3 * size, len(labels))
        self.dropout = nn.Dropout(dropout)
        name_classes(encoder, labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the outputs."""
        return output_names(self.encoder.config)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.classifier.weight.device

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, spans: torch.Tensor) -> SequenceClassifierOutput:
        """Compute the logits of a batch; spans are sentences × 2 × 2: where the pieces of head and tail start and end."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        inside = ((spans[..., :1] <= places) & (places < spans[..., 1:])).to(states.dtype)
        means = (inside @ states) / inside.sum(-1, keepdim=True)
        sentence, entities = (self.dropout(torch.tanh(part)) for part in (states[:, 0], means))
        parts = [self.sentence(sentence), *self.entity(entities).unbind(1)]
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(torch.cat(parts, -1))))

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Store the encoder as Transformers does, and the head in a file of its own."""
        save_whole(self, folder, RBERT)


def load_rbert(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[RBert, Any]:
    """Load a trained R-BERT and its tokenizer."""
    network = load_whole(
        model, RBERT, lambda encoder: RBert(encoder, output_names(encoder.config)), kind="an R-BERT",
        training="hfcf train train_relation", device=device, dtype=dtype,
    )  # fmt: skip
    return network, load_tokenizer(model)


def load_tokenizer(model: Model) -> Any:
    """Load the tokenizer of an encoder."""

    tokenizer = read_tokenizer(model)
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise ValueError(f"{model.name}: its tokenizer has no [CLS] or [SEP]: give an encoder such as BERT or RoBERTa")
    first, second = (tokenizer(f" {marker}", add_special_tokens=False)["input_ids"] for marker in MARKERS)
    if not first or first == second:
        raise ValueError(f"{model.name}: its tokenizer cannot tell the markers {MARKERS[0]} and {MARKERS[1]} apart")
    return tokenizer


def encode_marked(tokenizer: Any, tokens: Sequence[str], head: Sequence[int], tail: Sequence[int]) -> Encoded:
    """Tokenise a sentence with its two entities marked; it is not cut, so the caller checks its length."""
    coded = word_pieces(tokenizer, [*MARKERS, *tokens])
    return mark_pieces(tokenizer, coded[2:], coded[:2], head, tail)


def word_pieces(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """Return the pieces of each word as they are in a text; a word without pieces is the unknown token."""
    # A space before each word: a byte-level tokenizer has other pieces for a word in a text than at its start.
    coded = tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"] if words else []
    return [ids or [tokenizer.unk_token_id] for ids in coded]


def mark_pieces(
    tokenizer: Any, words: Sequence[list[int]], marks: Sequence[list[int]], head: Sequence[int], tail: Sequence[int]
) -> Encoded:
    """Mark two entities as `encode_marked` does, given the pieces of the words and of the two markers."""
    spans = [tuple(head), tuple(tail)]
    for start, end in spans:
        if not 0 <= start < end <= len(words):
            raise ValueError(f"the entity {start}–{end} is empty or lies outside a sentence of {len(words)} words")
    ids = [tokenizer.cls_token_id]
    places = [[0, 0], [0, 0]]
    # The inner of two nested entities is closed first and opened last.
    inner = sorted((0, 1), key=lambda entity: spans[entity][1] - spans[entity][0])
    for i in range(len(words) + 1):
        for entity in inner:
            if i == spans[entity][1]:
                places[entity][1] = len(ids)
                ids += marks[entity]
        for entity in reversed(inner):
            if i == spans[entity][0]:
                ids += marks[entity]
                places[entity][0] = len(ids)
        if i < len(words):
            ids += words[i]
    return Encoded({"input_ids": [*ids, tokenizer.sep_token_id]}, extra=places)


def longest(config: Any, tokenizer: Any, max_length: int) -> int:
    """Return how many pieces are read: `max_length`, or fewer if the encoder of this configuration has fewer positions."""
    places = getattr(config, "max_position_embeddings", 1 << 30)
    return int(min(max_length, tokenizer.model_max_length, places))


def collate(tokenizer: Any, encoded: Sequence[Encoded], device: torch.device) -> dict[str, torch.Tensor]:
    """Pad a batch to the network's inputs."""
    batch = pad(tokenizer, encoded, device)
    spans = torch.tensor([item.extra for item in encoded], device=device)
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "spans": spans}


def probabilities(network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> list[dict[str, float]]:
    """Return the class probabilities of a batch, by a network in evaluation mode."""
    with torch.inference_mode():
        return label_probabilities(rbert_logits(network, tokenizer, encoded), network.labels)


def rbert_logits(network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> torch.Tensor:
    """Return the logits of a batch."""
    logits: torch.Tensor = network(**collate(tokenizer, encoded, network.device)).logits
    return logits
