"""State what is known of the models of a system before they load: licence, size, classes, input order, and where they are.

A fact comes from the table of public models, from files on this machine, or from the Hub, which is asked only if its offline mode
is off. A fact that no source states is None, and no weight is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import yaml

from hfcf.core import offline
from hfcf.core.model import INPUTS_KEY, Model, is_remote, source_of, weights_of
from hfcf.core.model_checks import can_configure, find_cached, is_package
from hfcf.core.pretrained import read_tuned_config
from hfcf.core.public_models import public_model
from hfcf.core.safe_yaml import front_matter

ENDPOINT, LOCAL, HUB, LIBRARY, ABSENT = "behind HFCF_LLM_URL", "on this machine", "on the Hub", "in its library", "not found"
"""Where a model is. One on the Hub is downloaded when it is used; Stanza and packages such as spaCy's pipelines have their own."""
TIMEOUT = 10.0
"""The time limit for an answer of the Hub, in seconds."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known of one model before it loads.

    Args:
        model: the name, with its revision and its adapter.
        used_by: the settings that name it: "verifier", "judges[0]".
        place: `ENDPOINT`, `LOCAL`, `HUB`, `LIBRARY` or `ABSENT`.
        licence: the licence of its card, and of its adapter's; None if neither is known.
        parameters: the numbers in its weights, without those of an adapter.
        classes: a classifier's names of its classes, in the order of its outputs.
        inputs: the order in which a verifier reads claim and evidence.
        note: why a fact is not known, or how to get the model.
    """

    model: str
    used_by: tuple[str, ...] = ()
    place: str = LOCAL
    licence: str | None = None
    parameters: int | None = None
    classes: tuple[str, ...] = ()
    inputs: str | None = None
    note: str = ""


def list_models(system: Any, more: Mapping[str, Model] | None = None) -> list[ModelFacts]:
    """List the models that a system loads or asks, each once, with the facts about them. Nothing is loaded or downloaded.

    Args:
        system: the system; for a model that it trains on the rows, the base is listed.
        more: further models by name, such as the models of metrics.

    Returns:
        One `ModelFacts` for each model, in the order of the stages.

    Source: `Model`; `hfcf.core.public_models`; the cards and headers of files; `huggingface_hub.model_info`.

    >>> from hfcf.systems import system_class
    >>> [(facts.model, facts.used_by, facts.place) for facts in list_models(system_class("masked_lm").preset("offline"))]
    [('hfcf:mlm', ('model',), 'on this machine')]
    """
    used: dict[Model, list[str]] = {}
    for setting, model in [*models_of(system), *(more or {}).items()]:
        # The same weights with other labels, formats and prompts are loaded once.
        settings = used.setdefault(Model(model.name) if is_remote(model) else weights_of(model), [])
        if setting not in settings:
            settings.append(setting)
    return [find_facts(model, tuple(settings)) for model, settings in used.items()]


def find_facts(model: Model, used_by: tuple[str, ...] = ()) -> ModelFacts:
    """Collect the facts about one model."""
    if is_remote(model):
        return ModelFacts(model.name, used_by, ENDPOINT)
    parts = [_find_part(*part) for part in ((model.name, model.revision), (model.adapter, None)) if part[0]]
    licences = [part.licence or f"unknown for {part.model}" for part in parts] if any(part.licence for part in parts) else []
    places = [part.place for part in parts]
    return ModelFacts(
        " + ".join(part.model for part in parts), used_by,
        place=next((place for place in (ABSENT, HUB) if place in places), places[0]),
        licence=" + ".join(dict.fromkeys(licences)) or None, parameters=parts[0].parameters,
        note="; ".join(part.note for part in parts if part.note), **_read_classes(model, parts[0]),
    )  # fmt: skip


def write_number(number: int | None) -> str:
    """Write a number of parameters or bytes in millions or billions.

    >>> write_number(1_540_000_000), write_number(22_713_216), write_number(None)
    ('1.5 G', '23 M', 'unknown')
    """
    if number is None:
        return "unknown"
    return f"{number / 1e9:.1f} G" if number >= 1e9 else f"{number / 1e6:.0f} M"


