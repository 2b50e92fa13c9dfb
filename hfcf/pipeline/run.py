"""`hfcf run`: a recipe from the corpus's files to a published folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model, named
from hfcf.core.model_facts import models_of
from hfcf.core.paths import hold_folder
from hfcf.core.preflight import check_system
from hfcf.core.public_models import SIZE
from hfcf.core.runner import Runner, Watch, check_limit
from hfcf.core.settings import models_in
from hfcf.core.system import System
from hfcf.core.task import Task, task_of
from hfcf.core.workers import launched_processes
from hfcf.corpora.custom.columns import LayoutError
from hfcf.hub.previous_run import check_result
from hfcf.hub.source import read_restriction, read_source
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.parsing import Metrics, parse_metrics, read_metrics
from hfcf.pipeline.decoys import show_decoys
from hfcf.pipeline.publish import publish
from hfcf.pipeline.recipes import RayResources, RowsRecipe, RunRecipe
from hfcf.pipeline.shards import PieceRunner, remove_shards
from hfcf.pipeline.timing import Clock, Entry, add_costs
from hfcf.prompts import read_folder
from hfcf.systems import system_class
from hfcf.training.distractors import from_recipe

log = logging.getLogger(__name__)

ENGINES = ("local", "ray")
Before = Callable[[RunRecipe, Dataset, System, int | None], Sequence[Entry] | None]


def run(
    recipe: str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    limit: int | None = None,
    overwrite: bool = False,
    watch: Watch | None = None,
    engine: str = "local",
    before: Before = lambda *_: None,
    **map_kwargs: Any,
) -> dict[str, Any]:
    """Run a recipe and write a dataset repository that `load_dataset(out)` and `load_dataset(out, "rejected")` read.

    Run again after a stop or a kill, it continues without repeating a finished model call; on unchanged inputs, it calls no model.

    Args:
        recipe: a file, the name of a recipe that ships with the library, or its content. With the key `push: REPO_ID` the folder is
            pushed to a private repository at the end.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        limit: run only the first rows, after fitting on all.
        overwrite: replace the result of another recipe, or of more rows, that the folder holds.
        watch: called as `watch(stage, step)` around every stage; it must return `step()`; see `System.__call__`. With
            `streaming: true` it is not called.
        engine: "local", or "ray": divide the rows over the actors of a Ray cluster, with the recipe's `ray`.
        before: called with the recipe, its rows, its system and the limit before the first stage; returns the costs of language
            models that it asked, by stage (`add_costs`), which count as the run's, or None.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        The content of `run.json` in the folder, in every process of a launcher. Its seconds, calls, tokens and cost are of this
        run alone, and totals of all processes of a launcher or actors of a cluster. With `num_proc` only the seconds of stages are
        counted.

    Raises:
        RecipeError: an unknown key, a missing key, or a value of another type.
        ExistingResultError: the folder holds the result of another recipe or of more rows, without `overwrite`; a ValueError.
        FolderInUseError: another process writes to the folder; a ValueError.
        ValueError: the folder has a README that is not this library's; `limit` is not a number of rows.
        HubError: the recipe has `push`, and there is no token or the Hub refused; the result is still in the folder.
    """
    check_limit(limit)
    parsed = read_recipe(recipe, changes)
    content = parsed.model_dump(exclude_unset=True)
    runner = choose_runner(engine, parsed, Path(out))
    limit = parsed.limit if limit is None else limit
    command = recipes.command("run", recipe, out, changes, limit)
    with hold_folder(out):
        return _run(
            parsed, content, Path(out), command, runner, limit=limit, overwrite=overwrite, watch=watch, before=before,
            map_kwargs=map_kwargs,
        )  # fmt: skip


def _run(
    parsed: RunRecipe, content: Mapping[str, Any], out: Path, command: str, runner: Runner, *, limit: int | None,
    overwrite: bool, watch: Watch | None, before: Before,
    map_kwargs: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Run a parsed recipe in a folder that this process, or the first one of a launcher, holds."""
    with runner.first():
        # A slip in the name of a setting is no other recipe.
        recipes.check_keys(_names(parsed.settings), system_class(parsed.system).schema, "settings")
        check_result(out, content, command, limit=limit, overwrite=overwrite, files=("run.json", "report.html"))
        if parsed.push:
            _check_push(parsed, read_restriction(content))
        ds, system = load_inputs(parsed, out)
        metrics = select_metrics(parsed.metrics, system)
        asked = before(parsed, ds, system, limit) or []
    corpus = {**_front_matter(parsed.corpus), **read_source(content), **read_restriction(content)}
    clock = Clock(workers=(map_kwargs.get("num_proc") or 1) > 1)
    timed = clock if watch is None or parsed.streaming else (lambda stage, step: watch(stage, partial(clock, stage, step)))
    rows = system(ds, limit=limit, watch=timed, runner=runner, checked=True, **map_kwargs)
    costs = runner.costs(clock.stages)
    costs = add_costs([*costs, *asked]) if asked else costs
    report = runner.once(lambda: publish(
        rows, Path(out),
        run={
            "name": parsed.name or Path(out).name, "system": system.name, "task": task_of(ds.features).name,
            "citation": system.citation, "corpus": corpora.corpus_name(parsed.corpus), "split": parsed.split or "train",
            "source": {key: corpus[key] for key in ("title", "licence")},
            "role": parsed.role, "preset": parsed.preset, "seed": system.seed, "limit": limit,
            "settings": system.settings, "models": read_models(system, metrics),
            "checked_by": next(iter(system.verifiers() or ()), None), "decoys": show_decoys(rows, system, parsed.decoys),
            **_user_prompts(system, metrics),
            "stages": costs,
        },
        recipe=content, corpus=corpus,
        command=command, stages=list(system.parts), metrics=metrics, pair_formats=parsed.pair_formats,
    ))  # fmt: skip
    if not runner.main:
        return report
    remove_shards(Path(out))
    if not report["counterfactuals"]:
        log.warning("no counterfactual was accepted: the funnel in %s gives the reasons", Path(out) / "report.html")
    if parsed.push:
        from hfcf.hub.push import push

        push(out, parsed.push)
    return report


