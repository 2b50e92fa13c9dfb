"""How much do claims alone give away, before and after augmentation? (CrossAug, section 1; Schuster et al. 2019, sections 2 and 5)

- What a model of words and bigrams makes of claims without their evidence: of other claims of the training rows, and of the
  evaluation rows. The nearer to the share of the commonest label, the less a claim tells.
- Which bigrams of the training claims go with which label, by local mutual information, and what becomes of them.
- How the verifiers do on claims with the words that go with REFUTES in FEVER, and on claims without them, for each label.
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

from hfcf.studies.compare.comparison import Comparison
from hfcf.studies.compare.frame import Cell, Grid
from hfcf.studies.compare.methods import Method
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.runner import counterfactuals
from hfcf.studies.compare.sets import EvaluationSet
from hfcf.studies.compare.tables import majority, points, table
from hfcf.studies.compare.training_sets import training_rows
from hfcf.training.bias_model import ngram_bias, ngram_model
from hfcf.training.reweight import local_mutual_information, ngrams

VERSION = "1"
"""Raise it when the same rows give other numbers."""
SHORTCUTS = (
    "did not", "failed to", "never", "was not", "is not", "only", "incapable of", "unable to", "refused to", "yet to", "not"
)  # fmt: skip
"""The phrases that Schuster et al. (2019, Table 1) and Thorne et al. (2018) name. A claim counts under each that it holds."""
_PATTERNS = {phrase: re.compile(r"\b" + r"\s+".join(phrase.split()) + r"\b", re.IGNORECASE) for phrase in SHORTCUTS}
ANY, NONE = "any of these", "none of these"
TOP = 5


def probe(comparison: Comparison, work: Path) -> list[dict[str, Any]]:
    """Measure what the claims of each training set give away: of the rows alone first, then of each method that adds some.

    Results are stored as cells. Methods that differ only in how they train are left out. Counterfactuals are kept in `work`.
    """
    sample = comparison.samples[0]
    plain = next((method for method in comparison.methods if method.plain), Method("no augmentation", None))
    ids, results = sorted(test_set.ids for test_set in comparison.sets), []
    for method in (plain, *(method for method in comparison.methods if method.system is not None and method.debias is None)):
        key = digest(["probes", VERSION, comparison.definition(method, sample, 0), ids])
        if (cell := comparison.cells.get(key)) is None:
            made, _ = counterfactuals(comparison, method, sample, work)
            pool = sample.pool if method.judged else None
            rows, _ = training_rows(method, sample.train, made, sample.scored, pool, sample.labels)
            bigrams = shares(telling(sample.train["claim"], sample.train["label"]), rows)
            cell = {**claim_only(rows, sample.labels, comparison.sets), "bigrams": bigrams}
            comparison.cells.put(key, {"table": "probes", "method": method.name, **cell})
        results.append({**cell, "method": method.name})
    return results


def claim_only(rows: Dataset, labels: Sequence[str], sets: Sequence[EvaluationSet]) -> dict[str, Any]:
    """Score a logistic regression over the words and bigrams of claims."""
    # A row and its counterfactuals share a group: on both sides of a fold, claims would be known but for a word.
    gold = list(rows["label"])
    try:
        chosen = ngram_bias(rows, labels).argmax(axis=1)
        validated = statistics.fmean(labels[i] == label for i, label in zip(chosen, gold, strict=True))
    except ValueError:
        validated = None
    evaluated: dict[str, float | None] = {evaluated.ids: None for evaluated in sets}
    if len(set(gold)) > 1:
        model = ngram_model().fit(list(rows["claim"]), gold)
        for test_set in sets:
            right = model.predict(list(test_set.rows["claim"])) == np.array(test_set.rows["label"])
            evaluated[test_set.ids] = float(np.mean(right))
    share = max(Counter(gold).values()) / len(gold)
    return {"rows": len(rows), "majority": share, "cross_validated": validated, "evaluated": evaluated}


def telling(claims: Sequence[str], labels: Sequence[str], top: int = TOP) -> list[dict[str, Any]]:
    """Find the bigrams that go with each label most: p(w, l) · log (p(l | w) / p(l)), local mutual information.

    Deviation from the paper: a bigram is counted once in a claim.

    Source: Schuster et al. 2019, "Towards Debiasing Fact Verification Models", EMNLP, section 2.
    """
    classes, own = np.unique(np.array(labels, dtype=str), return_inverse=True)
    names, held = ngrams(list(claims), (2,), common=0, at_least=1)
    counts = held @ np.eye(len(classes))[own]
    total = max(counts.sum(), 1)
    information = local_mutual_information(counts, counts.sum(0) / total) / total
    bigrams = []
    for label, column in zip(classes.tolist(), information.T, strict=True):
        best = np.argsort(-column.round(12), kind="stable")[:top]  # the names are sorted: ties are by text
        bigrams += [{"label": label, "bigram": names[j], "lmi": float(column[j])} for j in best if column[j] > 0]
    return bigrams


def shares(bigrams: Sequence[Mapping[str, Any]], rows: Dataset) -> list[dict[str, Any]]:
    """Return `telling`'s bigrams with `rows`, of these rows, that hold it, and `share` of its label among them: p(l | w)."""
    names, held = ngrams(list(rows["claim"]), (2,), common=0, at_least=1)
    number, gold = {name: j for j, name in enumerate(names)}, np.array(rows["label"], dtype=str)
    result = []
    for bigram in bigrams:
        which = held[[number[bigram["bigram"]]], :].nonzero()[1] if bigram["bigram"] in number else np.array([], dtype=int)
        share = float(np.mean(gold[which] == bigram["label"])) if len(which) else None
        result.append({**bigram, "rows": len(which), "share": share})
    return result


