"""The prompt for counterfactual relations: the three steps of CCG's Table 9, in our words, and the check of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.candidates import Candidate, reject
from hfcf.prompts import Values
from hfcf.tasks.relation import OTHER, context, entities, overlap, roles
from hfcf.tasks.rewriting import SentenceRewriting, find, folded, places, plain, split

_SEMEVAL = (
    "Message-Topic", "Entity-Destination", "Content-Container", "Cause-Effect", "Component-Whole", "Member-Collection",
    "Instrument-Agency", "Product-Producer", "Entity-Origin",
)  # fmt: skip
SEMEVAL = tuple(f"{name}({order})" for name in _SEMEVAL for order in ("e1,e2", "e2,e1"))
"""SemEval 2010's relations except "Other", each in both directions, in the order of the paper's prompt."""


def read_answer(answer: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn an answer about a row into a relation row, which also has `causal_terms`.

    Raises:
        ValueError: the answer has the row's relation or sentence, or a causal term that is not outside the entities.
    """
    if answer["relation"] == row["label"]:
        raise ValueError("names the relation that the sentence has")
    tokens = split(answer["sentence"], row["tokens"])
    if folded(tokens) == folded(row["tokens"]):
        raise ValueError("repeats the sentence")
    spans, outside = find(row, tokens), set(context(row))
    words = [token if i in outside else "\0" for i, token in enumerate(row["tokens"])]
    for term in answer["causal_terms"]:
        if not places(words, split(term, row["tokens"])):
            raise ValueError(f"names the causal term {term!r}, which is not in the sentence outside the entities")
    return {"tokens": tokens, **spans, "label": answer["relation"], "causal_terms": list(answer["causal_terms"])}


class RelationPrompt:
    """Ask for a sentence in which the entities have a different relation of a list; see `hfcf.prompts.Prompt`.

    The model reads relations by the roles of their entities, and brackets and quotes as people write them. A row is not asked about
    if its relation is "Other" or is not in `relations`, or if its entities share a word.

    Raises:
        ValueError: there are fewer than two relations, or two of them have the same name.

    >>> RelationPrompt(relations=("PHYS", "PART-WHOLE")).problem({"label": "Other"})
    'the relation Other has no counterfactual'
    """

    template = "relations"
    default_labels = SEMEVAL

    def __init__(self, *, relations: tuple[str, ...], max_words: int = 0) -> None:
        self.labels = {roles(label): label for label in relations}
        """The corpus's relation for each name that the model reads."""
        if len(self.labels) < max(2, len(relations)):
            raise ValueError(f"relations must be two or more, each once, that differ by more than capitals, got {list(relations)}")
        self.limits = {"relation": {"enum": list(self.labels)}}

    def problem(self, row: Mapping[str, Any]) -> str | None:
        if row["label"] == OTHER:
            return f"the relation {OTHER} has no counterfactual"
        if row["label"] not in self.labels.values():
            return f"the relation {row['label']!r} is not in the setting `relations`: name the corpus's there"
        return overlap(row)

    def values(self, row: Mapping[str, Any]) -> Values:
        shown = _readable(row)
        head, tail = entities(shown)
        sentence = " ".join(shown["tokens"])
        return {"candidates": list(self.labels), "sentence": sentence, "head": head, "tail": tail, "relation": shown["label"]}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        result = SentenceRewriting().rewritten(row, answer["sentence"], self.labels[answer["relation"]], stage)
        if result["status"] is None:
            try:
                read_answer(answer, _readable(row))
            except ValueError as error:
                return reject(result, stage, str(error))
        return result


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "tokens": plain(row["tokens"]), "label": roles(row["label"])}
