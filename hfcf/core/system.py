"""`System`: an ordered chain of stages with the settings that they share."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

from hfcf.core.columns import without_format
from hfcf.core.dedup import reject_duplicates
from hfcf.core.mapping import first_rows, map_stage
from hfcf.core.model import Model
from hfcf.core.names import check_names, check_settings, did_you_mean
from hfcf.core.preflight import CURE, check, check_rows
from hfcf.core.prepare import prepare
from hfcf.core.recipe import locate
from hfcf.core.reset import clear_outputs
from hfcf.core.settings import Endpoint, Flat, GoesWith, Setting, TrainedBy, Trains, plain, settings_of
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import get_task, task_of, tasks

log = logging.getLogger(__name__)

OWN = {
    "seed": Setting("seed", int, 13), "strict": Setting("strict", bool, False), "unique": Setting("unique", bool, False),
}  # fmt: skip
"""The settings of every system."""


@dataclass(frozen=True)
class Part:
    """A stage in the chain of a system that shares not all of its settings by their names.

    Args:
        stage: the stage's class.
        fixed: settings that are the system's choice, not the user's.
        names: settings that the system calls otherwise: {the stage's name: the system's}.
    """

    stage: type[Stage]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


class System:
    """An ordered chain of stages; its settings are those of its stages.

    A subclass names its `task`, its `chain` and its `presets`. Two stages with a setting of one name share it. Each stage is an
    attribute of its own name (`race.edit_evidence`), and so is each setting (`race.num_beams`).

    Args:
        seed: every stage's seed.
        strict: every stage's `strict`.
        unique: reject a counterfactual that equals one of an earlier source (`hfcf.core.dedup.reject_duplicates`); the papers keep
            both.
        settings: those of the stages.

    Raises:
        TypeError: there is no such setting; the message suggests the nearest.
        ValueError: a setting is missing, of another type, out of range, or does not go with the others.

    >>> from hfcf.core.stage import Stage
    >>> from hfcf.core.schema import TEXT
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Shorten(Stage):
    ...     inputs = outputs = {"claim": TEXT}
    ...     words: int = 10
    ...     def row(self, row):
    ...         return {"claim": " ".join(row["claim"].split()[: self.words])}
    >>> class Short(System):
    ...     task = "verification"
    ...     chain = (Shorten,)
    ...     presets = {"tiny": {"words": 2}}
    >>> Short.preset("tiny", seed=7).shorten
    Shorten(seed=7, strict=False, words=2)
    """

    name: ClassVar[str]
    """The system's name in recipes, provenance and reports; by default the class's in lower case."""
    task: Any = None
    """The task of its rows; None: a setting `task`, for a system that works on all tasks that say what may be rewritten."""
    chain: ClassVar[tuple[type[Stage] | Part, ...]]
    """The stages' classes, in order."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}, "offline": {}}
    """Named sets of settings: "paper" is what the paper used, "offline" runs on models from the package registry alone."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Defaults of this system that differ from its stages'."""
    by_task: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """For a system with a setting `task`: the defaults that differ by task."""
    flips: ClassVar[bool] = True
    """Whether its counterfactuals have another label than their source (else it only augments)."""
    limit_first: ClassVar[bool] = False
    """Whether a limit cuts the rows before fitting: where stages that cost money make what is fitted."""
    VERSION: ClassVar[str] = "1"
    """Raise it when fitting makes something else of equal rows and no stage's version says so."""
    citation: ClassVar[str] = ""
    """The paper's BibTeX, for the cards of what it makes."""
    parts: ClassVar[Mapping[str, Part]]
    """The parts of `chain` by the stages' names; made from `chain`."""
    schema: ClassVar[Mapping[str, Setting]]
    """Its settings by name; made from the stages' fields."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__.lower())
        parts = [part if isinstance(part, Part) else Part(part) for part in cls.chain]
        cls.parts = {part.stage.name: part for part in parts}
        cls.schema = _collect(cls)
        cls.__signature__ = inspect.Signature([_parameter(setting) for setting in cls.schema.values()])  # type: ignore[attr-defined]

    def __init__(self, **settings: Any) -> None:
        cls = type(self)
        check_names(cls.__name__, settings, cls.schema)
        values = {name: setting.default for name, setting in cls.schema.items()}
        values |= {**cls.by_task.get(settings.get("task", ""), {}), **settings}
        values |= {
            name: _merged(name, values[name], cls.schema[name].default) for name in cls.schema if cls.schema[name].marker(Trains)
        }
        self._check_given(values)
        values = {name: cls.schema[name].validate(value) for name, value in values.items()}
        self.__setstate__({"_values": values, "_stages": {name: self._make(part, values) for name, part in cls.parts.items()}})
        self.check()

    def _make(self, part: Part, values: Mapping[str, Any]) -> Stage:
        """Make a stage with the system's settings."""
        values = {"system": self.name, "task": self.task, **values}
        shared: dict[str, Any] = {}
        for name, setting in settings_of(part.stage).items():
            if setting.marker(Flat):
                kind = type(setting.default)
                shared[name] = kind(**{own: values[own] for own in settings_of(kind)})
            elif (here := part.names.get(name, name)) in values:
                shared[name] = values[here]
        return part.stage(**{**shared, **part.fixed})

    def _check_given(self, values: Mapping[str, Any]) -> None:
        """Raise for settings without a default that are not given."""
        missing = [setting for name, setting in self.schema.items() if values[name] is MISSING]
        if not missing:
            return
        names = [setting.name for setting in missing]
        trained = [
            f"  hfcf train {recipe} --out out/{setting.name} --set data_dir=FOLDER"
            for setting in missing
            if (recipe := self.recipe_of(setting))
        ]
        given = ", ".join(f"{name}=out/{name}" for name in names)
        options = " ".join(f"--set settings.{name}=out/{name}" for name in names)
        having = [name for name, preset in self.presets.items() if set(names) <= set(preset)]
        training = [", which you train:", *trained, f"Then give {given} (a recipe: {options})"]
        raise ValueError(
            f"{self.name} needs {', '.join(names)}"
            + ("\n".join(training) if trained else "")
            + (f", or choose preset={' or '.join(having)}" if having else "")
        )

    @classmethod
    def recipe_of(cls, setting: Setting) -> str:
        """Name the recipe that trains the model of a setting; "" where there is none."""
        mark = setting.marker(TrainedBy)
        return "" if mark is None else mark.recipe or get_task(cls.works_on()[0]).recipe

    def check(self) -> None:
        """Raise `ValueError` for settings of several stages that don't fit together."""

    # --- settings and stages as attributes

    def __getattr__(self, name: str) -> Any:
        for kind in ("_stages", "_values"):
            if name in self.__dict__.get(kind, {}):
                return self.__dict__[kind][name]
        raise AttributeError(f"{type(self).__name__} has no stage or setting {name!r}{did_you_mean(name, self.__dir__())}")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a system does not change: make another, system.replace({name}=…)")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__dict__.get("_stages", {}), *self.__dict__.get("_values", {})]

    def __getstate__(self) -> dict[str, Any]:
        return {"_values": self._values, "_stages": self._stages}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        if not type(self).task:  # the class's None would hide the setting
            self.__dict__["task"] = self._values["task"]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((type(self), self.stages))

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in self._values.items() if value != self.schema[name].default)
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages in order."""
        return tuple(self._stages.values())

    @property
    def values(self) -> dict[str, Any]:
        """The values of its settings by name."""
        return dict(self._values)

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as plain data, for cards and `run.json`."""
        return plain(self._values)

    @property
    def fitted(self) -> dict[str, str]:
        """The sha256 of what each stage learned from the whole set, by the stage's name."""
        return {stage.name: stage.fitted for stage in self.stages if stage.fitted}

    @property
    def before_fit(self) -> list[str]:
        """The names of the stages that run on the whole set before all others can learn from it."""
        return max((self._before(stage) for stage in self.stages if stage.fit_inputs), key=len, default=[])

    def confirming(self) -> tuple[str, list[Model]] | None:
        """Describe which models must confirm a counterfactual, and list them, as the last stage with such models does."""
        return next((answer for stage in reversed(self.stages) if (answer := stage.confirming())), None)

    @classmethod
    def trainings(cls) -> dict[str, str]:
        """Map the settings that say how a model is trained on the rows to those that name a model instead."""
        return {name: mark.instead for name, setting in cls.schema.items() if (mark := setting.marker(Trains))}

    @classmethod
    def works_on(cls) -> list[str]:
        """List the tasks of the rows that it works on."""
        return [cls.task] if cls.task else [task.name for task in tasks().values() if task.rewriting]

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make the system with a named set of settings.

        A value of the preset that belongs to another one of its values, such as the judges beside its verifier, is left out where
        `changes` has another of that. Of hyper-parameters, a mapping changes what it names and leaves the preset's rest.

        Args:
            name: one of `presets`.
            changes: settings that differ; `task`, of a system that has it, also chooses the defaults of that task.

        Raises:
            ValueError: there is no such preset.
        """
        if name not in cls.presets:
            near = did_you_mean(name, cls.presets)
            raise ValueError(f"{cls.name} has no preset {name!r}: choose one of {', '.join(cls.presets)}{near}")
        check_names(cls.__name__, changes, cls.schema)
        preset = {**cls.presets[name], **cls.by_task.get(changes.get("task", ""), {})}
        for setting in cls.schema.values():
            mark = setting.marker(GoesWith)
            if mark and mark.setting in changes and preset.pop(setting.name, None) and setting.name not in changes:
                unused = "%s: the preset's setting %r goes with its own %s and is left out"
                log.warning(unused, cls.name, setting.name, mark.setting)
            if setting.marker(Trains) and setting.name in changes:
                changes[setting.name] = _merged(setting.name, changes[setting.name], preset.get(setting.name, setting.default))
        return cls(**{**preset, **changes})

    def replace(self, **changes: Any) -> Self:
        """Return the system with other settings; a stage whose settings stay keeps what it learned."""
        new = type(self)(**{**self._values, **changes})
        kept = {name: old for name, old in self._stages.items() if _same_settings(old, new._stages[name])}
        return new._with(kept)

    def _with(self, stages: Mapping[str, Stage]) -> Self:
        """Return the system with some of its stages replaced."""
        new = object.__new__(type(self))
        new.__setstate__({"_values": self._values, "_stages": {**self._stages, **stages}})
        return new

    @classmethod
    def locate(cls, settings: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
        """Put the corpora of a setting such as {from: [{corpus: …}]} inside the folder of a recipe's corpora."""
        return {
            name: {**value, "from": [locate(corpus, data_dir) for corpus in value["from"]]}
            if isinstance(value, Mapping) and "from" in value
            else value
            for name, value in settings.items()
        }

    # --- running

    def fit(self, ds: Any, **map_kwargs: Any) -> Self:
        """Learn from the whole set what the stages need of it; return a new system.

        Args:
            ds: a `Dataset` or a stream: rows before any stage, or with the columns that some stages have filled. Stages whose
                columns are needed and not there run on the rows first.
            map_kwargs: of `Dataset.map`.

        Raises:
            StageError, ValueError: a stage can't learn from these rows.
        """
        ds = without_format(ds)
        system = self._for_rows(ds)
        ds = prepare(ds, system)
        filled = [name for name in system._stages if _is_filled(ds, system._stages[name])]
        return system._fit_steps(ds, _run_now, Runner(), map_kwargs, filled)[0]

    def __call__(
        self, ds: Any, *, limit: int | None = None, watch: Watch | None = None, runner: Runner | None = None, checked: bool = False,
        **map_kwargs: Any,
    ) -> Any:  # fmt: skip
        """Prepare, fit (unless fitted) and run every stage, with a progress bar each.

        What an earlier system, or some of the stages, made of the rows is set aside: the rows are worked on as they were loaded. To
        make counterfactuals of counterfactuals, run it on the rows of `hfcf.core.expand.augmented(ds)`.

        Args:
            ds: the rows; several splits give the same.
            limit: run only the first rows, after fitting on all.
            watch: called as `watch(stage, step)` around every stage; it must return `step()`.
            runner: divides the rows over processes or machines.
            checked: `hfcf.core.preflight.check` was called for the system.
            map_kwargs: passed to `Dataset.map`.
        """
        check_limit(limit)
        if isinstance(ds, DatasetDict | IterableDatasetDict):
            given = {"limit": limit, "watch": watch, "runner": runner, **map_kwargs}
            return type(ds)({split: self(part, checked=checked or i > 0, **given) for i, (split, part) in enumerate(ds.items())})
        if not isinstance(ds, Dataset | IterableDataset):
            kind = type(ds).__name__
            raise StageError(f"a system runs on a Dataset, a DatasetDict or an IterableDataset, and this is a {kind}: {CURE}")
        ds, watch, runner = without_format(ds), watch or _run_now, runner or Runner()
        system = self._for_rows(ds)
        if not checked:
            check(system)
        check_rows(system, ds)
        ds = clear_outputs(prepare(ds, system), system.stages)
        if self.limit_first:
            ds = first_rows(ds, limit)
        system, ds, done = system._fit_steps(ds, watch, runner, map_kwargs)
        rest = [stage for name, stage in system._stages.items() if name not in done]
        ds = runner.map(first_rows(ds, limit), rest, watch, map_kwargs)
        return reject_duplicates(ds, system.stages[-1].name) if system.unique and isinstance(ds, Dataset) else ds

    def _fit_steps(
        self, ds: Any, watch: Watch, runner: Runner, map_kwargs: Mapping[str, Any], filled: Sequence[str] = ()
    ) -> tuple[Self, Any, list[str]]:
        """Fit each stage as soon as its columns are there; return the system, the rows and the names of the stages that ran."""
        system, done = self, list(filled)
        while unfitted := [stage for stage in system.stages if stage.fit_inputs and stage.fitted is None]:
            waiting = {stage.name: [name for name in system._before(stage) if name not in done] for stage in unfitted}
            for stage in unfitted:
                if not waiting[stage.name]:
                    trains = any(setting.marker(Trains) for setting in settings_of(type(stage)).values())
                    timed = partial(watch, Step(f"fit {stage.name}")) if trains else _call
                    system = system._with({stage.name: runner.once(partial(timed, partial(stage.fit, ds)))})
            if todo := min((names for names in waiting.values() if names), key=len, default=[]):
                ds = runner.map(ds, [system._stages[name] for name in todo], watch, map_kwargs)
                done += todo
        return system, ds, done

    def _before(self, stage: Stage) -> list[str]:
        """List the stages that must run before one can learn: all up to the last that fills a column which it reads."""
        names = list(self._stages)
        earlier = names[: names.index(stage.name)]
        fillers = [i for i, name in enumerate(earlier) if set(self._stages[name].outputs) & set(stage.fit_inputs)]
        return earlier[: max(fillers, default=-1) + 1]

    def _for_rows(self, ds: Dataset | IterableDataset) -> Self:
        """Return the system for the rows' task, if `task` is one of its settings."""
        if "task" not in self.schema or ds.features is None:
            return self
        return self.replace(task=task_of(ds.features).system_task)


