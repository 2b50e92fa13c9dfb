"""`hfcf run --dry-run`: list the models, check everything, try the first rows, and estimate the cost of a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core.funnel import funnel, short
from hfcf.core.model import is_prompted
from hfcf.core.model_facts import ENDPOINT, ModelFacts, list_models
from hfcf.core.runner import check_limit
from hfcf.core.system import System
from hfcf.core.task import task_of
from hfcf.engines.llm.endpoint import concurrency
from hfcf.engines.llm.engine import LanguageModel
from hfcf.hub.ratings import describe_models, describe_rating
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import load_inputs, metric_models, read_recipe, select_metrics
from hfcf.pipeline.timing import Clock, Entry, total_of

ROWS = 3
"""The rows that every stage is tried on and that are shown."""
ITEMS = 3  # items of a list whose texts are shown
LONGEST = 60  # characters of such a text
FIT_ON = 200  # rows that a system is fitted to; the run fits it to all


def dry_run(
    recipe: str | Path | Mapping[str, Any], *, changes: Sequence[str] = (), limit: int | None = None,
    show: Callable[[list[ModelFacts]], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Run the first rows that could be read through a recipe without writing anything, and estimate the cost of all rows.

    The cost of `ROWS` rows is scaled up. Seconds in which weights were loaded are not scaled up, and are given apart.

    A system that trains models trains them on the first 200 rows only. The counts and minutes of a training are the dry run's, and
    are not scaled up.

    Answers of a language model, which cost money or seconds each, go to the request cache: neither the run nor another dry run asks
    for them again.
    A recipe that uses an endpoint tries as many rows as the endpoint gets requests at a time, `HFCF_LLM_CONCURRENCY`.

    Args:
        recipe: a file, the name of a recipe that ships with the library, or its content.
        changes: "key=value" strings, as `--set` takes them.
        limit: the rows of the run that is estimated.
        show: called with the models that will load, before anything is checked or loaded.
    """
    check_limit(limit)
    parsed = read_recipe(recipe, changes)
    models: list[ModelFacts] = []

    def first(system: System) -> None:
        models.extend(_models(parsed, system))
        show(models)

    return _try(parsed, *load_inputs(parsed, first=first), limit, models)


def estimate_requests(recipe: RunRecipe, ds: Dataset, system: System, limit: int | None) -> dict[str, Any] | None:
    """Estimate before a run what it will ask language models, as `dry_run` does; None if it asks none, or is as short itself."""
    asks = any(is_prompted(model) for stage in system.stages for model in stage.read_models().values())
    few = min(len(ds), limit or len(ds)) <= max(ROWS, concurrency())
    return None if few or not asks else _try(recipe, ds, system, limit, _models(recipe, system))


def _paid(entry: Entry) -> Entry | None:
    """Return the cost of a stage's language models alone, whose answers a run takes from the cache; None without any."""
    engines = {name: counts for name, counts in entry.get("engines", {}).items() if counts.get("attempts")}
    total = total_of(engines)
    return {"stage": entry["stage"], "seconds": total["model_seconds"], **total, "engines": engines} if engines else None


def _models(parsed: RunRecipe, system: System) -> list[ModelFacts]:
    return list_models(system, metric_models(select_metrics(parsed.metrics, system)))


def _try(parsed: RunRecipe, ds: Dataset, system: System, limit: int | None, models: Sequence[ModelFacts]) -> dict[str, Any]:
    """Run the first rows through a system, and estimate the cost of all that `limit` takes."""
    total = min(len(ds), limit or parsed.limit or len(ds))
    statuses = ds["status"] if "status" in ds.features else [None] * len(ds)
    readable = [i for i, status in enumerate(statuses) if not _rejects(status)]
    good = [i for i in readable if i < total]
    remote = any(facts.place == ENDPOINT for facts in models)
    batch = (good or range(total))[: max(ROWS, concurrency()) if remote else ROWS]
    fitted = [*batch, *(i for i in readable if i not in batch)][
        : len(batch) if system.limit_before_fit else max(FIT_ON, len(batch))
    ]
    clock = Clock()
    # Answers from the cache cost nothing, so the estimate would be 0; only a language model's are taken from it.
    cached = os.environ.get("HFCF_REQUEST_CACHE")
    os.environ["HFCF_REQUEST_CACHE"] = "off" if cached == "off" else "paid"
    try:
        rows = system(ds.select(fitted), limit=len(batch), watch=clock, checked=True, load_from_cache_file=False)
    finally:
        os.environ.pop("HFCF_REQUEST_CACHE") if cached is None else os.environ.update(HFCF_REQUEST_CACHE=cached)
    by_name, task = {stage.name: stage for stage in system.stages}, task_of(ds.features)
    stages: list[dict[str, Any]] = []
    for name, entry in {entry["stage"]: entry for entry in clock.stages}.items():
        if (stage := by_name.get(name)) is None:  # a training
            cost = {"calls": entry["calls"], "tokens": entry["tokens"], **_times(entry["seconds"])}
            stages.append({"stage": name, "reads": "", "fills": "", **cost})
            continue
        on_all = name in system.before_fit and not system.limit_before_fit
        tried = len(fitted) if on_all else len(batch)
        times = (len(readable) if on_all else len(good)) / tried
        columns = {"reads": ", ".join(stage.inputs), "fills": ", ".join(stage.outputs)}
        stages.append({"stage": name, "rows": tried, **columns, **_estimate(entry, times)})
    entries = funnel(ds.select(range(total)), ()) if total > len(good) else []
    reasons = [entry["examples"].get(reason, reason) for entry in entries for reason in entry["reasons"]]
    examples = []
    for row in rows.select(range(min(ROWS, len(rows)))):
        names = list(by_name)
        end = names.index(row["status"]["stage"]) + 1 if _rejects(row["status"]) and row["status"]["stage"] in names else None
        outcomes = [(name, describe_outcome(row, by_name[name])) for name in names[:end]]
        if not good:  # the row could not be loaded, and no stage saw it
            outcomes = [(row["status"]["stage"], f"rejected: {row['status']['reason']}")]
        source = {name: row[name] for name in ds.column_names}
        text, counterfactuals = task.segments(row)[0].text, row.get("counterfactuals") or []
        examples.append({"id": row["id"], "text": text, "row": source, "stages": outcomes, "counterfactuals": counterfactuals})
    loading = round(sum(entry.get("loading", 0.0) for entry in clock.stages), 1)
    return {
        "corpus": corpora.corpus_name(parsed.corpus), "rows": total, "tried": len(batch), "stages": stages, "examples": examples,
        "asked": [paid for entry in clock.stages if (paid := _paid(entry))],
        "rejected": total - len(good), "reason": next(iter(reasons), None), "models": models, "loading": loading,
        "seconds": sum(entry["seconds"] for entry in stages if entry["seconds"] is not None),
        "about": "; ".join(filter(None, (
            describe_rating(system.name, parsed.preset, system.settings), describe_models(facts.model for facts in models)
        ))),
    }  # fmt: skip


