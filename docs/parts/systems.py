"""Tables of systems, baselines and endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from hfcf.core import recipe
from hfcf.core.docstrings import first_sentence, paragraphs
from hfcf.core.model import Model, is_remote
from hfcf.core.settings import Prompted
from hfcf.core.system import System
from hfcf.hub.render import citation
from hfcf.systems import system_class
from hfcf.systems import systems as system_names
from parts.markdown import code, table
from parts.paths import ROOT


def systems(baselines: bool) -> Iterator[tuple[str, type[System]]]:
    """Iterate over the systems of the papers, or over the baselines, by name."""
    for name in system_names():
        cls = system_class(name)
        if cls.__module__.startswith("hfcf.systems.baselines.") == baselines:
            yield name, cls


def all_systems() -> list[tuple[str, type[System]]]:
    return [*systems(baselines=False), *systems(baselines=True)]


def works_on(cls: type[System]) -> str:
    return ", ".join(sorted(cls.works_on(), reverse=True))


def examples(cls: type[System]) -> dict[str, System]:
    """Return a system with settings that need no training, for each task that it works on."""
    preset = "offline" if "offline" in cls.presets else "paper"
    works_on = sorted(cls.works_on(), reverse=True)
    return {task: cls.preset(preset, **({"task": task} if len(works_on) > 1 else {})) for task in works_on}


def paper(bibtex: str) -> str:
    """Return "First author et al. year, venue" of a BibTeX entry."""
    entry = dict(re.findall(r"^\s*(\w+) = \{(.*)\},?$", bibtex, re.MULTILINE))
    authors = entry["author"].split(" and ")
    venue = re.sub(r"^Proceedings of (the )?", "", entry.get("booktitle") or entry.get("journal", ""))
    return f"{authors[0].split(',')[0]}{' et al.' if len(authors) > 2 else ''} {entry['year']}, {venue}"


def recipes_of(name: str) -> list[str]:
    """List the shipped recipes that run a system."""
    contents = {one: yaml.safe_load((ROOT / "recipes" / f"{one}.yaml").read_text(encoding="utf-8")) for one in recipe.names()}
    return [one for one, content in contents.items() if content.get("system") == name and "corpus" in content]


def systems_table() -> str:
    header = ("system", "task", "paper", "stages", "recipes")
    rows = [
        (
            f"`hfcf.{cls.__name__}`",
            ", ".join(sorted(cls.works_on(), reverse=True)),
            paper(cls.citation),
            code(cls.parts),
            code(recipes_of(name)),
        )
        for name, cls in systems(baselines=False)
    ]
    return table(header, rows)


GIVEN = {"rand_agen_qgen": "with `passages`", "revisions": 'only with human revisions: `revisions={"from": […]}`'}
"""What a user gives to a baseline that no preset has."""


def baselines_table() -> str:
    header = ("system", "class", "task", "label", "what it does", "offline")
    rows = [
        (
            f"`{name}`",
            f"`hfcf.{cls.__name__}`",
            ", ".join(sorted(cls.works_on(), reverse=True)),
            "flips" if cls.flips else "kept",
            first_sentence(paragraphs(cls)[0]),
            GIVEN.get(name, "yes") if "offline" in cls.presets else "no",
        )
        for name, cls in systems(baselines=True)
    ]
    return table(header, rows)


def endpoints_table() -> str:
    """List where a language model may stand, and which models the preset "llm" leaves local; systems that are alike share a row."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, cls in all_systems():
        places = [setting.name for setting in cls.schema.values() if setting.marker(Prompted)]
        if places:
            local = (code(local_models(cls.preset("llm"))) or "none") if "llm" in cls.presets else "no such preset"
            names.setdefault((code(places), local), []).append(name)
    rows = [(code(alike), *cells) for cells, alike in names.items()]
    return table(("system", "may be `llm:NAME` or `chat:NAME`", "local models of the preset `llm`"), rows)


def local_models(system: System) -> list[str]:
    """List a system's models that are no language model behind an endpoint, with the settings that name them."""
    values = system.values
    models = {name: value if isinstance(value, Model) else getattr(value, "model", None) for name, value in values.items()}
    skipped = {*system.trainings()}
    return [
        f"{name}={model.name}"
        for name, model in models.items()
        if isinstance(model, Model) and not is_remote(model) and name not in skipped
    ]


def bibtex() -> str:
    """Return the BibTeX entries of this library and of the papers of its systems."""
    entries = [citation(), *(cls.citation for _, cls in systems(baselines=False))]
    return "```bibtex\n" + "\n\n".join(entry.strip() for entry in entries) + "\n```"
