"""The metrics that need no model, what `measure` makes of them, and what a run says of their columns."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features
from made_rows import EVIDENCE, claim_row, evidence_row, relation, relation_row, verification

import hfcf
from hfcf.core import edits
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.core.task import apply_edits, revert_edits
from hfcf.metrics import load
from hfcf.metrics.claim_only import guess, predictability
from hfcf.metrics.diversity import distinct, diversity, inverse_bleu, self_bleu
from hfcf.metrics.duplicates import Near, duplicates, jaccard
from hfcf.metrics.label_balance import label_balance
from hfcf.metrics.minimality import minimality
from hfcf.metrics.shared.measure import candidates, measure, measure_candidates
from hfcf.metrics.shared.parsing import DEFAULT
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


def test_an_evaluation_set_of_another_task_is_an_error(made: Dataset) -> None:
    with pytest.raises(RecipeError):
        measure(made, {"duplicates": {"against": {"dev": relation(relation_row(0))}}})


def test_metrics_may_be_a_list_and_splits_are_measured_each(made: Dataset) -> None:
    assert measure(made, ["minimality"]).to_list() == measure(made, {"minimality": None}).to_list()
    found = measure(DatasetDict(train=made, validation=made.select([2])), ["label_balance"])
    assert found["train"]["label_balance"][:] == [0.75, 0.75, 0.25, 0.75]
    assert found["validation"]["label_balance"][:] == [1.0]
    with pytest.raises(StageError):
        measure(made.to_iterable_dataset(), ["minimality"])


def test_a_missing_column_and_one_that_is_there_are_errors(made: Dataset) -> None:
    with pytest.raises(StageError, match="'edits'"):
        measure(made.remove_columns("edits"), {"minimality": None})
    with pytest.raises(StageError, match="'minimality'"):
        measure(measure(made, {"minimality": None}), {"minimality": None})


def test_a_relation_is_a_label_like_another() -> None:
    rows = relation(relation_row(0), relation_row(1), {**relation_row(2), "label": "Destination"})
    assert measure(rows, {"label_balance": None})["label_balance"][:] == [0.66667, 0.66667, 0.33333]


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
