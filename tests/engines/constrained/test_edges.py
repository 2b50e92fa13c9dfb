"""What a search does at its limits: too little length, forbidden tokens, bad input, many clauses, rows that finish early."""

from __future__ import annotations

import itertools
import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import exhaustive
import numpy as np
import pytest
import torch
from exhaustive import END, KINDS, Clauses, holds, meets
from transformers import StoppingCriteria, StoppingCriteriaList

from hfcf.engines.constrained import generate_constrained, plan
from hfcf.engines.constrained.automaton import Automaton, Pattern
from hfcf.engines.constrained.beam_selection import Scores
from hfcf.engines.constrained.search import Compiled, constrained_beam_search


def run(kind: str, clauses: list[Clauses], *, vocabulary: int = 40, **settings: Any) -> tuple[Any, list[list[int]]]:
    network = exhaustive.model(kind, vocabulary, seed=2, layers=2)
    given = exhaustive.inputs(kind, vocabulary, len(clauses), seed=4)
    found = generate_constrained(network, given, clauses, **{"num_beams": 4, "max_new_tokens": 10, **settings})
    start = 1 if kind in ("t5", "bart") else given["input_ids"].shape[1]
    return found, found.sequences[:, start:].tolist()


# --- the plan


def shortest_by_steps(automaton: Automaton, goal: int) -> dict[tuple[int, int], int]:
    """Fewest tokens from every state and set, one token at a time, backwards from where the goal is reached."""
    columns = [column for column in range(len(automaton.written)) if automaton.written[column]]
    pairs = list(itertools.product(range(len(automaton.goto)), range(1 << automaton.clauses)))
    into: dict[tuple[int, int], list[tuple[int, int]]] = {pair: [] for pair in pairs}
    for state, met in pairs:
        for column in columns:
            into[int(automaton.goto[state, column]), met | int(automaton.gain[state, column])].append((state, met))
    found = {(state, met): 0 for state, met in pairs if (met | int(automaton.last[state])).bit_count() >= goal}
    queue = deque(found)
    while queue:
        pair = queue.popleft()
        for before in into[pair]:
            if before not in found:
                found[before] = found[pair] + 1
                queue.append(before)
    return found


@pytest.mark.parametrize("seed", range(24))
def test_the_plan_is_the_shortest_path(seed: int) -> None:
    rng = random.Random(seed)
    classes = np.array([rng.randrange(8) for _ in range(12)], np.int8) if seed % 3 else None
    count = rng.randint(1, 5)
    patterns = [
        Pattern(
            tuple(rng.randrange(12) for _ in range(rng.randint(1, 3))), rng.randrange(1, 1 << count),
            word=classes is not None and rng.random() < 0.7, start=classes is not None and rng.random() < 0.3,
        )
        for _ in range(rng.randint(1, 6))
    ]  # fmt: skip
    automaton = Automaton(patterns, count, classes, ends=[3])
    for goal in range(count + 1):
        table, expected = plan.needed(automaton, goal), shortest_by_steps(automaton, goal)
        for state, met in itertools.product(range(len(automaton.goto)), range(1 << count)):
            assert table[state, met] == expected.get((state, met), plan.NEVER)


