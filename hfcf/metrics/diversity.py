"""How much the wording of counterfactuals differs from their sources and from each other: 1 / BLEU, self-BLEU and distinct-n."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset

from hfcf.core import schema
from hfcf.metrics.shared.metric import RACE, Metric
from hfcf.metrics.shared.texts import bare_words, changes

SAMPLE = 200
"""The number of texts of a set whose self-BLEU is computed: comparing each text with all the rest is quadratic."""


def inverse_bleu(texts: Sequence[str], sources: Sequence[str]) -> float | None:
    """Compute 1 / BLEU of texts against their sources: RACE's diversity.

    The paper's "inverse of the BLEU score" does not name a BLEU: here it is sacreBLEU's corpus BLEU, 0–1.

    Args:
        texts: the texts of the counterfactuals.
        sources: the text of each counterfactual's source.

    Returns:
        At least 1; None if BLEU is 0 or there are no texts.
    """
    corpus = _CorpusBleu()
    for text, source in zip(texts, sources, strict=True):
        corpus.add(text, source)
    return corpus.inverse()


class _CorpusBleu:
    """Compute sacreBLEU's corpus BLEU of pairs that come one at a time; it only holds counts."""

    def __init__(self) -> None:
        from sacrebleu.metrics import BLEU

        self._metric = BLEU()
        self._correct, self._total = ([0] * self._metric.max_ngram_order for _ in range(2))
        self._size = self._source_size = 0

    def add(self, text: str, source: str) -> None:
        """Count a text's n-grams, and the n-grams that its source also has."""
        (grams, size), (others, source_size) = (_read_ngrams(self._metric, side) for side in (text, source))
        for gram, n in grams.items():
            self._total[len(gram) - 1] += n
            self._correct[len(gram) - 1] += min(n, others[gram])
        self._size, self._source_size = self._size + size, self._source_size + source_size

    def inverse(self) -> float | None:
        """Return 1 / BLEU; None if BLEU is 0, or nothing was added."""
        metric = self._metric
        score = metric.compute_bleu(list(self._correct), list(self._total), self._size, self._source_size, metric.smooth_method)
        bleu = round(score.score / 100, 7)
        return 1 / bleu if bleu else None


def _read_ngrams(metric: Any, text: str) -> tuple[Counter[tuple[str, ...]], int]:
    """Count the n-grams of a text, and its tokens."""
    from sacrebleu.metrics.helpers import extract_all_word_ngrams

    counts, tokens = extract_all_word_ngrams(metric.tokenizer(text.rstrip()), 1, metric.max_ngram_order)
    return counts, tokens


def bleu(text: str, source: str) -> dict[str, float | None]:
    """Compute sacreBLEU's sentence BLEU of a text against its source, 0–1, and 1 / BLEU (None if BLEU is 0)."""
    from sacrebleu.metrics import BLEU

    score = round(BLEU(effective_order=True).sentence_score(text, [source]).score / 100, 5)
    return {"bleu": score, "inverse": round(1 / score, 5) if score else None}


def self_bleu(texts: Iterable[str], sample: int = SAMPLE) -> float | None:
    """Compute the mean BLEU of each text against all other texts, 0–1: a lower value is more diverse.

    Args:
        texts: at least one text.
        sample: the maximum number of texts; the texts with the smallest hashes are used, whatever their order.

    Returns:
        None for fewer than two texts.

    Source: Zhu et al. 2018, Texygen. Deviation: sacreBLEU's tokens and smoothing.
    """
    sampled = _draw(texts, sample)
    if len(sampled) < 2:
        return None
    scores = _against_the_others(sampled)
    return round(sum(scores) / len(scores) / 100, 5)


def _draw(texts: Iterable[str], sample: int) -> list[str]:
    """Draw the texts with the smallest hashes."""
    return nsmallest(sample, texts, key=lambda text: (hashlib.sha256(text.encode()).digest(), text))


