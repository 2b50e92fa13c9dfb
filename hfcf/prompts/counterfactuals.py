"""The prompts for counterfactuals, in our words: of claims, of relations and of single texts.

Claims are asked for as in RACE's Table 7, relations in the three steps of CCG's Table 9, and texts with another label by as few
changes as possible, as the annotators of CAD were asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.candidates import Candidate, reject
from hfcf.prompts import Values
from hfcf.tasks.classification import TextRewriting
from hfcf.tasks.relation import OTHER, context, entities, overlap, roles
from hfcf.tasks.rewriting import SentenceRewriting, find, folded, places, plain, split
from hfcf.tasks.verification import NOT_ENOUGH_INFO, opposite, rewritten
from hfcf.text.check import text_problem

_SEMEVAL = (
    "Message-Topic", "Entity-Destination", "Content-Container", "Cause-Effect", "Component-Whole", "Member-Collection",
    "Instrument-Agency", "Product-Producer", "Entity-Origin",
)  # fmt: skip
SEMEVAL = tuple(f"{name}({order})" for name in _SEMEVAL for order in ("e1,e2", "e2,e1"))
"""SemEval 2010's relations except "Other", each in both directions, in the order of the paper's prompt."""


class ClaimPrompt:
    """Ask for a claim that has the opposite label on the same evidence; see `hfcf.prompts.Prompt`.

    >>> prompt = ClaimPrompt(max_words=100)
    >>> prompt.find_problem({"label": "NOT ENOUGH INFO"})
    'the label NOT ENOUGH INFO has no opposite'
    >>> prompt.values({"claim": "Rome is old.", "evidence": [], "label": "SUPPORTS"})["wanted"]
    'REFUTES'
    """

    template = "claims"
    default_labels = ()
    limits: Mapping[str, Any] = {}

    def __init__(self, *, relations: tuple[str, ...] = (), max_words: int) -> None:
        if max_words < 1:
            raise ValueError(f"max_words must be at least 1, got {max_words}")
        self.max_words = max_words

    def find_problem(self, row: Mapping[str, Any]) -> str | None:
        return f"the label {row['label']} has no opposite" if row["label"] == NOT_ENOUGH_INFO else None

    def values(self, row: Mapping[str, Any]) -> Values:
        return {**{name: row[name] for name in ("claim", "evidence", "label")}, "wanted": opposite(row["label"])}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        claim = " ".join(answer["claim"].split())
        result = rewritten(row["claim"], claim, opposite(row["label"]), stage)
        if problem := text_problem(claim, "the new claim"):
            return reject(result, stage, problem)
        if (words := len(claim.split())) > self.max_words:
            return reject(result, stage, f"the new claim has {words} words; the limit is {self.max_words}")
        return result


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

    >>> RelationPrompt(relations=("PHYS", "PART-WHOLE")).find_problem({"label": "Other"})
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

    def find_problem(self, row: Mapping[str, Any]) -> str | None:
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


class TextPrompt:
    """Ask for a text that has a different label of a list; see `hfcf.prompts.Prompt`. Line breaks of the texts are not kept.

    >>> prompt = TextPrompt(relations=("negative", "positive"), max_words=100)
    >>> prompt.find_problem({"text": "It was good.", "label": None})
    'the row has no label'
    >>> prompt.values({"text": "It was good.", "label": "positive"})["others"]
    ['negative']
    """

    template = "texts"
    default_labels = None

    def __init__(self, *, relations: tuple[str, ...], max_words: int) -> None:
        if len(set(relations)) < max(2, len(relations)):
            raise ValueError(f"relations must be two or more labels, each once, got {list(relations)}")
        self.labels, self.max_words = relations, max_words
        self.limits = {"label": {"enum": list(relations)}}

    def find_problem(self, row: Mapping[str, Any]) -> str | None:
        if row["label"] is None:
            return "the row has no label"
        if row["label"] not in self.labels:
            return f"the label {row['label']!r} is not in the setting `relations`: name all labels there"
        return None

    def values(self, row: Mapping[str, Any]) -> Values:
        others = [label for label in self.labels if label != row["label"]]
        return {"text": row["text"], "label": row["label"], "others": others}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        text = answer["text"].strip()
        result = TextRewriting().rewritten(row, text, answer["label"], stage)
        if problem := text_problem(text, "the new text"):
            return reject(result, stage, problem)
        if answer["label"] == row["label"]:
            return reject(result, stage, "names the label that the text has")
        longest = max(self.max_words, 2 * len(row["text"].split()))
        if (words := len(text.split())) > longest:
            return reject(result, stage, f"the new text has {words} words; the limit is {longest}")
        return result
