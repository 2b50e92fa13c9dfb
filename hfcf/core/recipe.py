"""Recipes: YAML files that say what to load, run, train, compare and publish. They are data, and an unknown key is an error."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model, model_validator
from pydantic_core import PydanticCustomError

from hfcf.core.docstrings import arguments
from hfcf.core.model import Model
from hfcf.core.names import did_you_mean
from hfcf.core.redact import short_path, short_paths
from hfcf.core.safe_yaml import read_yaml, read_yaml_file, write_flow, yaml_problem
from hfcf.core.settings import explain_invalid, quote, settings_of


class RecipeError(ValueError):
    """A recipe that can't be read or does not fit its kind."""


class Recipe(BaseModel):
    """A recipe, or a part of a recipe, as a type: unknown keys and values of wrong types are errors. `parse` makes it.

    Values are not converted (`"3"` is not a number, a list is not a tuple), but a float field takes an integer. A validator that
    raises `ValueError` names the key itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        """Raise on unknown keys before any value is checked: a misspelt key causes most other errors."""
        if isinstance(content, Mapping):
            try:
                check_keys(map(str, content), (field.alias or name for name, field in cls.model_fields.items()), "")
            except RecipeError as error:
                raise PydanticCustomError("unknown_key", "{text}", {"text": str(error)}) from error
        return content


R = TypeVar("R", bound=BaseModel)


def _text(value: Any) -> Any:
    return str(value) if type(value) in (int, float) or isinstance(value, PathLike) else value


def _files(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_text(key): _files(paths) for key, paths in value.items()}
    return [_text(path) for path in value] if isinstance(value, list | tuple) else _text(value)


def _model(value: Any) -> Any:
    if isinstance(value, Mapping):
        check_keys(map(str, value), Model.__dataclass_fields__, "")
        if "name" not in value:
            raise ValueError("the key 'name' is missing")
    if not value or not isinstance(value, Mapping | str | Model):
        raise ValueError(f"must be a name, or a mapping such as {{name: t5-base, revision: …}}, got {quote(value)}")
    return Model.of(dict(value) if isinstance(value, Mapping) else value)


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number"]})]
"""A string that YAML may read as a number, or that Python code gives as a path: `split: 2012`."""
Files = Annotated[str | list[str] | dict[str, str | list[str]], BeforeValidator(_files)]
"""A file, several files, or a mapping of splits to files."""
_MODEL_FIELDS = {
    **{key: {"type": "string"} for key in ("name", "revision", "adapter", "dtype", "inputs", "prompts")},
    "samples": {"type": "integer", "minimum": 1},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
}
_MODEL_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": _MODEL_FIELDS, "required": ["name"], "additionalProperties": False},
    ]
}
ModelReference = Annotated[Model, BeforeValidator(_model), WithJsonSchema(_MODEL_SCHEMA)]
"""Weights: a name (a Hub id, a folder, offline:NAME), or a mapping of the fields of `Model`."""


def takes(config: type[Any], *, without: Sequence[str] = ()) -> Callable[[type[R]], type[R]]:
    """Make a decorator that adds the fields of a dataclass to a recipe as keys, each with its range, default and meaning."""

    def decorate(cls: type[R]) -> type[R]:
        meanings = arguments(config)
        keys: dict[str, Any] = {
            name: (setting.annotation, Field(default=setting.default, description=meanings[name][:1].upper() + meanings[name][1:]))
            for name, setting in settings_of(config).items()
            if name not in without
        }
        return create_model(cls.__name__, __base__=cls, __module__=cls.__module__, __doc__=cls.__doc__, **keys)

    return decorate


def parse_recipe(model: type[R], content: Any, where: str) -> R:
    """Make the model of a recipe from its content."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise RecipeError(explain_invalid(error, content, where)) from error


def find_recipe(name: str) -> Path:
    """Find the file of a recipe: a path, or the name of a recipe that ships with this library ("race_hover")."""
    if Path(name).is_file():
        return Path(name)
    if Path(name).is_dir():
        raise RecipeError(f"{name} is a folder, and a recipe is a YAML file")
    path = folder() / f"{name.removeprefix('recipes/').removesuffix('.yaml')}.yaml"
    if not path.is_file():
        near = did_you_mean(path.stem, names()) or f": give a file, or one of {', '.join(names())}"
        raise RecipeError(f"no recipe {name!r}{near}")
    return path