def choose_runner(engine: str, recipe: RunRecipe, out: Path) -> Runner:
    """Return what runs a system's stages: a cluster, the processes of a launcher, or this process."""
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    launched = launched_processes() > 1
    if engine == "ray":
        if launched:
            raise ValueError("one process drives a Ray cluster: start it without accelerate launch")
        from hfcf.pipeline.ray_engine import Cluster

        return Cluster(out, recipe.ray or RayResources())
    if launched:
        from hfcf.pipeline.processes import Processes

        return Processes(out)
    return PieceRunner(out) if recipe.streaming else Runner()


def _check_push(recipe: RunRecipe, restrictions: Mapping[str, Any]) -> None:
    """Raise before the run what a push would raise after it."""
    from hfcf.hub.push import forbids_republishing, require_token
    from hfcf.hub.run_folder import check_name

    check_name(recipe.push or "")
    if forbids_republishing(restrictions, corpora.corpus_name(recipe.corpus)):
        raise recipes.RecipeError(f"push: the licence of {recipe.corpus} forbids to republish its rows: take the key out")
    require_token()


def read_recipe(recipe: str | Path | Mapping[str, Any], changes: Sequence[str] = ()) -> RunRecipe:
    """Read a run's recipe with its preset and the changes applied; see `run` for the arguments."""
    if isinstance(recipe, Mapping):
        return recipes.parse_recipe(RunRecipe, recipes.apply_changes(deepcopy(dict(recipe)), changes), "the recipe")
    path = recipes.find_recipe(str(recipe))
    content = recipes.read_recipe(path, changes)
    if other := next((key for key in ("train", "compare") if key in content), None):
        raise recipes.RecipeError(f"{path.name}: this is a recipe of hfcf {other}, not of hfcf run")
    return recipes.parse_recipe(RunRecipe, content, path.name)


def load_inputs(
    recipe: RunRecipe, *folders: str | Path, first: Callable[[System], None] = lambda _: None
) -> tuple[Dataset, System]:  # fmt: skip
    """Make a recipe's system, check all that can be checked before reading, and load the rows.

    `first` gets the system before it is checked.
    """
    named = recipe.corpus in corpora.names() and not recipe.columns  # a user's own columns decide their task
    known = corpora.builder_class(recipe.corpus).task() if named else None
    system = _system(recipe, known, folders, first) if known else None
    ds = load_rows(recipe)
    task = task_of(ds.features)
    system = system or _system(recipe, task, folders, first)
    if system.task not in (task.name, task.system_task):
        raise recipes.RecipeError(f"{recipe.system} works on {system.task} rows; {recipe.corpus} has {task.name} rows")
    if not len(ds):
        raise recipes.RecipeError(f"{recipe.corpus}: the split has no rows")
    return ds, system


