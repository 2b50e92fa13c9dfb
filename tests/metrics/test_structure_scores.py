"""Scores of argument structures, by cases that were computed by hand."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset

from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.engines.base import usage
from hfcf.metrics.scores.structures import (
    DISTRACTORS,
    PRESETS,
    SCORES,
    STEPS,
    SentenceEncoder,
    align,
    by_sentence,
    compare,
    group_of,
)
from hfcf.metrics.shared import matching
from hfcf.metrics.shared.matching import Matching
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.structures.model import CLAIM, Step, Structure
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.structures.proof import parse_proof
from hfcf.training.structure_scorer import STRUCTURES, StructureScorer, read_answer, to_answer

TREES = Path(os.environ.get("HFCF_DATA", "")) / "entailment_bank" / "dataset" / "task_1" / "dev.jsonl"


@dataclass(frozen=True)
class Words(SentenceEncoder):
    """Stands for an encoder: the similarity of two sentences is the share of their words that both have."""

    model: Model = Model("words")
    same: float = 0.5

    def match(self, requests: Sequence[Any]) -> list[float]:
        return [max(best(*request), default=0.0) for request in requests]


def best(references: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
    """The totals of all matchings."""
    few, many = sorted((references, hypotheses), key=len)
    return [sum(share(*pair) for pair in zip(few, order, strict=False)) for order in permutations(many, len(few))]


def share(first: str, other: str) -> float:
    left, right = set(first.split()), set(other.split())
    return len(left & right) / len(left | right)


WORDS = Words()


def scores(gold: Structure | None, predicted: Structure | None, encoder: SentenceEncoder = WORDS) -> dict[str, float]:
    return compare([gold or Structure(())], [predicted], encoder)[0]


def arrows(text: str, **texts: str) -> Structure:
    return Structure(parse_arrows(text).steps, texts)


GOLD = arrows("(E1, E2) → E3 (E3, E4) → Claim")


def test_identity_is_one_whatever_the_order_names_and_white_space() -> None:
    texts = {"E1": "ice is cold", "E2": "sun is hot", "E3": "ice melts", "E4": "nobody cools it", CLAIM: "ice is gone"}
    gold = arrows("(E1, E2) → E3 (E3, E4) → Claim", **texts)
    steps = tuple(Step(step.premises[::-1], step.conclusion) for step in reversed(gold.steps))
    permuted = Structure(steps, texts)
    names = {f"E{i}": f"Sentence{5 - i}" for i in range(1, 5)}
    spaced = Structure(
        permuted.rename(names).steps, {names.get(name, name): f" {text}\n".replace(" ", "  ") for name, text in texts.items()}
    )
    for same in (gold, permuted, spaced):
        assert scores(gold, same) == dict.fromkeys(SCORES, 1.0)


def test_by_hand() -> None:
    """Edges: of 4 gold and 3 predicted ones 2 are equal; E1 → claim is nearest to E4 → claim, with 2 of 4 words in common."""
    scored = scores(GOLD, arrows("E1 → E3 (E1, E3) → Claim"))
    # "E1 → claim" and "E4 → claim": {→, claim} of {E1, →, claim, E4}; "E2 → E3" has one word of five.
    assert [scored[name] for name in ("ss_precision", "ss_recall", "ss")] == pytest.approx([2.5 / 3, 2.5 / 4, 2 * 2.5 / 7])
    assert [scored[name] for name in ("es_precision", "es_recall", "es")] == pytest.approx([2 / 3, 2 / 4, 4 / 7])
    assert (scored["leaves_f1"], scored["leaves_all"]) == (pytest.approx(2 * 1 * (1 / 3) / (4 / 3)), 0.0)  # E1 of E1, E2, E4
    assert (scored["steps_f1"], scored["steps_all"]) == (0.0, 0.0)  # both steps have other premises
    assert (scored["intermediates_f1"], scored["intermediates_all"]) == (1.0, 1.0)  # E3


def test_the_order_of_edges_does_not_count() -> None:
    predicted = [Step(("E1",), "E3"), Step(("E1",), CLAIM), Step(("E2", "X"), "E4"), Step(("E3",), CLAIM)]
    expected = scores(GOLD, Structure(tuple(predicted)))
    assert 0 < expected["ss"] < 1
    for steps in permutations(predicted):
        assert scores(GOLD, Structure(steps)) == pytest.approx(expected)


def test_a_combined_link_counts_as_edges_and_a_step_as_one() -> None:
    scored = scores(arrows("(E1, E2, E3) → Claim"), arrows("(E1, E2) → Claim"))
    assert [scored[name] for name in ("es_precision", "es_recall", "steps_f1")] == [1.0, pytest.approx(2 / 3), 0.0]


def test_the_matching_is_the_best_one_not_the_greedy_one() -> None:
    texts = {"A": "x y z", "B": "x q", "C": "x y", "D": "x y z w", CLAIM: "k"}
    # A–D share 3 of 4 words and A–C 2 of 3; B–C share 1 of 3 and B–D 1 of 5: with "→ k", A–D first would leave B–C.
    gold, predicted = arrows("(A, B) → Claim", **texts), arrows("(C, D) → Claim", **texts)
    edges = [[f"{texts[name]} → k" for name in names] for names in ("AB", "CD")]
    assert scores(gold, predicted)["ss"] == pytest.approx(max(best(*edges)) / 2)


def test_dropped_edges_never_raise_recall() -> None:
    rng, names = random.Random(0), [f"E{i}" for i in range(7)]
    for _ in range(50):
        edges = [(rng.choice(names), rng.choice([*names, CLAIM])) for _ in range(5)]
        predicted = [Step((premise,), other) for premise, other in dict.fromkeys(edges)]
        rng.shuffle(predicted)
        last = scores(GOLD, Structure(tuple(predicted)))
        while predicted:
            predicted.pop()
            now = scores(GOLD, Structure(tuple(predicted)))
            assert now["ss_recall"] <= last["ss_recall"] + 1e-9
            assert now["es_recall"] <= last["es_recall"]
            last = now
    steps = list(GOLD.edges())
    values = [
        scores(GOLD, Structure(tuple(Step((premise,), end) for premise, end in steps[:n])))["ss"] for n in range(len(steps) + 1)
    ]
    assert values == sorted(values)
    assert values[0] == 0


@pytest.mark.parametrize("empty", [None, Structure(()), Structure((), {"E1": "ice is cold"})])
def test_empty_structures(empty: Structure | None) -> None:
    assert scores(GOLD, empty) == dict.fromkeys(SCORES, 0.0)
    assert scores(empty, empty) == dict.fromkeys(SCORES, 1.0)
    assert scores(empty, GOLD) == dict.fromkeys(SCORES, 0.0)


def test_ties_are_decided_alike() -> None:
    """Two gold conclusions rest on the same leaves: the first one written is taken."""
    gold = arrows("E1 → E2 → E3 → Claim")
    assert align(gold, arrows("E1 → X → Claim")) == {"X": "E2"}
    assert align(gold, arrows("Y → X → Claim")) == {}


def test_new_conclusions_are_aligned_by_their_leaves() -> None:
    texts = {"E1": "ice is cold", "E2": "sun is hot", "E3": "the ice melts", "E4": "nobody cools it", CLAIM: "ice is gone"}
    gold = arrows("(E1, E2) → E3 (E3, E4) → Claim", **texts)
    near, far = ({**texts, "E3": text} for text in ("that ice melts", "dogs bark"))
    first, other = (scores(gold, arrows("(E1, E2) → E3 (E3, E4) → Claim", **own)) for own in (near, far))
    for each in (first, other):  # structurally right, whatever the words
        assert [each[name] for name in ("leaves_all", "steps_all")] == [1.0, 1.0]
        assert each["es"] == pytest.approx(1 / 4)  # E4 → claim
    assert (first["intermediates_f1"], other["intermediates_f1"]) == (1.0, 0.0)


def test_two_conclusions_aligned_with_one_are_right_once() -> None:
    texts = {"E1": "a", "E2": "b", "E3": "ice melts", CLAIM: "c", "X": "ice melts now", "Y": "ice melts soon"}
    scored = scores(arrows("(E1, E2) → E3 → Claim", **{k: v for k, v in texts.items() if k not in "XY"}),
                 arrows("(E1, E2) → X (E1, E2) → Y (X, Y) → Claim", **texts))  # fmt: skip
    # Steps: {E1, E2} → E3 twice and {E3} → claim; of the three predicted, two different ones are right: P 2/3, R 1.
    assert scored["steps_f1"] == pytest.approx(0.8)
    assert scored["intermediates_f1"] == 1.0  # both say it, and it is said


def test_names_without_sentences_use_the_gold_ones_unless_others_are_declared() -> None:
    gold = arrows("E1 → Claim", E1="ice is cold")
    assert scores(gold, arrows("E1 → Claim"))["es"] == 1.0
    assert scores(gold, arrows("E2 → Claim", E2="dogs bark"))["es"] == 0.0
    assert by_sentence(arrows("E1 → Claim", E1="claim")).edges() == [("E1", CLAIM)]  # a sentence that would be the root


def test_a_step_is_a_conclusion_however_its_premises_are_linked() -> None:
    """`E1 → E3, E2 → E3` has the edges of `(E1, E2) → E3`, and CheckWhy does not tell them apart (section 2.2)."""
    apart = arrows("E1 → E3; E2 → E3; (E3, E4) → Claim")
    assert apart != GOLD
    assert scores(GOLD, apart) == scores(apart, GOLD) == dict.fromkeys(SCORES, 1.0)
    # Of two conclusions one has all its premises: P 1/2, R 1/2.
    assert scores(GOLD, arrows("E1 → E3; (E3, E4) → Claim"))["steps_f1"] == 0.5
    # A new conclusion in two links is aligned with E3, and is one right step.
    assert scores(GOLD, arrows("E1 → X; E2 → X; (X, E4) → Claim"))["steps_f1"] == 1.0


TABLE_16 = """def build_tree_proof():
    one_to_one_linking(Sentence13, Sentence16)
    one_to_one_linking(Sentence13, Sentence17)
    one_to_one_linking(Sentence13, Sentence18)
    one_to_one_linking(Sentence11, Sentence17)
    multiple_to_one_linking([Sentence16, Sentence17, Sentence18], Claim)
