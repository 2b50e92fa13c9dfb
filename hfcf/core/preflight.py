"""Check before the first stage of a system all that can be known by then: columns, labels, models, lengths, disk.

A stage that fails after hours of model calls wastes them. `System` calls `check` and `check_rows`; `hfcf run` and its dry run call
`check` before they read rows. Both functions read configurations and a few rows, and load no weights.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from datasets import ClassLabel, IterableDataset, LargeList, List, Value

from hfcf.core.columns import why_repeated
from hfcf.core.model_checks import NoFolder, NotCached, can_configure, check_weights
from hfcf.core.paths import cache_dir
from hfcf.core.settings import Judges, Trains, models_in, settings_of
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import Task, get_task

log = logging.getLogger(__name__)

LEAST_DISK = 200_000_000  # bytes
SAMPLE = 20  # rows of a stream whose labels are looked at
HEAD = 1000  # rows of a stream whose language is looked at
CURE = "hfcf.from_dataset(ds, columns={…}, labels={…}) makes such rows of yours; in a recipe, the keys columns and labels do"


def check_system(system: Any, folders: Iterable[str | Path] = ()) -> None:
    """Raise for everything that would stop a system after its start, for any rows."""
    check_disk(folders)
    check_models(system)


def check_rows(system: Any, ds: Any) -> None:
    """Raise for rows that would stop a system after its start, or that it would all reject."""
    check_columns(system.stages, ds)
    check_ids(ds)
    check_labels(get_task(system.task), ds)
    check_verdicts(system, ds)


def warn_of_language(task: Task, ds: Any) -> None:
    """Log how many rows are plainly not in English; the models, prompts and word lists of all presets are for English."""
    rows = ds.take(HEAD) if isinstance(ds, IterableDataset) else ds
    read = {
        row["id"]: looks_foreign(" ".join(segment.text for segment in task.segments(row)))  # of bad rows too, which stages reject
        for row in rows.select_columns(["id", *task.columns])
    }
    if foreign := [name for name, found in read.items() if found]:
        log.warning(
            "%d of %s%d rows are not in English, such as %r. The models, prompts and word lists of all presets are for "
            "English: remove these rows, or check all counterfactuals that are made of them",
            len(foreign), "the first " * (rows is not ds), len(read), foreign[0],
        )  # fmt: skip


def check_disk(folders: Iterable[str | Path] = ()) -> None:
    """Raise when a run can't write to its folder, or when the disk of the folder or of a cache is almost full."""
    from datasets import config

    for folder in (*folders, cache_dir(), config.HF_DATASETS_CACHE):
        path = Path(folder).expanduser().absolute()
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        if not existing.is_dir():
            raise ValueError(f"{existing} is a file, and the run writes a folder there: choose another")
        if not os.access(existing, os.W_OK):
            raise ValueError(f"{existing} may not be written to: choose another folder, or change who may write there")
        if (free := shutil.disk_usage(existing).free) < LEAST_DISK:
            raise ValueError(
                f"{path} must have {LEAST_DISK / 1e6:.0f} MB of free disk for a run, got {free / 1e6:.0f} MB. Free space, or set "
                "HFCF_CACHE and HF_DATASETS_CACHE to folders on another disk"
            )


def _other_preset(system: Any) -> str:
    """Name the preset whose models are installable packages, if the system has it."""
    return ", or choose preset='offline' (--set preset=offline), whose models are there" if "offline" in system.presets else ""


def check_models(system: Any) -> None:
    """Raise for a model of a system that does not exist, or that reads fewer tokens than a stage passes to it."""
    try:
        check_trained(system)
        _check_stages(system)
    except NotCached as error:
        raise NotCached(f"{error}{_other_preset(system)}") from error


