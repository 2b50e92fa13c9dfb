"""The metrics that need no model, what `measure` makes of them, and what a run says of their columns."""

from __future__ import annotations

import json
import math
import pickle
import re
import sys
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module, invalidate_caches
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, concatenate_datasets, load_from_disk
from made_rows import EVIDENCE, claim_row, evidence_row, relation, relation_row, verification

import hfcf
from hfcf.core import edits, plugins, schema
from hfcf.core.model_checks import NotCached
from hfcf.core.prepare import prepare
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.core.task import Task, apply_edits, revert_edits
from hfcf.metrics import load, names
from hfcf.metrics.claim_only import guess, predictability
from hfcf.metrics.diversity import _against_the_others, distinct, diversity, inverse_bleu, self_bleu
from hfcf.metrics.duplicates import duplicates
from hfcf.metrics.label_balance import label_balance
from hfcf.metrics.minimality import minimality
from hfcf.metrics.shared import metric
from hfcf.metrics.shared.measure import candidates, measure, measure_candidates
from hfcf.metrics.shared.near_duplicates import Bands, Near, jaccard
from hfcf.metrics.shared.parsing import DEFAULT, parse_metrics
from hfcf.metrics.shared.summary import summaries, summary
from hfcf.metrics.shared.texts import changed
from hfcf.tasks.verification import LABELS


@pytest.fixture
def made() -> Dataset:
    return verification(
        claim_row(0, "Rome is a very old city.", "Oslo is a very old city.", "REFUTES"),
        claim_row(1, "Dogs bark at night.", "Dogs never bark at night or by day.", "REFUTES"),
        claim_row(2, "Dogs bark at night!", "Dogs bark at Night.", "SUPPORTS"),
        evidence_row(3),
    )


# --- values


@pytest.mark.parametrize(
    ("before", "after", "distance", "share", "kept"),
    [
        ("Rome is old.", "Rome is old.", 0, 0.0, 1.0),
        ("Rome is old.", "Oslo is very old.", 2, 0.5, 0.66667),
        ("Rome is old.", "rome is old", 2, 0.5, 1.0),
        ("a b", "c d e f g", 5, 2.5, 0.0),
        ("the cat and the dog", "dog: the bird", 4, 0.8, 0.4),  # "dog" and one "the" of five words, in any order
        ("Rome is old.", "", 4, 1.0, 0.0),
        ("", "Rome is old.", 4, None, None),
        ("...", "Rome is old.", 3, 1.0, None),
    ],
)
def test_minimality_by_hand(before: str, after: str, distance: int, share: float | None, kept: float | None) -> None:
    assert minimality(before, after) == {"distance": distance, "share": share, "kept": kept}


def test_inverse_bleu_is_one_over_the_corpus_bleu_by_hand() -> None:
    # Seven tokens and six of them right: 6/7 words, 5/6 pairs, 4/5 triples, 3/4 quadruples, no brevity penalty.
    bleu = (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    found = inverse_bleu(["Oslo is a very old city."], ["Rome is a very old city."])
    assert found == pytest.approx(1 / bleu, abs=1e-4)
    assert inverse_bleu(["x y z"], ["a b c"]) is None
    assert inverse_bleu([], []) is None


def test_the_corpus_bleu_of_pairs_one_by_one_is_sacrebleus() -> None:
    from sacrebleu.metrics import BLEU

    random = Random(1)
    texts, sources = ([" ".join(random.choices("abcdefg", k=random.randrange(1, 9))) + " ." for _ in range(300)] for _ in range(2))
    wanted = round(BLEU(force=True).corpus_score(texts, [sources]).score / 100, 7)
    assert inverse_bleu(texts, sources) == 1 / wanted


def test_n_grams_are_counted_in_parts_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"the town of number {i % 7} lies {i % 13} miles away" for i in range(60)]
    whole = distinct(texts, 1), distinct(texts, 2)
    monkeypatch.setattr("hfcf.metrics.diversity._MERGE_SIZE", 5)
    assert (distinct(texts, 1), distinct(texts, 2)) == whole
    pairs = {pair for text in texts for pair in zip(text.split(), text.split()[1:], strict=False)}
    assert whole[1] == round(len(pairs) / (60 * 8), 5)


def test_self_bleu_is_less_for_texts_that_differ() -> None:
    same, other = ["the cat sat on the mat"] * 3, ["the cat sat on the mat", "dogs bark loudly every night", "he wrote two books"]
    assert self_bleu(same) == 1.0
    assert (self_bleu(other) or 0) < 0.2
    assert self_bleu(other) == self_bleu(other[::-1])
    assert self_bleu(["alone"]) is None


def test_self_bleu_of_many_texts_is_that_of_a_sample_which_no_order_changes() -> None:
    texts = [f"number {i * i} and {i * 7 % 11} of {i % 3} parts" for i in range(60)]
    assert self_bleu(texts, 20) == self_bleu(texts[::-1], 20)
    assert self_bleu(texts, 20) != self_bleu(texts, 30)


