"""The one writer of tables: a frame as Markdown, and the texts of its cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from pandas import DataFrame

NONE = "–"
"""The text of what is not known."""


def to_markdown(frame: DataFrame) -> str:
    """Return a frame as a Markdown table, without its index; pipes are escaped and line breaks are spaces.

    >>> print(to_markdown(DataFrame({"Method": ["none"], "Accuracy": ["50.0"]})))
    | Method | Accuracy |
    |---|---|
    | none | 50.0 |
    """
    rows = (frame.columns, *frame.itertuples(index=False, name=None))
    lines = [[" ".join(str(cell).replace("|", r"\|").split()) for cell in row] for row in rows]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(frame.columns), *texts[1:]])


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a Markdown table."""
    return to_markdown(DataFrame([list(row) for row in rows], columns=list(header), dtype=object))


def pivot(
    texts: Mapping[tuple[str, Any], str], rows: Iterable[str], columns: Mapping[Any, str], *first: Sequence[str],
    last: Iterable[Sequence[str]] = (), name: str = "Method",
) -> str:  # fmt: skip
    """Return texts by row and column as a Markdown table, between first and last rows; `columns` has the titles."""
    lines = ([row, *(texts.get((row, column), NONE) for column in columns)] for row in rows)
    return table([name, *columns.values()], [*first, *lines, *last])


def page(title: str, sections: Iterable[str]) -> str:
    """Return a page; parts that are empty are left out."""
    return "\n\n".join(part for part in (f"# {title}", *sections) if part) + "\n"


def bullets(texts: Iterable[str]) -> str:
    """Return a Markdown list of the texts that are not empty."""
    return "\n".join(f"- {text}" for text in texts if text)


def points(share: float | None) -> str:
    """Return a share in points of a hundred, "–" if it is not known."""
    return NONE if share is None or math.isnan(share) else f"{100 * share:.1f}"


def signed_points(share: float) -> str:
    """Return a difference of shares in points, with its sign."""
    # `+ 0.0` after rounding, or −0.0001 would print as −0.0.
    return f"{round(100 * share, 1) + 0.0:+.1f}".replace("-", "−").replace("+0.0", "0.0")


def spread(numbers: Iterable[Any]) -> str:
    """Return a number that several should agree on, or the least and the largest if they don't."""
    known = sorted({number for number in numbers if number is not None})
    return "–".join(f"{n:,}" for n in dict.fromkeys((known[0], known[-1]))) if known else NONE


def score_texts(
    values: DataFrame, column: str, expected: int = 0, starred: Collection[tuple[str, Any]] = (),
    floors: Mapping[Any, float | None] | None = None,
) -> dict[tuple[str, Any], str]:  # fmt: skip
    """Return mean ± deviation in points by method and column, with a star if starred, and (k of expected) where scores are missing.

    `values` is a long table of one metric. The best method of a column is bold, unless it is below the column's floor, what always
    giving the commonest label scores.
    """
    texts: dict[tuple[str, Any], str] = {}
    for name, part in values.groupby(column, sort=False):
        # pandas' own means and deviations differ in the last bit.
        scores = {method: each.tolist() for method, each in part.groupby("method", sort=False)["value"]}
        means = {method: float(points(fmean(each))) for method, each in scores.items()}
        least = (floors or {}).get(name)
        best = max(means.values()) if least is None or max(means.values()) >= float(points(least)) else None
        for method, each in scores.items():
            text = points(fmean(each)) + (f" ± {points(stdev(each))}" if len(each) > 1 else "")
            text = f"**{text}**" if means[method] == best else text
            star = r"\*" if (method, name) in starred else ""
            texts[str(method), name] = text + star + (f" ({len(each)} of {expected})" if len(each) < expected else "")
    return texts
