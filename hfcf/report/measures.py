"""The numbers of accepted pairs, columns of metrics and scores of the system: which is better, and what to read first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hfcf import metrics
from hfcf.core.stage import Reject
from hfcf.metrics.copy_rate import rate_of
from hfcf.metrics.shared.metric import about
from hfcf.metrics.shared.texts import bare_words, read_new_text

LOW_SCORES = ("perplexity", "self_bleu", "duplicate", "leak")
"""How the names of scores begin that are better when lower; all other scores are better when higher."""
_VERIFIER = "verifier"
_JUDGE = "judge "
"""How the scores of judges after the verifier begin; a number follows (`hfcf.tasks.ensemble`)."""


def measures(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, float]:
    """Collect a row's numbers by name: its metrics' columns, then its scores, named by the text before a colon.

    Args:
        row: of the default configuration, or a rejected candidate.
        columns: the metrics', from `hfcf.hub.run_folder.number_columns`.
    """
    values = {name: _inside(row, name) for name in columns}
    for score in row.get("scores") or []:
        values.setdefault(str(score["name"]).partition(":")[0], score["value"])
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def certainty(row: Mapping[str, Any]) -> float:
    """Return the least probability that a verifier or a judge gives a row's label; 1 where none was asked.

    A judge that gives another label, whose probability is then known, gives this label at most the rest.
    """
    probabilities = []
    for score in row.get("scores") or []:
        name, _, label = str(score["name"]).partition(": ")
        if name == _VERIFIER or name.startswith(_JUDGE):
            probabilities.append(score["value"] if label in ("", row.get("label", label)) else 1 - score["value"])
    return min(probabilities, default=1.0)


def _inside(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    column, _, field = name.partition(".")
    return (row.get(column) or {}).get(field)


def low_is_better(name: str) -> bool:
    """Say whether less of a measure is better: of a metric by its `better`, of a system's score by `LOW_SCORES`."""
    metric, _, number = name.lower().partition(".")
    if metric not in metrics.names():
        return name.lower().startswith(LOW_SCORES)
    better = about(metrics.function(metric)).better
    return better == "less" or f"less `{number}`" in better


def ordered(names: Iterable[str], first: Iterable[str] = ()) -> list[str]:
    """Order names, each once: minimality, by which pairs are ranked by default; `first`; the other names as they come.

    Args:
        names: of measures.
        first: metrics in the order in which the run has them.
    """
    metrics = [name.partition(".")[0] for name in first]

    def place(name: str) -> tuple[bool, int]:
        metric = name.partition(".")[0]
        return not name.startswith("minimality"), metrics.index(metric) if metric in metrics else len(metrics)

    return sorted(dict.fromkeys(names), key=place)


def pair_score(row: Mapping[str, Any]) -> float | None:
    """Score a counterfactual: closeness to its source × (1 − excess copy rate) × certainty, 0–1, more is better.

    - Closeness is 1 − the word edits from the source's main text (claim, sentence or question) over the words of the longer text.
    - The excess copy rate is by how much the new claim's copy rate exceeds that of the source's claim. It is 0 if it does not, and
      for tasks whose rows list no pieces. A copied sentence is right and fluent, so the models that wrote and judged it are sure
      of it. A score of these models alone shows copies first.
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
