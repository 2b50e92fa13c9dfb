from __future__ import annotations

from typing import Any

import pytest

from hfcf.systems.ccg.identify import correct_terms, shift_tree


def evidence_texts(words: str) -> dict[str, int]:
    return {word: i for i, word in enumerate(words.split())}


# "The company , which was founded by Ford in Detroit , sells cars"
WORDS = evidence_texts("The company , which was founded by Ford in Detroit ; sells cars")
CLAUSE: list[Any] = [
    "S",
    [
        "NP", ["NP", ["DT", 0], ["NN", 1]], [",", 2],
        [
            "SBAR", ["WHNP", ["WDT", 3]],
            [
                "S",
                [
                    "VP", ["VBD", 4],
                    ["VP", ["VBN", 5], ["PP", ["IN", 6], ["NP", ["NNP", 7]]], ["PP", ["IN", 8], ["NP", ["NNP", 9]]]],
                ],
            ],
        ],
        [":", 10],
    ],
    ["VP", ["VBZ", 11], ["NP", ["NNS", 12]]],
]  # fmt: skip
BETWEEN = range(2, 9)


def test_the_nearest_verb_phrase_gives_its_verbs_and_prepositions() -> None:
    assert correct_terms(CLAUSE, [WORDS["by"]], BETWEEN) == [WORDS[word] for word in ("founded", "by", "in")]


def test_a_farther_verb_phrase_gives_what_lies_below_it() -> None:
    # "was" stands in the outer of two verb phrases, below which the inner one lies
    assert correct_terms(CLAUSE, [WORDS["was"]], BETWEEN) == [WORDS[word] for word in ("was", "founded", "by", "in")]


def test_what_may_not_be_added_is_not() -> None:
    assert correct_terms(CLAUSE, [WORDS["by"]], range(2, 7)) == [WORDS["founded"], WORDS["by"]]
    assert correct_terms(CLAUSE, [WORDS["by"]], []) == [WORDS["by"]]


def test_added_words_are_not_gone_up_from() -> None:
    tree = ["S", ["VP", ["VBD", 0], ["S", ["VP", ["VBG", 1], ["NP", ["NN", 2]]]]]]
    assert correct_terms(tree, [2], range(3)) == [1, 2]


@pytest.mark.parametrize("word", ["which", "The"])
def test_a_term_above_every_verb_phrase_adds_nothing(word: str) -> None:
    assert correct_terms(CLAUSE, [WORDS[word]], BETWEEN) == [WORDS[word]]


# "eggs in the middle of baskets": no verb phrase at all
NOMINAL: list[Any] = [
    "NP", ["NP", ["NNS", 0]],
    ["PP", ["IN", 1], ["NP", ["NP", ["DT", 2], ["NN", 3]], ["PP", ["IN", 4], ["NP", ["NNS", 5]]]]],
]  # fmt: skip


def test_only_without_a_verb_phrase_the_nearest_prepositional_phrase_counts() -> None:
    assert correct_terms(NOMINAL, [3], range(1, 5)) == [1, 3, 4]
    assert correct_terms(NOMINAL, [4], range(1, 5)) == [4]


def test_a_prepositional_phrase_gives_no_verbs() -> None:
    tree = ["PP", ["IN", 0], ["NP", ["NN", 1], ["NP", ["VBN", 2]]]]
    assert correct_terms(tree, [1], range(3)) == [0, 1]


def test_to_is_no_preposition() -> None:
    tree = ["VP", ["VBD", 0], ["PP", ["TO", 1], ["NP", ["NN", 2]]]]
    assert correct_terms(tree, [0], range(3)) == [0]


def test_labels_with_a_function_count() -> None:
    assert correct_terms(["VP-TPC", ["VBD", 0], ["NN", 1]], [1], range(2)) == [0, 1]
    assert correct_terms(["NVP", ["VBD", 0], ["NN", 1]], [1], range(2)) == [1]


def test_a_repeated_word_is_told_apart_by_its_place() -> None:
    # "in the box was put in it": the first "in" belongs to another phrase
    tree = ["S", ["PP", ["IN", 0], ["NN", 1]], ["VP", ["VBD", 2], ["VP", ["VBN", 3], ["PP", ["IN", 4], ["PRP", 5]]]]]
    assert correct_terms(tree, [3], range(5)) == [3, 4]


def test_terms_that_the_tree_lacks_stay() -> None:
    assert correct_terms(["NP", ["NN", 0]], [7, 3], range(9)) == [3, 7]


def test_a_part_s_tree_gets_places_in_the_whole() -> None:
    assert shift_tree(NOMINAL, 10)[1] == ["NP", ["NNS", 10]]
    assert correct_terms(shift_tree(NOMINAL, 10), [13], range(11, 15)) == [11, 13, 14]
