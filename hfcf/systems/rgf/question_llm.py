"""A language model behind an endpoint as question generator or reader: `Model("llm:NAME")`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hfcf import prompts
from hfcf.core.model import is_remote
from hfcf.engines.question_generator import QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.engines.remote.llm_backend import ask_texts, failure
from hfcf.systems.rgf.answer_candidates import find_answer
from hfcf.text.questions import mark_answer

WORDS = 300
"""Words of a passage on either side of the answer that a language model is shown, and half of those that it reads."""
PROMPTS = ("questions", "answers")
"""The prompts of this module, for the state of the stages that ask them."""


def write_questions(engine: QuestionGenerator, requests: Sequence[Any], seed: int) -> list[Any]:
    """Answer as `QuestionGenerator` does, by its model or over an endpoint.

    A language model is asked for all questions at once, and of a long passage it reads the words around the answer. It gives no
    scores: they are None, and its order counts. Instead of a list, an answer may be `{"error": why}`.
    """
    if not is_remote(engine.model):
        return engine.run(requests)
    number = engine.num_return_sequences
    messages = []
    for title, context, start, end in requests:
        first = [match.start() for match in re.finditer(r"\S+", context[:start])][-WORDS:][:1]
        last = [match.end() for match in re.finditer(r"\S+", context[end:])][:WORDS][-1:]
        window = mark_answer(context, start, end)[first[0] if first else 0 :]
        window = window[: len(window) - (len(context) - end - last[0])] if last else window
        values = {"title": title, "marked": window, "answer": context[start:end], "number": number}
        messages.append(prompts.messages("questions", shots=2, **values))
    return ask_texts(engine.model, "questions", messages, number=number, max_tokens=engine.max_new_tokens * number, seed=seed)


def read_answers(engine: Reader, requests: Sequence[Any], seed: int) -> list[Any]:
    """Answer `[question, context, title]` requests as `Reader` does, by its model or over an endpoint.

    A language model's answers are searched in the passage; their probabilities and scores are None. Of a long passage it reads the
    beginning. A question that it can't answer, even in several attempts, has no answer.
    """
    if not is_remote(engine.model):
        return engine.run(requests)
    messages = []
    for question, context, title in requests:
        last = [match.end() for match in re.finditer(r"\S+", context)][: 2 * WORDS][-1:]
        values = {"title": title, "context": context[: last[0]] if last else "", "question": question, "number": engine.n_best}
        messages.append(prompts.messages("answers", shots=2, **values))
    answers = ask_texts(engine.model, "answers", messages, number=engine.n_best, max_tokens=64 + 64 * engine.n_best, seed=seed)
    results = []
    for answer, (_, context, _) in zip(answers, requests, strict=True):
        places = [] if failure(answer) else [find_answer(text["text"], context) for text in answer]
        results.append(
            [
                {"text": text, "start": start, "end": start + len(text) if start >= 0 else -1, "score": None, "probability": None}
                for text, start in places[: engine.n_best]
            ]
        )
    return results