# --- too little length


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_met_in_part_and_marked(kind: str) -> None:
    rows: list[Clauses] = [[[[5, 6, 7]], [[8, 9]], [[10]]], [[[11]]], []]
    found, texts = run(kind, rows, max_new_tokens=3)
    assert found.satisfied.tolist() == [False, True, True]
    assert sum(found.met[0]) == 2
    assert found.met == [meets(text, clauses) for text, clauses in zip(texts, rows, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_tokens_are_kept_for_what_is_missing(kind: str) -> None:
    phrases = [[5, 6, 7], [8, 9], [10, 11, 12, 13]]
    found, [text] = run(kind, [[[phrase] for phrase in phrases]], max_new_tokens=9, num_beams=1)
    assert found.satisfied.all()
    assert sorted(text) == [5, 6, 7, 8, 9, 10, 11, 12, 13]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [13, 20, 40])
def test_many_clauses_are_met_within_the_stated_bound(kind: str, count: int) -> None:
    rng = random.Random(count)
    phrases = [[rng.randrange(2, 60) for _ in range(rng.randint(1, 3))] for _ in range(count)]
    needed = sum(len(phrase) for phrase in phrases)
    for tokens, width in ((needed, 1), (needed, 4), (needed + 20, 3)):
        found, [text] = run(kind, [[[phrase] for phrase in phrases]], vocabulary=60, max_new_tokens=tokens, num_beams=width)
        assert found.satisfied.all()
        assert all(holds(text, phrase) for phrase in phrases)
    found, [text] = run(kind, [[[phrase] for phrase in phrases]], vocabulary=60, max_new_tokens=needed - 4)
    assert sum(found.met[0]) >= count - 4
    assert found.met[0] == [holds(text, phrase) for phrase in phrases]


def test_a_row_with_many_clauses_beside_one_with_few() -> None:
    many: Clauses = [[[token]] for token in range(2, 16)]
    found, texts = run("t5", [many, [[[20, 21]]], []], max_new_tokens=16)
    assert found.satisfied.all()
    assert set(range(2, 16)) <= set(texts[0])
    assert holds(texts[1], [20, 21])


# --- forbidden tokens


@pytest.mark.parametrize("kind", KINDS)
def test_a_forbidden_phrase_is_given_up_and_the_others_are_met(kind: str) -> None:
    found, [text, free] = run(kind, [[[[5, 6]], [[7]]], [[[8]]]], suppress_tokens=[6])
    assert found.satisfied.tolist() == [False, True]
    assert found.met[0] == [False, True]
    assert 7 in text
    assert 8 in free


class Nothing:
    """Forbids every token from a length on."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.full_like(scores, -torch.inf) if ids.shape[1] >= self.length else scores


class Stop(StoppingCriteria):
    """Time is up at a length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full((len(ids),), ids.shape[1] >= self.length)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_search_that_cannot_go_on_returns_what_it_has(kind: str, length: int) -> None:
    prompt = 1 if kind in ("t5", "bart") else 5
    for settings in (
        {"logits_processor": [Nothing(prompt + length)]},
        {"stopping_criteria": StoppingCriteriaList([Stop(prompt + max(1, length))])},
    ):
        found, texts = run(kind, [[[[5]], [[6, 7, 8, 9]]], [[[10, 11, 12, 13]]]], **settings)
        assert not found.satisfied.any()
        assert found.sequences.shape[1] <= prompt + max(1, length)
        assert found.met == [
            meets(text, rows) for text, rows in zip(texts, [[[[5]], [[6, 7, 8, 9]]], [[[10, 11, 12, 13]]]], strict=True)
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_phrases_are_met_beside_processors_of_the_library(kind: str) -> None:
    rows: list[Clauses] = [[[[5, 6, 7]], [[9]]], [[[6, 5]], [[5, 6, 7]]]]
    for settings in ({"no_repeat_ngram_size": 2}, {"min_new_tokens": 8}, {"forced_eos_token_id": END}, {"repetition_penalty": 1.5}):
        found, texts = run(kind, rows, **settings)
        assert found.satisfied.all()
        assert all(all(meets(text, clauses)) for text, clauses in zip(texts, rows, strict=True))
        if "forced_eos_token_id" in settings:
            assert all(END in text for text in texts)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_forced_first_token_costs_a_token_and_no_more(kind: str) -> None:
    rows: list[Clauses] = [[[[token]] for token in (10, 11, 12, 13, 14)]]
    found, [text] = run(kind, rows, max_new_tokens=5, forced_bos_token_id=20)
    assert sum(found.met[0]) == 4
    assert text[0] == 20


class Continues:
    """Every token of a word's middle is likelier than one that ends it."""

    def __init__(self, middles: list[int]) -> None:
        self.middles = middles

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores - 50.0
        scores[:, self.middles] += 50.0
        return scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_word_is_ended_in_time(kind: str, width: int, tokens: int) -> None:
    """With no token to spare, the phrase must not be continued to another word, however likely that is."""
    network, given = exhaustive.model(kind, 40, seed=2), exhaustive.inputs(kind, 40, 3, seed=4)
    classes = np.full(40, 0, np.int8)
    classes[[END, 5, 6, 30]] = 3
    automata = [Automaton([Pattern((5,), 1, word=True), Pattern((6,), 1, word=True)], 1, classes, [END]) for _ in range(3)]
    found = network.generate(
        **given, custom_generate=constrained_beam_search, constraints=Compiled(automata, [classes] * 3), num_beams=width,
        max_new_tokens=tokens, do_sample=False, return_dict_in_generate=True, logits_processor=[Continues(list(range(7, 25)))],
    )  # fmt: skip
    assert found.satisfied.all()


@pytest.mark.parametrize("width", [1, 3])
def test_what_a_word_begins_after_can_be_written(width: int) -> None:
    """Phrases that count only where a word can begin, and the end token the first of the tokens that one can begin after."""
    network, given = exhaustive.model("t5", 40, seed=2), exhaustive.inputs("t5", 40, 5, seed=4)
    classes = np.full(40, 0, np.int8)
    classes[[END, 30]] = 3
    patterns = [Pattern((5,), 1, word=True, start=True), Pattern((6, 7), 2, word=True, start=True)]
    automaton = Automaton(patterns, 2, classes, [END])
    need = int(plan.needed(automaton, 2)[0, 0])
    found = network.generate(
        **given, custom_generate=constrained_beam_search, constraints=Compiled([automaton] * 5, [classes] * 5), num_beams=width,
        max_new_tokens=need, do_sample=False, return_dict_in_generate=True,
    )  # fmt: skip
    assert need == 4
    assert found.satisfied.all()


# --- what is returned


@pytest.mark.parametrize("kind", KINDS)
def test_empty_places_hold_no_text_and_cut_off_texts_are_not_ended(kind: str) -> None:
    found, texts = run(kind, [[[[5]]], []], vocabulary=40, num_return_sequences=4, max_new_tokens=3, suppress_tokens=[END])
    assert not found.ended.any()
    found, texts = run(kind, [[[[5]]]], num_return_sequences=4, max_new_tokens=1)
    assert (found.sequences_scores[1:] <= -1e8).all()
    assert texts[0] == [5]
    assert not found.satisfied[1:].any()
    found, texts = run(kind, [[[[5]]], []], num_return_sequences=2, max_new_tokens=12, sequence_bias=[[[END], 60.0]])
    assert found.ended.all()
    assert all(END in text for text in texts)


def test_two_searches_at_once_on_one_model() -> None:
    network, given = exhaustive.model("t5", 40, seed=2), exhaustive.inputs("t5", 40, 4, seed=4)
    settings: dict[str, Any] = {"num_beams": 4, "max_new_tokens": 12}
    expected = generate_constrained(network, given, [[[[5, 6]]]] * 4, **settings).sequences
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: generate_constrained(network, given, [[[[5, 6]]]] * 4, **settings).sequences, range(9)))
    assert all(torch.equal(one, expected) for one in found)
    assert network.config._attn_implementation == "sdpa"


