"""Run `hfcf attack ROWS`: read rows, attack a model, and write what misleads it as a dataset repository."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.lock import hold_folder
from hfcf.core.mapping import first_rows
from hfcf.core.model import Model, named
from hfcf.core.redact import short_path
from hfcf.core.task import Task, task_of
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.detect import describe_file
from hfcf.corpora.custom.schema import FORMS
from hfcf.hub.dataset_card import NOT_REPUBLISHED, republish_key
from hfcf.hub.folder import SplitWriter, configs, remove_others
from hfcf.hub.previous_run import check_overwrite
from hfcf.hub.render import render
from hfcf.hub.source import read_restriction, read_source
from hfcf.pipeline.recipes import RowsRecipe
from hfcf.pipeline.run import load_rows
from hfcf.studies.attack.models import Attacked, attack

SUMMARY = "attack.json"
_FILES = (".csv", ".jsonl", ".parquet")


def attack_rows(
    rows: str, model: Model, out: Path, *, changes: Sequence[str] = (), limit: int | None = None, **settings: Any
) -> dict[str, Any]:
    """Attack a model on the rows of a file, a folder or a corpus, and write the result.

    Args:
        rows: a file of JSON lines, CSV or Parquet; a folder of `save_to_disk`; or a corpus, with `data_dir` among the changes.
        model: see `attack`.
        out: the folder: `load_dataset(out)` reads the rows that mislead the model, `load_dataset(out, "results")` how each source
            ended.
        changes: "key=value" of the rows: data_dir, split, columns, labels.
        limit: attack the first rows alone.
        settings: see `attack`.

    Returns:
        The summary, which `attack.json` also holds.
    """
    check_overwrite(out)
    command = _command(rows, model, out, changes, limit, settings)
    with hold_folder(out, command):
        content = _content(rows, changes)
        given = first_rows(load_rows(recipes.parse(RowsRecipe, content, "ROWS")), limit)
        attacked = attack(given, model, **settings)
        _write(attacked, out, task_of(given.features), content, short_path(named(model)), command)
    return attacked.summary


def _command(rows: str, model: Model, out: Path, changes: Sequence[str], limit: int | None, settings: Mapping[str, Any]) -> str:
    """Return the command that makes the result again, without the folders of this machine: it is published."""
    labels = ",".join(f"{own}={label}" for own, label in dict(model.labels or ()).items())
    own = {"model": model.name, "adapter": model.adapter, "labels": labels, "inputs": model.inputs, **settings}
    options = {f"--{name.replace('_', '-')}": ",".join(value) if isinstance(value, list) else value for name, value in own.items()}
    given = [part for name, value in options.items() if value not in (None, "") for part in (name, short_path(str(value)))]
    return f"{recipes.command('attack', rows, out, changes, limit)} {shlex.join(given)}"


def _content(rows: str, changes: Sequence[str]) -> dict[str, Any]:
    """Return the recipe of rows; an unreadable recipe is a skipped row."""
    given = {key: value for key, value in recipes.apply_changes({}, changes).items() if key != "preset"}
    if not Path(rows).expanduser().is_file() and Path(rows).suffix not in _FILES:
        return {"corpus": rows, "on_error": "reject", **given}
    try:
        _, source, _ = describe_file(rows, list(FORMS), given)
    except LayoutError as error:
        raise recipes.RecipeError(error.in_recipe("hfcf attack")) from error
    return {**source, "on_error": "reject", **given}


def _write(attacked: Attacked, out: Path, task: Task, content: Mapping[str, Any], model: str, command: str) -> None:
    data, classes = out / "data", task.class_names(attacked.results["label"])
    parts: dict[str, Dataset] = {"default": attacked.rows, "results": attacked.results}
    files: dict[str, dict[str, Any]] = {}
    for name, rows in parts.items():
        writer = SplitWriter(data / name, rows.features, rows=None)
        for split in sorted({split or "train" for split in rows["split"]}):
            here = [i for i, own in enumerate(rows["split"]) if (own or "train") == split]
            writer.write(rows.select(here).with_format("arrow")[:], split)
        files[name] = writer.close(classes if name == "default" else None)
    written = {name: splits for name, splits in files.items() if splits}
    info = replace(corpora.builder_class(content["corpus"]).INFO, **read_source(content), **read_restriction(content))
    front = {
        "license": info.licence or "unknown", "task_categories": list(task.hub.categories), "task_ids": list(task.hub.ids),
        "tags": ["adversarial", task.hub.tag, "hfcf", "hfcf-attack"], "pretty_name": f"{info.title}, attacked",
        **republish_key(info.republish), "configs": configs(out, written, "default" if files["default"] else "results"),
    }  # fmt: skip
    card = render(
        "model_attack_card.md.jinja", package="hfcf.studies", corpus=info, summary=attacked.summary, model=model, command=command,
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True), not_republished=NOT_REPUBLISHED,
    )  # fmt: skip
    notes = {"summary": attacked.summary, "model": model, "command": command}
    (out / SUMMARY).write_text(json.dumps(notes, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "README.md").write_text(card, encoding="utf-8")
    remove_others(data, [file for splits in files.values() for file in splits.values()])
