"""Write what repeats the code or the results: `make docs`, or `python docs/generate.py [--check]`.

A table of a page stands between `<!-- generated: NAME -->` and `<!-- end -->`; NAME is a key of `TABLES`. In a table with a column
`setting`, `Class.field=value` gets the field's default. `hfcf/hub/rated_pairs.json` counts what `results/rated_pairs.jsonl` has. A
test fails where one is stale.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from datasets import List, Value

from hfcf import metrics
from hfcf.core import describe, recipe, schema
from hfcf.core.checkpoints import checkpoints
from hfcf.core.docstrings import arguments, first_sentence, paragraphs
from hfcf.core.model import Model, is_remote
from hfcf.core.parts import OWN
from hfcf.core.settings import Prompted, Setting, settings_of
from hfcf.core.stage import Stage, StageError
from hfcf.core.system import System
from hfcf.core.task import get_task, tasks
from hfcf.corpora import builder_class
from hfcf.corpora import names as corpus_names
from hfcf.corpora.base import CorpusInfo
from hfcf.studies.compare.age import age, age_notes, versions_of
from hfcf.studies.compare.frame import make_grid
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.run import read_comparison
from hfcf.studies.compare.stats import paired_bootstrap
from hfcf.studies.compare.tables import difference_text, points
from hfcf.systems import system_class
from hfcf.systems import systems as system_names
from hfcf.tasks.judge import JudgeCandidates

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """List the pages that may hold generated tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rewrite(page: str) -> str:
    """Return the text of a page with its tables written anew, and the defaults of its settings."""
    page = _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n\n{block[3]}", page)
    return "\n".join(with_defaults(line) if line.startswith("| ") and ".py`" in line else line for line in page.split("\n"))


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


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell.replace('|', '&#124;')} " if cell else " " for cell in line) + "|" for line in lines)


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- systems


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


def baselines_table() -> str:
    header = ("system", "class", "task", "label", "what it does", "models of the paper", "offline")
    rows = []
    for name, cls in systems(baselines=True):
        weights = [setting.default.name for setting in cls.schema.values() if isinstance(setting.default, Model)]
        where = f"`{cls.__module__}.{cls.__name__}`"
        offline = "yes" if "offline" in cls.presets else "no"
        rows.append(
            (
                f"`{name}`",
                where,
                ", ".join(sorted(cls.works_on(), reverse=True)),
                "flips" if cls.flips else "kept",
                first_sentence(paragraphs(cls)[0]),
                code(weights),
                offline,
            )
        )
    return table(header, rows)


def settings_table(name: str) -> str:
    """List the settings of a system: the paper's value, where other presets have another one, and what the docstring says."""
    rows = []
    for one in describe.settings(system_class(name)):
        if one.name in ("seed", "strict"):  # every system has them
            continue
        others: dict[str, list[str]] = {}
        for preset, value in one.presets.items():
            others.setdefault(shorten(value), []).append(preset)
        paper = one.presets.get("paper", one.default)
        changed = "; ".join(f"`{value}`: {', '.join(presets)}" for value, presets in others.items() if presets != ["paper"])
        rows.append((f"`{one.name}`", f"`{shorten(paper)}`" if paper else "must be given", changed, brief(one.meaning)))
    return table(("setting", "paper", "other presets", "meaning"), rows)


def baseline_settings_table() -> str:
    """List the defaults of the settings that the baselines have besides those of the last stage."""
    shared = {*settings_of(JudgeCandidates), *OWN}
    rows = []
    for name, cls in systems(baselines=True):
        own = [one for one in describe.settings(cls) if one.name not in shared]
        rows.append((f"`{name}`", code(f"{one.name}={shorten(one.default)}" if one.default else one.name for one in own)))
    return table(("system", "settings and defaults"), rows)


def shorten(value: str) -> str:
    """Leave of hyper-parameters the model alone."""
    return re.sub(r"^model=(.+?), (max_length|batch_size)=.*", r"\1, …", value)


