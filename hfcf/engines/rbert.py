"""R-BERT: an encoder that reads a sentence with its two entities marked, and a head over [CLS] and the two entities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from hfcf.core.model import Model
from hfcf.engines.base import Encoded, pad
from hfcf.engines.classifier import ROUND

HEAD = "rbert.safetensors"
"""The head's weights, beside the encoder's; the encoder's `config.json` names the classes."""
MARKERS = ("$", "#")
"""Around the first argument and around the second, wherever they stand."""


class RBert(nn.Module):
    """The relation classifier of Wu and He 2019, "Enriching Pre-trained Language Model with Entity Information for Relation
    Classification" (CIKM).

    The state of [CLS] and the mean state of each entity go through tanh and a fully connected layer, which the two entities share;
    a last one over the three of them gives the classes. Dropout stands before each.

    Deviations: none from the paper. A widely used reimplementation takes the encoder's pooled output in the place of the state of
    [CLS], and the mean over an entity's pieces and its markers; here it is over its own pieces, as in the paper. Of a [SEP] at
    the end the paper says nothing; it is there because encoders have learned to read sentences that end so.

    Args:
        encoder: any that `AutoModel` loads.
        labels: the classes, in the order of the outputs.
        dropout: the paper's.
    """

    def __init__(self, encoder: Any, labels: Sequence[str], dropout: float = 0.1) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.sentence = nn.Linear(size, size)
        self.entity = nn.Linear(size, size)
        self.classifier = nn.Linear(3 * size, len(labels))
        self.dropout = nn.Dropout(dropout)
        encoder.config.id2label = dict(enumerate(labels))
        encoder.config.label2id = {label: i for i, label in enumerate(labels)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the outputs."""
        names = self.encoder.config.id2label
        return tuple(names[i] for i in range(len(names)))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.classifier.weight.device

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, spans: torch.Tensor) -> SequenceClassifierOutput:
        """The logits of a batch.

        Args:
            input_ids: sentences × pieces.
            attention_mask: the same.
            spans: sentences × 2 × 2: where the pieces of head and tail start and end.
        """
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        inside = ((spans[..., :1] <= places) & (places < spans[..., 1:])).to(states.dtype)
        means = (inside @ states) / inside.sum(-1, keepdim=True)
        parts = [self.sentence(self._drop(states[:, 0])), *self.entity(self._drop(means)).unbind(1)]
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(torch.cat(parts, -1))))

    def _drop(self, states: torch.Tensor) -> torch.Tensor:
        return self.dropout(torch.tanh(states))

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Store the encoder as Transformers does, and the head beside it."""
        from safetensors.torch import save_file

        self.encoder.save_pretrained(folder)
        head = {name: tensor.contiguous() for name, tensor in self.state_dict().items() if not name.startswith("encoder.")}
        save_file(head, Path(folder) / HEAD, metadata={"format": "pt"})


def load_rbert(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[RBert, Any]:
    """A trained R-BERT and its tokenizer.

    Raises:
        ValueError: `model` is none, or has an adapter.
    """
    from safetensors.torch import load_file
    from transformers import AutoModel
    from transformers.utils import cached_file

    if model.adapter:
        raise ValueError(f"{model.name}: an R-BERT has no adapter: it is stored whole")
    quiet = {"revision": model.revision, "_raise_exceptions_for_missing_entries": False}
    path = cached_file(model.source(), HEAD, **quiet)
    if path is None:
        raise ValueError(f"{model.name} is no R-BERT: it has no {HEAD}; train one: hfcf train train_relation")
    encoder = AutoModel.from_pretrained(model.source(), revision=model.revision, dtype=dtype, use_safetensors=True)
    head = load_file(path)
    names = encoder.config.id2label
    network = RBert(encoder, [names[i] for i in range(len(names))])
    missing, unknown = network.load_state_dict(head, strict=False)
    if unknown or any(not name.startswith("encoder.") for name in missing):
        raise ValueError(f"{model.name}: {HEAD} is not the head of an R-BERT")
    return network.to(device=device, dtype=dtype).eval(), load_tokenizer(model)


def load_tokenizer(model: Model) -> Any:
    """The tokenizer of an encoder.

    Raises:
        ValueError: it has no [CLS], or cannot tell the two markers apart.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.source(), revision=model.revision)
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise ValueError(f"{model.name}: its tokenizer has no [CLS] or [SEP]: give an encoder such as BERT or RoBERTa")
    first, second = (tokenizer(f" {marker}", add_special_tokens=False)["input_ids"] for marker in MARKERS)
    if not first or first == second:
        raise ValueError(f"{model.name}: its tokenizer cannot tell the markers {MARKERS[0]} and {MARKERS[1]} apart")
    return tokenizer


def encode_marked(tokenizer: Any, tokens: Sequence[str], head: Sequence[int], tail: Sequence[int]) -> Encoded:
    """A sentence with its two entities marked, whole: whoever asks must look at its length.

    Args:
        tokenizer: of `load_tokenizer`.
        tokens: the words; one that has no pieces (a control character) becomes the unknown token.
        head: start and end of the first argument, end-exclusive: `$` goes around it.
        tail: of the second: `#` goes around it.

    Returns:
        The ids of the pieces, and in `extra` where those of head and tail start and end, without their own markers. (Where one
        entity lies inside the other, the outer one's pieces have the inner one's markers among them.)

    Raises:
        ValueError: a span is empty or lies outside the sentence.
    """
    coded = word_pieces(tokenizer, [*MARKERS, *tokens])
    return mark_pieces(tokenizer, coded[2:], coded[:2], head, tail)


def word_pieces(tokenizer: Any, words: Sequence[str]) -> list[list[int]]:
    """The pieces of each word, as they are in a text; what has none is the unknown token."""
    # A space before each word: a byte-level tokenizer has other pieces for a word in a text than at its start.
    coded = tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"] if words else []
    return [ids or [tokenizer.unk_token_id] for ids in coded]


def mark_pieces(
    tokenizer: Any, words: Sequence[list[int]], marks: Sequence[list[int]], head: Sequence[int], tail: Sequence[int]
) -> Encoded:
    """What `encode_marked` does, from the pieces of the words and of the two markers."""
    spans = [tuple(head), tuple(tail)]
    for start, end in spans:
        if not 0 <= start < end <= len(words):
            raise ValueError(f"the entity {start}–{end} is empty or lies outside a sentence of {len(words)} words")
    ids = [tokenizer.cls_token_id]
    found = [[0, 0], [0, 0]]
    # Of nested entities the inner one is closed first and opened last.
    inner = sorted((0, 1), key=lambda entity: spans[entity][1] - spans[entity][0])
    for i in range(len(words) + 1):
        for entity in inner:
            if i == spans[entity][1]:
                found[entity][1] = len(ids)
                ids += marks[entity]
        for entity in reversed(inner):
            if i == spans[entity][0]:
                ids += marks[entity]
                found[entity][0] = len(ids)
        if i < len(words):
            ids += words[i]
    return Encoded({"input_ids": [*ids, tokenizer.sep_token_id]}, extra=found)


def longest(network: RBert, tokenizer: Any, max_length: int) -> int:
    """How many pieces can be read: as many as were asked for, but no more than the encoder has places for."""
    places = getattr(network.encoder.config, "max_position_embeddings", 1 << 30)
    return int(min(max_length, tokenizer.model_max_length, places))


def collate(tokenizer: Any, encoded: Sequence[Encoded], device: torch.device) -> dict[str, torch.Tensor]:
    """One padded batch, as the network takes it."""
    batch = pad(tokenizer, encoded, device)
    spans = torch.tensor([item.extra for item in encoded], device=device)
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "spans": spans}


def probabilities(network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> list[dict[str, float]]:
    """What a network in evaluation mode says of a batch, class by class."""
    with torch.inference_mode():
        logits = network(**collate(tokenizer, encoded, network.device)).logits
    rows = logits.float().softmax(-1).cpu().tolist()
    return [dict(zip(network.labels, (round(p, ROUND) for p in row), strict=True)) for row in rows]
