"""How much do claims alone give away, before and after augmentation? (CrossAug, section 1; Schuster et al. 2019, sections 2 and 5)

- What a model of words and bigrams makes of claims without their evidence: of other claims of the training rows, and of the
  evaluation rows. The nearer to the share of the commonest label, the less a claim tells.
- Which bigrams of the training claims go with which label, by local mutual information, and what becomes of them.
- How the verifiers do on claims with the words that go with REFUTES in FEVER, and on those without them, for each label.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hfcf.studies.compare.arms import Arm, training_rows
from hfcf.studies.compare.evaluation import EvaluationSet
from hfcf.studies.compare.layout import Layout
from hfcf.studies.compare.verifiers import Comparison, counterfactuals
from hfcf.training.bias import ngram_bias, ngram_model
from hfcf.training.reweight import local_mutual_information, ngrams

VERSION = "1"
"""Raise it when the same rows give other numbers."""
SHORTCUTS = (
    *("did not", "failed to", "never", "was not", "is not", "only", "incapable of", "unable to", "refused to", "yet to", "not"),
)
"""What Schuster et al. (2019, Table 1) and Thorne et al. (2018) name. A claim counts under each that it holds."""
_PATTERNS = {phrase: re.compile(r"\b" + r"\s+".join(phrase.split()) + r"\b", re.IGNORECASE) for phrase in SHORTCUTS}
ANY, NONE = "any of these", "none of these"
TOP = 5


def probe(comparison: Comparison, work: Path) -> list[dict[str, Any]]:
    """What the claims of each training set give away: of the rows alone first, then of each method that adds some.

    Results are cells, beside the others. Methods that differ in how they train, and not in what on, are left out.

    Args:
        comparison: from `open_comparison`.
        work: for locks.

    Returns:
        For each training set its `method`, `rows`, `majority`, `cross_validated`, `evaluated` (by the `ids` of the evaluation
        rows) and `bigrams`; see `claim_only` and `shares`.
    """
    plain = next((arm for arm in comparison.arms if arm.plain), Arm("no augmentation", None))
    ids = sorted(one.ids for one in comparison.sets)
    found = []
    for arm in (plain, *(arm for arm in comparison.arms if arm.system is not None and arm.debias is None)):
        key = ["probes", arm.name], {**comparison.definition(arm, 0), "probes": VERSION, "evaluated": ids}
        cell = comparison.cells.get(*key)
        if cell is None:
            made = counterfactuals(comparison, arm, work)
            rows, _ = training_rows(arm, comparison.originals, made, comparison.evaluated)
            told = telling(comparison.originals["claim"], comparison.originals["label"])
            cell = {**claim_only(rows, comparison.labels, comparison.sets), "bigrams": shares(told, rows)}
            comparison.cells.put(*key, cell)
        found.append({**cell, "method": arm.name})
    return found


def claim_only(rows: Dataset, labels: Sequence[str], sets: Sequence[EvaluationSet]) -> dict[str, Any]:
    """Accuracies of a logistic regression over the words and bigrams of claims.

    Args:
        rows: that it is trained on. A row and its counterfactuals share a group: cross-validation keeps them on one side, for else
            it would be scored on claims that it has seen but for a word.
        labels: its classes.
        sets: rows that it is scored on, after training on all of `rows`.

    Returns:
        `rows`, how many; `majority`, the share of their commonest label; `cross_validated`; `evaluated`: by `ids` of a set. None
        where there are too few groups or labels to train on.
    """
    gold = list(rows["label"])
    try:
        chosen = ngram_bias(rows, labels).argmax(axis=1)
        validated = statistics.fmean(labels[i] == label for i, label in zip(chosen, gold, strict=True))
    except ValueError:
        validated = None
    evaluated: dict[str, float | None] = {one.ids: None for one in sets}
    if len(set(gold)) > 1:
        model = ngram_model().fit(list(rows["claim"]), gold)
        for one in sets:
            evaluated[one.ids] = float(np.mean(model.predict(list(one.rows["claim"])) == np.array(one.rows["label"])))
    share = max(Counter(gold).values()) / len(gold)
    return {"rows": len(rows), "majority": share, "cross_validated": validated, "evaluated": evaluated}


def telling(claims: Sequence[str], labels: Sequence[str], top: int = TOP) -> list[dict[str, Any]]:
    """The bigrams that go with each label most: p(w, l) · log (p(l | w) / p(l)), local mutual information.

    Deviation from the paper: a bigram is counted once in a claim.

    Args:
        claims: of the training rows.
        labels: of the training rows.
        top: how many of each label.

    Returns:
        `label`, `bigram` and `lmi`, above 0 only; labels in alphabetical order, the highest first.

    Source: Schuster et al. 2019, "Towards Debiasing Fact Verification Models", EMNLP, section 2.

    >>> for one in telling(["it did not sing", "he did not act", "she can act"], ["REFUTES", "REFUTES", "SUPPORTS"], top=1):
    ...     print(one["label"], one["bigram"], round(one["lmi"], 4))
    REFUTES did not 0.0719
    SUPPORTS can act 0.1733
    """
    classes, own = np.unique(np.array(labels, dtype=str), return_inverse=True)
    names, held = ngrams(list(claims), (2,), common=0, at_least=1)
    counts = held @ np.eye(len(classes))[own]
    total = max(counts.sum(), 1)
    information = local_mutual_information(counts, counts.sum(0) / total) / total
    found = []
    for label, column in zip(classes.tolist(), information.T, strict=True):
        for j in np.argsort(-column.round(12), kind="stable")[:top]:  # the names are sorted: ties are by text
            if column[j] > 0:
                found.append({"label": label, "bigram": names[j], "lmi": float(column[j])})
    return found


def shares(told: Sequence[Mapping[str, Any]], rows: Dataset) -> list[dict[str, Any]]:
    """`telling`'s bigrams with `rows`, how many of these rows hold it, and `share`, the share of its label among them: p(l | w)."""
    names, held = ngrams(list(rows["claim"]), (2,), common=0, at_least=1)
    number, gold = {name: j for j, name in enumerate(names)}, np.array(rows["label"], dtype=str)
    found = []
    for one in told:
        which = held[[number[one["bigram"]]], :].nonzero()[1] if one["bigram"] in number else np.array([], dtype=int)
        share = float(np.mean(gold[which] == one["label"])) if len(which) else None
        found.append({**one, "rows": len(which), "share": share})
    return found


