"""The contract of every stage.

A stage is a frozen dataclass of settings that `Dataset.map` calls. It declares the columns it reads and the columns it
fills, implements `row` or `batch`, and holds nothing but settings and the hash of what it learned from the whole set: no model,
counter or open file. So it pickles in microseconds, hashes the same in every process, and gives equal rows however it is mapped.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import Any, ClassVar, Self

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict, Value

from hfcf.core import progress, schema
from hfcf.core.columns import Columns, FormatError, encode
from hfcf.core.mapping import first_rows, map_stage
from hfcf.core.model import Model
from hfcf.core.names import check_settings
from hfcf.core.prepare import prepare
from hfcf.core.settings import settings_of
from hfcf.core.task import nearest_task
from hfcf.core.workers import bind_workers
from hfcf.text.check import shorten


class StageError(ValueError):
    """A call that can't work: a missing column, an unfitted stage, or (with `strict=True`) a bad row."""


class Reject(Exception):
    """Raised by `Stage.row`, or returned in a row's place by `Stage.batch`: this row goes no further.

    Args:
        reason: why, in words for a person; the middle of one of more than 1,000 characters is cut out.
        outputs: what the stage still fills on that row (a rejected candidate, say).
    """

    def __init__(self, reason: str, **outputs: Any) -> None:
        super().__init__(reason)
        self.reason, self.outputs = shorten(reason), outputs


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One transform over rows; see the module's docstring.

    A subclass is a frozen dataclass of its settings. It declares `inputs` and `outputs`, implements `row` or `batch`, and may
    implement `check` (settings that don't fit together) and, with `fit_inputs`, `learn` (what it needs from the whole set).

    Args:
        seed: enters every random draw, together with the stage's name and the row's id.
        strict: raise on a bad row, naming it, where the default rejects it with the reason.

    >>> from hfcf.core.schema import TEXT
    >>> @dataclass(frozen=True, kw_only=True)
    ... class CountWords(Stage):
    ...     inputs = {"claim": TEXT}
    ...     outputs = {"words": Value("int64")}
    ...     def row(self, row):
    ...         return {"words": len(row["claim"].split())}
    >>> ds = Dataset.from_dict({"id": ["1"], "claim": ["Rome is old."], "evidence": [[{"title": "", "text": "It is."}]]})
    >>> CountWords()(ds)["words"]
    Column([3])
    """

    name: ClassVar[str]
    """The stage's name in systems, reports and seeds: the class's in snake case."""
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
    engines: ClassVar[tuple[type[Any] | str, ...]] = ()
    """The engines that it asks, as classes or "module:class": their versions are part of what its rows depend on."""
    batch_size: ClassVar[int] = 256
    """How many rows `System` hands it at once: an engine sorts them by length, so more rows mean less padding."""

    seed: int = 13
    strict: bool = False
    fitted: str | None = field(default=None, init=False, repr=False)
    """The sha256 of what `fit` learned; None before."""

    def __init_subclass__(cls) -> None:
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        check_settings(cls, settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, setting in settings_of(type(self)).items():
            object.__setattr__(self, name, setting.validate(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Raise `ValueError` for settings that don't fit together; types and ranges are checked before."""

    # --- what a stage learns from the whole set

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        """The columns of the whole set that `learn` reads; () where the stage learns nothing."""
        return ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        """Learn from the whole set in one bounded pass, and store it; return the file's sha256.

        Args:
            ds: rows with the columns `fit_inputs`.
        """
        raise NotImplementedError(f"{type(self).__name__} declares fit_inputs and does not implement learn")

    def fit(self, ds: Dataset | IterableDataset) -> Self:
        """Return the stage with what it learns from the whole set; the stage itself where there is nothing to learn.

        Args:
            ds: all rows, with the columns `fit_inputs`.

        Raises:
            StageError: a column is missing, or the stage that fills it has not run.
        """
        if not self.fit_inputs:
            return self
        if missing := [column for column in self.fit_inputs if column not in (ds.column_names or [])]:
            filler = self.produced_by.get(missing[0])
            cure = f"map {filler} first" if filler else "hfcf.load(…) makes rows that have it"
            raise StageError(f"{self.name}.fit reads the column {missing[0]!r}, which is missing; {cure}")
        if unfilled := [column for column in self.fit_inputs if column in self.produced_by and _is_unfilled(ds, column)]:
            filler = self.produced_by[unfilled[0]]
            raise StageError(f"{self.name}.fit reads the column {unfilled[0]!r}, which is null; map {filler} first")
        return self.with_fitted(self.learn(ds))

    def with_fitted(self, sha: str | None) -> Self:
        """Return the stage with what an earlier `fit` learned.

        Args:
            sha: its `fitted`; None forgets it.
        """
        fitted = copy.copy(self)
        object.__setattr__(fitted, "fitted", sha)
        return fitted

    def check_fitted(self) -> None:
        """Raise `StageError` when the stage needs something from the whole set that it did not learn yet."""
        if self.fit_inputs and self.fitted is None:
            columns = ", ".join(self.fit_inputs)
            raise StageError(
                f"{self.name} learns from the whole set ({columns}) and is not fitted: run system = system.fit(ds), or "
                f"{self.name} = {self.name}.fit(ds)"
            )

    # --- what is known of it besides its settings

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

    def confirming(self) -> tuple[str, list[Model]] | None:
        """Describe for cards which models must confirm a counterfactual before it is accepted, and list them; None: none must."""
        return None

    def check_available(self) -> None:
        """Raise when something that the stage reads, and no model of its settings names, is not installed."""

    def random(self, row_id: str) -> random.Random:
        """Return the row's own random generator: the same draws in any order, batch or shard."""
        return random.Random(f"{self.seed}:{self.name}:{row_id}")

    def __call__(self, rows: Any, *_: Any, **map_kwargs: Any) -> Any:
        """Fill a dataset, a batch or a row."""
        self.check_fitted()
        if isinstance(rows, DatasetDict | IterableDatasetDict):
            return type(rows)({split: self(part, **map_kwargs) for split, part in rows.items()})
        if isinstance(rows, Dataset | IterableDataset):
            return map_stage(prepare(rows, self), self, map_kwargs)
        try:
            return self._fill_columns(Columns(rows))
        except FormatError as error:
            raise StageError(f"{self.name}: {error}") from error

    def _fill_columns(self, columns: Columns) -> Any:
        inputs, outputs = self.inputs, self.columns()  # once: some stages make them from their task's
        self._check_columns(columns, inputs, outputs)
        ids, statuses = columns["id"], columns["status"]
        todo = [i for i, status in enumerate(statuses) if not (status and status["accepted"] is False)]
        changes: dict[str, dict[int, Any]] = {column: {} for column in outputs}
        for i, answer in self._call_batch(columns, todo, inputs):
            if isinstance(answer, Reject):
                if self.strict:
                    raise StageError(f"{self.name}: row {ids[i]!r}: {answer.reason}")
                answer = {**answer.outputs, "status": {"accepted": False, "stage": self.name, "reason": answer.reason}}
            for column, value in answer.items():
                if column not in changes:
                    raise StageError(f"{self.name} returned the undeclared column {column!r} for row {ids[i]!r}")
                changes[column][i] = value
        some = columns.lazy or columns.table is not None  # there, what is not returned stays as it is
        filled = {
            column: self._write(column, outputs[column], new, columns, len(ids))
            for column, new in changes.items()
            if new or not some
        }
        if columns.table is not None:
            return encode(columns.table, filled, outputs)
        return filled if columns.batched else {column: values[0] for column, values in filled.items()}

    def _call_batch(
        self, columns: Columns, todo: Sequence[int], inputs: Mapping[str, Any]
    ) -> Iterable[tuple[int, dict[str, Any] | Reject]]:
        """Hand the rows that can be worked on to `batch`; return each row's place and answer, in order."""
        names = list(dict.fromkeys(["id", *inputs, *self.optional]))
        size = len(columns["status"])
        read = [columns[name] if name in columns else [None] * size for name in names]
        if len(todo) < size:
            read = [[values[i] for i in todo] for values in read]
        # Without `strict`, which would take a third of the time here: `read` has a column for each name.
        sound = [dict(zip(names, values)) for values in zip(*read, strict=True)]  # noqa: B905
        bad: dict[int, dict[str, Any] | Reject] = {}
        if (task := nearest_task(frozenset(names))) is not None:
            bad = {i: Reject(why) for i, row in zip(todo, sound, strict=True) if (why := task.validate(row))}
        places = todo
        if bad:
            sound = [row for i, row in zip(todo, sound, strict=True) if i not in bad]
            places = [i for i in todo if i not in bad]
        if produced := [name for name in inputs if name in self.produced_by]:
            for row in sound:
                self._check_filled(row, produced)
        with progress.row_batch(size):
            answers = self.batch(sound) if sound else []
        if len(answers) != len(sound):
            raise StageError(f"{self.name}: {len(sound)} rows went in and {len(answers)} came out")
        answered = zip(places, answers, strict=True)
        return sorted([*bad.items(), *answered], key=itemgetter(0)) if bad else answered

    def _check_columns(self, columns: Columns, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Raise when a column is missing, saying what makes it."""
        if "id" not in columns:
            raise StageError(f"{self.name}: there is no column 'id'; hfcf.load(…) makes rows with one")
        for column in inputs:
            if column not in columns:
                filler = self.produced_by.get(column)
                cure = f"{filler} fills it: map that stage first" if filler else "hfcf.load(…) makes rows that have it"
                raise StageError(f"{self.name} reads the column {column!r}, which is missing; {cure}")
        for column in outputs:
            if column not in columns:
                raise StageError(
                    f"{self.name} fills the column {column!r}, which is missing; run ds = hfcf.prepare(ds, system) first"
                )

    def _check_filled(self, row: dict[str, Any], produced: Sequence[str]) -> None:
        for column in produced:
            if row[column] is None:
                raise StageError(
                    f"{self.name} reads the column {column!r}, which is null on the undecided row {row['id']!r}; "
                    f"{self.produced_by[column]} fills it: map that stage first"
                )

    def _write(self, column: str, feature: Any, new: Mapping[int, Any], columns: Columns, size: int) -> list[Any]:
        """Return a column's values, the new ones cast to its declared feature."""
        where = f"{self.name}: {column}"
        if isinstance(feature, Value) and set(map(type, new.values())) == {_KINDS[feature.dtype]}:
            right = new
        else:
            right = {i: cast(value, feature, where) for i, value in new.items()}
        if len(right) == size:
            return [right[i] for i in range(size)]
        values = list(columns[column])
        for i, value in right.items():
            values[i] = value
        return values

    def __getstate__(self) -> dict[str, Any]:
        """Return settings and version: what `Dataset.map` hashes and what workers receive."""
        bind_workers()
        return {"VERSION": self.VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name != "VERSION":
                object.__setattr__(self, name, value)


_KINDS: dict[str, type] = {"string": str, "bool": bool, "int64": int, "float64": float}


def cast(value: Any, feature: Any, where: str) -> Any:
    """Cast a value to the form that a feature declares: every key of a struct present, none that is not declared."""
    if value is None:
        return None
    if isinstance(feature, dict):
        if extra := set(value) - set(feature):
            raise StageError(f"{where} has the undeclared keys {sorted(extra)}")
        return {key: cast(value.get(key), feature[key], f"{where}.{key}") for key in feature}
    if isinstance(feature, Value):
        kind = _KINDS[feature.dtype]
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise StageError(f"{where} is declared {feature.dtype} and got {value!r}")
        return value
    if not isinstance(value, list | tuple):
        raise StageError(f"{where} is declared a list and got {value!r}")
    return [cast(item, feature.feature, f"{where}[{i}]") for i, item in enumerate(value)]


def _is_unfilled(ds: Dataset | IterableDataset, column: str) -> bool:
    """Return whether a column is null on all undecided rows of the first 1,000."""
    names = [name for name in (column, "status") if name in (ds.column_names or [])]
    rows = list(first_rows(ds.select_columns(names), 1000))
    undecided = [row for row in rows if not row.get("status") or row["status"]["accepted"] is not False]
    return bool(undecided) and all(row[column] is None for row in undecided)
