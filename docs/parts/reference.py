"""Lists of the reference: what the API pages show, the shipped recipes, and the keys of recipes."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import takewhile
from pkgutil import resolve_name
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from hfcf import engines, metrics, training
from hfcf.core import recipe
from hfcf.core.docstrings import first_sentence, paragraphs
from hfcf.core.stage import Stage
from hfcf.core.task import get_task, tasks
from hfcf.engines.base import Engine
from hfcf.systems import system_class
from hfcf.systems._shared.judge import JudgeCandidates
from parts.markdown import brief, code, table
from parts.systems import all_systems, examples

USUAL = ("paper", "offline")
"""The presets that most recipes have."""
PAPERS = ("RACE", "CrossAug", "CCG", "RGF", "CheckWhy")
PAGES: dict[str, dict[str, tuple[str, ...]]] = {
    "data": {
        "Read": ("load", "from_dataset", "Corpus", "CorpusInfo"),
        "Work with results": (
            *("expand", "accepted", "rejected", "prepare", "to_dataset", "pair", "pair_within", "balance", "load_result"),
        ),
        "Tasks": ("Task",),
    },
    "systems": {
        "Calls": ("run", "augment", "counterfactuals"),
        "Systems of the papers": PAPERS,
        "Baselines": (),
        "Base classes": ("System", "BoundStage"),
        "Argument structures": ("checkwhy",),
    },
    "stages": {"Base classes": ("Stage", "Reject")},
    "engines": {"Models": ("Model", "generate_constrained"), "Engines": ("engines.base.Engine",)},
    "training": {"Settings and losses": ("training.debias.Debias",), "Trainers": ()},
}
"""The names of `hfcf` that an API page shows, by section; `more` adds those that are found in the code."""

KINDS = {
    "run": "hfcf.pipeline.recipes:RunRecipe",
    "train": "hfcf.pipeline.training_recipes:TrainRecipe",
    "compare": "hfcf.studies.compare.recipe:SetComparison",
}
"""The kinds of recipes; keys that two of them have stand in a list of their own."""
PARTS = {
    "source": ("hfcf.pipeline.recipes:Source", KINDS["run"]),
    "method": ("hfcf.studies.compare.recipe:MethodRecipe", KINDS["compare"]),
    "column": ("hfcf.studies.compare.recipe:Column", KINDS["compare"]),
}
"""The parts of recipes, each with the recipe whose keys it has as well."""

METRIC_FUNCTIONS = ("hfcf.measure", "hfcf.metrics.shared.metric.metric", "hfcf.consistency", "hfcf.coverage")


def more() -> dict[str, list[str]]:
    """Return the names that are found in the code, by section."""
    trained = [one for one in public(training) if re.match("train_|.*Hyperparameters$", one.__name__)]
    engine = [one for one in public(engines) if inspect.isclass(one) and issubclass(one, Engine) and one is not Engine]
    baselines = [name for name, _ in all_systems() if system_class(name).__name__ not in PAPERS]
    return {
        "Tasks": [path_of(type(task)) for _, task in sorted(tasks().items())],
        "Baselines": [f"hfcf.{system_class(name).__name__}" for name in baselines],
        "Engines": sorted(map(path_of, engine)),
        "Trainers": sorted(map(path_of, trained)),
    }


def api(page: str) -> str:
    """List the names of an API page with a line each; the site shows below each table what the docstrings say (docs/hooks.py)."""
    found = more()
    sections = {title: [*(f"hfcf.{name}" for name in own), *found.get(title, ())] for title, own in PAGES[page].items()}
    return "\n\n".join(f"## {title}\n\n{names_table(names)}" for title, names in sections.items())


def names_table(names: Iterable[str]) -> str:
    return table(("name", "purpose"), [(f"`{name}`", said(resolve_name(name))) for name in names])


def said(thing: Any) -> str:
    """Return what the first sentence of a docstring says; the page of trainers says once that each stores its model."""
    return re.sub(r",? and store (it|them)\b.*", "", brief(first_sentence(paragraphs(thing)[0])))


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


def metric_functions() -> str:
    """List the functions for metrics; a comment names the metrics themselves, which stand in a table of their own."""
    hidden = " ".join(path_of(metrics.function(name)) for name in metrics.names())
    return f"{names_table(METRIC_FUNCTIONS)}\n\n<!-- objects: {hidden} -->"


# --- stages


def stages() -> str:
    """List every stage under the first system that has it: what it does, and the columns that it needs and fills."""
    users, columns = stages_used()
    tables: dict[str, list[tuple[str, ...]]] = {}
    for path, names in users.items():
        first = system_class(next(iter(names))).__name__
        title = first if first in PAPERS else "Baselines"
        of_papers = [name for name in names if system_class(name).__name__ in PAPERS and system_class(name).__name__ != title]
        others = [code(of_papers)] * bool(of_papers) + ["baselines"] * any(
            system_class(name).__name__ not in PAPERS for name in names
        )
        where = f" (in {code(names)})" if title == "Baselines" else f" (also in {', '.join(others)})" if others else ""
        (needs_fills,) = dict.fromkeys(columns[path])
        row = (f"`{path}`", f"{said(resolve_name(path))}{where}", needs_fills)
        tables.setdefault(title, []).append(row)
    header = ("stage", "what it does", "needs → fills")
    return "\n\n".join([api("stages"), *(f"## {title}\n\n{table(header, tables[title])}" for title in (*PAPERS, "Baselines"))])


def stages_used() -> tuple[dict[str, dict[str, None]], dict[str, list[str]]]:
    """Return the systems of each stage, and what it needs and fills on each task."""
    users: dict[str, dict[str, None]] = {}
    columns: dict[str, list[str]] = {}
    for name, cls in all_systems():
        for task, system in examples(cls).items():
            for stage in system.stages:
                path = "hfcf.JudgeCandidates" if type(stage) is JudgeCandidates else path_of(type(stage))
                users.setdefault(path, {})[name] = None
                columns.setdefault(path, []).append(f"{needs(stage, task)} → {code(stage.outputs)}".strip())
    return users, columns


def needs(stage: Stage, task: str) -> str:
    """List what a stage reads besides the columns of the task."""
    return code(name for name in stage.inputs if name not in get_task(task).features)


# --- recipes


def recipes_table(kind: str) -> str:
    """List the shipped recipes of a kind: what each does, the data of a run, and presets that others lack."""
    rows = []
    for name in recipe.names():
        lines = recipe.find_recipe(name).read_text(encoding="utf-8").splitlines()
        content = yaml.safe_load("\n".join(lines))
        if kind == kind_of(content):
            _, *comment = (line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines))
            own = [one for one in content.get("presets", ()) if one not in USUAL]
            first = [] if content.get("preset", "paper") == "paper" else [f"default `{content['preset']}`"]
            said = ", ".join([*first, *([f"also has {code(own)}"] if own and kind == "train" else [])])
            about = first_sentence(" ".join(comment)) + (f" ({said})" if said else "")
            trains = [f"`{content['train']}`"] if kind == "train" else []
            rows.append((f"`{name}`", *trains, about, *([data_of(content)] if kind == "run" else [])))
    return table(("recipe", *["`train:`"] * (kind == "train"), "what it does", *["data"] * (kind == "run")), rows)


def kind_of(content: Mapping[str, Any]) -> str:
    return next((kind for kind in ("compare", "train") if kind in content), "run")


def data_of(content: Mapping[str, Any]) -> str:
    """Link the corpus of a run, or say that its rows ship with the library."""
    shipped = all(str(folder).startswith("recipes:") for folder in values(content, "data_dir")) and "data_dir" in str(content)
    return "shipped" if shipped else f"[{content['corpus']}](corpora.md#{content['corpus']})"


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


# --- keys of recipes


def shared_keys() -> dict[str, FieldInfo]:
    """Return the keys that two kinds of recipes or more have, as the first of them explains them."""
    kinds = [resolve_name(path).model_fields for path in KINDS.values()]
    found = {name: field for fields in reversed(kinds) for name, field in fields.items()}
    return {name: field for name, field in found.items() if sum(name in fields for fields in kinds) > 1}


def keys_of_kind(kind: str) -> str:
    """List the keys of a kind of recipe that no other kind has."""
    return keys_list({name: field for name, field in fields_of(KINDS[kind]).items() if name not in shared_keys()})


def keys_of_part(part: str) -> str:
    """List the keys of a part of a recipe that the recipe itself lacks."""
    path, whole = PARTS[part]
    return keys_list({name: field for name, field in fields_of(path).items() if name not in fields_of(whole)})


def fields_of(path: str) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in resolve_name(path).model_fields.items()}


def keys_list(keys: Mapping[str, FieldInfo]) -> str:
    """List keys with what each says and its default."""
    return "\n".join(f"- `{key}{standard(field)}`: {said_of(field)}" for key, field in keys.items())


def said_of(field: FieldInfo) -> str:
    """Return the first sentence of what a field's docstring says, and whether the key must be given."""
    about = brief(first_sentence(" ".join((field.description or "").split())))
    return f"{about} (must be given)" if field.is_required() else about


def standard(field: FieldInfo) -> str:
    """Write a key's default as YAML has it; nothing is written for one that is null or empty."""
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    return f": {json.dumps(value)}".replace('"', "") if isinstance(value, bool | int | float | str) and value != "" else ""


TABLES: dict[str, Callable[[], str]] = {
    **{f"api_{page}": partial(api, page) for page in PAGES if page != "stages"},
    "stages": stages,
    "metric_functions": metric_functions,
    "keys_shared": lambda: keys_list(shared_keys()),
    **{f"keys_{kind}": partial(keys_of_kind, kind) for kind in KINDS},
    **{f"keys_{part}": partial(keys_of_part, part) for part in PARTS},
    **{f"recipes_{kind}": partial(recipes_table, kind) for kind in ("compare", "run", "train")},
}
