"""Dataset verbs around a system: a small sample before it; afterwards, one row for each counterfactual or rejection."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, Value, concatenate_datasets

from hfcf.core import schema
from hfcf.core.columns import add_null_columns, has_repeats, iterate, without_format
from hfcf.core.names import number_repeats
from hfcf.core.prepare import AnyDataset
from hfcf.core.progress import quiet_few
from hfcf.core.system import System
from hfcf.core.task import Task, find_problem, get_task, nearest_task, task_of

BATCH = 100
"""The number of rows that `rejected` reads at once: a source is repeated for each of its candidates."""


def expand(ds: AnyDataset) -> AnyDataset:
    """Make one row of the task's columns, with provenance, for each counterfactual.

    Args:
        ds: rows on which a system ran; several splits, or a stream, return the same kind.

    Returns:
        The rows of the `counterfactuals` lists, in order; the other columns of `ds` are dropped. If a verification system ran on
        rows with structures, each row also has the remaining columns of its source (`Task.complete`).

    Raises:
        ValueError: no system ran on the rows.

    >>> expand(Dataset.from_dict({"id": ["1"]}))
    Traceback (most recent call last):
    ValueError: there is no column 'counterfactuals': run a system first, ds = system(ds)
    """
    if isinstance(ds, DatasetDict | IterableDatasetDict):
        return type(ds)({split: expand(part) for split, part in ds.items()})
    if isinstance(ds, IterableDataset) and ds.features is None:
        raise ValueError("the stream's features are unknown: pass features= to the map that comes before")
    if "counterfactuals" not in (ds.features or ()):
        raise ValueError("there is no column 'counterfactuals': run a system first, ds = system(ds)")
    ds = without_format(ds)
    features = Features(ds.features["counterfactuals"].feature)
    task = nearest_task(frozenset(ds.features))
    completing = task is not None and task.extends == task_of(features).name
    if isinstance(ds, IterableDataset):
        if completing:
            raise ValueError(
                "counterfactuals of rows with structures need their sources, which a stream does not keep: expand a Dataset"
            )
        return ds.select_columns(["counterfactuals"]).map(
            _flatten_rows, batched=True, remove_columns=["counterfactuals"], features=features, fn_kwargs={"names": list(features)}
        )
    if task and completing:
        return _complete(ds, task)
    return _map(ds.select_columns(["counterfactuals"]).with_format("arrow"), flatten, features)


def _map(ds: Dataset, function: Callable[..., Any], features: Features, *, cached: bool = True, **kwargs: Any) -> Dataset:
    """Map rows to their counterfactuals, and return the counterfactuals without a format."""
    if not len(ds):
        return schema.no_rows(features)
    with quiet_few(len(ds)):
        rows = ds.map(
            function, batched=True, remove_columns=ds.column_names, features=features, fn_kwargs=kwargs, desc="expand",
            load_from_cache_file=cached,
        )  # fmt: skip
    return rows.with_format(None)


def _refuse_stream(ds: object) -> None:
    if isinstance(ds, IterableDatasetDict):
        raise ValueError("ds holds streams: read the rows of each stream first, ds = Dataset.from_list(list(ds[split]))")
    if isinstance(ds, IterableDataset):
        raise ValueError("this is a stream: read its rows first, ds = Dataset.from_list(list(ds), features=ds.features)")


def _complete(ds: Dataset, task: Task) -> Dataset:
    """Complete counterfactuals from a system for the simpler task that `task` extends."""
    source_columns = ["id", *task.columns]
    columns = ds.select_columns([*source_columns, "counterfactuals"])
    # The arguments hold only the task's name, so its code is not in the map cache's key.
    return _map(columns, _complete_batch, task.counterfactual, cached=False, name=task.name, source_columns=source_columns)


def _complete_batch(batch: Mapping[str, list[Any]], name: str, source_columns: Sequence[str]) -> dict[str, list[Any]]:
    task = get_task(name)
    sources = (
        dict(zip(source_columns, row, strict=True)) for row in zip(*(batch[column] for column in source_columns), strict=True)
    )
    pairs = zip(sources, batch["counterfactuals"], strict=True)
    rows = [task.complete(source, row) for source, counterfactuals in pairs for row in counterfactuals or ()]
    return {column: [row.get(column) for row in rows] for column in task.counterfactual}


def flatten(batch: pa.Table) -> pa.Table:
    """Return the counterfactuals of a table as its rows."""
    # Arrow in and out: five times as fast as through Python.
    structs = batch["counterfactuals"].combine_chunks().flatten()
    return pa.Table.from_arrays(structs.flatten(), schema=pa.schema(list(structs.type)))


def _flatten_rows(batch: Mapping[str, list[Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    rows = [row for several in batch["counterfactuals"] for row in several or ()]
    return {name: [row[name] for row in rows] for name in names}


def augmented(ds: AnyDataset) -> AnyDataset:
    """Join the originals and the counterfactuals, in the task's own columns: the rows to train a model on.

    Columns of further right answers (`aliases`) stay with the originals; a counterfactual has none.
    """
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: augmented(part) for split, part in ds.items()})
    _refuse_stream(ds)
    ds = without_format(ds)
    added = expand(ds)
    task = task_of(added.features)
    further: dict[str, Any] = {name: ds.features[name] for name in task.answer_columns if name in ds.features}
    columns: Features = Features(task.features | further)
    if not len(added):
        return schema.no_rows(columns)
    added = add_null_columns(added, further)
    rows = ds.select_columns(list(columns))
    sound = array("q", (i for i, row in enumerate(iterate(ds, [*columns, "status"])) if is_sound(row)))
    joined = concatenate_datasets([part.cast(columns) for part in (rows.select(sound), added.select_columns(list(columns)))])
    if not has_repeats(joined, "id"):
        return joined
    unique = number_repeats(joined["id"])
    return joined.remove_columns("id").add_column("id", unique, feature=columns["id"]).select_columns(list(columns))


def balance(ds: Dataset, *, seed: int = 13) -> Dataset:
    """Draw as many rows of each label as the rarest label has. A label can then not be guessed from how often it occurs.

    Args:
        ds: rows with `label`, such as `expand(ds)`; rows without a label are left out.
        seed: of the draw.

    Returns:
        The drawn rows in their order.

    Raises:
        ValueError: the rows have no column `label`.

    >>> rows = Dataset.from_dict({"id": ["1", "2", "3"], "label": ["REFUTES", "SUPPORTS", "REFUTES"]})
    >>> balance(rows)["label"]
    Column(['REFUTES', 'SUPPORTS'])
    """
    if "label" not in (ds.features or ()):
        raise ValueError(f"there is no column 'label': the rows have {', '.join(ds.column_names or [])}")
    _refuse_stream(ds)
    places: dict[Any, list[int]] = {}
    for i, label in enumerate(without_format(ds)["label"]):
        if label is not None:
            places.setdefault(label, []).append(i)
    fewest = min(map(len, places.values()), default=0)
    drawn = [random.Random(f"{seed}:balance:{label}").sample(rows, fewest) for label, rows in places.items()]
    return ds.select(sorted(i for rows in drawn for i in rows))


def is_sound(row: Mapping[str, Any]) -> bool:
    """Say whether `augmented` keeps a source: it could be read, and it can be worked on."""
    return schema.why_unread(row["status"]) is None and find_problem({k: v for k, v in row.items() if k != "status"}) is None


def rejected(ds: AnyDataset, *, system: str | None = None) -> AnyDataset:
    """List each rejected source and each rejected candidate as a row, with the stage and the reason.

    A source is rejected (`level` "row") exactly when none of its candidates is accepted. Its rejected candidates have rows of their
    own (`level` "candidate") in either case. `source` is a struct of the source's canonical columns. `candidate` is a struct of the
    candidate without its verdict, and null where the level is "row". Several splits give several splits.

    Args:
        ds: rows on which a system ran, or some of its stages.
        system: the system's name. None reads it from the counterfactuals. If there are none, it is the only system that has every
            stage that decided and whose columns the rows have. The column `system` is null if no system or several systems fit.

    Raises:
        ValueError: no stage ran on the rows, or they are a stream.

    >>> status = {"accepted": False, "stage": "explain", "reason": "too long"}
    >>> rejected(Dataset.from_list([{"id": "1", "group_id": "1", "status": status}]))["reason"]
    Column(['too long'])
    """
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: rejected(part, system=system) for split, part in ds.items()})
    _refuse_stream(ds)
    ds = without_format(ds)
    features: Features = rejected_features(ds.features)
    if not len(ds):
        return schema.no_rows(features)
    if "status" not in ds.features:
        raise ValueError("there is no column 'status': run a system first, ds = system(ds)")
    system = system or _find_system(ds)
    columns: list[str] = [*features["source"], *(column for column in ("candidates", "status") if column in ds.features)]
    with quiet_few(len(ds)):
        rows = ds.select_columns(columns).with_format("arrow").map(
            rejections, batched=True, batch_size=BATCH, remove_columns=columns, features=features, desc="rejected",
            fn_kwargs={"features": features, "system": system},
        )  # fmt: skip
    return rows.with_format(None)


def _find_system(ds: Dataset) -> str | None:
    """Find the name of the system that worked on `ds`; None where it can't be found."""
    stages = set[str]()
    columns = [column for column in ("candidates", "counterfactuals", "status") if column in ds.features]
    for row in iterate(ds, columns):
        if made := row.get("counterfactuals"):
            return str(made[0]["system"])
        statuses = [row["status"], *(candidate["status"] for candidate in row.get("candidates") or ())]
        stages.update(status["stage"] for status in statuses if status)
    # Rows without a counterfactual come from this process, else they would be read with `load_result`.
    stages -= {schema.LOAD}
    fitting = [cls for cls in System.__subclasses__() if stages and stages <= set(cls.parts)]
    if len(fitting) > 1:  # several share the stage: the rows have the columns of the system that ran
        filled = {cls: _outputs(cls) for cls in fitting if _outputs(cls) <= set(ds.features)}
        fitting = [cls for cls, columns in filled.items() if all(columns >= other for other in filled.values())]
    return fitting[0].name if len(fitting) == 1 else None


