"""Read answers from passages: spans by an extractive reader (BERT, RoBERTa …), or texts by an encoder-decoder (T5)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from hfcf.core.decisions import exceeds, ranked, reaches
from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import NonNegative, Positive
from hfcf.engines.base import Encoded, Engine, load_once, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.generator import Generator, load_tokenizer, two_sided
from hfcf.engines.networks import load_network
from hfcf.engines.token_cuts import count_tokens, cut_head, cut_windows, find_tokens
from hfcf.engines.verifier_inputs import cut_firsts
from hfcf.text.phrase_match import find_answer, word_at
from hfcf.text.questions import SEPARATOR, join_parts

CANDIDATES = 20
"""The number of starts, and of ends, of a window that are combined to spans."""
SLACK = 2
"""How many tokens the parts of an input may have more than the whole: texts tokenise to slightly more or fewer in pieces."""


@dataclass(frozen=True, kw_only=True)
class Reader(Engine):
    """Answers to `[question, context]` or `[question, context, title]` requests, by any `AutoModelForQuestionAnswering` or T5.

    An answer is a list of `{"text", "start", "end", "score", "probability", "no_answer"}`, the likeliest first, each text once.
    `start` and `end` are code points of the context. The probability of a span is the probability of its first token times the
    probability of its last token. Both are over the tokens of its window and the first token of the input, which means "no answer
    here". `score` is the logarithm of the probability. `no_answer` is the same product for the first token alone, in the window of
    the span.

    A context longer than the model reads is read in windows that overlap. A question is cut if it fills half of the input. Spans
    begin and end with whole words.

    An encoder-decoder writes its answers in one search for each window; the likeliest of all windows count. `start` and `end` are
    the first place of the text in its window as whole words, or -1. It can't write "no answer": `no_answer` is None.

    Args:
        model: an extractive reader, or an encoder-decoder that was trained on `question » title » passage` → answer.
        max_length: the number of tokens of a window, including the question.
        stride: the number of tokens that two windows share, at most a quarter of `max_length`.
        n_best: the number of answers of a request.
        max_answer: the number of tokens of the longest answer.
        overlapping: whether an answer may overlap with a likelier answer.
    """

    VERSION = "3"

    model: Model
    max_length: Positive = 384
    stride: NonNegative = 128
    n_best: Positive = 5
    max_answer: Positive = 30
    overlapping: bool = True

    def run(self, requests: Sequence[Any]) -> list[Any]:
        if not two_sided(self.model):
            return super().run([list(request[:2]) for request in requests])
        engine = Generator(
            model=self.model, num_beams=max(self.n_best, 4), num_return_sequences=self.n_best, max_new_tokens=self.max_answer,
            max_length=self.max_length,
        )  # fmt: skip
        tokenizer = load_tokenizer(self.model)
        windows = [written_windows(tokenizer, request, self.max_length, self.stride) for request in requests]
        answers = iter(engine.run([[text, []] for of_request in windows for _, _, text in of_request]))
        return [
            self._best([_locate(answer, *window[:2]) for window in of_request for answer in next(answers)])
            for of_request in windows
        ]

    def count_cut(self, requests: Sequence[Any]) -> int:
        """Count the requests whose question is not read whole; contexts are, in windows."""
        questions, most = [request[0] for request in requests], self.max_length // 2
        if not two_sided(self.model):
            kept = cut_firsts(read_tokenizer(self.model), questions, most) if questions else []
        else:
            tokenizer = load_tokenizer(self.model)
            whole = [count_tokens(tokenizer, join_parts(request[0], *request[2:], request[1])) for request in requests]
            kept = [
                question if length <= self.max_length else cut_head(find_tokens(tokenizer, question), most)
                for question, length in zip(questions, whole, strict=True)
            ]
        return sum(question != short for question, short in zip(questions, kept, strict=True))

    def load(self, device: torch.device) -> Any:
        return load_reader(self.model, device, self.dtype())

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer = loaded[1]
        windows = encode_windows(tokenizer, requests, self.max_length, self.stride)
        encoded = []
        for (_, context), parts in zip(requests, windows, strict=True):
            ids = [token for features, _ in parts for token in features["input_ids"]]
            encoded.append(Encoded({"input_ids": ids}, [parts, context]))
        return encoded

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        windows = [(i, features, places) for i, item in enumerate(encoded) for features, places in item.extra[0]]
        spans: list[dict[str, dict[str, Any]]] = [{} for _ in encoded]
        # A long context alone has more windows than a batch holds.
        size = self.room(max(len(features["input_ids"]) for _, features, _ in windows)) if windows else 1
        for first in range(0, len(windows), size):
            part = windows[first : first + size]
            with torch.inference_mode():
                output = network(**pad(tokenizer, [Encoded(features) for _, features, _ in part], network.device))
            starts, ends = output.start_logits.float().cpu(), output.end_logits.float().cpu()
            for (i, _, places), start, end in zip(part, starts, ends, strict=True):
                for span in best_spans(start, end, places, self.max_answer):
                    _keep(spans[i], span, encoded[i].extra[1])
        return [self._best(of_request.values()) for of_request in spans]

    def _best(self, answers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        # By the logarithm: most probabilities are below the tolerance.
        order = ranked(answers, itemgetter("score"), itemgetter("text", "start", "end"))
        distinct: dict[str, dict[str, Any]] = {}
        for answer in order:
            distinct.setdefault(answer["text"], answer)
        return (list(distinct.values()) if self.overlapping else drop_overlapping(distinct.values()))[: self.n_best]


def drop_overlapping(answers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out answers that share characters of the context with an earlier answer; an answer without a place stays."""
    kept: list[dict[str, Any]] = []
    for answer in answers:
        if all(answer["end"] <= other["start"] or other["end"] <= answer["start"] for other in kept):
            kept.append(answer)
    return kept


