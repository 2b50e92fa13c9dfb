"""Row weights under which no n-gram of the claims tells the label (Schuster et al. 2019, EMNLP, section 4).

Theirs (paper): every row i has a balancing weight αᵢ ≥ 0. The bias of n-gram j towards class c is the weighted share of c among
the rows whose claim holds it. `bⱼᶜ = Σᵢ I[j ∈ i] (1 + αᵢ) I[yᵢ = c] / Σᵢ I[j ∈ i] (1 + αᵢ)`. α minimises `Σⱼ maxc bⱼᶜ + λ ‖α‖₂`,
once, before the training, whose loss is then (1 + αᵢ) times row i's cross-entropy.

Theirs (released code, of which a part is missing): bigrams of lower-case words that occur five times or more. They are formed
after the ten commonest words are left out. The code lists the most biased bigrams by local mutual information, 20 to a label. The
sum is over the whole vocabulary in the paper, and so it is here; `top` sums over the most biased of each label alone. Adam with a
learning rate of 1, α clamped at 0 after each of 2,000 steps, λ = 1e-10. CrossAug's code divides a batch's loss by its sum of 1 +
α, and so do we.

Ours: an n-gram is counted once a row, with a closed gradient over a sparse matrix. There are 400 steps with a rate that falls from
0.3 to 0, and the best α on the way is taken. From a rate of 1 the weights overshoot, and rows are raised that need not be. λ is
larger. With almost no λ, a row that is alone against fifty rows gets fifty times its weight, and rules its batch.

As in the paper, what is balanced has equal shares of all classes that its rows have, whatever the shares of the classes are. An
n-gram whose rows all have one label can't be balanced, and stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


def row_weights(
    claims: Sequence[str], labels: Sequence[str], *, sizes: Sequence[int] = (2,), common: int = 10, at_least: int = 5,
    top: int = 0, penalty: float = 0.01, steps: int = 400,
) -> np.ndarray:  # fmt: skip
    """Compute α of every row: how much more than 1 it counts; `hfcf.training.debias.Debias` has the settings."""
    classes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)[1]
    _, biased_ngrams = ngrams(claims, sizes, common=common, at_least=at_least)
    if top:
        biased_ngrams = biased_ngrams[most_biased(biased_ngrams, classes, top)]
    return balance(biased_ngrams, classes, penalty, steps)


def ngrams(claims: Sequence[str], sizes: Sequence[int] = (2,), *, common: int = 10, at_least: int = 5) -> tuple[list[str], Any]:
    """List the n-grams of claims, sorted, with a sparse 0/1 matrix, n-grams × claims."""
    from scipy.sparse import csr_array

    texts = [re.findall(r"\w+", claim.lower()) for claim in claims]
    counts = Counter(word for words in texts for word in words)
    left_out = set(sorted(counts, key=lambda word: (-counts[word], word))[:common])
    by_claim = []
    for words in texts:
        words = [word for word in words if word not in left_out]
        by_claim.append({" ".join(words[i : i + size]) for size in sizes for i in range(len(words) - size + 1)})
    claims_with = Counter(ngram for members in by_claim for ngram in members)
    names = sorted(ngram for ngram, count in claims_with.items() if count >= at_least)
    number = {ngram: j for j, ngram in enumerate(names)}
    where = [(number[ngram], i) for i, members in enumerate(by_claim) for ngram in members if ngram in number]
    j, i = np.array(where, dtype=np.int64).reshape(-1, 2).T
    return names, csr_array((np.ones(len(where)), (j, i)), shape=(len(names), len(claims)))


def most_biased(occurrences: Any, classes: np.ndarray, top: int) -> np.ndarray:
    """Return the numbers of the `top` n-grams of each class by local mutual information, p(j, c) log (p(c | j) / p(c)).

    Deviation: both are shares of the rows; theirs are of the n-grams of all claims.
    """
    one_hot = np.eye(classes.max(initial=0) + 1)[classes]
    information = local_mutual_information(occurrences @ one_hot, one_hot.sum(0) / max(len(one_hot), 1))
    order = np.argsort(-information, axis=0, kind="stable")[:top]
    return np.array(sorted({j for c, column in enumerate(order.T) for j in column if information[j, c] > 0}), dtype=np.int64)


def local_mutual_information(counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Compute count(j, c) log (p(c | j) / p(c)), n-grams × classes; `shares` are p(c)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(counts * np.log(counts / counts.sum(1, keepdims=True) / shares), neginf=0.0)


def balance(occurrences: Any, classes: np.ndarray, penalty: float = 0.01, steps: int = 400) -> np.ndarray:
    """Find the α ≥ 0 with the lowest Σⱼ maxc bⱼᶜ + λ ‖α‖₂, by Adam from 0; `occurrences` is n-grams × rows, and `penalty` is λ."""
    alpha = np.zeros(occurrences.shape[1])
    if not occurrences.nnz:
        return alpha
    by_row, one_hot = occurrences.T.tocsr(), np.eye(classes.max() + 1)[classes]
    first, second = np.zeros_like(alpha), np.zeros_like(alpha)
    best, lowest = alpha, np.inf
    for step in range(steps + 1):
        weighted = occurrences @ (one_hot * (1 + alpha)[:, None])
        total = weighted.sum(1)
        likeliest, norm = weighted.argmax(1), np.linalg.norm(alpha)
        highest = weighted.max(1) / total
        if (value := highest.sum() + penalty * norm) < lowest:
            best, lowest = alpha, value
        # d maxc bⱼᶜ / d αᵢ = I[j ∈ i] (I[yᵢ = c] − bⱼᶜ) / Σ, with the c of the maximum and the Σ of the weights of n-gram j's rows.
        gradient = (by_row @ (np.eye(one_hot.shape[1])[likeliest] / total[:, None]) * one_hot).sum(1) - by_row @ (highest / total)
        gradient += penalty * alpha / norm if norm else 0.0
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        rate = 0.3 * (1 - step / max(steps, 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
        alpha = np.maximum(alpha - rate * first / (1 - 0.9 ** (step + 1)), 0.0)
    return best
