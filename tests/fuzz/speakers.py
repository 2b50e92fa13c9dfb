"""Answers in the place of random models', which end no text and agree with nobody; the models read every request all the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import nasty
import near_misses
import pytest

from hfcf.core.model import Model
from hfcf.engines.base import Engine
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator
from hfcf.engines.question_generator import AnswerGenerator, QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.systems.baselines.polyjuice import PERTURB

Run = Callable[[Any, Sequence[Any]], list[Any]]
DECODED = nasty.storable(list(nasty.NASTY))
"""What a tokenizer can make of tokens: no half surrogate pairs."""


def overrule(patch: pytest.MonkeyPatch, engine: type[Engine], answer: Run, model: Model | None = None) -> None:
    """Let the engine's model, or another, answer, and put these answers in the place of those that are not None."""
    real = vars(engine).get("run", Engine.run)

    def run(self: Any, requests: Sequence[Any]) -> list[Any]:
        asked = real(replace(self, model=model) if model else self, requests)
        return [None if old is None else new for old, new in zip(asked, answer(self, requests), strict=True)]

    patch.setattr(engine, "run", run)


def plant(patch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]) -> None:
    """Let generators of texts speak, and models of questions find near misses."""
    overrule(patch, Continuation, continue_nastily)
    overrule(patch, Generator, name_all)
    overrule(patch, Reader, near_misses.read, Model(tiny_model("reader")))
    overrule(patch, QuestionGenerator, near_misses.ask, Model(tiny_model("t5")))
    overrule(patch, AnswerGenerator, near_misses.answer, Model(tiny_model("t5")))


def continue_nastily(_: Continuation, prompts: Sequence[str]) -> list[Any]:
    """Answer with the prompt with another word or a nasty text in it, or with those in the place of Polyjuice's blank."""
    answers = []
    for prompt in prompts:
        draw, said = zlib.crc32(prompt.encode("utf-8", "replace")), prompt.split() or [""]
        words = (DECODED[draw % len(DECODED)], nasty.GOOD[draw % len(nasty.GOOD)].split()[draw % 7])
        at = draw % len(said)
        texts = [(" ".join([*said[:at], word, *said[at + 1 :]]), True) for word in words[:: 1 - draw % 2 * 2]]
        if PERTURB in prompt:
            texts = [(f"[SEP] {word} [ANSWER]", True) for word in words]
        answers.append(_hypotheses([*texts, (said[0], False)]))
    return answers


def name_all(_: Generator, requests: Sequence[Any]) -> list[Any]:
    """Answer with texts that name what the request's clauses ask for, and with one that is cut off."""
    names = [" met ".join(clause[0] for clause in clauses) or "Nobody" for _, clauses in requests]
    return [_hypotheses([(f"It is said that {name}.", True), (f"{name} are known.", True), (name, False)]) for name in names]


def _hypotheses(texts: list[tuple[str, bool]]) -> list[dict[str, Any]]:
    return [{"text": text, "score": -0.1 - i, "finished": end} for i, (text, end) in enumerate(texts)]
