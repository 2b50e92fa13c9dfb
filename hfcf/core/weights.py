"""Report before anything loads which models a system loads: their licence, download and memory, and what is on this machine.

A fact comes from the files on this machine, else from the table of known checkpoints, else from the Hub. The Hub is asked only if
its offline mode is off. A fact that no source states is None: no number is guessed, and no weight is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hfcf.core import offline
from hfcf.core.public_models import checkpoint_of
from hfcf.core.model import Model, is_remote, source_of, weights_of
from hfcf.core.model_checks import FOLDERS, is_package
from hfcf.core.weight_files import count_numbers, is_complete, licence_in, licence_of, memory_of, setting_names, sizes, weight_names

ENDPOINT = "behind HFCF_LLM_URL"
HERE = ("yes", "installed", "converted")
"""The text for weights that need no download."""
TIMEOUT = 10.0
"""The time limit for an answer of the Hub, in seconds."""
_STANZA = "stanza:"
_SPACY = re.compile(r"[a-z]{2,3}_[a-z_]+_(sm|md|lg|trf)")
"""The names of spaCy's pipelines, which are packages and do not have Hub ids."""
_BF16 = 2


@dataclass(frozen=True)
class Weights:
    """The facts about the weights of one model before they are loaded.

    Args:
        model: the name, with its revision and its adapter.
        used_by: the settings that name it: "verifier", "judges[0]".
        licence: the licence of its card, and of the adapter's card; None if it is unknown.
        download_bytes: all that a machine without the weights downloads; 0 if nothing is downloaded, None if it is unknown.
        memory_bytes: the memory of its weights at bfloat16, without activations; an adapter is merged into them. 0 behind an
            endpoint, None if it is unknown.
        cached: "yes", "no" or "partly"; "installed" or "converted" for models from packages; "behind HFCF_LLM_URL".
        missing: what still has to be downloaded: names with their bytes, None if they are unknown.
        note: why a fact is unknown, or how to get what is missing; "" if there is nothing to note.
    """

    model: str
    used_by: tuple[str, ...]
    licence: str | None = None
    download_bytes: int | None = None
    memory_bytes: int | None = None
    cached: str = "no"
    missing: tuple[tuple[str, int | None], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Totals:
    """The bytes of several models: the remaining download, the memory of all, and how many models are missing from each sum."""

    download_bytes: int = 0
    memory_bytes: int = 0
    unknown_downloads: int = 0
    unknown_memory: int = 0


@dataclass(frozen=True)
class _Facts:
    """The facts about one repository or folder."""

    licence: str | None = None
    download: int | None = None
    memory: int | None = None
    cached: str = "no"
    present: int = 0
    """The bytes of the download that are on this machine."""
    note: str = ""


def list_weights(system: Any, more: Mapping[str, Model] | None = None) -> list[Weights]:
    """List the models that a system loads or asks, each once, with the facts about them. Nothing is loaded or downloaded.

    Args:
        system: the system; for a model that it trains on the rows, the base is listed.
        more: further models by name, such as the models of metrics.

    Returns:
        One `Weights` for each model, in the order of the stages.

    Source: `Model` and its settings; the Hub's cache; `hfcf.core.public_models`; `huggingface_hub.model_info`.

    >>> from hfcf.systems import system_class
    >>> weights = list_weights(system_class("masked_lm").preset("offline"))
    >>> [(one.model, one.used_by, one.download_bytes) for one in weights]
    [('hfcf:mlm', ('model',), 0)]
    """
    used: dict[Model, list[str]] = {}
    for name, model in [*_models_of(system), *(more or {}).items()]:
        # The same weights with other labels, formats and prompts are loaded once.
        names = used.setdefault(Model(model.name) if is_remote(model) else weights_of(model), [])
        if name not in names:
            names.append(name)
    return [_weights(model, tuple(names), _trainer(system, names)) for model, names in used.items()]


def total(weights: Iterable[Weights]) -> Totals:
    """Add up what still has to be downloaded, each repository once, and the memory of all models.

    >>> base = ("me/base", 100)
    >>> two = [Weights("me/base", ("a",), memory_bytes=50, missing=(base,)), Weights("b", ("b",), missing=(base, ("c", None)))]
    >>> total(two)
    Totals(download_bytes=100, memory_bytes=50, unknown_downloads=1, unknown_memory=1)
    """
    weights = list(weights)
    missing = {name: size for one in weights for name, size in one.missing}
    known = [size for size in missing.values() if size is not None]
    memory = [one.memory_bytes for one in weights if one.memory_bytes is not None]
    return Totals(sum(known), sum(memory), len(missing) - len(known), len(weights) - len(memory))


def size_text(number: int | None) -> str:
    """Write bytes in the unit that people read.

    >>> size_text(1_540_000_000), size_text(90_000_000), size_text(0), size_text(None)
    ('1.5 GB', '90 MB', '–', 'unknown')
    """
    if not number:
        return "unknown" if number is None else "–"
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}" if number < 10 * factor else f"{number / factor:.0f} {unit}"
    return f"{number / 1e3:.0f} kB"


