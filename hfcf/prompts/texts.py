"""The prompt for counterfactual texts: another label by as few changes as possible, as the annotators of CAD were asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.candidates import Candidate, reject
from hfcf.prompts import Values
from hfcf.tasks.classification import TextRewriting
from hfcf.text.check import text_problem


class TextPrompt:
    """Ask for a text that has a different label of a list; see `hfcf.prompts.Prompt`. Line breaks of the texts are not kept.

    >>> prompt = TextPrompt(relations=("negative", "positive"), max_words=100)
    >>> prompt.problem({"text": "It was good.", "label": None})
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

    def problem(self, row: Mapping[str, Any]) -> str | None:
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
