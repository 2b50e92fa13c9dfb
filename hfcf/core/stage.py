"""The contract of every stage, and `System`: an ordered chain of stages with its settings.

A stage is a frozen dataclass of settings that `Dataset.map` calls. It declares the columns it reads and the columns it
fills, implements `row` or `batch`, and holds nothing that settings do not determine: no model, counter or open file. So
it pickles in microseconds, hashes the same in every process, and gives equal rows however it is mapped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from datasets import Dataset, DatasetDict, Features, IterableDataset, Value

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.task import problem


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
    filled_by: ClassVar[Mapping[str, str]] = {}
    """Which call fills an input that is not a column of the corpus."""
    batch_size: ClassVar[int] = 256
    """How many rows `System` hands it at once: an engine sorts them by length, so more rows mean less padding."""

    seed: int = 13
    strict: bool = False

    @property
    def name(self) -> str:
        """The stage's name in columns, reports and seeds: its class's, in snake case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def columns(self) -> dict[str, Any]:
        """Every column that the stage writes."""
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

    def random(self, row_id: str) -> random.Random:
        """This row's own random generator: the same draws in any order, batch or shard."""
        return random.Random(f"{self.seed}:{self.name}:{row_id}")

    def __call__(self, rows: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        """What `map` calls with one row or a batch (then every value is a list); `rank` and the like are ignored."""
        self.check_fitted()
        if "id" not in rows:
            raise StageError(f"{self.name}: there is no column 'id'; hfcf.load(…) makes rows with one")
        batched = not isinstance(rows["id"], str)
        columns = self._read(rows, batched)
        ids = columns["id"]
        given = [{name: columns[name][i] for name in columns} for i in range(len(ids))]
        todo = [i for i, row in enumerate(given) if not (row["status"] and row["status"]["accepted"] is False)]
        results: dict[int, dict[str, Any] | Reject] = {}
        sound = []
        for i in todo:
            row = {name: given[i][name] for name in ("id", *self.inputs)}
            if why := problem(row):
                results[i] = Reject(why)
            else:
                self._check_filled(row)
                sound.append((i, row))
        answers = self.batch([row for _, row in sound]) if sound else []
        if len(answers) != len(sound):
            raise StageError(f"{self.name}: {len(sound)} rows went in and {len(answers)} came out")
        results.update((i, answer) for (i, _), answer in zip(sound, answers, strict=True))
        written = [self._write(given[i], results.get(i)) for i in range(len(given))]
        if not batched:
            return written[0]
        return {column: [row[column] for row in written] for column in self.columns()}

    def _read(self, rows: Mapping[str, Any], batched: bool) -> dict[str, list[Any]]:
        """The declared inputs, and the present values of what the stage fills, as lists."""
        wanted = dict.fromkeys(["id", *self.inputs, *self.columns()])
        for column in wanted:
            if column in rows:
                continue
            if column in self.inputs:
                filler = self.filled_by.get(column)
                cure = f"{filler} fills it: map that stage first" if filler else "hfcf.load(…) makes rows that have it"
                raise StageError(f"{self.name} reads the column {column!r}, which is missing; {cure}")
            raise StageError(
                f"{self.name} fills the column {column!r}, which is not there; run ds = hfcf.prepare(ds, for_=…) first"
            )
        return {column: list(_plain(rows[column])) if batched else [_plain(rows[column])] for column in wanted}

    def _check_filled(self, row: dict[str, Any]) -> None:
        for column in self.inputs:
            if row[column] is None and column in self.filled_by:
                raise StageError(
                    f"{self.name} reads the column {column!r}, which is null on the undecided row {row['id']!r}; "
                    f"{self.filled_by[column]} fills it: map that stage first"
                )

    def _write(self, row: dict[str, Any], result: dict[str, Any] | Reject | None) -> dict[str, Any]:
        """The row's output columns, cast to their declared features."""
        old = {column: row[column] for column in self.columns()}
        if result is None:
            return old
        if isinstance(result, Reject):
            if self.strict:
                raise StageError(f"{self.name}: row {row['id']!r}: {result.reason}")
            status = {"accepted": False, "stage": self.name, "reason": result.reason}
            result = {**result.outputs, "status": status}
        columns = self.columns()
        for column in result:
            if column not in columns:
                raise StageError(f"{self.name} returned the undeclared column {column!r} for row {row['id']!r}")
        return {
            **old,
            **{column: cast(value, columns[column], f"{self.name}: {column}") for column, value in result.items()},
        }

    def __getstate__(self) -> dict[str, Any]:
        """The settings and the version: what `Dataset.map` hashes and what workers receive."""
        return {"VERSION": self.VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name != "VERSION":
                object.__setattr__(self, name, value)


def _plain(value: Any) -> Any:
    """Python lists and scalars from what Ray and NumPy-formatted datasets hand over."""
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
    """`value` in the form that `feature` declares: every key of a struct present, none that is not declared.

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


@dataclass(frozen=True, kw_only=True)
class System:
    """An ordered chain of stages, each an attribute of that name, with the settings they share.

    Args:
        seed: every stage's seed.
        strict: every stage's `strict`.
        fitted: the sha256 of what `fit` learned from the whole set; set by `fit`.
    """

    task: ClassVar[str]
    chain: ClassVar[tuple[str, ...]]
    """The stages' names, in order."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}, "offline": {}}
    """Named sets of settings: "paper" is what the paper used, "offline" runs on models from the package registry alone."""
    flips: ClassVar[bool] = True
    """Whether its counterfactuals have another label than their source (else it only augments)."""
    engines: ClassVar[tuple[type[Any], ...]] = ()
    """What its stages ask: their versions are part of what its rows depend on."""
    VERSION: ClassVar[str] = "1"
    """Raise it when `begin` or `learn` makes something else of equal rows; what stages do has versions of its own."""
    trainings: ClassVar[tuple[str, ...]] = ()
    """The settings that say how something is trained; of these, a mapping changes what it names and leaves the preset's rest."""
    citation: ClassVar[str] = ""
    """The paper's BibTeX, for the cards of what it makes."""

    seed: int = 13
    strict: bool = False
    fitted: str | None = None

    @property
    def name(self) -> str:
        """The system's name in provenance and reports."""
        return type(self).__name__.lower()

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The system with a named set of settings.

        Args:
            name: one of `presets`.
            changes: settings that differ.
        """
        if name not in cls.presets:
            raise ValueError(f"{cls.__name__.lower()} has no preset {name!r}: choose one of {', '.join(cls.presets)}")
        settings = {**cls.presets[name], **changes}
        for training in cls.trainings:
            if isinstance(given := settings.get(training), Mapping):
                if "seed" in given:
                    raise ValueError(f"{training}: seed: the system's own seed is its trainings': set that")
                default = cls.presets[name].get(training, cls.__dataclass_fields__[training].default)
                model = {"model": Model.of(given["model"])} if "model" in given else {}
                settings[training] = replace(default, **{**given, **model})
        return cls(**settings)

    def _as_models(self, *names: str) -> None:
        """Make `Model`s of settings that were given as a name or a recipe's mapping; None stays where it is the default."""
        for name in names:
            value = getattr(self, name)
            if value is not None or self.__dataclass_fields__[name].default is not None:
                object.__setattr__(self, name, Model.of(value))

    def _as_engine(self, name: str, engine: type[Any]) -> None:
        """Make an engine of a setting that was given as a recipe's mapping, with "en" for a model that it does not name."""
        if isinstance(given := getattr(self, name), Mapping):
            object.__setattr__(self, name, engine(**{**given, "model": Model.of(given.get("model", "en"))}))

    def _common(self) -> dict[str, Any]:
        return {"seed": self.seed, "strict": self.strict}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages in order."""
        return tuple(getattr(self, name) for name in self.chain)

    def learn(self, ds: Dataset | IterableDataset) -> str | None:
        """Write what the system needs from the whole set; return its sha256. None: it needs nothing."""
        return None

    @property
    def needs(self) -> tuple[str, ...]:
        """The stages that `learn` reads the output of: they run on the whole set before it."""
        return ()

    def begin(self, ds: Dataset | IterableDataset) -> Self:
        """The system with what the stages in `needs` need themselves, made from the whole set: CCG trains its indicator here.

        Args:
            ds: the rows before any stage.
        """
        return self

    def fit(self, ds: Dataset | IterableDataset) -> Self:
        """Learn from the whole set in one bounded pass; returns a new system that names the result.

        Args:
            ds: rows on which the stages named in `needs` have run.
        """
        return replace(self, fitted=self.learn(ds))

    def __call__(self, ds: Any, *, limit: int | None = None, watch: Watch | None = None, **map_kwargs: Any) -> Any:
        """Prepare, fit (unless fitted) and run every stage, with a progress bar each.

        Args:
            ds: a `Dataset`, a `DatasetDict` (each split runs, and is fitted, on its own) or an `IterableDataset`.
            limit: run only the first rows, after fitting on all of them.
            watch: called as `watch(stage, run)`, and with a `Step` in a stage's place where the system trains; must return
                `run()`. The recipe runner times stages with it.
            map_kwargs: passed to every `Dataset.map` (`num_proc`, `batch_size`, …).

        Returns:
            The rows with the columns of every stage, each decided: `status.accepted` is true or false.
        """
        if isinstance(ds, DatasetDict):
            return DatasetDict({split: self(part, limit=limit, watch=watch, **map_kwargs) for split, part in ds.items()})
        watch = watch or (lambda stage, run: run())
        system, names = self, list(self.chain)
        ds = schema.prepare(ds, for_=self)
        if self.fitted is None:
            training = watch if self.trainings else (lambda step, run: run())
            system = training(Step("begin"), partial(self.begin, ds))
            for name in self.needs:
                ds = watch(stage := getattr(system, name), partial(run_stage, ds, stage, map_kwargs))
                names.remove(name)
            system = training(Step("fit"), partial(system.fit, ds))
        if limit is not None:
            ds = ds.take(limit) if isinstance(ds, IterableDataset) else ds.select(range(min(limit, len(ds))))
        for stage in (getattr(system, name) for name in names):
            ds = watch(stage, partial(run_stage, ds, stage, map_kwargs))
        return ds

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as plain data, for cards and `run.json`."""
        return {field.name: _setting(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class Step:
    """What a system does besides its stages, and takes time: "begin" and "fit" of one that trains."""

    name: str


Watch = Callable[[Stage | Step, Callable[[], Any]], Any]


def run_stage(ds: Any, stage: Stage, map_kwargs: Mapping[str, Any]) -> Any:
    """Map one stage over prepared rows, with the types that it declares."""
    kwargs = {"batched": True, "batch_size": stage.batch_size, **map_kwargs}
    features = Features({**ds.features, **stage.columns()})
    if not isinstance(ds, IterableDataset):
        kwargs["desc"] = stage.name
    return ds.map(stage, features=features, **kwargs)


def _setting(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _setting(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_setting(item) for item in value]
    return value