def _outputs(cls: type[System]) -> set[str]:
    """Return the columns that the stages of a system fill, without the columns that depend on settings."""
    outputs = (part.stage.outputs for part in cls.parts.values())
    return {column for columns in outputs if isinstance(columns, Mapping) for column in columns}


def rejected_features(features: Features) -> Features:
    """Return the columns of `rejected` for rows with these features."""
    task = nearest_task(frozenset(features))
    declared = task.features if task else Features({"id": schema.TEXT, **schema.COMMON})
    # A column that is null in every row has no type of its own.
    source = {
        name: kind if features[name] == Value("null") else features[name] for name, kind in declared.items() if name in features
    }
    made = getattr(features.get("candidates"), "feature", None)
    if not isinstance(made, dict):
        made = task.candidate_features if task else {"change": schema.TEXT, "edits": schema.EDITS, "scores": schema.SCORES}
    candidate = {name: kind for name, kind in made.items() if name != "status"}
    return Features({**schema.REJECTED, "source": source, "candidate": candidate})


def rejections(table: pa.Table, features: Features, system: str | None) -> pa.Table:
    """Return the rows of `rejected` that a table of rows has; `features` are theirs."""
    table, kinds = table.combine_chunks(), features.arrow_schema
    found: list[tuple[int, int | None, Any]] = [(i, None, status) for i, status in enumerate(table["status"].to_pylist())]
    lists = table["candidates"].combine_chunks() if "candidates" in table.column_names else None
    made = pa.nulls(0, kinds.field("candidate").type)
    if lists is not None and pa.types.is_list(lists.type) and pa.types.is_struct(lists.type.value_type):
        made, parents = pc.list_flatten(lists), pc.list_parent_indices(lists).to_pylist()
        found += zip(parents, range(len(made)), pc.struct_field(made, "status").to_pylist(), strict=True)
    lost = [entry for entry in sorted(found, key=itemgetter(0)) if entry[2] and entry[2]["accepted"] is False]
    rows = table.select(list(features["source"])).take(pa.array([i for i, _, _ in lost], pa.int64()))
    values: dict[str, Any] = {
        "source_id": rows["id"], "group_id": rows["group_id"], "system": [system] * len(lost),
        "level": ["row" if number is None else "candidate" for _, number, _ in lost],
        "stage": [status["stage"] for _, _, status in lost], "reason": [status["reason"] for _, _, status in lost],
        "source": _struct(kinds.field("source").type, {name: rows[name].combine_chunks() for name in rows.column_names}),
        "candidate": _candidates(made.take(pa.array([number for _, number, _ in lost], pa.int64())), kinds.field("candidate").type),
    }  # fmt: skip
    return pa.table(values, schema=kinds)