def shortcuts(claim: str) -> set[str]:
    """Return the shortcut phrases that a claim holds, as whole words in any case."""
    return {phrase for phrase, pattern in _PATTERNS.items() if pattern.search(claim)}


def by_shortcut(grid: Grid, sets: Sequence[EvaluationSet]) -> list[dict[str, Any]]:
    """Return accuracy on all evaluation rows together by shortcut phrase and gold label.

    Seeds of a method that miss a corpus are left out, and so are phrases that no row has.
    """
    phrases = [shortcuts(claim) for test_set in sets for claim in test_set.rows["claim"]]
    labels = np.array([label for test_set in sets for label in test_set.rows["label"]], dtype=str)
    right = {
        method: [
            [gold == answer for cell in cells for gold, answer in zip(cell["gold"], cell["predicted"], strict=True)]
            for cells in _whole_seeds(grid, method, sets)
        ]
        for method in grid.methods
    }
    groups = {ANY: [bool(of_claim) for of_claim in phrases], NONE: [not of_claim for of_claim in phrases]}
    groups |= {phrase: [phrase in of_claim for of_claim in phrases] for phrase in SHORTCUTS}
    table = []
    for name, members in groups.items():
        for label in sorted(set(labels.tolist()), reverse=True):
            which = np.array(members, dtype=bool) & (labels == label)
            if which.any():
                accuracy = {method: float(np.array(each)[:, which].mean()) if each else None for method, each in right.items()}
                table.append({"claims": name, "label": label, "rows": int(which.sum()), "accuracy": accuracy})
    return table


def _whole_seeds(grid: Grid, method: str, sets: Sequence[EvaluationSet]) -> list[list[Cell]]:
    places = [[(method, seed, test_set.name) for test_set in sets] for seed in grid.seeds]
    return [[grid.cells[place] for place in of_seed] for of_seed in places if all(place in grid.cells for place in of_seed)]


def probes_section(comparison: Comparison, grid: Grid, probed: Sequence[Mapping[str, Any]]) -> str:
    """Return the three probes, each as a table."""
    corpora = {test_set.name: test_set.ids for test_set in comparison.sets}
    parts = ["\n## Bias probes", "### What claims alone tell", claims_table(grid, probed, corpora)]
    parts += ["### Accuracy by shortcut word", shortcuts_table(grid, by_shortcut(grid, comparison.sets))]
    parts += ["### Bigrams that tell the label", bigrams_table(probed)]
    return "\n\n".join(parts) + "\n"


def claims_table(grid: Grid, probed: Sequence[Mapping[str, Any]], corpora: Mapping[str, str]) -> str:
    """Return accuracies of the model of claims, training sets down; `corpora` has the `ids` of each corpus."""
    rows = [["*majority label*", "–", "–", "–", *(majority(grid, corpus, "accuracy") for corpus in corpora)]]
    for probe in probed:
        shares = [probe["majority"], probe["cross_validated"], *(probe["evaluated"].get(ids) for ids in corpora.values())]
        rows.append([probe["method"], f"{probe['rows']:,}", *map(points, shares)])
    sentence = (
        "Accuracy (%) of a logistic regression over the words and bigrams of claims, without evidence. Cross-validated: on the "
        "training rows themselves, in five folds that never part a row from its counterfactuals; corpora: trained on all of them. "
        "The nearer to the commonest label's share, the less claims give away."
    )
    return sentence + "\n\n" + table(["Trained on the rows of", "Rows", "Commonest label", "Cross-validated", *corpora], rows)


def shortcuts_table(grid: Grid, accuracies: Sequence[Mapping[str, Any]]) -> str:
    """Return accuracies of the verifiers by shortcut phrase and label, methods across."""
    rows = []
    for group in accuracies:
        claims = group["claims"] if group["claims"] in SHORTCUTS else f"*{group['claims']}*"
        rows.append([claims, group["label"], f"{group['rows']:,}", *(points(group["accuracy"][method]) for method in grid.methods)])
    sentence = (
        "Accuracy (%) of the verifiers, mean over seeds, on the evaluation rows of all corpora whose claim has the words (whole "
        f"words; a claim counts under each that it has), by the row's label. These: {', '.join(SHORTCUTS)}."
    )
    return sentence + "\n\n" + table(["Claim has", "Label", "Rows", *grid.methods], rows)


def bigrams_table(probed: Sequence[Mapping[str, Any]]) -> str:
    """Return the bigrams that go with a label, and the label's share among the rows that have a bigram, training sets across."""
    rows = []
    for first, *others in zip(*(probe["bigrams"] for probe in probed), strict=True):
        shares = [f"{points(probe['share'])} ({probe['rows']:,})" for probe in (first, *others)]
        rows.append([first["label"], first["bigram"], f"{1e6 * first['lmi']:,.0f}", *shares])
    sentence = (
        f"The {TOP} bigrams of the training claims with the highest local mutual information (× 10⁶) towards each label, before "
        "anything is added, and p(label | bigram) in % among the rows of each method's training set that have it (how many)."
    )
    return sentence + "\n\n" + table(["Towards", "Bigram", "LMI", *(probe["method"] for probe in probed)], rows)
