"""Find systems, corpora, tasks and metrics: modules of this library, and entry points of other packages."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules


def discover_modules(package: str) -> dict[str, str]:
    """Map the names of a package's public modules to their full names, without importing them."""
    spec = find_spec(package)
    modules = iter_modules(spec.submodule_search_locations if spec else ())
    return {name: f"{package}.{name}" for name in sorted(module.name for module in modules) if not name.startswith("_")}


def with_plugins(own: dict[str, str], group: str) -> dict[str, str]:
    """Add the entry points of a group ("module:attribute") to this library's names, none of which they replace."""
    return {**own, **{name: value for name, value in _entry_points(group, tuple(sys.path)) if name not in own}}


@lru_cache(maxsize=8)
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    # Each lookup of a name needs them, and reading the metadata of all installed packages takes ten milliseconds.
    return tuple((point.name, point.value) for point in sorted(entry_points(group=group)))
