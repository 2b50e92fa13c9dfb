"""Ask a model of any task about a paired set, and rate its pairwise consistency."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset, List, concatenate_datasets
from numpy.typing import NDArray
from scipy.stats import binomtest

from hfcf.core.columns import iterate, with_label_names
from hfcf.core.model import Model
from hfcf.core.pairs import sources
from hfcf.core.schema import why_unread
from hfcf.core.task import task_of
from hfcf.core.trainer import Scorer, evaluate, load_scorer
from hfcf.engines.edit_kinds import KINDS
from hfcf.metrics.scores import consistency as scores
from hfcf.metrics.scores.coverage import kinds_of
from hfcf.metrics.shared.bootstrap import LEVEL, intervals

Array = NDArray[np.float64]


def consistency(pairs: Dataset, model: str | Model, *, max_length: int | None = None, ways: int | None = None) -> dict[str, Any]:
    """Score a model on a paired set: both sides of each pair, by kind of change, by kind of edit and by edit distance.

    Args:
        pairs: from `hfcf.pair` or `hfcf.pair_within`: rows of a task with their originals in `source`. A column `change` has the
            categories, such as "reference" and "predicate".
        model: a model for that task: a Hub id, a folder, or a `Model`.
        max_length: number of tokens in an input; by default as many as the model reads.
        ways: for a verifier: 2 leaves pairs with NOT ENOUGH INFO out; by default the model's labels that the rows have.

    Returns:
        As `hfcf.metrics.scores.consistency.consistency`, with the strata `change`, `kind` (of edits, see `hfcf.coverage`; a pair
        with several edits counts for each of their kinds) and `edit distance`. `interval` and `both_interval` are the ends of the
        95 % intervals of `consistency` and `both`, 0–1; None without any. Sources are drawn again, each with all its
        counterfactuals, so that several of one source do not count as independent. Of a share of 0 or 1, which every draw has, the
        interval is Wilson's, of as many sources. `left_out` counts pairs that can't be read or that the model cannot answer, by
        the reason.

    Raises:
        ValueError: the set is not paired, or no model of this library answers rows of its task.

    Source: Paranjape et al. 2022, RGF, section 6.1 and appendix C.4. The task's scorer decides whether an answer is right: it is
    the label, or it matches an alternative exactly.
    """
    return score_pairs(ask_pairs(pairs, model, max_length=max_length, ways=ways))


@dataclass(frozen=True)
class PairAnswers:
    """What a model answered to both sides of a paired set.

    Args:
        pairs: the pairs, with labels as names.
        gold: the true answers of the original and of the counterfactual of each pair.
        predicted: the model's answers to them.
        right: whether they are right.
        left_out: why a pair is not scored, by its index.
        notes: sentences that readers of the scores need.
    """

    pairs: Dataset
    gold: Sequence[tuple[Any, Any]]
    predicted: Sequence[tuple[Any, Any]]
    right: Sequence[tuple[bool, bool]]
    left_out: Mapping[int, str]
    notes: Sequence[str]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield what a file of predictions says of each pair: its ids, and of both sides the gold answer and the prediction."""
        for i, (row_id, source_id, kinds) in enumerate(
            zip(self.pairs["id"], sources(self.pairs)["id"], kinds_of(self.pairs), strict=True)
        ):
            about = {"id": row_id, "source_id": source_id, "kinds": list(kinds)}
            if i in self.left_out:
                yield {**about, "left_out": self.left_out[i]}
                continue
            sides = (
                {"gold": gold, "prediction": predicted, "right": right}
                for gold, predicted, right in zip(self.gold[i], self.predicted[i], self.right[i], strict=True)
            )
            yield {**about, **dict(zip(("source", "counterfactual"), sides, strict=True))}


