"""Collect the papers' human evaluations: the modules `rating` in the systems' folders, and those of papers without a system here.

All hide the methods and draw an order for each rater; the papers mention neither. A comment says where a protocol differs from its
paper otherwise. Wordings and examples are ours: the papers print criteria, not their rating sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from hfcf import systems
from hfcf.studies.human import checkwhy, rgf


def _modules() -> Iterator[ModuleType]:
    folders = (f"{systems.__name__}.{folder.name}" for folder in iter_modules(systems.__path__) if folder.ispkg)
    yield from (import_module(f"{folder}.rating") for folder in folders if find_spec(f"{folder}.rating"))
    yield from (checkwhy, rgf)


PROTOCOLS = {protocol.name: protocol for module in _modules() for protocol in module.PROTOCOLS}
"""By name."""
UNITS = {name: unit for module in _modules() for name, unit in module.UNITS.items()}
"""By name; a protocol of your own shows one of these."""