def _against_the_others(texts: Sequence[str]) -> list[float]:
    """Compute `BLEU(effective_order=True).sentence_score` of each text against all other texts, and read each text once."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(effective_order=True)
    orders = metric.max_ngram_order
    read = [_read_ngrams(metric, text) for text in texts]
    # The two largest counts of each n-gram, the first with its text: for any text, one of them is the largest count in the rest.
    most: dict[tuple[str, ...], tuple[int, int, int]] = defaultdict(lambda: (0, -1, 0))
    for i, (grams, _) in enumerate(read):
        for gram, n in grams.items():
            first, holder, second = most[gram]
            most[gram] = (n, i, first) if n > first else (first, holder, max(second, n))
    sizes = Counter(size for _, size in read)
    scores = []
    for i, (grams, size) in enumerate(read):
        correct, total = [0] * orders, [0] * orders
        for gram, n in grams.items():
            first, holder, second = most[gram]
            total[len(gram) - 1] += n
            correct[len(gram) - 1] += min(n, second if holder == i else first)
        others = sizes - Counter([size])
        nearest = min(others, key=lambda other: (abs(other - size), other))
        scores.append(metric.compute_bleu(correct, total, size, nearest, metric.smooth_method, effective_order=True).score)
    return scores


def distinct(texts: Iterable[str], n: int) -> float | None:
    """Divide the number of different n-grams of the texts by the number of all n-grams, 0–1; None if there are none.

    Source: Li et al. 2016, A Diversity-Promoting Objective Function. A text is split by `hfcf.core.edits.words`, in lower case.
    """
    grams = _DistinctNGrams(n)
    for text in texts:
        grams.add(text)
    return grams.share()


class _DistinctNGrams:
    """Count the different n-grams of a stream of texts, in eight bytes for each different n-gram.

    Args:
        n: the number of words of an n-gram.
    """

    def __init__(self, n: int) -> None:
        self.n, self._count = n, 0
        self._different, self._new = np.empty(0, np.int64), array("q")

    def add(self, text: str) -> None:
        """Count the n-grams of a text."""
        words = [word.lower() for word in bare_words(text)]
        self._new.extend(map(hash, zip(*(words[i:] for i in range(self.n)), strict=False)))
        if len(self._new) > max(_MERGE_SIZE, len(self._different)):
            self._merge()

    def _merge(self) -> None:
        self._count += len(self._new)
        self._different = np.union1d(self._different, np.array(self._new))
        self._new = array("q")

    def share(self) -> float | None:
        """Return the share of different n-grams; None without n-grams."""
        self._merge()
        return round(len(self._different) / self._count, 5) if self._count else None


_MERGE_SIZE = 100_000
"""The number of n-grams that are counted before they are merged with earlier counts."""


def diversity(texts: Sequence[str], sources: Sequence[str]) -> dict[str, float | None]:
    """Compute all of a set's numbers: `inverse_bleu`, `self_bleu`, `distinct_1`, `distinct_2`."""
    return _diversity(zip(sources, texts, strict=True))


def _diversity(pairs: Iterable[tuple[str, str]]) -> dict[str, float | None]:
    """Compute `diversity` of pairs (before, after) in one pass, with few of them in memory."""
    corpus, unigrams, bigrams = _CorpusBleu(), _DistinctNGrams(1), _DistinctNGrams(2)

    def count() -> Iterator[str]:
        for before, after in pairs:
            corpus.add(after, before)
            unigrams.add(after)
            bigrams.add(after)
            yield after

    alike = self_bleu(count())
    return {"inverse_bleu": corpus.inverse(), "self_bleu": alike, "distinct_1": unigrams.share(), "distinct_2": bigrams.share()}


@dataclass(frozen=True, kw_only=True)
class MeasureDiversity(Metric):
    """Measure how much the wording differs from the source's: sentence BLEU, and 1 / BLEU.

    Input columns: the task's texts, `edits`. Output column: `diversity`, `{bleu, inverse}`, 0–1 and at least 1; null if nothing
    changed. A higher `inverse` is more diverse. RACE's Table 4 has 1 / BLEU of the corpus, which `overall` gives: the mean of
    `inverse` is a different, larger number. For questions, the two questions are compared, not their passages.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources'. It returns what `diversity`
    returns.

    Source: RACE, Table 4 (Div.), after Rani et al. 2023.

    Args:
        task: the task of the rows.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> MeasureDiversity().row(row)["diversity"]["bleu"]
    0.5946
    """

    better: ClassVar = "more `inverse`, less `bleu`"
    citation: ClassVar = f"{RACE}, Table 4"
    outputs: ClassVar = {"diversity": {"bleu": schema.FLOAT, "inverse": schema.FLOAT}}

    def score(self, prediction: str, reference: str) -> dict[str, float | None] | None:
        return bleu(prediction, reference) if prediction and reference else None

    @classmethod
    def over_lists(cls, predictions: Sequence[str], references: Sequence[str] | None = None, **settings: Any) -> dict[str, Any]:
        return diversity(predictions, references or ())

    @classmethod
    def overall(cls, ds: Dataset) -> dict[str, Any]:
        """Compute `diversity` of what an expanded set's counterfactuals changed."""
        return _diversity(pair for pair in changes(ds) if all(pair))
