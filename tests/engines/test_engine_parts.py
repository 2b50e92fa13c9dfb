"""Small functions of the engines, each with the cases that no test of an engine has."""

from __future__ import annotations

import math
import threading
import time

import pytest
import torch

from hfcf.core.model import Model
from hfcf.engines.answers import find_fault, object_schema, schema_validator, token_probabilities
from hfcf.engines.attribution import words_of
from hfcf.engines.classifier_spec import rename_classes, write_model
from hfcf.engines.cure import OUTSIDE, is_open, membership, not_shut, spread
from hfcf.engines.entity_types import head_noun, may_be_person
from hfcf.engines.label_preserving import content_words
from hfcf.engines.llm_backend import ask, drop_repeats, failure
from hfcf.engines.markers import parse_markers
from hfcf.engines.ner import clean
from hfcf.engines.open_reader import priors
from hfcf.engines.rbert_fast import read_places
from hfcf.engines.remote.endpoint import Limiter, is_transient, read_complaint, retry_after
from hfcf.engines.verifier_inputs import parse_inputs


def test_words_take_all_tokens_without_white_space_between():
    assert words_of([None, (0, 4), (4, 5), (6, 8)], "Rome, is") == [(0, 5, [1, 2]), (6, 8, [3])]


def test_gates_know_which_piece_a_token_belongs_to():
    assert membership(torch.tensor([[OUTSIDE, 0, 1, 1]])).tolist() == [[[0, 0], [1, 0], [0, 1], [0, 1]]]
    assert spread(torch.tensor([[0.25, 0.5]]), torch.tensor([[OUTSIDE, 0, 1]])).tolist() == [[1.0, 0.25, 0.5]]
    assert (round(float(not_shut(torch.tensor(0.0))), 3), float(is_open(torch.tensor(0.0)))) == (0.832, 0.5)


def test_inputs_of_verifiers():
    assert not parse_inputs("evidence-claim").claim_first
    assert parse_inputs("Claim: {claim} [SEP] {evidence}").around == ("Claim: ", " [SEP] ", "")
    for wrong in ("{claim} then {premise}", "{claim} {claim} {evidence}", "text-claim"):
        with pytest.raises(ValueError, match="inputs must be") as error:
            parse_inputs(wrong)
        assert wrong in str(error.value)


def test_names_of_classes():
    named = rename_classes(Model("m", labels={"cause": "Cause-Effect(e1,e2)"}), ["cause", "Other"])
    assert named == ("Cause-Effect(e1,e2)", "Other")
    assert write_model(Model("m"), {"0": "?"}, "claim-evidence") == 'Model("m", labels={"0": "?"}, inputs="claim-evidence")'


def test_markers_of_entities():
    words = ["The", "film", "of", "a", "director"]
    assert parse_markers("semeval").render(words, [1, 2], [4, 5]) == "The <e1>film</e1> of a <e2>director</e2>"
    masked = parse_markers("tacred-masks").render(["Ada", "King", "met", "Bob"], [0, 2, "PERSON"], [3, 4, "PERSON"])
    assert masked == "SUBJ-PERSON met OBJ-PERSON"
    assert parse_markers("$ {head} $; # {tail} #").tail == "# {tail} #"


def test_names_and_their_heads():
    assert head_noun(["University", "of", "Oslo"]) == "University"
    assert head_noun(["New", "York", "City"]) == "City"
    assert may_be_person("Charlotte Church")
    assert not may_be_person("Yale University")
    assert clean("the Beatles' 1994 tour", [(0, 12, "ORG"), (13, 17, "DATE")]) == [[4, 11, "ORG"], [13, 17, "DATE"]]
    words = content_words("The C++ price fell by -5 % - or $ 5.")
    assert " ".join(words) == "C + + price fell by - 5 % or $ 5"


def test_places_that_a_head_reads_are_filled_up():
    spans = torch.tensor([[[2, 3], [5, 7]], [[4, 5], [1, 2]]])
    assert read_places(spans).tolist() == [[0, 2, 5, 6], [0, 4, 1, -1]]


def test_priors_are_a_softmax():
    assert [round(math.exp(prior), 2) for prior in priors([12.0, 11.0], 1.0)] == [0.73, 0.27]


def test_schemas_of_answers():
    with pytest.raises(ValueError, match="'requird' was unexpected"):
        schema_validator('{"type": "object", "requird": ["claim"]}')
    assert find_fault({"claim": 3}, object_schema({"claim": {"type": "string"}})) == "the answer.claim is no string"


def test_refusals_that_may_pass():
    answers = [(429, "slow down"), (429, "insufficient_quota"), (503, ""), (501, "")]
    assert [is_transient(*answer) for answer in answers] == [True, False, True, False]
    refusal = '{"detail": [{"loc": ["body", "top_k"], "msg": "not permitted", "input": {"seed": 13}}]}'
    assert read_complaint(refusal) == "body top_k not permitted"
    assert retry_after({"retry-after": "7"}) == 7.0
    assert retry_after({}) is None


def test_probabilities_of_labels_come_from_tokens():
    others = [["SUP", math.log(0.2)], ["REF", math.log(0.7)], ["The", math.log(0.1)]]
    tokens = [['{"label": "', -0.1, []], ["REF", math.log(0.7), others], ['UTES"}', 0.0, []]]
    labels = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
    assert token_probabilities(tokens, "REFUTES", labels) == {"SUPPORTS": 0.22222, "REFUTES": 0.77778, "NOT ENOUGH INFO": 0.0}


def test_a_limiter_waits_for_its_window():
    limiter, start = Limiter(requests=1, window=0.2), time.monotonic()
    for _ in range(2):
        limiter.enter(100, threading.Event())
    assert time.monotonic() - start >= 0.2


def test_answers_of_language_models():
    assert ask(Model("llm:m"), {"claim": {"type": "string"}}, []) == []
    assert drop_repeats(["who  is it", "who is it", " "]) == ["who is it"]
    assert failure({"error": "is empty"}) == "the language model: is empty"
    assert failure([]) is None
