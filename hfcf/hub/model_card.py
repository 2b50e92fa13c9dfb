"""The card of a trained model or adapter, written from its training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from hfcf.core.model import Model, commit, named
from hfcf.core.recipe import locate
from hfcf.hub.check_card import REPOSITORY
from hfcf.hub.citation import citation
from hfcf.hub.dataset_card import OWN
from hfcf.hub.found_card import restricted
from hfcf.hub.metrics_table import numbers
from hfcf.hub.render import render

_WHOLE = ("explainer", "masked_lm", "relation")
"""Kinds of training that store all that they need, whatever `tune` says."""


OFFLINE_BASES = {"minilm": "sentence-transformers/all-MiniLM-L6-v2", "smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct"}
"""The Hub's names of the offline models that are there as well; of the others there is none."""
_PIPELINES = {
    "verifier": "text-classification", "relation": "text-classification", "generator": "text-generation",
    "rewriter": "text-generation", "masked_lm": "fill-mask", "explainer": "token-classification",
}  # fmt: skip
_METRICS = {"accuracy": "accuracy", "macro_f1": "f1", "micro_f1": "f1", "bleu": "bleu", "chrf": "chrf"}
"""The Hub's name of a metric; others keep ours."""
_NO_RESULTS = {"majority", "claim only", "copy", "as shipped", "random token", "trained on", "sentences", "cloze"}
"""Scores of what the model is compared with, and counts: they stand in the card's table, and are no results of the model."""


def model_card(recipe: Mapping[str, Any], settings: Any, report: Mapping[str, Any], command: str, name: str = "") -> str:
    """Front matter that the Hub reads, with the scores as its `model-index`; training data, settings and scores.

    Args:
        recipe: the training recipe as it ran.
        settings: its `Hyperparameters`.
        report: what `scores.json` holds; `bias`, where it is there, are the bias probes.
        command: that trains it again.
        name: of the model; else the recipe's or its kind.
    """
    from hfcf.corpora import builder_class

    kind = recipe["train"]
    infos = [
        replace(builder_class(source["corpus"]).INFO, **restricted(locate(source, recipe.get("data_dir"))))
        for source in recipe["data"]
    ]
    start = settings.model
    base, whole = _base(start.name), kind in _WHOLE or settings.tune == "full"
    results = _results(recipe, report["scores"], _PIPELINES[kind])
    front = ModelCardData(
        license=_licence({info.licence for info in infos}, start.name),
        language=sorted({info.language for info, source in zip(infos, recipe["data"], strict=True) if source["corpus"] not in OWN})
        or None,
        base_model=base,
        base_model_relation=None if base is None else "finetune" if whole else "adapter",
        pipeline_tag=_PIPELINES[kind],
        library_name=_loaded_by(kind, whole, settings.tune),
        datasets=sorted({info.hub_id for info in infos if info.hub_id and "/" in info.hub_id}) or None,
        tags=["relation-extraction" if kind == "relation" else "fact-verification", "hfcf", f"hfcf-{kind}"],
        model_name=(name or recipe.get("name") or f"hfcf-{kind}") if results else None,
        eval_results=results or None,
    )
    return render(
        "model_card.md.jinja",
        front=front.to_yaml() + "\n",
        kind=kind,
        ways=recipe.get("ways", 3),
        prefixed=recipe.get("prefixed", False),
        pairs=recipe.get("pairs"),
        judge=_judge(recipe.get("judge")),
        wordnet=bool(recipe.get("wordnet")),
        command=command,
        data=[{**source, "title": info.title, "licence": info.licence} for source, info in zip(recipe["data"], infos, strict=True)],
        exclude=[source["corpus"] for source in recipe.get("exclude", [])],
        settings={**_settings(recipe, settings), **(recipe.get("explainer") or {}), **_mask(recipe)},
        model=start.name,
        commit=commit(start),
        adapter=named(Model(start.adapter)) if start.adapter else None,
        small=start.name.startswith("offline:"),
        whole=whole,
        report=report,
        scores=list(_flat(report["scores"])),
        bias=_bias(report["scores"]),
        probes=[(", ".join(path), value) for path, value in numbers(report.get("bias") or {})],
        forbidden=list(dict.fromkeys(info.title for info in infos if not info.republish)),
        citations=[*dict.fromkeys(info.citation.strip() for info in infos if info.citation), citation()],
    )


