"""Phrases as whole words: what the search takes for a mention, the text must mention."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from offline_models import installed
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from hfcf.core.model import Model
from hfcf.engines.constrained import generate_constrained
from hfcf.engines.constrained.automaton import TEXTLESS, Automaton, Pattern
from hfcf.engines.constrained.vocabulary import Vocabulary, compile_row
from hfcf.text.phrase_match import mentions, met

PHRASES = [
    "Rome",
    "the Roman army",
    "1994",
    "New York",
    "New York City",
    "Barack Obama",
    "O'Neill",
    "3.5",
    "U.S.",
    "Jean-Luc",
    "café",
]


@pytest.fixture(params=["t5", "bart", "gpt2", "offline:t5", "offline:smollm2"])
def tokenizer(request: pytest.FixtureRequest, tiny_model: Callable[[str], str]) -> Any:
    name = request.param
    if name.startswith("offline:"):
        if not installed(name.removeprefix("offline:")):
            pytest.skip(f"{name} is not installed")
        return AutoTokenizer.from_pretrained(Model(name).source())
    return AutoTokenizer.from_pretrained(tiny_model(name))


def follow(automaton: Automaton, columns: np.ndarray, tokens: list[int]) -> int:
    """The clauses that a text of these tokens meets."""
    state, bits = 0, 0
    for token in tokens:
        bits |= int(automaton.gain[state, columns[token]])
        state = int(automaton.goto[state, columns[token]])
    return bits | int(automaton.last[state])


def test_every_form_of_a_phrase_is_found_and_nothing_else(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    rng = random.Random(0)
    size = len(tokenizer)
    around = ["He saw", "(", '"', "in", ".", ",", "-", "s", "'s", "x", "5", ")", "the end", ".5", "word"]
    agreed = 0

    @cache
    def compiled(phrase: str) -> tuple[Any, Any]:
        automaton, classes = compile_row([[phrase]], vocabulary, vocabulary.ends, len(tokenizer), 0)
        return automaton, automaton.columns(size, classes, vocabulary.ends)

    for _ in range(300):
        phrase = rng.choice(PHRASES)
        automaton, columns = compiled(phrase)
        parts = [rng.choice([phrase, phrase[:1].upper() + phrase[1:], *around]) + rng.choice(["", " "]) for _ in range(5)]
        tokens = tokenizer("".join(parts), add_special_tokens=False)["input_ids"]
        text = " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split())
        found = bool(follow(automaton, columns, tokens))
        assert not found or mentions(text, phrase), (text, phrase)
        agreed += found == mentions(text, phrase)
    # A tokenizer may cut a phrase otherwise beside odd neighbours; such a mention is not counted, and that is the safe side.
    assert agreed > 240


def test_sequences_at_random_never_count_where_the_text_does_not_mention(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    rng = random.Random(1)
    special = set(tokenizer.all_special_ids)
    pool = [token for token in range(len(tokenizer)) if token not in special]
    compiled = [(phrase, *compile_row([[phrase]], vocabulary, vocabulary.ends, len(tokenizer), 0)) for phrase in PHRASES]
    written = [
        (phrase, automaton, automaton.columns(len(tokenizer), classes, vocabulary.ends))
        for phrase, automaton, classes in compiled
        if automaton.patterns
    ]
    hits = 0
    for _ in range(1500):
        phrase, automaton, columns = rng.choice(written)
        tokens = [rng.choice(pool), *rng.choice(automaton.patterns).tokens, rng.choice(pool), rng.choice(pool)][rng.randint(0, 1) :]
        text = tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if "\ufffd" not in text and follow(automaton, columns, tokens):
            hits += 1
            assert mentions(" ".join(text.split()), phrase), (text, phrase)
    assert hits > 100


def test_a_phrase_that_cannot_be_written_has_no_form(tokenizer: Any) -> None:
    forms = Vocabulary(tokenizer).variants("Rome")
    assert forms
    for ids, _ in forms:
        assert mentions(tokenizer.decode(list(ids)), "Rome")
    unknown = Vocabulary(tokenizer).variants("\u6771\U0001f642")
    assert all(mentions(" ".join(tokenizer.decode(list(ids)).split()), "\u6771\U0001f642") for ids, _ in unknown)


def test_a_token_without_text_ends_no_word(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    for token in tokenizer.all_special_ids:
        assert token in vocabulary.ends or vocabulary.classes[token] == TEXTLESS
    automaton, classes = compile_row([["Rome"]], vocabulary, vocabulary.ends, len(tokenizer), 0)
    columns = automaton.columns(len(tokenizer) + 3, classes, vocabulary.ends)
    assert set(columns[len(tokenizer) :].tolist()) == {TEXTLESS}
    tokens = list(automaton.patterns[0].tokens)
    assert follow(automaton, columns, tokens)
    assert not follow(automaton, columns, [*tokens, len(tokenizer)])


def test_an_accent_may_be_coded_apart(tokenizer: Any) -> None:
    composed, apart = "M\u00fcnchen", "Mu\u0308nchen"
    vocabulary = Vocabulary(tokenizer)
    assert len(vocabulary.variants(apart)) >= bool(vocabulary.variants(composed))
    assert mentions(composed, apart)
    assert mentions(apart, composed)
    assert not mentions("Rome\u0301", "Rome")


def test_outer_spaces_are_no_part_of_a_phrase(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.variants(" Rome ".strip()) == vocabulary.variants("Rome")
    assert mentions("in Rome.", " Rome ")
    assert not mentions("Romes", " Rome ")


def test_the_end_of_a_word_shows_in_the_next_token() -> None:
    # Tokens: 0 goes on with the word, 1 is a new word, 2 a full stop, 3 a digit, 4 the phrase.
    classes = np.array([0, 2, 4, 6, 3], np.int8)
    automaton = Automaton([Pattern((4,), 1, word=True)], 1, classes)
    columns = automaton.columns(5, classes, [])
    for tokens, expected in [
        ([4], 1),
        ([4, 1], 1),
        ([4, 0], 0),
        ([4, 2], 1),
        ([4, 2, 3], 0),
        ([4, 2, 0], 1),
        ([4, 3], 0),
        ([4, 4], 1),
    ]:
        assert follow(automaton, columns, tokens) == expected, tokens


@pytest.mark.parametrize("kind", ["t5", "bart", "gpt2"])
def test_texts_mention_what_their_row_asks_for(kind: str, tiny_model: Callable[[str], str]) -> None:
    auto = AutoModelForCausalLM if kind == "gpt2" else AutoModelForSeq2SeqLM
    network = auto.from_pretrained(tiny_model(kind)).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model(kind), padding_side="left" if kind == "gpt2" else "right")
    inputs = tokenizer(["The bridge stands in Rome.", "A singer.", "The river is long."], padding=True, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    wanted: list[list[list[str]]] = [[["Rome", "Paris"], ["the bridge"]], [], [["river", "Seine"], ["river"], ["long"], ["singer"]]]
    found = generate_constrained(
        network, inputs, wanted, tokenizer=tokenizer, num_beams=5, num_return_sequences=3, max_new_tokens=16, pad_token_id=0
    )
    start = inputs["input_ids"].shape[1] if kind == "gpt2" else 1
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(found.sequences[:, start:], skip_special_tokens=True)]
    assert found.satisfied.all()
    for i, text in enumerate(texts):
        assert all(met(text, wanted[i // 3])), text
    assert isinstance(found.sequences_scores, torch.Tensor)
