"""Do raters agree more than by chance? Krippendorff's α, exact; and what they decide together.

Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability". In fractions, so exact whatever the order, and too short to be
worth a dependency; its examples are among the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any, Literal

Level = Literal["nominal", "ordinal", "interval"]
_Delta = Callable[[float, float], Fraction]


def alpha(units: Iterable[Sequence[float | None]], level: Level = "ordinal") -> float | None:
    """Krippendorff's α = 1 − observed / expected disagreement: 1 is full agreement, 0 that of chance.

    Args:
        units: for each thing that was rated, its ratings as numbers; None, or fewer of them, where a rating is missing. A unit with
            a single rating says nothing and is left out.
        level: how far apart two ratings are: "nominal" (another is another), "ordinal" (the ranks between them) or "interval"
            (their difference, squared).

    Returns:
        α, at most 1; None where there is no variation to agree on: fewer than two ratings of any unit, or one value everywhere.

    >>> alpha([[1, 1], [1, 2], [2, 2], [3, 3]], "nominal")
    0.6666666666666666
    >>> alpha([[1, 1], [1, None]]) is None
    True
    """
    weights: dict[tuple[float, float], Fraction] = {}
    for unit in units:
        given = Counter(value for value in unit if value is not None)
        if (m := given.total()) < 2:
            continue
        for one, other in product(given, repeat=2):
            n = given[one] * (given[other] - (one == other))
            weights[one, other] = weights.get((one, other), Fraction(0)) + Fraction(n, m - 1)
    totals: dict[float, Fraction] = {}
    for (one, _), weight in weights.items():
        totals[one] = totals.get(one, Fraction(0)) + weight
    n_all, far = sum(totals.values(), Fraction(0)), _distance(totals, level)
    expected = sum((totals[a] * totals[b] * far(a, b) for a, b in product(totals, repeat=2)), Fraction(0))
    if not expected:
        return None
    observed = sum((weight * far(a, b) for (a, b), weight in weights.items()), Fraction(0))
    return float(1 - (n_all - 1) * observed / expected)


def _distance(totals: Mapping[float, Fraction], level: Level) -> _Delta:
    """The squared distance of two ratings."""
    if level == "nominal":
        return lambda a, b: Fraction(a != b)
    if level == "interval":
        return lambda a, b: Fraction(a - b) ** 2
    places, below = {}, Fraction(0)
    for value in sorted(totals):
        # Half of those that share a rank lie on each side.
        places[value] = below + totals[value] / 2
        below += totals[value]
    return lambda a, b: (places[a] - places[b]) ** 2


def majority(values: Sequence[Any]) -> Any | None:
    """The value that more than half of the raters gave, or None.

    >>> majority([2, 1, 2]), majority([0, 1, 2]), majority([])
    (2, None, None)
    """
    value, n = Counter(values).most_common(1)[0] if values else (None, 0)
    return value if 2 * n > len(values) else None


def decided(values: Sequence[float]) -> float:
    """The majority's rating, or where there is none the middle one.

    >>> decided([2, 2, 0]), decided([0, 1, 2])
    (2, 1)
    """
    found = majority(values)
    return median(values) if found is None else found
