"""What users reported of the constrained search that Transformers had, each as a case that must work."""

from __future__ import annotations

from typing import Any

import exhaustive
import pytest
import torch
from exhaustive import END, KINDS, holds

from hfcf.engines.constrained import generate_constrained


def texts(
    kind: str, clauses: list[Any], *, prompt: list[int] | None = None, vocabulary: int = 60, **settings: Any
) -> list[list[int]]:
    network = exhaustive.model(kind, vocabulary, seed=5, layers=2)
    ids = torch.tensor([prompt or [4, 9, 17, 23]])
    settings = {"num_beams": 6, "num_return_sequences": 6, "max_new_tokens": 14, **settings}
    found = generate_constrained(network, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, [clauses], **settings)
    assert found.satisfied.all()
    start = 1 if kind in ("t5", "bart") else ids.shape[1]
    return found.sequences[:, start:].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [3, 4, 6])
def test_phrases_of_three_words_and_more_are_written_whole(kind: str, length: int) -> None:
    """transformers#19070: phrases of two tokens worked, longer ones did not."""
    phrases = [list(range(10 * i, 10 * i + length)) for i in (2, 4)]
    for text in texts(kind, [[phrase] for phrase in phrases]):
        assert all(holds(text, phrase) for phrase in phrases)


class Chain:
    """Log-probabilities of a text that is 10, 11, 12 … : a phrase from its middle belongs in its middle."""

    def __init__(self, prompt: int) -> None:
        self.prompt = prompt

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        likely = torch.full_like(scores, -8.0)
        following = torch.full_like(ids[:, -1], 10) if ids.shape[1] == self.prompt else ids[:, -1] + 1
        likely[torch.arange(len(ids)), following.clamp(max=scores.shape[1] - 1)] = -0.1
        likely[following == 22, END] = 0.0
        return likely


@pytest.mark.parametrize("kind", KINDS)
def test_a_phrase_stands_where_it_is_most_probable(kind: str) -> None:
    """transformers#19070: phrases stood right after the input or at the very end."""
    prompt = [4, 9, 17, 23]
    processor = Chain(1 if kind in ("t5", "bart") else len(prompt))
    [text] = texts(
        kind, [[[15, 16, 17]], [[19]]], prompt=prompt, num_return_sequences=1, max_new_tokens=20, logits_processor=[processor]
    )
    assert text == [*range(10, 22), END]
    [text] = texts(kind, [[[15, 40]]], prompt=prompt, num_return_sequences=1, max_new_tokens=20, logits_processor=[processor])
    assert 0 < text.index(40) < len(text) - 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clauses", [[[[7]]], [[[7], [8, 9]], [[9]]]])
def test_no_text_is_returned_twice(kind: str, clauses: list[Any]) -> None:
    """transformers#17812: forced and freely chosen continuations met in the result."""
    found = [tuple(text) for text in texts(kind, clauses, num_beams=10, num_return_sequences=10, max_new_tokens=4)]
    assert len(set(found)) == 10


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_what_the_prompt_says_meets_nothing(kind: str) -> None:
    """transformers#31281: for a decoder-only model a phrase of the prompt counted; nor may one begin there."""
    for text in texts(kind, [[[9, 17]], [[23, 30]]], prompt=[4, 9, 17, 23]):
        assert holds(text, [9, 17])
        assert holds(text, [23, 30])


@pytest.mark.parametrize("kind", KINDS)
def test_a_phrase_may_contain_another(kind: str) -> None:
    """A `ValueError` of old: one alternative a prefix of another, the same twice, one in two clauses."""
    for text in texts(kind, [[[20, 21], [20, 21, 22]], [[20, 21, 22], [30]], [[30], [30]], [[21]]]):
        assert holds(text, [20, 21])
        assert holds(text, [20, 21, 22]) or 30 in text
        assert 30 in text
    # One occurrence serves both clauses: nothing is written twice to meet them.
    [text] = texts(kind, [[[20, 21]], [[20, 21]], [[21, 22]]], num_return_sequences=1, max_new_tokens=3)
    assert text == [20, 21, 22]
