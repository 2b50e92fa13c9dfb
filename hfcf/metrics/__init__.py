"""Intrinsic metrics of counterfactuals: each is a function from the rows of an expanded set to a column.

A metric is a public module of this folder with a function `measure_NAME`, or an entry point `hfcf.metrics` of another package, a
function. Its column has the metric's name. `hfcf.measure` adds the columns of several metrics to a set, and `load` makes a metric
an `evaluate.Metric` over lists of texts. `scores/` holds scores of models, `shared/` the metrics' shared code.
"""

from __future__ import annotations

from collections.abc import Callable
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


def function(name: str) -> Callable[..., Any]:
    """Return the function of a metric.

    Raises:
        ValueError: no metric has that name; the message lists the names.

    >>> function("minimality").__name__
    'measure_minimality'
    """
    if (place := _places().get(name)) is None:
        raise ValueError(f"no metric {name!r}; the metrics are: {', '.join(names())}")
    module, _, attribute = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute or f"measure_{name}")
    return found


def load(name: str) -> Any:
    """Make a metric an `evaluate.Metric`, over lists of texts.

    >>> load("minimality").compute(predictions=["Oslo is old."], references=["Rome is old."])["share"]
    0.25
    """
    function(name)
    # `evaluate` takes seconds to import, and measuring needs none of it.
    return import_module(f"{__name__}.shared.evaluate_metric").ListMetric(name)


def is_published(name: str) -> bool:
    """Say whether a run publishes a metric's column, or only its numbers of the whole set."""
    return getattr(getattr(function(name), "about", None), "published", True)


def _places() -> dict[str, str]:
    """Map the name of each metric to its module, or to "module:attribute"."""
    modules = (module.name for module in iter_modules(__path__) if not module.ispkg)
    return dict(sorted(with_plugins({name: f"{__name__}.{name}" for name in modules}, __name__).items()))