def models_in_metrics(metrics: Mapping[str, Any]) -> dict[str, Model]:
    """Return the models that metrics load, by "METRIC.SETTING"."""
    return {f"{name}.{setting}": model for name, metric in metrics.items() for setting, model in metric.read_models().items()}


def _models_of(system: Any) -> Iterable[tuple[str, Model]]:
    """Yield the models of all stages by the names of the system's settings."""
    for part, stage in zip(system.parts.values(), system.stages, strict=True):
        for name, model in stage.read_models().items():
            own = name.partition("[")[0].partition(".")[0]
            yield part.names.get(own, own) + name[len(own) :], model


def _trainer(system: Any, names: Iterable[str]) -> str:
    """Return the recipe that trains the model of one of these settings; "" if there is none."""
    settings = [system.schema[own] for name in names if (own := name.partition("[")[0]) in system.schema]
    return next((recipe for setting in settings if (recipe := system.recipe_of(setting))), "")


def _weights(model: Model, names: tuple[str, ...], recipe: str) -> Weights:
    if is_remote(model):
        return Weights(model.name, names, download_bytes=0, memory_bytes=0, cached=ENDPOINT)
    given = [(model.name, model.revision), *([(model.adapter, None)] if model.adapter else [])]
    parts = {name + (f"@{revision}" if revision else ""): _facts(name, revision) for name, revision in given}
    base, *adapters = parts.values()
    missing = {name: facts for name, facts in parts.items() if facts.cached not in HERE and facts.download != 0}
    left = [(name, None if facts.download is None else max(0, facts.download - facts.present)) for name, facts in missing.items()]
    notes = [facts.note for facts in parts.values()]
    if recipe and any(facts.cached == "no" and facts.download == 0 and not facts.note for facts in parts.values()):
        notes.append(f"train it: hfcf train {recipe} --out {given[-1][0]} --set data_dir=FOLDER")
    return Weights(
        " + ".join(parts), names,
        licence=" + ".join(dict.fromkeys(known)) if all(known := [facts.licence or "" for facts in parts.values()]) else None,
        download_bytes=_sum(facts.download for facts in parts.values()), memory_bytes=base.memory,
        cached=base.cached if all(facts.cached in HERE for facts in adapters) else f"{base.cached}; adapter: {adapters[0].cached}",
        missing=tuple(left), note="; ".join(dict.fromkeys(filter(None, notes))),
    )  # fmt: skip


def _sum(amounts: Iterable[int | None]) -> int | None:
    added = list(amounts)
    return None if None in added else sum(filter(None, added))


def _facts(name: str, revision: str | None) -> _Facts:
    """Collect the facts about a model or an adapter."""
    if name.startswith("offline:"):
        return _offline(name.removeprefix("offline:"))
    if name.startswith(_STANZA):
        return _stanza(name.removeprefix(_STANZA))
    if name.startswith("hfcf:"):
        try:
            folder = Path(source_of(name))
        except (ValueError, OSError) as error:  # the package of the adapters is not installed, or has no such adapter
            return _Facts(download=0, note=str(error))
        return _local(folder, "installed") if folder.is_dir() else _Facts(download=0, note=f"this library has no {name}")
    if os.path.isdir(name):
        return _local(Path(name), "yes")
    if name.startswith(FOLDERS):
        return _Facts(download=0)
    if is_package(name):
        return _Facts(download=0, cached="installed")
    if _SPACY.fullmatch(name):
        return _Facts(note=f"python -m spacy download {name} gets spaCy's pipeline")
    return _hub(name, revision)


