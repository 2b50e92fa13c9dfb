"""Tables of settings: what a system's presets change, and the fields of a model."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from hfcf.core import describe, offline
from hfcf.core.bound_stage import COMMON_SETTINGS
from hfcf.core.docstrings import arguments, first_sentence
from hfcf.core.model import Model
from hfcf.systems import system_class
from parts.markdown import brief, table

SHARED = {
    "ner": "the tagger that finds entities",
    "num_beams": "beams of the search",
    "num_candidates": "how many texts are written or read for a row",
    "max_new_tokens": "tokens of the longest text that is written",
    "judges": "further models, which must agree with `verifier`",
    "certainty": "the probability that `verifier` and each of `judges` must give",
    "min_kept": "reject a text that shares fewer words with its source, as a share of the longer one",
    "fluency_model": "a decoder-only model that measures how fluent texts are",
    "max_perplexity_ratio": "with a `fluency_model`, reject a text of a greater perplexity, over its source's",
    "unique": "reject a counterfactual that equals one of an earlier source",
}
"""Settings that several systems have, and what they do."""


def shared_list() -> str:
    """List the settings that several systems have."""
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in SHARED.items())


def settings_list(name: str) -> str:
    """List the settings of a system: the paper's value, where other presets have another one, and what the docstring says."""
    lines, shared = [], []
    for one in describe.settings(system_class(name)):
        if one.name in COMMON_SETTINGS and not one.presets:
            continue
        others: dict[str, list[str]] = {}
        for preset, value in one.presets.items():
            others.setdefault(shorten(value), []).append(preset)
        paper = one.presets.get("paper", one.default)
        changed = [f"{', '.join(presets)} `{value}`" for value, presets in others.items() if presets != ["paper"]]
        stated = f"`{one.name}={shorten(paper)}`" if paper else f"`{one.name}`, no default"
        elsewhere = f" ({'; '.join(changed)})" if changed and "Model" not in one.type else ""
        if one.name in SHARED:
            shared.append(f"{stated}{elsewhere}")
        else:
            lines.append(f"- {stated}{elsewhere}: {brief(one.meaning)}")
    return "\n".join([*lines, *([f"- shared: {', '.join(shared)}"] if shared else [])])


def shorten(value: str) -> str:
    """Write a group of settings as a recipe does, and leave of hyper-parameters the model alone."""
    value = re.sub(r"^model=(.+?), (max_length|batch_size)=.*", r"{model: \1, …}", value)
    return re.sub(r"^backend=(\S+), model=(\S+)$", r"{backend: \1, model: \2}", value)


def offline_models_table() -> str:
    """List the models of the preset `offline` with their packages and licences."""
    packages = {**offline.REQUIREMENTS, **offline.BASE_REQUIREMENTS}
    rows = [
        (f"`offline:{name}`", licence, re.sub(r"(-part-?)\d+==.*$", r"\1…", packages[name].partition(" ")[0]).partition("==")[0])
        for name, licence in offline.LICENCES.items()
    ]
    return table(("name", "licence", "package"), rows)


def model_fields_table() -> str:
    """List the fields of `hfcf.Model` with their defaults."""
    meanings = arguments(Model)
    defaults = {one.name: "must be given" if one.default is MISSING else f"`{one.default!r}`" for one in fields(Model)}
    rows = [(f"`{name}`", value.replace("'", '"'), first_sentence(meanings[name])) for name, value in defaults.items()]
    return table(("field", "default", "meaning"), rows)
