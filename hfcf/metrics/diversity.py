"""How much the wording of counterfactuals differs from their sources and from each other: 1 / BLEU, self-BLEU and distinct-n."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.metrics.shared.metric import RACE, metric
from hfcf.metrics.shared.texts import bare_words, changes, score_changes

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
    from sacrebleu.metrics import BLEU

    if not texts:
        return None
    score = round(BLEU(force=True).corpus_score(list(texts), [list(sources)]).score / 100, 7)
    return 1 / score if score else None


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
    from sacrebleu.metrics import BLEU

    sampled = nsmallest(sample, texts, key=lambda text: (hashlib.sha256(text.encode()).digest(), text))
    if len(sampled) < 2:
        return None
    metric = BLEU(effective_order=True)
    scores = [metric.sentence_score(text, sampled[:i] + sampled[i + 1 :]).score for i, text in enumerate(sampled)]
    return round(sum(scores) / len(scores) / 100, 5)


def distinct(texts: Iterable[str], n: int) -> float | None:
    """Divide the number of different n-grams of the texts by the number of all n-grams, 0–1; None if there are none.

    Source: Li et al. 2016, A Diversity-Promoting Objective Function. A text is split by `hfcf.core.edits.words`, in lower case.
    """
    different, count = set[int](), 0
    for text in texts:
        words = [word.lower() for word in bare_words(text)]
        grams = list(map(hash, zip(*(words[i:] for i in range(n)), strict=False)))  # a hash takes a tenth of a tuple's memory
        different.update(grams)
        count += len(grams)
    return round(len(different) / count, 5) if count else None


def diversity(texts: Sequence[str], sources: Sequence[str]) -> dict[str, float | None]:
    """Compute all of a set's numbers: `inverse_bleu`, `self_bleu`, `distinct_1`, `distinct_2`."""
    return {
        "inverse_bleu": inverse_bleu(texts, sources), "self_bleu": self_bleu(texts), "distinct_1": distinct(texts, 1),
        "distinct_2": distinct(texts, 2),
    }  # fmt: skip


def _overall(ds: Dataset) -> dict[str, Any]:
    """Compute `diversity` of what an expanded set's counterfactuals changed."""
    pairs = [pair for pair in changes(ds) if all(pair)]
    return diversity([after for _, after in pairs], [before for before, _ in pairs])


@metric(
    {"bleu": schema.FLOAT, "inverse": schema.FLOAT},
    better="more `inverse`, less `bleu`",
    citation=f"{RACE}, Table 4",
    overall=_overall,
    over_lists=diversity,
)
def measure_diversity(rows: Dataset) -> list[Any]:
    """Measure how much the wording differs from the source's: sentence BLEU, and 1 / BLEU.

    Input columns: the task's texts, `edits`. Output column: `diversity`, `{bleu, inverse}`, 0–1 and at least 1; null if nothing
    changed. A higher `inverse` is more diverse. RACE's Table 4 has 1 / BLEU of the corpus, which `diversity` gives: the mean of
    `inverse` is a different, larger number. For questions, the two questions are compared, not their passages.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources'. It returns what `diversity`
    returns.

    Source: RACE, Table 4 (Div.), after Rani et al. 2023.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> measure_diversity(Dataset.from_list([row]))[0]["bleu"]
    0.5946
    """

    def describe(texts: Sequence[str], sources: Sequence[str]) -> list[dict[str, float | None] | None]:
        return [bleu(text, source) if text and source else None for text, source in zip(texts, sources, strict=True)]

    return score_changes(rows, describe)
