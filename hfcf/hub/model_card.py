"""The card of a trained model or adapter, written from its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import yaml

from hfcf.engines.model import Model
from hfcf.hub.render import render


def model_card(recipe: Mapping[str, Any], settings: Any, report: Mapping[str, Any], command: str) -> str:
    """Front matter that the Hub reads, training data, settings and scores.

    Args:
        recipe: the training recipe as it ran.
        settings: its `Hyperparameters`.
        report: what `scores.json` holds.
        command: that trains it again.
    """
    from hfcf.corpora import builder_class

    infos = {source["corpus"]: builder_class(source["corpus"]).INFO for source in recipe["data"]}
    front = {
        "license": _licence({info.licence for info in infos.values()}),
        "language": ["en"],
        "base_model": settings.model.name,
        "datasets": [info.hub_id for info in infos.values() if info.hub_id],
        "tags": ["relation-extraction" if recipe["train"] == "relation" else "fact-verification", f"hfcf-{recipe['train']}"],
    }
    return render(
        "model_card.md.jinja",
        front=yaml.safe_dump(front, sort_keys=False),
        kind=recipe["train"],
        ways=recipe.get("ways", 3),
        prefixed=recipe.get("prefixed", False),
        pairs=recipe.get("pairs"),
        judge=_judge(recipe.get("judge")),
        wordnet=bool(recipe.get("wordnet")),
        command=command,
        data=[
            {**source, "title": infos[source["corpus"]].title, "licence": infos[source["corpus"]].licence}
            for source in recipe["data"]
        ],
        exclude=[source["corpus"] for source in recipe.get("exclude", [])],
        settings={**_settings(recipe, settings), **(recipe.get("explainer") or {}), **_mask(recipe)},
        model=settings.model.name,
        adapter=settings.model.adapter,
        report=report,
        scores=list(_flat(report["scores"])),
    )


def _settings(recipe: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    none_of_its = {"model", *(("tune", "rank") if recipe["train"] in ("explainer", "masked_lm", "relation") else ())}
    return {field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in none_of_its}


def _judge(judge: Mapping[str, Any] | None) -> str | None:
    """What a rewriter's judge is called.

    >>> _judge({"model": {"name": "offline:minilm", "adapter": "hfcf:verifier"}})
    '`offline:minilm` with the adapter `hfcf:verifier`'
    """
    if not judge:
        return None
    model = Model.of(judge["model"])
    return f"`{model.name}`" + (f" with the adapter `{model.adapter}`" if model.adapter else "")


def _mask(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {"mask": recipe["mask"]} if "mask" in recipe else {}


def _licence(licences: set[str]) -> str:
    """What a model trained on corpora of these licences carries: their one licence, else "other".

    >>> _licence({"cc-by-sa-3.0"}), _licence({"cc-by-sa-3.0", "mit"})
    ('cc-by-sa-3.0', 'other')
    """
    return licences.pop() if len(licences) == 1 else "other"


def _flat(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Nested scores as (where, numbers) rows."""
    numbers = {key: value for key, value in scores.items() if not isinstance(value, Mapping)}
    if numbers:
        yield ", ".join(path), "; ".join(f"{key} {value}" for key, value in numbers.items())
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*path, key))