"""


def test_the_papers_program_has_four_steps() -> None:
    """Five links, and four conclusions: Sentence16, 17, 18 and the claim (Table 16)."""
    structure = parse_program(TABLE_16)
    assert len(structure.steps) == 5
    assert structure.merged() == Structure(
        (*(Step(("Sentence13",), f"Sentence{n}") for n in (16, 18)), Step(("Sentence11", "Sentence13"), "Sentence17"),
         Step(("Sentence16", "Sentence17", "Sentence18"), CLAIM))
    )  # fmt: skip
    gold = [to_answer(structure, "REFUTES", distractors=None)]
    assert [line["group"] for line in SCORER.table(gold, gold)] == ["all", "4 steps"]


def test_a_prediction_without_sentences_is_an_error_not_a_zero() -> None:
    """A program that was parsed without `texts` has the model's names, which are not those of the row."""
    gold = arrows("(s1, s2) → s3 → Claim", s1="ice is cold", s2="sun is hot", s3="ice melts")
    program = "multiple_to_one_linking([Sentence1, Sentence2], Sentence3)\none_to_one_linking(Sentence3, Claim)"
    new = 'Sentence3 = FACT("ice melts")\n' + program
    for text in (program, new):
        with pytest.raises(ValueError, match=r"prediction 1: Sentence1 has no sentence.*view\.texts"):
            compare([gold, gold], [None, parse_program(text)], WORDS)
    given = {"Sentence1": "ice is cold", "Sentence2": "sun is hot"}
    assert scores(gold, parse_program(new, given)) == dict.fromkeys(SCORES, 1.0)
    assert scores(gold, arrows("(s1, s2) → s3 → Claim")) == dict.fromkeys(SCORES, 1.0)  # the names of the row


