"""Small functions of the engines, each with the cases that no test of an engine has."""

from __future__ import annotations

import math

import pytest
import torch

from hfcf.core.errors import explain
from hfcf.core.model import Model
from hfcf.core.safe_yaml import read_yaml
from hfcf.engines.attribution import words_of
from hfcf.engines.classifier_spec import rename_classes, unclear
from hfcf.engines.cure import OUTSIDE, is_open, membership, not_shut, spread
from hfcf.engines.entity_types import head_noun, may_be_person
from hfcf.engines.label_preserving import content_words
from hfcf.engines.llm.answers import token_probabilities
from hfcf.engines.markers import parse_markers
from hfcf.engines.ner import clean
from hfcf.engines.open_reader import priors
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
    error = unclear("what they mean", Model("m"), {"0": "?"}, "claim-evidence")
    assert str(error).endswith('Model("m", labels={"0": "?"}, inputs="claim-evidence")')
    assert error.in_command == "--labels '0=?' --inputs claim-evidence"
    written = {"name": "m", "labels": {"0": "?"}, "inputs": "claim-evidence"}
    assert read_yaml(error.in_recipe) == written
    assert str(explain(error)).endswith(error.in_recipe), "what hfcf run and hfcf train print"


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


def test_priors_are_a_softmax():
    assert [round(math.exp(prior), 2) for prior in priors([12.0, 11.0], 1.0)] == [0.73, 0.27]


def test_probabilities_of_labels_come_from_tokens():
    others = [["SUP", math.log(0.2)], ["REF", math.log(0.7)], ["The", math.log(0.1)]]
    tokens = [['{"label": "', -0.1, []], ["REF", math.log(0.7), others], ['UTES"}', 0.0, []]]
    labels = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
    assert token_probabilities(tokens, "REFUTES", labels) == {"SUPPORTS": 0.22222, "REFUTES": 0.77778, "NOT ENOUGH INFO": 0.0}
