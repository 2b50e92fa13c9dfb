"""The table of metrics."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

from hfcf import metrics
from hfcf.core.docstrings import arguments, first_sentence, paragraphs
from hfcf.core.task import Task, tasks
from hfcf.metrics.shared.metric import About, about, settings_of_metric
from hfcf.metrics.shared.texts import NotMeasured
from parts.markdown import brief, table

ROWS = {
    ("classification", "qa", "relation", "structures", "verification"): "",
    ("classification", "relation", "structures", "verification"): "labels",
    ("structures", "verification"): "claims",
    ("qa",): "questions",
}
"""What the rows must have that the tasks have which a metric can measure."""


def metrics_table() -> str:
    rows = []
    for name in metrics.names():
        function = metrics.function(name)
        declared, about_row = about(function), brief(first_sentence(paragraphs(function)[0]))
        rows.append((f"`{name}`", about_row, values(function, name), declared.better, needs(function)))
    return table(("metric", "what it says of a row", "column", "better", "needs"), rows)


def accepts(declared: About, task: Task) -> bool:
    try:
        return bool(declared.columns(task))
    except NotMeasured:
        return False


def values(function: Any, name: str) -> str:
    """Return what the docstring says of the column: the text after its name, up to a semicolon or a colon, and of its fields."""
    said, *more = re.split(r"\. |\.$", paragraphs(function)[1].partition(f"Output column: `{name}`, ")[2])
    fields = takewhile(lambda sentence: sentence.startswith("`"), more)  # "`rate` is the share of …"
    return ". ".join([re.split(r"; |: ", said, maxsplit=1)[0], *fields])


def needs(function: Any) -> str:
    """List the rows that a metric is for, the models that it asks, and whether its scores depend on the whole set."""
    meanings, declared = arguments(function), about(function)
    settings = settings_of_metric(function)
    models = [meanings[name].rstrip(".;") for name, setting in settings.items() if setting.type in ("Model", "Ner")]
    rows = ROWS[tuple(sorted(name for name, task in tasks().items() if accepts(declared, task)))]
    return "; ".join(
        [*filter(None, [rows]), *(re.split(r"[.;] ", one)[0] for one in models), *["the whole set"] * bool(declared.learn)]
    )
