"""Find what has a module of its own (systems, corpora, tasks, metrics), in this library and, by entry points, in other packages."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules


def discover(package: str, group: str) -> dict[str, str]:
    """Map names to where they live: "module" of this library's, "module" or "module:attribute" of other packages'."""
    return with_plugins(discover_modules(package), group)


def discover_modules(package: str) -> dict[str, str]:
    """Map the names of a package's public modules to where they are; none of them is imported."""
    spec = find_spec(package)
    modules = iter_modules(spec.submodule_search_locations if spec else ())
    return {name: f"{package}.{name}" for name in sorted(module.name for module in modules) if not name.startswith("_")}


def with_plugins(own: dict[str, str], group: str) -> dict[str, str]:
    """Add the entry points of a group to this library's names, which stay this library's."""
    return {**own, **{name: value for name, value in _entry_points(group, tuple(sys.path)) if name not in own}}


@lru_cache(maxsize=8)
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    # Each look-up of a name needs them, and reading the metadata of every installed package takes ten milliseconds.
    return tuple((point.name, point.value) for point in sorted(entry_points(group=group)))