def test_self_bleu_is_sacrebleus_sentence_score_of_each_text_against_all_others() -> None:
    from sacrebleu.metrics import BLEU

    texts = [" ".join(f"w{i * k % 7}" for k in range(1, 4 + i % 5)) + "." * (i % 3) for i in range(12)] + ["w1 w2.", "w1 w2.", "x"]
    metric = BLEU(effective_order=True)
    scores = [metric.sentence_score(text, texts[:i] + texts[i + 1 :]).score for i, text in enumerate(texts)]
    assert _against_the_others(texts) == pytest.approx(scores, abs=1e-9)
    assert self_bleu(texts) == pytest.approx(sum(scores) / len(scores) / 100, abs=1e-5)


def test_distinct_counts_over_all_texts() -> None:
    assert distinct(["a b", "A c"], 1) == 0.75
    assert distinct(["a b", "a b"], 2) == 0.5
    assert distinct(["a"], 2) is None


@pytest.mark.parametrize(
    ("labels", "majority", "balance"),
    [
        (["a", "b", "b", "b"], 0.75, -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))),
        (["a", "b", "c"], 1 / 3, 1.0),
        (["a"], 1.0, 0.0),
    ],
)
def test_label_balance_by_hand(labels: list[str], majority: float, balance: float) -> None:
    found = label_balance(labels)
    assert (found["majority"], found["balance"]) == pytest.approx((majority, balance), abs=1e-5)


def test_a_claim_that_gives_its_label_away_is_guessed_and_one_that_does_not_is_not() -> None:
    labels = ["REFUTES" if i % 2 else "SUPPORTS" for i in range(60)]
    groups = [str(i) for i in range(60)]
    betraying = [f"Town number {i} {'did not grow' if i % 2 else 'grew'} in those years." for i in range(60)]
    silent = [f"Town number {i * 7919 % 61} grew in those years." for i in range(60)]
    assert predictability(guess(betraying, labels, groups), labels) == {
        "accuracy": 1.0, "majority": 0.5, "above_majority": 0.5, "balanced": 1.0, "above_chance": 0.5,
    }  # fmt: skip
    assert predictability(guess(silent, labels, groups), labels)["above_majority"] < 0.25


def test_a_claim_is_not_guessed_from_itself_in_another_group() -> None:
    claims = [f"{'abcdefgh'[i % 8]}{i * 7919 % 61} was {'klmnopqr'[i * i % 8]}{i * 31 % 53} here" for i in range(60)]
    labels = [("yes", "no")[int(sha256(str(i).encode()).hexdigest(), 16) % 2] for i in range(60)]
    once = predictability(guess(claims, labels, [str(i) for i in range(60)]), labels)
    often = predictability(guess(claims * 4, labels * 4, [str(i) for i in range(240)]), labels * 4)
    assert often["above_majority"] < 0.2 > once["above_majority"]


def test_claims_that_betray_a_rare_label_show_in_the_balanced_accuracy() -> None:
    labels = ["REFUTES"] * 90 + ["SUPPORTS"] * 10
    claims = [f"Town number {i} {'did not grow' if label == 'REFUTES' else 'grew'} then." for i, label in enumerate(labels)]
    found = predictability(guess(claims, labels, [str(i) for i in range(100)]), labels)
    assert found["above_majority"] < 0.15 < 0.4 < found["above_chance"]
    numbers = predictability(guess(claims, ["REFUTES"] * 100, [str(i) for i in range(100)]), ["REFUTES"] * 100)
    assert (numbers["accuracy"], numbers["balanced"], numbers["above_chance"]) == (1.0, None, None)