def names() -> list[str]:
    """List the names of the recipes that ship with this library."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def folder() -> Path:
    """Return the folder of the recipes: inside the package (in a checkout, a link to the folder next to it)."""
    return Path(__file__).parents[1] / "recipes"


def read_recipe(path: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """Read a recipe's content, and apply its preset and the changes from the command line."""
    try:
        recipe = read_yaml_file(path)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    if not isinstance(recipe, dict):
        raise RecipeError(f"{path} holds no mapping of keys to values, such as system: race")
    return apply_changes(recipe, changes)


def _keys(value: Any) -> Iterator[str]:
    """Yield every key in nested values."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _keys(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _keys(part)


def apply_changes(recipe: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Apply a preset and changes to a recipe's content, in place; see `read_recipe`."""
    assignments = []
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise RecipeError(f"--set {change}: write key=value")
        try:
            assignments.append((key.strip(), read_yaml(value)))
        except yaml.YAMLError as error:
            quoted = f'{key}="{value}"'
            raise RecipeError(f"--set {change}: the value is not YAML: {yaml_problem(error)}; as a text: '{quoted}'") from error
    presets = recipe.pop("presets", None)
    presets = {} if presets is None else presets
    if not isinstance(presets, Mapping) or not all(
        isinstance(name, str) and isinstance(content, Mapping | None) for name, content in presets.items()
    ):
        what = repr(presets if not isinstance(presets, Mapping) else dict(presets))
        raise RecipeError(f"presets must be a mapping of each preset's name to the keys that it changes, got {what[:80]}")
    recipe["preset"] = dict(assignments).get("preset", recipe.get("preset", "paper"))
    if isinstance(recipe["preset"], str):  # a wrong type is reported with the other keys
        _merge(recipe, presets.get(recipe["preset"]) or {})
    for key, value in assignments:
        target = recipe
        *parents, last = key.split(".")
        for parent in parents:
            target = target.setdefault(parent, {}) if isinstance(target, dict) else target
        if not isinstance(target, dict):
            raise RecipeError(f"{key}: there is nothing of that name to set")
        target[last] = value
    if "storage_options" in _keys(recipe):
        raise RecipeError("storage_options: a recipe is published, so it holds no access to a server: use hfcf.load in Python")
    _name_labels(recipe)
    return recipe


def _name_labels(value: Any) -> None:
    """Write the keys of every `labels` as texts: YAML reads 0 and true as a number and a boolean, which no key may sort."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "labels" and isinstance(part, dict):
            value[key] = {str(name).lower() if isinstance(name, bool) else str(name): label for name, label in part.items()}
        else:
            _name_labels(part)


def with_preset(preset: str | None, changes: Sequence[str]) -> list[str]:
    """Add the preset of `--preset` to the changes of `--set`.

    >>> with_preset("offline", ["seed=7"])
    ['preset=offline', 'seed=7']
    """
    if preset is None:
        return list(changes)
    if other := next((change for change in changes if change.partition("=")[0].strip() == "preset"), None):
        if other.partition("=")[2].strip() != preset:
            raise RecipeError(f"--preset {preset} and --set {other} name two presets: leave one of them out")
        return list(changes)
    return [f"preset={preset}", *changes]


def check_distinct(names: Sequence[str], where: str) -> None:
    """Check that no two parts of a recipe have the same name."""
    if repeated := [name for name, number in Counter(names).items() if number > 1]:
        raise RecipeError(f"{where}: {repeated[0]!r}: give each a name of its own, as name: …; this name comes twice")


def file_keys(changes: Sequence[str], options: Iterable[str] = ()) -> dict[str, Any]:
    """Return `columns`, `labels` and further options of a user's file or a corpus, as commands take them by `--set`."""
    return keys_of_each(changes, 1, options)[0]