def _parameter(setting: Setting) -> inspect.Parameter:
    default = inspect.Parameter.empty if setting.default is MISSING else setting.default
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, annotation=setting.type, default=default)


def _collect(cls: type[System]) -> dict[str, Setting]:
    """Collect the settings of a system: its own, then those of its stages in order."""
    tasks_of_stages = [settings["task"] for part in cls.parts.values() if "task" in (settings := settings_of(part.stage))]
    own = OWN if cls.task else {**OWN, "task": tasks_of_stages[0]}
    found: dict[str, Setting] = {}
    for name, part in cls.parts.items():
        for setting in _flat_settings(part.stage):
            here = part.names.get(setting.name, setting.name)
            if setting.name in part.fixed or here in own or here in ("system", "task"):
                continue
            default = cls.defaults.get(here, setting.default)
            known = found.setdefault(here, Setting(here, setting.annotation, default))
            if known.default != default:
                raise TypeError(
                    f"{cls.__name__}: the default of {here} is {known.default!r} and, in {name}, {default!r}: "
                    "give one in defaults, or name the setting apart with Part(…, names={…})"
                )
            if not setting.marker(Endpoint):  # an endpoint only where every stage takes one
                found[here] = replace(known, annotation=setting.annotation)
    return {**found, **{name: replace(setting, default=cls.defaults.get(name, setting.default)) for name, setting in own.items()}}