def brief(meaning: str) -> str:
    """Shorten the meaning of a setting: its first clause without brackets."""
    clause = re.split(r"; |, see `", re.sub(r" \([^()]*\)", "", meaning), maxsplit=1)[0]
    head = clause.partition(": ")[0]
    return head if len(head.split()) > 4 else clause


def endpoints_table() -> str:
    """List where a language model behind an endpoint may stand, and which models the preset "llm" leaves local."""
    rows = []
    for name, cls in all_systems():
        places = [setting.name for setting in cls.schema.values() if setting.marker(Prompted)]
        if places:
            local = code(local_models(cls.preset("llm"))) if "llm" in cls.presets else "no such preset"
            rows.append((f"`{name}`", code(places), local or "none"))
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


# --- columns


def stages_table() -> str:
    rows = []
    for name, cls in all_systems():
        for task, system in examples(cls).items():
            label = f"`{name}`" + (f" on {task} rows" if len(cls.works_on()) > 1 else "")
            for index, stage in enumerate(system.stages):
                rows.append((label if index == 0 else "", f"`{stage.name}`", reads(stage, task), code(stage.outputs)))
    return table(("system", "stage", "reads", "fills"), rows)


def reads(stage: Stage, task: str) -> str:
    """List a stage's inputs, with *row* for all columns of the task."""
    row = get_task(task).features
    if set(row) <= set(stage.inputs):
        return ", ".join(["*row*", *(f"`{name}`" for name in stage.inputs if name not in row)])
    return code(stage.inputs)


def columns_table() -> str:
    """List what stages fill: the type, and the stages."""
    types: dict[str, dict[str, None]] = {}
    stages: dict[str, dict[str, None]] = {}
    for _, cls in all_systems():
        for stage in (stage for system in examples(cls).values() for stage in system.stages):
            for column, feature in stage.outputs.items():
                types.setdefault(column, {})[type_of(feature)] = None
                stages.setdefault(column, {})[stage.name] = None
    rows = []
    for column in sorted(types):
        by = code(stages[column]) if len(stages[column]) < 5 else f"{len(stages[column])} stages"
        rows.append((f"`{column}`", " or ".join(types[column]), by))
    return table(("column", "type", "filled by"), rows)


def tasks_table() -> str:
    """List every task's columns, with those in bold by which its rows are recognised."""
    rows = []
    for task in sorted(tasks().values(), key=lambda one: one.name):
        for index, (column, feature) in enumerate(task.features.items()):
            marked = f"**`{column}`**" if column in task.signature else f"`{column}`"
            rows.append((task.name if index == 0 else "", marked, type_of(feature)))
    return table(("task", "column", "type"), rows)


def provenance_table() -> str:
    return table(("column", "type"), [(f"`{name}`", type_of(feature)) for name, feature in schema.PROVENANCE.items()])


def type_of(feature: Any) -> str:
    """Name a feature as the pages do."""
    if isinstance(feature, Value):
        return {"int64": "integer", "float64": "number", "bool": "yes or no"}.get(feature.dtype, feature.dtype)
    if isinstance(feature, List):
        inner = type_of(feature.feature)
        return f"list of {inner}" if isinstance(feature.feature, dict) and inner != "row" else f"list of {inner}s"
    if set(schema.PROVENANCE) <= set(feature):
        return "row"
    return "{" + ", ".join(f"`{name}`" for name in feature) + "}"


# --- metrics


def metrics_table() -> str:
    rows = []
    for name in metrics.names():
        cls = metrics.load(name, stage=True)
        measured = [task for task in sorted(tasks()) if accepts(cls, task)]
        where = "all" if len(measured) == len(tasks()) else ", ".join(measured)
        rows.append(
            (f"`{name}`", first_sentence(paragraphs(cls)[0]), values(cls, name), cls.better, where, needs(cls), source(cls))
        )
    return table(("metric", "what it says of a row", "column", "better", "tasks", "needs", "source"), rows)


