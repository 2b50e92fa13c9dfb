"""Which kinds of questions a set has, and whether making counterfactuals shifts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.edits import plain_words
from hfcf.metrics.shared.metric import TEXT, metric
from hfcf.metrics.shared.texts import changes, columns_of, score_changes

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


def compare_types(ds: Dataset) -> dict[str, Any]:
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


def _over_lists(predictions: Sequence[str], references: Any = None) -> dict[str, Any]:
    return common_types(predictions)


@metric(
    {"before": schema.TEXT, "after": schema.TEXT, "same": schema.BOOL},
    columns=columns_of("question", why="they have no question", edits=True),
    citation="Paranjape et al. 2022, Retrieval-guided Counterfactual Generation for QA (RGF), appendix C.1 and figure 5",
    lists={"predictions": TEXT},
    overall=compare_types,
    over_lists=_over_lists,
)
def measure_question_types(rows: Dataset) -> list[Any]:
    """Name the type of the source's question and of the counterfactual's: their first two words.

    Input columns: the task's texts, `edits`. Output column: `question_types`, `{before, after, same}`. Equal types are neither
    better nor worse than different types. Read the numbers of the set, which `overall` computes: a generator prefers popular types.
    As an `evaluate.Metric`: `predictions` are questions. It returns the shares of their 20 commonest types.

    Source: RGF, Figure 5, the 20 commonest types before and after. Deviation: the paper does not define a type; see
    `question_type`.
    """

    def describe(texts: Sequence[str], sources: Sequence[str]) -> list[dict[str, Any]]:
        types = [tuple(map(question_type, pair)) for pair in zip(sources, texts, strict=True)]
        return [{"before": before, "after": after, "same": before == after} for before, after in types]

    return score_changes(rows, describe)
