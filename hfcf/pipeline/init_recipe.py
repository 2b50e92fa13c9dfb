"""`hfcf new`: write a recipe for a user's own file, with the columns and labels that were found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.preflight import check_models
from hfcf.core.recipe import RecipeError
from hfcf.core.safe_yaml import write_flow
from hfcf.core.settings import to_builtin
from hfcf.core.task import task_of
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.layout import distinct_columns
from hfcf.corpora.custom.load import ReadRows, read_quietly
from hfcf.corpora.custom.source import describe_file
from hfcf.corpora.custom.tables import RECORD, SquadError, own_columns, split_of
from hfcf.corpora.formats.read import CorpusError
from hfcf.pipeline.recipes import RunRecipe
from hfcf.systems import system_class

SQUAD = "squad"
"""The corpus that reads the JSON of a release in SQuAD's layout."""


@dataclass(frozen=True)
class NewRecipe:
    """A recipe for a file.

    Args:
        text: its YAML.
        rows: how many the file has.
        readable: how many of them can be read.
        reasons: why the remaining rows can't, each with its number of rows.
        ids: columns that differ in all rows, and are not read: one of them may be the id.
    """

    text: str
    rows: int
    readable: int
    reasons: Mapping[str, int]
    ids: Sequence[str] = ()


def new_recipe(system: str, file: str | Path, data: str | Path, changes: Sequence[str] = ()) -> NewRecipe:
    """Make a recipe that runs a system on a user's file, as `hfcf.from_dataset` reads it.

    The preset is "offline" where its models are installed, else "paper".

    Args:
        system: one of `hfcf.systems.systems`.
        file: where the recipe will be, for its name and its command.
        data: the rows.
        changes: "key=value" of the recipe, as `--set` takes them: `columns` and `labels` that can't be guessed among them.

    Raises:
        RecipeError: there is no such system or file, it has another form, or its columns or labels can't be guessed. The message
            has the keys to write.
    """
    cls = system_class(system)
    given = recipes.apply_changes({}, changes)
    named, chosen = any(change.startswith("preset=") for change in changes), given.pop("preset")  # "paper" where nobody named one
    try:
        ds, source, columns, ids = _read(data, cls.works_on(), {**given, **(given.get("options") or {})})
    except LayoutError as error:
        raise RecipeError(error.in_recipe("hfcf new", options=True)) from error
    except CorpusError as error:
        raise RecipeError(f"--data {error}") from error
    task = task_of(ds.features).name
    if cls.works_on() and task not in cls.works_on():
        raise RecipeError(f"--data {data}: {system} works on {' or '.join(cls.works_on())} rows, and these are {task} rows")
    settings = {"task": task} if "task" in cls.schema else {}
    preset = chosen if named else _preset(cls, settings)
    content = {"name": Path(file).stem, **source, "on_error": "reject", "system": system, "preset": preset, "seed": 13, **given}
    recipes.parse_recipe(RunRecipe, content, "the recipe")
    reasons = Counter(status["reason"] for status in ds["status"] if status and status["accepted"] is False)
    if reasons.total() == len(ds):
        first = next(iter(reasons))
        raise RecipeError(f"--data {data}: no row can be read: {first}; the columns are {', '.join(columns)}")
    text = _text(content, Path(file), cls, task, f"{len(ds)} row{'s' * (len(ds) > 1)} of {data}")
    return NewRecipe(text, len(ds), len(ds) - reasons.total(), reasons, ids)


def _read(
    data: str | Path, tasks: Sequence[str], given: Mapping[str, Any]
) -> tuple[Dataset, dict[str, Any], list[str], Sequence[str]]:
    """Read a file; return its rows, the keys of its source, its columns, and those that may be the id."""
    try:
        corpus, table, layout = describe_file(data, tasks, given)
    except SquadError:
        ds = corpora.load(SQUAD, split="train", data_files={"train": str(data)}, on_error="reject")
        return ds, {"corpus": SQUAD, "data_files": {"train": str(data)}}, [], []
    split = split_of(Path(data))
    source = {"corpus": corpus, "data_files": str(data), **({} if split == "train" else {"split": split}), **layout.keys()}
    ids = [] if "id" in layout.columns else distinct_columns([table], [*layout.own, RECORD])
    return read_quietly(table, ReadRows(layout, corpus, split, True)), source, own_columns(table), ids


def _preset(cls: Any, settings: Mapping[str, Any]) -> str:
    if "offline" not in cls.presets:
        return next(iter(cls.presets))
    try:
        check_models(cls.preset("offline", **settings))
    except (ValueError, OSError, ImportError):
        return "paper" if "paper" in cls.presets else "offline"
    return "offline"


_COMMENTS = {
    "data_files": "a file, several, or split: file",
    "columns": "our field: your column",
    "labels": "your label: ours",
    "on_error": "a row that can't be read is kept and rejected, with its reason",
}


def _text(content: Mapping[str, Any], file: Path, cls: Any, task: str, rows: str) -> str:
    command = recipes.command("run", file, Path("out") / file.stem).replace(f"--out {file.stem}", f"--out out/{file.stem}")
    if file.parent != Path("."):
        command = command.replace(f"run {file.name}", f"run {file}")
    lines = [
        f"# {command}",
        f"# {cls.__name__} on {rows}. The same command with --dry-run shows three of them after every stage, and the cost.",
    ]
    for key, value in content.items():
        small = "; offline has small models that need no network" if "offline" in cls.presets else ""
        comments = {**_COMMENTS, "preset": f"one of {', '.join(cls.presets)}{small}"}
        comment = f"  # {comments[key]}" if key in comments else ""
        lines.append(f"{key}: {write_flow(value)}{comment}")
    if settings := [f"#   {name}: {write_flow(value)}" for name, value in _simple_settings(cls, content["preset"], task)]:
        lines += ["# settings:  # over those of the preset, which are", *settings]
    return "\n".join(lines) + "\n"


def _simple_settings(cls: Any, preset: str, task: str) -> Iterable[tuple[str, Any]]:
    """Yield the settings that a recipe writes in one line, as the preset has them for rows of the task; none that is null."""
    values = {**cls.presets[preset], **cls.by_task.get(task, {})}
    for name, setting in cls.schema.items():
        value = _written(values.get(name, setting.default))
        if name not in ("seed", "strict", "task") and value not in (None, [], MISSING):
            yield name, value


def _written(value: Any) -> Any:
    """Return a setting as a recipe writes it: a model by its name, a group of settings without those that are null."""
    if isinstance(value, Model):
        shown = {"name": value.name, "revision": value.revision, "adapter": value.adapter}
        return {key: part for key, part in shown.items() if part} if value.revision or value.adapter else value.name
    if is_dataclass(value):
        return {field.name: written for field in fields(value) if (written := _written(getattr(value, field.name))) is not None}
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return to_builtin(value)
