"""A tiny random R-BERT whose predictions differ from sentence to sentence, and rows for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny
import torch
from transformers import BertConfig, BertModel

from hfcf.engines.rbert import RBert

LABELS = ("Cause-Effect(e1,e2)", "Entity-Origin(e1,e2)", "Other", "PHYS")


def row(text: str, label: str = LABELS[0], **columns: Any) -> dict[str, Any]:
    """A row of a sentence with its head in [brackets] and its tail in {braces}."""
    tokens: list[str] = []
    spans: dict[str, dict[str, Any]] = {}
    for word in text.split():
        for name, left, right in (("head", "[", "]"), ("tail", "{", "}")):
            if word.startswith(left):
                spans[name] = {"start": len(tokens), "end": 0, "type": None}
            if word.endswith(right):
                spans[name]["end"] = len(tokens) + 1
        tokens.append(word.strip("[]{}"))
    return {"id": text, "tokens": tokens, **spans, "label": label, **columns}


SENTENCES = [
    "The [film] was directed by an American {director} in 1994 .",
    "a [band] that was formed in the city of {London}",
    "the {album} of a small label , which [she] had released",
    "[He] , of {the city}",
    "An [old book] about {war} and the film",
    "In the film the [actress] was born in a {state} of the United States of America , and died",
]


def rbert(folder: Path) -> str:
    """Its folder."""
    torch.manual_seed(1)
    tokenizer = tiny.tokenizer(pair=True)
    tokenizer.add_tokens(["$", "#"])
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    network = RBert(BertModel(config), LABELS)
    with torch.no_grad():
        network.classifier.weight *= 4
        network.classifier.bias.zero_()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
