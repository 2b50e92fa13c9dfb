"""MoverScore (Zhao et al. 2019): how little the words of one text must move, in a contextual embedding, to become another's."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.model import Model
from hfcf.entities import read_fitted


@dataclass(frozen=True, kw_only=True)
class MoverScore(Engine):
    """Scores of `[reference, hypothesis]` requests in (0, 1]; 1 means that no word has to move.

    It is `word_mover_score` of the authors' `moverscore_v2` with unigrams: last hidden layer, unit vectors, Euclidean
    distance, IDF weights, continuation pieces and punctuation marks without weight, exact transport, 1 / (1 + cost).

    Deviations: the authors compute IDF from the scored references and, apart, from the hypotheses, so that a score depends on
    its neighbours; here it
    comes from a fitted file or is 1 everywhere. A text without any weight scores 0, where theirs scores 1.

    Args:
        model: an encoder. The authors' default is distilbert-base-uncased.
        idf: the sha256 of a file that `fit_idf` wrote; None weighs every word alike.
        max_length: tokens of a text.

    >>> engine = MoverScore(model=Model("offline:minilm"))
    >>> same, other = engine.run([["Rome is old.", "Rome is old."], ["Rome is old.", "Dogs bark."]])  # doctest: +SKIP
    """

    model: Model
    idf: str | None = None
    max_length: int = 512

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.model.source(), revision=self.model.revision)
        network = AutoModel.from_pretrained(
            self.model.source(), revision=self.model.revision, dtype=self.dtype(), use_safetensors=True
        )
        return network.to(device).eval(), tokenizer

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer = loaded[1]
        texts = list(dict.fromkeys(text for request in requests for text in request))
        ids = tokenizer(texts, truncation=True, max_length=self.max_length)["input_ids"]
        known = dict(zip(texts, map(tuple, ids), strict=True))
        # Both texts' tokens make the length; `extra` keeps them apart.
        return [Encoded({"input_ids": [*known[one], *known[other]]}, (known[one], known[other])) for one, other in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        different = list(dict.fromkeys(ids for item in encoded for ids in item.extra))
        batch = pad(tokenizer, [Encoded({"input_ids": list(ids)}) for ids in different], network.device)
        with torch.inference_mode():
            # In double precision: a rest of 1e-7 in a unit vector's square is a distance of 3e-4 between equal words.
            hidden = torch.nn.functional.normalize(network(**batch).last_hidden_state.cpu().double(), dim=-1).numpy()
        words = {ids: (vectors[: len(ids)], self._weights(tokenizer, ids)) for ids, vectors in zip(different, hidden, strict=True)}
        return [round(_score(*words[item.extra[0]], *words[item.extra[1]]), 5) for item in encoded]

    def _weights(self, tokenizer: Any, ids: Sequence[int]) -> Any:
        weight = _idf(self.idf) if self.idf else lambda token: 1.0
        pieces = tokenizer.convert_ids_to_tokens(list(ids))
        silent = [piece.startswith("##") or piece in string.punctuation for piece in pieces]
        return np.array([0.0 if mute else weight(token) for token, mute in zip(ids, silent, strict=True)])


def _score(one: Any, one_weights: Any, other: Any, other_weights: Any) -> float:
    import ot

    if not one_weights.sum() or not other_weights.sum():
        return 0.0
    one, one_weights = one[one_weights > 0], one_weights[one_weights > 0]
    other, other_weights = other[other_weights > 0], other_weights[other_weights > 0]
    # Unit vectors: |a − b|² = 2 − 2ab.
    costs = np.sqrt(np.clip(2.0 - 2.0 * one @ other.T, 1e-30, None))
    return 1.0 / (1.0 + float(ot.emd2(one_weights / one_weights.sum(), other_weights / other_weights.sum(), costs)))


def fit_idf(texts: Iterable[str], model: Model) -> dict[str, Any]:
    """In how many texts each token id stands, and how many texts there are: what `MoverScore` weighs words by.

    Args:
        texts: read once.
        model: whose tokenizer.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.source(), revision=model.revision)
    counts: Counter[int] = Counter()
    rows = 0
    for text in texts:
        rows += 1
        counts.update(set(tokenizer(text, truncation=True, max_length=512)["input_ids"]))
    return {"rows": rows, "frequencies": {str(token): count for token, count in sorted(counts.items())}}


@lru_cache(maxsize=4)
def _idf(sha: str) -> Any:
    content = read_fitted(sha, "fit again")
    rows, counts = content["rows"], content["frequencies"]
    return lambda token: math.log((rows + 1) / (counts.get(str(token), 0) + 1))
