"""`hfcf run`: a recipe from the corpus's files to a published folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model, named
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import task_of
from hfcf.corpora.distractors import from_recipe
from hfcf.hub.existing_card import check_overwrite, read_restriction
from hfcf.metrics.shared.settings import check, listed, stage_of, taken, wanted
from hfcf.pipeline.profile import Clock
from hfcf.pipeline.publish import publish
from hfcf.systems import system_class

log = logging.getLogger(__name__)

_KEYS = {
    "name", "corpus", "data_dir", "data_files", "split", "role", "on_error", "options", "distractors", "system", "settings",
    "preset", "seed", "limit", "push", "metrics",
}  # fmt: skip


def run(
    recipe: str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    limit: int | None = None,
    **map_kwargs: Any,
) -> dict[str, Any]:
    """Run a recipe and write a dataset repository that `load_dataset(out)` and `load_dataset(out, "rejected")` read.

    Run again after a kill it completes without repeating a finished model call; run again on unchanged inputs it calls no model.

    Args:
        recipe: a file, the name of a recipe that ships with the library, or its content. With `push: REPO_ID` in it the folder is
            pushed to a private repository at the end.
        out: the folder.
        changes: "key=value" strings, as `--set` takes them.
        limit: run only the first rows, after fitting on all.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        What `run.json` in the folder holds. Its seconds, calls and tokens are those of this call: what an earlier, killed one did
        is in the caches, and with `num_proc` only the seconds of whole stages are known.

    Raises:
        RecipeError: an unknown key, or one that is missing.
        ValueError: the folder has a README that is not this library's.
        HubError: the recipe says `push`, and there is no token or the Hub refused; what was made is in the folder all the same.
    """
    content = content_of(recipe, changes)
    check_overwrite(out)
    if content.get("push"):
        _can_push(content)
    ds, system = opened(content)
    metrics = metrics_of(content, system)
    limit = content.get("limit") if limit is None else limit
    clock = Clock()
    rows = system(ds, limit=limit, watch=clock, **map_kwargs)
    if (map_kwargs.get("num_proc") or 1) > 1:
        clock.forget_models()
    found = publish(
        rows, Path(out),
        run={
            "name": content.get("name") or Path(out).name, "system": system.name, "task": system.task,
            "citation": system.citation, "corpus": content["corpus"], "split": str(content.get("split") or "train"),
            "role": content.get("role"), "preset": content["preset"], "seed": system.seed, "limit": limit,
            "settings": system.settings, "models": {**models(system), **measured_by(metrics, system.task)},
            "checked_by": checked_by(system), "stages": clock.stages,
        },
        recipe=content, corpus={**_front_matter(content["corpus"]), **read_restriction(content)},
        command=recipes.command("run", recipe, out, changes, limit), stages=system.chain, metrics=metrics,
    )  # fmt: skip
    if not found["counterfactuals"]:
        log.warning("no counterfactual was accepted: the funnel in %s says why", Path(out) / "report.html")
    if content.get("push"):
        from hfcf.hub.push import push

        push(out, content["push"])
    return found


def _can_push(content: Mapping[str, Any]) -> None:
    """Raise, before hours of work, what would only be raised after them."""
    from hfcf.hub.contents import forbids_republishing
    from hfcf.hub.push import check_name, require_token

    if not isinstance(content["push"], str):
        raise recipes.RecipeError(f"push: {content['push']!r}: give the repository's name, NAMESPACE/NAME")
    check_name(content["push"])
    if forbids_republishing(read_restriction(content), content["corpus"]):
        raise recipes.RecipeError(f"push: the licence of {content['corpus']} forbids to republish its rows: take the key out")
    require_token()


def opened(content: Mapping[str, Any]) -> tuple[Dataset, System]:
    """The recipe's rows and its system.

    Raises:
        RecipeError: there are no rows, or the system works on those of another task; and see `system_of`.
    """
    ds, system = load(content), system_of(content)
    if (task := task_of(ds.features).name) != system.task:
        raise recipes.RecipeError(f"{content['system']} works on {system.task} rows; {content['corpus']} has {task} rows")
    if not len(ds):
        raise recipes.RecipeError(f"{content['corpus']}: the split has no rows")
    return ds, system


def load(content: Mapping[str, Any]) -> Dataset:
    """The recipe's rows."""
    given = {key: content[key] for key in ("data_dir", "data_files", "role", "on_error") if content.get(key) is not None}
    split = str(content.get("split") or "train")
    if content["corpus"] in corpora.names():
        recipes.check(content.get("options") or {}, corpora.builder_class(content["corpus"]).OPTIONS, "options")
    ds = corpora.load(content["corpus"], split=split, **given, **(content.get("options") or {}))
    return from_recipe(ds, content.get("distractors"))


