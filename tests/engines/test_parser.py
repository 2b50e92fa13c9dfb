from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest
from offline_models import installed

from hfcf.core.model import Model
from hfcf.engines import parser
from hfcf.engines.parser import Constituents, Parser, constituents

SENTENCES = [
    "The fire was caused by the storm",
    "She has never been moved from Berlin to the lake",
    "The company fabricates plastic chairs",
    "audits were about waste",
    "The lake dried up and the fish died",
    "the house built by Tom or Anna",
]


@pytest.fixture
def spacy_model() -> Model:
    if not installed("spacy"):
        pytest.skip("the offline spaCy pipeline is not installed")
    return Model("offline:spacy")


def drawn(tree: Any, words: list[str]) -> str:
    """A tree in brackets, with words."""
    if isinstance(tree[1], int):
        return words[tree[1]]
    return f"({tree[0]} {' '.join(drawn(child, words) for child in tree[1:])})"


def leaves(tree: Any) -> list[list[Any]]:
    return [tree] if isinstance(tree[1], int) else [leaf for child in tree[1:] for leaf in leaves(child)]


# --- spaCy


def test_a_parse_has_a_value_for_each_token(spacy_model: Model) -> None:
    tokens = ["The", "company", "fabricates", "well-made", "chairs", "."]
    [parse] = Parser(backend="spacy", model=spacy_model).run([tokens])
    assert {name: len(values) for name, values in parse.items()} == dict.fromkeys(("heads", "deps", "tags", "lemmas"), len(tokens))
    assert (parse["heads"][1], parse["deps"][1], parse["tags"][2], parse["lemmas"][2]) == (2, "nsubj", "VBZ", "fabricate")
    assert parse["heads"][2] == -1


def test_a_batch_is_parsed_as_single_sentences_are(spacy_model: Model, no_request_cache: None) -> None:
    requests = [sentence.split() for sentence in SENTENCES * 2]
    for engine in (Parser(backend="spacy", model=spacy_model), Constituents(backend="spacy", model=spacy_model)):
        assert engine.run(requests) == [engine.run([request])[0] for request in requests]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (SENTENCES[0], "(ROOT (S (NP The fire) (VP was (VP caused (PP by (NP the storm))))))"),
        (SENTENCES[1], "(ROOT (S (NP She) (VP has (VP never been (VP moved (PP from (NP Berlin)) (PP to (NP the lake)))))))"),
        (SENTENCES[3], "(ROOT (S (NP audits) (VP were (PP about (NP waste)))))"),
        (SENTENCES[4], "(ROOT (S (S (NP The lake) (VP dried up)) and (S (NP the fish) (VP died))))"),
        (SENTENCES[5], "(ROOT (NP the house (VP built (PP by (NP (NP Tom) or (NP Anna))))))"),
    ],
)
def test_spacy_s_constituents(spacy_model: Model, sentence: str, expected: str) -> None:
    words = sentence.split()
    [tree] = Constituents(backend="spacy", model=spacy_model).run([words])
    assert drawn(tree, words) == expected


def test_every_token_is_one_leaf(spacy_model: Model) -> None:
    requests = [sentence.split() for sentence in SENTENCES]
    parses = Parser(backend="spacy", model=spacy_model).run(requests)
    for tree, parse in zip(Constituents(backend="spacy", model=spacy_model).run(requests), parses, strict=True):
        assert sorted(leaves(tree), key=lambda leaf: leaf[1]) == [[tag, i] for i, tag in enumerate(parse["tags"])]


def test_subjects_conjunctions_and_what_comes_before_them_are_no_part_of_the_verb_phrase() -> None:
    # "because then he left Rome"
    tree = constituents([3, 3, 3, -1, 3], ["mark", "advmod", "nsubj", "ROOT", "dobj"], ["IN", "RB", "PRP", "VBD", "NNP"])
    assert tree == ["ROOT", ["S", ["IN", 0], ["RB", 1], ["NP", ["PRP", 2]], ["VP", ["VBD", 3], ["NP", ["NNP", 4]]]]]


