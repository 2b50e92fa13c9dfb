"""What a folder holds for the Hub: a counterfactual set or a trained model, which of its files are sent, and what forbids it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK

from hfcf.hub.errors import HubError
from hfcf.hub.folder import ROWS

NAMES = {
    "dataset": re.compile(r"README\.md|run\.json|recipe\.yaml|report\.html|attack\.json"),
    "model": re.compile(
        r"README\.md|scores\.json|(generation_|adapter_)?config\.json|(patch|rbert|explainer)\.safetensors|explainer\.json"
        r"|(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?"
        r"|tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(txt|json)|merges\.txt|bpe\.codes"
        r"|(spiece|spm|tokenizer|sentencepiece(\.bpe)?)\.model|chat_template\.(jinja|json)"
    ),
}
"""What is sent of each kind of folder beside a set's rows, and removed from the repository when the folder has it no more."""
_ROWS = re.compile(rf"data/([^/]+/)?{ROWS}")
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
"""Files that may run code when they are read: the weights are never in them."""
_OF_SYSTEMS = {"attack": ("attack.json",)}
_OF_RUNS = ("run.json", "recipe.yaml", "report.html")
"""What a finished folder has, by the system that its card's tags name; every other one is of `hfcf run`."""


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
    front = parsed("README.md", (root / "README.md").read_bytes(), str(root))
    kind = _kind(root, paths, front)
    run: dict[str, Any] = {}
    if kind == "dataset":
        run = parsed("run.json", (root / "run.json").read_bytes(), str(root)) if "run.json" in paths else {}
        _finished(root, paths, front, run)
    sent = written(paths, kind, front, run)
    if kind == "model":
        _no_pickles(root, paths, sent)
    return Contents(root, kind, tuple(sent), tuple(path for path in paths if path not in sent), front)


def parsed(path: str, content: bytes, where: str) -> dict[str, Any]:
    """A card's front matter, or what a JSON or YAML file of a result holds.

    Args:
        path: of the file, which tells what it is.
        content: its bytes.
        where: the folder or repository, in words, for errors.

    Raises:
        HubError: it can't be read.

    >>> parsed("run.json", b"", "out")
    Traceback (most recent call last):
    hfcf.hub.errors.HubError: out: run.json can't be read (Expecting value): restore it, or run again
    """
    parsers: dict[str, Callable[[str], Any]] = {".md": front_matter, ".json": json.loads, ".yaml": yaml.safe_load}
    try:
        found = parsers[Path(path).suffix](content.decode("utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        why = getattr(error, "problem", None) or str(error).partition(":")[0]
        raise HubError(f"{where}: {path} can't be read ({why}): restore it, or run again") from error
    return found if isinstance(found, dict) else {}


def front_matter(card: str) -> dict[str, Any]:
    """What a card tells the Hub.

    >>> front_matter("---\\nlicense: mit\\n---\\n\\n# A set")
    {'license': 'mit'}
    """
    block = REGEX_YAML_BLOCK.search(card)
    front = yaml.safe_load(block[2]) if block else None
    return front if isinstance(front, dict) else {}


def data_files(front: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """{configuration: {split: path}} of a card's front matter, as `hfcf.hub.folder.configs` writes it.

    Configurations that name their files in other ways (patterns, folders) are left out: they are not of this library.

    >>> data_files({"configs": [{"config_name": "mine", "data_files": "data/*.csv"}, {"data_dir": "data"}]})
    {}
    """
    found, configs = {}, front.get("configs")
    for config in configs if isinstance(configs, list) else ():
        match config:
            case {"config_name": str(name), "data_files": [*entries]} if all(_names_a_file(entry) for entry in entries):
                found[name] = {entry["split"]: entry["path"] for entry in entries}
    return found


def _names_a_file(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("split", "path"))


def ours(front: Mapping[str, Any]) -> bool:
    """Whether a card is one of this library's: its tags say so.

    >>> ours({"tags": ["hfcf", "hfcf-race"]}), ours({"tags": "text"}), ours({})
    (True, False, False)
    """
    return any(tag.partition("-")[0] == "hfcf" for tag in _tags(front))


def _tags(front: Mapping[str, Any]) -> list[str]:
    tags = front.get("tags")
    return [str(tag) for tag in (tags if isinstance(tags, list) else [tags])]


def written(paths: Iterable[str], kind: str, front: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """Of the files of a folder or a repository those that this library wrote.

    Args:
        paths: the files.
        kind: "dataset" or "model".
        front: its card's front matter, which names the rows.
        run: its `run.json`, which names them too.

    >>> rows = "data/train-0123456789abcdef.parquet"
    >>> written([rows, "README.md", "data/mine.parquet"], "dataset", {}, {"files": [rows, "data/mine.parquet"]})
    ['README.md', 'data/train-0123456789abcdef.parquet']
    """
    named = {path for splits in data_files(front).values() for path in splits.values()} | set(_listed(run))
    return [path for path in sorted(paths) if NAMES[kind].fullmatch(path) or (path in named and _ROWS.fullmatch(path))]


def _listed(run: Mapping[str, Any]) -> list[str]:
    files = run.get("files")
    return [str(path) for path in files] if isinstance(files, list) else []


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


def _finished(root: Path, paths: Iterable[str], front: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Raise unless the files that the card names are all there, and those of the run that `run.json` tells of."""
    corpus = run.get("corpus")
    if forbidden(front, corpus if isinstance(corpus, str) else None):
        raise HubError(f"{root}: the licence of its corpus forbids to republish these rows, so they are not sent; keep them local")
    cure = "the run did not finish: run it again, which repeats no model call"
    found = data_files(front)
    named = {path for splits in found.values() for path in splits.values()}
    if not isinstance(front["configs"], list) or len(found) != len(front["configs"]) or not all(map(_ROWS.fullmatch, named)):
        raise HubError(f"{root}: README.md names the files of its rows otherwise than hfcf does: restore its configs, or run again")
    systems = [tag.removeprefix("hfcf-") for tag in _tags(front) if tag.startswith("hfcf-")]
    needed = [path for system in systems for path in _OF_SYSTEMS.get(system, _OF_RUNS)]
    if absent := [path for path in [*sorted(named), *needed] if path not in paths]:
        by = "its card names" if absent[0] in named else "belongs to it"
        raise HubError(f"{root}: {absent[0]}, which {by}, is missing; {cure}")
    if parts := [path for path in paths if path.endswith(".part")]:
        raise HubError(f"{root}: {parts[0]} is half written; {cure}")
    if "files" in run and set(_listed(run)) != named:
        raise HubError(f"{root}: its card and its run.json are of different runs; {cure}")


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
