"""What `hfcf list NAME` prints of a system, a stage, a corpus, a metric or a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from rich.text import Text

from hfcf.cli import console
from hfcf.cli.console import print_fields, print_hanging, print_heading


def print_system(name: str) -> None:
    """Print a system's purpose, paper, stages with the columns that they read and fill, and settings."""
    from hfcf.core.describe import settings
    from hfcf.core.docstrings import paragraphs
    from hfcf.hub.ratings import describe_rating
    from hfcf.systems import system_class

    cls = system_class(name)
    print_heading(name, f"a system for {' and '.join(cls.works_on())} rows")
    print_hanging(Text(paragraphs(cls)[0]), hang=0)
    print_fields([*_paper(cls.citation), ("in Python", f"{cls.__module__}.{cls.__name__}"), ("presets", ", ".join(cls.presets))], 0)
    print_heading("Rated", "how many pairs of each preset are right")
    for preset in cls.presets:
        print_hanging(Text(describe_rating(name, preset)), indent=2)
    for task in cls.works_on():
        print_heading("Stages", f"{task} rows" if len(cls.works_on()) > 1 else "columns that each reads → fills")
        print_stages(cls, task)
    print_heading("Settings", "in a recipe under settings:, or --set settings.NAME=VALUE")
    for setting in settings(cls):
        trained = f" (hfcf train {setting.trained_by} trains this model)" if setting.trained_by else ""
        _print_setting(setting.name, setting.type, setting.default, setting.meaning + trained, setting.presets)


