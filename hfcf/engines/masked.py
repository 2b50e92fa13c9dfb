"""Words for the masked places of a text, by a masked language model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import torch

from hfcf.core.decisions import ranked
from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.networks import load_network

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SPARE = 10
"""How many fills beyond the last kept fill are sorted: equal fills are chosen by their text."""
_SORTED_PLACES = 64
"""The number of masked places whose fills are sorted together."""


@dataclass(frozen=True, kw_only=True)
class MaskFiller(Engine):
    """The likeliest single words for spans of a text: requests `[text, [[start, end], …]]`.

    All spans of a request are disjoint, in characters, and masked at once. The answer has for each span of the request `[[word,
    probability], …]`, best first; equal fills are in the order of the words. A fill is one complete token: a number if the masked
    text is a number, else a word. It is never a piece of a word, a special token or punctuation. Its probability is its share of
    the whole vocabulary. Without white space before a span, a byte-level or SentencePiece tokenizer can't distinguish a word from
    an ending.

    Args:
        model: a model that `AutoModelForMaskedLM` loads.
        top: the number of fills for each span; fewer if the vocabulary has no more.
        max_length: the number of tokens that are read; from a longer text, the tokens around the span.

    Raises:
        ValueError: the model's tokenizer has no mask token, or a span is empty, outside its text, or overlaps another span.

    >>> MaskFiller(model=Model("hfcf:mlm"), top=1).run([["He was born in the United States.", [[7, 11]]]])[0][0][0][0]
    'born'
    """

    VERSION = "2"

    model: Model
    top: Positive = 10
    max_length: Positive = 128

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModelForMaskedLM

        tokenizer = read_tokenizer(self.model)
        if tokenizer.mask_token_id is None:
            raise ValueError(f"{self.model.name}: its tokenizer has no mask token: give a masked language model")
        network = load_network(AutoModelForMaskedLM, self.model, self.dtype()).to(device)
        return network, tokenizer, _Fills(tokenizer, network.config.vocab_size, device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[_Windows]:
        network, tokenizer, _ = loaded
        most = min(self.max_length, tokenizer.model_max_length, getattr(network.config, "max_position_embeddings", 1 << 30))
        texts, ends = zip(*(_mask(text, spans, tokenizer.mask_token) for text, spans in requests), strict=True)
        coded = tokenizer(list(texts), return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
        items = []
        for i, (text, spans) in enumerate(requests):
            ids, offsets = coded["input_ids"][i], coded["offset_mapping"][i]
            # By its end: a mask token may include the white space before it.
            places = {end: k for k, (_, end) in enumerate(offsets) if ids[k] == tokenizer.mask_token_id}
            gaps = [
                _Gap(places[end], _kind(text, *span), number) for number, (end, span) in enumerate(zip(ends[i], spans, strict=True))
            ]
            items.append(_Windows(_windows(ids, coded["special_tokens_mask"][i], gaps, most), len(gaps)))
        return items

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, fills = loaded
        windows = [window for item in encoded for window in item.windows]
        answers: list[list[Any]] = [[[]] * item.spans for item in encoded]
        if not windows:
            return answers
        batch = pad(tokenizer, [Encoded({"input_ids": window.ids}) for window in windows], network.device)
        gaps = [(row, gap) for row, window in enumerate(windows) for gap in window.gaps]
        mask = torch.zeros_like(batch["input_ids"], dtype=torch.bool)
        mask[[row for row, _ in gaps], [gap.place for _, gap in gaps]] = True
        with torch.inference_mode():
            logits = logits_at(network, batch, mask)
        owners = [i for i, item in enumerate(encoded) for window in item.windows for _ in window.gaps]
        best: list[list[list[Any]]] = []
        for start in range(0, len(gaps), _SORTED_PLACES):  # a softmax over the vocabulary, sorted in double precision, is large
            kinds = [gap.kind for _, gap in gaps[start : start + _SORTED_PLACES]]
            best += fills.best(logits[start : start + _SORTED_PLACES].float().softmax(-1), kinds, self.top)
        for i, (_, gap), words in zip(owners, gaps, best, strict=True):
            answers[i][gap.number] = words
        return answers


def logits_at(network: Any, batch: dict[str, torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    """Compute the logits only at the marked positions, in reading order: the head is most of a small model's work."""
    handle = network.base_model.register_forward_hook(keep(mask))
    try:
        return network(**batch).logits[0]
    finally:
        handle.remove()


def keep(mask: torch.Tensor) -> Callable[[Any, Any, Any], Any]:
    """Make a forward hook of an encoder that returns the states at the marked positions, as if they were one sequence."""

    def gathered(_module: Any, _inputs: Any, output: Any) -> Any:
        return type(output)(**{**output, "last_hidden_state": output.last_hidden_state[mask][None]})

    return gathered