def shortcuts(claim: str) -> set[str]:
    """The shortcut phrases that a claim holds, as whole words in any case.

    >>> sorted(shortcuts("It Did  not sing; nothing is lonely.")), shortcuts("A knot.")
    (['did not', 'not'], set())
    """
    return {phrase for phrase, pattern in _PATTERNS.items() if pattern.search(claim)}


def by_shortcut(layout: Layout, sets: Sequence[EvaluationSet]) -> list[dict[str, Any]]:
    """Accuracy on all evaluation rows together by shortcut phrase and gold label.

    Args:
        layout: the cells. A method's seeds that miss a corpus are left out.
        sets: the rows that the cells were evaluated on.

    Returns:
        `claims` (with which phrase), `label`, `rows` and `accuracy`: by method, the mean over its seeds, None without any. What no
        row has is left out.
    """
    rows = [(shortcuts(claim), label) for one in sets for claim, label in zip(one.rows["claim"], one.rows["label"], strict=True)]
    answers = {
        method: [
            "".join(layout.cells[method, seed, one.name]["correct"] for one in sets)
            for seed in layout.seeds
            if all((method, seed, one.name) in layout.cells for one in sets)
        ]
        for method in layout.methods
    }
    found = []
    for phrase in (ANY, NONE, *SHORTCUTS):
        for label in sorted({label for _, label in rows}, reverse=True):
            which = [i for i, (held, its) in enumerate(rows) if its == label and _in(phrase, held)]
            if which:
                accuracy = {
                    method: statistics.fmean(each[i] == "1" for each in its for i in which) if its else None
                    for method, its in answers.items()
                }
                found.append({"claims": phrase, "label": label, "rows": len(which), "accuracy": accuracy})
    return found


def _in(phrase: str, held: set[str]) -> bool:
    return bool(held) if phrase == ANY else not held if phrase == NONE else phrase in held
