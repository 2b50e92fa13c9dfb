"""Folders of models without a model at the top level: PEFT adapters, and the modules of sentence-transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ADAPTER_SETTINGS, MODULES, CONFIG = "adapter_config.json", "modules.json", "config.json"
_WEIGHTS = (".safetensors", ".gguf", ".bin")


def find_base(folder: str) -> tuple[str, str | None] | None:
    """Return the base of a PEFT adapter's folder, and its revision; None for another folder, or if no base is named.

    A folder with weights of its own is a model, although an adapter may lie in it.
    """
    path = Path(folder)
    if not (path / ADAPTER_SETTINGS).is_file() or (path / "model.safetensors").is_file():
        return None
    settings = _read(path / ADAPTER_SETTINGS)
    base = settings.get("base_model_name_or_path") if isinstance(settings, dict) else None
    return (str(base), settings.get("revision")) if base else None


def find_module(folder: str) -> str | None:
    """Return the subfolder of a cross-encoder that sentence-transformers stored as modules; None for another folder.

    It must be a classifier in a single module with weights: this library would leave out what further modules compute.
    """
    path = Path(folder)
    if (path / CONFIG).is_file() or not (path / MODULES).is_file():
        return None
    modules = _read(path / MODULES)
    names = [str(module.get("path", "")) for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
    places = [path / name for name in names if name and not os.path.isabs(name) and ".." not in Path(name).parts]
    weighty = [place for place in places if place.is_dir() and any(file.suffix in _WEIGHTS for file in place.iterdir())]
    if len(weighty) != 1 or not (weighty[0] / CONFIG).is_file():
        return None
    config = _read(weighty[0] / CONFIG)
    kinds = config.get("architectures") or [] if isinstance(config, dict) else []
    return str(weighty[0]) if any(str(kind).endswith("ForSequenceClassification") for kind in kinds) else None


def explain_folder(folder: str) -> str | None:
    """Say why a folder of weights can't be loaded as a model, and the line to type; None for a folder without a fault."""
    path = Path(folder)
    names = {file.name for file in path.iterdir()}
    whole = names & {"model.safetensors", "model.safetensors.index.json"}
    if "patch.safetensors" in names and not whole:
        return (
            f'it holds an adapter, the changes of a training, without its base: give the base, Model("BASE", adapter="{folder}") '
            f"(hfcf evaluate BASE --adapter {folder})"
        )
    if ADAPTER_SETTINGS in names and not whole:
        return (
            f"it is a PEFT adapter, and its {ADAPTER_SETTINGS} names no base: give the base, "
            f'Model("BASE", adapter="{folder}") (hfcf evaluate BASE --adapter {folder})'
        )
    if CONFIG in names:
        return None
    if MODULES in names:
        return (
            f"it holds modules of sentence-transformers ({MODULES}), which are not a classifier in one module: give a "
            "cross-encoder of AutoModelForSequenceClassification"
        )
    inner = sorted(file.parent for file in path.glob(f"*/{CONFIG}"))
    if inner:
        return f"there is no {CONFIG} in it: the model may be in a folder of it; give {' or '.join(map(str, inner[:3]))}"
    if whole:
        return (
            f"it has weights and no {CONFIG}, which says what they are: save that of the training there, "
            f'model.config.save_pretrained("{folder}")'
        )
    return None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
