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
from parts.markdown import table


def metrics_table() -> str:
    rows = []
    for name in metrics.names():
        function = metrics.function(name)
        declared = about(function)
        measured = [name for name, task in sorted(tasks().items()) if accepts(declared, task)]
        where = "all" if len(measured) == len(tasks()) else ", ".join(measured)
        rows.append(
            (
                f"`{name}`",
                first_sentence(paragraphs(function)[0]),
                values(function, name),
                declared.better,
                where,
                needs(function),
                source(function),
            )
        )
    return table(("metric", "what it says of a row", "column", "better", "tasks", "needs", "source"), rows)


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
    """List the models that a metric asks, and whether its scores depend on the whole set."""
    meanings = arguments(function)
    settings = settings_of_metric(function)
    models = [meanings[name].rstrip(".;") for name, setting in settings.items() if setting.type in ("Model", "Ner")]
    return "; ".join([re.split(r"[.;] ", one)[0] for one in models] + ["the whole set"] * (about(function).learn is not None))


def source(function: Any) -> str:
    said = next((one for one in paragraphs(function) if one.startswith("Source: ")), "")
    return re.split(r": |\. (?=Deviation)|, which|, who|\.$", said.removeprefix("Source: "), maxsplit=1)[0]