def _offline(name: str) -> _Facts:
    try:
        folder = offline.present(name)
        source = offline.check_installed(name)
    except (ValueError, FileNotFoundError) as error:
        return _Facts(download=0, note=str(error))
    facts = _local(folder, "installed" if folder == source else "converted")
    return facts if facts.licence else replace(facts, licence=licence_of(source))


def _local(folder: Path, cached: str) -> _Facts:
    numbers = count_numbers(folder)
    return _Facts(licence_of(folder), 0, None if numbers is None else memory_of(numbers), cached)


def _stanza(language: str) -> _Facts:
    """Say whether Stanza's folder has models of a language; their sizes are in no header."""
    root = os.environ.get("STANZA_RESOURCES_DIR") or Path.home() / "stanza_resources"
    there = any(Path(root, language).glob("*/*.pt"))
    return _Facts(cached="yes" if there else "no", note="" if there else f"stanza.download({language!r}) gets Stanza's models")


def _hub(name: str, revision: str | None) -> _Facts:
    """Collect the facts about a repository: from the cache, then from the table, then from the Hub."""
    from huggingface_hub import constants
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return _Facts(download=0, note=f"there is no folder {name}, and the Hub has no such names")
    facts = _cached(name, revision)
    known = checkpoint_of(name)
    if known is not None and revision == known.revision:
        facts = _fill(facts, licence=known.licence, download=known.download_bytes, memory=known.parameters * _BF16)
    if None in (facts.licence, facts.download, facts.memory) and not constants.HF_HUB_OFFLINE:
        facts = _ask_hub(facts, name, revision)
    return facts


def _fill(facts: _Facts, **found: Any) -> _Facts:
    """Set what is not known yet."""
    return replace(facts, **{key: value for key, value in found.items() if getattr(facts, key) is None})


def _cached(name: str, revision: str | None) -> _Facts:
    """Read what the Hub's cache has of a repository at a revision."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    root = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")
    ref = root / "refs" / (revision or constants.DEFAULT_REVISION)
    commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
    snapshot = root / "snapshots" / commit if commit else None
    if snapshot is None or not snapshot.is_dir():
        return _Facts(cached="partly" if any(root.glob("blobs/*.incomplete")) else "no")
    there = sizes(snapshot)
    facts = _Facts(licence_of(snapshot), cached="partly", present=sum(there.values()))
    if not is_complete(snapshot):
        return facts
    numbers = count_numbers(snapshot)
    return replace(facts, download=facts.present, memory=None if numbers is None else memory_of(numbers), cached="yes")


def _ask_hub(facts: _Facts, name: str, revision: str | None) -> _Facts:
    """Fill from the Hub's description of a repository what the machine and the table do not know."""
    from huggingface_hub import get_safetensors_metadata, model_info
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    from hfcf.core.hub_http import httpx

    try:
        info = model_info(name, revision=revision, timeout=TIMEOUT, files_metadata=True)
        files = {file.rfilename: file.size for file in info.siblings or []}
        weights = weight_names(files)
        numbers: Mapping[Any, int] = info.safetensors.parameters if info.safetensors else {}
        if weights and not numbers:
            numbers = get_safetensors_metadata(name, revision=revision, timeout=TIMEOUT).parameter_count
    except GatedRepoError:
        return replace(facts, note=f"{name} is gated: accept its terms on the Hub, and log in (hf auth login)")
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        what = f"no revision {revision} of {name}" if isinstance(error, RevisionNotFoundError) else f"no model {name} for you"
        return replace(facts, note=f"the Hub has {what}")
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        return replace(facts, note=f"the Hub could not be asked for {name}: {type(error).__name__}")
    if not weights:
        return replace(_fill(facts, licence=_licence(info)), note=f"{name} has no safetensors on the Hub")
    download = _sum(files[file] for file in [*weights, *setting_names(files)])
    return _fill(facts, licence=_licence(info), download=download, memory=memory_of(numbers))


def _licence(info: Any) -> str | None:
    return licence_in(info.card_data.to_dict()) if info.card_data else None