def _check_stages(system: Any) -> None:
    task = get_task(system.task)
    for stage in system.stages:
        stage.check_available()
        for name, setting in settings_of(type(stage)).items():
            value, where = getattr(stage, name), f"{stage.name}: {name}"
            if hasattr(value, "check_available"):  # settings of engines say themselves what they need, such as a package
                value.check_available(where)
            mark = setting.marker(Trains)
            if mark and stage.fitted is None and getattr(stage, mark.instead) is None and stage.fit_inputs:
                check_weights(value.model, f"{where}: model")
            for label, model in models_in({name: value}):
                check_weights(model, f"{stage.name}: {label}")
                if setting.marker(Judges) and can_configure(model):
                    task.check_model(model, getattr(stage, "max_length", None))


def check_trained(system: Any) -> None:
    """Raise for the user's own models that do not exist yet, with the commands that train them."""
    missing: dict[str, str] = {}
    for name, setting in system.schema.items():
        if not (recipe := system.recipe_of(setting)):
            continue
        for _, model in models_in({name: getattr(system, name)}):
            try:
                check_weights(model, name)
            except NoFolder:
                missing[model.name] = f"  hfcf train {recipe} --out {model.name} --set data_dir=FOLDER"
    if missing:
        raise ValueError(
            f"{system.name} needs models that are trained first, and there is no folder {', '.join(missing)}. Train them:\n"
            + "\n".join(missing.values())
            + f"\nor name other models in the settings{_other_preset(system)}"
        )


def check_columns(stages: Iterable[Stage], ds: Any) -> None:
    """Raise unless each column that a stage reads is in the rows or is filled by a stage."""
    columns, readers, declared = dict(ds.features), dict[str, str](), dict[str, Any]()
    stages = list(stages)
    filled = {column for stage in stages for column in stage.outputs}
    for stage in stages:
        for column, feature in {"id": Value("string"), **stage.inputs}.items():
            if column not in filled:
                readers.setdefault(column, stage.name)
                declared.setdefault(column, feature)
    if missing := [column for column in declared if column not in columns]:
        raise StageError(
            f"the rows lack the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}, which {readers[missing[0]]} and "
            f"later stages read; there are {', '.join(columns)}. hfcf.load(…) makes rows that have them; {CURE}"
        )
    for column, feature in declared.items():
        if why := _mismatch(columns[column], feature):
            raise StageError(f"the column {column!r} {why}, as {readers[column]} reads it; {CURE}")


def check_ids(ds: Any) -> None:
    """Raise for rows without an id, or with another row's: a counterfactual names its original by it. Not for a stream."""
    if isinstance(ds, IterableDataset) or not len(ds):
        return
    ids = ds.select_columns(["id"]).with_format("arrow")[:]["id"]
    if ids.null_count:
        place = pc.index(pc.is_null(ids), True).as_py()
        raise StageError(f"row {place} has no id ({ids.null_count} such rows). Counterfactuals name it by its id: fill 'id'")
    if why := why_repeated(ds):
        raise StageError(f"{why}; counterfactuals name their original by its id")


def check_labels(task: Task, ds: Any) -> None:
    """Raise when no row, or no row at the beginning of a stream, has a label of the task: all rows would be rejected."""
    if not task.labelled or task.labels is None or "label" not in (ds.features or {}):
        return
    columns = [column for column in ("label", "status") if column in ds.features]
    rows = islice(ds.select_columns(columns), SAMPLE) if isinstance(ds, IterableDataset) else ds.select_columns(columns)
    # Rows that could not be read were rejected when they were loaded.
    present = set()
    for row in rows:
        if row["label"] in task.labels:
            return
        if not row.get("status") or row["status"]["accepted"] is not False:
            present.add(row["label"])
    if found := sorted(map(repr, present - {None})):
        raise StageError(
            f"no row has a label of {task.name} ({', '.join(task.labels)}); the labels here are {', '.join(found[:10])}. Say "
            f"what they mean: hfcf.from_dataset(ds, labels={{{found[0]}: {task.labels[0]!r}, …}}); in a recipe, the key labels"
        )


