"""Which words' replacement changes what a relation classifier says: the search of CCG's intervention step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Encoded, Engine, Usage, usage
from hfcf.engines.classifier import ROUND, choose
from hfcf.engines.effects import Effects, mean_embeddings
from hfcf.engines.narrow import narrow
from hfcf.engines.rbert import MARKERS, RBert, collate, mark_pieces, word_pieces
from hfcf.engines.relation import RelationClassifier

_FULL = 0.25
"""The share of a batch that is filled: this is as fast, and of fills asked together none is spared by another's flip."""
_LIKE = 0.95
"""No sentence is padded by more than a twentieth, but for what long fills add."""

Pieces = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Intervention(Engine):
    """The words of which some fill changes the classifier's prediction.

    Requests are `[tokens, [head start, head end], [tail start, tail end], [[word, [fill, …]], …]]`, with words as indices, each
    once. The answer has the indices of the words that flip, sorted; None where the sentence has more pieces than the classifier
    reads. A fill with which a sentence would be too long is not tried, and neither is one whose pieces are the word's own.

    Only whether a word flips is asked, so the first fill that does ends its search. Those that promise to are asked first, by the
    sum of two estimates: a first-order one (the gradient of the prediction's margin over the next class, times the change of the
    input embedding), and what those asked so far, in all sentences, teach of such words (`hfcf.engines.effects`). They are asked in
    growing numbers, those of several words and sentences together, in batches of like length, by a classifier that computes no
    more than its head reads (`hfcf.engines.narrow`). The answer is that of asking them all.

    Args:
        indicator: an R-BERT.
        max_length: pieces that it reads.
        patience: give a word up after so many fills without a flip, the first ones by the gradient alone: an approximation; None
            asks them all.

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
            for i, sentence in enumerate(read):
                for word, fills in sentence.fills.items():
                    ordered, slopes = margins.order(i, sentence.places(word), fills)
                    live.append(_Search(sentence, word, margins.answers[i], ordered[: self.patience], slopes[: self.patience]))
            self._search(loaded, live)
        return [sorted(sentence.flipped) if len(sentence) else None for sentence in encoded]

    def _search(self, loaded: Any, live: list[_Search]) -> None:
        """Ask fill after fill of the words that have not flipped, those of the longest sentences first."""
        network, classifier = loaded[0], self.classifier
        record = usage().setdefault(type(self).__name__, Usage())
        effects = Effects(network.encoder.get_input_embeddings().weight.detach(), len(network.labels))
        live = sorted((search for search in live if search.fills), key=lambda search: -len(search.sentence))
        while live:
            longest = len(live[0].sentence)
            fit = max(1, int(classifier.room(longest) * _FULL))
            group = [search for search in live[:fit] if len(search.sentence) >= _LIKE * longest]
            _sort([search for search in group if search.due], effects)
            asked = [(search, fill) for search in group for fill in search.take(fit // len(group))]
            variants = [search.sentence.variant(search.word, fill) for search, fill in asked]
            record.tokens += sum(map(len, variants))
            # Not through `run`: thousands of different sentences would fill the request cache.
            answers = classifier._forward(loaded, variants)
            for (search, _), answer in zip(asked, answers, strict=True):
                if choose(answer, network.labels) != search.base:
                    search.sentence.flipped.add(search.word)
                    search.fills = []
            live = [search for search in live if search.fills]
            changes = [_logs(answer) - search.logs for (search, _), answer in zip(asked, answers, strict=True)]
            effects.learn([fill for _, fill in asked], torch.stack(changes))


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


class _Search:
    """A word whose fills are asked.

    Args:
        sentence: where it stands.
        word: its index.
        answer: what the classifier says of the sentence as it is.
        fills: what to ask, in this order.
        slopes: of each how the margin would change, were it linear.
    """

    def __init__(
        self, sentence: _Sentence, word: int, answer: Mapping[str, float], fills: list[Pieces], slopes: torch.Tensor
    ) -> None:
        self.sentence, self.word, self.fills, self.slopes = sentence, word, fills, slopes
        self.base = choose(answer, (*answer,))
        self.own = (*answer,).index(self.base)
        self.logs = _logs(answer)
        self._asked = self._sorted = 0

    def take(self, most: int) -> list[Pieces]:
        """The next fills: one at first, then no more than were asked in vain."""
        number = max(1, min(most, self._asked))
        taken, self.fills, self.slopes = self.fills[:number], self.fills[number:], self.slopes[number:]
        self._asked += number
        return taken

    @property
    def due(self) -> bool:
        """Whether so much was learned that its fills are sorted again: as often as the number asked has doubled."""
        return not self._asked or self._asked >= 2 * self._sorted

    def sort(self, margins: torch.Tensor) -> None:
        """Put first the fills of the least margins."""
        order = margins.argsort(stable=True)
        self.fills, self.slopes, self._sorted = [self.fills[i] for i in order.tolist()], self.slopes[order], self._asked


def _sort(searches: Sequence[_Search], effects: Effects) -> None:
    """Sort the fills of each word by the margin that is to be expected, the sum of both estimates of its change."""
    if not searches:
        return
    sizes = torch.tensor([len(search.fills) for search in searches])
    logs = torch.stack([search.logs for search in searches]).repeat_interleave(sizes, 0)
    own = torch.tensor([search.own for search in searches]).repeat_interleave(sizes)[:, None]
    logs = logs + effects.guess([fill for search in searches for fill in search.fills]).cpu()
    margins = logs.gather(1, own)[:, 0] - logs.scatter(1, own, -torch.inf).max(-1).values
    margins = margins + torch.cat([search.slopes for search in searches])
    for search, its in zip(searches, margins.split(sizes.tolist()), strict=True):
        search.sort(its)


def _logs(answer: Mapping[str, float]) -> torch.Tensor:
    return torch.tensor([*answer.values()]).clamp(min=10**-ROUND).log()


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
        self.answers = [dict(zip(network.labels, (round(p, ROUND) for p in row), strict=True)) for row in rows]
        margins = logits.float().topk(min(2, logits.shape[-1])).values
        (self._gradients,) = torch.autograd.grad((margins[:, 0] - margins[:, -1]).sum(), states)
        self._table = network.encoder.get_input_embeddings().weight.detach()

    def order(self, sentence: int, places: Sequence[int], fills: Sequence[Pieces]) -> tuple[list[Pieces], torch.Tensor]:
        """Fills by how much the margin would fall, were it linear, equal ones as they were; and by how much, but for a constant.

        Of words of several pieces the mean embedding counts: it is an estimate.
        """
        if not fills:
            return [], torch.zeros(0)
        gradient = self._gradients[sentence, list(places)].sum(0).float()
        slopes = mean_embeddings(self._table, fills) @ gradient
        order = slopes.argsort(stable=True).tolist()
        return [fills[i] for i in order], slopes[order].cpu()


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
