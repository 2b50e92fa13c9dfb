"""Models of RGF that write: a question for an answer in a passage, answers of a passage, the references of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, skip_empty
from hfcf.engines.generator import Generator
from hfcf.engines.token_cuts import count_tokens, cut_head, cut_tail, find_tokens
from hfcf.text.questions import ANSWER, join_parts, mark_answer

_LONGEST_TOKEN = 24
"""The maximum number of characters of a passage per token; it bounds how much text is tokenised."""


@dataclass(frozen=True, kw_only=True)
class QuestionGenerator(Generator):
    """Questions for `[title, context, start, end]` requests, the answer being `context[start:end]`, by beam search.

    The model reads `title » passage`, with the answer in it as `« answer = … »` (RGF, appendix A). From a longer passage it reads a
    window with the answer in its middle, if there is text on both sides. An answer has the form of `Generator`'s answers; it is
    None if the answer itself is longer than `max_length`.

    The settings are the settings of `Generator`.

    >>> QuestionGenerator.prompt
    '{}\\nQuestion:'
    """

    VERSION = "1"
    prompt: ClassVar[str] = "{}\nQuestion:"

    num_beams: Positive = 15
    num_return_sequences: Positive = 15
    max_new_tokens: Positive = 256
    max_length: Positive = 640

    def texts(self, tokenizer: Any, requests: Sequence[Any]) -> list[str | None]:
        """Write each request as the model reads it."""
        return [fit_marked(tokenizer, title, text, start, end, self.max_length) for title, text, start, end in requests]

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        texts = self.texts(loaded[1], requests)
        encoded = iter(super().encode(loaded, [[text, []] for text in texts if text is not None]) if any(texts) else [])
        return [Encoded({"input_ids": []}, []) if text is None else next(encoded) for text in texts]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return skip_empty(encoded, lambda items: super(QuestionGenerator, self).forward(loaded, items))


@dataclass(frozen=True, kw_only=True)
class AnswerGenerator(QuestionGenerator):
    """Texts that are likely answers to some question, for `[title, context]` requests: `title » passage` → answer (appendix A).

    The model reads the beginning of a long passage.

    >>> AnswerGenerator.prompt
    '{}\\nAnswer:'
    """

    prompt: ClassVar[str] = "{}\nAnswer:"

    max_new_tokens: Positive = 32

    def texts(self, tokenizer: Any, requests: Sequence[Any]) -> list[str | None]:
        return [join_parts(title, context) for title, context in requests]


@dataclass(frozen=True, kw_only=True)
class Decomposer(QuestionGenerator):
    """The references of questions, for `[question, title, context, start, end]` requests, by a model trained on QED.

    The model reads `question » title » passage`, with the answer marked in the passage. It writes the form of
    `hfcf.text.questions.write_references`.

    >>> Decomposer.prompt
    '{}\\nReferences:'
    """

    prompt: ClassVar[str] = "{}\nReferences:"

    num_beams: Positive = 4
    num_return_sequences: Positive = 1

    def texts(self, tokenizer: Any, requests: Sequence[Any]) -> list[str | None]:
        return [
            fit_marked(tokenizer, join_parts(question, title), text, start, end, self.max_length)
            for question, title, text, start, end in requests
        ]


def fit_marked(tokenizer: Any, head: str, context: str, start: int, end: int, max_length: int) -> str | None:
    """Write `head » passage` with the answer marked, in at most `max_length` tokens; None if the answer alone is longer.

    A passage that is too long is cut to a window around the answer, between words. The head is left out if it takes more than half
    of the tokens.
    """
    reach = max_length * _LONGEST_TOKEN
    whole = join_parts(head, mark_answer(context, start, end))
    if len(whole) <= 2 * reach and count_tokens(tokenizer, whole) <= max_length:
        return whole
    answer = ANSWER.format(context[start:end])
    if len(answer) > reach or count_tokens(tokenizer, answer) > max_length:
        return None
    if head and (len(head) > reach or count_tokens(tokenizer, head) > max_length // 2):
        head = ""
    room = max_length - count_tokens(tokenizer, join_parts(head, answer))
    left, right = find_tokens(tokenizer, context[max(0, start - reach) : start]), find_tokens(tokenizer, context[end : end + reach])
    while room >= 0:
        # Half of the room goes to each side; room that the text of a side does not need goes to the other side.
        before = min(len(left[1]), max(room // 2, room - len(right[1])))
        after = min(len(right[1]), room - before)
        text = join_parts(head, cut_tail(left, before) + answer + cut_head(right, after))
        if count_tokens(tokenizer, text) <= max_length:
            return text
        room -= 8  # pieces tokenise to a little more or less than the whole
    return join_parts(head, answer) if count_tokens(tokenizer, join_parts(head, answer)) <= max_length else answer