def first_texts(answers: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the text of the first answer to each question, "" where there is none."""
    return [found[0]["text"] if found else "" for found in answers]


def load_reader(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    """Load an extractive reader, with its adapter merged in, and its tokenizer, once for all settings of the engine."""
    found: tuple[Any, Any] = load_once(_read, model, device, dtype, os.getpid(), model.key())
    return found


def _read(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForQuestionAnswering

    network = load_network(AutoModelForQuestionAnswering, model, dtype).to(device)
    return network, read_tokenizer(model, padding_side="right")  # places are counted from the left


Places = list[tuple[int, int] | None]
"""The characters of each token of a window in the context, of whole words; None outside the context."""


def encode_windows(
    tokenizer: Any, requests: Sequence[Sequence[str]], max_length: int, stride: int
) -> list[list[tuple[dict[str, list[int]], Places]]]:
    """Tokenise `[question, context]` pairs in windows: of each request, the inputs and the places of each window."""
    windows: list[list[tuple[dict[str, list[int]], Places]]] = [[] for _ in requests]
    answerable = [i for i, request in enumerate(requests) if request[1] and request[0]]
    if not answerable:
        return windows
    questions = cut_firsts(tokenizer, [requests[i][0] for i in answerable], max_length // 2)
    encoded = tokenizer(
        questions, [requests[i][1] for i in answerable], truncation="only_second", max_length=max_length,
        stride=min(stride, max_length // 4), return_overflowing_tokens=True, return_offsets_mapping=True,
    )  # fmt: skip
    names = [name for name in tokenizer.model_input_names if name in encoded and name != "attention_mask"]  # `pad` makes the mask
    words = {i: word_at(requests[i][1]) for i in answerable}
    for window, request in enumerate(encoded["overflow_to_sample_mapping"]):
        features = {name: encoded[name][window] for name in names}
        windows[answerable[request]].append((features, _places(encoded, window, words[answerable[request]])))
    return windows


def _places(encoded: Any, window: int, words: Sequence[tuple[int, int]]) -> Places:
    """Widen the tokens of the context to whole words; SentencePiece cuts texts at spaces alone."""
    sides = zip(encoded["offset_mapping"][window], encoded.sequence_ids(window), strict=True)
    found = [(words[start][0], words[end - 1][1]) if part == 1 and start < end else (0, 0) for (start, end), part in sides]
    return [place if place[0] < place[1] else None for place in found]  # white space after the last word is in none


def best_spans(start: torch.Tensor, end: torch.Tensor, places: Places, longest: int) -> Iterator[tuple[int, int, float, float]]:
    """Yield the likely spans of a window as (first character, end, probability, probability of no answer)."""
    readable = torch.tensor([i == 0 or place is not None for i, place in enumerate(places)])
    first, last = (torch.where(readable, side[: len(places)], -math.inf).softmax(-1) for side in (start, end))
    tokens_at = {i: place for i, place in enumerate(places) if place is not None}
    if not tokens_at:
        return
    index = torch.tensor(list(tokens_at))
    some = min(CANDIDATES, len(index))
    starts, ends = (index[side[index].topk(some).indices].tolist() for side in (first, last))
    for i in starts:
        for j in ends:
            if i <= j < i + longest:
                yield tokens_at[i][0], tokens_at[j][1], float(first[i] * last[j]), float(first[0] * last[0])


def _keep(spans: dict[str, dict[str, Any]], span: tuple[int, int, float, float], context: str) -> None:
    """Add a span unless its text has a likelier place; of equally likely places the first in the context stays."""
    start, end, exact, no_answer = span
    score, text = math.log(max(exact, 1e-12)), context[start:end]
    if not text.strip():
        return
    if (old := spans.get(text)) is not None:
        first = reaches(score, old["score"]) and start < old["start"]
        if not first and not exceeds(score, old["score"]):
            return
    spans[text] = {
        "text": text, "start": start, "end": end, "score": round(score, ROUND), "probability": round(exact, ROUND),
        "no_answer": round(no_answer, ROUND),
    }  # fmt: skip


def written_windows(tokenizer: Any, request: Sequence[str], max_length: int, stride: int) -> list[tuple[int, str, str]]:
    """Cut a `[question, context, title]` request for an encoder-decoder: windows as (first character, context, input).

    An input is `question » title » context`, in training and in use. A title is left out, and a question cut, if it fills half of
    the input.
    """
    question, context, *title = request
    whole = join_parts(question, *title, context)
    if count_tokens(tokenizer, whole) <= max_length:
        return [(0, context, whole)]
    head = join_parts(question, *title)
    if count_tokens(tokenizer, head) > max_length // 2:
        head = cut_head(find_tokens(tokenizer, question), max_length // 2)
    room = max_length - count_tokens(tokenizer, join_parts(head, SEPARATOR)) - SLACK
    side = find_tokens(tokenizer, context)
    return [(start, text, join_parts(head, text)) for start, text in cut_windows(side, max(2, room), min(stride, room // 2))]


def _locate(answer: dict[str, Any], first: int, context: str) -> dict[str, Any]:
    text, start = find_answer(answer["text"], context)
    place = (first + start, first + start + len(text)) if start >= 0 else (-1, -1)
    return {
        "text": text,
        "start": place[0],
        "end": place[1],
        "score": answer["score"],
        "probability": round(math.exp(answer["score"]), ROUND),
        "no_answer": None,
    }