def test_guesses_are_trained_on_other_groups_and_follow_no_order() -> None:
    # Within a group the claim tells the label, across groups it does not.
    groups = [str(i // 2) for i in range(40)]
    claims = [f"word{i // 2} was here" for i in range(40)]
    labels = [("yes", "no")[(i // 2 * 7919) % 2] for i in range(40)]
    found = guess(claims, labels, groups)
    assert predictability(found, labels)["accuracy"] < 0.8
    assert guess(claims, labels, ["one"] * 40) == [None] * 40
    back = guess(claims[::-1], labels[::-1], groups[::-1])
    assert back[::-1] == found


def test_near_texts_are_found_and_are_near() -> None:
    index = Near(0.7)
    texts = {str(i): f"The town of number {i} lies {i * 13} miles from the Tiber in the south of the country." for i in range(40)}
    for name, text in texts.items():
        index.add(name, text)
    found = index.find("The town of number 7 lies 91 miles from the Tiber in the south of this country.")
    assert found == "7"
    assert index.find("Dogs bark at night.") is None
    assert index.find("...") is None
    assert jaccard(texts["7"], texts["7"].upper()) == 1.0


# --- rows


def test_what_a_row_changed_is_read_from_its_edits(made: Dataset) -> None:
    assert changed(made[0]) == ("Rome is a very old city.", "Oslo is a very old city.")
    assert changed(made[3]) == ("Rome was built by Romulus.", "Rome was built by Remus the brother.")
    assert changed(relation_row(1)) == ("The eggs were moved into the buckets .", "The eggs were taken out of the buckets .")
    assert changed({"claim": "c", "evidence": EVIDENCE, "edits": []}) == ("", "")


def test_the_default_metrics_of_a_set(made: Dataset) -> None:
    found = hfcf.measure(made)
    assert found.column_names == [*made.column_names, *DEFAULT]
    assert found.remove_columns(list(DEFAULT)).to_list() == made.to_list()
    assert found["minimality"][:] == [
        {"distance": 1, "share": round(1 / 7, 5), "kept": round(5 / 6, 5)}, {"distance": 4, "share": 0.8, "kept": 1.0},
        {"distance": 2, "share": 0.4, "kept": 1.0}, {"distance": 3, "share": 0.5, "kept": 0.8},
    ]  # fmt: skip
    assert found["label_balance"][:] == [0.75, 0.75, 0.25, 0.75]
    assert found["diversity"][0]["bleu"] == pytest.approx((6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25, abs=1e-4)
    assert found["diversity"][0]["inverse"] == pytest.approx(1 / found["diversity"][0]["bleu"], abs=1e-4)
    assert not any(any(verdict[kind] for kind in ("repeat", "leak", "near_leak")) for verdict in found["duplicates"])


def test_relations_are_measured_too() -> None:
    found = measure(relation(relation_row(0), relation_row(1)))
    # The, eggs, were, the and buckets of seven words.
    assert found["minimality"][0] == {"distance": 3, "share": 0.375, "kept": 0.71429}
    assert found["duplicates"][1] == {"repeat": True, "near": False, "leak": False, "near_leak": False, "of": "0:test:claim"}
    with pytest.raises(StageError, match=r"measure_coherence.*claim.*relation.*evidence"):
        measure(relation(relation_row(0)), {"coherence": None})


@pytest.mark.parametrize("name", ["minimality", "diversity", "duplicates", "label_balance", "claim_only"])
def test_every_way_to_map_gives_equal_rows(name: str, made: Dataset) -> None:
    stage = load(name, stage=True)()
    stage = stage.fit(made)
    ready = prepare(made, stage)
    wanted = measure(made, {name: None})[name][:]
    assert any(value is not None for value in wanted)
    assert ready.map(stage)[name][:] == wanted
    assert ready.map(stage, batched=True, batch_size=3)[name][:] == wanted
    assert ready.map(stage, batched=True, batch_size=2, num_proc=2)[name][:] == wanted
    assert [row[name] for row in prepare(made.to_iterable_dataset(), stage).map(stage)] == wanted
    assert pickle.loads(pickle.dumps(stage)) == stage


def test_a_published_set_has_classes_and_is_measured_all_the_same(made: Dataset) -> None:
    published = made.cast_column("label", ClassLabel(names=list(LABELS)))
    found = measure(published, {"label_balance": None, "claim_only": None})
    assert found.features["label"] == published.features["label"]
    assert found["label"][:] == published["label"][:]
    assert found["label_balance"][:] == [0.75, 0.75, 0.25, 0.75]
    assert summaries(found)["label_balance, whole set"]["after"]["majority"] == 0.75


def test_an_empty_set_gets_its_columns(made: Dataset) -> None:
    found = measure(made.select([]))
    assert len(found) == 0
    assert found.features["minimality"] == measure(made).features["minimality"]
    assert summary(found)["minimality"] == {"distance": {"n": 0}, "share": {"n": 0}, "kept": {"n": 0}}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"fluensy": None}, r"key 'fluensy'.*'fluency'"),
        ({"claim_only": {"fold": 3}}, r"metrics: claim_only.*key 'fold'.*'folds'"),
        ({"flip_rate": None}, "metrics: flip_rate: .*'verifier'"),
        ({"fluency": "gpt2"}, r"metrics: fluency.*mapping.*'gpt2'"),
        ("minimality", r"metrics.*list.*mapping.*'minimality'"),
        (3, r"metrics.*list.*mapping.*number"),
        (["minimality", "fluensy"], "unknown key 'fluensy'"),
        ({"claim_only": {"folds": 0}}, "metrics: claim_only: folds must be at least 2, got 0"),
        ({"similarity": {"n_gram": 0}}, r"metrics: similarity.*n_gram must be at least 1, got 0"),
        ({"coherence": {"n_gram": 0}}, r"metrics: coherence.*n_gram must be at least 1, got 0"),
        ({"fluency": {"model": "./not/there"}}, r"metrics: fluency.*./not/there"),
        ({"fluency": {"model": "offline:gpt5"}}, r"metrics: fluency.*'gpt5'"),
        (
            {"flip_rate": {"verifier": {"name": "me/a", "adapter": "/not/there"}}},
            r"metrics: flip_rate.*/not/there",
        ),
        ({"fluency": {"model": 5}}, "metrics: fluency: "),
        ({"fluency": {"against": {}}}, "unknown key 'against'"),
        ({"duplicates": {"against": ["dev"]}}, r"against.*mapping"),
        ({"duplicates": {"against": {"dev": "hover"}}}, r"rows.*mapping.*corpus"),
        ({"duplicates": {"against": {"dev": {"corpus": "hovr"}}}}, r"against.*'hovr'"),
        (
            {"duplicates": {"against": {"dev": {"corpus": "hover", "data_dr": "x"}}}},
            r"key 'data_dr'.*'data_dir'",
        ),
        ({"duplicates": {"against": {"dev": {"corpus": "hover", "data_dir": "/not/there"}}}}, "against: .*not/there"),
    ],
)
def test_a_wrong_metric_or_setting_is_an_error(made: Dataset, metrics: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        parse_metrics(metrics, "verification")
    with pytest.raises(RecipeError, match=message):
        measure(made, metrics)


def test_an_evaluation_set_of_another_task_is_an_error(made: Dataset) -> None:
    with pytest.raises(RecipeError, match=r"against.*dev.*relation.*verification"):
        measure(made, {"duplicates": {"against": {"dev": relation(relation_row(0))}}})


def test_metrics_may_be_a_list_and_splits_are_measured_each(made: Dataset) -> None:
    assert measure(made, ["minimality"]).to_list() == measure(made, {"minimality": None}).to_list()
    found = measure(DatasetDict(train=made, validation=made.select([2])), ["label_balance"])
    assert found["train"]["label_balance"][:] == [0.75, 0.75, 0.25, 0.75]
    assert found["validation"]["label_balance"][:] == [1.0]
    with pytest.raises(StageError, match=r"IterableDataset.*Dataset"):
        measure(made.to_iterable_dataset(), ["minimality"])


def test_a_missing_column_and_one_that_is_there_are_errors(made: Dataset) -> None:
    with pytest.raises(StageError, match=r"minimality.*column 'edits'.*hfcf\.expand"):
        measure(made.remove_columns("edits"), {"minimality": None})
    with pytest.raises(StageError, match="column 'minimality'"):
        measure(measure(made, {"minimality": None}), {"minimality": None})


def test_a_relation_is_a_label_like_another() -> None:
    rows = relation(relation_row(0), relation_row(1), {**relation_row(2), "label": "Destination"})
    assert measure(rows, {"label_balance": None})["label_balance"][:] == [0.66667, 0.66667, 0.33333]


@pytest.mark.parametrize("name", ["similarity", "coherence", "duplicates", "label_balance", "claim_only"])
def test_what_needs_the_whole_set_says_so(name: str, made: Dataset) -> None:
    stage = load(name, stage=True)()
    with pytest.raises(StageError, match=r"stage = stage\.fit\(ds\)"):
        prepare(made, stage).map(stage)


@pytest.mark.parametrize("name", ["claim_only", "duplicates"])
def test_rows_that_a_metric_was_not_fitted_to_are_refused(name: str, made: Dataset) -> None:
    stage = load(name, stage=True)().fit(made.select([0, 1]))
    with pytest.raises(StageError, match=r"fitted.*'2:test:claim'"):
        prepare(made, stage).map(stage)


def test_a_label_that_label_balance_was_not_fitted_to_is_refused(made: Dataset) -> None:
    stage = load("label_balance", stage=True)().fit(made.select([0, 1]))
    with pytest.raises(StageError, match=r"fitted.*label 'SUPPORTS'"):
        prepare(made, stage).map(stage, batched=True)


@pytest.mark.parametrize("name", ["claim_only", "duplicates"])
def test_an_id_that_is_there_twice_is_an_error(name: str, made: Dataset) -> None:
    with pytest.raises(StageError, match=r"4 ids.*'0:test:claim'"):
        measure(concatenate_datasets([made, made]), [name])


@pytest.mark.parametrize(("name", "column"), [("claim_only", "group_id"), ("duplicates", "change")])
def test_a_column_that_only_a_fit_reads_is_named(name: str, column: str, made: Dataset) -> None:
    with pytest.raises(StageError, match=rf"measure_{name}.*column '{column}'"):
        measure(made.remove_columns(column), [name])


@pytest.mark.parametrize("name", ["claim_only", "label_balance"])
def test_a_fit_to_classes_says_what_names_them(name: str, made: Dataset) -> None:
    published = made.cast_column("label", ClassLabel(names=list(LABELS)))
    with pytest.raises(StageError, match=r"column 'label'.*numbers.*hfcf\.measure\(ds\)"):
        load(name, stage=True)().fit(published)


def test_what_was_fitted_is_read_once(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [load(name, stage=True)().fit(made) for name in ("claim_only", "duplicates", "label_balance")]
    read: list[str] = []
    ours = metric.read_artifact
    monkeypatch.setattr(metric, "read_artifact", lambda sha, cure: read.append(sha) or ours(sha, cure))
    for stage in stages:
        prepare(made, stage).map(stage)
    assert sorted(read) == sorted(stage.fitted for stage in stages)


# --- duplicates and leaks


def test_repeats_and_near_repeats_are_of_earlier_rows() -> None:
    long = "The old town of Rome lies on the river Tiber in the middle of Italy, and it has many visitors"
    ds = verification(
        claim_row(0, "x", f"{long}."), claim_row(1, "y", f"{long.upper()}!"), claim_row(2, "z", f"{long} now."), evidence_row(3),
    )  # fmt: skip
    assert duplicates(ds) == {"1:test:claim": {"repeat": "0:test:claim"}, "2:test:claim": {"near": "0:test:claim"}}
    assert duplicates(ds.select([2, 0])) == {"0:test:claim": {"near": "2:test:claim"}}


def test_a_claim_its_evidence_and_its_source_do_not_repeat_one_another() -> None:
    # Of one source: (c′, E) and (c, E′), which share nearly all of their words by design.
    source = "Romulus built Rome."
    assert duplicates(verification(claim_row(3, source, "Romulus did not build Rome."), evidence_row(3))) == {}


def test_leaks_are_of_the_claim_or_the_evidence_and_near_ones_of_the_claim(made: Dataset) -> None:
    elsewhere = [{"title": "", "text": "Nothing of the kind."}]
    dev = verification(
        {**claim_row(7, "", "oslo is a very old city"), "evidence": elsewhere, "id": "d1"},
        {**claim_row(8, "", "Dogs never bark at night or by days."), "evidence": elsewhere, "id": "d2"},
    )
    assert duplicates(made, {"dev": dev}) == {"0:test:claim": {"leak": "dev: d1"}, "1:test:claim": {"near_leak": "dev: d2"}}
    found = measure(made, {"duplicates": {"against": {"dev": dev}}})
    assert found["duplicates"][0] == {"repeat": False, "near": False, "leak": True, "near_leak": False, "of": "dev: d1"}
    assert summary(found)["duplicates"]["leak"] == {"n": 4, "yes": 1, "share": 0.25}


def long(tail: str = "") -> str:
    return f"The old town of Rome lies on the river Tiber in the middle of Italy and it has many visitors{tail}"


def test_one_index_is_made_for_each_kind_of_change(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[float] = []
    init = Near.__init__
    monkeypatch.setattr(Near, "__init__", lambda self, threshold: made_of.append(threshold) or init(self, threshold))
    duplicates(made)
    assert len(made_of) == 3  # "claim", "evidence", and that of the evaluation sets


def test_near_is_the_nearest_row_that_is_near_none_itself() -> None:
    chain = [
        claim_row(0, "x", long()),
        claim_row(1, "y", long(" each year now")),
        claim_row(2, "z", long(" each year now and then")),
    ]
    texts = [row["claim"] for row in chain]
    assert jaccard(texts[0], texts[1]) > 0.8 < jaccard(texts[1], texts[2])
    assert jaccard(texts[0], texts[2]) < 0.8
    assert duplicates(verification(*chain)) == {"1:test:claim": {"near": "0:test:claim"}}


def test_most_near_texts_are_found() -> None:
    random, index, near = Random(0), Near(0.8), []
    for i in range(200):
        words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(18)]
        index.add(str(i), text := " ".join(words))
        words[random.randrange(18)] = "other"
        other = " ".join(words)
        near += [(str(i), other)] if jaccard(text, other) >= 0.8 else []
    assert len(near) > 150
    assert sum(index.find(text) == name for name, text in near) / len(near) > 0.8


def test_bands_find_what_datasketch_finds_in_a_few_bytes() -> None:
    from datasketch import MinHash, MinHashLSH

    random = Random(2)
    texts = ["".join(random.choices("abcd", k=30)) for _ in range(2500)]
    texts = [text if i % 5 else texts[i // 2][:-3] + "xyz" for i, text in enumerate(texts)]
    index = MinHashLSH(threshold=0.5, num_perm=128)
    bands = Bands(index.b, index.r)
    signatures = [MinHash(num_perm=128, seed=1) for _ in texts]
    for i, (text, signature) in enumerate(zip(texts, signatures, strict=True)):
        signature.update_batch([text[j : j + 4].encode() for j in range(27)])
        index.insert(i, signature)
        bands.add(signature.hashvalues)
    found = [bands.find(signature.hashvalues) for signature in signatures]
    assert found == [set(index.query(signature)) for signature in signatures]
    assert max(map(len, found)) > 1
    held = sum(array.nbytes for array in vars(bands).values() if isinstance(array, np.ndarray))
    assert held < 12 * index.b * 4096 + 10_000, "three numbers for each band of 4,096 texts"


def test_a_threshold_of_one_finds_equal_texts_alone() -> None:
    index = Near(1.0)
    index.add("first", long())
    assert (index.find(long("!").upper()), index.find(long(" now"))) == ("first", None)


@pytest.mark.parametrize(
    ("first", "other"),
    [("Its GDP grew by 1.5 %.", "Its GDP grew by 15 %."), ("यह नारी है", "यह नर है"), ("He is résumé.", "He is resume.")],
)
def test_what_means_something_else_is_no_repeat(first: str, other: str) -> None:
    rows = verification(claim_row(0, "x", first), claim_row(1, "y", other))
    assert not any("repeat" in its for its in duplicates(rows).values())


def test_a_title_tells_rows_apart_and_hides_no_leak() -> None:
    rows = [
        {**claim_row(i, "It was so.", "It is so."), "evidence": [{"title": title, "text": "It is old."}]}
        for i, title in enumerate(("Rome", "Oslo"))
    ]
    dev = verification({**claim_row(7, "", "Something else."), "evidence": [{"title": "", "text": "It is old."}], "id": "d"})
    found = duplicates(verification(*rows), {"dev": dev})
    assert found == {"0:test:claim": {"leak": "dev: d"}, "1:test:claim": {"near": "0:test:claim", "leak": "dev: d"}}


# --- rows that are none


def test_bad_rows_are_null_and_the_others_are_scored(made: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    corrected = {**made[1], "claim": "Someone corrected this by hand."}
    rows = [dict(made[0]), corrected, {**made[2], "claim": None}, {**made[3], "edits": None}]
    found = measure(Dataset.from_list(rows, features=made.features), ["minimality", "diversity", "duplicates"])
    for name in ("minimality", "diversity", "duplicates"):
        assert [row is None for row in found[name]] == [False, True, True, True]
    assert "3 of 4 rows could not be scored; the first: its edits do not lead back to a source" in caplog.text
    assert summaries(found)["diversity, whole set"]["after"]["distinct_1"] == 1.0
    assert list(found["id"]) == list(made["id"])


def test_a_row_without_a_label_has_no_share(made: Dataset) -> None:
    rows = Dataset.from_list([dict(made[0]), {**made[1], "label": None}, dict(made[2])], features=made.features)
    found = measure(rows, ["label_balance", "claim_only"])
    assert found["label_balance"][:] == [0.5, None, 0.5]
    assert found["claim_only"][1] is None
    assert summaries(found)["label_balance, whole set"]["after"] == {"majority": 0.5, "balance": 1.0, "labels": 2}
    names = ClassLabel(names=list(LABELS))
    published = Dataset.from_list(
        [{**row, "label": -1 if row["label"] is None else names.str2int(row["label"])} for row in rows],
        features=Features({**made.features, "label": names}),
    )
    assert measure(published, ["label_balance"])["label_balance"][:] == [0.5, None, 0.5]


def test_a_title_that_changed_along_with_its_text_stands_before_it() -> None:
    source = {"claim": "c is here", "evidence": [{"title": "Rome", "text": "Rome is old."}, {"title": "Rome", "text": "It is."}]}
    titles = [{"field": "evidence.title", "piece": i, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"} for i in (0, 1)]
    change = [{**titles[0], "field": "evidence"}, *titles]
    row = {**apply_edits(source, change), "edits": change}
    assert changed(row) == ("Rome: Rome is old. Rome", "Oslo: Oslo is old. Oslo")


def test_white_space_is_no_word_and_marks_are_part_of_theirs() -> None:
    assert minimality("Rome is old. ", "Rome is old.\n")["distance"] == 0
    assert minimality("Rome is old.\n", "Oslo is old.") == {"distance": 1, "share": 0.25, "kept": 0.66667}
    assert edits.words("यह नारी है") == ["यह", " नारी", " है"]
    assert edits.words("cafe\u0301 old ") == ["cafe\u0301", " old", " "]
    assert distinct(["a b \n"], 1) == 1.0
    assert distinct(["a a "], 1) == 0.5


# --- what a run says


def test_a_summary_by_hand() -> None:
    values = [float(i) for i in range(1, 101)]
    found = summary(Dataset.from_dict({"fluency": [*values, None]}))["fluency"]
    edges, counts = (
        found.pop("histogram")["edges"],
        summary(Dataset.from_dict({"fluency": values}))["fluency"]["histogram"]["counts"],
    )
    assert found == {"n": 100, "null": 1, "mean": 50.5, "median": 50.5, "q1": 25.75, "q3": 75.25, "min": 1.0, "max": 100.0}
    assert (len(edges), sum(counts), edges[0], edges[-1]) == (31, 100, 1.0, 100.0)


def test_a_long_tail_does_not_squeeze_the_histogram() -> None:
    found = summary(Dataset.from_dict({"fluency": [*(float(i % 50) for i in range(400)), 1e6]}))["fluency"]
    assert found["histogram"]["edges"][-1] < 100
    assert sum(found["histogram"]["counts"]) == found["n"] == 401
    assert found["max"] == 1e6


def test_before_filtering_there_are_the_rejected_candidates_too(made: Dataset) -> None:
    source = {"id": "9", "claim": "Rome is old.", "evidence": EVIDENCE, "label": "SUPPORTS"}
    candidate = {"claim": "Oslo was new.", "label": "REFUTES", "change": "claim", "scores": []}
    sound = {**candidate, "edits": edits.rewrite("claim", "Rome is old.", "Oslo was new.")}
    unsound = {**candidate, "edits": edits.rewrite("claim", "another claim", "Oslo was new.")}
    common = {"source_id": "9", "group_id": "9", "system": "test", "stage": "check", "reason": "no", "source": source}
    rejected = Dataset.from_list(
        [
            {**common, "level": "row", "candidate": None},
            {**common, "level": "candidate", "candidate": sound},
            {**common, "level": "candidate", "candidate": unsound},
        ]
    )
    assert candidates(rejected)["claim"][:] == ["Oslo was new."]
    measured = measure(made)
    before = measure_candidates(measured, rejected)
    assert before.column_names == ["claim", "evidence", "edits", "minimality", "diversity", "copy_rate", "multi_hop"]
    assert before["minimality"][:] == [*measured["minimality"], {"distance": 3, "share": 0.75, "kept": 0.0}]
    told = summaries(measured, before)
    assert (told["minimality"]["before"]["share"]["n"], told["minimality"]["after"]["share"]["n"]) == (5, 4)
    assert "before" not in told["label_balance"]
    assert told["diversity, whole set"]["before"]["distinct_1"] != told["diversity, whole set"]["after"]["distinct_1"]
    assert told["diversity, whole set"]["after"] == diversity(*reversed(list(zip(*map(changed, made), strict=True))))  # type: ignore[arg-type]
    json.dumps(told)


def test_candidates_have_any_format_and_follow_new_code(made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = {"claim": "…", "label": "REFUTES", "change": "claim", "scores": [], "edits": made[0]["edits"]}
    source = {**revert_edits(made[0], made[0]["edits"]), "id": "0", "label": "SUPPORTS"}
    Dataset.from_list([{"level": "candidate", "source": source, "candidate": candidate}]).save_to_disk(tmp_path)
    for form in (None, "pandas", "arrow", "numpy"):
        assert candidates(load_from_disk(tmp_path).with_format(form))["label"][:] == [made[0]["label"]]
    row = Task.counterfactual_row
    monkeypatch.setattr(Task, "counterfactual_row", lambda *args, **kwargs: row(*args, **kwargs) | {"label": "changed"})
    assert candidates(load_from_disk(tmp_path))["label"][:] == ["changed"]


def test_candidates_of_many_batches_are_all_there(made: Dataset) -> None:
    candidate = {"claim": "…", "label": "REFUTES", "change": "claim", "scores": [], "edits": made[0]["edits"]}
    source = {**revert_edits(made[0], made[0]["edits"]), "id": "0", "label": "SUPPORTS"}
    rows = [
        {"level": "row" if i % 3 else "candidate", "source": source, "candidate": None if i % 3 else candidate} for i in range(2500)
    ]
    found = candidates(Dataset.from_list(rows))
    assert len(found) == len(set(found["id"])) == 834
    assert set(found["claim"]) == {made[0]["claim"]}
    assert candidates(Dataset.from_list(rows[1:3])).column_names == found.column_names


def test_relation_candidates_are_read_back() -> None:
    row = relation_row(4)
    source = {**revert_edits(row, row["edits"]), "id": "4", "label": "Destination"}
    candidate = {"text": "…", "label": "Origin", "change": "relation", "scores": [], "edits": row["edits"]}
    rejected = [{"level": "candidate", "source": source, "candidate": candidate}]
    found = candidates(Dataset.from_list(rejected))
    assert found["tokens"][0] == row["tokens"]
    assert measure(found, {"minimality": None})["minimality"][0]["distance"] == 3


# --- as evaluate has them


def test_every_metric_loads_by_its_path_without_a_network() -> None:
    import evaluate

    path = str(Path(hfcf.__file__).parent / "metrics" / "shared" / "evaluate_metric.py")
    for name in names():
        metric, ours = evaluate.load(path, name), load(name)
        assert metric.description == ours.description != ""
        assert metric.citation == ours.citation
    loaded = evaluate.load(path, "minimality")
    given: dict[str, Any] = {"predictions": ["Oslo is old.", "a b"], "references": ["Rome is old.", "a b"]}
    assert loaded.compute(**given) == load("minimality").compute(**given)
    assert loaded.compute(**given)["share"] == 0.125


def test_metrics_over_lists() -> None:
    texts, labels = ["Oslo is a very old city."], ["REFUTES", "SUPPORTS", "REFUTES"]
    assert load("diversity").compute(predictions=texts, references=texts)["inverse_bleu"] == pytest.approx(1.0, abs=1e-6)
    assert load("label_balance").compute(predictions=labels)["majority"] == pytest.approx(2 / 3, abs=1e-5)
    assert load("flip_rate").compute(predictions=labels, references=["REFUTES"] * 3) == {"flip_rate": pytest.approx(2 / 3)}
    given: dict[str, Any] = {"predictions": ["a", None], "references": ["a", "b"]}
    assert load("flip_rate").compute(**given) == {"flip_rate": 1.0}  # what was not read is no answer, as in the stage's column
    assert load("duplicates").compute(predictions=[]) == dict.fromkeys(("repeat", "near", "leak", "near_leak"))
    found = load("duplicates").compute(predictions=[*texts, "OSLO IS a very old city"], against=["oslo is a very old city?"])
    assert found == {"repeat": 0.5, "near": 0.0, "leak": 1.0, "near_leak": 0.0}
    claims = [f"Town {i} {'did not grow' if i % 2 else 'grew'}." for i in range(40)]
    assert load("claim_only").compute(predictions=claims, references=["no", "yes"] * 20)["accuracy"] == 1.0


def test_a_name_that_is_no_metric_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'fluencey'.*minimality"):
        load("fluencey")
    with pytest.raises(AttributeError, match="no attribute 'Fluensy'"):
        _ = hfcf.metrics.Fluensy
    assert set(Features(dict.fromkeys(names(), schema.FLOAT))) == set(names())


# --- a metric of one's own


def longer(text: str, source: str) -> bool:
    return len(text) > len(source)


def words_less(text, source):  # type: ignore[no-untyped-def]
    return None if not source else len(source.split()) - len(text.split())


@dataclass(frozen=True, kw_only=True)
class MeasureMarks(hfcf.Metric):
    """Count a mark in the changed text."""

    better: ClassVar = "less"
    outputs: ClassVar = {"marks": schema.INT}

    mark: str = "!"

    def score(self, prediction: str, reference: str) -> int:
        return prediction.count(self.mark)


def test_functions_and_classes_of_ones_own_are_measured(made: Dataset) -> None:
    unchanged = Dataset.from_list([*made, {**made[0], "edits": []}], features=made.features)
    found = measure(unchanged, ["minimality", longer, words_less, MeasureMarks(mark="."), hfcf.metrics.MeasureDiversity])
    assert found["longer"][:] == [False, True, False, True, None]
    assert found["words_less"][:] == [0.0, -4.0, 0.0, -2.0, None]
    assert found["marks"][:] == [1, 1, 1, 1, 0]
    assert {"minimality", "diversity"} <= set(found.column_names)
    assert measure(relation(relation_row(0)), [MeasureMarks])["marks"][:] == [0]
    with pytest.raises(RecipeError, match="unknown key 'longr'"):
        measure(made, ["longr"])
    with pytest.raises(ValueError, match="'<lambda>': write it with def"):
        measure(made, [lambda text, source: 1])

    def of_a_row(row: dict[str, Any]) -> int:
        return len(row)

    with pytest.raises(ValueError, match="of_a_row must take two texts"):
        measure(made, [of_a_row])

    def listed(text: str, source: str) -> list[str]:
        return [text]

    with pytest.raises(ValueError, match=r"listed must return a number, a verdict or a text, got -> list\[str\]"):
        measure(made, [listed])

    def plain(text, source):  # type: ignore[no-untyped-def]
        return text

    with pytest.raises(ValueError, match=r"plain returned the text .*: annotate what it returns, -> str"):
        measure(made, [plain])


def test_an_edited_function_is_not_answered_by_the_cache(made: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.save_to_disk(tmp_path / "made")
    monkeypatch.syspath_prepend(tmp_path)
    for points in (1.0, 2.0):
        (tmp_path / "edited_metric.py").write_text(f"def edited(text, source):\n    return {points}\n", encoding="utf-8")
        sys.modules.pop("edited_metric", None)
        invalidate_caches()
        edited = import_module("edited_metric").edited
        assert set(measure(load_from_disk(tmp_path / "made"), [edited])["edited"]) == {points}


@pytest.mark.parametrize(
    ("metric", "setting", "what"), [("grammar", "model", "trained on acceptability"), ("flip_rate", "verifier", "a reader")]
)
def test_a_metric_says_which_setting_it_wants_and_the_line_to_type(made: Dataset, metric: str, setting: str, what: str) -> None:
    line = f'Type measure(cf, {{"{metric}": {{"{setting}": …}}}}), or in a recipe metrics: {{{metric}: {{{setting}: …}}}}'
    with pytest.raises(RecipeError, match=f"metrics: {metric}: the setting '{setting}' is missing, .*{what}.* {re.escape(line)}"):
        measure(made, [metric])


@pytest.mark.parametrize("name", ["fluency", "similarity", "coherence"])
def test_a_metric_whose_model_is_not_there_names_no_preset(made: Dataset, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, where: str) -> None:
        raise NotCached(f"{where}: offline mode is on")

    monkeypatch.setattr("hfcf.core.model_checks.check_hub_id", absent)
    with pytest.raises(RecipeError, match="offline mode is on") as caught:
        measure(made, [name])
    assert "preset" not in str(caught.value)
    assert f'measure(cf, {{"{name}": {{"model": …}}}})' in str(caught.value)


def test_a_mapping_takes_a_function_by_the_name_of_its_column(made: Dataset) -> None:
    assert measure(made, {"longer": longer, "minimality": None}).column_names[-2:] == ["longer", "minimality"]
    with pytest.raises(RecipeError, match="metrics: size: this metric fills the column 'longer': call it so"):
        measure(made, {"size": longer})


def test_a_metric_of_another_package_is_known_to_recipes(made: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    points = (("longer", f"{__name__}:longer"), ("marks", f"{__name__}:MeasureMarks"))
    monkeypatch.setattr(plugins, "_entry_points", lambda group, path: points if group == "hfcf.metrics" else ())
    stages = parse_metrics({"marks": {"mark": "?"}, "longer": None, "minimality": None}, "verification")
    assert parse_metrics(stages, "verification") == stages
    found = measure(made, stages)
    assert found["marks"][:] == [0, 0, 0, 0]
    told = summaries(found, metrics=stages)
    assert told["longer"]["after"] == {"n": 4, "yes": 2, "share": 0.5}
    assert load("marks").compute(predictions=["a!"], references=["a"])["marks"] == 1
    assert load("longer").compute(predictions=["ab"], references=["a"])["longer"] == 1
    with pytest.raises(RecipeError, match=r"metrics: marks: unknown key 'marc'.*'mark'"):
        parse_metrics({"marks": {"marc": "?"}}, "verification")
