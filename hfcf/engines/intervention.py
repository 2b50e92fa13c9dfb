"""Find the words whose replacement changes a relation classifier's prediction: the search of CCG's intervention step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, Usage, request_key, usage
from hfcf.engines.cache import RequestCache, open_cache
from hfcf.engines.classifier import ROUND, choose
from hfcf.engines.logit_margin import Effects, Margin, Margins, order_fills
from hfcf.engines.rbert import MARKERS, mark_pieces, word_pieces
from hfcf.engines.rbert_fast import narrow
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

    A word's search ends with its first fill that flips. The most promising fills come first, by the sum of two estimates. The first
    is the gradient of the prediction's margin over the next class, times the change of the input embedding. The second is learned
    from the answers so far in all sentences (`hfcf.engines.logit_margin`). Fills of several words and sentences are tried together,
    in growing numbers and in batches of similar length. The classifier then computes only what its head needs
    (`hfcf.engines.rbert_fast`). The answer is the same as if all fills were tried.

    Args:
        indicator: an R-BERT.
        max_length: the number of pieces that it reads.
        patience: give up on a word after this number of fills without a flip. This is an approximation that orders fills by the
            gradient alone. None tries all fills.

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
        loaded = self.classifier.load_rbert(device)
        narrow(loaded[0])
        return loaded

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[_Sentence]:
        _, tokenizer, most = loaded
        texts = list(dict.fromkeys([*MARKERS, *(word for request in requests for word in _words(request))]))
        pieces = dict(zip(texts, word_pieces(tokenizer, texts), strict=True))
        marks, head = [pieces[marker] for marker in MARKERS], self._head()
        return [_Sentence(tokenizer, request, pieces, marks, most, request_key(head, request)) for request in requests]

    def answer(self, loaded: Any, encoded: Sequence[_Sentence]) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Yield each sentence when the search of its last word has ended; until then, the results of its fills are stored as
        steps."""
        cache = open_cache()
        steps = cache.get_steps(sentence.key for sentence in encoded) if cache is not None else {}
        for sentence in encoded:
            sentence.resume(steps.get(sentence.key, ()), self.patience, loaded[0].device)
        places = {id(sentence): place for place, sentence in enumerate(encoded)}
        at_once = [sentence for sentence in encoded if not sentence.open]
        waiting = sorted((sentence for sentence in encoded if sentence.open), key=lambda sentence: -len(sentence))
        for sentences in chain([at_once], self._search(loaded, waiting, cache)):
            answers = [sorted(sentence.flipped) if len(sentence) else None for sentence in sentences]
            yield [places[id(sentence)] for sentence in sentences], answers

    def forward(self, loaded: Any, encoded: Sequence[_Sentence]) -> list[Margin]:
        """Return the margin of each sentence, with the gradients of its open words."""
        network, tokenizer, _ = loaded
        margins = Margins(network, tokenizer, [sentence.encoded for sentence in encoded])
        places = [sentence.places() for sentence in encoded]
        gradients = ({word: margins.gradient(i, places[i][word]) for word in sentence.open} for i, sentence in enumerate(encoded))
        return [Margin(*values) for values in zip(margins.answers, gradients, strict=True)]

    def _search(self, loaded: Any, waiting: Sequence[_Sentence], cache: RequestCache | None) -> Iterator[list[_Sentence]]:
        """Try fills of the words without a flip, longest sentences first; yield sentences when they are finished."""
        network, classifier = loaded[0], self.classifier
        record = usage().setdefault(type(self).__name__, Usage())
        effects = Effects(network.encoder.get_input_embeddings().weight.detach(), len(network.labels))
        live: list[_Search] = []
        while live or waiting:
            longest = len(live[0].sentence if live else waiting[0])
            fit = max(1, int(classifier.room(longest) * _FULL))
            while waiting and len(live) < fit:  # gradients of few sentences at a time: they take the most memory
                live += self._begin(loaded, waiting[:fit], cache)
                waiting = waiting[fit:]
            group = [search for search in live[:fit] if len(search.sentence) >= _LIKE * longest]
            _sort([search for search in group if search.due], effects)
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
            if cache is not None and (steps := _steps(taken)):
                cache.put_steps(steps)
            live = [search for search in live if search.fills]
            changes = [_logs(answer) - search.logs for (search, _), answer in zip(trials, answers, strict=True)]
            effects.learn([fill for _, fill in trials], torch.stack(changes))
            sentences = {id(search.sentence): search.sentence for search in group}.values()
            if finished := [sentence for sentence in sentences if not sentence.open]:
                yield finished

    def _begin(self, loaded: Any, sentences: Sequence[_Sentence], cache: RequestCache | None) -> list[_Search]:
        """Return the searches of the open words of some sentences; store their margins, which a later process need not compute."""
        if new := [sentence for sentence in sentences if sentence.margin is None]:
            margins = self.forward_split(loaded, new)
            if cache is not None:
                stored = {sentence.key: margin.to_json() for sentence, margin in zip(new, margins, strict=True)}
                cache.put_steps(stored)
            for sentence, margin in zip(new, margins, strict=True):
                sentence.margin = margin
        table = loaded[0].encoder.get_input_embeddings().weight.detach()
        return [search for sentence in sentences for search in sentence.searches(table, self.patience)]


