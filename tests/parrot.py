"""A generator that repeats what it must name, so that tiny models bring claims through to the last stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def forward(self: Any, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
    """In the place of `Generator.forward`: two claims that meet every clause, and one that was cut off."""
    answers = []
    for item in encoded:
        names = " met ".join(clause[0] for clause in item.extra) or "Nobody"
        texts = [(f"It is said that {names}.", True), (f"{names} are known.", True), (f"{names} and", False)]
        answers.append([{"text": text, "score": -0.1 - i, "finished": end} for i, (text, end) in enumerate(texts)])
    return answers
