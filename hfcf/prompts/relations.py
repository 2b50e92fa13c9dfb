"""The prompt for counterfactual relations: the three steps of CCG's Table 9, in our words, and the check of what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf import prompts
from hfcf.tasks.relations import context, entities
from hfcf.tasks.sentence import find, folded, places, split

_WORDS = {"type": "array", "items": {"type": "string"}}


def schema(candidates: Sequence[str]) -> str:
    """What an answer must fit, with the relations that it may choose from."""
    properties = {
        "causal_terms": {**_WORDS, "minItems": 1},
        "relation": {"type": "string", "enum": list(candidates)},
        "replacements": _WORDS,
        "sentence": {"type": "string"},
    }
    # In this order: the steps come before what follows from them.
    return json.dumps({"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False})


def messages(row: Mapping[str, Any], candidates: Sequence[str], shots: int = 1) -> list[prompts.Message]:
    """Ask for a sentence in which the entities of a row have another relation.

    Args:
        row: `tokens`, `head` and `tail` (`start` and `end`, end-exclusive), and `label`.
        candidates: the relations to choose from, named so that their order tells which entity is which.
        shots: worked examples to show; the first is the paper's.

    >>> row = {"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}, "label": "a-b"}
    >>> print(messages(row, ["a-b", "b-a"], shots=0)[0]["content"].partition("Sentence: ")[2])
    eggs in buckets
    First entity: eggs
    Second entity: buckets
    Relation: a-b
    Answer as JSON, {"causal_terms": […], "relation": "…", "replacements": […], "sentence": "…"}:
    """
    head, tail = entities(row)
    return prompts.messages(
        "relations", shots=shots, candidates=candidates, sentence=" ".join(row["tokens"]), head=head, tail=tail,
        relation=row["label"],
    )  # fmt: skip


def read(answer: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The relation row that an answer to `messages(row, …)` makes.

    Args:
        answer: fits `schema`.
        row: the one that was asked about.

    Returns:
        `tokens`, `head`, `tail` and `label` as relation rows have them, and `causal_terms`.

    Raises:
        ValueError: the relation is the old one, the sentence is, an entity does not stand in it exactly once, the two overlap, or a
            causal term is none of the sentence's words outside the entities.

    >>> row = {"tokens": "the key is moved into a chest .".split(), "head": {"start": 1, "end": 2}, "tail": {"start": 6, "end": 7},
    ...        "label": "entity-destination"}
    >>> made = read({"causal_terms": ["moved into"], "relation": "entity-origin", "sentence": "The key is from a chest."}, row)
    >>> made["tokens"], made["tail"], made["label"]
    (['The', 'key', 'is', 'from', 'a', 'chest', '.'], {'start': 5, 'end': 6}, 'entity-origin')
    """
    if answer["relation"] == row["label"]:
        raise ValueError("names the relation that the sentence has")
    tokens = split(answer["sentence"], row["tokens"])
    if folded(tokens) == folded(row["tokens"]):
        raise ValueError("repeats the sentence")
    found, outside = find(row, tokens), set(context(row))
    words = [token if i in outside else "\0" for i, token in enumerate(row["tokens"])]
    for term in answer["causal_terms"]:
        if not places(words, split(term, row["tokens"])):
            raise ValueError(f"names the causal term {term!r}, which does not stand in the sentence outside the entities")
    return {"tokens": tokens, **found, "label": answer["relation"], "causal_terms": list(answer["causal_terms"])}