def accepts(cls: Any, task: str) -> bool:
    required = {name: Model("a-model") for name, setting in settings_of(cls).items() if setting.default is MISSING}
    try:
        return bool(cls(**required, task=task).inputs)
    except StageError:
        return False


def values(cls: Any, name: str) -> str:
    """Return what the docstring says of the column: the text after its name, up to a semicolon or the end of the sentence."""
    said = paragraphs(cls)[1].partition(f"Output column: `{name}`, ")[2]
    return re.split(r"; |\. |\.$|: ", said, maxsplit=1)[0]


def needs(cls: Any) -> str:
    """List the models that a metric asks, and whether it is fitted to the set."""
    meanings = arguments(cls)
    models = [meanings[name].rstrip(".;") for name, setting in settings_of(cls).items() if setting.type in ("Model", "Ner")]
    return "; ".join([re.split(r"[.;] ", one)[0] for one in models] + ["fit"] * (cls.fit_inputs is not Stage.fit_inputs))


def source(cls: Any) -> str:
    said = next((one for one in paragraphs(cls) if one.startswith("Source: ")), "")
    return re.split(r": |\. (?=Deviation)|, which|, who|\.$", said.removeprefix("Source: "), maxsplit=1)[0]


def corpora_table(task: str) -> str:
    """Return a Markdown table of this library's corpora of a task; corpora that share their front matter share a line."""
    groups: dict[int, tuple[list[str], CorpusInfo]] = {}
    for name in corpus_names():
        builder = builder_class(name)
        if builder.INFO.task == task and builder.__module__.startswith("hfcf."):
            groups.setdefault(id(builder.INFO), ([], builder.INFO))[0].append(name)
    lines = ["| name | where the release is | what `data_dir` holds | notes |", "| --- | --- | --- | --- |"]
    # A user's own files, which have no paper, come last.
    for corpora, info in sorted(groups.values(), key=lambda group: not group[1].paper):
        # Errors of a missing release point to the anchor.
        cells = (", ".join(f'<a id="{name}"></a>`{name}`' for name in corpora), info.release, info.layout, info.notes)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def checkpoints_table() -> str:
    """List the public checkpoints of the presets `hub`, with the pages where their facts stand."""
    header = ("checkpoint, commit", "what for", "licence", "parameters", "download", "reads", "classes in order", "pages")
    rows = [
        (
            f"`{one.name}` `{one.revision[:7]}`" if one.revision else f"`{one.name}`, no commit found: pin it yourself",
            one.purpose,
            one.licence,
            f"{one.parameters / 1e6:,.0f} M",
            f"{one.download_bytes / 1e9:.2f} GB",
            f"{one.inputs}; {f'{one.max_length:,} tokens' if one.max_length else 'length not found'}".replace("<", "&lt;"),
            ", ".join(one.labels) or "none",
            "; ".join(f"[{what}]({address})" for what, address in one.pages),
        )
        for one in checkpoints()
    ]
    return table(header, rows)


# --- comparisons


def cells_note(name: str) -> str:
    """Say which versions of the code made the newest stored cells of a comparison, of the methods that its recipe has today."""
    asked: Any = read_comparison(name, ["preset=offline"])
    systems = {method: part and (part.system or asked.system) for method, part in asked.methods.items()}
    methods = {method: versions_of(system_class(system) if system else None) for method, system in systems.items()}
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in Cells(RESULTS / f"{name}.jsonl").every():
        if cell.get("method") in methods and "corpus" in cell:
            place = tuple(cell.get(part) for part in ("method", "seed", "size", "sample", "corpus"))
            newest[place] = {**cell, "age": age(cell.get("versions"), methods[cell["method"]])}
    notes = age_notes(newest.values())
    of = f"`results/{name}.jsonl`"
    return "\n".join(f"{note} ({of})" for note in notes) or f"All {len(newest)} cells of {of} are of today's versions of the code."