def _candidates(made: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return candidates without the fields that `kind` does not have."""
    return _struct(kind, {field.name: pc.struct_field(made, field.name) for field in kind}, made.is_null())


def _struct(kind: pa.StructType, columns: Mapping[str, pa.Array], nulls: pa.Array | None = None) -> pa.StructArray:
    return pa.StructArray.from_arrays([columns[field.name].cast(field.type) for field in kind], fields=list(kind), mask=nulls)


def balanced_sample(ds: Dataset, n: int, seed: int, shares: Mapping[str, float] | None = None) -> Dataset:
    """Draw a sample, class-balanced or at the shares of labels that are given, for low-resource comparisons.

    The sample depends only on the row ids and the seed, not on their order. A larger sample with the same seed contains the
    smaller sample. If `n` is not a multiple of the number of labels, the alphabetically first labels get an extra row. A row whose
    label is null is left out; rows without a column of labels give a plain sample.

    Args:
        ds: the rows.
        n: how many of them.
        seed: of the draw.
        shares: how many rows of each label, relative to each other, such as {"SUPPORTS": 2.7, "REFUTES": 1}; None: as many of each.

    Raises:
        ValueError: there are too few rows of a label, or `shares` names a label that no row has.

    Source: Lee et al. 2021, CrossAug, section 3.6; the paper draws each size independently.
    """
    _refuse_stream(ds)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    ds = without_format(ds)
    ids, labels = list(ds["id"]), list(ds["label"]) if "label" in ds.features else [""] * len(ds)
    available = dict(sorted(Counter(label for label in labels if label is not None).items()))
    if unknown := set(shares or ()) - set(available):
        raise ValueError(f"shares: {', '.join(sorted(unknown))}: no row has this label; the labels are {', '.join(available)}")
    weights = dict.fromkeys(available, 1.0) if shares is None else {label: shares.get(label, 0.0) for label in available}
    quota = dict.fromkeys(available, 0)
    for _ in range(n if available else 0):  # the next row goes to the label that lacks most: so a larger sample holds a smaller one
        quota[max(available, key=lambda label: weights[label] / (quota[label] + 1))] += 1
    if not available or any(quota[label] > available[label] for label in available):
        if "label" not in ds.features:
            raise ValueError(f"n must be at most {len(ds):,}, the number of rows, got {n:,}")
        counts = ", ".join(f"{rows:,} {label}" for label, rows in available.items()) or "no rows"
        needs = ", ".join(f"{rows:,} {label}" for label, rows in quota.items()) or f"{n:,}"
        raise ValueError(f"a sample of {n:,} rows needs {needs}; there are {counts}")
    ranks, chosen = [hashlib.sha256(f"{seed}:{row_id}".encode()).digest() for row_id in ids], []
    for i in sorted(range(len(ds)), key=ranks.__getitem__):
        if labels[i] is not None and quota[labels[i]]:
            quota[labels[i]] -= 1
            chosen.append(i)
    return ds.select(sorted(chosen))
