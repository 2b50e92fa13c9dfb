"""MoverScore (Zhao et al. 2019): the least distance that words move between two texts, in a contextual embedding."""

from __future__ import annotations

import logging
import math
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.networks import load_encoder
from hfcf.metrics.shared.batching import windows

CITATION = "Zhao et al. 2019, MoverScore: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance"
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MoverScore(Engine):
    """Scores of `[reference, hypothesis]` requests in (0, 1]; 1 means that no word has to move.

    It is `word_mover_score` of the authors' `moverscore_v2`. It uses the last hidden layer, unit vectors, Euclidean distance, IDF
    weights, exact transport and 1 / (1 + cost). Continuation pieces and punctuation marks have no weight. Requests of `WINDOW`
    tokens together encode each different text once, in a batch with texts of its length. Only words that carry weight are
    transported.

    Deviations: the authors compute IDF from the scored references and, separately, from the hypotheses, so that a score depends on
        its neighbours. Here IDF comes from a fitted file or is 1 everywhere. A text without any weight scores 0, whereas the
        authors' score is 1; no other score is under 1/3. N-grams follow the authors' first version, `moverscore.py`, in the
        distance and score of the second version. The second version takes the argument and does not read it.

    Args:
        model: an encoder. The authors' default is distilbert-base-uncased. Which pieces continue a word is read from WordPiece's
            "##". Another tokenizer has no such mark: then every piece carries weight, with a warning.
        idf: the sha256 of a file that `fit_idf` wrote; None weighs every word alike.
        max_length: the number of tokens of a text that are read.
        n_gram: the number of neighbouring words that move together. Their vector is the mean of the words' vectors, weighted by
            IDF, and their weight is the sum. A text with fewer words is a single group.
    """

    model: Model
    idf: str | None = None
    max_length: Positive = 512
    n_gram: Positive = 1

    def load(self, device: torch.device) -> Any:
        tokenizer = read_tokenizer(self.model)
        network = load_encoder(self.model, self.dtype(), "MoverScore")
        vocabulary = tokenizer.get_vocab()
        if not any(piece.startswith("##") for piece in vocabulary):
            log.warning("%s: its tokenizer does not mark what continues a word: such pieces weigh like words", self.model.name)
        silent = frozenset(i for piece, i in vocabulary.items() if piece.startswith("##") or piece in string.punctuation)
        return network.to(device).eval(), tokenizer, silent

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer = loaded[1]
        texts = list(dict.fromkeys(text for request in requests for text in request))
        ids = tokenizer(texts, truncation=True, max_length=self.max_length)["input_ids"]
        ids_of = dict(zip(texts, map(tuple, ids), strict=True))
        # Both texts' tokens make the length; `extra` keeps them apart.
        pairs = [(ids_of[reference], ids_of[hypothesis]) for reference, hypothesis in requests]
        return [Encoded({"input_ids": [*reference, *hypothesis]}, (reference, hypothesis)) for reference, hypothesis in pairs]

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batch requests in their order, so that candidates stay with their claim; `WINDOW` tokens to a batch."""
        return windows(lengths)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        different = list(dict.fromkeys(ids for item in encoded for ids in item.extra))
        words: dict[Any, tuple[Any, Any]] = {}
        for batch in super().batches([len(ids) for ids in different]):
            words.update(self._words(loaded, [different[i] for i in batch]))
        return [round(_score(*words[reference], *words[other]), 5) for reference, other in (item.extra for item in encoded)]

    def _words(self, loaded: Any, texts: Sequence[tuple[int, ...]]) -> dict[Any, tuple[Any, Any]]:
        """Compute the unit vectors and weights of each text's words (or n-grams) that have weight."""
        network, tokenizer, silent = loaded
        weight = _idf(self.idf) if self.idf else lambda token: 1.0
        batch = pad(tokenizer, [Encoded({"input_ids": list(ids)}) for ids in texts], network.device)
        with torch.inference_mode():
            # In double precision: an error of 1e-7 in a unit vector's square is a distance of 3e-4 between equal words.
            hidden = torch.nn.functional.normalize(network(**batch).last_hidden_state.cpu().double(), dim=-1).numpy()
        words_of = {}
        for ids, vectors in zip(texts, hidden, strict=True):
            places = [i for i, token in enumerate(ids) if token not in silent]
            words_of[ids] = _grams(vectors[places], np.array([weight(ids[i]) for i in places]), self.n_gram)
        return words_of


def _grams(vectors: Any, weights: Any, n: int) -> tuple[Any, Any]:
    """Compute unit vectors and weights of the groups of `n` neighbouring words that have weight."""
    size = min(n, len(weights))
    if size > 1:
        of_each = np.lib.stride_tricks.sliding_window_view(weights, size)
        weights = of_each.sum(axis=1)
        vectors = np.einsum("gds,gs->gd", np.lib.stride_tricks.sliding_window_view(vectors, size, axis=0), of_each)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    return vectors[weights > 0], weights[weights > 0]


def _score(reference: Any, reference_weights: Any, other: Any, other_weights: Any) -> float:
    if not len(reference) or not len(other):
        return 0.0
    # Unit vectors: |a − b|² = 2 − 2ab.
    costs = np.sqrt(np.clip(2.0 - 2.0 * reference @ other.T, 1e-30, None))
    return 1.0 / (1.0 + _transport(reference_weights / reference_weights.sum(), other_weights / other_weights.sum(), costs))


def _transport(reference: Any, other: Any, costs: Any) -> float:
    """Compute the least cost of turning one distribution into the second, by POT's network simplex, which is exact.

    `ot.emd2` checks and copies its arguments first, and on sentences that takes twice as long as the solver.
    """
    from ot.lp.emd_wrap import check_result, emd_c

    # The simplex needs sums that are equal to the last bit.
    _, cost, _, _, code = emd_c(reference, other * (reference.sum() / other.sum()), np.ascontiguousarray(costs), 100_000, 1)
    if problem := check_result(code):
        raise ArithmeticError(f"the transport of {len(reference)} words to {len(other)} has no solution: {problem}")
    return float(cost)


def fit_idf(texts: Iterable[str], model: Model) -> dict[str, Any]:
    """Count the texts, and in how many of them each token id of the model's tokenizer occurs.

    Fewer than two texts do not show how common a word is: they count as none, and every word then weighs the same.
    """
    tokenizer = read_tokenizer(model)
    counts: Counter[int] = Counter()
    rows = 0
    for text in texts:
        rows += 1
        counts.update(set(tokenizer(text, truncation=True, max_length=512)["input_ids"]))
    if rows < 2:
        return {"rows": 0, "frequencies": {}}
    return {"rows": rows, "frequencies": {str(token): count for token, count in sorted(counts.items())}}


def learn_idf(texts: Iterable[str], model: Model) -> str:
    """Store `fit_idf` of the different texts, and return the file's sha256."""
    return save_artifact(fit_idf(dict.fromkeys(filter(None, texts)), model))


@lru_cache(maxsize=4)
def _idf(sha: str) -> Any:
    content = read_artifact(sha, "fit again")
    rows, counts = content["rows"], content["frequencies"]
    if not rows:
        return lambda token: 1.0
    return lambda token: math.log((rows + 1) / (counts.get(str(token), 0) + 1))