def ask_pairs(
    pairs: Dataset, model: str | Model, *, max_length: int | None = None, ways: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> PairAnswers:  # fmt: skip
    """Ask a model about both sides of a paired set, and about an original with several counterfactuals once; see `consistency`."""
    statuses = pairs["status"][:] if "status" in pairs.features else [None] * len(pairs)
    unread = {i: why for i, status in enumerate(statuses) if (why := why_unread(status))}
    kept = [i for i in range(len(pairs)) if i not in unread]
    if not kept:
        raise ValueError(f"there are no pairs to score{': none can be read: ' if unread else ''}{next(iter(unread.values()), '')}")
    found = _ask_read(pairs.select(kept), model, max_length, ways, settings)
    place = {i: n for n, i in enumerate(kept)}

    def of_all(values: Sequence[Any], nothing: Any) -> list[Any]:
        return [values[place[i]] if i in place else nothing for i in range(len(pairs))]

    return PairAnswers(
        with_label_names(pairs), of_all(found.gold, (None, None)), of_all(found.predicted, (None, None)),
        of_all(found.right, (False, False)), {**unread, **{kept[n]: why for n, why in found.left_out.items()}}, found.notes,
    )  # fmt: skip


def _ask_read(
    pairs: Dataset, model: str | Model, max_length: int | None, ways: int | None, settings: Mapping[str, Any] | None
) -> PairAnswers:
    """Ask about pairs that can be read."""
    pairs, originals = with_label_names(pairs), sources(pairs)
    task = task_of(pairs.features)
    # A side without a column of further right answers has none.
    for name in task.answer_columns:
        pairs, originals = _with_answers(pairs, originals, name), _with_answers(originals, pairs, name)
    columns = [name for name in originals.column_names if name in pairs.features]
    keys = [json.dumps(row, sort_keys=True, default=str) for row in iterate(originals, columns)]
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    place = {key: n for n, key in enumerate(first)}
    asked = [originals.select(list(first.values())).select_columns(columns), pairs.select_columns(columns)]
    features = asked[0].features
    rows = concatenate_datasets([asked[0], asked[1].cast(features)])
    result = evaluate(rows, Model.of(model), max_length=max_length, ways=ways, settings=settings)
    places = [(place[key], len(first) + i) for i, key in enumerate(keys)]
    left_out = {i: result.left_out[side] for i, both in enumerate(places) for side in reversed(both) if side in result.left_out}
    kept = [i for i in range(len(rows)) if i not in result.left_out]
    scorer = load_scorer(task.scorer)
    right = scorer.right([result.gold[i] for i in kept], [result.predicted[i] for i in kept])
    is_right = dict(zip(kept, right, strict=True))
    return PairAnswers(
        pairs,
        [(result.gold[old], result.gold[new]) for old, new in places],
        [(result.predicted[old], result.predicted[new]) for old, new in places],
        [(is_right.get(old, False), is_right.get(new, False)) for old, new in places],
        left_out,
        [*result.notes, *([f"{result.cut} rows have more than {result.max_length} tokens, and are cut"] if result.cut else [])],
    )


def _with_answers(rows: Dataset, other: Dataset, name: str) -> Dataset:
    """Return rows with a column of further right answers, empty in each row, if only the other rows have it."""
    if name in rows.features or name not in other.features:
        return rows
    none: Any = [] if isinstance(other.features[name], List) else None
    return rows.add_column(name, [none] * len(rows), feature=other.features[name])


def score_pairs(answers: PairAnswers) -> dict[str, Any]:
    """Score a model's answers to a paired set; see `consistency`."""
    kept = [i for i in range(len(answers.pairs)) if i not in answers.left_out]
    pairs = answers.pairs.select(kept)
    old, new = ([answers.right[i][side] for i in kept] for side in (0, 1))
    numbers = scores.consistency(old, new, scores.strata_of(pairs))
    kinds = list(kinds_of(pairs))
    which = {kind: [i for i, of_pair in enumerate(kinds) if kind in of_pair] for kind in KINDS}
    of_kinds = {
        kind: scores.consistency([old[i] for i in places], [new[i] for i in places]) for kind, places in which.items() if places
    }
    originals = sources(pairs)
    ids = list(originals["id"]) if "id" in originals.features else list(range(len(originals)))
    left_out = dict(Counter(answers.left_out.values()).most_common())
    return {**numbers, "kind": of_kinds, **_intervals(old, new, ids), "left_out": left_out}


def _intervals(old: Sequence[bool], new: Sequence[bool], names: Sequence[Any]) -> dict[str, list[float] | None]:
    """Return the ends of the intervals of consistency and of both sides right; samples without a right original count 0."""
    if not old:
        return {"interval": None, "both_interval": None}
    first, both = np.array(old, dtype=float), np.array([a and b for a, b in zip(old, new, strict=True)], dtype=float)

    def shares(drawn: Array) -> Array:
        return np.stack([drawn @ both / np.maximum(drawn @ first, 1), drawn @ both / drawn.sum(axis=1)], axis=1)

    conditioned = {name for name, right in zip(names, old, strict=True) if right}
    ends = []
    for (share, low, high), independent in zip(intervals(shares, names), (len(conditioned), len({*names})), strict=True):
        if share in (0.0, 1.0) and independent:  # every sample that is drawn again has the same share
            low, high = binomtest(round(share * independent), independent).proportion_ci(LEVEL, method="wilson")
        ends.append([round(float(low), 4), round(float(high), 4)])
    return {"interval": ends[0] if any(old) else None, "both_interval": ends[1]}


@dataclass(frozen=True)
class PairScorer:
    """Rate answers to pairs by their consistency; an answer is a list: to the original, and to the counterfactual."""

    metrics: ClassVar[dict[str, str]] = {
        "consistency": "Pairwise consistency", "source_right": "Right on the originals of the pairs",
        "counterfactual_right": "Right on the counterfactuals of the pairs",
    }  # fmt: skip
    compared: ClassVar[tuple[str, ...]] = ("consistency",)
    note: ClassVar[str] = (
        "Pairwise consistency is the accuracy on counterfactuals whose originals the same model answers right (RGF, section 6.1): "
        "each model is scored on pairs of its own."
    )

    of: Scorer

    def gold(self, rows: Dataset) -> list[list[Any]]:
        sides = zip(self.of.gold(sources(rows)), self.of.gold(rows), strict=True)
        return [list(pair) for pair in sides]

    def letters(self, labels: Any) -> None:
        return

    def right(self, gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> list[bool]:
        old, new = self._sides(gold, predicted)
        return [original and counterfactual for original, counterfactual in zip(old, new, strict=True)]

    def scores(self, gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> dict[str, float]:
        """Return all `metrics`; consistency is nan where no original is right."""
        numbers = scores.consistency(*self._sides(gold, predicted))
        values = [numbers[name] for name in ("consistency", "source", "counterfactual")]
        return dict(zip(self.metrics, [float("nan") if value is None else value for value in values], strict=True))

    def resample(self, counts: Array, gold: NDArray[Any], predicted: NDArray[Any]) -> Array:
        """Return the consistency of many samples of pairs; 0 in a sample without a right original."""
        sides = [self._sides(list(gold), list(each)) for each in predicted]
        old, new = (np.array([of_model[i] for of_model in sides], dtype=float) for i in (0, 1))
        return np.stack([counts @ (old * new).T / np.maximum(counts @ old.T, 1)])

    def _sides(self, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[list[bool], list[bool]]:
        old, new = (self.of.right([pair[i] for pair in gold], [pair[i] for pair in predicted]) for i in (0, 1))
        return old, new
