from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import tiny_relation
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.engines.intervention import Intervention
from hfcf.engines.masked import MaskFiller
from hfcf.engines.parser import Constituents
from hfcf.systems.ccg import identify
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.tasks.relation import OTHER, between, context

BAD = {
    "the relation is Other": tiny_relation.row("[eggs] in {buckets}", OTHER),
    "one entity lies inside the other": {
        **tiny_relation.row("[eggs] in {buckets}"), "tail": {"start": 0, "end": 2, "type": None}, "head": {"start": 0, "end": 1},
    },
    "the entities overlap": {
        **tiny_relation.row("[eggs] in {buckets} here"), "tail": {"start": 1, "end": 3}, "head": {"start": 0, "end": 2},
    },
    "there is no word that could be masked": tiny_relation.row("[eggs] , {buckets}"),
    "the sentence is longer than the 40 pieces that the indicator reads": tiny_relation.row("[eggs] " + "in " * 40 + "{buckets}"),
}  # fmt: skip
NOTHING = "no word changes the indicator's prediction"


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")


@pytest.fixture(scope="module")
def indicator(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(tiny_relation.rbert(tmp_path_factory.mktemp("rbert")))


@pytest.fixture
def stage(indicator: Model, tiny_model: Callable[[str], str]) -> IdentifyCausalTerms:
    return IdentifyCausalTerms(masked=Model(tiny_model("mlm")), indicator=indicator, top=10, parser=None, max_length=40)


def filled(stage: IdentifyCausalTerms, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, mapped."""
    common = {"group_id": "g", "corpus": "c", "split": "train"}
    span = {"start": 0, "end": 0, "type": None}
    full = [{**row, **common, "id": str(i), **{k: {**span, **row[k]} for k in ("head", "tail")}} for i, row in enumerate(rows)]
    ds = hfcf.prepare(Dataset.from_list(full, features=get_task("relation").features), stage)
    mapped = ds.map(stage, batched=True, batch_size=4)
    assert mapped["id"] == [row["id"] for row in full]
    return list(mapped)


def rows() -> list[dict[str, Any]]:
    return [tiny_relation.row(text) for text in tiny_relation.SENTENCES]


def unlabelled() -> list[list[Any]]:
    return [[row["tokens"], *([row[name]["start"], row[name]["end"]] for name in ("head", "tail")), None] for row in rows()]


def fills_of(stage: IdentifyCausalTerms, row: dict[str, Any], word: int) -> list[str]:
    text = " ".join(row["tokens"])
    start = len(" ".join([*row["tokens"][:word], ""]))
    assert stage.masked is not None
    engine = MaskFiller(model=stage.masked, top=stage.top, max_length=stage.max_length)
    [[found]] = engine.run([[text, [[start, start + len(row["tokens"][word])]]]])
    return [fill for fill, _ in found]


def test_the_terms_are_the_words_between_that_flip(stage: IdentifyCausalTerms) -> None:
    mapped = filled(stage, rows())
    flips = 0
    for row, made in zip(rows(), mapped, strict=True):
        words = [i for i in between(row) if row["tokens"][i] != ","]
        request = [row["tokens"], *([row[name]["start"], row[name]["end"]] for name in ("head", "tail"))]
        assert stage.indicator is not None
        engine = Intervention(indicator=stage.indicator, max_length=40)
        [expected] = engine.run([[*request, [[word, fills_of(stage, row, word)] for word in words]]])
        flips += len(expected)
        if expected:
            assert made["preliminary_terms"] == made["causal_terms"] == expected
            assert made["status"] is None
        else:
            assert made["preliminary_terms"] is None
            assert made["status"] == {"accepted": False, "stage": "identify_causal_terms", "reason": NOTHING}
    assert flips > 3


def test_bad_rows_are_rejected_with_their_reason_in_place(stage: IdentifyCausalTerms) -> None:
    mixed = [row for pair in zip(rows(), BAD.values(), strict=False) for row in pair]
    mapped = filled(stage, mixed)
    assert [row["status"]["reason"] for row in mapped[1::2]] == list(BAD)
    assert mapped[::2] == [{**row, "id": str(2 * i)} for i, row in enumerate(filled(stage, rows()[: len(BAD)]))]


def test_rows_in_which_no_word_flips_may_stay(stage: IdentifyCausalTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Intervention, "run", lambda self, requests: [[] for _ in requests])
    source = tiny_relation.row("the [eggs] were moved , slowly into {buckets} .")
    (rejected,) = filled(stage, [source])
    assert rejected["status"]["reason"] == NOTHING
    (kept,) = filled(replace(stage, unflipped=True), [source])
    assert (kept["preliminary_terms"], kept["causal_terms"], kept["status"]) == ([], [2, 3, 5, 6], None)
    (bad,) = filled(replace(stage, unflipped=True), [tiny_relation.row("[eggs] in {buckets}", OTHER)])
    assert bad["status"]["reason"] == "the relation is Other"


def test_punctuation_is_no_word(stage: IdentifyCausalTerms) -> None:
    row = tiny_relation.row("the [film] , -- which 's a {hit}")
    assert [row["tokens"][i] for i in stage.maskable(row)] == ["which", "'s", "a"]


def test_words_of_the_whole_context_can_be_masked(stage: IdentifyCausalTerms) -> None:
    wide = replace(stage, words="context")
    mapped = filled(wide, rows())
    found = [set(row["preliminary_terms"] or ()) for row in mapped]
    assert all(terms <= set(context(row)) for terms, row in zip(found, rows(), strict=True))
    narrow = [set(row["preliminary_terms"] or ()) for row in filled(stage, rows())]
    assert [terms & set(between(row)) for terms, row in zip(found, rows(), strict=True)] == narrow
    assert any(terms - set(between(row)) for terms, row in zip(found, rows(), strict=True))


# --- the parser


class Trees:
    """What answers for a parser, with one tree, and keeps what it was asked."""

    def __init__(self, tree: list[Any]) -> None:
        self.tree = tree
        self.asked: list[list[str]] = []

    def __call__(self, requests: list[list[str]]) -> list[list[Any]]:
        self.asked = requests
        return [self.tree for _ in requests]


@pytest.mark.parametrize("words", ["between", "context"])
def test_the_part_that_is_parsed_and_what_it_adds(stage: IdentifyCausalTerms, monkeypatch: pytest.MonkeyPatch, words: Any) -> None:
    row = tiny_relation.row("once the [film] was , made by an {American} director")
    monkeypatch.setattr(IdentifyCausalTerms, "_preliminary", lambda self, rows: [[5]])  # "made"
    part = list(range(2, 9)) if words == "between" else list(range(10))
    tags = {1: "VB", 2: "VBN", 3: "VBD", 4: "IN", 5: "VBN", 6: "IN", 8: "IN", 9: "IN"}  # of some no tagger would say so
    trees = Trees(["ROOT", ["S", ["VP", *([tags.get(i, "NN"), i - part[0]] for i in part)]]])
    monkeypatch.setattr(Constituents, "run", lambda engine, requests: trees(requests))
    full = IdentifyCausalTerms(masked=stage.masked, indicator=stage.indicator, words=words)
    [made] = filled(full, [row])
    assert trees.asked == [[row["tokens"][i] for i in part]]
    assert made["preliminary_terms"] == [5]
    assert made["causal_terms"] == ([3, 5, 6] if words == "between" else [1, 3, 5, 6, 9])


def test_the_real_parser_corrects(stage: IdentifyCausalTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed("spacy"):
        pytest.skip("the offline spaCy pipeline is not installed")
    row = tiny_relation.row("We know that the [fire] was caused by the {storm} .")
    monkeypatch.setattr(IdentifyCausalTerms, "_preliminary", lambda self, rows: [[7]])  # "by"
    parser = Constituents(backend="spacy", model=Model("offline:spacy"))
    [made] = filled(IdentifyCausalTerms(masked=stage.masked, indicator=stage.indicator, parser=parser), [row])
    assert [row["tokens"][i] for i in made["causal_terms"]] == ["caused", "by"]


# --- gradients, the ablation without interventions


def test_the_gradient_s_words_are_the_highest_between(indicator: Model) -> None:
    stage = IdentifyCausalTerms(indicator=indicator, parser=None, method="gradient", max_length=40)
    mapped = filled(stage, rows())
    engine = WordGradients(indicator=indicator, max_length=40)
    for row, weights, made in zip(rows(), engine.run(unlabelled()), mapped, strict=True):
        assert len(weights) == len(row["tokens"])
        assert made["preliminary_terms"] == highest(weights, stage.maskable(row))
        assert 1 <= len(made["preliminary_terms"]) <= max(1, round(0.3 * len(stage.maskable(row))))


def test_gradients_do_not_hang_on_the_batch(indicator: Model, no_request_cache: None) -> None:
    asked = [[*request[:3], label] for request in unlabelled() for label in (None, "PHYS")]
    engine = WordGradients(indicator=indicator)
    together = engine.run(asked)
    for item, request in zip(together, asked, strict=True):
        assert item == pytest.approx(engine.run([request])[0], abs=1e-4)
    assert together[0] != together[1]


def test_gradients_of_long_sentences_and_unknown_labels(indicator: Model) -> None:
    tokens = ["eggs", *["in"] * 60, "buckets"]
    assert WordGradients(indicator=indicator).run([[tokens, [0, 1], [61, 62], None]]) == [None]
    with pytest.raises(ValueError, match="label 'in'"):
        WordGradients(indicator=indicator).run([[tokens[:3], [0, 1], [2, 3], "in"]])


def test_the_highest_words_are_a_share_above_a_floor() -> None:
    weights = [1.0, 0.5, 0.2, 0.1, 0.14, 0.5, 0.3]
    assert highest(weights, range(1, 7), share=0.5) == [1, 5, 6]
    assert highest(weights, range(1, 7), share=1.0) == [1, 2, 5, 6]
    assert highest(weights, range(1, 7)) == [1, 5]
    assert highest(weights, [3]) == [3]
    assert highest([0.0, 0.0], [0, 1]) == [0]
    assert highest(weights, []) == []


# --- settings


def test_without_an_indicator_it_says_what_to_do() -> None:
    with pytest.raises(StageError, match=r"identify_causal_terms .*not fitted.*identify_causal_terms\.fit\(ds\)"):
        IdentifyCausalTerms()({"id": "1"})


@pytest.mark.parametrize(("name", "value"), [("words", "all"), ("method", "gradients"), ("top", 0), ("patience", 0)])
def test_wrong_settings_are_errors(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        IdentifyCausalTerms(**{name: value})


def test_places_in_the_text() -> None:
    assert [identify._span(["eggs", "in", "buckets"], i) for i in range(3)] == [[0, 4], [5, 7], [8, 15]]
