"""Several metrics over one set of counterfactuals, and the cheap ones over what a filter took away."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from datasets import Dataset, Features, concatenate_datasets

from hfcf import corpora, edits, schema
from hfcf import recipe as recipes
from hfcf.engines.model import Model
from hfcf.metrics import METRICS, load
from hfcf.metrics.summary import with_label_names
from hfcf.schema import task_of
from hfcf.stage import Stage, StageError, run_stage

log = logging.getLogger(__name__)

DEFAULT: dict[str, Any] = {"minimality": None, "diversity": None, "duplicates": None, "label_balance": None}
"""What a run measures if its recipe does not say: what needs no model."""
OF_SETS = ("label_balance",)
"""Metrics of whole sets, whose column says nothing of its row that the label does not: a run does not publish it."""
OF_CANDIDATES = ("minimality", "diversity")
"""Metrics of single rows that need no model: those of rejected candidates, too."""
Metrics = Mapping[str, Mapping[str, Any] | None]
"""{metric: its settings, or null}."""


def measure(ds: Dataset, metrics: Metrics | None = None, **map_kwargs: Any) -> Dataset:
    """Map metrics over an expanded set: fit those that need it, then score every row.

    Args:
        ds: one row for each counterfactual, from `hfcf.expand` or a published set's `default` configuration.
        metrics: which ones, with the settings of their stages; `DEFAULT` if not given. Settings may be a recipe's: a model by its
            name or as a mapping, `ner` as a mapping, and `against` of "duplicates" as {name: rows, or a corpus as recipes name it}.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        The same rows with one typed column more for each metric, named as it. A row that a metric can't score has null there.

    Raises:
        RecipeError: there is no such metric or setting.
        StageError: a metric that says nothing of this task.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"id": "1", "claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> measure(Dataset.from_list([row]), {"minimality": None})["minimality"][0]
    {'distance': 1, 'share': 0.25}
    """
    metrics = DEFAULT if metrics is None else metrics
    check(metrics, task_of(ds.column_names))
    rows, found = with_label_names(ds), [ds]
    for name, settings in metrics.items():
        if name in ds.features:
            raise StageError(f"metrics: the column {name!r} is there already: take it out, or measure the others")
        measured = _measured(rows, name, dict(settings or {}), map_kwargs)
        found.append(measured.select_columns([name]))
    if not len(ds):  # what has no rows would not be joined
        features = Features({name: feature for part in found for name, feature in part.features.items()})
        return Dataset.from_dict({name: [] for name in features}, features=features)
    return concatenate_datasets(found, axis=1)


def check(metrics: Metrics, task: str) -> None:
    """Raise what `measure` would of any rows of a task: for a name or setting that is none, for a metric that refuses the task."""
    recipes.check(metrics, METRICS, "metrics")
    for name, settings in metrics.items():
        stage = stage_of(name, task, {key: value for key, value in (settings or {}).items() if key != "against"})
        if not hasattr(stage, "fit"):
            stage.check_fitted()


def _measured(rows: Dataset, name: str, settings: dict[str, Any], map_kwargs: Mapping[str, Any]) -> Dataset:
    fit = {"against": {key: _rows(its) for key, its in settings.pop("against", {}).items()}} if name == "duplicates" else {}
    stage = stage_of(name, task_of(rows.column_names), settings)
    for column in stage.inputs:
        if column not in rows.features:
            raise StageError(
                f"metrics: {name} reads the column {column!r}, which is missing; hfcf.expand(ds) makes rows that have it"
            )
    prepared = schema.prepare(rows.remove_columns([c for c in ("status",) if c in rows.features]), for_=stage)
    if not len(rows):
        return prepared
    fitted: Any = stage
    done = run_stage(prepared, fitted.fit(rows, **fit) if hasattr(stage, "fit") else stage, map_kwargs)
    if lost := [status for status in done["status"] if status and status["accepted"] is False]:
        log.warning("%s: %d of %d rows could not be scored; the first: %s", name, len(lost), len(rows), lost[0]["reason"])
    return done


def stage_of(name: str, task: str, settings: Mapping[str, Any]) -> Stage:
    """A metric's stage with settings as a recipe writes them.

    >>> stage_of("fluency", "verification", {"model": "offline:smollm2"}).model.name
    'offline:smollm2'
    """
    cls = load(name, stage=True)
    known = [field for field in cls.__dataclass_fields__ if field not in ("task", "fitted", "strict")]
    recipes.check(settings, known, f"metrics: {name}")
    made = dict(settings)
    for key in ("model", "verifier"):
        if key in made:
            made[key] = Model.of(made[key])
    if "filtered_by" in made:
        made["filtered_by"] = tuple(Model.of(one) for one in made["filtered_by"])
    if "ner" in made:
        from hfcf.metrics.entity_overlap import tagger

        made["ner"] = tagger(made["ner"])
    try:
        stage = cls(task=task, **made)
    except (TypeError, ValueError) as error:
        raise recipes.RecipeError(f"metrics: {name}: {error}") from error
    _ = stage.inputs  # which raises for a task that the metric says nothing of
    return stage


def _rows(given: Any) -> Dataset:
    """The rows of an evaluation set: as they are, or of a corpus as recipes name it."""
    if isinstance(given, Dataset):
        return given
    recipes.check(given, ("corpus", "data_dir", "data_files", "split", "on_error", "options"), "metrics: duplicates: against")
    known = {key: given[key] for key in ("data_dir", "data_files", "on_error") if key in given}
    return corpora.load(given["corpus"], split=str(given.get("split") or "validation"), **known, **given.get("options", {}))


def candidates(rejected: Dataset) -> Dataset:
    """The rejected candidates of a run as rows of an expanded set, so that metrics can score what a filter took away.

    Args:
        rejected: from `hfcf.rejected`, or a published set's `rejected` configuration.

    Returns:
        A row for each candidate whose edits fit its source, with the columns that metrics of single rows read.
    """
    found: list[dict[str, Any]] = []
    for row in rejected:
        if row["level"] != "candidate":
            continue
        source, one = json.loads(row["source"]), json.loads(row["candidate"])
        try:
            texts = edits.apply(source, one["edits"])
        except ValueError:  # rejected because its edits do not fit
            continue
        found.append({"id": f"{source['id']}:{len(found)}", **texts, "edits": one["edits"], "change": one["change"]})
    task = task_of(found[0]) if found else "verification"
    columns = ("id", "claim", "evidence", "tokens", "head", "tail")
    canonical = {name: feature for name, feature in schema.TASKS[task].items() if name in columns}
    features = Features({**canonical, "edits": schema.EDITS, "change": schema.TEXT})
    # Entities moved along with the edits; their types, which no edit has, are the source's and no metric reads them.
    return Dataset.from_list(found, features=features) if found else Dataset.from_dict({c: [] for c in features}, features=features)


def measure_candidates(made: Dataset, rejected: Dataset, metrics: Metrics | None = None, **map_kwargs: Any) -> Dataset:
    """The cheap metrics of all candidates before filtering: those accepted and those rejected.

    Args:
        made: the accepted counterfactuals, as `measure` returned them.
        rejected: see `candidates`.
        metrics: as `measure` takes them; those in `OF_CANDIDATES` are measured.
        map_kwargs: passed to `Dataset.map`.

    Returns:
        One row for each candidate, with the columns of these metrics alone.
    """
    cheap = {name: its for name, its in (DEFAULT if metrics is None else metrics).items() if name in OF_CANDIDATES}
    lost = candidates(rejected)
    if not cheap or not len(lost):
        return made.select_columns(list(cheap))
    return concatenate_datasets([made.select_columns(list(cheap)), measure(lost, cheap, **map_kwargs).select_columns(list(cheap))])
