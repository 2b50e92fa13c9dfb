"""Noun phrases of questions, by spaCy: the plain stand-in for the references that a model trained on QED finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Engine
from hfcf.engines.ner import backend_settings

_ASKING = ("WDT", "WP", "WP$", "WRB", "EX")


@dataclass(frozen=True, kw_only=True)
class NounPhrases(Engine):
    """Noun phrases of text requests that may name something, as `[[start, end], …]` in code points, in order.

    They are spaCy's noun chunks, but for those that ask ("who", "what religion"), pronouns, and those that only relate to what
    follows ("the captain" of "the captain of richmond", which is part of the question's predicate).

    They are no good references in QED's sense: of those of the 1,000 dev questions of QED with an explanation of one sentence, the
    offline pipeline has 47% exactly, and 30% of its phrases are references. QED's often span several noun phrases, and taggers
    are trained on texts with capitals.

    Args:
        model: a spaCy pipeline with a parser: a package, a folder or "offline:spacy".

    >>> text = "who is the captain of richmond football club"
    >>> [text[start:end] for start, end in NounPhrases().run([text])[0]]
    ['richmond football club']
    """

    model: Model = Model("offline:spacy")

    def settings(self) -> dict[str, Any]:
        return backend_settings("spacy", self.model, "finding noun phrases")

    def dtype(self) -> torch.dtype:
        return torch.float32

    def load(self, device: torch.device) -> Any:
        import spacy

        return spacy.load(self.model.source(), exclude=["ner"])

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return list(requests)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return [
            [[chunk.start_char, chunk.end_char] for chunk in doc.noun_chunks if _names(chunk)]
            for doc in loaded.pipe(encoded, batch_size=256)
        ]


def _names(chunk: Any) -> bool:
    """Say whether a noun chunk may name something by itself."""
    if chunk.root.pos_ == "PRON" or any(token.tag_ in _ASKING for token in chunk):
        return False
    return not any(child.dep_ == "prep" and child.lower_ == "of" for child in chunk.root.children)
