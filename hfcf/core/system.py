"""`System`: an ordered chain of stages with the settings that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar

from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict

from hfcf.core.afresh import start_afresh
from hfcf.core.columns import as_tables, without_format
from hfcf.core.map_cache import map_rows
from hfcf.core.model import Model, is_remote
from hfcf.core.names import check_settings, did_you_mean
from hfcf.core.preflight import CURE, check
from hfcf.core.prepare import prepare
from hfcf.core.progress import quiet_map, stage_bar
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import task_of, tasks
from hfcf.core.twins import reject_twins
from hfcf.core.workers import end_workers


@dataclass(frozen=True, kw_only=True)
class System:
    """An ordered chain of stages, each an attribute of that name, with the settings they share.

    Args:
        seed: every stage's seed.
        strict: every stage's `strict`.
        fitted: the sha256 of what `fit` learned from the whole set; set by `fit`.
    """

    name: ClassVar[str]
    """The system's name in recipes, provenance and reports; by default the class's in lower case."""
    chain: ClassVar[tuple[str, ...]]
    """The stages' names, in order."""
    by_task: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """For a system with a setting `task`: the settings of its presets that differ by task."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}, "offline": {}}
    """Named sets of settings: "paper" is what the paper used, "offline" runs on models from the package registry alone."""
    flips: ClassVar[bool] = True
    """Whether its counterfactuals have another label than their source (else it only augments)."""
    limit_first: ClassVar[bool] = False
    """Whether a limit cuts the rows before fitting: where stages that cost money make what is fitted."""
    engines: ClassVar[tuple[type[Any], ...]] = ()
    """What its stages ask: their versions are part of what its rows depend on."""
    engines_of: ClassVar[Mapping[str, type[Any]]] = {}
    """What they ask besides where a setting, by its name, is not None."""
    VERSION: ClassVar[str] = "1"
    """Raise it when `fit_models` or `fit_resources` makes something else of equal rows; stages have versions of their own."""
    trainings: ClassVar[Mapping[str, str]] = {}
    """The settings that say how something is trained, and the setting that names the model instead; of these, a mapping changes
    what it names and leaves the preset's rest."""
    trained_by: ClassVar[Mapping[str, str]] = {}
    """The settings that name models of a user's own, and the recipe that trains each: errors print the commands."""
    remote: ClassVar[tuple[str, ...]] = ("verifier",)
    """The settings that may be "llm:NAME", a language model behind an endpoint; every other model is refused such a name."""
    needs_weights: ClassVar[Mapping[str, str]] = {}
    """Why a setting can't be one, where users ask: {setting: reason}."""
    citation: ClassVar[str] = ""
    """The paper's BibTeX, for the cards of what it makes."""

    seed: int = 13
    strict: bool = False
    fitted: str | None = None

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__.lower())

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        check_settings(cls, settings)
        return super().__new__(cls)

    @property
    def task(self) -> str:
        """The task of its rows: a class variable, or a setting of a system that works on the rows of several tasks."""
        raise NotImplementedError(f"{type(self).__name__} names no task")

    @classmethod
    def works_on(cls) -> list[str]:
        """List the tasks of the rows that it works on: one, or, with a setting `task`, all that say what may be rewritten."""
        if "task" in {field.name for field in fields(cls)}:
            return [task.name for task in tasks().values() if task.rewriting]
        return [str(cls.task)]

    @property
    def unique(self) -> bool:
        """Whether a counterfactual that equals one of an earlier source is rejected: False, or a setting of a system."""
        return False

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make the system with a named set of settings.

        Args:
            name: one of `presets`.
            changes: settings that differ; `task`, of a system that has it, also chooses what the preset says for that task.
        """
        if name not in cls.presets:
            near = did_you_mean(name, cls.presets)
            raise ValueError(f"{cls.__name__.lower()} has no preset {name!r}: choose one of {', '.join(cls.presets)}{near}")
        settings = {**cls.presets[name], **cls.by_task.get(changes.get("task", ""), {}), **changes}
        for training in cls.trainings:
            if isinstance(changed := settings.get(training), Mapping):
                if "seed" in changed:
                    raise ValueError(f"{training}: seed: the system's own seed is its trainings': set that")
                default = cls.presets[name].get(training, cls.__dataclass_fields__[training].default)
                model = {"model": Model.of(changed["model"])} if "model" in changed else {}
                settings[training] = replace(default, **{**changed, **model})
        return cls(**settings)

    @classmethod
    def locate(cls, settings: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
        """Put what settings name by a path inside the folder of a recipe's corpora; most systems have no such setting."""
        return dict(settings)

    def _as_models(self, *names: str) -> None:
        """Make `Model`s of settings that were given as a name or a recipe's mapping; None stays where it is the default."""
        for name in names:
            value = getattr(self, name)
            if value is not None or self.__dataclass_fields__[name].default is not None:
                object.__setattr__(self, name, model := Model.of(value))
                self._check_place(name, model)

    def _as_judges(self) -> None:
        """Make `Model`s of the setting `judges`, and check them and `certainty` beside `verifier`.

        Raises:
            ValueError: there is no verifier beside which they judge, one of them is named twice, or `certainty` is no probability.
        """
        given, verifier, certainty = (getattr(self, name) for name in ("judges", "verifier", "certainty"))
        several = [given] if isinstance(given, Model | str | Mapping) else given or ()  # a recipe has lists
        object.__setattr__(self, "judges", judges := tuple(map(Model.of, several)))
        for judge in judges:
            self._check_place("judges", judge)
        if not 0 <= certainty <= 1:
            raise ValueError(f"certainty={certainty}: a probability is from 0 to 1")
        if verifier is None and (judges or certainty):
            raise ValueError(f"{'judges' if judges else 'certainty'}: there is no verifier beside which they count: set verifier")
        everyone = [*([verifier] if verifier else []), *judges]
        if twice := next((one for i, one in enumerate(everyone) if one in everyone[:i]), None):
            name = " + ".join(part for part in (twice.name, twice.adapter) if part)
            raise ValueError(f"judges: {name} would agree with itself: name another model")

    def _check_place(self, name: str, model: Model) -> None:
        """Refuse a language model behind an endpoint where weights are read."""
        if not is_remote(model) or name in self.remote:
            return
        own = [one for one in self.remote if one in self.__dataclass_fields__]
        which = f"{', '.join(own[:-1])} and {own[-1]}" if len(own) > 1 else "".join(own) or "no setting"
        reason = f"; {why}" if (why := self.needs_weights.get(name)) else ""
        raise ValueError(f"{name}={model.name!r}: only {which} may be a language model behind an endpoint{reason}")

    def _as_engine(self, name: str, engine: type[Any]) -> None:
        """Make an engine of a setting that was given as a recipe's mapping, with "en" for a model that it does not name."""
        if isinstance(settings := getattr(self, name), Mapping):
            check_settings(engine, map(str, settings))
            object.__setattr__(self, name, engine(**{**settings, "model": Model.of(settings.get("model", "en"))}))
        elif settings is not None and not isinstance(settings, engine):
            cure = "{backend: spacy, model: offline:spacy}"
            raise ValueError(f"{name}: {settings!r} is no {engine.__name__}: give one, or a mapping such as {cure}")

    def _for_rows(self, ds: Dataset | IterableDataset) -> Self:
        """Return the system for the rows' task, if `task` is one of its settings."""
        if "task" not in {field.name for field in fields(self)} or ds.features is None:
            return self
        of_rows: dict[str, Any] = {"task": task_of(ds.features).system_task}
        return replace(self, **of_rows)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages in order."""
        return tuple(getattr(self, name) for name in self.chain)

    def fit_resources(self, ds: Dataset | IterableDataset) -> str | None:
        """Write what the system needs from the whole set; return the file's sha256, or None if it needs nothing."""
        return None

    @property
    def fit_after(self) -> tuple[str, ...]:
        """The stages whose output `fit_resources` reads: they run on the whole set before it."""
        return ()

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """Train the models that the stages in `fit_after` ask; return a new system that names them. CCG trains its indicator here.

        Args:
            ds: the rows before any stage.
        """
        return self

    def fit(self, ds: Dataset | IterableDataset) -> Self:
        """Learn from the whole set in one bounded pass; return a new system that names the result.

        Args:
            ds: rows on which the stages named in `fit_after` have run.
        """
        return replace(self, fitted=self.fit_resources(ds))

    def __call__(
        self, ds: Any, *, limit: int | None = None, watch: Watch | None = None, runner: Runner | None = None, **map_kwargs: Any
    ) -> Any:
        """Prepare, fit (unless fitted) and run every stage, with a progress bar each.

        What an earlier system, or some of the stages, made of the rows is set aside: the rows are worked on as they were loaded.
        To make counterfactuals of counterfactuals, run it on the rows of `hfcf.core.expand.augmented(ds)`.

        Args:
            ds: a `Dataset`, a `DatasetDict` (each split runs, and is fitted, on its own) or an `IterableDataset`.
            limit: run only the first rows, after fitting on all of them (or on them alone, where the system says `limit_first`).
            watch: called as `watch(stage, run)`, and with a `Step` in a stage's place where the system trains; must return
                `run()`. The recipe runner times stages with it.
            runner: where its steps run; by default here, one after the other.
            map_kwargs: passed to every `Dataset.map` (`num_proc`, `batch_size`, …).

        Returns:
            The rows with the columns of every stage, each decided: `status.accepted` is true or false. They have no format.

        Raises:
            StageError, ValueError: before the first stage, see `hfcf.core.preflight.check`; `limit` is no number of rows.
        """
        check_limit(limit)
        if isinstance(ds, DatasetDict | IterableDatasetDict):
            parts = {split: self(part, limit=limit, watch=watch, runner=runner, **map_kwargs) for split, part in ds.items()}
            return type(ds)(parts)
        if not isinstance(ds, Dataset | IterableDataset):
            kind = type(ds).__name__
            raise StageError(f"a system runs on a Dataset, a DatasetDict or an IterableDataset, and this is a {kind}: {CURE}")
        ds, watch, runner = without_format(ds), watch or (lambda stage, run: run()), runner or Runner()
        system, names = self._for_rows(ds), list(self.chain)
        check(system, ds)
        ds = start_afresh(prepare(ds, for_=system), system.stages)
        if self.limit_first:
            ds = first_rows(ds, limit)
        if self.fitted is None:
            training = watch if self.trainings else (lambda step, run: run())
            system = runner.once(partial(training, Step("fit_models"), partial(system.fit_models, ds)))
            ds = runner.map(ds, [getattr(system, name) for name in self.fit_after], watch, map_kwargs)
            names = [name for name in names if name not in self.fit_after]
            system = runner.once(partial(training, Step("fit_resources"), partial(system.fit, ds)))
        ds = first_rows(ds, limit)
        ds = runner.map(ds, [getattr(system, name) for name in names], watch, map_kwargs)
        return reject_twins(ds, system.chain[-1]) if system.unique and isinstance(ds, Dataset) else ds

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as plain data, for cards and `run.json`."""
        return {field.name: _setting(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class Step:
    """A step of a system that trains, timed like a stage: "fit_models" or "fit_resources"."""

    name: str


Watch = Callable[[Stage | Step, Callable[[], Any]], Any]
T = TypeVar("T")


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
            ds = watch(stage, partial(run_stage, ds, stage, map_kwargs))
        return ds

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up what the stages cost, in all processes."""
        return list(entries)


