"""Relation classification of sentences with two marked entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Encoded, Engine, skip_empty
from hfcf.engines.rbert import encode_marked, load_rbert, longest, probabilities


@dataclass(frozen=True, kw_only=True)
class RelationClassifier(Engine):
    """Class probabilities of `[tokens, [head start, head end], [tail start, tail end]]` requests, as `{class: probability}`.

    Head is the first argument of the relation and tail its second, wherever they stand; ends are exclusive. A sentence with more
    pieces than the classifier reads is not cut, since that could cut its entities: its answer is None.

    Args:
        model: an R-BERT: a folder that `hfcf.training.relation.train_relation` wrote, or its Hub id.
        max_length: pieces that it reads, markers and special tokens included.

    Raises:
        ValueError: `model` is no R-BERT, or an entity is empty or lies outside its sentence.
    """

    model: Model
    max_length: int = 128

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_rbert(self.model, device, self.dtype())
        return network, tokenizer, longest(network, tokenizer, self.max_length)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        _, tokenizer, most = loaded
        encoded = [encode_marked(tokenizer, *request) for request in requests]
        return [item if len(item) <= most else Encoded({"input_ids": []}) for item in encoded]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, _ = loaded
        return skip_empty(encoded, partial(probabilities, network, tokenizer))