def example_difference() -> str:
    """Show how the newest cells of a method and of the baseline on one corpus become a difference with an interval."""
    name, method, system, corpus = "compare_crossaug", "CrossAug", "crossaug", "Symmetric v0.1"
    newest: dict[tuple[str, int], dict[str, Any]] = {}
    for cell in Cells(RESULTS / f"{name}.jsonl").every():
        if cell.get("method") in ("none", method) and cell.get("corpus") == corpus:
            newest[cell["method"], cell["seed"]] = {"setting": "challenge", **cell}
    grid = make_grid(newest.values(), "none", ["none", method])
    difference = next(one for one in paired_bootstrap(grid, method) if one.metric == "accuracy")
    scores = {one: {seed: accuracy(cell) for seed, cell in grid.of(one, corpus).items()} for one in grid.methods}
    rows = [[str(seed), *(points(scores[one][seed]) for one in grid.methods)] for seed in difference.seeds]
    n = len(newest["none", difference.seeds[0]]["gold"])
    ages = {
        age(cell.get("versions"), versions_of(system_class(system) if one == method else None)) for (one, _), cell in newest.items()
    }
    notes = "".join(f" † {note}." for note in sorted(ages - {""}))
    return (
        table(("seed", *(f"{one}{'†' if notes else ''}" for one in grid.methods)), rows)
        + f"\n\n{method} on {corpus}, n = {n} rows, {len(difference.seeds)} seeds, accuracy in points: "
        + f"difference {difference_text(difference)}, p = {difference.p:.2f} before the correction.{notes}"
    )


def accuracy(cell: Mapping[str, Any]) -> float:
    pairs = list(zip(cell["gold"], cell["predicted"], strict=True))
    return sum(gold == predicted for gold, predicted in pairs) / len(pairs)


def compared() -> list[str]:
    """List the comparisons that have stored cells."""
    return sorted(path.stem for path in RESULTS.glob("compare_*.jsonl"))


TABLES: dict[str, Callable[[], str]] = {
    "checkpoints": checkpoints_table,
    "systems": systems_table,
    "baselines": baselines_table,
    "baseline_settings": baseline_settings_table,
    **{f"settings_{name}": partial(settings_table, name) for name, _ in systems(baselines=False)},
    "endpoints": endpoints_table,
    "example_difference": example_difference,
    "stages": stages_table,
    "columns": columns_table,
    "provenance": provenance_table,
    "metrics": metrics_table,
    "tasks": tasks_table,
    **{f"cells_{name}": partial(cells_note, name) for name in compared()},
    **{f"corpora_{task}": partial(corpora_table, task) for task in tasks()},
}


def count_ratings() -> str:
    """Return, as JSON, how many of the rated pairs of each system and preset are right; those of older versions are not counted."""
    lines = (ROOT / "results" / "rated_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    counts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        if row["version"] != "after" or row["system"] not in system_names():
            continue
        label, sound, close = row["label"] == row["read_as"], bool(row["sense"]), bool(row["counterfactual"])
        read = {"pairs": True, "label": label, "all": label and sound, "counterfactual": close, "both": label and sound and close}
        entry = counts.setdefault(row["system"], {}).setdefault(row["preset"], {"corpus": row["corpus"], "date": row["date"]})
        entry.update({name: entry.get(name, 0) + value for name, value in read.items()})
    return json.dumps(counts, indent=1) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write every file that is stale; with `--check` only name them."""
    current = {page: rewrite(page.read_text(encoding="utf-8")) for page in pages()}
    current[ROOT / "hfcf" / "hub" / "rated_pairs.json"] = count_ratings()
    stale = []
    for path, new in current.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != new:
            stale.append(path.relative_to(ROOT).as_posix())
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    print("stale:" if "--check" in arguments else "written:", ", ".join(stale) or "none")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