def _system(recipe: RunRecipe, task: Task, folders: Sequence[str | Path], first: Callable[[System], None]) -> System:
    system = make_system(recipe.system, preset=recipe.preset, seed=recipe.seed, settings=recipe.settings, task=task.system_task)
    first(system)
    check_system(system, folders=folders)
    return system


def load_rows(recipe: RowsRecipe) -> Dataset:
    """Load the rows that a recipe names."""
    layout = {key: value for key in ("columns", "labels") if (value := getattr(recipe, key)) is not None}
    options = {**(recipe.options or {}), **layout}
    if recipe.corpus != corpora.PASSAGES:
        recipes.check_keys(options, corpora.builder_class(recipe.corpus).OPTIONS, "options")
    keys = ("data_dir", "data_files", "role", "on_error")
    arguments = {key: value for key in keys if (value := getattr(recipe, key)) is not None}
    split = recipe.split or (recipe.corpus.get("split") if isinstance(recipe.corpus, dict) else None) or "train"
    try:
        ds = corpora.load(recipe.corpus, split=split, **arguments, **options)
    except LayoutError as error:
        raise recipes.RecipeError(error.in_recipe(options=True)) from error
    if not recipe.split and (others := [name for name in _splits(recipe) if name != split]):
        log.warning("the split %s is read, %s is not: --set split=%s reads it instead", split, ", ".join(others), others[0])
    return from_recipe(ds, recipe.distractors.model_dump() if recipe.distractors else None)


def _splits(recipe: RowsRecipe) -> list[str]:
    """List the splits that a recipe's files, or its saved dataset, are said to have."""
    source = recipe.corpus if isinstance(recipe.corpus, dict) else {}
    if "split" in source:
        return []
    files = recipe.data_files or source.get("data_files")
    if isinstance(files, Mapping):
        return list(files)
    return recipes.saved_splits(recipe.corpus) if isinstance(recipe.corpus, str) else []


def make_system(
    name: str, *, preset: str = "paper", seed: int = 13, settings: Mapping[str, Any] | None = None, task: str | None = None
) -> System:
    """Make a system with a preset and settings, whose names and types are checked."""
    cls, settings = system_class(name), dict(settings or {})
    recipes.check_keys(_names(settings), cls.schema, "settings")
    of_rows = {"task": task} if task and "task" in cls.schema else {}
    try:
        return cls.preset(preset, **{"seed": seed, **of_rows, **settings})
    except (TypeError, ValueError) as error:
        raise recipes.RecipeError(f"settings: {error}") from error


def _names(settings: Mapping[str, Any] | None) -> list[str]:
    return [name for name in settings or {} if name != SIZE]


def read_models(system: System, metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Name the weights that a run reads, with revision and adapter, by setting; those of a metric by "METRIC.SETTING"."""
    return {setting: named(model) for setting, model in (*models_of(system), *metric_models(metrics).items())}


def metric_models(metrics: Mapping[str, Metric]) -> dict[str, Model]:
    """List the models that metrics read, by "METRIC.SETTING"."""
    return {f"{name}.{key}": model for name, metric in metrics.items() for key, model in metric.read_models().items()}


def _user_prompts(system: System, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """Return the prompts of the user's own that a run asks, as texts by setting and file; {} without any."""
    named = {
        **system.values,
        **{f"{name}.{key}": value for name, metric in metrics.items() for key, value in metric.settings.items()},
    }
    folders = {name: model.prompts for name, model in models_in(named) if model.prompts}
    if folder := system.values.get("prompts"):
        folders["prompts"] = folder
    return {"prompts": {name: read_folder(folder) for name, folder in folders.items()}} if folders else {}


def select_metrics(metrics: Metrics | None, system: System) -> dict[str, Metric]:
    """Make the stages of a recipe's metrics and check them: by default the metrics that need no model; none for `{}`.

    The flip rate's verifier must not be one of the models that the system filters by.
    """
    selected = read_metrics(metrics, system.task)
    _, verifiers = system.verifiers() or ("", [])
    if "flip_rate" in selected and verifiers:
        given = selected["flip_rate"].get("filtered_by") or []
        selected["flip_rate"]["filtered_by"] = [*(given if isinstance(given, list | tuple) else [given]), *verifiers]
    return parse_metrics(selected, system.task)


def _front_matter(name: Any) -> dict[str, Any]:
    info = corpora.builder_class(name).INFO
    keys = ("title", "licence", "hub_id", "language", "paper", "citation", "republish", "request", "release")
    return {**{key: getattr(info, key) for key in keys}, "labels": list(info.labels.values())}
