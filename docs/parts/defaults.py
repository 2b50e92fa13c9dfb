"""Defaults of settings in tables that name them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from hfcf.core.model import Model
from hfcf.core.settings import Setting, settings_of
from hfcf.core.system import System


def declared(cls: Any) -> Mapping[str, Setting]:
    """List the settings of a system or of a dataclass."""
    return cls.schema if issubclass(cls, System) else settings_of(cls)


def with_defaults(line: str) -> str:
    """Return a line of a table with the defaults that the classes of its files have."""
    if not (settings := re.compile(r"`(\w+)\.(\w+)=([^`]+)`")).search(line):
        return line
    modules = [import_module(path.removesuffix("/__init__").replace("/", ".")) for path in re.findall(r"`(hfcf/[\w/]+)\.py`", line)]

    def setting(stated: re.Match[str]) -> str:
        for module in modules:
            if (cls := getattr(module, stated[1], None)) and (known := declared(cls).get(stated[2])):
                value = known.default.name if isinstance(known.default, Model) else known.default
                return stated[0] if ast.literal_eval(stated[3]) == value else f"`{stated[1]}.{stated[2]}={value!r}`"
        return stated[0]

    return settings.sub(setting, line)
