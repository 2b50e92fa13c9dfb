"""The contract of every stage.

A stage is a frozen dataclass of settings that `Dataset.map` calls. It declares the columns that it reads and the columns that it
fills, and implements `row` or `batch`. It holds only settings and the hash of what it learned from the whole set: no model, no
counter, no open file. So it pickles in microseconds, has the same hash in every process, and gives equal rows in every map mode.
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
from hfcf.core.settings import Seed, read_models, settings_of
from hfcf.core.task import nearest_task
from hfcf.text.check import shorten


class StageError(ValueError):
    """A stage can't run: a column is missing, the stage is not fitted, or (with `strict=True`) a row is bad."""


class Reject(Exception):
    """Reject a row: later stages do not work on it. `Stage.row` raises it; `Stage.batch` returns it instead of the row's outputs.

    Args:
        reason: why, in words for a person. A reason of more than 1,000 characters loses its middle.
        outputs: columns that the stage fills on the rejected row all the same, such as its candidates.
    """

    def __init__(self, reason: str, **outputs: Any) -> None:
        super().__init__(reason)
        self.reason, self.outputs = shorten(reason), outputs


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Transform rows; the base class of every stage.

    A subclass is a frozen dataclass of its settings. It declares `inputs` and `outputs`, and implements `row` or `batch`. It may
    implement `check`, which refuses settings that don't fit together. A stage that learns from the whole set declares
    `fit_inputs` and implements `learn`.

    Args:
        seed: the seed of every random draw, together with the stage's name and the row's id.
        strict: raise an error that names the bad row; by default a bad row is rejected with the reason.

    Raises:
        TypeError: there is no such setting; the message suggests the nearest.
        ValueError: a setting has the wrong type, is out of range, or contradicts another setting.
        StageError: in a call: a column is missing, the stage is not fitted, or (with `strict`) a row is bad.

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
    """The stage's name in systems, reports and seeds: the class name in snake case."""
    VERSION: ClassVar[str] = "1"
    """Increase it when the same settings give different rows: it is part of the key of every cache."""
    inputs: ClassVar[Mapping[str, Any]]
    """The columns that the stage reads: {column: feature}."""
    outputs: ClassVar[Mapping[str, Any]]
    """The columns that it fills besides `status`: {column: feature}."""
    optional: ClassVar[Mapping[str, Any]] = {}
    """Columns that it reads if the rows have them; otherwise their values are None."""
    produced_by: ClassVar[Mapping[str, str]] = {}
    """The call that fills an input that is not a column of the corpus: {column: "system.stage"}."""
    engines: ClassVar[tuple[type[Any] | str, ...]] = ()
    """The engines that it uses, as classes or "module:class": its rows depend on their versions."""
    batch_size: ClassVar[int] = 256
    """The number of rows that `System` passes at once: engines sort them by length, so more rows mean less padding."""

    seed: Seed = 13
    strict: bool = False
    fitted: str | None = field(default=None, init=False, repr=False)
    """The sha256 of what `fit` learned; None before `fit`."""

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
        """Raise `ValueError` for settings that don't fit together; types and ranges are already checked."""

    # --- what a stage learns from the whole set

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        """The columns of the whole set that `learn` reads; () if the stage learns nothing."""
        return ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        """Learn from the whole set in one pass and bounded memory, store the result, and return its sha256.

        Args:
            ds: rows with the columns `fit_inputs`.
        """
        raise NotImplementedError(f"{type(self).__name__} declares fit_inputs but does not implement learn")

    def fit(self, ds: Dataset | IterableDataset) -> Self:
        """Return the stage with what it learned from the whole set, or the stage itself if it learns nothing.

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
        """Return the stage with the result of an earlier `fit`.

        Args:
            sha: the `fitted` of that stage; None forgets what was learned.
        """
        fitted = copy.copy(self)
        object.__setattr__(fitted, "fitted", sha)
        return fitted

    def check_fitted(self) -> None:
        """Raise `StageError` if the stage learns from the whole set and is not fitted."""
        if self.fit_inputs and self.fitted is None:
            columns = ", ".join(self.fit_inputs)
            raise StageError(
                f"{self.name} learns from the whole set ({columns}) and is not fitted: run system = system.fit(ds), or "
                f"{self.name} = {self.name}.fit(ds)"
            )

    # --- what a subclass implements

    def columns(self) -> dict[str, Any]:
        """Return the columns that the stage writes: {column: feature}."""
        return {**self.outputs, "status": schema.STATUS}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of one row; raise `Reject` if the row is bad. Implement this or `batch`."""
        raise NotImplementedError(f"{type(self).__name__} implements neither row nor batch")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        """Return the outputs of many rows, with a `Reject` for each bad row. Implement this or `row`."""
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            try:
                results.append(self.row(row))
            except Reject as rejection:
                results.append(rejection)
        return results

    def verifiers(self) -> tuple[str, list[Model]] | None:
        """Describe, for cards, the models that must confirm a counterfactual, and list them; None if there are none."""
        return None

    def read_models(self) -> dict[str, Model]:
        """Return the models that it loads or asks with these settings, by the names of the settings: "judges[0]", "ner"."""
        return dict(read_models(self))

    def check_available(self) -> None:
        """Raise an error if something that the stage reads, besides the models in its settings, is not installed."""

    def random(self, row_id: str) -> random.Random:
        """Return the row's own random generator: its draws do not depend on order, batch or shard."""
        return random.Random(f"{self.seed}:{self.name}:{row_id}")

    def __call__(self, rows: Any, *_: Any, **map_kwargs: Any) -> Any:
        """Fill the stage's columns in a dataset, a batch or a row.

        Args:
            rows: a dataset, whose columns are prepared first, or what `Dataset.map` passes: a row, a batch or an Arrow table.
            map_kwargs: arguments of `Dataset.map`, for a dataset.

        Returns:
            The dataset with filled columns, or the changed columns of the row or batch.
        """
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
        inputs, outputs = self.inputs, self.columns()  # read once: some stages compute them from their task
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
        some = columns.lazy or columns.table is not None  # these keep the columns that are not returned
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
        """Pass the rows that can be worked on to `batch`; return the place and the answer of each row, in order."""
        names = list(dict.fromkeys(["id", *inputs, *self.optional]))
        size = len(columns["status"])
        read = [columns[name] if name in columns else [None] * size for name in names]
        if len(todo) < size:
            read = [[values[i] for i in todo] for values in read]
        # `read` has a column for each name; `strict=True` would take a third of the time here.
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
        """Raise an error that names a missing column and the call that fills it."""
        if "id" not in columns:
            raise StageError(f"{self.name}: there is no column 'id'; hfcf.load(…) makes rows with one")
        for column in inputs:
            if column not in columns:
                filler = self.produced_by.get(column)
                cure = f"{filler} fills it: map that stage first" if filler else "hfcf.load(…) makes rows that have it"
                raise StageError(f"{self.name} reads the column {column!r}, which is missing; {cure}")
        for column in outputs:
            if column not in columns:
                cure = "run ds = hfcf.prepare(ds, [stage]) first, or call stage(ds)"
                raise StageError(f"{self.name} fills the column {column!r}, which is missing; {cure}")

    def _check_filled(self, row: dict[str, Any], produced: Sequence[str]) -> None:
        for column in produced:
            if row[column] is None:
                raise StageError(
                    f"{self.name} reads the column {column!r}, which is null on the undecided row {row['id']!r}; "
                    f"{self.produced_by[column]} fills it: map that stage first"
                )

    def _write(self, column: str, feature: Any, new: Mapping[int, Any], columns: Columns, size: int) -> list[Any]:
        """Return the values of a column, with new values cast to its declared feature."""
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
        """Return settings and version, which `Dataset.map` hashes and workers receive."""
        return {"VERSION": self.VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name != "VERSION":
                object.__setattr__(self, name, value)


_KINDS: dict[str, type] = {"string": str, "bool": bool, "int64": int, "float64": float}


def cast(value: Any, feature: Any, where: str) -> Any:
    """Cast a value to a declared feature: a struct gets all of its declared keys, and an undeclared key is an error."""
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
    """Return whether a column is null on every undecided row among the first 1,000 rows."""
    names = [name for name in (column, "status") if name in (ds.column_names or [])]
    rows = list(first_rows(ds.select_columns(names), 1000))
    undecided = [row for row in rows if not row.get("status") or row["status"]["accepted"] is not False]
    return bool(undecided) and all(row[column] is None for row in undecided)
