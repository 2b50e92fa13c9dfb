"""Which kinds of questions a set has, and whether making counterfactuals shifts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.edits import plain_words
from hfcf.metrics.shared.metric import TEXT, Metric
from hfcf.metrics.shared.texts import ColumnsOf, changes

TOP = 20
"""The number of types that the paper's figure shows."""


def question_type(question: str) -> str:
    """Return the first two words of a question, in lower case, without punctuation; fewer if the question is shorter.

    The paper does not define a question type; its figure has bars such as "who is".
    """
    return " ".join(plain_words(question)[:2])


def common_types(questions: Iterable[str], top: int = TOP) -> dict[str, float]:
    """Return the share (0–1) of the commonest types of questions, the commonest first; ties are in alphabetical order."""
    return dict(islice(_shares(Counter(map(question_type, questions))).items(), top))


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {name: round(counts[name] / counts.total(), 5) for name in sorted(counts, key=lambda name: (-counts[name], name))}


@dataclass(frozen=True, kw_only=True)
class MeasureQuestionTypes(Metric):
    """Name the type of the source's question and of the counterfactual's: their first two words.

    Input columns: the task's texts, `edits`. Output column: `question_types`, `{before, after, same}`. Equal types are neither
    better nor worse than different types. Read the numbers of the set, which `overall` computes: a generator prefers popular types.
    As an `evaluate.Metric`: `predictions` are questions. It returns the shares of their 20 commonest types.

    Source: RGF, Figure 5, the 20 commonest types before and after. Deviation: the paper does not define a type; see
    `question_type`.

    Args:
        task: the task of the rows; rows without questions are refused.

    >>> MeasureQuestionTypes().inputs
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_question_types reads 'question' and can't measure verification rows: they have no question
    """

    citation: ClassVar = "Paranjape et al. 2022, Retrieval-guided Counterfactual Generation for QA (RGF), appendix C.1 and figure 5"
    lists: ClassVar = {"predictions": TEXT}
    inputs: ClassVar[Any] = ColumnsOf("question", why="they have no question", edits=True)
    outputs: ClassVar = {"question_types": {"before": schema.TEXT, "after": schema.TEXT, "same": schema.BOOL}}

    def score(self, prediction: str, reference: str) -> dict[str, Any]:
        before, after = map(question_type, (reference, prediction))
        return {"before": before, "after": after, "same": before == after}

    @classmethod
    def over_lists(cls, predictions: Sequence[str], references: Any = None, **settings: Any) -> dict[str, Any]:
        """Return the shares of the 20 commonest types, as `common_types` does."""
        return common_types(predictions)

    @classmethod
    def overall(cls, ds: Dataset) -> dict[str, Any]:
        """Compare the types of a set's questions with the types of their sources' questions.

        Returns:
            `before` and `after`, {type: share} of the 20 commonest types of each. `top_before` and `top_after`, the share of all
            questions that have these types. `distance`, how many of the questions have a different type than before: half the sum
            of the differences of all shares, 0–1. A source counts once for each of its counterfactuals.
        """
        counts = Counter[str](), Counter[str]()
        for pair in changes(ds):
            for side, question in zip(counts, pair, strict=True):
                side[question_type(question)] += 1
        every = [_shares(side) for side in counts]
        tops = [dict(list(shares.items())[:TOP]) for shares in every]
        distance = sum(abs(every[0].get(name, 0.0) - every[1].get(name, 0.0)) for name in {*every[0], *every[1]}) / 2
        numbers = {"top_before": sum(tops[0].values()), "top_after": sum(tops[1].values()), "distance": distance}
        return {**{name: round(number, 4) for name, number in numbers.items()}, "before": tops[0], "after": tops[1]}
