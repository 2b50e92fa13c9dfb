"""Relation classifiers of a user's own: plain sequence classifiers that read entities between markers, or masked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_relation
import torch
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertForSequenceClassification

import hfcf
from hfcf.core.model import Model
from hfcf.engines.classifier_spec import check_classifier
from hfcf.engines.intervention import Intervention
from hfcf.engines.markers import FORMS, parse_markers
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.tasks.relation import TASK, requests, written_requests
from hfcf.training.relation import TRAINER

LABELS = tiny_relation.LABELS
MARKERS = [
    "[E1]",
    "[/E1]",
    "[E2]",
    "[/E2]",
    "<e1>",
    "</e1>",
    "<e2>",
    "</e2>",
    "SUBJ-PERSON",
    "OBJ-CITY",
    "[E1:PERSON]",
    "[/E1:PERSON]",
]
MARKERS += ["[E2:CITY]", "[/E2:CITY]", "PERSON", "CITY", "@", "*", "#", "^"]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    made = [tiny_relation.row(text, LABELS[i % 4]) for i, text in enumerate(tiny_relation.SENTENCES)]
    for row in made:
        row["head"]["type"], row["tail"]["type"] = "PERSON", "CITY"
    return made


def test_a_sentence_is_read_as_it_was_written() -> None:
    text = "“Bob's” dog isn't in  New York, is it?"
    own = {"sentence": text, "head": [1, 4], "tail": [22, 30], "relation": "in"}
    columns = {"text": "sentence", "head": "head", "tail": "tail", "label": "relation"}
    (row,) = hfcf.from_dataset([own], columns=columns, ends="exclusive")
    semeval = Model("any", inputs="semeval")
    ((tokens, *places, spaces),) = written_requests([row], semeval)
    expected = "“<e1>Bob</e1>'s” dog isn't in <e2>New York</e2>, is it?"
    assert parse_markers("semeval").render(tokens, *places, spaces) == expected
    masked = parse_markers("tacred-masks").render(tokens, [*places[0], "P"], [*places[1], "C"], spaces)
    assert masked == "“SUBJ-P's” dog isn't in OBJ-C, is it?"
    (known,) = requests([row], semeval)
    assert written_requests([{**row, "text": "another text"}], semeval) == [known], "the text is not that of the tokens"


def store(folder: Path, names: Sequence[str] = LABELS, markers: Sequence[str] = MARKERS) -> str:
    torch.manual_seed(2)
    tokenizer = tiny.tokenizer(pair=True)
    tokenizer.add_tokens(list(markers))
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.5, id2label=dict(enumerate(names)),
        label2id={name: i for i, name in enumerate(names)},
    )  # fmt: skip
    network = BertForSequenceClassification(config)
    with torch.no_grad():
        network.classifier.weight *= 4
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    return store(tmp_path_factory.mktemp("relations"))


def plain(folder: str, text: str) -> dict[str, float]:
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return dict(zip(LABELS, network(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0].tolist(), strict=True))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ("entity-markers", "a [E1] band [/E1] that was formed in the city of [E2] London [/E2]"),
        ("[E1] {head} [/E1]; [E2] {tail} [/E2]", "a [E1] band [/E1] that was formed in the city of [E2] London [/E2]"),
        ("semeval", "a <e1>band</e1> that was formed in the city of <e2>London</e2>"),
        ("typed-markers", "a [E1:PERSON] band [/E1:PERSON] that was formed in the city of [E2:CITY] London [/E2:CITY]"),
        ("typed-punctuation", "a @ * PERSON * band @ that was formed in the city of # ^ CITY ^ London #"),
        ("tacred-masks", "a SUBJ-PERSON that was formed in the city of OBJ-CITY"),
    ],
)
def test_a_plain_classifier_reads_its_markers(inputs: str, text: str, own: str, rows: list[dict[str, Any]]) -> None:
    answers = TASK.judge(rows, Model(own, inputs=inputs), 64)
    assert answers[1] == pytest.approx(plain(own, text), abs=1e-4)
    assert len({max(answer, key=answer.__getitem__) for answer in answers if answer}) > 1, "its verdicts differ"


def test_nested_entities_are_marked_from_the_outside(rows: list[dict[str, Any]]) -> None:
    tokens, outer, inner = ["the", "city", "of", "London", "burns"], [0, 4, "PERSON"], [3, 4, "CITY"]
    assert parse_markers("semeval").render(tokens, outer, inner) == "<e1>the city of <e2>London</e2></e1> burns"
    assert parse_markers("semeval").render(tokens, inner, outer) == "<e2>the city of <e1>London</e1></e2> burns"
    assert parse_markers("tacred-masks").render(tokens, outer, inner) == "SUBJ-PERSON OBJ-CITY burns"


def test_classes_can_have_other_names(own: str, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    unnamed = store(tmp_path, ["LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"])
    named = Model(unnamed, labels={f"LABEL_{i}": name for i, name in enumerate(LABELS)}, inputs="semeval")
    ds = Dataset.from_list(rows)
    score = TRAINER.evaluate(ds, Model(own, inputs="semeval"), max_length=64).scores
    assert TRAINER.evaluate(ds, named, max_length=64).scores == score
    assert TRAINER.predict(ds, named, max_length=64, labels=LABELS) == TRAINER.predict(
        ds, Model(own, inputs="semeval"), max_length=64, labels=LABELS
    )
    merged = Model(own, labels={LABELS[1]: LABELS[0]}, inputs="semeval")
    for one, other in zip(TASK.judge(rows, merged, 64), TASK.judge(rows, Model(own, inputs="semeval"), 64), strict=True):
        assert one
        assert other
        assert one[LABELS[0]] == pytest.approx(other[LABELS[0]] + other[LABELS[1]], abs=3e-5)
        assert LABELS[1] not in one


def test_an_rbert_can_have_other_names_too(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = tiny_relation.rbert(tmp_path)
    found = RelationClassifier(model=Model(folder, labels={"PHYS": "Part-Whole(e1,e2)"})).run(requests(rows))
    expected = RelationClassifier(model=Model(folder)).run(requests(rows))
    assert [answer["Part-Whole(e1,e2)"] for answer in found] == [answer["PHYS"] for answer in expected]


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        ({}, 'inputs="?"'),
        ({"inputs": "[E1] {head}"}, "'[E1] {head}'"),
        ({"inputs": "{tail} a; {head} b"}, "'{tail} a; {head} b'"),
        ({"inputs": "semeval", "labels": {"no such": "PHYS"}}, "'no such'"),
    ],
)
def test_what_is_not_known_is_refused_before_the_weights(settings: dict[str, Any], written: str, own: str, rows: Any) -> None:
    model = Model(own, **settings)
    for ask in (lambda: check_classifier(model, None), lambda: RelationClassifier(model=model).run(requests(rows))):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is checked below
            ask()
        assert written in str(error.value)


def test_classes_that_nobody_named_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'labels=\{"LABEL_0": "\?"'):
        check_classifier(Model(store(tmp_path, ["LABEL_0", "LABEL_1"]), inputs="semeval"), None)


def test_an_rbert_has_its_own_markers(tmp_path: Path) -> None:
    folder = tiny_relation.rbert(tmp_path)
    check_classifier(Model(folder), None)
    with pytest.raises(ValueError, match="semeval"):
        check_classifier(Model(folder, inputs="semeval"), None)


def test_a_type_that_is_missing_is_an_error(own: str, rows: list[dict[str, Any]]) -> None:
    untyped = [{**row, "tail": {**row["tail"], "type": None}} for row in rows]
    with pytest.raises(ValueError, match="tail"):
        TASK.judge(untyped, Model(own, inputs="tacred-masks"), 64)


def test_markers_that_the_tokenizer_does_not_know(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = store(tmp_path, markers=["[E1]", "[/E1]", "[E2]"])
    assert all(TASK.judge(rows, Model(folder, inputs="[E1] {head} [/E1]; subject {tail} [E2]"), 64)), "in pieces"
    with pytest.raises(ValueError, match=r"\[/E2\]"):
        TASK.judge(rows, Model(folder, inputs="entity-markers"), 64)


def test_a_longer_sentence_is_not_read(own: str, rows: list[dict[str, Any]]) -> None:
    assert TASK.judge(rows, Model(own, inputs="semeval"), 8) == [None] * len(rows)


def test_what_reads_an_rbert_from_inside_refuses_others(own: str) -> None:
    with pytest.raises(ValueError, match=r"rbert\.safetensors"):
        Intervention(indicator=Model(own, inputs="semeval")).load(torch.device("cpu"))


@pytest.mark.parametrize("name", FORMS)
def test_named_forms_are_forms(name: str) -> None:
    assert parse_markers(name) == parse_markers(FORMS[name])


def test_scores_of_other_relations_are_an_error(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = store(tmp_path, ["cause", "origin", "none", "physical"])
    with pytest.raises(ValueError, match="cause, none, origin, physical"):
        TRAINER.evaluate(Dataset.from_list(rows), Model(folder, inputs="semeval"), max_length=64)
