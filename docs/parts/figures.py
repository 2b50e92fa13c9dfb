"""Figures inside sentences: `<!-- n: KEY -->VALUE<!-- /n -->`, with the value that `results/` has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from parts import bench, comparisons, ratings

FIGURE = re.compile(r"(?:^```.*?^```$|`[^`\n]*`)|(<!-- n: ([^>]*?) -->)(.*?)(<!-- /n -->)", re.DOTALL | re.MULTILINE)
"""Code, or a figure in a page: where it begins, its key, its value, where it ends."""


class UnknownFigureError(LookupError):
    """A page has a key that no result has."""


def sources() -> dict[str, Callable[[], Mapping[str, str]]]:
    """Return what computes the figures of each kind, by the beginning of their keys."""
    return {"rated": ratings.figures, "bench": bench.figures, "compared": comparisons.figures}


def slug(name: str) -> str:
    """Return a name as keys have it: letters and digits, in lower case, with `_` between them.

    >>> slug("RACE"), slug("accepted pairs v0.1")
    ('race', 'accepted_pairs_v0_1')
    """
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def look_up(key: str, page: str) -> str:
    """Return the figure of a key; case and marks of names don't matter.

    Raises:
        UnknownFigureError: nothing is stored under this key.
    """
    found = sources()
    beginning = next((name for name in sorted(found, key=len, reverse=True) if key.startswith(f"{name}.")), None)
    if beginning is None:
        raise UnknownFigureError(f"{page}: the figure {key!r}: a key begins with one of {', '.join(found)}")
    known, rest = found[beginning](), ".".join(slug(part) for part in key[len(beginning) + 1 :].split("."))
    if rest not in known:
        near = [f"{beginning}.{name}" for name in get_close_matches(rest, known, 3, 0.5)]
        raise UnknownFigureError(f"{page}: no result has the figure {key!r}; near it: {', '.join(near) or 'none'}")
    return known[rest]


def fill(text: str, page: str) -> str:
    """Return the text of a page with its figures as they are today."""
    return FIGURE.sub(lambda found: f"{found[1]}{look_up(found[2], page)}{found[4]}" if found[1] else found[0], text)