def keys_of_each(changes: Sequence[str], files: int, options: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return what `file_keys` returns for each of several files: a number before a key, from 1, names one file.

    >>> keys_of_each(["labels=[no, yes]", "2.columns={claim: text}"], 2)
    [{'labels': ['no', 'yes']}, {'labels': ['no', 'yes'], 'columns': {'claim': 'text'}}]
    """
    given = {key: value for key, value in apply_changes({}, changes).items() if key != "preset"}
    numbers = [str(number) for number in range(1, files + 1)]
    alone = {number: given.pop(number) for number in numbers if isinstance(given.get(number), Mapping)}
    of_each = [{**given, **alone.get(number, {})} for number in numbers]
    for keys in of_each:
        check_keys(keys, ("columns", "labels", *options), "--set")
    return of_each


def resolve_folder(path: str) -> Path | None:
    """Return the folder next to the recipes for "recipes:NAME"; None for any other path."""
    return folder() / path.removeprefix("recipes:") if path.startswith("recipes:") else None


def saved_splits(path: str) -> list[str]:
    """List the splits of a folder of `DatasetDict.save_to_disk`; [] for any other path."""
    file = Path(path).expanduser() / "dataset_dict.json"
    return list(json.loads(file.read_text(encoding="utf-8"))["splits"]) if file.is_file() else []


_SAVED = ("dataset_info.json", "dataset_dict.json", "state.json")
"""The files by which a folder of `save_to_disk` is recognised."""


def is_dataset(corpus: Any) -> bool:
    """Say whether a corpus is a mapping for `load_dataset`, a Hub id with its namespace, or a folder that holds a dataset."""
    return isinstance(corpus, Mapping) or (
        isinstance(corpus, str) and ("/" in corpus or is_saved(corpus) or _is_hub_folder(corpus))
    )


def is_saved(folder: str) -> bool:
    """Say whether a folder is one of `save_to_disk`."""
    return any((Path(folder).expanduser() / name).is_file() for name in _SAVED)


def _is_hub_folder(folder: str) -> bool:
    """Say whether a folder is laid out as a dataset repository: Parquet and a card."""
    path = Path(folder).expanduser()
    return (path / "README.md").is_file() and any(
        True for pattern in ("*", "data/*", "data/*/*") for _ in path.glob(f"{pattern}.parquet")
    )


def locate(source: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Put the folder or the files of a recipe's corpus inside its `data_dir`; "recipes:NAME" is a folder next to the recipes."""
    corpus = source.get("corpus")
    named_whole = isinstance(corpus, Mapping) or "/" in str(corpus)
    if named_whole or (is_dataset(corpus) and not {"data_dir", "data_files"} & set(source)):  # of the Hub, or a folder as it is
        return dict(source)
    base = Path(data_dir or ".")
    key = "data_files" if "data_files" in source else "data_dir"

    def inside(files: Any) -> Any:
        if isinstance(files, dict):
            return {split: inside(paths) for split, paths in files.items()}
        if isinstance(files, list):
            return [inside(path) for path in files]
        return str(resolve_folder(str(files)) or base / files)

    return {**source, key: inside(source.get(key, "."))}


def command(verb: str, recipe: Any, out: str | Path, changes: Sequence[str] = (), limit: int | None = None) -> str:
    """Return the command line that makes a result again, without the folders of this machine, because it is published."""
    name = "recipe.yaml" if isinstance(recipe, Mapping) else Path(recipe).name
    parts = ["hfcf", *verb.split(), name, "--out", Path(out).name or "out"]
    for change in changes:
        parts += ["--set", without_folders(change)]
    return shlex.join(parts + (["--limit", str(limit)] if limit is not None else []))


def without_folders(change: str) -> str:
    """Shorten the paths in a "key=value"; a text without a path stays as it was typed."""
    key, _, text = change.partition("=")
    try:
        value = read_yaml(text)
    except yaml.YAMLError:  # a mistake, which is reported elsewhere
        return f"{key}={short_path(text)}"
    if (shown := short_paths(value)) == value:
        return change
    return f"{key}={write_flow(shown)}"


def check_keys(keys: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Raise `RecipeError` on a key that is not allowed; the message suggests the nearest (for an example see `parse`)."""
    names = sorted({*allowed})
    for key in keys:
        if key not in names:
            at = f"{where}: " if where else ""
            raise RecipeError(f"{at}unknown key {key!r}{did_you_mean(key, names)} (allowed: {', '.join(names)})")


def _merge(recipe: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(recipe.get(key), dict):
            _merge(recipe[key], value)
        else:
            recipe[key] = value