def system_of(content: Mapping[str, Any]) -> System:
    """The recipe's system, with its preset and settings."""
    cls = system_class(content.get("system", ""))
    settings = dict(content.get("settings") or {})
    recipes.check(settings, [field.name for field in fields(cls) if field.name != "fitted"], "settings")
    given = {**settings, **({"seed": content["seed"]} if "seed" in content else {})}
    recipes.check_types(given, {field.name: str(field.type) for field in fields(cls)}, "settings")
    needed = [field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING]
    if content["preset"] == "paper" and (absent := [name for name in needed if name not in settings]):
        raise recipes.RecipeError(
            f"the preset 'paper' names no {absent[0]}, which you train (hfcf train): --set settings.{absent[0]}=FOLDER, "
            "or --set preset=offline"
        )
    try:
        return cls.preset(content["preset"], **{"seed": content.get("seed", 13), **settings})
    except (TypeError, ValueError) as error:
        raise recipes.RecipeError(f"settings: {error}") from error


def models(system: System | Stage) -> dict[str, str]:
    """Which weights a system (or a stage) reads, with their revision and adapter."""
    found = {}
    for field in fields(system):
        value = getattr(system, field.name)
        model = value if isinstance(value, Model) else getattr(value, "model", None)
        if isinstance(model, Model):
            found[field.name] = named(model)
    return found


def measured_by(metrics: Mapping[str, Mapping[str, Any]], task: str) -> dict[str, str]:
    """Which weights metrics read, as `models` tells them, by "METRIC.SETTING".

    >>> measured_by({"minimality": {}, "fluency": {"model": {"name": "offline:smollm2"}}}, "relation")
    {'fluency.model': 'offline:smollm2'}
    """
    found: dict[str, str] = {}
    for name, its in metrics.items():
        settings = dict(its)
        taken(name, settings)
        found |= {f"{name}.{which}": model for which, model in models(stage_of(name, task, settings)).items()}
    return found


def metrics_of(content: Mapping[str, Any], system: System) -> dict[str, dict[str, Any]]:
    """What a recipe measures, {metric: settings}: by default what needs no model, and nothing if it says `metrics: {}`.

    The flip rate's verifier must not be the model that the system filters by.

    Raises:
        RecipeError: there is no such metric, setting, evaluation set or folder of weights.
        StageError: it says nothing of the system's task, or would ask the model that filtered.
    """
    metrics = wanted(content.get("metrics"))
    if "flip_rate" in metrics and (own := checker(system)) is not None:
        metrics["flip_rate"]["filtered_by"] = [*listed(metrics["flip_rate"].get("filtered_by")), own]
    check(metrics, system.task)  # before hours of work, not after them
    return metrics


def checker(system: System) -> Model | None:
    """The model named in a system's settings by which it keeps what it gives their label; None: none, or one that it trains.

    >>> checker(system_class("coco")(indicator="mine")), checker(system_class("ccg")(indicator="mine"))
    (Model(name='mine', revision=None, adapter=None, dtype='auto'), None)
    """
    consistent = getattr(system, "consistency", False)
    return getattr(system, "verifier", None) or (getattr(system, "indicator", None) if consistent else None)


def checked_by(system: System) -> str | None:
    """The model by which a system keeps the counterfactuals that it gives their label, in words; None: it keeps all.

    >>> checked_by(system_class("mice")()), checked_by(system_class("coco")(indicator="mine")), checked_by(system_class("ccg")())
    ('the base model that was trained on these rows', 'the base model, the indicator named above,', None)
    """
    if getattr(system, "verifier", None) is not None:
        return "the verifier named above"
    if not getattr(system, "consistency", False):
        return None
    return "the base model, the indicator named above," if checker(system) else "the base model that was trained on these rows"


def content_of(recipe: str | Path | Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """A recipe's content with its preset and the changes applied, its keys checked."""
    if isinstance(recipe, Mapping):
        content, where = recipes.changed(deepcopy(dict(recipe)), changes), "the recipe"
    else:
        path = recipes.find(str(recipe))
        content, where = recipes.read(path, changes), path.name
    recipes.check(content, _KEYS, where)
    for key in ("corpus", "system"):
        if key not in content:
            raise recipes.RecipeError(f"{where}: the key {key!r} is missing")
    return content


def _front_matter(name: str) -> dict[str, Any]:
    info = corpora.builder_class(name).INFO
    told = {key: getattr(info, key) for key in ("title", "licence", "hub_id", "language", "paper", "citation", "republish")}
    return {**told, "labels": list(info.labels.values())}
