"""Intrinsic metrics of counterfactuals: each a stage that scores rows of an expanded set, and an `evaluate.Metric`.

`hfcf.metrics.Fluency` is the metric over lists of texts, `hfcf.metrics.MeasureFluency` the stage for `Dataset.map`, and
`hfcf.measure` maps several over a set. Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

METRICS = (
    "minimality",
    "diversity",
    "similarity",
    "coherence",
    "entity_overlap",
    "fluency",
    "grammar",
    "flip_rate",
    "duplicates",
    "label_balance",
    "claim_only",
)
"""Their names, which are those of their columns and files."""
OF_SETS = ("label_balance",)
"""Metrics of whole sets, whose column says nothing of its row that the label does not: a run does not publish it."""


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_PUBLIC = {
    **{_class(name): f"hfcf.metrics.{name}" for name in METRICS},
    **{f"Measure{_class(name)}": f"hfcf.metrics.{name}" for name in METRICS},
}
__all__ = ["METRICS", "OF_SETS", "load", *_PUBLIC]


def load(name: str, stage: bool = False) -> Any:
    """A metric by name.

    Args:
        name: one of `METRICS`.
        stage: the class of its stage, in the place of an `evaluate.Metric`.

    Raises:
        ValueError: there is none of that name; the message lists them.

    >>> load("minimality").compute(predictions=["Oslo is old."], references=["Rome is old."])["share"]
    0.25
    """
    if name not in METRICS:
        raise ValueError(f"no metric {name!r}; there are: {', '.join(METRICS)}")
    cls = __getattr__(f"Measure{_class(name)}" if stage else _class(name))
    return cls if stage else cls()


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hfcf.metrics' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
