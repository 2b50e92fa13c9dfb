"""Score pairs of an original and its revisions, whoever wrote them, in a file of the user's own columns."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import Dataset

from hfcf.core.edits import word_distance
from hfcf.core.model import Model, is_prompted
from hfcf.core.model_checks import read_length
from hfcf.core.recipe import did_you_mean
from hfcf.core.task import Row, Task
from hfcf.corpora.base import BadRow
from hfcf.corpora.custom.pairs import read_side, target_label, task_of_sides
from hfcf.corpora.custom.tables import own_columns, read_files
from hfcf.engines.classifier import choose
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.minimality import minimality
from hfcf.metrics.shared.bootstrap import mean_interval

log = logging.getLogger(__name__)

MEANINGS = {
    "flip_rate": "share of revisions that the model gives another label than their original",
    "hit_rate": "share of revisions that the model gives the target label",
    "probability_change": "how much less probable the original's label is for the revision, by the model",
    "distance": "words to insert, delete or replace",
    "share": "that number over the original's words",
    "kept": "share of the original's words that the revision has",
    "perplexity": "of the changed texts, by the language model",
    "diversity": "words between two revisions of one original",
}
"""What each score is."""


def score_pairs(
    pairs: str | Path | Dataset, *, original: Mapping[str, str], revised: Sequence[Mapping[str, str]],
    model: Model | str | None = None, language_model: Model | str | None = None, target: str | None = None,
    max_length: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Score originals and their revisions by this library's metrics, whoever wrote them: people, an LLM, another system.

    Args:
        pairs: a file (CSV, TSV, JSON lines, JSON or Parquet) or a `Dataset` with an original and its revisions in each row, or
            with one revision in each row, where the original is repeated.
        original: the columns of the original: {"text": COLUMN} for single texts, {"claim": COLUMN, "evidence": COLUMN} for a claim
            or a hypothesis with its evidence or premise.
        revised: the same of each revision; several of an original give the diversity between them.
        model: a classifier of the task, which gives both sides their labels. Without it there are no flips.
        language_model: a decoder-only model, which gives perplexities; without it there are none.
        target: the column with the label that the revisions should have; with a model it gives the hit rate.
        max_length: tokens that the classifier reads; by default as many as it can.

    Returns:
        `pairs`, the number of revisions; `originals`; `left_out`, rows without one of the texts; `unanswered`, pairs of which the
        model can't read a text, which have no flips; `cut`, pairs of which it reads only a beginning; `unread`, revisions that the
        language model can't read, which have no perplexity; `task`; and in `scores` for each score its mean with the interval of
        95 % over originals: [mean, low, high]. `hfcf.pipeline.score_pairs.MEANINGS` says what each score is.

    Raises:
        ValueError: a column or a field does not exist, the two sides have other fields, evidence can't be read, or no row has all
            its texts.

    Source: Nguyen et al. 2024, CEval, section 3 (flip rate, probability change, token distance, perplexity, diversity). Deviations:
        words instead of a tokenizer's tokens; the probability is of the original's label, which with two labels is the same number;
        the evidence that did not change has no perplexity.

    >>> rows = Dataset.from_list([{"before": "A good film.", "after": "A bad film."}, {"before": "It is dull.", "after": ""}])
    >>> result = score_pairs(rows, original={"text": "before"}, revised=[{"text": "after"}])
    >>> result["pairs"], result["left_out"], result["scores"]["distance"][0], round(result["scores"]["kept"][0], 2)
    (1, 1, 1.0, 0.67)
    """
    task = task_of_sides([original, *revised])
    if target is not None and model is None:
        raise ValueError("target= gives the share of revisions that a model gives their label: give model= as well")
    rows = pairs if isinstance(pairs, Dataset) else read_files([Path(pairs)])
    for column in [*original.values(), *(name for side in revised for name in side.values()), *([target] if target else [])]:
        if column not in rows.column_names:
            names = own_columns(rows)
            raise ValueError(f"there is no column {column!r}{did_you_mean(column, names)}: the columns are {', '.join(names)}")
    sides = [_read_sides(i, row, (original, *revised)) for i, row in enumerate(rows)]
    whole = [i for i, every in enumerate(sides) if every[0] is not None and any(side is not None for side in every[1:])]
    if not whole:
        raise ValueError("no row has an original and a revision: every row lacks a text of one of them")
    if left_out := len(sides) - len(whole):
        first = min(set(range(len(sides))) - set(whole))
        log.warning("%d of %d rows lack a text and are left out, the first is row %d", left_out, len(sides), first + 1)
    # Files with a revision in each row repeat the original.
    first_of: dict[str, int] = {}
    same = {i: first_of.setdefault(json.dumps(sides[i][0]), i) for i in whole}
    found = [(i, before, side) for i in whole if (before := sides[i][0]) for side in sides[i][1:] if side is not None]
    groups = [same[i] for i, _, _ in found]
    scores: dict[str, list[float | None]] = {}
    counts = {"originals": len(first_of), "pairs": len(found), "left_out": left_out}
    if model is not None:
        wanted = None if target is None else [target_label(task, rows[i][target]) for i, _, _ in found]
        model = Model.of(model)
        length = read_length(model, max_length)
        scores |= _labels(task, found, groups, model, wanted, length)
        counts["unanswered"] = sum(value is None for value in scores["flip_rate"])
        counts["cut"] = _count_cut(task, found, model, length)
    texts = [_changed(task, before, after) for _, before, after in found]
    measured = [minimality(*each) for each in texts]
    scores |= {name: [each[name] for each in measured] for name in ("distance", "share", "kept")}
    if language_model is not None:
        scores["perplexity"] = list(Perplexity(model=Model.of(language_model)).run([after for _, after in texts]))
        counts["unread"] = sum(value is None for value in scores["perplexity"])
    summary = {name: _mean(values, groups) for name, values in scores.items()}
    between: dict[int, list[Any]] = {}
    for group, (_, _, side) in zip(groups, found, strict=True):
        between.setdefault(group, []).append(side)
    if apart := {
        group: fmean(word_distance(*_changed(task, *two)) for two in itertools.combinations(each, 2))
        for group, each in between.items()
        if len(each) > 1
    }:
        summary["diversity"] = _mean(list(apart.values()), list(apart))
    return {"task": task.name, **counts, "scores": summary}


