"""Find what has a module of its own (systems, corpora, tasks, metrics), in this library and, by entry points, in other packages."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules


def discover(package: str, group: str) -> dict[str, str]:
    """Map names to where they live: "module" of this library's, "module" or "module:attribute" of other packages'.

    No module that is found is imported. A name of this library stays this library's.

    Args:
        package: the package whose modules count, but for those that begin with an underscore.
        group: the entry-point group of other packages.

    >>> discover("hfcf.corpora", "hfcf.corpora")["fever"]
    'hfcf.corpora.fever'
    """
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    modules = sorted(module.name for module in iter_modules(places or ()) if not module.name.startswith("_"))
    return with_plugins({name: f"{package}.{name}" for name in modules}, group)


def with_plugins(own: dict[str, str], group: str) -> dict[str, str]:
    """Add the entry points of a group to this library's names.

    >>> with_plugins({"race": "hfcf.systems.race"}, "hfcf.systems")["race"]
    'hfcf.systems.race'
    """
    return {**own, **{point.name: point.value for point in sorted(entry_points(group=group)) if point.name not in own}}
