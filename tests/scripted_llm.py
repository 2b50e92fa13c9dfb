"""A language model of our own that answers CheckWhy's questions by rule, and spoils the answers that a test names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from bad_server import Behave, Reply, say

SUBJECTS = ("rain", "snow", "wind", "frost", "hail", "fog")
"""What the pairs of `rows` are about, so that every text names its pair."""


def rows(number: int = len(SUBJECTS)) -> list[dict[str, Any]]:
    """Pairs of cause and effect, one of each subject."""
    return [
        {
            "id": f"{i}", "group_id": f"g{i}", "corpus": "made", "split": "train", "claim": "", "evidence": [], "label": None,
            "evidence_info": [], "structure": [], "cause": f"The {subject} fell for {i + 2} days.",
            "effect": f"The {subject} closed the road to village {i}.", "explanation": [f"Much {subject} makes roads slippery."],
        }
        for i, subject in enumerate(SUBJECTS[:number])
    ]  # fmt: skip


def kind_of(asked: Mapping[str, Any]) -> str:
    """The stage that asks: claim, step, opposite or lines."""
    fields = asked["response_format"]["json_schema"]["schema"]["properties"]
    return next(name for name in ("claim", "opposite", "lines", "inference") if name in fields).replace("inference", "step")


def answer_to(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A right answer."""
    said = [turn["content"] for turn in asked["messages"] if turn["role"] == "user"]
    kind, last = kind_of(asked), said[-1]
    if kind == "lines":
        names = [*dict.fromkeys(re.findall(r"^(Sentence\d+) =", last, re.MULTILINE)), "Claim"]
        return {"lines": [f"one_to_one_linking({one}, {other})" for one, other in pairwise(names)]}
    if kind == "opposite":
        return {"opposite": _part(last, "Sentence").replace("closed", "opened up")}
    start = next(text for text in reversed(said) if "Effect: " in text)
    cause, effect = _part(start, "Cause"), _part(start, "Effect")
    if kind == "claim":
        return {"claim": f"{effect.rstrip('.')} because {cause[0].lower()}{cause[1:]}"}
    step = int(re.findall(r"Step (\d+):", last)[-1])
    if step == 4:
        return {"thought": "The effect follows.", "action": "finish", "inference": ""}
    action = "add a condition" if step == 2 else "further reasoning"
    side = "open" if "opened" in effect else "shut"
    return {"thought": "…", "action": action, "inference": f"Inference {step}: {cause.split()[1]} left the road {side}."}


def _part(text: str, name: str) -> str:
    return re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)[-1]


def behave(spoiled: Mapping[tuple[str, str], Any] | None = None) -> Behave:
    """Answer by rule.

    Args:
        spoiled: (kind, words of the question) → what comes instead: a text, a mapping over the right answer, or a reply.
    """

    def reply(_: int, asked: dict[str, Any]) -> Reply:
        answer: Any = answer_to(asked)
        question = "\n".join(turn["content"] for turn in asked["messages"][-1:])
        for (kind, words), other in (spoiled or {}).items():
            if kind == kind_of(asked) and words in question:
                if callable(other):
                    return other  # type: ignore[no-any-return]
                answer = {**answer, **other} if isinstance(other, Mapping) else other
        return say(answer if isinstance(answer, str) else json.dumps(answer))

    return reply
