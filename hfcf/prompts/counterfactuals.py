"""The prompts for counterfactuals, in our words: of claims, of relations and of single texts.

Claims are asked for as in RACE's Table 7, relations in the three steps of CCG's Table 9, and texts with another label by as few
changes as possible, as the annotators of CAD were asked. Unlike there, a model answers with edits, not with a whole text
(`hfcf.prompts.edits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hfcf.core.candidates import Candidate, reject
from hfcf.prompts import Limits, Values
from hfcf.prompts.edits import NEW_WORDS, apply_edits, limit_edits, list_spans
from hfcf.tasks.classification import TextRewriting
from hfcf.tasks.relation import OTHER, entities, overlap, roles, spans, token_starts
from hfcf.tasks.rewriting import SentenceRewriting, plain
from hfcf.tasks.verification import NOT_ENOUGH_INFO, opposite, rewritten
from hfcf.text.check import text_problem
from hfcf.text.slips import why_clumsy

_SEMEVAL = (
    "Message-Topic", "Entity-Destination", "Content-Container", "Cause-Effect", "Component-Whole", "Member-Collection",
    "Instrument-Agency", "Product-Producer", "Entity-Origin",
)  # fmt: skip
PLACES, TEXT_PLACES = 3, 6
"""How many places an answer may edit: of a claim, and of a text, which can be a review."""
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
    limits: ClassVar[Limits] = {}

    def __init__(self, *, relations: tuple[str, ...] = (), max_words: int) -> None:
        if max_words < 1:
            raise ValueError(f"max_words must be at least 1, got {max_words}")
        self.max_words = max_words

    def find_problem(self, row: Mapping[str, Any]) -> str | None:
        return f"the label {row['label']} has no opposite" if row["label"] == NOT_ENOUGH_INFO else None

    def row_limits(self, row: Mapping[str, Any]) -> Limits:
        return {"edits": limit_edits(list_spans(row["claim"]), PLACES)}

    def values(self, row: Mapping[str, Any]) -> Values:
        return {**{name: row[name] for name in ("claim", "evidence", "label")}, "wanted": opposite(row["label"])}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        claim, fault = _edited(row["claim"], answer["edits"])
        result = rewritten(row["claim"], claim, opposite(row["label"]), stage)
        if problem := text_problem(claim, "the new claim") or fault:
            return reject(result, stage, problem)
        if (words := len(claim.split())) > self.max_words:
            return reject(result, stage, f"the new claim has {words} words; the limit is {self.max_words}")
        return result


def _edited(text: str, edits: Sequence[Mapping[str, str]], outside: Sequence[tuple[int, int]] = ()) -> tuple[str, str | None]:
    """Return a text with edits, and why it is of no use; the text as it is if they can't be made."""
    try:
        new = apply_edits(text, edits, outside)
    except ValueError as error:
        return text, str(error)
    return new, why_clumsy(new, text)


class RelationPrompt:
    """Ask for a sentence in which the entities have a different relation of a list; see `hfcf.prompts.Prompt`.

    The model names words outside the entities, picks a relation and puts other words in their place, in this order. It reads
    relations by the roles of their entities, and brackets and quotes as people write them. A row is not asked about if its relation
    is "Other" or is not in `relations`, or if its entities share a word.

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
        if problem := overlap(row):
            return problem
        shown = _readable(row)
        spans = list_spans(" ".join(shown["tokens"]), outside=_entity_places(shown))
        return None if spans else "there is no word outside the entities that could be edited"

    def values(self, row: Mapping[str, Any]) -> Values:
        shown = _readable(row)
        head, tail = entities(shown)
        sentence = " ".join(shown["tokens"])
        return {"candidates": list(self.labels), "sentence": sentence, "head": head, "tail": tail, "relation": shown["label"]}

    def row_limits(self, row: Mapping[str, Any]) -> Limits:
        shown = _readable(row)
        others = [label for label in self.labels if label != shown["label"]]
        spans = list_spans(" ".join(shown["tokens"]), outside=_entity_places(shown))
        return {"old": {"enum": spans}, "relation": {"enum": others}, "new": NEW_WORDS}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        shown = _readable(row)
        sentence, fault = _edited(" ".join(shown["tokens"]), [answer], _entity_places(shown))
        result = SentenceRewriting().rewritten(row, sentence, self.labels[answer["relation"]], stage)
        return reject({**result, "status": None}, stage, fault) if fault else result


def _entity_places(row: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the places of the entities in the sentence, in characters."""
    starts = token_starts(row["tokens"])
    return [(starts[start], starts[end] - 1) for start, end in spans(row)]


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
        return {"text": row["text"], "label": row["label"], "others": self._others(row)}

    def _others(self, row: Mapping[str, Any]) -> list[str]:
        return [label for label in self.labels if label != row["label"]]

    def row_limits(self, row: Mapping[str, Any]) -> Limits:
        return {"label": {"enum": self._others(row)}, "edits": limit_edits(list_spans(row["text"]), TEXT_PLACES)}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        text, fault = _edited(row["text"], answer["edits"])
        result = TextRewriting().rewritten(row, text, answer["label"], stage)
        if problem := text_problem(text, "the new text") or fault:
            return reject(result, stage, problem)
        longest = max(self.max_words, 2 * len(row["text"].split()))
        if (words := len(text.split())) > longest:
            return reject(result, stage, f"the new text has {words} words; the limit is {longest}")
        return result
