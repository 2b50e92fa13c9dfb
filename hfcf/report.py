"""A run on one self-contained HTML page: the funnel with its reasons, and twenty pairs with what changed in colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.edits import diff
from hfcf.hub.render import render


def report(run: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> str:
    """The page. Everything that comes from data is escaped by the template.

    Args:
        run: what `run.json` holds.
        pairs: from `hfcf.publish.pair`.
    """
    shown = [
        {**pair, "texts": [{**text, "parts": diff(text["before"], text["after"])} for text in pair["texts"]]} for pair in pairs[:20]
    ]
    return render("report.html.jinja", run=run, pairs=shown, widest=max(1, run["rows_in"]))
