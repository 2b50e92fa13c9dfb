"""Which rows of a comparison the models of its methods were trained on: what is left out for it, and the table of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from datasets import Dataset

from hfcf.core.contamination import knows_parts, load_seen, mark_rows
from hfcf.core.model import Model, named
from hfcf.core.settings import Trains, settings_of
from hfcf.core.system import System
from hfcf.studies.compare import tables
from hfcf.studies.compare.methods import Method

START = "each model's start"
"""Who uses the weights that the compared models start from."""
UNKNOWN = "not known"


@dataclass(frozen=True, eq=False)
class MethodModel:
    """A model that methods use, and what it was trained on.

    Args:
        name: in tables.
        users: the methods, or `START`.
        seen: hashes of what it was trained on (`hfcf.core.contamination`); None where that is not known.
        leaves_out: whether rows that it has seen are left out; else they are counted alone.
    """

    name: str
    users: tuple[str, ...]
    seen: frozenset[int] | None
    leaves_out: bool = True


@dataclass(frozen=True)
class Overlap:
    """How many rows of one set the models have seen.

    Args:
        name: of the set.
        available: rows before any is left out.
        removed: the rows that were left out because a model has seen them.
        used: the rows that are evaluated, or trained on.
        counts: by model, how many rows it has seen of all rows and of the rows that are used; None: not known.
    """

    name: str
    available: int
    removed: int
    used: int
    counts: Mapping[str, tuple[int, int] | None]


def list_models(methods: Iterable[Method], *starts: Model) -> list[MethodModel]:
    """List every model that methods use once, in their order, and the weights that the compared models start from."""
    users: dict[Model, list[str]] = {}
    strict: set[Model] = set()
    pairs = [(START, True, start) for start in starts]
    pairs += [(method.name, method.unseen, model) for method in methods if method.system for model in models_of(method.system)]
    for user, unseen, model in pairs:
        key = Model(model.name, model.revision, model.adapter)  # how it is read changes nothing of what it has seen
        users.setdefault(key, []).append(user)
        strict |= {key} if unseen else set()
    return [
        MethodModel(named(model), tuple(dict.fromkeys(names)), load_seen(model), model in strict) for model, names in users.items()
    ]


def models_of(system: System) -> list[Model]:
    """List the models that a system's stages ask, and the models that its own trainings start from; not models it does not read."""
    parts: list[Any] = []
    for stage in system.stages:
        for name, setting in settings_of(type(stage)).items():
            mark = setting.marker(Trains)
            if mark is None or getattr(stage, mark.instead) is None:  # else nothing is trained
                parts.append(getattr(stage, name))
    return list(dict.fromkeys(_models(parts)))


def _models(value: Any) -> Iterator[Model]:
    """Find the models in a setting, also the models of an engine, a training or a list."""
    if isinstance(value, Model):
        yield value
        return
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    for part in value if isinstance(value, list | tuple) else ():
        yield from _models(part)


def mark_seen(rows: Dataset, models: Sequence[MethodModel]) -> dict[str, list[bool]]:
    """Say by model and row whether it was trained on the row's group, a text or most of a passage. Either side of a pair counts."""
    known = [(model.name, model.seen) for model in models if model.seen is not None]
    if not known:
        return {}
    return dict(zip([name for name, _ in known], mark_rows(rows, [seen for _, seen in known]), strict=True))


def unseen_rows(marks: Mapping[str, Sequence[bool]], models: Sequence[MethodModel], rows: int) -> list[int]:
    """List the rows that are not seen by a model whose seen rows are left out."""
    strict = [marks[model.name] for model in models if model.leaves_out and model.name in marks]
    return [i for i in range(rows) if not any(mark[i] for mark in strict)]


def count_overlap(
    name: str,
    marks: Mapping[str, Sequence[bool]],
    models: Sequence[MethodModel],
    available: int,
    used: Sequence[int],
    removed: int = 0,
) -> Overlap:
    """Count the rows of a set that each model has seen."""
    counts = {
        model.name: (sum(marks[model.name]), sum(marks[model.name][i] for i in used)) if model.name in marks else None
        for model in models
    }
    return Overlap(name, available, removed, len(used), counts)


def overlap_table(overlaps: Sequence[Overlap], models: Sequence[MethodModel], *, passages: bool = False) -> str:
    """Return the seen rows by model: a column for each model whose training rows are known, other models by name.

    With `passages`, rows are also compared by parts of their passages, and models whose parts are not known are named.
    """
    if not models:
        return "No method uses a model."
    known = [model for model in models if model.seen is not None]
    unknown = [model for model in models if model.seen is None]
    lines: dict[tuple[str, ...], list[str]] = {}  # columns of a comparison may share their rows
    for overlap in overlaps:
        counts = [overlap.counts.get(model.name) for model in known]
        texts = [UNKNOWN if count is None else f"{count[0]:,} → {count[1]:,}" for count in counts]
        lines.setdefault((f"{overlap.available:,}", f"{overlap.removed:,}", f"{overlap.used:,}", *texts), []).append(overlap.name)
    notes = [f"{model.name}: {_users(model)}." for model in known]
    if unknown:
        names = ", ".join(f"{model.name} ({_users(model)})" for model in unknown)
        alike = "they are" if len(unknown) > 1 else "it is"
        were = "were" if len(unknown) > 1 else "was"
        notes.append(f"Not known what {names} {were} trained on: {alike} not counted, which is not the same as 0.")
    if passages and (whole := [model.name for model in known if model.seen is not None and not knows_parts(model.seen)]):
        notes.append(f"Compared by whole texts alone, since nothing is known of parts of their passages: {', '.join(whole)}.")
    if not known:
        return tables.bullets(notes)
    about = (
        "Rows that a model was trained on, or whose group or a text it was trained on: how many of all rows → how many "
        "of those that are used."
    )
    header = ["Rows", "Available", "Left out as seen", "Used", *(model.name for model in known)]
    table = tables.table(header, [[", ".join(names), *texts] for texts, names in lines.items()])
    return f"{about}\n\n{table}\n\n{tables.bullets(notes)}"


def _users(model: MethodModel) -> str:
    counted = "" if model.leaves_out or model.seen is None else "; its rows are counted and not left out"
    return ", ".join(model.users) + counted
