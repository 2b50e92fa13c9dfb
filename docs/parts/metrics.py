"""The table of metrics."""

from __future__ import annotations

import re
from dataclasses import MISSING
from itertools import takewhile
from typing import Any

from hfcf import metrics
from hfcf.core.docstrings import arguments, first_sentence, paragraphs
from hfcf.core.model import Model
from hfcf.core.settings import settings_of
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import tasks
from parts.markdown import table


def metrics_table() -> str:
    rows = []
    for name in metrics.names():
        cls = metrics.load(name, stage=True)
        measured = [task for task in sorted(tasks()) if accepts(cls, task)]
        where = "all" if len(measured) == len(tasks()) else ", ".join(measured)
        rows.append(
            (f"`{name}`", first_sentence(paragraphs(cls)[0]), values(cls, name), cls.better, where, needs(cls), source(cls))
        )
    return table(("metric", "what it says of a row", "column", "better", "tasks", "needs", "source"), rows)


def accepts(cls: Any, task: str) -> bool:
    required = {name: Model("a-model") for name, setting in settings_of(cls).items() if setting.default is MISSING}
    try:
        return bool(cls(**required, task=task).inputs)
    except StageError:
        return False


def values(cls: Any, name: str) -> str:
    """Return what the docstring says of the column: the text after its name, up to a semicolon or a colon, and of its fields."""
    said, *more = re.split(r"\. |\.$", paragraphs(cls)[1].partition(f"Output column: `{name}`, ")[2])
    fields = takewhile(lambda sentence: sentence.startswith("`"), more)  # "`rate` is the share of …"
    return ". ".join([re.split(r"; |: ", said, maxsplit=1)[0], *fields])


def needs(cls: Any) -> str:
    """List the models that a metric asks, and whether it is fitted to the set."""
    meanings = arguments(cls)
    models = [meanings[name].rstrip(".;") for name, setting in settings_of(cls).items() if setting.type in ("Model", "Ner")]
    return "; ".join([re.split(r"[.;] ", one)[0] for one in models] + ["fit"] * (cls.fit_inputs is not Stage.fit_inputs))


def source(cls: Any) -> str:
    said = next((one for one in paragraphs(cls) if one.startswith("Source: ")), "")
    return re.split(r": |\. (?=Deviation)|, which|, who|\.$", said.removeprefix("Source: "), maxsplit=1)[0]
