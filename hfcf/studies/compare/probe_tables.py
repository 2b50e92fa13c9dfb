"""The section of a page about what claims give away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.studies.compare.grid import Layout
from hfcf.studies.compare.probes import SHORTCUTS, TOP, by_shortcut
from hfcf.studies.compare.runner import Comparison
from hfcf.studies.compare.tables import majority, points, table


def probes_section(comparison: Comparison, layout: Layout, probed: Sequence[Mapping[str, Any]]) -> str:
    """Return the three probes, each as a table."""
    corpora = {one.name: one.ids for one in comparison.sets}
    parts = ["\n## Bias probes", "### What claims alone tell", claims_table(layout, probed, corpora)]
    parts += ["### Accuracy by shortcut word", shortcuts_table(layout, by_shortcut(layout, comparison.sets))]
    parts += ["### Bigrams that tell the label", bigrams_table(probed)]
    return "\n\n".join(parts) + "\n"


def claims_table(layout: Layout, probed: Sequence[Mapping[str, Any]], corpora: Mapping[str, str]) -> str:
    """Return accuracies of the model of claims, training sets down; `corpora` has the `ids` of each corpus."""
    rows = [["*majority label*", "–", "–", "–", *(majority(layout, corpus, "accuracy") for corpus in corpora)]]
    for one in probed:
        shares = [one["majority"], one["cross_validated"], *(one["evaluated"].get(ids) for ids in corpora.values())]
        rows.append([one["method"], f"{one['rows']:,}", *map(points, shares)])
    sentence = (
        "Accuracy (%) of a logistic regression over the words and bigrams of claims, without evidence. Cross-validated: on the "
        "training rows themselves, in five folds that never part a row from its counterfactuals; corpora: trained on all of them. "
        "The nearer to the commonest label's share, the less claims give away."
    )
    return sentence + "\n\n" + table(["Trained on the rows of", "Rows", "Commonest label", "Cross-validated", *corpora], rows)


def shortcuts_table(layout: Layout, accuracies: Sequence[Mapping[str, Any]]) -> str:
    """Return accuracies of the verifiers by shortcut phrase and label, methods across."""
    rows = []
    for one in accuracies:
        claims = one["claims"] if one["claims"] in SHORTCUTS else f"*{one['claims']}*"
        rows.append([claims, one["label"], f"{one['rows']:,}", *(points(one["accuracy"][method]) for method in layout.methods)])
    sentence = (
        "Accuracy (%) of the verifiers, mean over seeds, on the evaluation rows of all corpora whose claim has the words (whole "
        f"words; a claim counts under each that it has), by the row's label. These: {', '.join(SHORTCUTS)}."
    )
    return sentence + "\n\n" + table(["Claim has", "Label", "Rows", *layout.methods], rows)


def bigrams_table(probed: Sequence[Mapping[str, Any]]) -> str:
    """Return the bigrams that go with a label, and the label's share among the rows that have one, training sets across."""
    rows = []
    for first, *others in zip(*(one["bigrams"] for one in probed), strict=True):
        shares = [f"{points(one['share'])} ({one['rows']:,})" for one in (first, *others)]
        rows.append([first["label"], first["bigram"], f"{1e6 * first['lmi']:,.0f}", *shares])
    sentence = (
        f"The {TOP} bigrams of the training claims with the highest local mutual information (× 10⁶) towards each label, before "
        "anything is added, and p(label | bigram) in % among the rows of each method's training set that have it (how many)."
    )
    return sentence + "\n\n" + table(["Towards", "Bigram", "LMI", *(one["method"] for one in probed)], rows)