def check_limit(limit: Any) -> None:
    """Raise `ValueError` for a limit that is no number of rows.

    >>> check_limit(0)
    Traceback (most recent call last):
    ValueError: limit: a number of rows, 1 or more; this is 0
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1):
        raise ValueError(f"limit: a number of rows, 1 or more; this is {limit!r}")


def first_rows(ds: Any, limit: int | None) -> Any:
    """Return the first rows of a dataset or stream; all of them if there is no limit."""
    if limit is None:
        return ds
    return ds.take(limit) if isinstance(ds, IterableDataset) else ds.select(range(min(limit, len(ds))))


def run_stage(ds: Any, stage: Stage, map_kwargs: Mapping[str, Any]) -> Any:
    """Map one stage over prepared rows, with the types that it declares; a bar shows how far it is."""
    kwargs = {"batched": True, "batch_size": stage.batch_size, **map_kwargs}
    features = Features({**ds.features, **stage.columns()})
    # As Arrow, what a stage does not change is neither decoded nor encoded, and a stream passes rows on in batches.
    if isinstance(ds, IterableDataset):
        return as_tables(ds).with_format("arrow").map(stage, features=features, **kwargs).with_format(None)
    tables = ds.with_format("arrow")
    if (kwargs.get("num_proc") or 1) > 1:  # the bar of `map` hears of its workers' rows
        with end_workers():
            return map_rows(tables, stage, features=features, desc=stage.name, **kwargs).with_format(None)
    with quiet_map(), stage_bar(stage.name, len(ds)):
        return map_rows(tables, stage, features=features, **kwargs).with_format(None)


def _setting(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _setting(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_setting(item) for item in value]
    return value
