"""Lists of the reference: what the API pages show, the shipped recipes and the commands."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml
from typer.main import get_command

import hfcf
from hfcf import engines, metrics, training
from hfcf.cli import app
from hfcf.core import recipe
from hfcf.core.docstrings import first_sentence, paragraphs
from hfcf.core.task import tasks
from hfcf.corpora import builder_class
from hfcf.engines.base import Engine
from hfcf.systems import system_class, systems
from parts.markdown import table

API = Path(__file__).parent.parent / "reference" / "api"

# --- the API


def show(names: Iterable[str]) -> str:
    """Return the lines by which mkdocstrings writes objects into a page."""
    return "\n\n".join(f"::: {name}" for name in names)


def path_of(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def public(package: Any) -> Iterator[Any]:
    """Iterate over the classes and functions that the modules of a package define for others."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            loaded = import_module(module.name)
            for name, thing in vars(loaded).items():
                if not name.startswith("_") and getattr(thing, "__module__", "") == module.name and callable(thing):
                    yield thing


def exported() -> set[str]:
    """Return the paths of what `hfcf` exports."""
    return {path_of(thing) for name in hfcf.__all__ if not inspect.ismodule(thing := getattr(hfcf, name))}


def stages_api() -> str:
    """Show the stages of every system under its name; a stage of several stands under the first."""
    parts: list[str] = []
    shown = exported()
    for name in sorted(systems(), key=lambda name: (".baselines." in system_class(name).__module__, name)):
        stages = {path_of(part.stage): None for part in system_class(name).parts.values()}
        if new := [stage for stage in stages if stage not in shown]:
            parts += [f"## {system_class(name).__name__}", show(new)]
            shown |= set(new)
    return "\n\n".join(parts)


def engines_api() -> str:
    found = [thing for thing in public(engines) if inspect.isclass(thing) and issubclass(thing, Engine) and thing is not Engine]
    return show(sorted(map(path_of, found)))


def metrics_api() -> str:
    return show(path_of(metrics.function(name)) for name in metrics.names())


def tasks_api() -> str:
    return show(path_of(type(task)) for _, task in sorted(tasks().items()))


def trainers_api() -> str:
    """Show the functions that train a model, and the classes of their settings."""
    wanted = [thing for thing in public(training) if re.match("train_|.*Hyperparameters$", thing.__name__)]
    return show(sorted(map(path_of, wanted)))


def names_table(page: str) -> str:
    """List the names of an API page with a line each: a code host shows the table where the site shows the objects."""
    names = re.findall(r"^::: (\S+)$", (API / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    return table(("name", "purpose"), [(f"[`{name}`](#{name})", said(resolve_name(name))) for name in names])


def said(thing: Any) -> str:
    return first_sentence(paragraphs(thing)[0])


# --- recipes


def recipes_table(kind: str) -> str:
    """List the shipped recipes of a kind: what each does, the data that it reads and its presets."""
    rows = []
    for name in recipe.names():
        lines = recipe.find_recipe(name).read_text(encoding="utf-8").splitlines()
        content = yaml.safe_load("\n".join(lines))
        if kind == kind_of(content):
            _, *comment = (line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines))
            of_system = system_class(content["system"]).presets if kind == "run" else ()
            presets = dict.fromkeys([content["preset"], *content.get("presets", ()), *of_system])
            rows.append((f"`{name}`", first_sentence(" ".join(comment)), data_of(content), ", ".join(presets)))
    return table(("recipe", "what it does", "data", "presets"), rows)


def kind_of(content: Mapping[str, Any]) -> str:
    return next((kind for kind in ("compare", "train") if kind in content), "run")


def data_of(content: Mapping[str, Any]) -> str:
    """Name the corpora that a recipe reads, with links; or say that they ship with the library."""
    corpora = dict.fromkeys(values(content, "corpus"))
    links = [f"[{name}](corpora.md#{name})" for name in corpora if builder_class(name)]
    shipped = all(str(folder).startswith("recipes:") for folder in values(content, "data_dir")) and "data_dir" in str(content)
    return ", ".join(links) + (" (shipped)" if shipped else "")


def values(content: Any, key: str) -> Iterator[Any]:
    """Iterate over the values of a key anywhere in a recipe."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if name == key:
                yield value
            yield from values(value, key)
    elif isinstance(content, list):
        for value in content:
            yield from values(value, key)


# --- commands


def commands() -> str:
    """Return a section for each command: its purpose, arguments and options."""
    return "\n\n".join(section(name, command) for name, command in walk("hfcf", get_command(app)))


def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the commands below a command, with their full names."""
    if not hasattr(command, "commands"):
        yield name, command
    for own, below in sorted(getattr(command, "commands", {}).items()):
        yield from walk(f"{name} {own}", below)


def section(name: str, command: Any) -> str:
    lines = [f"## {name}", "", " ".join(command.help.split("\n\n")[0].split())]
    if options := [option for option in command.params if option.name != "help" and not option.hidden]:
        lines += ["", "| option | default | meaning |", "|---|---|---|"]
        for option in options:
            shown = option.opts[0] if option.param_type_name == "option" else option.metavar or option.name.upper()
            default = "" if option.default in (None, False, [], ()) or option.required else f"`{option.default}`"
            meaning = " ".join((option.help or "").split()).replace("|", "&#124;").replace("<", "&lt;")
            lines.append(f"| `{shown}` | {default} | {meaning} |".replace("|  |", "| |"))
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    **{
        f"names_{page.stem}": partial(names_table, page.stem)
        for page in sorted(API.glob("*.md"))
        if ":::" in page.read_text("utf-8")
    },
    "commands": commands,
    "api_engines": engines_api,
    "api_metrics": metrics_api,
    "api_stages": stages_api,
    "api_tasks": tasks_api,
    "api_trainers": trainers_api,
    **{f"recipes_{kind}": partial(recipes_table, kind) for kind in ("compare", "run", "train")},
}