def _rejects(status: Mapping[str, Any] | None) -> bool:
    return status is not None and status["accepted"] is False


def _estimate(entry: Mapping[str, Any], times: float) -> dict[str, Any]:
    """Estimate the cost of a stage on all rows from its cost in the dry run, where answers from the cache cost nothing."""
    calls, answered = entry["calls"], entry["calls"] + entry["cached"]
    if answered and not calls:
        return {"calls": round(answered * times), "tokens": None, "minutes": None, "seconds": None}
    each = times * answered / calls if calls else times
    outside = entry["seconds"] - entry.get("loading", 0.0) - entry["model_seconds"]  # encoding, a search's tables, looking words up
    model = entry.get("engines", {}).get(LanguageModel.__name__, {})
    asked = {"requests": round((model["calls"] + model["cached"]) * times)} if model else {}
    if model.get("calls"):
        asked["request_seconds"] = round(model["model_seconds"] / model["calls"], 2)
    remote = {name: round(entry[name] * each, digits) for name, digits in (("attempts", None), ("cost", 4)) if name in entry}
    seconds = entry["model_seconds"] * each + max(0.0, outside) * times
    return {"calls": round(answered * times), "tokens": round(entry["tokens"] * each), **_times(seconds), **asked, **remote}


def _times(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "minutes": round(seconds / 60, 1)}


def describe_outcome(row: Mapping[str, Any], stage: Any) -> str:
    """Describe the outcome of a stage for a row in words."""
    if _rejects(row["status"]) and row["status"]["stage"] == stage.name:
        return f"rejected: {row['status']['reason']}"
    filled = {column: row[column] for column in stage.outputs if row[column] is not None}
    parts = [_candidates(value, stage) if column == "candidates" else _short(column, value) for column, value in filled.items()]
    return "; ".join(parts) or "not reached"


def _candidates(candidates: Sequence[Mapping[str, Any]], stage: Any) -> str:
    """Count the candidates of a row that a stage rejected, and give the commonest reason."""
    reasons = Counter(
        short(status["reason"])
        for status in (candidate["status"] for candidate in candidates)
        if _rejects(status) and status["stage"] == stage.name
    )
    if not reasons:
        return "rejects no candidate"
    (reason, _), *others = reasons.most_common()
    return f"rejects {reasons.total()} of {len(candidates)} candidates, {'most ' if others else ''}because: {reason}"


def _short(column: str, value: Any) -> str:
    """Write a value in words: for a list, the number of items and the texts of the first items."""
    if isinstance(value, Mapping):
        value = [item for item in value.values() if item]
    if isinstance(value, list):
        texts = [text for item in value[:ITEMS] if (text := _item(item))]
        value = str(len(value)) + (f" ({', '.join(texts)}{' …' if len(value) > ITEMS else ''})" if texts else "")
    return f"{column.replace('_', ' ')}: {value}"


def _item(item: Any) -> str:
    """Return the text of an item: itself, its text, or its change; "" for a long text, such as a passage, and for an index."""
    if isinstance(item, int):
        return ""
    if isinstance(item, Mapping):
        changes = "before" in item and "after" in item
        item = f"{str(item['before']).strip()} → {str(item['after']).strip()}" if changes else item.get("text") or ""
    return str(item) if len(str(item)) <= LONGEST else ""