class _Gap(NamedTuple):
    place: int
    """Position of the mask."""
    kind: tuple[str, bool]
    """Whether a number or a word is missing, and whether a word can begin there."""
    number: int
    """The index of the span in the request."""


class _Window(NamedTuple):
    ids: list[int]
    gaps: list[_Gap]


@dataclass
class _Windows:
    """Hold a request's masked text, complete or as a window for each cluster of its spans."""

    windows: list[_Window]
    spans: int

    def __len__(self) -> int:
        return sum(len(window.ids) for window in self.windows)


def _mask(text: str, spans: Sequence[Sequence[int]], token: str) -> tuple[str, list[int]]:
    """Mask the spans of a text, and return where each mask ends, in the order of the spans."""
    ends, shift, last = [0] * len(spans), 0, 0
    parts = []
    for i in sorted(range(len(spans)), key=lambda i: tuple(spans[i])):
        start, end = spans[i]
        if not last <= start < end <= len(text):
            raise ValueError(f"the span {start}–{end} is empty, outside the text, or overlaps another span: {text[:60]!r}")
        parts += [text[last:start], token]
        shift += len(token) - (end - start)
        ends[i], last = end + shift, end
    return "".join([*parts, text[last:]]), ends


def _kind(text: str, start: int, end: int) -> tuple[str, bool]:
    return ("number" if _NUMBER.fullmatch(text[start:end]) else "word"), text[:start][-1:].isspace()


def _windows(ids: list[int], special: list[int], gaps: list[_Gap], most: int) -> list[_Window]:
    """Cut a request's token ids into windows of at most `most`."""
    gaps = sorted(gaps)
    if len(ids) <= most:
        return [_Window(ids, gaps)] if gaps else []
    head = special.index(0)
    tail = special[::-1].index(0)
    room, stop = most - head - tail, len(ids) - tail
    if room < 1:
        raise ValueError(f"max_length must be more than the {head + tail} special tokens, got {most}: raise it")
    windows: list[_Window] = []
    while gaps:
        first = gaps[0].place
        cluster = [gap for gap in gaps if gap.place - first < room]
        gaps = gaps[len(cluster) :]
        last = cluster[-1].place
        start = max(head, last - room + 1, min(first, stop - room, (first + last - room) // 2))
        cut = ids[:head] + ids[start : start + room] + ids[stop:]
        windows.append(_Window(cut, [gap._replace(place=gap.place - start + head) for gap in cluster]))
    return windows


class _Fills:
    """Sort the tokens of a vocabulary by the kind of gap that they fill, and by their texts."""

    def __init__(self, tokenizer: Any, size: int, device: torch.device) -> None:
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        tokens = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
        # The mark of a token that begins a word, for a space; WordPiece marks the other tokens.
        marker = next((sign for sign in "Ġ▁" if any(token.startswith(sign) for token in tokens)), "")
        self.words: dict[tuple[str, bool], list[str]] = {}
        self.ids: dict[tuple[str, bool], torch.Tensor] = {}
        for spaced in (True, False):
            fills: dict[str, dict[str, int]] = {"word": {}, "number": {}}
            for i, token in enumerate(tokens):
                begins = token.startswith(marker) if marker else not token.startswith("##")
                if i in special or begins != (spaced or not marker):
                    continue
                text = tokenizer.convert_tokens_to_string([token]).strip() if marker else token
                kind = "word" if _WORD.fullmatch(text) else "number" if _NUMBER.fullmatch(text) else None
                if kind:
                    fills[kind].setdefault(text, i)
            for kind, texts in fills.items():
                self.words[kind, spaced] = sorted(texts)
                self.ids[kind, spaced] = torch.tensor([texts[text] for text in sorted(texts)], dtype=torch.long, device=device)

    def best(self, probabilities: torch.Tensor, kinds: Sequence[tuple[str, bool]], top: int) -> list[list[list[Any]]]:
        """Return the best fills of each row of probabilities."""
        best: list[list[list[Any]]] = [[] for _ in kinds]
        for kind in dict.fromkeys(kinds):
            words, ids = self.words[kind], self.ids[kind]
            rows = [row for row, other in enumerate(kinds) if other == kind]
            chosen = probabilities[rows][:, ids].double()
            values, places = chosen.log().topk(min(top + _SPARE, len(words)))
            for row, *fills in zip(rows, values.tolist(), places.tolist(), strict=True):
                # By the logarithm: most probabilities are below the tolerance.
                order = ranked(zip(*fills, strict=True), itemgetter(0), itemgetter(1))
                best[row] = [[words[place], round(math.exp(value), ROUND)] for value, place in order[:top]]
        return best
