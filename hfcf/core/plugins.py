"""Find systems, corpora, tasks and metrics: modules of this library, entry points of other packages, and files of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType


@cache
def discover_modules(package: str) -> Mapping[str, str]:
    """Map the names of a package's public modules to their full names, without importing them."""
    spec = find_spec(package)
    modules = iter_modules(spec.submodule_search_locations if spec else ())
    return {name: f"{package}.{name}" for name in sorted(module.name for module in modules) if not name.startswith("_")}


def with_plugins(builtin: dict[str, str], group: str) -> dict[str, str]:
    """Add the entry points of a group ("module:attribute") to this library's names; an entry point replaces none of these names."""
    return {**builtin, **{name: value for name, value in _entry_points(group, tuple(sys.path)) if name not in builtin}}


@lru_cache(maxsize=8)
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    # Each lookup of a name needs them, and reading the metadata of all installed packages takes ten milliseconds.
    return tuple((point.name, point.value) for point in sorted(entry_points(group=group)))


def files_of(variable: str) -> dict[str, Path]:
    """Map the names of the Python files that an environment variable lists to their paths; a recipe can't set it.

    Raises:
        ValueError: the file does not exist, or its name is not a valid name for a module.
    """
    files: dict[str, Path] = {}
    for part in filter(None, os.environ.get(variable, "").split(os.pathsep)):
        path = Path(part).expanduser().resolve()
        if not path.is_file() or path.suffix != ".py" or not path.stem.isidentifier():
            raise ValueError(f"{variable} must list Python files, such as ./my_corpus.py, got {part!r}")
        files[path.stem] = path
    return files


def import_file(path: Path) -> ModuleType:
    """Import a module from its file, which the user has named: this runs its code. A changed file is imported again."""
    return _imported(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _imported(path: Path, changed: int) -> ModuleType:
    name = f"hfcf_file_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be imported")
    module = sys.modules[name] = module_from_spec(spec)  # by their names in it, classes find their files and annotations
    spec.loader.exec_module(module)
    return module