def _steps(taken: Mapping[_Search, list[Pieces]]) -> dict[str, list[Any]]:
    """List by the key of each open sentence what a batch tried for its words: `[word, fills, whether one of them flips it]`."""
    steps: dict[str, list[Any]] = {}
    for search, fills in taken.items():
        if (sentence := search.sentence).open:
            steps.setdefault(sentence.key, []).append([search.word, fills, search.word in sentence.flipped])
    return steps


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
        key: str,
    ) -> None:
        tokens, head, tail, todo = request
        self.key = key
        self.words = [pieces[token] for token in tokens]
        self._mark = lambda words: mark_pieces(tokenizer, words, marks, head, tail)
        sentence = self._mark(self.words)
        self.encoded = sentence if len(sentence) <= most else Encoded({"input_ids": []})
        self.flipped: set[int] = set()
        self.asked: dict[int, set[Pieces]] = {}
        """The fills that a stopped process tried for each word."""
        self.fills: dict[int, list[Pieces]] = {}
        self.margin: Margin | None = None
        for word, fills in todo:
            own, different = tuple(self.words[word]), dict.fromkeys(tuple(pieces[fill]) for fill in fills)
            self.fills[word] = [ids for ids in different if ids != own and len(sentence) - len(own) + len(ids) <= most]
            self.asked[word] = set()
        self.open = [word for word, fills in self.fills.items() if fills] if len(self) else []
        """The words whose search is still open."""

    def __len__(self) -> int:
        return len(self.encoded)

    def resume(self, steps: Iterable[Any], patience: int | None, device: torch.device) -> None:
        """Continue from the steps of a stopped process: a margin, and the fills that were tried (see `_steps`)."""
        for step in steps:
            if isinstance(step, dict):
                self.margin = Margin.from_json(step, device)
                continue
            for word, fills, flips in step:
                self.asked[word].update(map(tuple, fills))
                if flips:
                    self.flipped.add(word)
        for word, asked in self.asked.items():
            self.fills[word] = [fill for fill in self.fills[word] if fill not in asked]
        ended = {word for word, asked in self.asked.items() if patience is not None and len(asked) >= patience} | self.flipped
        self.open = [word for word in self.open if self.fills[word] and word not in ended]

    def searches(self, table: torch.Tensor, patience: int | None) -> Iterator[_Search]:
        """Yield the search of each open word, and forget the margin."""
        assert self.margin is not None
        margin, self.margin = self.margin, None
        for word in self.open:
            ordered, slopes = order_fills(self.fills[word], margin.gradients[word], table)
            asked = len(self.asked[word])
            most = None if patience is None else patience - asked
            yield _Search(self, word, margin.answer, ordered[:most], slopes[:most], asked)

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

    def __init__(
        self, sentence: _Sentence, word: int, answer: Mapping[str, float], fills: list[Pieces], slopes: torch.Tensor, asked: int = 0
    ) -> None:
        self.sentence, self.word, self.fills, self.slopes = sentence, word, fills, slopes
        self.base = choose(answer, (*answer,))
        self.own = (*answer,).index(self.base)
        self.logs = _logs(answer)
        self._asked, self._sorted = asked, 0

    def take(self, most: int) -> list[Pieces]:
        """Take the next fills: at first one fill, then at most as many as were tried in vain."""
        number = max(1, min(most, self._asked))
        following, self.fills, self.slopes = self.fills[:number], self.fills[number:], self.slopes[number:]
        self._asked += number
        return following

    @property
    def due(self) -> bool:
        """Whether to sort the fills again: whenever the number of tried fills has doubled."""
        return not self._asked or self._asked >= 2 * self._sorted

    def sort(self, margins: torch.Tensor) -> None:
        """Put the fills of the smallest margins first."""
        order = margins.argsort(stable=True)
        self.fills, self.slopes, self._sorted = [self.fills[i] for i in order.tolist()], self.slopes[order], self._asked


def _sort(searches: Sequence[_Search], effects: Effects) -> None:
    """Sort the fills of each word by the expected margin, the sum of both estimates of its change."""
    if not searches:
        return
    sizes = torch.tensor([len(search.fills) for search in searches])
    logs = torch.stack([search.logs for search in searches]).repeat_interleave(sizes, 0)
    own = torch.tensor([search.own for search in searches]).repeat_interleave(sizes)[:, None]
    logs = logs + effects.guess([fill for search in searches for fill in search.fills]).cpu()
    margins = logs.gather(1, own)[:, 0] - logs.scatter(1, own, -torch.inf).max(-1).values
    margins = margins + torch.cat([search.slopes for search in searches])
    for search, expected in zip(searches, margins.split(sizes.tolist()), strict=True):
        search.sort(expected)


def _logs(answer: Mapping[str, float]) -> torch.Tensor:
    return torch.tensor([*answer.values()]).clamp(min=10**-ROUND).log()
