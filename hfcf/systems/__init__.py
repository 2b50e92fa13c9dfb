"""The published systems and the baselines they are compared with.

A public module of this package or of `baselines` is a system. Recipes use the name of the module. It defines one subclass of
`System`; a folder may define it in its `system.py`. Systems of other packages come by the entry-point group `hfcf.systems`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from hfcf.core.names import did_you_mean
from hfcf.core.plugins import discover_modules, with_plugins

if TYPE_CHECKING:
    from hfcf.core.system import System


GROUP = "hfcf.systems"
"""The entry-point group of other packages' systems."""


def systems() -> dict[str, str]:
    """Map the name of every system to where it lives; no system is imported.

    >>> list(systems())[:4]
    ['ccg', 'checkwhy', 'crossaug', 'race']
    """
    published = {name: module for name, module in discover_modules(__name__).items() if name != "baselines"}
    return with_plugins({**published, **discover_modules(f"{__name__}.baselines")}, GROUP)


def system_class(name: str) -> type[System]:
    """Import the class of a system.

    Raises:
        RecipeError: no system has that name; the message lists the systems.

    >>> list(system_class("race").parts)[0]
    'tag_entities'
    """
    if (places := systems()).get(name) is None:
        from hfcf.core.recipe import RecipeError  # its modules are not needed where the name is right

        raise RecipeError(f"system {name!r}: choose one of {', '.join(places)}{did_you_mean(name, places)}")
    module, _, attribute = places[name].partition(":")
    return getattr(import_module(module), attribute) if attribute else _defined_in(import_module(module))


def _defined_in(module: ModuleType) -> type[System]:
    """Return the one subclass of `System` that a module defines, or else that the `system` module of its folder defines."""
    from hfcf.core.system import System

    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, System)]
    defined = [cls for cls in classes if cls.__module__.startswith(module.__name__) and not cls.__name__.startswith("_")]
    if not defined and hasattr(module, "__path__"):
        return _defined_in(import_module(f"{module.__name__}.system"))
    if len(defined) != 1:
        raise TypeError(f"{module.__name__} defines {len(defined)} subclasses of System; a system's module defines one")
    return defined[0]