def _flat_settings(stage: type[Stage]) -> Iterator[Setting]:
    """Yield the settings of a stage, and of a group of settings each of its own."""
    for setting in settings_of(stage).values():
        if setting.marker(Flat):
            yield from settings_of(type(setting.default)).values()
        else:
            yield setting


def _merged(name: str, value: Any, base: Any) -> Any:
    """Return hyper-parameters: of a mapping, those of `base` with what it names."""
    if not isinstance(value, Mapping):
        return value
    if "seed" in value:
        raise ValueError(f"{name}: seed: the trainings of a system have the system's seed: set that")
    check_settings(type(base), map(str, value))
    return replace(base, **{key: settings_of(type(base))[key].validate(own) for key, own in value.items()})


def _same_settings(one: Stage, other: Stage) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in settings_of(type(one)))


def _is_filled(ds: Any, stage: Stage) -> bool:
    """Return whether the first rows hold what a stage fills."""
    rows = first_rows(ds.select_columns(list(stage.outputs)), 1000)
    return any(value is not None for row in rows for value in row.values())


@dataclass(frozen=True)
class Step:
    """A step of a system in which a stage learns, timed like a stage: "fit edit_evidence"."""

    name: str


Watch = Callable[[Stage | Step, Callable[[], Any]], Any]
T = TypeVar("T")


def _call(run: Callable[[], Any]) -> Any:
    return run()


def _run_now(stage: Stage | Step, run: Callable[[], Any]) -> Any:
    return run()


class Runner:
    """Runs a system's steps: this one here, in one process. Others divide the rows over processes or machines."""

    main = True
    """Whether this process writes what there is one of: fitted files, the result."""

    def first(self) -> AbstractContextManager[None]:
        """Let one process run a block before the others do, which find its files in the caches."""
        return nullcontext()

    def once(self, step: Callable[[], T]) -> T:
        """Run a step in one process, and return its result in all of them."""
        return step()

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Map stages over rows, one after the other; return all rows in order."""
        for stage in stages:
            ds = watch(stage, partial(map_stage, ds, stage, map_kwargs))
        return ds

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up what the stages cost, in all processes."""
        return list(entries)


def check_limit(limit: Any) -> None:
    """Raise `ValueError` for a limit that is not a number of rows."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1):
        raise ValueError(f"limit must be a number of rows from 1 on, got {limit!r}")
