"""`hfcf list` and `hfcf recipe schema`: the names and keys that a recipe may hold, and what is behind each name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from itertools import takewhile
from typing import Annotated, Any

import typer
from rich.text import Text

from hfcf.cli import console
from hfcf.cli.console import Set, print_fields, print_hanging, print_heading
from hfcf.cli.tables import print_preset_models

Fields = list[tuple[str, str]]
_KINDS = {
    "systems": "system", "baselines": "baseline", "stages": "stage", "corpora": "corpus", "metrics": "metric", "recipes": "recipe",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ListEntry:
    """What is behind a name."""

    summary: str
    """One line."""
    brief: Mapping[str, Fields] = field(default_factory=dict)
    """What the list of its kind prints, by what follows the name."""
    note: str = ""
    text: str = ""
    fields: Fields = field(default_factory=list)
    sections: Mapping[tuple[str, str], Fields] = field(default_factory=dict)
    """What else its own description has: heading and note → lines."""


def list_(
    what: Annotated[
        str,
        typer.Argument(metavar="[WHAT]", help="systems, baselines, stages, corpora, metrics or recipes; or a name, such as race."),
    ] = "all",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="After a kind, a name of it: corpus checkwhy.")] = None,
    preset: Annotated[str | None, typer.Option(help="Of a system: print the models that this preset loads.")] = None,
    set_: Set = None,
) -> None:
    """List systems, stages, corpora, metrics and recipes in a line each, one of these kinds in full, or describe one of a name."""
    kind = {singular: plural for plural, singular in _KINDS.items()}.get(what, what)
    if preset is not None or set_:
        of_system = kind in ("systems", "baselines") if name else kind not in (*_KINDS, "all")
        if preset is None or not of_system:
            raise ValueError("--preset and --set go with a system: hfcf list SYSTEM --preset NAME --set settings.NAME=VALUE")
        _find_kinds(system := name or what, ["systems"])
        print_preset_models(system, preset, set_ or [])
    elif name is None and kind in (*_KINDS, "all"):
        for listed in _KINDS if kind == "all" else [kind]:
            _print_kind(listed, brief=kind == "all")
    elif name is not None and kind not in _KINDS:
        raise ValueError(f"list {what} {name}: the first word is one of {', '.join(_KINDS.values())}")
    else:
        for found in _find_kinds(name or what, [kind] if name else [kind for kind in _KINDS if kind != "baselines"]):
            _print_entry(name or what, _ENTRIES[found](name or what))


def schema(kind: Annotated[str, typer.Argument(help="run, train or compare.")] = "run") -> None:
    """Print the JSON schema of a kind of recipe; editors use it to complete and check keys."""
    from hfcf.pipeline.recipes import json_schema

    typer.echo(json.dumps(json_schema(kind), indent=1, ensure_ascii=False))


def list_names(kind: str) -> list[str]:
    """List the names of a kind."""
    from hfcf import corpora, metrics
    from hfcf.core import recipe
    from hfcf.systems import systems

    if kind == "stages":
        return sorted(stages())
    if kind == "baselines":
        return [name for name, module in systems().items() if ".baselines." in module]
    return list({"systems": systems, "corpora": corpora.names, "metrics": metrics.names, "recipes": recipe.names}[kind]())


@cache
def stages() -> dict[str, Any]:
    """Return the parts of all systems by the names of their stages."""
    from hfcf.systems import system_class, systems

    return {name: part for system in systems() for name, part in system_class(system).parts.items()}


def _find_kinds(name: str, kinds: list[str]) -> list[str]:
    """List the kinds that have a name: a system and a corpus may have the same name."""
    from hfcf.core.names import did_you_mean

    names = {kind: list_names(kind) for kind in kinds}
    if found := [kind for kind, listed in names.items() if name in listed]:
        return found
    near = did_you_mean(name, [known for listed in names.values() for known in listed] + list(_KINDS) * (len(kinds) > 1))
    where = kinds[0] if len(kinds) == 1 else "systems, stages, corpora, metrics and recipes"
    raise ValueError(f"there is no {name!r} among the {where}{near or '; hfcf list prints their names'}")


def _print_kind(kind: str, *, brief: bool) -> None:
    """Print a line for each name of a kind or, if not `brief`, what each reads, fills and holds."""
    names = list_names(kind)
    if brief and kind == "systems":
        names = [name for name in names if name not in list_names("baselines")]
    print_heading(kind.capitalize(), f"hfcf list {kind} prints more, hfcf list NAME all of one")
    width = max(map(len, names)) + 2
    for name in names:
        entry = _ENTRIES[kind](name)
        if brief or not entry.brief:
            line = Text(f"{name:<{width}}", style="bold").append(entry.summary, style="not bold")
            if brief:
                console.out.print(line, no_wrap=True, overflow="ellipsis", highlight=False)
            else:
                print_hanging(line, hang=width)
            continue
        for note, lines in entry.brief.items():
            console.out.print(Text(name, style="bold").append(f"  {note}".rstrip(), style="not bold"))
            print_fields(lines)


def _print_entry(name: str, entry: ListEntry) -> None:
    print_heading(name, entry.note)
    if entry.text:
        print_hanging(Text(entry.text), hang=0)
    print_fields(entry.fields, 0)
    for (heading, note), lines in entry.sections.items():
        print_heading(heading, note)
        print_fields(lines)


def _describe_system(name: str) -> ListEntry:
    from hfcf.core.describe import settings
    from hfcf.core.docstrings import first_sentence, paragraphs
    from hfcf.hub.ratings import describe_preset
    from hfcf.systems import system_class

    cls = system_class(name)
    text, tasks = paragraphs(cls)[0], cls.works_on()
    columns = {task: [(stage.name, _columns(stage)) for stage in _example(name, task).stages] for task in tasks}
    lines: Fields = []
    for setting in settings(cls):
        others = [f"{preset}: {value}" for preset, value in setting.presets.items()]
        trained = f"hfcf train {setting.trained_by} trains this model" if setting.trained_by else ""
        lines += _setting(setting.name, setting.type, setting.default, setting.meaning, *others, trained)
    return ListEntry(
        summary=f"{', '.join(tasks)}: {first_sentence(text)}", brief=columns, note=f"a system for {' and '.join(tasks)} rows",
        text=text,
        fields=[*_paper(cls.citation), ("in Python", f"{cls.__module__}.{cls.__name__}"), ("presets", ", ".join(cls.presets))],
        sections={
            ("Rated", "pairs of each preset that are right, and models that ran"): [
                ("", describe_preset(name, preset)) for preset in cls.presets
            ],
            **{("Stages", f"{task} rows: columns that each reads → fills"): fields for task, fields in columns.items()},
            ("Settings", "in a recipe under settings:, or --set settings.NAME=VALUE"): lines,
        },
    )  # fmt: skip


def _describe_stage(name: str) -> ListEntry:
    from hfcf.core.docstrings import first_sentence, paragraphs
    from hfcf.systems import system_class, systems

    cls = stages()[name].stage
    systems_of: dict[str, dict[str, None]] = {}
    for system in systems():
        owner = system_class(system)
        for task in owner.works_on() if name in owner.parts else ():
            stage = next(stage for stage in _example(system, task).stages if stage.name == name)
            systems_of.setdefault(_columns(stage), {})[system] = None
    columns = [("", f"{columns}  in {', '.join(names)}") for columns, names in systems_of.items()]
    return ListEntry(
        summary=first_sentence(paragraphs(cls)[0]), brief={"": columns}, note="a stage", text=paragraphs(cls)[0],
        fields=[("in Python", f"{cls.__module__}.{cls.__name__}")],
        sections={
            ("Columns", "that it reads → fills"): columns,
            ("Settings", "in Python; hfcf list SYSTEM has those of recipes"): list(_settings_of(cls, fields(cls))),
        },
    )  # fmt: skip


def _describe_corpus(name: str) -> ListEntry:
    from hfcf.corpora import builder_class

    builder = builder_class(name)
    info = builder.INFO
    files: dict[str, str] = {}
    for split, file in builder.FILES:
        files.setdefault(split, file)  # each split's first file is the release's
    fields = [
        ("title", info.title),
        ("files", ", ".join(files.values()) or "the user's"),
        ("splits", ", ".join(f"{split} {rows:,}" for split, rows in info.splits.items()) or "the user's"),
        ("licence", info.licence or "the user's"),
        (
            "labels",
            ", ".join(f"{raw} → {label}" if raw != label else label for raw, label in info.labels.items()) or "the file's own",
        ),
    ]
    more = {
        "paper": info.paper, "release": info.release, "folder": info.layout, "notes": info.notes,
        "on the Hub": info.hub_id, "language": info.language, "request": info.request,
        "may publish": "" if info.republish else "no: the licence forbids to publish rows and what is made of them",
    }  # fmt: skip
    markup = re.compile(r"\[([^\[\]]*)\]\([^()]*\)|`")  # the docs print these texts as well
    return ListEntry(
        summary=f"{info.task}: {info.title}", brief={info.task: fields}, note=f"a corpus of {info.task} rows",
        fields=[*fields, *((key, markup.sub(r"\1", text)) for key, text in more.items() if text)],
        sections={("Options", "in a recipe under options:, or --set options.NAME=VALUE"): list(builder.OPTIONS.items())}
        if builder.OPTIONS else {},
    )  # fmt: skip


def _describe_metric(name: str) -> ListEntry:
    from hfcf import metrics
    from hfcf.core.docstrings import first_sentence, paragraphs
    from hfcf.metrics.shared.metric import about, settings_of_metric

    function = metrics.function(name)
    text, better = paragraphs(function), about(function).better
    text = list(takewhile(lambda paragraph: not paragraph.startswith(("Args:", ">>>")), text))
    return ListEntry(
        summary=first_sentence(text[0]), text="\n".join(text),
        note="a metric" + (f": {better} is better" if better in ("less", "more") else ""),
        sections={("Settings", "in a recipe under metrics:"): list(_settings_of(function, settings_of_metric(function).values()))},
    )  # fmt: skip


def _describe_recipe(name: str) -> ListEntry:
    from hfcf.core import recipe as recipes

    path = recipes.find_recipe(name)
    lines = path.read_text(encoding="utf-8").rstrip().splitlines()
    sections = {("Text", str(path.name)): [("", line) for line in lines]}
    return ListEntry(summary=lines[0].removeprefix("# "), note="a recipe", sections=sections)


_ENTRIES: Mapping[str, Callable[[str], ListEntry]] = {
    "systems": _describe_system, "baselines": _describe_system, "stages": _describe_stage, "corpora": _describe_corpus,
    "metrics": _describe_metric, "recipes": _describe_recipe,
}  # fmt: skip


@cache
def _example(system: str, task: str) -> Any:
    from hfcf.systems import system_class

    cls = system_class(system)
    of_task = {"task": task} if len(cls.works_on()) > 1 else {}
    return cls.preset("offline" if "offline" in cls.presets else "paper", **of_task)


def _columns(stage: Any) -> str:
    return f"{', '.join(stage.inputs)} → {', '.join(stage.outputs) or '(checks)'}"


def _settings_of(thing: Any, settings: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the settings of a stage or a metric."""
    from hfcf.core.describe import show
    from hfcf.core.docstrings import arguments, first_sentence

    meanings = arguments(thing)
    for setting in settings:
        default = "" if setting.default is MISSING else show(setting.default)
        yield from _setting(setting.name, str(setting.type), default, first_sentence(meanings.get(setting.name, "")))


def _setting(name: str, kind: str, default: str, *texts: str) -> Fields:
    """Return the lines of a setting: its type and default, then its meaning and what else is known of it."""
    return [(name, f"{kind} = {default}" if default else f"{kind}, no default"), *(("", text) for text in texts if text)]


def _paper(bibtex: str) -> Fields:
    """Return authors, year and title of a BibTeX entry as a field; return nothing if there is no entry."""
    entry = dict(re.findall(r"^[ \t]*(\w+) = \{(.*)\},?$", bibtex, re.MULTILINE))
    if not {"author", "title", "year"} <= entry.keys():
        return []
    first, *others = entry["author"].split(" and ")
    venue = entry.get("booktitle") or entry.get("journal", "")
    parts = [f"{first.split(',')[0]}{' et al.' * bool(others)} {entry['year']}", re.sub(r"[{}]", "", entry["title"]), venue]
    return [("paper", ", ".join(part for part in parts if part))]