# --- rows that finish at different times


@pytest.mark.parametrize("kind", [*KINDS, "llama"])
def test_rows_that_are_done_leave_the_batch_and_change_nothing(kind: str) -> None:
    rng = random.Random(3)
    rows: list[Clauses] = [
        [[[rng.randrange(2, 12) for _ in range(rng.randint(1, 3))]] for _ in range(n)] for n in (0, 1, 3, 0, 2, 5)
    ]
    network, given = exhaustive.model(kind, 12, seed=2, layers=2), exhaustive.inputs(kind, 12, 6, seed=4)
    settings: dict[str, Any] = {"num_beams": 4, "max_new_tokens": 25, "num_return_sequences": 4, "sequence_bias": [[[END], 3.0]]}
    together = generate_constrained(network, given, rows, **settings)
    lengths = set()
    for row, clauses in enumerate(rows):
        one = {name: tensor[row : row + 1] for name, tensor in given.items()}
        alone = generate_constrained(network, one, [clauses], **settings)
        lengths.add(alone.sequences.shape[1])
        width = alone.sequences.shape[1]
        assert torch.equal(together.sequences[4 * row : 4 * row + 4, :width], alone.sequences)
        assert together.sequences_scores[4 * row : 4 * row + 4] == pytest.approx(alone.sequences_scores, abs=1e-4)
    assert len(lengths) > 1


