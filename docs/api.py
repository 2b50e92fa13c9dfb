"""What griffe reads this library with for the API pages: doctests become code, and classes show the settings that they take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING
from typing import Any

from griffe import Class, Extension, Function, Module, Object, Parameter, ParameterKind, Parameters

from hfcf.core import describe
from hfcf.core.bound_stage import COMMON_SETTINGS
from hfcf.core.settings import Setting, settings_of
from hfcf.core.system import System
from hfcf.systems import system_class, systems

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1(?! *$).*)*", re.MULTILINE)


class Settings(Extension):
    """Show doctests as code, a system with the settings of its stages, and a stage with the types of its settings."""

    def on_instance(self, *, node: Any, obj: Object, agent: Any, **kwargs: Any) -> None:
        """Fence the doctests of a docstring."""
        del node, agent, kwargs
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(r"\1```python\n\g<0>\n\1```", obj.docstring.value)

    def on_package(self, *, pkg: Module, loader: Any, **kwargs: Any) -> None:
        """Give systems and stages their settings."""
        del loader, kwargs
        if pkg.name != "hfcf":
            return
        set_signature(pkg["core.system.System"], [*map(declared, COMMON_SETTINGS.values())])
        for cls in {*classes()}:
            shown = pkg[f"{cls.__module__}.{cls.__qualname__}".removeprefix("hfcf.")]
            set_signature(shown, [*parameters(cls)])


def classes() -> Iterator[type[Any]]:
    """Iterate over the systems and their stages."""
    for name in systems():
        cls = system_class(name)
        yield cls
        yield from (part.stage for part in cls.parts.values())


def parameters(cls: type[Any]) -> Iterator[tuple[str, str, str | None]]:
    """Iterate over the names, types and defaults of a class's settings."""
    return map(declared, (cls.schema if issubclass(cls, System) else settings_of(cls)).values())


def declared(setting: Setting) -> tuple[str, str, str | None]:
    """Return the name, type and default of a setting; None if it must be given."""
    return setting.name, setting.type, None if setting.default is MISSING else default_text(setting.default)


def default_text(default: Any) -> str:
    """Write a default as text: a string in quotes, a model by its name."""
    text = describe.show(default)
    return repr(default) if isinstance(default, str | None) or text == "none" else text


def set_signature(shown: Class, settings: list[tuple[str, str, str | None]]) -> None:
    """Give a class of the pages a constructor with these keyword arguments."""
    kind = ParameterKind.keyword_only
    taken = [Parameter(name, annotation=written, kind=kind, default=default) for name, written, default in settings]
    own = Parameter("self", kind=ParameterKind.positional_or_keyword)
    more = [Parameter("settings", annotation="Any", kind=ParameterKind.var_keyword)] if shown.name == "System" else []
    init = Function("__init__", lineno=0, endlineno=0, parent=shown, parameters=Parameters(own, *taken, *more))
    shown.set_member("__init__", init)
