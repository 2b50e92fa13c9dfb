"""Intrinsic metrics of counterfactuals: each is a stage that scores rows of an expanded set, and an `evaluate.Metric`.

A metric is a public module of this folder with a `hfcf.Metric`, or an entry point `hfcf.metrics` of another package. Its column has
the same name. `hfcf.metrics.MeasureFluency` is the stage for `Dataset.map`, and `hfcf.metrics.Fluency` is the metric over lists of
texts. `hfcf.measure` maps several metrics over a set. `scores/` holds scores of models, `shared/` the metrics' shared code.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hfcf.core.plugins import with_plugins


def names() -> list[str]:
    """List the metrics.

    >>> names()[:3]
    ['claim_only', 'coherence', 'copy_rate']
    """
    return list(_places())


def load(name: str, stage: bool = False) -> Any:
    """Load a metric by name.

    Args:
        name: a name from `names()`.
        stage: return the class of its stage instead of an `evaluate.Metric`; for another package's function, the function.

    Raises:
        ValueError: no metric has that name; the message lists the names.

    >>> load("minimality").compute(predictions=["Oslo is old."], references=["Rome is old."])["share"]
    0.25
    """
    if (place := _places().get(name)) is None:
        raise ValueError(f"no metric {name!r}; the metrics are: {', '.join(names())}")
    if stage:
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute or f"Measure{_class(name)}")
    # `evaluate` takes seconds to import, and mapping needs none of it.
    return import_module(f"{__name__}.shared.evaluate_metric").ListMetric(name)


def is_published(name: str) -> bool:
    """Say whether a run publishes a metric's column, or only its numbers of the whole set."""
    return getattr(load(name, stage=True), "published", True)


def _places() -> dict[str, str]:
    """Map the name of each metric to its module, or to "module:attribute"."""
    modules = (module.name for module in iter_modules(__path__) if not module.ispkg)
    return dict(sorted(with_plugins({name: f"{__name__}.{name}" for name in modules}, __name__).items()))


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _public() -> dict[str, tuple[str, bool]]:
    """Map each public class to its metric, and whether it is the stage."""
    return {f"{prefix}{_class(name)}": (name, bool(prefix)) for name in names() for prefix in ("", "Measure")}


def __getattr__(name: str) -> Any:
    if found := _public().get(name):
        metric, stage = found
        return load(metric, stage=True) if stage else partial(load, metric)
    raise AttributeError(f"module 'hfcf.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_public()])
