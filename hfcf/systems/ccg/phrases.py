"""Correct causal terms by a constituency tree (CCG, section 3.2): words of one phrase belong together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

Tree = Sequence[Any]


def correct_terms(tree: Tree, terms: Collection[int], allowed: Collection[int]) -> list[int]:
    """Return the terms and what the phrases around them add, sorted.

    The verbs (VB*) and prepositions (IN) in the nearest verb phrase above a term are causal too; where there is none, the
    prepositions in the nearest prepositional phrase. Words that were added add no others. The tag TO is no preposition here, as
    the paper has only IN.

    Deviation: the authors' code finds a phrase's words again by their text, so that of a word that occurs twice the wrong one,
    or both, can be added; here words are their places.

    Args:
        tree: `[label, child, …]`, leaves `[tag, place]` (`hfcf.engines.parser.Constituents`).
        terms: places of the preliminary causal terms; those that the tree lacks stay as they are.
        allowed: places that may be added: an entity's never.

    >>> tree = ["S", ["NP", ["NN", 0]], ["VP", ["VBN", 1], ["PP", ["IN", 2], ["NP", ["NN", 3]]]]]  # "shoes made from leather"
    >>> correct_terms(tree, [2], {1, 2})
    [1, 2]
    """
    above = {leaf[1]: path for leaf, path in _leaves(tree, ())}
    results = set(terms)
    for term in terms:
        path = above.get(term, ())
        phrase = next((node for node in reversed(path) if _is(node, "VP")), None)
        tags: tuple[str, ...] = ("VB", "IN")
        if phrase is None:
            phrase, tags = next((node for node in reversed(path) if _is(node, "PP")), None), ("IN",)
        if phrase is not None:
            results |= {place for (tag, place), _ in _leaves(phrase, ()) if tag.startswith(tags) and place in allowed}
    return sorted(results)


def shift_tree(tree: Tree, by: int) -> list[Any]:
    """Turn the places in the tree of a part of a sentence into places in the sentence.

    >>> shift_tree(["NP", ["DT", 0], ["NN", 1]], 4)
    ['NP', ['DT', 4], ['NN', 5]]
    """
    if _is_leaf(tree):
        return [tree[0], tree[1] + by]
    return [tree[0], *(shift_tree(child, by) for child in tree[1:])]


def _leaves(tree: Tree, path: tuple[Tree, ...]) -> Iterator[tuple[Tree, tuple[Tree, ...]]]:
    """Yield every leaf with the constituents above it, from the top."""
    if _is_leaf(tree):
        yield tree, path
        return
    for child in tree[1:]:
        yield from _leaves(child, (*path, tree))


def _is_leaf(tree: Tree) -> bool:
    return len(tree) == 2 and isinstance(tree[1], int)


def _is(tree: Tree, label: str) -> bool:
    """Say whether a constituent has this label, with or without a function ("VP-TPC")."""
    return str(tree[0]).split("-")[0] == label
