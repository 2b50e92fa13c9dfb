"""What a folder holds for the Hub: a counterfactual set or a trained model, which of its files are sent, and what forbids it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from hfcf.hub.errors import HubError

SENT = {
    "dataset": ("README.md", "run.json", "recipe.yaml", "report*.html", "data/*.parquet"),
    "model": (
        "README.md", "scores.json", "config.json", "generation_config.json", "adapter_config.json", "explainer.json",
        "*.safetensors", "*.safetensors.index.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*",
        "merges.txt", "spiece.model", "sentencepiece*.model", "chat_template*",
    ),
}  # fmt: skip
"""What is sent of each kind of folder, and removed from the repository when the folder has it no more. Nothing else is touched."""
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
"""Files that may run code when they are read: the weights are never in them."""


@dataclass(frozen=True)
class Contents:
    """What of a folder belongs in a repository.

    Args:
        root: the folder.
        kind: "dataset" or "model".
        files: paths inside the folder, which are sent.
        left_out: those that are not.
        front: the card's front matter.
    """

    root: Path
    kind: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    front: Mapping[str, Any]


def contents(folder: str | Path) -> Contents:
    """What of a folder of `hfcf run` (or of a corpus's build) or `hfcf train` belongs in a repository.

    Args:
        folder: where it lies.

    Raises:
        HubError: the folder is neither, or is not finished; its rows must not be republished; or weights are pickles.

    >>> contents("/nowhere")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: there is no folder /nowhere
    """
    root = Path(folder)
    if not root.is_dir():
        raise HubError(f"there is no folder {root}")
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    if "README.md" not in paths:
        raise HubError(f"{root} has no README.md: it is no result of hfcf run or hfcf train, or not a finished one; run that again")
    front = front_matter((root / "README.md").read_text(encoding="utf-8"))
    kind = _kind(root, paths, front)
    sent = [path for path in paths if written(path, kind)]
    if kind == "dataset":
        named = _finished(root, paths, front)
        sent = [path for path in sent if not path.startswith("data/") or path in named]
    else:
        _no_pickles(root, paths, sent)
    return Contents(root, kind, tuple(sent), tuple(path for path in paths if path not in sent), front)


def front_matter(card: str) -> dict[str, Any]:
    """What a card tells the Hub.

    >>> front_matter("---\\nlicense: mit\\n---\\n\\n# A set")
    {'license': 'mit'}
    """
    start, _, rest = card.partition("---\n")
    front = yaml.safe_load(rest.partition("\n---")[0]) if not start.strip() and rest else None
    return front if isinstance(front, dict) else {}


def data_files(front: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """{configuration: {split: path}} of a card's front matter, as `hfcf.hub.folder.configs` writes it."""
    return {
        config["config_name"]: {entry["split"]: entry["path"] for entry in config["data_files"]}
        for config in front.get("configs", ())
    }


def written(path: str, kind: str) -> bool:
    """Whether a file of this name is one that the library writes into such a folder.

    >>> written("data/default/train-0.parquet", "dataset"), written("claim-only/model.safetensors", "model")
    (True, False)
    """
    inside = kind == "dataset" or "/" not in path
    return inside and not Path(path).name.startswith(".") and any(fnmatch(path, pattern) for pattern in SENT[kind])


def _kind(root: Path, paths: Iterable[str], front: Mapping[str, Any]) -> str:
    weights = any(path.endswith(".safetensors") and "/" not in path for path in paths)
    if front.get("configs") and weights:
        raise HubError(f"{root} holds both a counterfactual set and a model: push each from a folder of its own")
    if front.get("configs"):
        return "dataset"
    if not weights:
        found = "a set's card names its files and a model's weights are safetensors"
        raise HubError(f"{root} is neither a folder of hfcf run nor one of hfcf train, or not a finished one: {found}")
    if "scores.json" not in paths:
        raise HubError(f"{root} has no scores.json, which hfcf train writes last: it did not finish; train again")
    return "model"


def _finished(root: Path, paths: Iterable[str], front: Mapping[str, Any]) -> set[str]:
    """The data files that the card names, all of which are there and of the run that `run.json` tells of."""
    named = {path for splits in data_files(front).values() for path in splits.values()}
    run = json.loads((root / "run.json").read_text(encoding="utf-8")) if (root / "run.json").exists() else {}
    if forbidden(front, run.get("corpus")):
        raise HubError(f"{root}: the licence of its corpus forbids to republish these rows, so they are not sent; keep them local")
    cure = "the run did not finish: run it again, which repeats no model call"
    if absent := sorted(named - set(paths)):
        raise HubError(f"{root}: {absent[0]}, which its card names, is missing; {cure}")
    if parts := [path for path in paths if path.endswith(".part")]:
        raise HubError(f"{root}: {parts[0]} is half written; {cure}")
    if set(run.get("files", named)) != named:
        raise HubError(f"{root}: its card and its run.json are of different runs; {cure}")
    return named


def forbidden(front: Mapping[str, Any], corpus: str | None) -> bool:
    """Whether the licence of a set's corpus forbids to give its rows away: the card says so, or what the library knows of it."""
    if front.get("republish", True) is False:
        return True
    from hfcf.corpora import builder_class, names

    return corpus in names() and not builder_class(str(corpus)).INFO.republish


def _no_pickles(root: Path, paths: Iterable[str], sent: Iterable[str]) -> None:
    cure = "store the weights as safetensors (save_pretrained does), and remove it"
    for path in paths:
        if Path(path).suffix.lower() in PICKLES and "/" not in path:
            raise HubError(f"{root / path} may run code when it is read: {cure}")
    for path in sent:
        if path.endswith(".safetensors") and not _is_safetensors(root / path):
            raise HubError(f"{root / path} is no safetensors file, whatever its name says: {cure}")


def _is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        length, first = int.from_bytes(file.read(8), "little"), file.read(1)
    return first == b"{" and 8 + length <= path.stat().st_size