def test_a_circle_is_scored() -> None:
    scored = scores(GOLD, Structure((Step(("X", "E1"), "Y"), Step(("Y",), "X"), Step(("X",), CLAIM))))
    assert all(0 <= value <= 1 for value in scored.values())


def test_groups() -> None:
    assert [group_of(n, STEPS) for n in (1, 5, 6, 12)] == ["1", "5", "≥6", "≥6"]
    assert [group_of(n, DISTRACTORS) for n in (0, 1, 6, 7, 10, 12, 13)] == ["0", "1–6", "1–6", "7–8", "9–10", "11–12", "≥13"]


# --- the scorer

SCORER = StructureScorer(WORDS)


def row(label: str, steps: Sequence[tuple[Sequence[str], str]], distractors: int = 1) -> dict[str, Any]:
    ids = ["E1", "E2", "E3", *(f"D{i}" for i in range(distractors))]
    return {
        "claim": "ice is gone", "label": label,
        "evidence": [{"title": "T" if piece == "E1" else "", "text": f"text {piece}"} for piece in ids],
        "evidence_info": [{"id": piece, "useful": piece[0] == "E", "leaf": piece in ("E1", "E2")} for piece in ids],
        "structure": [{"premises": list(premises), "conclusion": end} for premises, end in steps],
    }  # fmt: skip


ROWS = Dataset.from_list(
    [
        row("SUPPORTS", [(("E1", "E2"), "E3"), (("E3",), CLAIM)], 7),
        row("REFUTES", [(("E1", "E2", "E3"), CLAIM)], 0),
        row("NOT ENOUGH INFO", []),
    ]
)


