"""Which words' replacement changes what a relation classifier says: the search of CCG's intervention step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.engines.base import Encoded, Engine, Usage, usage
from hfcf.engines.classifier import ROUND, choose
from hfcf.engines.model import Model
from hfcf.engines.narrow import narrow
from hfcf.engines.rbert import MARKERS, RBert, collate, mark_pieces, word_pieces
from hfcf.engines.relation import RelationClassifier

_FIRST, _GROWTH = 1, 2
"""How many fills of a word are asked at first, and how many times as many in each wave after it."""

Pieces = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Intervention(Engine):
    """The words of which some fill changes the classifier's prediction.

    Requests are `[tokens, [head start, head end], [tail start, tail end], [[word, [fill, …]], …]]`, with words as indices. The
    answer has the indices of the words that flip, sorted; None where the sentence has more pieces than the classifier reads. A fill
    with which a sentence would be too long is not tried, and neither is one whose pieces are the word's own.

    Only whether a word flips is asked, so the first fill that does ends its search. The fills stand in the order of a first-order
    estimate (the gradient of the prediction's margin over the next class, times the change of the input embedding), and are asked
    in growing waves, those of all words and sentences together, in batches of like length. The encoder's last layer is computed
    only where the head reads it (`hfcf.engines.narrow`). The answer is that of asking them all.

    Args:
        indicator: an R-BERT.
        max_length: pieces that it reads.
        patience: give a word up after so many fills without a flip, an approximation; None asks them all.

    >>> Intervention(indicator=Model("me/rbert-semeval")).patience is None
    True
    """

    indicator: Model
    max_length: int = 128
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience={self.patience}: give at least 1, or None to ask every fill")

    @property
    def classifier(self) -> RelationClassifier:
        """Who answers."""
        return RelationClassifier(model=self.indicator, max_length=self.max_length)

    def load(self, device: torch.device) -> Any:
        loaded = self.classifier.load(device)
        narrow(loaded[0])
        return loaded

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[_Sentence]:
        _, tokenizer, most = loaded
        texts = list(dict.fromkeys([*MARKERS, *(word for request in requests for word in _words(request))]))
        pieces = dict(zip(texts, word_pieces(tokenizer, texts), strict=True))
        marks = [pieces[marker] for marker in MARKERS]
        return [_Sentence(tokenizer, request, pieces, marks, most) for request in requests]

    def forward(self, loaded: Any, encoded: Sequence[_Sentence]) -> list[Any]:
        network, tokenizer, _ = loaded
        read = [sentence for sentence in encoded if len(sentence)]
        if read:
            margins = Margins(network, tokenizer, [sentence.encoded for sentence in read])
            live = []
            for i, (sentence, base) in enumerate(zip(read, margins.predictions, strict=True)):
                for word, fills in sentence.fills.items():
                    ordered = margins.order(i, sentence.places(word), sentence.words[word], fills)
                    live.append(_Search(sentence, word, base, ordered[: self.patience]))
            self._search(loaded, live)
        return [sorted(sentence.flipped) if len(sentence) else None for sentence in encoded]

    def _search(self, loaded: Any, live: list[_Search]) -> None:
        """Ask wave after wave of fills, of all the words that have not flipped."""
        labels, classifier = loaded[0].labels, self.classifier
        size = _FIRST
        while live := [search for search in live if search.fills]:
            asked = [(search, fill) for search in live for fill in search.take(size)]
            variants = [search.sentence.variant(search.word, fill) for search, fill in asked]
            usage().setdefault(type(self).__name__, Usage()).tokens += sum(map(len, variants))
            for batch in classifier.batches([len(variant) for variant in variants]):
                # Not through `run`: thousands of different sentences would fill the request cache.
                answers = classifier._forward(loaded, [variants[i] for i in batch])
                for i, answer in zip(batch, answers, strict=True):
                    search = asked[i][0]
                    if choose(answer, labels) != search.base:
                        search.sentence.flipped.add(search.word)
                        search.fills = []
            size *= _GROWTH


def _words(request: Sequence[Any]) -> Iterable[str]:
    tokens, _, _, todo = request
    yield from tokens
    for _, fills in todo:
        yield from fills


class _Sentence:
    """A request in pieces: the sentence, and of each word to try its fills, each different one once."""

    def __init__(
        self, tokenizer: Any, request: Sequence[Any], pieces: Mapping[str, list[int]], marks: Sequence[list[int]], most: int
    ) -> None:
        tokens, head, tail, todo = request
        self.words = [pieces[token] for token in tokens]
        self._mark = lambda words: mark_pieces(tokenizer, words, marks, head, tail)
        whole = self._mark(self.words)
        self.encoded = whole if len(whole) <= most else Encoded({"input_ids": []})
        self.flipped: set[int] = set()
        room = {word: most - len(whole) + len(self.words[word]) for word, _ in todo}
        self.fills: dict[int, list[Pieces]] = {
            word: [
                ids
                for ids in dict.fromkeys(tuple(pieces[fill]) for fill in fills)
                if ids != tuple(self.words[word]) and len(ids) <= room[word]
            ]
            for word, fills in todo
        }

    def __len__(self) -> int:
        return len(self.encoded)

    def variant(self, word: int, fill: Pieces) -> Encoded:
        """The sentence with a fill in the place of a word."""
        return self._mark([*self.words[:word], list(fill), *self.words[word + 1 :]])

    def places(self, word: int) -> list[int]:
        """Where the pieces of a word stand."""
        return word_places(self._mark, self.words)[word]


def word_places(mark: Any, words: Sequence[Sequence[int]]) -> list[list[int]]:
    """Where the pieces of each word stand in a marked sentence.

    Args:
        mark: makes an `Encoded` of the pieces of words.
        words: these pieces.
    """
    # In the place of ids, which may repeat, the words' own numbers, which no piece has.
    owners = mark([[-1 - i] * len(pieces) for i, pieces in enumerate(words)]).features["input_ids"]
    places: list[list[int]] = [[] for _ in words]
    for place, owner in enumerate(owners):
        if owner < 0:
            places[-1 - owner].append(place)
    return places


@dataclass
class _Search:
    sentence: _Sentence
    word: int
    base: str
    fills: list[Pieces]
    """Those that were not asked yet."""

    def take(self, number: int) -> list[Pieces]:
        taken, self.fills = self.fills[:number], self.fills[number:]
        return taken


class Margins:
    """Predictions of sentences, and the gradient of each margin (the predicted class's logit over the next one's) by its pieces.

    Args:
        network: an R-BERT.
        tokenizer: its tokenizer.
        encoded: one batch.
    """

    def __init__(self, network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> None:
        logits, states = with_embeddings(network, collate(tokenizer, encoded, network.device))
        rows = logits.detach().float().softmax(-1).cpu().tolist()
        answers = [dict(zip(network.labels, (round(p, ROUND) for p in row), strict=True)) for row in rows]
        self.predictions = [choose(answer, network.labels) for answer in answers]
        margins = logits.float().topk(min(2, logits.shape[-1])).values
        (self._gradients,) = torch.autograd.grad((margins[:, 0] - margins[:, -1]).sum(), states)
        self._table = network.encoder.get_input_embeddings().weight.detach()

    def order(self, sentence: int, places: Sequence[int], word: Sequence[int], fills: Sequence[Pieces]) -> list[Pieces]:
        """Fills by how much the margin would fall, were it linear; equal ones as they were.

        Of words of several pieces the mean embedding counts: it is an estimate.
        """
        if not fills:
            return []
        gradient = self._gradients[sentence, list(places)].sum(0).float()
        lengths = torch.tensor([len(fill) for fill in fills], device=gradient.device)
        ids = torch.tensor([i for fill in fills for i in fill], device=gradient.device)
        owners = torch.arange(len(fills), device=gradient.device).repeat_interleave(lengths)
        pieces = self._table[ids].float() @ gradient
        means = torch.zeros(len(fills), device=gradient.device).index_add_(0, owners, pieces) / lengths
        order = means.argsort(stable=True).tolist()
        return [fills[i] for i in order]


def with_embeddings(network: RBert, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of a batch, and the embeddings of its pieces that they can be differentiated by.

    Args:
        network: an R-BERT in evaluation mode.
        batch: of `hfcf.engines.rbert.collate`.
    """
    kept: list[torch.Tensor] = []

    def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0]

    handle = network.encoder.get_input_embeddings().register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = network(**batch).logits
    finally:
        handle.remove()
    return logits, kept[0]
