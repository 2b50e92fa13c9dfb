"""Pairwise consistency: how often a model that is right on an original is also right on its counterfactual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Dataset

from hfcf.core.edits import word_distance
from hfcf.core.pairs import sources
from hfcf.core.task import task_of

BINS = {"1–4": (1, 4), "5–10": (5, 10), ">10": (11, None)}
"""Bins of the word edit distance (RGF, appendix C.4)."""
ORDER = ("0", *BINS)
"""All names that `edit_bin` returns, by distance."""


def consistency(
    source_right: Sequence[bool], right: Sequence[bool], strata: Mapping[str, Sequence[str | None]] | None = None
) -> dict[str, Any]:
    """Compute C(D), the accuracy on counterfactuals conditioned on right answers to their originals.

    Source: Paranjape et al. 2022, RGF, section 6.1: C(D) = E_D[f(q′, c′) = a′ | f(q, c) = a]. It is not the share of pairs that are
        both right (`both`): a model raises that share by being right on more originals.

    Args:
        source_right: for each pair, whether the model is right on the original.
        right: for each pair, whether the model is right on the counterfactual.
        strata: {name: the stratum of each pair}; None for a pair that belongs to no stratum.

    Returns:
        `pairs`, their number. `conditioned`, how many have a right original. `consistency` (0–1, None if no original is right).
        `source` and `counterfactual`, the accuracy on each side, and `both`, all 0–1 (None without pairs). And, by the name of the
        strata, the same numbers of each.
    """
    pairs = list(zip(source_right, right, strict=True))
    conditioned = [other for source_is_right, other in pairs if source_is_right]
    n, both = len(pairs), sum(conditioned)
    numbers = {
        "consistency": both / len(conditioned) if conditioned else None,
        "source": len(conditioned) / n if n else None,
        "counterfactual": sum(other for _, other in pairs) / n if n else None,
        "both": both / n if n else None,
    }
    result: dict[str, Any] = {"pairs": n, "conditioned": len(conditioned)}
    result |= {name: None if value is None else round(value, 4) for name, value in numbers.items()}
    for name, of_pairs in (strata or {}).items():
        result[name] = {}
        for stratum in ordered_strata(of_pairs):
            which = [i for i, other in enumerate(of_pairs) if other == stratum]
            result[name][stratum] = consistency([source_right[i] for i in which], [right[i] for i in which])
    return result


def edit_bin(distance: int) -> str:
    return next((name for name, (low, high) in BINS.items() if distance >= low and (high is None or distance <= high)), "0")


def strata_of(pairs: Dataset) -> dict[str, list[str | None]]:
    """Return what stratifies a paired set: `change`, if it has that column, and `edit distance`.

    The distance is `hfcf.core.edits.word_distance` between the texts that identify the two rows, such as the questions. "0" are
    pairs whose texts are equal, because something else was changed.
    """
    task = task_of(pairs.features)
    columns = [name for name in task.columns if name in pairs.features]
    rows, originals = pairs.select_columns(columns), sources(pairs)
    texts = [[task.segments(row)[0].text for row in (old, new)] for old, new in zip(originals, rows, strict=True)]
    distances: list[str | None] = [edit_bin(word_distance(old, new)) for old, new in texts]
    change = {"change": list(pairs["change"])} if "change" in pairs.features else {}
    return {**change, "edit distance": distances}


def ordered_strata(strata: Sequence[str | None]) -> list[str]:
    """List the strata that occur: bins by distance, the remaining strata in order of first occurrence."""
    present = [stratum for stratum in dict.fromkeys(strata) if stratum is not None]
    return sorted(present, key=lambda stratum: ORDER.index(stratum) if stratum in ORDER else -1)