def check_verdicts(system: Any, ds: Any) -> None:
    """Raise for a language model that judges a task with open labels but lacks one of the labels in the rows."""
    task = get_task(system.task)
    judges = [
        model
        for stage in system.stages
        for name, setting in settings_of(type(stage)).items()
        if setting.marker(Judges)
        for _, model in models_in({name: getattr(stage, name)})
    ]
    if not judges or task.labels is not None or "label" not in (ds.features or {}):
        return
    rows = ds.select_columns(["label"])
    labels = {row["label"] for row in (islice(rows, SAMPLE) if isinstance(ds, IterableDataset) else rows) if row["label"]}
    for model in judges:
        task.check_verdicts(model, labels)


def _mismatch(feature: Any, declared: Any) -> str | None:
    """Say how a column's feature differs from a declared one in kind, or None; additional keys are allowed."""
    if isinstance(feature, Value) and feature.dtype == "null":
        return None
    if isinstance(declared, Mapping):
        if not isinstance(feature, Mapping):
            return f"holds {_kind(feature)}, not {_kind(declared)}"
        if missing := [key for key in declared if key not in feature]:
            return f"holds {_kind(feature)} without {missing[0]!r}"
        return next(filter(None, (_mismatch(feature[key], declared[key]) for key in declared)), None)
    if isinstance(declared, List):
        if not isinstance(feature, List | LargeList):
            return f"holds {_kind(feature)}, not {_kind(declared)}"
        return f"holds {_kind(feature)}, not {_kind(declared)}" if _mismatch(feature.feature, declared.feature) else None
    if isinstance(feature, ClassLabel) or not isinstance(feature, Value) or _family(feature.dtype) != _family(declared.dtype):
        return f"holds {_kind(feature)}, not {_kind(declared)}"
    return None


def _family(dtype: str) -> str:
    return next((name for name in ("string", "int", "float", "bool") if name in dtype), dtype)


def _kind(feature: Any) -> str:
    if isinstance(feature, ClassLabel):
        return f"classes ({', '.join(feature.names)})"
    if isinstance(feature, Mapping):
        return f"{{{', '.join(feature)}}}"
    if isinstance(feature, List | LargeList):
        return f"a list of {_kind(feature.feature)}"
    return str(getattr(feature, "dtype", feature))


# --- texts that are not English

_WORD = re.compile(r"[^\W\d_]+")
_LONGEST = 2000
_CLEAR = 0.2
"""With this share of English function words or more, no other language is looked up."""
_FEWEST = 2
"""A single word of another language may be part of a name: "Robert De Niro"."""
_MANY = 12
"""This many English words contain a function word. A text of this length without any is in a language that has no list here."""


def looks_foreign(text: str) -> bool:
    """Return whether a text is plainly not English; a text without common words of any language counts as English.

    >>> looks_foreign("Rom ist die Hauptstadt von Italien."), looks_foreign("Рим стоит на Тибре.")
    (True, True)
    >>> looks_foreign("Robert De Niro acts.")
    False
    """
    words = _WORD.findall(text[:_LONGEST].lower())
    letters = "".join(words)
    if sum(letter > "\u024f" for letter in letters) * 2 > len(letters):
        return True
    english, others = _function_words()
    hits = sum(word in english for word in words)
    if hits > _CLEAR * len(words):
        return False
    most = max(len(common.intersection(words)) for common in others.values())
    return (most >= _FEWEST and most > hits) or (not hits and len(words) >= _MANY)


@lru_cache(maxsize=1)
def _function_words() -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
    """Return the function words of English, and the lists of other languages without the words that English also has."""
    from bm25s import stopwords

    english = frozenset(stopwords.STOPWORDS_EN_PLUS)
    names = [name for name in vars(stopwords) if name.startswith("STOPWORDS_") and not name.startswith("STOPWORDS_EN")]
    return english, {name: frozenset(getattr(stopwords, name)) - english for name in names}
