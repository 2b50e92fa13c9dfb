"""Check, from files alone, that the weights of a `Model` exist, and how many tokens they read."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hfcf.core import offline
from hfcf.core.model import CHAT, Model, is_chat, is_prompted, is_remote, source_of
from hfcf.core.pretrained import UnsafeModel, read_tokenizer, refuse_pickles


class NoFolder(ValueError):
    """The folder of a model does not exist."""


class NotCached(ValueError):
    """Offline mode is on, and the Hub's cache does not hold a model."""


FOLDERS = ("/", "./", "../", "~", "out/")
"""The beginnings of names that are folders and not Hub ids; the last is where this library's commands write."""
_CONFIGS = ("config.json", "adapter_config.json", "explainer.json", "config.cfg")
"""The configurations of models, PEFT's adapters, our explainers and spaCy's pipelines: one of them is in every folder."""
_NO_LIMIT = ("t5", "mt5", "umt5", "longt5", "xlnet", "deberta-v2")
"""Types of models with relative positions: the length in their configuration is not a limit."""
_TOKENIZER = ("tokenizer", "vocab", "spiece", "sentencepiece", "spm", "merges")
"""Every tokenizer has a file whose name contains one of these texts."""
_ANY_LENGTH, _USUAL = 1_000_000, 512
"""A tokenizer with this length or more states no limit; its model reads what the encoders of the papers read."""
_PADDED = ("roberta", "xlm-roberta", "camembert", "longformer", "mpnet")
"""Types of models whose first positions, up to the padding id, hold no token."""


