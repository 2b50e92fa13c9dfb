"""Find the words whose replacement changes a relation classifier's prediction: the search of CCG's intervention step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, Usage, usage
from hfcf.engines.classifier import choose, label_probabilities
from hfcf.engines.rbert import MARKERS, RBert, collate, mark_pieces, word_pieces
from hfcf.engines.relation_classifier import RelationClassifier

_FULL = 0.25
"""The share of a batch that is filled: as fast as a full batch. Another word's flip in the same batch spares no fill."""
_LIKE = 0.95
"""No sentence is padded by more than a twentieth, apart from the pieces that long fills add."""

Pieces = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Intervention(Engine):
    """Find the words for which some fill changes the classifier's prediction.

    Requests are `[tokens, [head start, head end], [tail start, tail end], [[word, [fill, …]], …]]`, with words as indices, each
    word once. The answer has the sorted indices of the words that flip; None if the sentence has more pieces than the classifier
    reads. A fill is not tried if it makes the sentence too long, or if its pieces equal the word's pieces.

    A word's search ends with its first fill that flips. The most promising fills come first, by the gradient of the prediction's
    margin over the next class, times the change of the input embedding. Fills of several words and sentences are tried together, in
    growing numbers and in batches of similar length. The answer is the same as if all fills were tried.

    Args:
        indicator: an R-BERT.
        max_length: the number of tokens that it reads.
        patience: give up on a word after this number of fills without a flip, an approximation. None tries all fills.

    >>> Intervention(indicator=Model("me/rbert-semeval")).patience is None
    True
    """

    indicator: Model
    max_length: Positive = 128
    patience: Positive | None = None

    @property
    def classifier(self) -> RelationClassifier:
        """The classifier as an engine."""
        return RelationClassifier(model=self.indicator, max_length=self.max_length)

    def load(self, device: torch.device) -> Any:
        return self.classifier.load_rbert(device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[_Sentence]:
        _, tokenizer, most = loaded
        texts = list(dict.fromkeys([*MARKERS, *(word for request in requests for word in _words(request))]))
        pieces = dict(zip(texts, word_pieces(tokenizer, texts), strict=True))
        marks = [pieces[marker] for marker in MARKERS]
        return [_Sentence(tokenizer, request, pieces, marks, most) for request in requests]

    def answer(self, loaded: Any, encoded: Sequence[_Sentence]) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Yield each sentence when the search of its last word has ended."""
        places = {id(sentence): place for place, sentence in enumerate(encoded)}
        at_once = [sentence for sentence in encoded if not sentence.open]
        waiting = sorted((sentence for sentence in encoded if sentence.open), key=lambda sentence: -len(sentence))
        for sentences in chain([at_once], self._search(loaded, waiting)):
            answers = [sorted(sentence.flipped) if len(sentence) else None for sentence in sentences]
            yield [places[id(sentence)] for sentence in sentences], answers

    def forward(self, loaded: Any, encoded: Sequence[_Sentence]) -> list[Margin]:
        """Return the margin of each sentence, with the gradients of its open words."""
        network, tokenizer, _ = loaded
        margins = Margins(network, tokenizer, [sentence.encoded for sentence in encoded])
        places = [sentence.places() for sentence in encoded]
        gradients = ({word: margins.gradient(i, places[i][word]) for word in sentence.open} for i, sentence in enumerate(encoded))
        return [Margin(*values) for values in zip(margins.answers, gradients, strict=True)]

    def _search(self, loaded: Any, waiting: Sequence[_Sentence]) -> Iterator[list[_Sentence]]:
        """Try fills of the words without a flip, longest sentences first; yield sentences when they are finished."""
        network, classifier = loaded[0], self.classifier
        record = usage().setdefault(type(self).__name__, Usage())
        live: list[_Search] = []
        while live or waiting:
            longest = len(live[0].sentence if live else waiting[0])
            fit = max(1, int(classifier.room(longest) * _FULL))
            while waiting and len(live) < fit:  # gradients of few sentences at a time: they take the most memory
                live += self._begin(loaded, waiting[:fit])
                waiting = waiting[fit:]
            group = [search for search in live[:fit] if len(search.sentence) >= _LIKE * longest]
            taken = {search: search.take(fit // len(group)) for search in group}
            trials = [(search, fill) for search, fills in taken.items() for fill in fills]
            variants = [search.sentence.variant(search.word, fill) for search, fill in trials]
            record.tokens += sum(map(len, variants))
            # Not through `run`: thousands of different sentences would fill the request cache.
            answers = classifier.forward_split(loaded, variants)
            for (search, _), answer in zip(trials, answers, strict=True):
                if choose(answer, network.labels) != search.base:
                    search.sentence.flipped.add(search.word)
                    search.fills = []
            for search in group:
                if not search.fills:
                    search.sentence.open.remove(search.word)
            live = [search for search in live if search.fills]
            sentences = {id(search.sentence): search.sentence for search in group}.values()
            if finished := [sentence for sentence in sentences if not sentence.open]:
                yield finished

    def _begin(self, loaded: Any, sentences: Sequence[_Sentence]) -> list[_Search]:
        """Return the searches of the open words of some sentences."""
        table, searches = loaded[0].encoder.get_input_embeddings().weight.detach(), list[_Search]()
        for sentence, margin in zip(sentences, self.forward_split(loaded, sentences), strict=True):
            for word in sentence.open:
                ordered = order_fills(sentence.fills[word], margin.gradients[word], table)
                searches.append(_Search(sentence, word, margin.answer, ordered[: self.patience]))
        return searches


def _words(request: Sequence[Any]) -> Iterable[str]:
    tokens, _, _, todo = request
    yield from tokens
    for _, fills in todo:
        yield from fills


class _Sentence:
    """Hold a request in pieces: the sentence, and the different fills of each word to try."""

    def __init__(
        self,
        tokenizer: Any,
        request: Sequence[Any],
        pieces: Mapping[str, list[int]],
        marks: Sequence[list[int]],
        most: int,
    ) -> None:
        tokens, head, tail, todo = request
        self.words = [pieces[token] for token in tokens]
        self._mark = lambda words: mark_pieces(tokenizer, words, marks, head, tail)
        sentence = self._mark(self.words)
        self.encoded = sentence if len(sentence) <= most else Encoded({"input_ids": []})
        self.flipped: set[int] = set()
        self.fills: dict[int, list[Pieces]] = {}
        for word, fills in todo:
            word_ids, different = tuple(self.words[word]), dict.fromkeys(tuple(pieces[fill]) for fill in fills)
            self.fills[word] = [ids for ids in different if ids != word_ids and len(sentence) - len(word_ids) + len(ids) <= most]
        self.open = [word for word, fills in self.fills.items() if fills] if len(self) else []
        """The words whose search is still open."""

    def __len__(self) -> int:
        return len(self.encoded)

    def variant(self, word: int, fill: Pieces) -> Encoded:
        """Return the sentence with a word replaced by a fill."""
        return self._mark([*self.words[:word], list(fill), *self.words[word + 1 :]])

    def places(self) -> list[list[int]]:
        """Return the places of each word's pieces."""
        return word_places(self._mark, self.words)


def word_places(mark: Any, words: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the places of each word's pieces in the sentence that `mark` encodes."""
    # Ids may repeat, so each word's pieces are replaced by a number that no piece has.
    owners = mark([[-1 - i] * len(pieces) for i, pieces in enumerate(words)]).features["input_ids"]
    places: list[list[int]] = [[] for _ in words]
    for place, owner in enumerate(owners):
        if owner < 0:
            places[-1 - owner].append(place)
    return places


class _Search:
    """Search the fills of one word."""

    def __init__(self, sentence: _Sentence, word: int, answer: Mapping[str, float], fills: list[Pieces]) -> None:
        self.sentence, self.word, self.fills = sentence, word, fills
        self.base = choose(answer, (*answer,))
        self._tried = 0

    def take(self, most: int) -> list[Pieces]:
        """Take the next fills: at first one fill, then at most as many as were tried in vain."""
        number = max(1, min(most, self._tried))
        following, self.fills = self.fills[:number], self.fills[number:]
        self._tried += number
        return following


class Margin(NamedTuple):
    """The answer to a sentence, and the margin's gradient by the embeddings of its words."""

    answer: Mapping[str, float]
    gradients: Mapping[int, torch.Tensor]


class Margins:
    """Predict one batch, and differentiate each margin (the predicted class's logit minus the next one's) by the pieces."""

    def __init__(self, network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> None:
        logits, states = with_embeddings(network, collate(tokenizer, encoded, network.device))
        self.answers = label_probabilities(logits, network.labels)
        margins = logits.float().topk(min(2, logits.shape[-1])).values
        (self._gradients,) = torch.autograd.grad((margins[:, 0] - margins[:, -1]).sum(), states)

    def gradient(self, sentence: int, places: Sequence[int]) -> torch.Tensor:
        """Return the gradient by the embeddings of some pieces, summed."""
        return self._gradients[sentence, list(places)].sum(0).float()


def order_fills(fills: Sequence[Pieces], gradient: torch.Tensor, table: torch.Tensor) -> list[Pieces]:
    """Sort fills by the fall of the margin if it were linear (a stable sort); a word of several pieces counts by its mean."""
    if not fills:
        return []
    order = (mean_embeddings(table, fills) @ gradient).argsort(stable=True).tolist()
    return [fills[i] for i in order]


def with_embeddings(network: RBert, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of a batch (see `hfcf.engines.rbert.collate`), and its embeddings to differentiate them by."""
    embeddings: list[torch.Tensor] = []

    def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        embeddings.append(output.detach().requires_grad_())
        return embeddings[0]

    handle = network.encoder.get_input_embeddings().register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = network(**batch).logits
    finally:
        handle.remove()
    return logits, embeddings[0]


def mean_embeddings(table: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the mean embedding of each word's pieces, words × size."""
    lengths = torch.tensor([len(word) for word in words], device=table.device)
    owners = torch.arange(len(words), device=table.device).repeat_interleave(lengths)
    pieces = table[torch.tensor([piece for word in words for piece in word], device=table.device)].float()
    return pieces.new_zeros(len(words), table.shape[1]).index_add_(0, owners, pieces) / lengths[:, None]
