"""The search against all texts there are: 2,000 random cases and more, and against Transformers' own free search."""

from __future__ import annotations

import random
from typing import Any

import exhaustive
import numpy as np
import pytest
import torch
from exhaustive import END, KINDS, Clauses

from hfcf.engines.constrained import generate_constrained, plan
from hfcf.engines.constrained.automaton import END_OF_TEXT, Automaton, Pattern
from hfcf.engines.constrained.search import Compiled, constrained_beam_search

ROWS = 24
# Half of the cases always run, the others with the slow tests.
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]


def clauses(rng: random.Random, vocabulary: int, most: int, longest: int) -> Clauses:
    """Random clauses whose phrases overlap, nest, begin alike and stand in several clauses."""
    going = [token for token in range(vocabulary) if token != END]
    pool = [[rng.choice(going) for _ in range(rng.randint(1, longest))] for _ in range(rng.randint(1, 5))]
    pool += [phrase[: rng.randint(1, len(phrase))] for phrase in pool]
    return [[rng.choice(pool) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(0, most))]


def search(
    kind: str, network: Any, given: dict[str, torch.Tensor], wanted: list[Clauses], length: int, **settings: Any
) -> list[Any]:
    """Each row's hypotheses as (text, score, satisfied, met)."""
    found = generate_constrained(network, given, wanted, max_new_tokens=length, **settings)
    start = 1 if kind in ("t5", "bart") else given["input_ids"].shape[1]
    texts = []
    for text in found.sequences[:, start:].tolist():
        texts.append(text[: text.index(END) + 1] if END in text else text)
    each = len(texts) // len(wanted)
    merged = list(zip(texts, found.sequences_scores.tolist(), found.satisfied.tolist(), found.met, strict=True))
    return [merged[i * each : (i + 1) * each] for i in range(len(wanted))]


def written(kind: str, given: dict[str, torch.Tensor], sequences: torch.Tensor, ends: tuple[int, ...] = (END,)) -> list[Any]:
    """The new tokens of each sequence, up to the first that ends it."""
    start = 1 if kind in ("t5", "bart") else given["input_ids"].shape[1]
    texts = []
    for text in sequences[:, start:].tolist():
        last = next((i for i, token in enumerate(text) if token in ends), len(text) - 1)
        texts.append(text[: last + 1])
    return texts


# 60 batches of 24 rows and more: vocabulary, longest text, beams that hold every text there is.
WIDE = [(3, 6, 128), (4, 5, 340), (5, 4, 340), (8, 3, 400), (4, 6, 1000), (6, 4, 780)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("vocabulary", "length", "beams"), WIDE)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wide_beam_finds_the_best_of_all_texts_that_meet_the_clauses(
    kind: str, vocabulary: int, length: int, beams: int, seed: int
) -> None:
    rng = random.Random(f"{kind} {vocabulary} {length} {seed}")
    rows = ROWS if beams < 500 else 6
    network, given = exhaustive.model(kind, vocabulary, seed), exhaustive.inputs(kind, vocabulary, rows, seed)
    wanted = [clauses(rng, vocabulary, 3, 3) for _ in range(rows)]
    penalty = rng.choice([0.0, 0.6, 1.0, 2.0])
    every = exhaustive.texts(vocabulary, length)
    found = search(
        kind,
        network,
        given,
        wanted,
        length,
        num_beams=beams,
        num_return_sequences=3,
        length_penalty=penalty,
        early_stopping="never",
    )
    for row in range(rows):
        sums = exhaustive.log_probabilities(network, given, row, every)
        scored = [(total / len(text) ** penalty, text) for total, text in zip(sums, every, strict=True)]
        most = max(sum(exhaustive.meets(text, wanted[row])) for _, text in scored)
        good = sorted((pair for pair in scored if sum(exhaustive.meets(pair[1], wanted[row])) == most), reverse=True)
        text, score, satisfied, met = found[row][0]
        assert score == pytest.approx(good[0][0], abs=1e-4)
        assert satisfied == (most == len(wanted[row])) == all(met)
        for (best, _), (text, score, _, met) in zip(good, found[row], strict=False):
            assert score == pytest.approx(best, abs=1e-4)
            assert met == exhaustive.meets(text, wanted[row])
            assert {text: score for score, text in scored}[tuple(text)] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beams", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(4, marks=pytest.mark.slow)])
def test_a_narrow_beam_meets_every_clause_that_a_text_of_the_length_can_meet(kind: str, beams: int, seed: int) -> None:
    rng = random.Random(f"{kind} {beams} {seed}")
    vocabulary, length = rng.choice([(4, 6), (6, 5), (8, 4)])
    network, given = exhaustive.model(kind, vocabulary, seed), exhaustive.inputs(kind, vocabulary, ROWS, seed)
    wanted = [clauses(rng, vocabulary, 12 if row % 4 == 0 else 4, 4) for row in range(ROWS)]
    every = exhaustive.texts(vocabulary, length)
    settings = {"early_stopping": rng.choice([True, False, "never"]), "num_return_sequences": rng.randint(1, beams)}
    for row, hypotheses in enumerate(search(kind, network, given, wanted, length, num_beams=beams, **settings)):
        most = max(sum(exhaustive.meets(text, wanted[row])) for text in every)
        taken = [hypothesis for hypothesis in hypotheses if hypothesis[1] > -1e8]
        assert taken
        assert len({tuple(text) for text, *_ in taken}) == len(taken)
        for text, _, satisfied, met in taken:
            assert met == exhaustive.meets(text, wanted[row])
            assert sum(met) == most
            assert satisfied == (most == len(wanted[row]))