def test_a_participle_before_a_noun_is_no_verb_phrase() -> None:
    assert constituents([1, -1], ["amod", "ROOT"], ["VBN", "NN"]) == ["ROOT", ["NP", ["VBN", 0], ["NN", 1]]]


def test_joined_verbs_share_a_phrase_and_keep_their_own() -> None:
    # "sang and danced there"
    tree = constituents([-1, 0, 0, 2], ["ROOT", "cc", "conj", "advmod"], ["VBD", "CC", "VBD", "RB"])
    assert tree == ["ROOT", ["VP", ["VP", ["VBD", 0]], ["CC", 1], ["VP", ["VBD", 2], ["RB", 3]]]]


def test_several_roots_stand_side_by_side() -> None:
    assert constituents([-1, -1], ["ROOT", "ROOT"], ["NN", "NN"]) == ["ROOT", ["NP", ["NN", 0]], ["NP", ["NN", 1]]]


# --- Stanza, whose models are a download: what its pipeline returns is made up


def word(text: str, head: int, deprel: str, xpos: str) -> SimpleNamespace:
    return SimpleNamespace(text=text, head=head, deprel=deprel, xpos=xpos, lemma=text.lower())


def node(label: str, *children: Any) -> SimpleNamespace:
    return SimpleNamespace(label=label, children=children)


SENTENCE = SimpleNamespace(
    words=[word("Eggs", 2, "nsubj", "NNS"), word("came", 0, "root", "VBD"), word("here", 2, "advmod", "RB")],
    constituency=node(
        "ROOT",
        node(
            "S",
            node("NP", node("NNS", node("Eggs"))),
            node("VP", node("VBD", node("came")), node("ADVP", node("RB", node("here")))),
        ),
    ),
)


class FakeStanza:
    def __init__(self, *sentences: SimpleNamespace) -> None:
        self.sentences, self.asked = list(sentences), []

    def __call__(self, tokens: list[list[str]]) -> SimpleNamespace:
        self.asked = tokens
        return SimpleNamespace(sentences=self.sentences)


def test_stanza_s_parse_and_tree_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, given = FakeStanza(SENTENCE), []

    def made(source: str, processors: str, device: Any, **kwargs: Any) -> FakeStanza:
        given.append((source, processors, kwargs))
        return pipeline

    monkeypatch.setattr(parser, "stanza_pipeline", made)
    parse = Parser().run([["Eggs", "came", "here"]])
    assert parse == [
        {"heads": [1, -1, 1], "deps": ["nsubj", "root", "advmod"], "tags": ["NNS", "VBD", "RB"], "lemmas": ["eggs", "came", "here"]}
    ]
    tree = Constituents().run([["Eggs", "came", "here"]])
    assert tree == [["ROOT", ["S", ["NP", ["NNS", 0]], ["VP", ["VBD", 1], ["ADVP", ["RB", 2]]]]]]
    assert pipeline.asked == [["Eggs", "came", "here"]]
    assert given == [
        ("en", "tokenize,pos,lemma,depparse", {"tokenize_pretokenized": True}),
        ("en", "tokenize,pos,constituency", {"tokenize_pretokenized": True}),
    ]


def test_a_pipeline_that_splits_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "stanza_pipeline", lambda *_, **__: FakeStanza(SENTENCE))
    with pytest.raises(ValueError, match="3] words for"):
        Parser().run([["Eggs", "came"]])


# --- errors and keys


def test_an_unknown_parser_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stanza.*spacy"):
        Constituents(backend="corenlp")


def test_a_missing_parser_is_an_error_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.version", version)
    with pytest.raises(ImportError, match=r'stanza.*pip install "\.\[stanza\]"'):
        Parser().run([["Rome"]])


def test_trees_and_parses_have_keys_of_their_own() -> None:
    parse, tree = Parser(), Constituents()
    assert parse.settings() == tree.settings()
    assert parse._head() != tree._head()
