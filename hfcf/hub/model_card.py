"""Write the card of a trained model or adapter from its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData
from huggingface_hub.utils import HFValidationError, validate_repo_id

from hfcf.core.model import Model, commit, named, named_part
from hfcf.core.recipe import locate
from hfcf.core.safe_yaml import read_yaml
from hfcf.core.task import get_task
from hfcf.engines.verifier_inputs import CLAIM_FIRST
from hfcf.hub.render import citation, render, render_text
from hfcf.hub.source import read_restriction, read_source

_ANY_KIND = {
    "use": "To write texts that are labelled, filtered and trained on, inside this library. The texts can be false, and must not "
    "be read as facts.",
    "repeats": "a claim or their evidence",
    "imports": "from hfcf.core.model import Model",
    "example": "",
    "pipeline": "",
    "scores": "",
}
"""What `model_kinds.yaml` need not repeat."""
_SELF_CONTAINED = ("explainer", "masked_lm")
"""Kinds of training that store a full model, whatever `tune` is. A kind named like its task, a classifier with its own
head, does the same."""
_OWN = ("explainer", "graph")
"""Kinds of training, and of models, with an architecture of this library."""
OFFLINE_BASES = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2", "mpnet": "sentence-transformers/all-mpnet-base-v2",
    "qwen": "Qwen/Qwen2.5-Coder-1.5B-Instruct", "smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct",
}  # fmt: skip
"""The Hub's names of the offline models that are on the Hub as well."""
_PIPELINES = {
    "generator": "text-generation", "rewriter": "text-generation", "masked_lm": "fill-mask", "explainer": "token-classification",
    "structure_verifier": "text-generation",  # unless its recipe names a classifier or a graph
}  # fmt: skip
"""The Hub's task of a model by the kind of training; every other kind is a model of its task."""


def model_card(recipe: Mapping[str, Any], settings: Any, report: Mapping[str, Any], command: str) -> str:
    """Write the front matter that the Hub reads, and training data, settings and scores."""
    from hfcf.corpora import builder_class

    kind = recipe["train"]
    infos = [
        replace(builder_class(source["corpus"]).INFO, **{**read_source(files), **read_restriction(files)})
        for source in recipe["data"]
        for files in [locate(source, recipe.get("data_dir"))]
    ]
    start, task = settings.model, get_task(infos[0].task)
    own_head = kind == task.name
    self_contained = kind in _SELF_CONTAINED or own_head
    base, full = _find_base(start.name), self_contained or settings.tune == "full"
    pipeline = _PIPELINES.get(recipe.get("kind", kind), task.hub.categories[0])
    languages = {info.language for info in infos if info.release != "yours"}
    front = ModelCardData(
        license=_licence({info.licence for info in infos}, start.name), language=sorted(languages) or None, base_model=base,
        base_model_relation=None if base is None else "finetune" if full else "adapter", pipeline_tag=pipeline,
        library_name="hfcf" if own_head or {kind, recipe.get("kind")} & {*_OWN} else "transformers" if full else "peft",
        datasets=sorted({info.hub_id for info in infos if info.hub_id and "/" in info.hub_id}) or None,
        tags=[task.hub.tag, "hfcf", f"hfcf-{kind}"],
    )  # fmt: skip
    unused = {"model", *(("tune", "rank") if self_contained else ())}
    unused |= {"epochs"} if settings.max_steps else set()
    values_set = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in unused}
    shown = {name: value for name, value in values_set.items() if value is not None}
    shown |= {**(recipe.get("explainer") or {}), **(recipe.get("open_domain") or {})}
    shown |= {"mask": recipe["mask"]} if "mask" in recipe else {}
    values = dict(  # noqa: C408
        front=front.to_yaml() + "\n", name=recipe.get("name"), kind=kind, task=task.name, shared=task.shared,
        ways=recipe.get("ways") or 3, view=recipe.get("task", 3), form=recipe.get("kind", "seq2seq"), derived="derive" in recipe,
        prefixed=recipe.get("prefixed", False), pairs=recipe.get("pairs"), judge=_name_judge(recipe.get("judge")),
        wordnet=bool(recipe.get("wordnet")), command=command, settings=shown, exclude=recipe.get("exclude"),
        data=[
            {"half": recipe.get("half"), **source, "title": info.title, "licence": info.licence}
            for source, info in zip(recipe["data"], infos, strict=True)
        ],
        model=start.name, inputs=start.inputs or CLAIM_FIRST,
        commit=commit(start), adapter=named_part(start.adapter) if start.adapter else None,
        small=start.name.startswith("offline:"), full=full, report=report, scores=list(_flatten(report["scores"])),
        forbidden=list(dict.fromkeys(info.title for info in infos if not info.republish)),
        citations=[*dict.fromkeys(info.citation.strip() for info in infos if info.citation), citation()],
    )  # fmt: skip
    return render("model_card.md.jinja", texts=_describe_kind(kind, values), **values)


def _describe_kind(kind: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return what the card says of a kind of training, from `templates/model_kinds.yaml`."""
    kinds = read_yaml(files(__package__).joinpath("templates/model_kinds.yaml").read_text(encoding="utf-8"))
    return {name: render_text(text, **values) for name, text in {**_ANY_KIND, **kinds[kind]}.items()}


def _find_base(name: str) -> str | None:
    """Return the base model's name on the Hub, if the model has a base model there."""
    if name.startswith("offline:"):
        return OFFLINE_BASES.get(name.removeprefix("offline:"))
    try:
        validate_repo_id(name)
    except HFValidationError:
        return None
    return None if Path(name).exists() else name


def _name_judge(judge: Mapping[str, Any] | None) -> str | None:
    if not judge:
        return None
    model = Model.of(judge["model"])
    base = named(replace(model, adapter=None))
    return f"`{base}`" + (f" with the adapter `{named_part(model.adapter)}`" if model.adapter else "")


def _licence(licences: set[str], base: str) -> str:
    """Return the licence of a model trained on corpora of these licences: their only licence, else "other".

    The licences of the offline models allow any. The licence of any other base model is not known here.
    """
    return licences.pop() if len(licences) == 1 and base.startswith("offline:") else "other"


def _flatten(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    values = {key: value for key, value in scores.items() if not isinstance(value, Mapping)}
    if values:
        yield ", ".join(path), "; ".join(f"{key} {value}" for key, value in values.items())
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*path, key))
