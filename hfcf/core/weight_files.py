"""Read what files on this machine say about weights: their numbers, sizes and licence. No tensor is read.

A safetensors file begins with the shapes of its tensors, and so does a GGUF file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import yaml

from hfcf.core.model_checks import is_whole
from hfcf.core.safe_yaml import read_yaml

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
"""Weights in one file, and the file that names the files of weights in several."""
_PARTS = ("adapter_model.safetensors", "patch.safetensors", "explainer.safetensors")
"""Weights that change or read another model: of PEFT, of this library's patches, and of its explainers."""
_SETTINGS = (".json", ".txt", ".model", ".jinja", ".cfg")
"""How the names of the small files end that are read with weights."""
_TOKENIZER = ("tokenizer", "vocab", "spiece", "sentencepiece", "spm", "merges")
_BF16 = 2
_INTEGERS = {"I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Bytes of the numbers that keep their type when a network is loaded at bfloat16."""


def memory_of(numbers: Mapping[str, int]) -> int:
    """Return the bytes of numbers, given by their safetensors type, when fractions are stored in two bytes.

    >>> memory_of({"F32": 1_000, "I64": 10})
    2080
    """
    return sum(count * _INTEGERS.get(dtype, _BF16) for dtype, count in numbers.items())


def weight_names(names: Collection[str], shards: Iterable[str] = ()) -> list[str]:
    """List the files of weights to read from a repository: the single file, else the files of the index, else an adapter's files.

    Args:
        names: all files of the repository.
        shards: the files that the index names; without them, all files whose names mark them as parts.
    """
    if SINGLE in names:
        return [SINGLE]
    if INDEX in names:
        parts = sorted(set(shards)) or [name for name in names if name.startswith("model-") and name.endswith(".safetensors")]
        return [INDEX, *parts]
    return [name for name in _PARTS if name in names]


def setting_names(names: Iterable[str]) -> list[str]:
    """List the small files of a repository that are read with its weights: configuration, tokenizer, template of chats."""
    return [name for name in names if "/" not in name and name.endswith(_SETTINGS) and not name.endswith(".index.json")]


def count_numbers(folder: Path) -> dict[str, int] | None:
    """Count the numbers in a folder's weights by type; None if no file states it, or a file of weights is missing."""
    names = weight_names({path.name for path in folder.iterdir()}, shards(folder))
    files = [folder / name for name in names if name.endswith(".safetensors")]
    if not files:
        packed = sorted(folder.glob("*.gguf"))
        return _count_gguf(packed[0]) if len(packed) == 1 else None
    if not all(path.is_file() and is_whole(path) for path in files):
        return None
    counts: dict[str, int] = {}
    for path in files:
        for tensor in _header(path).values():
            counts[tensor["dtype"]] = counts.get(tensor["dtype"], 0) + prod(tensor["shape"])
    return counts


def shards(folder: Path) -> set[str]:
    """Return the files that a folder's index names; [] without a readable index."""
    try:
        named = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        return {name for name in map(str, named.values()) if "/" not in name}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return set()


def is_complete(folder: Path) -> bool:
    """Return whether a snapshot in the Hub's cache has all that is read: whole weights, configuration and tokenizer."""
    names = {path.name for path in folder.iterdir() if path.exists()}  # of a link, whether its file is there
    weights = weight_names(names, shards(folder))
    whole = [folder / name for name in weights if name.endswith(".safetensors")]
    if not whole or not all(path.is_file() and is_whole(path) for path in whole):
        return False
    if any(name in _PARTS for name in weights):
        return "adapter_config.json" in names or "config.json" in names or "explainer.json" in names
    return "config.json" in names and any(part in name for name in names for part in _TOKENIZER)


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of the files of a folder that are read."""
    there = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    names = [*weight_names(there, shards(folder)), *setting_names(there)]
    return {name: there[name] for name in names if name in there}


def licence_of(folder: Path) -> str | None:
    """Return the licence in a folder's card, or in the `meta.json` of a spaCy pipeline."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    if text.startswith("---"):
        try:
            front = read_yaml(text[3:].partition("\n---")[0])
        except yaml.YAMLError:  # a card that somebody else wrote: then it names none
            front = None
        if isinstance(front, dict) and (named := licence_in(front)):
            return named
    meta = folder / "meta.json"
    try:
        content = json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else {}
    except ValueError:
        return None
    return licence_in(content) if isinstance(content, dict) else None


def licence_in(card: Mapping[str, Any]) -> str | None:
    """Return the licence in the fields of a card; its own name where the Hub's list does not have it."""
    licence = card.get("license_name") if card.get("license") == "other" else None
    licence = licence or card.get("license")
    return (", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)) if licence else None


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tensor for name, tensor in header.items() if name != "__metadata__"}


def _count_gguf(path: Path) -> dict[str, int] | None:
    """Count the numbers of a GGUF file, which are fractions when they are loaded; None without the package that reads it."""
    if find_spec("gguf") is None:
        return None
    from gguf import GGUFReader

    return {"F32": sum(int(tensor.n_elements) for tensor in GGUFReader(str(path)).tensors)}