def models_of(system: Any) -> Iterable[tuple[str, Model]]:
    """Yield the models of all stages by the names of the system's settings."""
    for part, stage in zip(system.parts.values(), system.stages, strict=True):
        for name, model in stage.read_models().items():
            setting = name.partition("[")[0].partition(".")[0]
            yield part.names.get(setting, setting) + name[len(setting) :], model


def _find_part(name: str, revision: str | None) -> ModelFacts:
    """Collect the facts about a model or an adapter alone."""
    title = name + (f"@{revision}" if revision else "")
    try:
        folder = _find_folder(name, revision)
    except (ValueError, OSError) as error:  # its package is not installed, or has no model of that name
        return ModelFacts(title, place=ABSENT, note=str(error))
    known = public_model(name)
    if known is not None and revision == known.revision:
        place = HUB if folder is None else LOCAL
        return ModelFacts(title, (), place, known.licence, known.parameters, known.labels, known.inputs if known.labels else None)
    if folder is not None:
        known_offline = offline.LICENCES.get(name.removeprefix("offline:")) if name.startswith("offline:") else None
        licence = known_offline or _read_licence(folder)
        return ModelFacts(title, (), LOCAL, licence, _count_parameters(folder))
    if name.startswith("stanza:") or is_package(name):
        return ModelFacts(title, place=LIBRARY)
    return _ask_hub(name, revision, title)


def _find_folder(name: str, revision: str | None) -> Path | None:
    """Return the folder of a model on this machine; None if it is not there."""
    if name.startswith("offline:"):
        return offline.present(name.removeprefix("offline:"))
    if name.startswith("hfcf:") or os.path.isdir(name):
        return Path(source_of(name))
    path = find_cached(name, revision)
    return None if path is None else path.parent


def _read_licence(folder: Path) -> str | None:
    """Return the licence that a folder's card names."""
    card = folder / "README.md"
    try:
        return _licence_in(front_matter(card.read_text(encoding="utf-8"))) if card.is_file() else None
    except (UnicodeDecodeError, yaml.YAMLError):  # a card that somebody else wrote
        return None


def _licence_in(card: Mapping[str, Any]) -> str | None:
    """Return the licence in the fields of a card; its own name where the Hub's list does not have it."""
    licence = (card.get("license_name") if card.get("license") == "other" else None) or card.get("license")
    return (", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)) if licence else None


def _count_parameters(folder: Path) -> int | None:
    """Count the numbers in a folder's weights from the headers of its safetensors; None if there are none."""
    from safetensors import SafetensorError, safe_open

    total = 0
    try:
        for path in sorted(folder.glob("*.safetensors")):
            with safe_open(path, "np") as weights:
                total += sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118, not a mapping
    except SafetensorError:  # a file that was cut off
        return None
    return total or None


def _read_classes(model: Model, base: ModelFacts) -> dict[str, Any]:
    """Return a classifier's class names and input order, from its configuration if that can be read."""
    found: dict[str, Any] = {"classes": base.classes, "inputs": model.inputs or base.inputs}
    if base.classes or base.place in (ABSENT, LIBRARY) or not can_configure(model):
        return found
    try:
        config = read_tuned_config(model)
    except (OSError, ValueError):  # of spaCy and Stanza, and of a repository that can't be reached
        return found
    if any(name.endswith("ForSequenceClassification") for name in config.architectures or ()):
        found["classes"] = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        found["inputs"] = found["inputs"] or getattr(config, INPUTS_KEY, None)
    return found


def _ask_hub(name: str, revision: str | None, title: str) -> ModelFacts:
    """Return what the Hub's description of a repository states."""
    from huggingface_hub import constants, model_info
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
    from huggingface_hub.utils import HFValidationError

    from hfcf.core.hub_http import httpx

    if constants.HF_HUB_OFFLINE:
        return ModelFacts(title, place=HUB)
    try:
        info = model_info(name, revision=revision, timeout=TIMEOUT)
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        missing = isinstance(error, HFValidationError | RepositoryNotFoundError) and not isinstance(error, GatedRepoError)
        return ModelFacts(title, place=ABSENT if missing else HUB, note=f"the Hub said of {name}: {type(error).__name__}")
    licence = _licence_in(info.card_data.to_dict()) if info.card_data else None
    return ModelFacts(title, (), HUB, licence, info.safetensors.total if info.safetensors else None)
