"""Fill masked spans of a claim from its evidence, in T5's own span-filling form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded
from hfcf.engines.generator import Generator, search, two_sided

Span = tuple[int, int]
"""The span of words in a claim, end-exclusive."""
MOST = 5
"""The maximum number of masks in one claim."""
_MARK = "<extra_id_{}>"
_LETTERS = r"[\w\u0300-\u036f]+"  # an accent may be a character of its own, which \w does not match
_WORD = re.compile(rf"{_LETTERS}(?:[-'’.,]{_LETTERS})*")
_FILLED = re.compile(r"<extra_id_(\d)>\s*(.*?)\s*(?=<extra_id_|</s>|<pad>|$)")


def word_places(text: str) -> list[Span]:
    """List the spans of a text's words; "co-wrote", "1,000" and "Brown's" are one word each."""
    return [match.span() for match in _WORD.finditer(text)]


def join_spans(claim: str, spans: Iterable[Span]) -> list[Span]:
    """Sort spans, and join neighbours that have no word between them."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and not re.search(r"\w", claim[joined[-1][1] : start]):
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def masked(claim: str, spans: Sequence[Span], evidence: str) -> str:
    """Write what the corrector reads: the claim with its spans masked, and the evidence.

    >>> masked("He was born in 1859.", [(15, 19)], "He was born on 10 May 1864.")
    'fill: He was born in <extra_id_0>. evidence: He was born on 10 May 1864.'
    """
    return f"fill: {_between(claim, spans, [_MARK.format(n) for n in range(len(spans))])} evidence: {evidence}"


def contents(claim: str, spans: Sequence[Span]) -> str:
    """Write what the corrector learns to write: the words of the masked spans.

    >>> contents("He was born in 1859.", [(15, 19)])
    '<extra_id_0> 1859'
    """
    return " ".join(f"{_MARK.format(n)} {claim[start:end]}" for n, (start, end) in enumerate(spans))


def filled(claim: str, spans: Sequence[Span], text: str) -> str | None:
    """Replace the masked spans by what the corrector wrote; None if a mask has no words.

    >>> filled("He was born in 1859.", [(15, 19)], "<pad><extra_id_0> 1864</s>")
    'He was born in 1864.'
    """
    words = {int(number): words for number, words in _FILLED.findall(text)}
    fills = [words.get(n, "") for n in range(len(spans))]
    return _between(claim, spans, fills) if all(fills) else None


def _between(claim: str, spans: Sequence[Span], texts: Sequence[str]) -> str:
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(claim)]
    kept = [claim[start:end] for start, end in zip(starts, ends, strict=True)]
    return kept[0] + "".join(text + rest for text, rest in zip(texts, kept[1:], strict=True))


def check_corrector(model: Model) -> None:
    """Raise `ValueError` unless a model has T5's marks for masked spans."""
    if not two_sided(model) or _MARK.format(0) not in read_tokenizer(model).get_vocab():
        raise ValueError(f"{model.name} has no token {_MARK.format(0)}, which masks a span: use a T5, or a model trained from a T5")


@dataclass(frozen=True, kw_only=True)
class Corrector(Generator):
    """Claims with their masked spans filled, for `[claim, spans, evidence]` requests; an answer has the form of `Generator`'s.

    Source: Thorne and Vlachos 2021, Evidence-based Factual Error Correction, section 4: "a masker" and "a corrector". Their
        corrector is a T5-base that writes the whole sentence. This corrector writes only what is masked, so that the rest of the
        claim stays.

    Args:
        model: a T5, trained by `recipes/train_corrector.yaml`.
        num_beams: the number of beams.
        num_return_sequences: the number of hypotheses for each request.
        max_new_tokens: the tokens of the longest filling.
        max_length: the tokens of claim and evidence that are read.
    """

    VERSION = "1"
    prompt: ClassVar[str] = "{}"

    num_beams: Positive = 4
    num_return_sequences: Positive = 2
    max_new_tokens: Positive = 48
    max_length: Positive = 320

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        texts = super().encode(loaded, [[masked(*request), []] for request in requests])
        return [Encoded(text.features, request, text.cut) for text, request in zip(texts, requests, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, vocabulary = loaded
        answers = search(self, network, tokenizer, encoded, [[] for _ in encoded], vocabulary=vocabulary, marks=True)
        return [_claims(item.extra, answer) for item, answer in zip(encoded, answers, strict=True)]


def _claims(request: Sequence[Any], answer: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make whole claims from fillings, without repetitions."""
    claim, spans, _ = request
    claims: dict[str, dict[str, Any]] = {}
    for hypothesis in answer:
        if (text := filled(claim, spans, hypothesis["text"])) is not None:
            claims.setdefault(text, {**hypothesis, "text": text})
    return list(claims.values())
