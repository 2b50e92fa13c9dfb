"""Intrinsic metrics of counterfactuals: each a stage that scores rows of an expanded set, and an `evaluate.Metric`.

A metric is a public module of this folder; its name is that of its column. `hfcf.metrics.Fluency` is the metric over lists of
texts, `hfcf.metrics.MeasureFluency` the stage for `Dataset.map`, and `hfcf.measure` maps several over a set. Each name is
imported when it is first used. `scores/` holds the scores of models, `shared/` what several metrics need.

The class of a stage says what other rooms ask about its metric:

- `better`: "less", "more", or "" where neither is better; of several numbers, "less `NUMBER`" and "more `NUMBER`",
- `of_candidates`: True if a single row can be scored alone, so that rejected candidates are scored too,
- `published`: False if the column repeats what the label says; a run then publishes only the numbers of the whole set.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module, resources
from pkgutil import iter_modules
from typing import Any


def names() -> list[str]:
    """List the metrics."""
    return sorted(module.name for module in iter_modules(__path__) if not module.ispkg)


def load(name: str, stage: bool = False) -> Any:
    """Load a metric by name.

    Args:
        name: one of `names()`.
        stage: return the class of its stage instead of an `evaluate.Metric`.

    Raises:
        ValueError: no metric has that name; the message lists them.

    >>> load("minimality").compute(predictions=["Oslo is old."], references=["Rome is old."])["share"]
    0.25
    """
    if name not in names():
        raise ValueError(f"no metric {name!r}; the metrics are: {', '.join(names())}")
    cls = getattr(import_module(f"hfcf.metrics.{name}"), f"Measure{_class(name)}" if stage else _class(name))
    return cls if stage else cls()


def is_published(name: str) -> bool:
    """Say whether a run publishes a metric's column, or only its numbers of the whole set."""
    return getattr(load(name, stage=True), "published", True)


@lru_cache
def better(name: str) -> str:
    """Read a metric's `better` from its source: importing all metrics takes seconds."""
    source = resources.files(__name__).joinpath(f"{name}.py").read_text(encoding="utf-8")
    match = re.search(r'^    better: ClassVar = "(.*)"$', source, re.MULTILINE)
    return match[1] if match else ""


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _public() -> dict[str, str]:
    """Map the name of each public class to its module."""
    return {f"{prefix}{_class(name)}": f"hfcf.metrics.{name}" for name in names() for prefix in ("", "Measure")}


def __getattr__(name: str) -> Any:
    if module := _public().get(name):
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'hfcf.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_public()])
