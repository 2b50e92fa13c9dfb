"""Read the probabilities of labels from the log-probabilities of an answer's tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from hfcf.engines.classifier import ROUND

ALTERNATIVES = 5
"""How many alternatives to each token are requested: TGI gives no more unless it is told to, others give 20."""


def token_probabilities(tokens: Sequence[Sequence[Any]], label: str, labels: Sequence[str]) -> dict[str, float] | None:
    """Compute the probability of each label from the tokens of the answer `{"label": …}`.

    The answer's own label has the product of the probabilities of its tokens, up to the one from which on no other label is
    possible. At each of them, an alternative token leads to the labels that go on with it; several share its probability. What
    leads to no label is left out, and the rest adds up to 1. An alternative that the server does not list counts 0.
    """
    written = {one: json.dumps(one, ensure_ascii=False)[1:] for one in labels}  # with the quotation mark that ends it
    text = "".join(token[0] for token in tokens)
    key = text.rfind('"label"')
    start = text.find('"', key + len('"label"')) + 1 if key >= 0 else 0
    if not start or not text.startswith(written[label], start):
        return None
    shares, reached, place = dict.fromkeys(labels, 0.0), 1.0, 0
    for token, value, others in tokens:
        before, opening = text[start:place], token[: max(0, start - place)]
        place += len(token)
        if place <= start:
            continue
        if not any(one.startswith(before) for name, one in written.items() if name != label):
            break  # what follows only ends the label
        for other, other_value in others:
            if other != token and len(other) > len(opening) and other.startswith(opening):
                leads = [one for one in labels if _fits(before + other[len(opening) :], written[one])]
                for one in leads:
                    shares[one] += reached * math.exp(other_value) / len(leads)
        reached *= math.exp(value)
    shares[label] += reached
    total = sum(shares.values())
    return {one: round(share / total, ROUND) for one, share in shares.items()} if total else None


def _fits(text: str, written: str) -> bool:
    """Say whether a text is a beginning of a label, or goes on behind it."""
    return written.startswith(text) or text.startswith(written)
