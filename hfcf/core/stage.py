"""The contract of every stage.

A stage is a frozen dataclass of settings that `Dataset.map` calls. It declares the columns it reads and the columns it
fills, implements `row` or `batch`, and holds nothing that settings do not determine: no model, counter or open file. So
it pickles in microseconds, hashes the same in every process, and gives equal rows however it is mapped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from datasets import Value

from hfcf.core import progress, schema
from hfcf.core.names import check_settings
from hfcf.core.task import problem
from hfcf.core.workers import bind_workers


class StageError(ValueError):
    """A call that can't work: a missing column, an unfitted stage, or (with `strict=True`) a bad row."""


class Reject(Exception):
    """Raised by `Stage.row`, or returned in a row's place by `Stage.batch`: this row goes no further.

    Args:
        reason: why, in words for a person.
        outputs: what the stage still fills on that row (a rejected candidate, say).
    """

    def __init__(self, reason: str, **outputs: Any) -> None:
        super().__init__(reason)
        self.reason, self.outputs = reason, outputs


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One transform over rows; see the module's docstring.

    Args:
        seed: enters every random draw, together with the stage's name and the row's id.
        strict: raise on a bad row, naming it, where the default rejects it with the reason.
    """

    VERSION: ClassVar[str] = "1"
    """Raise it when the same settings give other rows: it is part of the key of every cache."""
    inputs: ClassVar[Mapping[str, Any]]
    """Columns that the stage reads (column → feature)."""
    outputs: ClassVar[Mapping[str, Any]]
    """Columns that it fills, besides `status`."""
    optional: ClassVar[Mapping[str, Any]] = {}
    """Columns that it reads from rows that have them; they are None on others."""
    produced_by: ClassVar[Mapping[str, str]] = {}
    """Which call fills an input that is not a column of the corpus."""
    batch_size: ClassVar[int] = 256
    """How many rows `System` hands it at once: an engine sorts them by length, so more rows mean less padding."""

    seed: int = 13
    strict: bool = False

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        check_settings(cls, settings)
        return super().__new__(cls)

    @property
    def name(self) -> str:
        """Name the stage in columns, reports and seeds: the class's name in snake case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def columns(self) -> dict[str, Any]:
        """Return every column that the stage writes."""
        return {**self.outputs, "status": schema.STATUS}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Fill one row; raise `Reject` on a bad one. Implement this or `batch`."""
        raise NotImplementedError(f"{type(self).__name__} implements neither row nor batch")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        """Fill many rows at once, a `Reject` in the place of a bad one."""
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            try:
                results.append(self.row(row))
            except Reject as rejection:
                results.append(rejection)
        return results

    def check_fitted(self) -> None:
        """Raise `StageError` when the stage needs something fitted to the whole set that it does not have."""

    def check_available(self) -> None:
        """Raise when something that the stage reads, which no model of its settings says, is not installed."""

    def random(self, row_id: str) -> random.Random:
        """Return the row's own random generator: the same draws in any order, batch or shard."""
        return random.Random(f"{self.seed}:{self.name}:{row_id}")

    def __call__(self, rows: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        """Fill one row or, if every value is a list, a batch: this is what `map` calls. `rank` and the like are ignored."""
        self.check_fitted()
        if "id" not in rows:
            raise StageError(f"{self.name}: there is no column 'id'; hfcf.load(…) makes rows with one")
        batched = not isinstance(rows["id"], str)
        inputs, outputs = self.inputs, self.columns()  # once: some stages make them from their task's
        columns = self._read(rows, batched, inputs, outputs)
        ids = columns["id"]
        values = [{name: columns[name][i] for name in columns} for i in range(len(ids))]
        todo = [i for i, row in enumerate(values) if not (row["status"] and row["status"]["accepted"] is False)]
        results: dict[int, dict[str, Any] | Reject] = {}
        sound = []
        for i in todo:
            row = {name: values[i].get(name) for name in ("id", *inputs, *self.optional)}
            if why := problem(row):
                results[i] = Reject(why)
            else:
                self._check_filled(row, inputs)
                sound.append((i, row))
        with progress.row_batch(len(values)):
            answers = self.batch([row for _, row in sound]) if sound else []
        if len(answers) != len(sound):
            raise StageError(f"{self.name}: {len(sound)} rows went in and {len(answers)} came out")
        results.update((i, answer) for (i, _), answer in zip(sound, answers, strict=True))
        written = [self._write(values[i], results.get(i), outputs) for i in range(len(values))]
        if not batched:
            return written[0]
        return {column: [row[column] for row in written] for column in outputs}

    def _read(
        self, rows: Mapping[str, Any], batched: bool, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        """Read the declared inputs, and the present values of the outputs, as lists."""
        names = dict.fromkeys(["id", *inputs, *(name for name in self.optional if name in rows), *outputs])
        for column in names:
            if column in rows:
                continue
            if column in inputs:
                filler = self.produced_by.get(column)
                cure = f"{filler} fills it: map that stage first" if filler else "hfcf.load(…) makes rows that have it"
                raise StageError(f"{self.name} reads the column {column!r}, which is missing; {cure}")
            raise StageError(
                f"{self.name} fills the column {column!r}, which is not there; run ds = hfcf.prepare(ds, for_=…) first"
            )
        return {column: list(_plain(rows[column])) if batched else [_plain(rows[column])] for column in names}

    def _check_filled(self, row: dict[str, Any], inputs: Mapping[str, Any]) -> None:
        for column in inputs:
            if row[column] is None and column in self.produced_by:
                raise StageError(
                    f"{self.name} reads the column {column!r}, which is null on the undecided row {row['id']!r}; "
                    f"{self.produced_by[column]} fills it: map that stage first"
                )

    def _write(self, row: dict[str, Any], result: dict[str, Any] | Reject | None, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Cast the row's output columns to their declared features."""
        old = {column: row[column] for column in columns}
        if result is None:
            return old
        if isinstance(result, Reject):
            if self.strict:
                raise StageError(f"{self.name}: row {row['id']!r}: {result.reason}")
            status = {"accepted": False, "stage": self.name, "reason": result.reason}
            result = {**result.outputs, "status": status}
        for column in result:
            if column not in columns:
                raise StageError(f"{self.name} returned the undeclared column {column!r} for row {row['id']!r}")
        return {**old, **{column: cast(value, columns[column], f"{self.name}: {column}") for column, value in result.items()}}

    def __getstate__(self) -> dict[str, Any]:
        """Return settings and version: what `Dataset.map` hashes and what workers receive."""
        bind_workers()
        return {"VERSION": self.VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name != "VERSION":
                object.__setattr__(self, name, value)


def _plain(value: Any) -> Any:
    """Turn what Ray and NumPy-formatted datasets pass into Python lists and scalars."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def cast(value: Any, feature: Any, where: str) -> Any:
    """Cast a value to the form that a feature declares: every key of a struct present, none that is not declared.

    >>> cast({"accepted": True}, schema.STATUS, "status")
    {'accepted': True, 'stage': None, 'reason': None}
    """
    if value is None:
        return None
    if isinstance(feature, dict):
        if extra := set(value) - set(feature):
            raise StageError(f"{where} has the undeclared keys {sorted(extra)}")
        return {key: cast(value.get(key), feature[key], f"{where}.{key}") for key in feature}
    if isinstance(feature, Value):
        kind = {"string": str, "bool": bool, "int64": int, "float64": float}[feature.dtype]
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise StageError(f"{where} is declared {feature.dtype} and got {value!r}")
        return value
    if not isinstance(value, list | tuple):
        raise StageError(f"{where} is declared a list and got {value!r}")
    return [cast(item, feature.feature, f"{where}[{i}]") for i, item in enumerate(value)]
