"""The numbers of accepted pairs, columns of metrics and scores of the system: which is better, their order, and their words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hfcf import metrics

LOW_SCORES = ("perplexity", "self_bleu", "duplicate", "leak")
"""How the names of scores begin that are better when lower; all other scores are better when higher."""
_VERIFIER = "verifier"
_PHRASES = {
    "minimality.distance": "word edits {:.0f}",
    "minimality.share": "{:.0%} of the source's words",
    "minimality.kept": "keeps {:.0%} of them",
    "diversity.bleu": "BLEU with the source {:.2f}",
    "diversity.inverse": "",  # 1 / BLEU, which is listed
    "copy_rate.rate": "{:.0%} is one run of the evidence",
    "copy_rate.source": "",  # what `rate` is compared with, in the report and the card
    "similarity": "similarity to the source {:.2f}",
    "coherence": "claim and evidence {:.2f} alike",
    "entity_overlap": "{:.0%} of the source's entities kept",
    "fluency": "perplexity {:.0f}",
    "grammar": "grammatical {:.0%}",
    _VERIFIER: "the verifier says {detail} {:.0%}",
    "model": "the attacked model says {detail} {:.0%}",
    "model before": "of the source {detail} {:.0%}",
    "queries": "{:.0f} queries",
    "writer": "written by: {detail}",
    "words": "its words say {detail}",
}
"""The words for a measure; "" where another measure has the same."""
_VERDICTS = {
    "duplicates.repeat": ("repeats another row", ""),
    "duplicates.near": ("nearly repeats another row", ""),
    "duplicates.leak": ("is in an evaluation set", ""),
    "duplicates.near_leak": ("is nearly in an evaluation set", ""),
    "flip_rate.flipped": ("another model agrees with the label", "another model does not agree with the label"),
    "claim_only.guessed": ("the claim alone tells the label", "the claim alone does not tell the label"),
    "copy_rate.copied": ("", ""),  # `rate` says it
    "multi_hop.combines": ("combines pieces", "from one piece"),
    "multi_hop.source": ("", ""),
    "multi_hop.kept": ("", ""),
    "question_types.same": ("the question is of the same type", "the question is of another type"),
}
"""The words for yes and no; "" where none are needed."""
_LOG = "log-probability"
_JUDGE = "judge "
"""How the scores of judges after the verifier begin; a number follows (`hfcf.tasks.ensemble`)."""


def measures(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, float]:
    """Collect a row's numbers by name: its metrics' columns, then its scores, named by the text before a colon.

    Args:
        row: of the default configuration, or a rejected candidate.
        columns: the metrics', from `hfcf.report.files.numbers`.
    """
    values = {name: _inside(row, name) for name in columns}
    for score in row.get("scores") or []:
        values.setdefault(str(score["name"]).partition(":")[0], score["value"])
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def certainty(row: Mapping[str, Any]) -> float:
    """Return the least probability that a verifier or a judge gives a row's label; 1 where none was asked.

    A judge that gives another label, whose probability is then known, gives this label at most the rest.
    """
    asked = []
    for score in row.get("scores") or []:
        name, _, label = str(score["name"]).partition(": ")
        if name == _VERIFIER or name.startswith(_JUDGE):
            asked.append(score["value"] if label in ("", row.get("label", label)) else 1 - score["value"])
    return min(asked, default=1.0)


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
    better = metrics.load(metric, stage=True).better
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


def phrases(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """Write a row's numbers in words: first its system's scores, then its metrics.

    Args:
        row: of the default configuration.
        columns: the metrics', from `hfcf.report.files.numbers`.
    """
    details = {kind: detail for kind, _, detail in (str(score["name"]).partition(": ") for score in row.get("scores") or [])}
    values = measures(row, columns)
    scores = [name for name in values if name in details]
    said = [_phrase(name, values[name], details.get(name, "")) for name in dict.fromkeys([*scores, *values])]
    return [text for text in said if text]


def _phrase(name: str, value: float, detail: str) -> str:
    if name in _VERDICTS:
        yes, no = _VERDICTS[name]
        return yes if value else no
    if name in _PHRASES:
        return " ".join(_PHRASES[name].format(value, detail=detail).split())
    if name.startswith(_JUDGE):
        return f"{name} says {detail} {value:.0%}"
    if name.startswith(_LOG):  # a mean over tokens
        return f"probability of a token{name.removeprefix(_LOG)} {math.exp(value):.2f}"
    return f"{name.replace('.', ' ').replace('_', ' ')} {value:.{0 if value.is_integer() or abs(value) >= 100 else 2}f}"
