"""A system: an ordered chain of stages that share settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from typing import Any, ClassVar, NoReturn, Self

from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

from hfcf.core.bound_stage import BoundStage, collect_settings, merged, signature
from hfcf.core.columns import without_format
from hfcf.core.dedup import reject_duplicates
from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.core.names import check_names, did_you_mean
from hfcf.core.preflight import CURE, check_rows, check_system, warn_of_language
from hfcf.core.prepare import clear_outputs, prepare
from hfcf.core.progress import lines_of_log
from hfcf.core.public_models import SIZE, sized
from hfcf.core.recipe import locate
from hfcf.core.runner import FitStep, Runner, Watch, check_limit, run_now
from hfcf.core.settings import Flat, GoesWith, Setting, TrainedBy, Trains, settings_of, to_builtin
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import get_task, task_of, tasks

log = logging.getLogger(__name__)


class System:
    """Run an ordered chain of stages; the base class of every system.

    A subclass declares its `task`, its `chain` and its `presets`. Its settings are the settings of its stages; stages that have a
    setting of the same name share it. Each stage and each setting is an attribute: `race.edit_evidence`, `race.num_beams`.

    Args:
        seed: the seed of every stage.
        strict: raise an error on a bad row, in every stage, instead of rejecting it.
        unique: reject a counterfactual that equals a counterfactual of an earlier source (`hfcf.core.dedup.reject_duplicates`); the
            papers keep both.
        settings: the settings of the stages.

    Raises:
        TypeError: there is no such setting; the message suggests the nearest.
        ValueError: a setting is missing, has the wrong type, is out of range, or contradicts another setting.

    >>> from dataclasses import dataclass
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
    """The system's name in recipes, provenance and reports; by default the class name in lower case."""
    task: Any = None
    """The task of its rows. None adds a setting `task`: the system works on every task that declares what may be rewritten."""
    chain: ClassVar[tuple[type[Stage] | BoundStage, ...]]
    """The classes of its stages, in order."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}, "offline": {}}
    """Named sets of settings. "paper" is what the paper used. "hub" has public checkpoints that need no training
    (`hfcf.core.public_models`). "offline" needs only models from the package registry."""
    sizes: ClassVar[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {}
    """For a preset by name, what changes with its size, by the size's name."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Defaults that differ from the defaults of the stages."""
    by_task: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """The defaults that depend on the task, for a system with a setting `task`."""
    flips: ClassVar[bool] = True
    """Whether the label of a counterfactual differs from the label of its source; if not, the system only augments."""
    rated_on: ClassVar[str] = ""
    """What the rows of its rated pairs have in common that yours may lack, after "pairs that": "have …"."""
    count_setting: ClassVar[str] = ""
    """The setting that says how many counterfactuals a row gets; "" if there is no such setting."""
    limit_before_fit: ClassVar[bool] = False
    """Whether a limit applies before fitting: true if stages that cost money run before a stage can learn."""
    VERSION: ClassVar[str] = "1"
    """Increase it when fitting changes for equal rows and no stage's `VERSION` changes."""
    citation: ClassVar[str] = ""
    """The paper's BibTeX, for dataset cards."""
    parts: ClassVar[Mapping[str, BoundStage]]
    """The parts of `chain` by the names of their stages."""
    schema: ClassVar[Mapping[str, Setting]]
    """Its settings by name, collected from the stages."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__.lower())
        parts = [part if isinstance(part, BoundStage) else BoundStage(part) for part in cls.chain]
        cls.parts = {part.stage.name: part for part in parts}
        cls.schema = collect_settings(cls)
        cls.__signature__ = signature(cls.schema)  # type: ignore[attr-defined]

    def __init__(self, **settings: Any) -> None:
        cls = type(self)
        check_names(cls.__name__, settings, cls.schema)
        values = {name: setting.default for name, setting in cls.schema.items()}
        values |= {**cls.by_task.get(settings.get("task", ""), {}), **settings}
        values |= {
            name: merged(name, values[name], cls.schema[name].default) for name in cls.schema if cls.schema[name].marker(Trains)
        }
        self._check_complete(values)
        values = {name: cls.schema[name].validate(value) for name, value in values.items()}
        self.__setstate__({"_values": values, "_stages": {name: self._make(part, values) for name, part in cls.parts.items()}})
        self.check()

    def _make(self, part: BoundStage, values: Mapping[str, Any]) -> Stage:
        """Make a stage with the settings of the system."""
        values = {"system": self.name, "task": self.task, **values}
        shared: dict[str, Any] = {}
        for name, setting in settings_of(part.stage).items():
            if setting.marker(Flat):
                kind = type(setting.default)
                shared[name] = kind(**{field: values[field] for field in settings_of(kind)})
            elif (here := part.names.get(name, name)) in values:
                shared[name] = values[here]
        return part.stage(**{**shared, **part.fixed})

    def _check_complete(self, values: Mapping[str, Any]) -> None:
        """Raise `ValueError` for a missing setting; the message shows how to train the model or which preset has it."""
        missing = [setting for name, setting in self.schema.items() if values[name] is MISSING]
        if not missing:
            return
        names = [setting.name for setting in missing]
        trained = [
            f"  hfcf train {recipe} --out out/{setting.name} --set data_dir=FOLDER"
            for setting in missing
            if (recipe := self.recipe_of(setting))
        ]
        arguments = ", ".join(f"{name}=out/{name}" for name in names)
        options = " ".join(f"--set settings.{name}=out/{name}" for name in names)
        having = [name for name, preset in self.presets.items() if set(names) <= set(preset)]
        training = [", which you train:", *trained, f"Then give {arguments} (a recipe: {options})"]
        raise ValueError(
            f"{self.name} needs {', '.join(names)}"
            + ("\n".join(training) if trained else "")
            + (f", or choose preset={' or '.join(having)}" if having else "")
        )

    @classmethod
    def recipe_of(cls, setting: Setting) -> str:
        """Return the recipe that trains the model of a setting; "" if there is none."""
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
        raise AttributeError(f"a system is immutable: make a new system by system.replace({name}=…)")

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
        changed = (f"{name}={value!r}" for name, value in self._values.items() if value != self.schema[name].default)
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return its stages in order."""
        return tuple(self._stages.values())

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of its settings by name."""
        return dict(self._values)

    @property
    def settings(self) -> dict[str, Any]:
        """Return its settings as plain data, for cards and `run.json`."""
        return to_builtin(self._values)

    @property
    def fitted(self) -> dict[str, str]:
        """Return the sha256 of what each stage learned from the whole set, by the stage's name."""
        return {stage.name: stage.fitted for stage in self.stages if stage.fitted}

    @property
    def before_fit(self) -> list[str]:
        """List the stages that must run on the whole set before the last stage that learns can learn."""
        return max((self._before(stage) for stage in self.stages if stage.fit_inputs), key=len, default=[])

    def verifiers(self) -> tuple[str, list[Model]] | None:
        """Describe and list the models that must confirm a counterfactual: the models of the last stage that has any."""
        return next((answer for stage in reversed(self.stages) if (answer := stage.verifiers())), None)

    @classmethod
    def trainings(cls) -> dict[str, str]:
        """Map each setting that trains a model on the rows to the setting that names a model instead."""
        return {name: mark.instead for name, setting in cls.schema.items() if (mark := setting.marker(Trains))}

    @classmethod
    def works_on(cls) -> list[str]:
        """List the names of the tasks that it works on."""
        return [cls.task] if cls.task else [task.name for task in tasks().values() if task.rewriting]

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make the system with a named set of settings.

        Some values of a preset only fit a second value. If `changes` replaces the second value, the first is dropped: the
        preset's judges belong to its verifier. A mapping of hyper-parameters changes the values that it names and keeps the
        preset's other values.

        Args:
            name: a key of `presets`.
            changes: settings that differ from the preset; `task` also chooses the defaults of that task. `size` is not a setting:
                it chooses the models of a preset. "hub" has "1.5b" (the default) or "7b", its chat model; "offline" has, in
                systems with `sizes`, "small" (the default) or "base": models of the papers' size.

        Raises:
            ValueError: the system does not have this preset, or the size is unknown.
        """
        if name not in cls.presets:
            near = did_you_mean(name, cls.presets)
            raise ValueError(f"{cls.name} has no preset {name!r}: choose one of {', '.join(cls.presets)}{near}")
        size = changes.pop(SIZE, None)
        check_names(cls.__name__, changes, cls.schema)
        preset = {**cls.by_task.get(changes.get("task", ""), {}), **cls.presets[name]}
        if size is not None and name in cls.sizes:
            if size not in cls.sizes[name]:
                raise ValueError(f"size must be one of {', '.join(cls.sizes[name])} for the preset {name}, got {size}")
            preset |= cls.sizes[name][size]
        elif size is not None:
            preset = sized(preset, str(size), f"the preset {name} of {cls.name}")
        for setting in cls.schema.values():
            mark = setting.marker(GoesWith)
            if mark and mark.setting in changes and preset.pop(setting.name, None) and setting.name not in changes:
                unused = "%s: the preset's %r is dropped, because it goes with the preset's own %s"
                log.warning(unused, cls.name, setting.name, mark.setting)
            if setting.marker(Trains) and setting.name in changes:
                changes[setting.name] = merged(setting.name, changes[setting.name], preset.get(setting.name, setting.default))
        return cls(**{**preset, **changes})

    def replace(self, **changes: Any) -> Self:
        """Return a system with changed settings.

        A stage keeps what it learned if its settings, and those of the stages that filled the columns it learned from, are equal.
        With another `task`, settings that have the old task's defaults get those of the new task.
        """
        old, new = (self._defaults(task) for task in (self._values.get("task"), changes.get("task", self._values.get("task"))))
        values = {name: new[name] if value == old[name] != new[name] else value for name, value in self._values.items()}
        system = type(self)(**{**values, **changes})
        changed = {name for name, stage in self._stages.items() if not _same_settings(stage, system._stages[name])}
        kept = {name: stage for name, stage in self._stages.items() if not changed & {name, *self._before(stage)}}
        return system._with(kept)

    @classmethod
    def _defaults(cls, task: Any) -> dict[str, Any]:
        """Return the defaults of the settings for a task's rows."""
        given = cls.by_task.get(task, {})
        return {name: setting.validate(given[name]) if name in given else setting.default for name, setting in cls.schema.items()}

    def _with(self, stages: Mapping[str, Stage]) -> Self:
        """Return a system with some stages replaced."""
        new = object.__new__(type(self))
        new.__setstate__({"_values": self._values, "_stages": {**self._stages, **stages}})
        return new

    @classmethod
    def locate(cls, settings: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
        """Resolve the corpora in a setting such as {from: [{corpus: …}]} against a recipe's `data_dir`."""
        return {
            name: {**value, "from": [locate(corpus, data_dir) for corpus in value["from"]]}
            if isinstance(value, Mapping) and "from" in value
            else value
            for name, value in settings.items()
        }

    # --- running

    def fit(self, ds: Any, **map_kwargs: Any) -> Self:
        """Fit every stage that learns from the whole set, and return the fitted system.

        Args:
            ds: a `Dataset` or a stream; some stages may have filled their columns. A stage runs first if its columns are empty
                and a stage that learns needs them.
            map_kwargs: arguments of `Dataset.map`.

        Raises:
            StageError, ValueError: a stage can't learn from these rows.
        """
        ds = without_format(ds)
        system = self._for_rows(ds)
        ds = prepare(ds, system)
        filled = [name for name in system._stages if _is_filled(ds, system._stages[name])]
        return system._fit_steps(ds, run_now, Runner(), map_kwargs, filled)[0]

    def __call__(
        self, ds: Any, *, limit: int | None = None, watch: Watch | None = None, runner: Runner | None = None, checked: bool = False,
        **map_kwargs: Any,
    ) -> Any:  # fmt: skip
        """Prepare the rows, fit the stages that are not fitted, and run every stage, each with a progress bar.

        The outputs of an earlier run are cleared first: the system works on the rows as they were loaded. To make
        counterfactuals of counterfactuals, run it on the rows of `hfcf.core.expand.augmented(ds)`.

        Args:
            ds: a `Dataset`, a stream, or a dictionary of either by split.
            limit: the number of rows to work on; fitting reads all rows, unless `limit_before_fit` is true.
            watch: called with each stage and the function that runs it, to time it.
            runner: divides the rows over processes or machines; by default everything runs in this process.
            checked: whether `hfcf.core.preflight.check_system` was called for the system.
            map_kwargs: arguments of `Dataset.map`.

        Returns:
            The same rows with the columns of all stages.

        Raises:
            StageError: the rows can't be worked on: they are not a dataset, or a column is missing.
            ValueError: a model is missing, or `limit` is not a positive number.
        """
        check_limit(limit)
        if isinstance(ds, DatasetDict | IterableDatasetDict):
            options = {"limit": limit, "watch": watch, "runner": runner, **map_kwargs}
            return type(ds)({split: self(part, checked=checked or i > 0, **options) for i, (split, part) in enumerate(ds.items())})
        if not isinstance(ds, Dataset | IterableDataset):
            raise StageError(f"rows must be a Dataset, a DatasetDict or an IterableDataset, got {type(ds).__name__}: {CURE}")
        ds, watch, runner = without_format(ds), watch or run_now, runner or Runner()
        system = self._for_rows(ds)
        if not checked:
            check_system(system)
        check_rows(system, ds)
        ds = clear_outputs(prepare(ds, system), system.stages)
        if runner.main:
            warn_of_language(task_of(ds.features), first_rows(ds, limit))
        if self.limit_before_fit:
            ds = first_rows(ds, limit)
        system, ds, done = system._fit_steps(ds, watch, runner, map_kwargs)
        rest = [stage for name, stage in system._stages.items() if name not in done]
        ds = runner.map(first_rows(ds, limit), rest, watch, map_kwargs)
        return reject_duplicates(ds, system.stages[-1].name) if system.unique and isinstance(ds, Dataset) else ds

    def _fit_steps(
        self, ds: Any, watch: Watch, runner: Runner, map_kwargs: Mapping[str, Any], filled: Sequence[str] = ()
    ) -> tuple[Self, Any, list[str]]:
        """Fit each stage as soon as its columns are filled; return the system, the rows and the stages that ran."""
        system, done = self, list(filled)
        while unfitted := [stage for stage in system.stages if stage.fit_inputs and stage.fitted is None]:
            waiting = {stage.name: [name for name in system._before(stage) if name not in done] for stage in unfitted}
            for stage in unfitted:
                if not waiting[stage.name]:
                    trains = any(setting.marker(Trains) for setting in settings_of(type(stage)).values())
                    timed = partial(watch, FitStep(f"fit {stage.name}")) if trains else partial(run_now, stage)
                    with lines_of_log(partial("fit {}".format, stage.name)):
                        system = system._with({stage.name: runner.once(partial(timed, partial(stage.fit, ds)))})
            if todo := min((names for names in waiting.values() if names), key=len, default=[]):
                ds = runner.map(ds, [system._stages[name] for name in todo], watch, map_kwargs)
                done += todo
        return system, ds, done

    def _before(self, stage: Stage) -> list[str]:
        """List the stages that must run before a stage can learn: all up to the last that fills a column of its `fit_inputs`."""
        names = list(self._stages)
        earlier = names[: names.index(stage.name)]
        fillers = [i for i, name in enumerate(earlier) if set(self._stages[name].outputs) & set(stage.fit_inputs)]
        return earlier[: max(fillers, default=-1) + 1]

    def _for_rows(self, ds: Dataset | IterableDataset) -> Self:
        """Return the system for the rows' task, if it has a setting `task`."""
        if "task" not in self.schema or ds.features is None:
            return self
        return self.replace(task=task_of(ds.features).system_task)


def _same_settings(old: Stage, new: Stage) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in settings_of(type(old)))


def _is_filled(ds: Any, stage: Stage) -> bool:
    """Return whether a stage has filled a column in the first 1,000 rows."""
    rows = first_rows(ds.select_columns(list(stage.outputs)), 1000)
    return any(value is not None for row in rows for value in row.values())