# --- input


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([[], [[]]], "row 1, clause 0"),
        ([[], [[[5]], [[]]]], r"row 1, clause 1.*empty"),
        ([[["Rome"]], []], r"row 0, clause 0.*string.*'Rome'.*tokenizer"),
        ([[], ["Rome"]], r"row 1, clause 0.*'Rome'.*list"),
        ([[[[END]]], []], r"row 0, clause 0.*end token"),
        ([[], [[[5, 40]]]], r"row 1, clause 0.*between 0 and 39.*got 40"),
        ([[[[-5]]], []], r"row 0, clause 0.*got -5"),
        ([[[[5]]] * 63, []], r"row 0.*63"),
        ([[]], r"1 rows.*2 inputs"),
    ],
)
def test_bad_constraints_are_named(constraints: Any, message: str) -> None:
    network, given = exhaustive.model("t5", 40), exhaustive.inputs("t5", 40, 2, 0)
    with pytest.raises(ValueError, match=message):
        generate_constrained(network, given, constraints, max_new_tokens=4)


def test_what_the_search_cannot_do_is_refused() -> None:
    network, given = exhaustive.model("gpt2", 40), exhaustive.inputs("gpt2", 40, 2, 0)
    with pytest.raises(ValueError, match="sampling, streaming"):
        network.generate(**given, do_sample=True, custom_generate=constrained_beam_search, max_new_tokens=3)
    with pytest.raises(ValueError, match="token_type_ids"):
        generate_constrained(network, {**given, "token_type_ids": given["input_ids"]}, [[], []], max_new_tokens=3)
    with pytest.raises(ValueError, match="leave position_ids out"):
        generate_constrained(network, {**given, "position_ids": given["input_ids"]}, [[], []], max_new_tokens=3)
    cache = network(**given, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="an empty cache"):
        generate_constrained(network, {**given, "past_key_values": cache}, [[], []], max_new_tokens=3, num_beams=1)
    plain = network.generate(**given, num_beams=3, custom_generate=constrained_beam_search, max_new_tokens=3)
    assert torch.equal(plain, network.generate(**given, num_beams=3, do_sample=False, max_new_tokens=3)[:, : plain.shape[1]])


# --- the best tokens


@pytest.mark.parametrize("vocabulary", [5, 63, 64, 65, 128, 1000])
def test_the_best_tokens_are_the_best_of_all(vocabulary: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    logits = torch.randn(6, vocabulary, generator=generator)
    logits[torch.rand(6, vocabulary, generator=generator) < 0.2] = -torch.inf
    shift = torch.randn(2, 3, generator=generator)
    shift[1, 2] = -torch.inf
    scores = Scores(logits, shift)
    beams = torch.tensor([[True, True, True], [True, False, True]])
    every = (logits.view(2, 3, -1) + shift[..., None]).masked_fill(~beams[..., None], -torch.inf)
    for k in (1, 4, 12):
        values, beam, token = scores.best(beams, k)
        assert torch.equal(values, every.flatten(1).topk(k).values)
        assert torch.equal(every.flatten(1).gather(1, beam * vocabulary + token), values)
    best, first = scores.first()
    assert torch.equal(best, (logits.view(2, 3, -1) + shift[..., None]).amax(-1))
    assert int(first.max()) < vocabulary
