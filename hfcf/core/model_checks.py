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
from hfcf.core.model_folders import explain_folder
from hfcf.core.pretrained import UnsafeModel, read_tokenizer, refuse_pickles


class NoFolder(ValueError):
    """The folder of a model does not exist."""


class NotCached(ValueError):
    """Offline mode is on, and the Hub's cache does not hold a model."""


FOLDERS = ("/", "./", "../", "~", "out/")
"""The beginnings of names that are folders and not Hub ids; the last is where this library's commands write."""
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
    if model.prompts is not None:
        try:
            resolve_name("hfcf.prompts.own:check_folder")(model.prompts)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    if is_remote(model):
        return
    name = model.name.removeprefix(CHAT)
    _check_source(name, f"{where}: the base of the adapter {model.adapter}" if model.adapter else where)
    if model.adapter:
        _check_source(model.adapter, f"{where}: adapter", adapter=True)
    _check_tokenizer(model, where)  # converts an offline model, which takes seconds
    _check_pickles(model.source(), name, where)
    if is_chat(model):
        _check_template(model, where)
    if model.adapter:
        _check_pickles(str(model.adapter_source()), model.adapter, f"{where}: adapter")


def _check_source(name: str, where: str, *, adapter: bool = False) -> None:
    try:
        if name.startswith("offline:"):
            offline.check_installed(name.removeprefix("offline:"))
            return
        folder = Path(source_of(name))
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"{where}: {error}") from None
    if folder.is_dir():
        if not any(path.suffix in (".json", ".cfg") for path in folder.iterdir()):
            raise ValueError(f"{where}: the folder {name} holds no model: there is no config.json in it")
        if why := None if adapter else explain_folder(str(folder)):
            raise ValueError(f"{where}: the folder {name} holds no model: {why}")
    elif folder.is_file():
        raise ValueError(f"{where}: {name} is a file; a model is a folder, a Hub id or offline:NAME")
    elif name.startswith(FOLDERS):
        raise NoFolder(f"{where}: there is no folder {name}")
    elif not is_package(name):  # pipelines of spaCy are packages
        check_hub_id(name, where)


def _check_pickles(source: str, name: str, where: str) -> None:
    try:
        refuse_pickles(source, name)
    except UnsafeModel as error:
        raise UnsafeModel(f"{where}: {error}") from None


def _check_tokenizer(model: Model, where: str) -> None:
    """Raise `ValueError` for weights without a tokenizer: Transformers would make an empty tokenizer and wrong answers."""
    folder = Path(model.source())
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if "model.safetensors" in names and not any(part in name for name in names for part in _TOKENIZER):
        raise ValueError(
            f"{where}: the folder {model.name} has weights and no tokenizer: save the tokenizer of the training there, "
            f'tokenizer.save_pretrained("{model.name}")'
        )


def _check_template(model: Model, where: str) -> None:
    """Raise `ValueError` for the folder of a chat model without a chat template; one on the Hub may have it there."""
    name, folder = model.name.removeprefix(CHAT), Path(model.source())
    if not folder.is_dir() or any(folder.glob("chat_template.*")):
        return
    settings = folder / "tokenizer_config.json"
    if not settings.is_file() or not json.loads(settings.read_text(encoding="utf-8")).get("chat_template"):
        raise ValueError(f"{where}: {explain_template(name)}")


def explain_template(name: str) -> str:
    """Say why a model without a chat template can't be asked, and the cure."""
    return (
        f"the tokenizer of {name} has no chat template, so the model was not tuned for conversations. Name a tuned model "
        '(often "…-Instruct"), or store the template as chat_template.jinja in its folder'
    )


def check_hub_id(name: str, where: str) -> None:
    """Raise `ValueError` for a name that the Hub can't have or, in offline mode, that its cache lacks."""
    from huggingface_hub import constants
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ValueError(f"{where}: there is no folder {name}, and the Hub has no such names") from error
    if constants.HF_HUB_OFFLINE and not in_cache(name):
        raise NotCached(
            f"{where}: there is no folder {name}; offline mode is on and the Hub's cache does not have it: unset "
            "HF_HUB_OFFLINE, give a folder or offline:NAME"
        )


def in_cache(name: str) -> bool:
    """Return whether the Hub's cache has files of a model."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return (Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")).is_dir()


def is_package(name: str) -> bool:
    """Return whether a package of that name is installed; it is not imported."""
    return name.isidentifier() and find_spec(name) is not None


def can_configure(model: Model) -> bool:
    """Return whether a classifier's configuration can be read: it is on this machine, or the Hub may be reached."""
    from huggingface_hub import constants

    return not is_prompted(model) and (bool(_config(model)) or not constants.HF_HUB_OFFLINE)


def longest_input(model: Model) -> int | None:
    """Return the most tokens that an encoder or a decoder can read, from its configuration; None if it is unknown.

    It is None for an encoder-decoder, whose input the engines cut.
    """
    config = _config(model)
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
    own = int(read_tokenizer(model).model_max_length)  # converts an offline model, whose configuration is read next
    longest = longest_input(model)
    if own >= _ANY_LENGTH:
        return longest or _USUAL
    return min(own, longest or own)


def _config(model: Model) -> dict[str, Any]:
    """Read `config.json` if it is on this machine."""
    from huggingface_hub import try_to_load_from_cache

    if is_remote(model):
        return {}
    name = model.name.removeprefix(CHAT)
    if name.startswith("offline:") and not offline.is_converted(name.removeprefix("offline:")):
        return {}
    if os.path.isdir(source := model.source()):
        path: Any = Path(source) / "config.json"
    else:
        path = try_to_load_from_cache(source, "config.json", revision=model.revision)
    content = json.loads(Path(path).read_text(encoding="utf-8")) if isinstance(path, str | Path) and Path(path).is_file() else {}
    return content if isinstance(content, dict) else {}


def is_whole(path: Path) -> bool:
    """Return whether a safetensors file has the length that its header declares: a file cut by a disk fault is shorter."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if 8 + length > size:
            return False
        try:
            tensors = json.loads(file.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
        except (ValueError, TypeError, KeyError, AttributeError):
            return False
    return 8 + length + max(ends, default=0) == size