def _base(name: str) -> str | None:
    """The base model's name on the Hub, where it has one there.

    >>> _base("offline:minilm"), _base("offline:t5"), _base("FacebookAI/roberta-base"), _base("/models/mine")
    ('sentence-transformers/all-MiniLM-L6-v2', None, 'FacebookAI/roberta-base', None)
    """
    if name.startswith("offline:"):
        return OFFLINE_BASES.get(name.removeprefix("offline:"))
    return name if REPOSITORY.fullmatch(name) and not Path(name).exists() else None


def _loaded_by(kind: str, whole: bool, tune: str) -> str:
    """The library that reads the folder: what is patched or has a head of its own is read by this one alone.

    >>> _loaded_by("verifier", True, "full"), _loaded_by("generator", False, "lora"), _loaded_by("verifier", False, "lowrank")
    ('transformers', 'peft', 'hfcf')
    """
    if not whole:
        return "peft" if tune == "lora" else "hfcf"
    return "hfcf" if kind in ("explainer", "relation") else "transformers"


def _results(recipe: Mapping[str, Any], scores: Mapping[str, Any], task: str) -> list[EvalResult]:
    """The model's own scores, as the Hub's `model-index` has them: one data set for each that it was scored on."""
    from hfcf.corpora import builder_class, names

    asked = [*recipe.get("evaluate", ()), *([recipe["dev"]] if recipe.get("dev") else ())]
    sources = {source.get("name", source["corpus"]): source for source in asked}
    found = []
    for (where, *path), value in numbers(scores):
        if isinstance(value, int) or not math.isfinite(value) or _NO_RESULTS & {where, *path}:
            continue
        held, _, corpus = where.partition(": ")
        source = {"corpus": corpus} if held == "held out" and corpus else sources.get(where, {})
        info = builder_class(source["corpus"]).INFO if source.get("corpus") in names() else None
        *within, metric = path or [where]
        found.append(
            EvalResult(
                task_type=task,
                dataset_type=(info and info.hub_id) or source.get("corpus") or "held-out",
                dataset_name=f"{info.title}, {where}" if info else where,
                dataset_config=where,
                dataset_split="held_out" if where.startswith("held out") else source.get("split"),
                metric_type=_METRICS.get(metric, metric.replace(" ", "_")),
                metric_value=value,
                metric_name=", ".join([metric, *(part for part in within if part not in ("model", "trained", recipe["train"]))]),
            )
        )
    return found


def _bias(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the claims alone give away: the same model trained and tested without the evidence, beside the model and the majority.

    >>> _bias({"dev": {"2-way": {"verifier": {"accuracy": 0.9, "majority": 0.5}, "claim only": {"accuracy": 0.7}}}})
    [{'where': 'dev, 2-way', 'model': 0.9, 'claim_only': 0.7, 'majority': 0.5}]
    """
    found = []
    for where, ways in scores.items():
        for asked, engines in ways.items():
            if isinstance(engines, Mapping) and "claim only" in engines:
                model, alone = engines["verifier"], engines["claim only"]["accuracy"]
                told = {"model": model["accuracy"], "claim_only": alone, "majority": model["majority"]}
                found.append({"where": f"{where}, {asked}", **told})
    return found


def _settings(recipe: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    none_of_its = {"model", *(("tune", "rank") if recipe["train"] in _WHOLE else ())}
    return {field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in none_of_its}


def _judge(judge: Mapping[str, Any] | None) -> str | None:
    """What a rewriter's judge is called.

    >>> _judge({"model": {"name": "offline:minilm", "adapter": "hfcf:verifier"}})
    '`offline:minilm` with the adapter `hfcf:verifier`'
    """
    if not judge:
        return None
    model = Model.of(judge["model"])
    base = named(replace(model, adapter=None))
    return f"`{base}`" + (f" with the adapter `{named(Model(model.adapter))}`" if model.adapter else "")


def _mask(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {"mask": recipe["mask"]} if "mask" in recipe else {}


def _licence(licences: set[str], base: str) -> str:
    """What a model trained on corpora of these licences carries: their one licence, else "other".

    A base that is none of the offline models, whose licences leave that open, has one of its own that nothing here tells.

    >>> _licence({"mit"}, "offline:t5"), _licence({"cc-by-sa-3.0", "mit"}, "offline:t5"), _licence({"mit"}, "meta-llama/Llama-2-7b")
    ('mit', 'other', 'other')
    """
    return licences.pop() if len(licences) == 1 and base.startswith("offline:") else "other"


def _flat(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Nested scores as (where, numbers) rows."""
    told = {key: value for key, value in scores.items() if not isinstance(value, Mapping)}
    if told:
        yield ", ".join(path), "; ".join(f"{key} {value}" for key, value in told.items())
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*path, key))
