"""Which pairs are worth reading first: pairs that stay close to their source, are not copied from the evidence, and are certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.stage import Reject
from hfcf.metrics.copy_rate import rate_of
from hfcf.metrics.shared.texts import bare_words, read_new_text
from hfcf.report.measures import certainty


def pair_score(row: Mapping[str, Any]) -> float | None:
    """Score a counterfactual: closeness to its source × (1 − excess copy rate) × certainty, 0–1, more is better.

    - Closeness is 1 − the word edits from the source's main text (claim, sentence or question) over the words of the longer text.
    - The excess copy rate is by how much the new claim's copy rate exceeds that of the source's claim. It is 0 if it does not, and
      for tasks whose rows list no pieces. A copied sentence is right and fluent, so the models that wrote and judged it are sure
      of it. A score of these models alone shows copies first.
      it: a score of theirs alone shows copies first.
    - Certainty is the least probability that the verifier or a judge gives the new label; 1 where none was asked.

    Returns:
        The score to four decimals: what differs by less is equal. None where the main text is the source's, or where the edits no
        longer lead back to a source.

    >>> evidence = [{"title": "", "text": "Oslo is the capital of Norway."}]
    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Oslo", "after": "Rome"}
    >>> row = {"claim": "Rome lies in Norway.", "evidence": evidence, "edits": [edit], "scores": []}
    >>> pair_score(row)
    0.8
    """
    from rapidfuzz.distance import Levenshtein

    try:
        pair = read_new_text(row)
    except Reject:
        return None
    if pair is None:
        return None
    new, source = pair
    closeness = Levenshtein.normalized_similarity(bare_words(source.text), bare_words(new.text))
    excess = max(0.0, (rate_of(new) or 0.0) - (rate_of(source) or 0.0))
    return round(closeness * (1 - excess) * certainty(row), 4)
