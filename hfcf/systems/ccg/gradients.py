"""Weigh words by the gradient of a relation classifier's loss, for MICE, AutoCAD, and CCG without interventions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hfcf.core.decisions import ranked, reaches
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine
from hfcf.engines.classifier import ROUND
from hfcf.engines.intervention import with_embeddings, word_places
from hfcf.engines.rbert import MARKERS, collate, mark_pieces, word_pieces
from hfcf.engines.relation_classifier import RelationClassifier


@dataclass(frozen=True, kw_only=True)
class WordGradients(Engine):
    """Weigh each word in a relation classifier's loss: requests `[tokens, [head start, head end], [tail …], label]`.

    The answer has a number for each token: the root mean square of the loss's gradient by the input embedding. It is the highest
    of the word's pieces (the released code of AutoCAD, Wen et al. 2022); the highest of a sentence's pieces is 1. The answer is
    None where the sentence has more pieces than the classifier reads.

    Args:
        indicator: an R-BERT.
        max_length: tokens that it reads.

    Raises:
        ValueError: a label that the classifier does not know; null is the label that it predicts.

    >>> WordGradients(indicator=Model("me/rbert-semeval")).max_length
    128
    """

    indicator: Model
    max_length: Positive = 128

    def load(self, device: torch.device) -> Any:
        return RelationClassifier(model=self.indicator, max_length=self.max_length).load_rbert(device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, most = loaded
        marks = word_pieces(tokenizer, MARKERS)
        results = []
        for tokens, head, tail, label in requests:
            if label is not None and label not in network.labels:
                raise ValueError(f"{self.indicator.name} does not know the label {label!r}: it knows {', '.join(network.labels)}")

            def mark(words: Sequence[list[int]], head: Any = head, tail: Any = tail) -> Encoded:
                return mark_pieces(tokenizer, words, marks, head, tail)

            words = word_pieces(tokenizer, tokens)
            sentence = mark(words)
            target = None if label is None else network.labels.index(label)
            ids = sentence.features if len(sentence) <= most else {"input_ids": []}
            results.append(Encoded(ids, (sentence.extra, word_places(mark, words), target)))
        return results

    def forward(self, loaded: Any, encoded: Sequence[Encoded]) -> list[Any]:
        network, tokenizer, _ = loaded
        read = [item for item in encoded if len(item)]
        if not read:
            return [None for _ in encoded]
        batch = collate(tokenizer, [Encoded(item.features, item.extra[0]) for item in read], network.device)
        logits, states = with_embeddings(network, batch)
        predicted = logits.argmax(-1).tolist()
        targets = [label if item.extra[2] is None else item.extra[2] for item, label in zip(read, predicted, strict=True)]
        loss = nn.functional.cross_entropy(logits.float(), torch.tensor(targets, device=logits.device), reduction="sum")
        (gradients,) = torch.autograd.grad(loss, states)
        sizes = gradients.float().pow(2).mean(-1).sqrt().cpu()
        answers = iter([_words(row, item.extra[1]) for row, item in zip(sizes.tolist(), read, strict=True)])
        return [next(answers) if len(item) else None for item in encoded]


def _words(sizes: Sequence[float], places: Sequence[Sequence[int]]) -> list[float]:
    highest = max(sizes) or 1.0
    return [round(max(sizes[place] for place in group) / highest, ROUND) for group in places]


def highest(weights: Sequence[float], allowed: Collection[int], *, share: float = 0.3, floor: float = 0.3) -> list[int]:
    """Choose the share of the allowed words with the highest weights, sorted; at least one, if any is allowed.

    The defaults are AutoCAD's released settings: 30 % of the words, without words below 0.3 of the highest weight. Deviation:
    share and highest weight refer to the allowed words, since the entities, which AutoCAD does not have, have the highest of all.
    """
    order = ranked(allowed, weights.__getitem__, int)
    chosen = order[: max(1, round(share * len(order)))]
    return sorted(word for word in chosen if reaches(weights[word], floor * max(weights[word] for word in order)))
