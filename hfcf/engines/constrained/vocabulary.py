"""The effect of a tokenizer's tokens on the words around them, and its ways to write a phrase."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hfcf.engines.constrained.automaton import CONTINUES, DIGIT, END_OF_TEXT, ENDS, STOP, TEXTLESS, Automaton, Pattern
from hfcf.text.phrase_match import mentions

Alternative = str | Sequence[int]
MOST_CLAUSES = 62


class Vocabulary:
    """Classify the tokens of a generation model's tokenizer, once for all batches."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        # A token's text shows after another token, because SentencePiece drops the space of a single token. It must also follow the
        # first
        # piece of a word, because a tokenizer that marks the ends of words, not their beginnings, puts no space there.
        texts = self._after(self._ids("a"))
        inside = self._after(self._ids("counterrevolutionaries")[:1])
        self.classes = np.array([_class(text) for text in texts], np.int8)
        self._spaced = [text[:1].isspace() and other[:1].isspace() for text, other in zip(texts, inside, strict=True)]
        special = [token for token in tokenizer.all_special_ids if token < len(texts)]
        self.classes[special] = TEXTLESS
        self.ends = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
        self.classes[self.ends] = END_OF_TEXT

    def _after(self, ids: list[int]) -> list[str]:
        """Return the text that each token adds to these ids."""
        before = self._decode([ids])[0]
        return [text[len(before) :] for text in self._decode([[*ids, token] for token in range(len(self.tokenizer))])]

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        decode = self.tokenizer.batch_decode
        return list(decode(rows, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def variants(self, phrase: str) -> list[tuple[tuple[int, ...], bool]]:
        """Return the token sequences that write a phrase, each with whether it counts only where a word can begin before it.

        For most tokenizers, a phrase has different sequences inside a sentence, at the start of a text and after a bracket. Each is
        also tried with a capital, as at the start of a sentence. A sequence that does not decode to the phrase (an unknown
        character) is left out. So a phrase that the model can't write has no sequence.
        """
        forms: list[tuple[int, ...]] = []
        coded = (phrase, unicodedata.normalize("NFC", phrase))
        for text in dict.fromkeys(spelling for written in coded for spelling in (written, written[:1].upper() + written[1:])):
            for context in ("a ", "("):
                before, ids = self._ids(context.strip()), self._ids(context + text)
                if ids[: len(before)] == before and len(ids) > len(before):
                    forms.append(tuple(ids[len(before) :]))
            forms.append(tuple(self._ids(text)))
        writes = [ids for ids in dict.fromkeys(forms) if ids and not set(ids) & {*self.tokenizer.all_special_ids}]
        texts = [" ".join(text.split()) for text in self._decode(writes)] if writes else []
        # A form whose first token includes its space may be anywhere; other forms need a space or bracket before them.
        return [(ids, not self._spaced[ids[0]]) for ids, text in zip(writes, texts, strict=True) if mentions(text, phrase)]


def _class(text: str) -> int:
    if not text or "\ufffd" in text or unicodedata.combining(text[0]):  # no text, or a part of a character
        return TEXTLESS
    first, last = text[0], text[-1]
    if first in ".,":
        kind = STOP if len(text) == 1 else CONTINUES if text[1].isdigit() else ENDS
    elif first.isalnum() or first in "_-":
        kind = DIGIT if first.isdigit() else CONTINUES
    else:
        kind = ENDS
    # After a full stop or a comma a number may continue.
    return 2 * kind + int(not (last.isalnum() or last in "_-.,"))


def compile_row(
    clauses: Sequence[Sequence[Alternative]], vocabulary: Vocabulary | None, ends: Iterable[int], size: int, row: int
) -> tuple[Automaton, np.ndarray | None]:
    """Build one row's automaton, and return its token classes with it (None when all alternatives are token sequences)."""
    ends = list(ends)
    if len(clauses) > MOST_CLAUSES:
        raise ValueError(f"row {row} must have at most {MOST_CLAUSES} clauses, got {len(clauses)}: merge or drop some")
    bits: dict[Pattern, int] = {}
    for number, clause in enumerate(clauses):
        if isinstance(clause, str) or not len(clause):
            cure = "a clause is a list of alternatives, such as ['Rome', 'Paris']"
            raise ValueError(f"row {row}, clause {number} is {clause!r}: {cure}")
        for alternative in clause:
            for pattern in _patterns(alternative, vocabulary, size, f"row {row}, clause {number}"):
                if set(pattern.tokens) & set(ends):
                    raise ValueError(
                        f"row {row}, clause {number} holds the end token in {alternative!r}: no text continues after it"
                    )
                bits[pattern] = bits.get(pattern, 0) | 1 << number
    patterns = [Pattern(pattern.tokens, value, pattern.word, pattern.start) for pattern, value in bits.items()]
    classes = vocabulary.classes if vocabulary and any(pattern.word for pattern in patterns) else None
    return Automaton(patterns, len(clauses), classes, ends), classes


def _patterns(alternative: Alternative, vocabulary: Vocabulary | None, size: int, where: str) -> list[Pattern]:
    if isinstance(alternative, str):
        if not alternative.strip():
            raise ValueError(f"{where} has an empty alternative: leave it out")
        if vocabulary is None:
            raise ValueError(f"{where} has the string {alternative!r}: give the tokenizer, or token sequences")
        forms = vocabulary.variants(alternative.strip())
        return [Pattern(ids, 0, word=True, start=start) for ids, start in forms if max(ids) < size]
    tokens = tuple(int(token) for token in alternative)
    if not tokens:
        raise ValueError(f"{where} has an empty alternative: leave it out")
    if odd := [token for token in tokens if not 0 <= token < size]:
        raise ValueError(f"{where} must have tokens between 0 and {size - 1}, the model's vocabulary, got {odd[0]}")
    return [Pattern(tokens, 0)]
