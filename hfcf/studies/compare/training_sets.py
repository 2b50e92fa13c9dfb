"""What a method adds to the training rows: its counterfactuals, or the rows of a control instead of them."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from datasets import Dataset, concatenate_datasets

from hfcf.core.expand import expand
from hfcf.core.model import Model
from hfcf.core.schema import no_rows
from hfcf.core.task import task_of
from hfcf.engines.classifier import choose
from hfcf.studies.compare.methods import Method
from hfcf.studies.compare.results import digest
from hfcf.training.data import drop_overlap, drop_related

log = logging.getLogger(__name__)

_ASKED = 64  # rows that a judge labels at once


def training_rows(
    method: Method, originals: Dataset, rows: Dataset | None, scored: Sequence[Dataset], pool: Dataset | None = None,
    labels: Sequence[str] = (),
) -> tuple[Dataset, int]:  # fmt: skip
    """Return a method's training rows, and how many that it adds were left out because a scored row repeats them."""
    if method.more:
        return with_more(originals, method.further, scored)
    if rows is None:
        return originals, 0
    additions = expand(rows)
    if method.changes:
        kinds = sorted(set(additions["change"]))
        additions = additions.select([i for i, change in enumerate(additions["change"]) if change in method.changes])
        if not len(additions):
            names, there = ", ".join(method.changes), ", ".join(kinds) or "none"
            log.warning("%s: no counterfactual is a change of %s; they are changes of: %s", method.name, names, there)
    apart = _scored_rows(originals, scored)
    rest, dropped = drop_overlap(additions, apart)
    if method.ratio:
        rest = in_turn(rest, round(method.ratio * len(originals)), method.name)
    rest = rest.select_columns(originals.column_names)
    if method.copies:
        rest = copies(originals, rest["label"] if "label" in rest.features else [""] * len(rest))
    if method.judged and method.judge and pool is not None:
        number = len(rest)
        rest = label_rows(drop_related(pool, apart), rest["label"], *method.judge, labels)
        if len(rest) < number:
            log.warning("%s: the corpus has %d further rows with a label of the verifier, not %d", method.name, len(rest), number)
    return concatenate_datasets([originals, rest.cast(originals.features)]), dropped


def _scored_rows(originals: Dataset, scored: Sequence[Dataset]) -> Dataset:
    columns = [name for name in originals.column_names if name in scored[0].features]
    return concatenate_datasets([part.select_columns(columns) for part in scored])


def with_more(originals: Dataset, further: Dataset, scored: Sequence[Dataset]) -> tuple[Dataset, int]:
    """Add further rows that are not there yet and share nothing with a scored row; say how many were left out for the latter."""
    known = set(zip(originals["corpus"], originals["id"], strict=True))
    new = [i for i, key in enumerate(zip(further["corpus"], further["id"], strict=True)) if key not in known]
    rest = drop_related(further.select(new), _scored_rows(originals, scored))
    added = rest.select_columns(originals.column_names).cast(originals.features)
    return concatenate_datasets([originals, added]), len(new) - len(rest)


def in_turn(rows: Dataset, number: int, name: str) -> Dataset:
    """Take as many counterfactuals as are to be trained on: the first of each source, in the order of a hash, then the second."""
    counts, ranks = Counter[str](), []
    for source, row_id in zip(rows["source_id"], rows["id"], strict=True):
        ranks.append((counts[source], digest(row_id)))
        counts[source] += 1
    if len(rows) < number:
        log.warning("%s: there are %d counterfactuals, and ratio asks for %d", name, len(rows), number)
    return rows.select(sorted(sorted(range(len(rows)), key=ranks.__getitem__)[:number]))


def copies(originals: Dataset, labels: Iterable[str]) -> Dataset:
    """Return a row for each label, each row in turn, in the order of a hash of their ids; "" for rows without labels."""
    ids, own = originals["id"], originals["label"] if "label" in originals.features else [""] * len(originals)
    order = sorted(range(len(originals)), key=lambda i: digest(ids[i]))
    cycles = {label: itertools.cycle([i for i in order if own[i] == label]) for label in set(own)}
    return originals.select([next(cycles[label]) for label in labels])


def label_rows(pool: Dataset, wanted: Iterable[str], judge: Model, max_length: int, labels: Sequence[str]) -> Dataset:
    """Return as many rows of a pool as labels are wanted, each with the label that a judge gives it; its own is not read.

    Rows come in the order of a hash of their ids. As many of each label are taken as are wanted. Where the pool has too few rows
    of a label, rows of other labels are taken. A row is passed over if the judge can't read it, or gives it a label that the
    models don't have. The check of a counterfactual rejects such a row in the same way.
    """
    task, ids, open_ = task_of(pool.features), pool["id"], Counter(wanted)
    number, chosen, spare = open_.total(), list[tuple[int, str]](), list[tuple[int, str]]()
    order = sorted(range(len(pool)), key=lambda i: digest(ids[i]))
    texts = pool.remove_columns("label")
    for start in range(0, len(order), _ASKED):
        if len(chosen) == number:
            break
        part = order[start : start + _ASKED]
        for i, answer in zip(part, task.verdicts(texts.select(part).to_list(), judge, max_length), strict=True):
            if not isinstance(answer, Mapping) or (label := choose(answer, task.class_names(answer))) not in labels:
                continue
            (chosen if open_[label] > 0 else spare).append((i, label))
            open_[label] -= 1
    chosen += spare[: number - len(chosen)]
    if not chosen:
        return no_rows(pool.features)
    return Dataset.from_list([{**pool[i], "label": label} for i, label in chosen], features=pool.features)