def summary(kind: str, name: str) -> str:
    """Return one line on what a name of a kind is."""
    from hfcf import metrics
    from hfcf.core import recipe as recipes
    from hfcf.core.docstrings import first_sentence, paragraphs
    from hfcf.corpora import builder_class
    from hfcf.systems import system_class

    if kind == "recipes":
        return recipes.find(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    if kind == "corpora":
        return f"{builder_class(name).INFO.task}: {builder_class(name).INFO.title}"
    if kind == "stages":
        return first_sentence(paragraphs(stages()[name].stage)[0])
    cls = metrics.load(name, stage=True) if kind == "metrics" else system_class(name)
    of_rows = "" if kind == "metrics" else f"{', '.join(cls.works_on())}: "
    return of_rows + first_sentence(paragraphs(cls)[0])


def stages() -> dict[str, Any]:
    """Return the parts of all systems by the names of their stages."""
    from hfcf.systems import system_class, systems

    parts = {name: part for system in systems() for name, part in system_class(system).parts.items()}
    return dict(sorted(parts.items()))


def print_columns(name: str) -> None:
    """Print what a stage reads and fills, and in which systems."""
    from hfcf.systems import system_class, systems

    systems_of: dict[str, dict[str, None]] = {}
    for system in systems():
        cls = system_class(system)
        for task in cls.works_on() if name in cls.parts else ():
            stage = next(stage for stage in _example(cls, task).stages if stage.name == name)
            systems_of.setdefault(_columns(stage), {})[system] = None
    for columns, names in systems_of.items():
        print_hanging(Text(f"{columns}  ").append(f"in {', '.join(names)}", style="dim"), indent=2)


def print_stage(name: str) -> None:
    """Print a stage's purpose, the systems that have it, the columns that it reads and fills there, and its settings."""
    from hfcf.core.describe import show
    from hfcf.core.docstrings import arguments, first_sentence, paragraphs
    from hfcf.core.settings import settings_of

    cls = stages()[name].stage
    print_heading(name, "a stage")
    print_hanging(Text(paragraphs(cls)[0]), hang=0)
    print_fields([("in Python", f"{cls.__module__}.{cls.__name__}")], 0)
    print_heading("Columns", "that it reads → fills")
    print_columns(name)
    print_heading("Settings", "in Python; hfcf list SYSTEM has those of recipes")
    meanings = arguments(cls)
    for setting in settings_of(cls).values():
        default = "" if setting.default is MISSING else show(setting.default)
        _print_setting(setting.name, setting.type, default, first_sentence(meanings.get(setting.name, "")), {})


def print_stages(cls: Any, task: str) -> None:
    """Print a system's stages for the rows of a task, each with the columns that it reads and fills."""
    print_fields((stage.name, _columns(stage)) for stage in _example(cls, task).stages)


def _example(cls: Any, task: str) -> Any:
    several = {"task": task} if len(cls.works_on()) > 1 else {}
    return cls.preset("offline" if "offline" in cls.presets else "paper", **several)


def _columns(stage: Any) -> str:
    return f"{', '.join(stage.inputs)} → {', '.join(stage.outputs) or '(checks)'}"


def print_corpus(name: str) -> None:
    """Print a corpus's paper, licence, files, splits, labels and options."""
    from hfcf.corpora import builder_class

    builder = builder_class(name)
    info = builder.INFO
    print_heading(name, f"a corpus of {info.task} rows")
    more = {
        "paper": info.paper, "release": info.release, "folder": info.layout, "notes": info.notes,
        "on the Hub": info.hub_id, "language": info.language, "request": info.request,
        "may publish": "" if info.republish else "no: the licence forbids to publish rows and what is made of them",
    }  # fmt: skip
    print_fields([*corpus_fields(builder), *((key, _plain(text)) for key, text in more.items() if text)], 0)
    if builder.OPTIONS:
        print_heading("Options", "in a recipe under options:, or --set options.NAME=VALUE")
        print_fields(builder.OPTIONS.items())


def corpus_fields(builder: Any) -> list[tuple[str, str]]:
    """List the fields of a corpus in the list of corpora."""
    info = builder.INFO
    # Each split's first file is the release's.
    files: dict[str, str] = {}
    for split, file in builder.FILES:
        files.setdefault(split, file)
    return [
        ("title", info.title),
        ("files", ", ".join(files.values()) or "the user's"),
        ("splits", ", ".join(f"{split} {rows:,}" for split, rows in info.splits.items()) or "the user's"),
        ("licence", info.licence or "the user's"),
        ("labels", ", ".join(f"{raw} → {ours}" if raw != ours else ours for raw, ours in info.labels.items()) or "the file's own"),
    ]


def print_metric(name: str) -> None:
    """Print what a metric measures, and its settings."""
    from dataclasses import MISSING, fields

    from hfcf import metrics
    from hfcf.core.describe import show
    from hfcf.core.docstrings import arguments, first_sentence, paragraphs

    cls = metrics.load(name, stage=True)
    print_heading(name, "a metric" + (f": {cls.better} is better" if cls.better in ("less", "more") else ""))
    for paragraph in paragraphs(cls):
        if paragraph.startswith(("Args:", ">>>")):
            break
        print_hanging(Text(paragraph), hang=0)
    print_heading("Settings", "in a recipe under metrics:")
    meanings = arguments(cls)
    for field in fields(cls):
        default = "" if field.default is MISSING else show(field.default)
        _print_setting(field.name, str(field.type), default, first_sentence(meanings.get(field.name, "")), {})


def print_recipe(name: str) -> None:
    """Print a recipe that ships with the library."""
    from hfcf.core import recipe as recipes

    path = recipes.find(name)
    print_heading(name, "a recipe")
    console.out.print(Text(path.read_text(encoding="utf-8").rstrip()), soft_wrap=True)
    console.print_path("", path)


def _print_setting(name: str, kind: str, default: str, meaning: str, presets: Mapping[str, str]) -> None:
    line = Text(name, style="bold").append(f": {kind}" + (f" = {default}" if default else ", no default"), style="not bold")
    named = {value: ", ".join(preset for preset, other in presets.items() if other == value) for value in presets.values()}
    others = [f"{several}: {value}" for value, several in named.items()]
    if len(joined := "; ".join([line.plain, *others])) <= console.out.width - 2:
        line, others = line.append(joined[len(line.plain) :], style="not bold"), []
    print_hanging(line, indent=2)
    for other in others:
        print_hanging(Text(other), indent=4)
    print_hanging(Text(meaning, style="dim"), indent=4, hang=0)


def _paper(bibtex: str) -> list[tuple[str, str]]:
    """Return authors, year and title of a BibTeX entry as a field; return nothing if there is no entry."""
    entry = dict(re.findall(r"^[ \t]*(\w+) = \{(.*)\},?$", bibtex, re.MULTILINE))
    if not {"author", "title", "year"} <= entry.keys():
        return []
    first, *others = entry["author"].split(" and ")
    venue = entry.get("booktitle") or entry.get("journal", "")
    parts = [f"{first.split(',')[0]}{' et al.' * bool(others)} {entry['year']}", re.sub(r"[{}]", "", entry["title"]), venue]
    return [("paper", ", ".join(part for part in parts if part))]


def _plain(markdown: str) -> str:
    """Take code marks and links out of a text that the docs also print."""
    return re.sub(r"\[([^\[\]]*)\]\([^()]*\)", r"\1", markdown).replace("`", "")