def follow(automaton: Automaton, classes: np.ndarray, text: list[int]) -> int:
    """The clauses that a text meets, token by token."""
    columns, state, bits = automaton.columns(len(classes), classes, [END]), 0, 0
    for token in text:
        bits |= int(automaton.gain[state, columns[token]])
        state = int(automaton.goto[state, columns[token]])
    return bits | int(automaton.last[state])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beams", [1, 2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_narrow_beam_meets_clauses_of_whole_words(kind: str, beams: int, seed: int) -> None:
    """Tokens that go on with a word, end it, stop it or are digits, at random; phrases that mind where words begin and end."""
    rng = random.Random(f"{kind} {beams} {seed}")
    vocabulary, length = 14, rng.choice([3, 5, 8])
    network, given = exhaustive.model(kind, vocabulary, seed), exhaustive.inputs(kind, vocabulary, ROWS, seed)
    going = [token for token in range(vocabulary) if token != END]
    automata, every = [], []
    for _ in range(ROWS):
        classes = np.array([rng.randrange(8) for _ in range(vocabulary)], np.int8)
        classes[END] = END_OF_TEXT
        count = rng.randint(1, 4)
        patterns = [
            Pattern(tuple(rng.choices(going, k=rng.randint(1, 3))), rng.randrange(1, 1 << count), True, rng.random() < 0.5)
            for _ in range(rng.randint(1, 6))
        ]
        automata.append(Automaton(patterns, count, classes, [END]))
        every.append(classes)
    found = network.generate(
        **given, custom_generate=constrained_beam_search, constraints=Compiled(automata, every), num_beams=beams,
        max_new_tokens=length, do_sample=False, return_dict_in_generate=True, length_penalty=rng.choice([0.0, 1.0]),
    )  # fmt: skip
    for text, met, automaton, classes in zip(written(kind, given, found.sequences), found.met, automata, every, strict=True):
        most, _ = plan.reachable(automaton, length)
        assert sum(met) == follow(automaton, classes, text).bit_count() >= most
        assert met == [bool(follow(automaton, classes, text) >> clause & 1) for clause in range(automaton.clauses)]


@pytest.mark.parametrize("kind", [*KINDS, "llama"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"early_stopping": True},
        {"early_stopping": "never", "length_penalty": 0.4},
        {"length_penalty": -0.5},
        {"no_repeat_ngram_size": 2, "min_new_tokens": 3},
        {"repetition_penalty": 1.3, "bad_words_ids": [[7, 9]]},
        {"use_cache": False},
        {"cache_implementation": "static"},
        {"forced_eos_token_id": END},
        {"eos_token_id": [1, 5]},
        {"num_beams": 1},
        {"dtype": torch.bfloat16},
        {"prefix_allowed_tokens_fn": lambda row, _: [1, 2 + row, 10, 11, 12, 13]},
        {"stop_strings": None, "max_time": 1e9},
    ],
    ids=lambda settings: ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in settings.items()) or "defaults",
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside constrained rows"])
def test_rows_without_constraints_are_those_of_plain_beam_search(kind: str, settings: dict[str, Any], beside: bool) -> None:
    settings = {"num_beams": 5, "num_return_sequences": 5, "max_new_tokens": 11, **settings}
    settings["num_return_sequences"] = settings["num_beams"]
    network = exhaustive.model(kind, 40, seed=3, layers=2).to(settings.pop("dtype", torch.float32))
    given = exhaustive.inputs(kind, 40, 6, seed=1)
    wanted: list[Clauses] = [[[[7, 8, 9], [20]], [[8]]] if beside and row % 2 else [] for row in range(6)]
    native = network.generate(**given, **settings, do_sample=False, return_dict_in_generate=True, output_scores=True)
    found = generate_constrained(network, given, wanted, **settings)
    free = [i for i in range(len(found.met or [])) if not wanted[i // settings["num_beams"]]]
    close = {"abs": 2e-2 if network.dtype == torch.bfloat16 else 1e-4}
    if settings["num_beams"] > 1:  # the library's search with one beam keeps no scores
        assert found.sequences_scores[free] == pytest.approx(native.sequences_scores[free], **close)
    if network.dtype == torch.float32:
        ends = tuple(settings.get("eos_token_id", [END]))
        texts = [written(kind, given, sequences[free], ends) for sequences in (found.sequences, native.sequences)]
        assert texts[0] == texts[1]
    assert network.config._attn_implementation == "sdpa"


# The library's own search fails on a T5 whose decoder is the deeper one: it sizes the cache by the encoder.
@pytest.mark.parametrize(("kind", "encoder", "decoder"), [("t5", 3, 1), ("bart", 3, 1), ("bart", 1, 3)])
def test_the_decoder_may_be_deeper_or_flatter_than_the_encoder(kind: str, encoder: int, decoder: int) -> None:
    config = exhaustive.model(kind, 40).config
    changes = {"num_layers": encoder, "num_decoder_layers": decoder, "encoder_layers": encoder, "decoder_layers": decoder}
    for name, value in changes.items():
        if hasattr(config, name):
            setattr(config, name, value)
    network = type(exhaustive.model(kind, 40))(config).eval()
    given = exhaustive.inputs(kind, 40, 3, seed=1)
    settings: dict[str, Any] = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 6}
    native = network.generate(**given, **settings, do_sample=False)
    found = generate_constrained(network, given, [[], [], []], **settings)
    assert written(kind, given, found.sequences) == written(kind, given, native)
