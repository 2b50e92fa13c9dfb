"""Functions that several corpora use."""

from __future__ import annotations

import pytest

from hfcf.core.recipe import is_dataset
from hfcf.corpora.base.info import parse_split
from hfcf.corpora.custom.labels import read_labels
from hfcf.corpora.custom.relations import edit_text, inclusive_ends
from hfcf.corpora.custom.source import corpus_name
from hfcf.corpora.formats.answers import alternative_answers, looked_up, open_answers, places
from hfcf.corpora.formats.feverous_pages import plain
from hfcf.corpora.formats.tokens import tokenise
from hfcf.corpora.formats.wikipedia import page_title, split_sentences
from hfcf.tasks.relation import relation_of


def test_splits() -> None:
    assert parse_split("dev[:300]+train") == (["validation", "train"], "validation[:300]+train")


def test_answers() -> None:
    assert open_answers(["1988", "in 1988", "1988"], "answer") == {"text": ["1988", "in 1988"], "answer_start": []}
    assert alternative_answers([[(0, "Ada")], [(0, "Ada"), (8, "Bo")], [(0, "Ada")]]) == (
        {"text": ["Ada", "Bo"], "answer_start": [0, 8]},
        [[0], [0, 1]],
    )
    assert places("In 1 year or 11, 1 is 1.", "1") == [3, 17, 22]
    assert looked_up("Ada met Bo. Ada left.", ["Ada", "Ada Lovelace"]) == {"text": ["Ada", "Ada"], "answer_start": [0, 12]}
    assert looked_up("There is no doubt.", ["no"]) == {"text": ["no"], "answer_start": []}


def test_feverous_pages() -> None:
    assert plain("near [[Pittsview,_Alabama|Pittsview]] in [[Russian|[ˈzapədʲnʲɪk]])") == "near Pittsview in [ˈzapədʲnʲɪk])"


def test_sentences() -> None:
    assert split_sentences("Robert W. Derminer was born in St. Louis. He left the U.S. in 2005! (He sang.) It ended.") == [
        "Robert W. Derminer was born in St. Louis.",
        "He left the U.S. in 2005!",
        "(He sang.)",
        "It ended.",
    ]
    assert split_sentences("She moved to the U.S. The U.S. Navy paid.") == ["She moved to the U.S.", "The U.S. Navy paid."]


def test_wikipedia() -> None:
    assert page_title("Savages_-LRB-2012_film-RRB-") == "Savages (2012 film)"
    assert page_title("Star_Trek-COLON-_Discovery") == "Star Trek: Discovery"


def test_labels() -> None:
    assert relation_of("per:title") == "per:title"
    assert relation_of("no_relation") == "Other"
    assert relation_of("NA") == "Other"
    names = read_labels("label", {"contradiction": 1, "entailment": 1, -1: 1}, ["contradiction", "entailment"], None)
    assert names.read("entailment") == "SUPPORTS"
    assert names.write("REFUTES") == "contradiction"
    assert names.describe() == " (contradiction → REFUTES, entailment → SUPPORTS)"


def test_edited_sentences() -> None:
    columns = {"tokens": "t", "head": ("s", "e"), "tail": ("s", "e")}
    assert inclusive_ends([{"t": ["a", "b"], "s": 1, "e": 1}], columns)
    assert not inclusive_ends([{"t": ["a", "b"], "s": 1, "e": 2}], columns)
    assert inclusive_ends([{"t": ["a", "b", "c"], "s": 0, "e": 1}], columns) is None
    offsets = [{"start": 0, "end": 4}, {"start": 5, "end": 8}, {"start": 8, "end": 11}, {"start": 12, "end": 15}]
    edit = {"start": 1, "end": 3, "after": "will"}
    assert edit_text("Eggs didn't hop", [(0, 4), (12, 15)], offsets, [edit]) == ("Eggs will hop", [(0, 4), (10, 13)])
    assert edit_text("Eggs didn't hop", [(0, 4), (12, 15)], offsets, [{**edit, "after": ""}]) == ("Eggs hop", [(0, 4), (5, 8)])


@pytest.mark.parametrize(
    ("text", "token", "after", "expected"),
    [
        ("teacher-led class", 1, "", "teacher led class"), ("he cried “help”", 2, "", "he cried help”"),
        ("a dull (old) film", 1, "", "a (old) film"), ("it is so good.", 2, "", "it is good."),
        ("he met her, once", 2, "", "he met, once"),
    ],
)  # fmt: skip
def test_a_deletion_glues_no_words(text: str, token: int, after: str, expected: str) -> None:
    offsets = [{"start": start, "end": end} for start, end in tokenise(text, [7, 8] if "-" in text else [])]
    edit = {"field": "tokens", "piece": -1, "start": token, "end": token + 1, "before": "", "after": after}
    assert edit_text(text, [], offsets, [edit])[0] == expected


def test_an_insertion_glues_no_words() -> None:
    offsets = [{"start": 0, "end": 1}, {"start": 1, "end": 2}]
    edit = {"field": "tokens", "piece": -1, "start": 1, "end": 1, "before": "", "after": "big"}
    assert edit_text("$5", [(1, 2)], offsets, [edit]) == ("$ big 5", [(6, 7)])


def test_source() -> None:
    assert is_dataset("stanfordnlp/snli")
    assert is_dataset({"path": "glue", "name": "mnli"})
    assert not is_dataset("hover")
    assert corpus_name("hover") == "hover"
    assert corpus_name({"path": "glue", "name": "mnli"}) == "glue/mnli"
    assert corpus_name("/home/me/claims") == "claims"