def check_weights(model: Model, where: str) -> None:
    """Raise an error unless the weights and the adapter exist, without a request to the Hub."""
    try:
        if model.prompts is not None:
            resolve_name("hfcf.prompts:check_folder")(model.prompts)
        if is_remote(model):
            return
        name = model.name.removeprefix(CHAT)
        _check_source(name)
        if model.adapter:
            _check_source(model.adapter, "adapter: ")
        folder = Path(model.source())  # converts an offline model, which takes seconds
        if folder.is_dir():
            _check_folder(model, folder)
        if model.adapter:
            refuse_pickles(str(model.adapter_source()), model.adapter)
    except (NoFolder, NotCached, UnsafeModel, FileNotFoundError) as error:
        raise type(error)(f"{where}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _check_source(name: str, title: str = "") -> None:
    if name.startswith("offline:"):
        offline.check_installed(name.removeprefix("offline:"))
        return
    folder = Path(source_of(name))
    if folder.is_dir():
        suffixes = {path.suffix for path in folder.iterdir()}
        # A task of one's own may have models of another kind, without weights of Transformers.
        kin = ".safetensors" in suffixes or not suffixes & {".json", ".cfg"}
        if kin and not any((folder / config).is_file() for config in _CONFIGS):
            nested = sorted(str(path.parent) for path in folder.glob("*/config.json"))
            cure = f"; give {' or '.join(nested[:3])}" if nested else ""
            raise ValueError(f"{title}the folder {name} holds no model: there is no config.json in it{cure}")
    elif folder.is_file():
        raise ValueError(f"{title}{name} is a file; a model is a folder, a Hub id or offline:NAME")
    elif name.startswith(FOLDERS):
        raise NoFolder(f"{title}there is no folder {name}")
    elif not is_package(name):  # pipelines of spaCy are packages
        check_hub_id(name, title)


def _check_folder(model: Model, folder: Path) -> None:
    """Raise `ValueError` for a folder without safe weights, a tokenizer, the template of a chat model or an adapter's base."""
    names = {path.name for path in folder.iterdir()}
    if "adapter_config.json" in names and "model.safetensors" not in names and not model.adapter:
        raise ValueError(
            f'{folder} is a PEFT adapter whose adapter_config.json names no base: give it, Model("BASE", adapter="{folder}")'
        )
    # Transformers would make an empty tokenizer and wrong answers.
    if "model.safetensors" in names and not any(part in name for name in names for part in _TOKENIZER):
        raise ValueError(f'{folder} has weights and no tokenizer: save it there, tokenizer.save_pretrained("{folder}")')
    refuse_pickles(str(folder), model.name)
    if is_chat(model) and not any(name.startswith("chat_template.") for name in names):
        settings = folder / "tokenizer_config.json"
        if not settings.is_file() or not json.loads(settings.read_text(encoding="utf-8")).get("chat_template"):
            raise ValueError(explain_template(model.name.removeprefix(CHAT)))


def explain_template(name: str) -> str:
    """Say why a model without a chat template can't be asked, and the cure."""
    return (
        f"the tokenizer of {name} has no chat template, so the model was not tuned for conversations. Name a tuned model "
        '(often "…-Instruct"), or store the template as chat_template.jinja in its folder'
    )


def check_hub_id(name: str, title: str = "") -> None:
    """Raise `ValueError` for a name that the Hub can't have or, in offline mode, that its cache lacks."""
    from huggingface_hub import constants
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{title}there is no folder {name}, and the Hub has no such names") from error
    if constants.HF_HUB_OFFLINE and find_cached(name) is None:
        raise NotCached(
            f"{title}there is no folder {name}; offline mode is on and the Hub's cache does not have it: unset "
            "HF_HUB_OFFLINE, give a folder or offline:NAME"
        )


def find_cached(name: str, revision: str | None = None) -> Path | None:
    """Return the path of a repository's configuration in the Hub's cache; None if it is not there."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.utils import HFValidationError

    try:
        paths = [try_to_load_from_cache(name, config, revision=revision) for config in _CONFIGS]
    except HFValidationError:
        return None
    return next((Path(path) for path in paths if isinstance(path, str)), None)


def is_package(name: str) -> bool:
    """Return whether a package of that name is installed; it is not imported."""
    return name.isidentifier() and find_spec(name) is not None


def can_configure(model: Model) -> bool:
    """Return whether a classifier's configuration can be read: it is on this machine, or the Hub may be reached."""
    from huggingface_hub import constants

    return not is_prompted(model) and (bool(_read_config(model)) or not constants.HF_HUB_OFFLINE)


def longest_input(model: Model) -> int | None:
    """Return the most tokens that an encoder or a decoder can read, from its configuration; None if it is unknown.

    It is None for an encoder-decoder, whose input the engines cut.
    """
    config = _read_config(model)
    positions = config.get("max_position_embeddings", config.get("n_positions"))
    kind = config.get("model_type")
    unbound = kind in _NO_LIMIT or config.get("position_biased_input") is False or config.get("is_encoder_decoder")
    if not isinstance(positions, int) or unbound:
        return None
    return positions - (config.get("pad_token_id", 1) or 0) - 1 if kind in _PADDED else positions


def check_length(model: Model, max_length: int | None) -> None:
    """Raise `ValueError` for a length that the model has no positions for; further positions would give wrong results."""
    longest = longest_input(model)
    if max_length and longest and max_length > longest:
        raise ValueError(f"max_length must be at most {longest}, the tokens that {model.name} reads, got {max_length}")


def read_length(model: Model, max_length: int | None = None) -> int:
    """Return how many tokens of an input are read: `max_length`, else as many as the model can read.

    The tokenizer of a model with relative positions states how long its training texts were. A prompt is never cut.
    """
    if is_prompted(model):
        return max_length or 0
    if max_length is not None:
        check_length(model, max_length)
        return max_length
    stated = int(read_tokenizer(model).model_max_length)  # converts an offline model, whose configuration is read next
    longest = longest_input(model)
    if stated >= _ANY_LENGTH:
        return longest or _USUAL
    return min(stated, longest or stated)


def _read_config(model: Model) -> dict[str, Any]:
    """Read `config.json` if it is on this machine; convert nothing."""
    if is_remote(model):
        return {}
    name = model.name.removeprefix(CHAT)
    if name.startswith("offline:") and not offline.is_converted(name.removeprefix("offline:")):
        return {}
    source = model.source()
    path = Path(source, "config.json") if os.path.isdir(source) else find_cached(source, model.revision)
    if path is None or path.name != "config.json" or not path.is_file():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def is_whole(path: Path) -> bool:
    """Return whether a safetensors file has the length that its header declares: a file cut by a disk fault is shorter."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np"):
            return True
    except SafetensorError:
        return False