def _read_sides(i: int, row: Row, columns: Sequence[Mapping[str, str]]) -> list[dict[str, Any] | None]:
    try:
        return [read_side(row, each) for each in columns]
    except BadRow as error:
        raise ValueError(f"row {i + 1}: {error}") from error


def _labels(
    task: Task, found: Sequence[tuple[int, Any, Any]], groups: Sequence[int], model: Model,
    wanted: Sequence[str | None] | None, max_length: int,
) -> dict[str, list[float | None]]:  # fmt: skip
    """Ask a model for the labels of both sides of each pair, each original once."""
    originals = {group: before for group, (_, before, _) in zip(groups, found, strict=True)}
    answers = task.verdicts([*originals.values(), *(after for _, _, after in found)], model, max_length)
    if wanted is not None:
        names = {name for answer in answers if isinstance(answer, Mapping) for name in answer}
        if names and (unknown := sorted({label for label in wanted if label} - names)):
            cure = "say which is which, labels=" if task.labels is None else "write these in the column"
            raise ValueError(f"target: {', '.join(unknown)}: the model's labels are {', '.join(sorted(names))}; {cure}")
    before = dict(zip(originals, answers, strict=False))
    columns: dict[str, list[float | None]] = {"flip_rate": [], "probability_change": [], **({"hit_rate": []} if wanted else {})}
    for n, (group, after) in enumerate(zip(groups, answers[len(originals) :], strict=True)):
        if not isinstance(after, Mapping) or not isinstance(old := before[group], Mapping):
            values: list[float | None] = [None] * len(columns)
        else:
            label, new = choose(old, list(old)), choose(after, list(after))
            values = [float(label != new), old[label] - after[label], *([_hit(new, wanted[n])] if wanted else [])]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns


def _hit(label: str, wanted: str | None) -> float | None:
    """Say whether a label is the wanted one; None where no label is wanted."""
    return float(label == wanted) if wanted else None


def _count_cut(task: Task, found: Sequence[tuple[int, Any, Any]], model: Model, length: int) -> int:
    """Count the pairs of which a text has more tokens than are read."""
    if is_prompted(model):
        return 0
    before = task.input_tokens([side for _, side, _ in found], model, length)
    after = task.input_tokens([side for _, _, side in found], model, length)
    return sum(max(sizes) > length for sizes in zip(before, after, strict=True))


def _changed(task: Task, before: Row, after: Row) -> tuple[str, str]:
    """Return the texts of both sides that differ, all of them if none does; pieces of evidence are one text."""
    new = _fields(task, after)
    pairs = [(text, new[field]) for field, text in _fields(task, before).items()]
    kept = [two for two in pairs if two[0] != two[1]] or pairs
    return " ".join(old for old, _ in kept), " ".join(new for _, new in kept)


def _fields(task: Task, side: Row) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for segment in task.segments(side):
        texts.setdefault(segment.field, []).append(segment.text)
    return {field: " ".join(filter(None, several)) for field, several in texts.items()}


def _mean(values: Sequence[float | None], groups: Sequence[int]) -> list[float] | None:
    """Return the mean and its interval over originals, without what was not measured; None where nothing was."""
    known = [(value, group) for value, group in zip(values, groups, strict=True) if value is not None]
    interval = mean_interval([value for value, _ in known], [group for _, group in known]) if known else ()
    return [round(number, 5) for number in interval] or None


def to_page(result: Mapping[str, Any]) -> str:
    """Return scores as a table of Markdown, each with what it means."""
    counts = f"{result['pairs']:,} revisions of {result['originals']:,} originals ({result['task']})"
    lines = [f"| {name.replace('_', ' ')} | {_interval(found)} | {MEANINGS[name]} |" for name, found in result["scores"].items()]
    few = [f"{result['left_out']:,} rows left out"]
    if result.get("unanswered"):
        few.append(f"{result['unanswered']:,} revisions without an answer of the model, because a text is too long for it")
    if result.get("unread"):
        few.append(f"{result['unread']:,} revisions without a perplexity, because the text is too long for the language model")
    if result.get("cut"):
        few.append(f"{result['cut']:,} revisions cut before the model reads them")
    header = [f"{counts}, {', '.join(few)}", "", "| score | mean [95 %] | what |", "|---|---|---|"]
    return "\n".join([*header, *lines]) + "\n"


def _interval(found: Sequence[float] | None) -> str:
    return "–" if found is None else f"{found[0]:.3f} [{found[1]:.3f}, {found[2]:.3f}]"