def test_the_scorer_counts_what_is_missing() -> None:
    gold = SCORER.gold(ROWS)
    assert gold[0]["texts"]["E1"] == "T: text E1"
    assert [structure["distractors"] for structure in gold] == [7, 0, 1]
    json.dumps(gold)  # cells are stored
    assert set(SCORER.scores(gold, gold).values()) == {1.0, 0.0}  # `empty` is 0
    # One right, one with a label and no structure, one unreadable, on which no structure is expected.
    result = SCORER.scores(gold, [gold[0], to_answer(None, "SUPPORTS"), None])
    assert result["accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert [result[name] for name in ("ss", "es", "leaves_all", "steps_all", "empty")] == [0.5] * 5
    assert SCORER.right(gold, [gold[0], "REFUTES", None]) == [True, True, False]
    assert list(result) == list(SCORER.metrics)


def test_labels_alone_have_no_scores_of_structures() -> None:
    gold = SCORER.gold(ROWS)
    result = SCORER.scores(gold, ["SUPPORTS", "SUPPORTS", "NOT ENOUGH INFO"])
    assert result["accuracy"] == pytest.approx(2 / 3, abs=1e-4)
    assert np.isnan(result["ss"])
    assert np.isnan(result["empty"])


def test_the_table_has_a_line_for_each_number_of_steps_and_distractors() -> None:
    gold = SCORER.gold(ROWS)
    lines = SCORER.table(gold, [gold[0], None, gold[2]])
    about = {line["group"]: (line["rows"], line["with_structure"], line["es"], line["empty"]) for line in lines}
    assert about == {
        "all": (3, 2, 0.5, 0.5), "1 step": (1, 1, 0.0, 1.0), "2 steps": (1, 1, 1.0, 0.0), "0 distractors": (1, 1, 0.0, 1.0),
        "1–6 distractors": (1, 0, pytest.approx(np.nan, nan_ok=True), pytest.approx(np.nan, nan_ok=True)),
        "7–8 distractors": (1, 1, 1.0, 0.0),
    }  # fmt: skip


def test_a_group_of_one_label_has_no_macro_f1() -> None:
    gold = SCORER.gold(ROWS)
    lines = {line["group"]: line["macro_f1"] for line in SCORER.table(gold, gold)}
    assert lines["all"] == 1.0
    assert all(np.isnan(value) for group, value in lines.items() if group != "all")


def test_rows_that_do_not_say_what_is_useful_stand_in_no_group_of_distractors() -> None:
    unknown = row("SUPPORTS", [])
    unknown["evidence_info"] = [{**info, "useful": None, "leaf": None} for info in unknown["evidence_info"]]
    gold = SCORER.gold(Dataset.from_list([unknown]))
    assert [line["group"] for line in SCORER.table(gold, gold)] == ["all"]


def test_resampling_gives_the_scores_of_the_drawn_rows() -> None:
    gold = SCORER.gold(ROWS)
    models = [[gold[0], to_answer(None, "SUPPORTS"), "REFUTES"], [None, gold[1], gold[2]]]
    kinds = np.empty((3, 3), dtype=object)
    for i, answers in enumerate([gold, *models]):
        for j, answer in enumerate(answers):
            kinds[i, j] = answer
    counts = np.array([[1.0, 1, 1], [2, 1, 0], [0, 3, 1]])
    drawn = SCORER.resample(counts, kinds[0], kinds[1:])
    for sample, of_sample in enumerate(counts):
        which = [j for j, n in enumerate(of_sample) for _ in range(int(n))]
        for model, answers in enumerate(models):
            expected = SCORER.scores([gold[j] for j in which], [answers[j] for j in which])
            got = dict(zip(SCORER.compared, drawn[:, sample, model], strict=True))
            assert got["accuracy"] == pytest.approx(expected["accuracy"], abs=1e-4)
            assert [got["ss"], got["es"]] == pytest.approx([expected["ss"], expected["es"]], abs=1e-4)


def test_answers_read_back() -> None:
    label, structure = read_answer(json.loads(json.dumps(to_answer(GOLD, "REFUTES"))))
    assert (label, structure) == ("REFUTES", GOLD)
    assert "offline:minilm" in STRUCTURES.note
    assert "deberta-large" in STRUCTURES.note


# --- the engine


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> Matching:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    try:
        offline.folder("minilm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return Matching(model=Model("offline:minilm", dtype="float32"))


SENTENCES = ["Ice is cold.", "The sun melts ice.", "Dogs bark at the postman in the morning.", "Ice"]


def plain(engine: Matching, first: str, other: str) -> float:
    """BERTScore as it is defined, of one pair."""
    network, tokenizer = engine.loaded()
    with torch.inference_mode():
        left, right = (network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in (first, other))
    table = torch.cosine_similarity(left[:, None], right[None], dim=-1)
    recall, precision = table.max(dim=1).values[1:-1].mean(), table.max(dim=0).values[1:-1].mean()
    return float(2 * precision * recall / (precision + recall))


def test_similarities_are_bertscores(engine: Matching) -> None:
    pairs = [(sentence, other) for sentence in SENTENCES for other in SENTENCES]
    answers = engine.run([[[first], [other]] for first, other in pairs])
    assert answers == pytest.approx([plain(engine, *pair) for pair in pairs], abs=2e-6)
    assert [answer for answer, (row, other) in zip(answers, pairs, strict=True) if row == other] == [1.0] * len(SENTENCES)


def test_totals_are_those_of_the_best_matching(engine: Matching) -> None:
    similarity = {
        (sentence, other): engine.run([[[sentence], [other]]])[0] for sentence in SENTENCES[:3] for other in SENTENCES[1:]
    }
    expected = max(
        sum(similarity[pair] for pair in zip(SENTENCES[:3], order, strict=True)) for order in permutations(SENTENCES[1:])
    )
    requests = [[SENTENCES[:3], SENTENCES[1:]], [SENTENCES[:3], SENTENCES[1:][::-1]], [SENTENCES, []], [SENTENCES[:1], SENTENCES]]
    assert engine.run(requests) == pytest.approx([expected, expected, 0.0, 1.0], abs=1e-5)
    assert engine.run([[[], []]]) == [0.0]


def test_each_sentence_is_encoded_once_and_no_vectors_stay(engine: Matching, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Any] = []
    embed = matching._embed

    def count(loaded: Any, sentences: Any) -> None:
        encoded.extend(sentences)
        embed(loaded, sentences)

    monkeypatch.setattr(matching, "_embed", count)
    monkeypatch.setattr("hfcf.metrics.shared.batching.WINDOW", 20)  # several windows, which share sentences
    requests = [[SENTENCES[:2], SENTENCES[2:]], [SENTENCES[2:3], SENTENCES[3:]], [SENTENCES[:1], SENTENCES[2:]]]
    answers = engine.run(requests)
    assert len(encoded) == len(SENTENCES)
    assert all(sentence.vectors is None and not sentence.waiting for sentence in encoded)
    monkeypatch.undo()
    assert engine.run(requests) == pytest.approx(answers, abs=2e-6)


def test_answers_come_from_the_cache(engine: Matching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_REQUEST_CACHE")
    first = engine.run([[SENTENCES[:2], SENTENCES[2:]]])
    before = usage()["Matching"].calls
    assert engine.run([[SENTENCES[:2], SENTENCES[2:]]]) == first
    assert usage()["Matching"].calls == before


def test_fewer_layers(engine: Matching) -> None:
    request = [[SENTENCES[:1], SENTENCES[1:2]]]
    network, _ = engine.loaded()
    number = network.config.num_hidden_layers
    assert Matching(model=engine.model, layer=number).run(request) == engine.run(request)
    assert Matching(model=engine.model, layer=1).run(request) != engine.run(request)
    with pytest.raises(ValueError, match=f"layer must be between 1 and {number}, .*got {number + 1}"):
        Matching(model=engine.model, layer=number + 1).run(request)


def test_a_sentence_without_words_is_like_no_other(engine: Matching) -> None:
    assert engine.run([[[""], ["Ice"]], [[""], [""]]]) == [0.0, 0.0]


@pytest.mark.skipif(not TREES.is_file(), reason="HFCF_DATA names no folder with EntailmentBank")
def test_real_trees_are_equal_to_themselves_and_worse_without_an_edge() -> None:
    rows = [json.loads(line) for line in TREES.read_text(encoding="utf-8").splitlines()]
    trees = []
    for scored in rows:
        texts = {**scored["meta"]["triples"], **scored["meta"]["intermediate_conclusions"], CLAIM: scored["hypothesis"]}
        trees.append(parse_proof(scored["proof"], texts))
    assert all(set(numbers.values()) == {1.0} for numbers in compare(trees, trees, PRESETS["offline"]))
    for tree in map(by_sentence, trees):
        edges = tree.edges()
        fewer = Structure(tuple(Step((premise,), end) for premise, end in edges[:-1]), {name: name for name in tree.nodes()})
        scored = scores(tree, fewer)  # a part of it: no encoder is asked
        assert scored["ss_recall"] == scored["es_recall"] == pytest.approx((len(edges) - 1) / len(edges))
