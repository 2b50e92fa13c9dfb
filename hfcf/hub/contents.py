"""Read what a folder holds for the Hub: a counterfactual set or a model, the files to send, and what forbids sending them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hfcf.core.pretrained import PICKLES
from hfcf.core.safe_yaml import front_matter, read_yaml
from hfcf.hub.errors import HubError
from hfcf.hub.folder import ROWS, as_list, content_hash

NAMES = {
    "dataset": re.compile(r"README\.md|run\.json|recipe\.yaml|report\.html|attack\.json"),
    "model": re.compile(
        r"README\.md|scores\.json|(generation_|adapter_)?config\.json|(patch|rbert|graph|explainer)\.safetensors|explainer\.json"
        r"|open_domain\.json|seen\.npy"
        r"|(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?"
        r"|tokenizer(_config)?\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(txt|json)|merges\.txt|bpe\.codes"
        r"|(spiece|spm|tokenizer|sentencepiece(\.bpe)?)\.model|chat_template\.(jinja|json)"
    ),
}
"""Files to send of each kind of folder, in addition to a set's rows; a push removes files that the folder no longer has."""
_ROWS = re.compile(rf"data/([^/]+/)?{ROWS}")
_REQUIRED = {"attack": ("attack.json",)}
_REQUIRED_OF_RUNS = ("run.json", "recipe.yaml", "report.html")
"""Files of a finished folder, by the system that its card's tags name; `hfcf run` wrote the folder of any other system."""


@dataclass(frozen=True)
class Contents:
    """The part of a folder that belongs in a repository; paths are relative to the folder."""

    root: Path
    kind: str
    """"dataset" or "model"."""
    files: tuple[str, ...]
    """Paths to send."""
    left_out: tuple[str, ...]
    front: Mapping[str, Any]
    """The card's front matter."""


def read_contents(folder: str | Path) -> Contents:
    """Read which files of a folder of `hfcf run` (or of a corpus's build) or `hfcf train` belong in a repository."""
    root = Path(folder)
    if not root.is_dir():
        raise HubError(f"there is no folder {root}")
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    if "README.md" not in paths:
        raise HubError(f"{root} has no README.md: it is not a finished result of hfcf run or hfcf train; run that again")
    front = parse_file("README.md", (root / "README.md").read_bytes(), str(root))
    kind = _kind(root, paths, front)
    run: dict[str, Any] = {}
    if kind == "dataset":
        run = parse_file("run.json", (root / "run.json").read_bytes(), str(root)) if "run.json" in paths else {}
        _check_finished(root, paths, front, run)
    sent = select_own(paths, kind, front, run)
    if kind == "model":
        _refuse_pickles(root, paths, sent)
    return Contents(root, kind, tuple(sent), tuple(path for path in paths if path not in sent), front)


def parse_file(path: str, content: bytes, where: str) -> dict[str, Any]:
    """Parse a file of a result, by its ending: JSON, YAML, or a card's front matter."""
    parsers: dict[str, Callable[[str], Any]] = {".md": front_matter, ".json": json.loads, ".yaml": read_yaml}
    try:
        value = parsers[Path(path).suffix](content.decode("utf-8"))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        why = getattr(error, "problem", None) or str(error).partition(":")[0]
        raise HubError(f"{where}: {path} can't be read ({why}): restore it, or run again") from error
    return value if isinstance(value, dict) else {}


def data_files(front: Mapping[str, Any]) -> dict[str, dict[str, str | list[str]]]:
    """Map each configuration of a card's front matter to {split: its file, or its shards}, as `hfcf.hub.folder.configs` writes it.

    Configurations that name their files in other ways (patterns, folders) are left out: this library did not write them.
    """
    files, configs = {}, front.get("configs")
    for config in configs if isinstance(configs, list) else ():
        match config:
            case {"config_name": str(name), "data_files": [*entries]} if all(_names_a_file(entry) for entry in entries):
                files[name] = {entry["split"]: entry["path"] for entry in entries}
    return files


def _names_a_file(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("split"), str):
        return False
    paths = as_list(entry.get("path"))
    return bool(paths) and all(isinstance(path, str) for path in paths)


def is_own_card(front: Mapping[str, Any]) -> bool:
    """Say whether this library wrote a card, by the card's tags."""
    return any(tag.partition("-")[0] == "hfcf" for tag in _tags(front))


def _tags(front: Mapping[str, Any]) -> list[str]:
    tags = front.get("tags")
    return [str(tag) for tag in (tags if isinstance(tags, list) else [tags])]


def select_own(paths: Iterable[str], kind: str, front: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """Select the paths of a folder or repository that this library wrote: the rows' files are named in the card or in
    `run.json`."""
    named = _named(data_files(front)) | set(_listed(run))
    return [path for path in sorted(paths) if NAMES[kind].fullmatch(path) or (path in named and _ROWS.fullmatch(path))]


def _named(configs: Mapping[str, Mapping[str, str | list[str]]]) -> set[str]:
    return {path for splits in configs.values() for paths in splits.values() for path in as_list(paths)}


def _listed(run: Mapping[str, Any]) -> list[str]:
    files = run.get("files")
    return [str(path) for path in files] if isinstance(files, list) else []


def _kind(root: Path, paths: Iterable[str], front: Mapping[str, Any]) -> str:
    weights = any(path.endswith(".safetensors") and "/" not in path for path in paths)
    if front.get("configs") and weights:
        raise HubError(f"{root} holds both a counterfactual set and a model: push each from its own folder")
    if front.get("configs"):
        return "dataset"
    if not weights:
        raise HubError(
            f"{root} is not a finished folder of hfcf run or hfcf train: "
            "the card of a set names its files, and the weights of a model are safetensors"
        )
    if "scores.json" not in paths:
        raise HubError(f"{root} has no scores.json, which hfcf train writes last: the training did not finish; train again")
    return "model"


def _check_finished(root: Path, paths: Iterable[str], front: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Raise unless all files that the card and `run.json` name exist and belong to the same run."""
    corpus = run.get("corpus")
    if forbids_republishing(front, corpus if isinstance(corpus, str) else None):
        raise HubError(f"{root}: the licence of its corpus forbids to republish these rows: keep them local")
    cure = "the run did not finish: run it again, which repeats no model call"
    configs = data_files(front)
    named = _named(configs)
    if not isinstance(front["configs"], list) or len(configs) != len(front["configs"]) or not all(map(_ROWS.fullmatch, named)):
        raise HubError(f"{root}: README.md does not name the files of its rows as hfcf does: restore its configs, or run again")
    systems = [tag.removeprefix("hfcf-") for tag in _tags(front) if tag.startswith("hfcf-")]
    required = [path for system in systems for path in _REQUIRED.get(system, _REQUIRED_OF_RUNS)]
    if missing := [path for path in [*sorted(named), *required] if path not in paths]:
        why = "its card names" if missing[0] in named else "every finished run has"
        raise HubError(f"{root}: {missing[0]}, which {why}, is missing; {cure}")
    if parts := [path for path in paths if path.endswith(".part")]:
        raise HubError(f"{root}: {parts[0]} is half written; {cure}")
    for path in sorted(named):
        if content_hash(root / path) not in path:
            raise HubError(f"{root}: {path} is damaged: its contents do not have the hash in its name; {cure}")
    if "files" in run and set(_listed(run)) != named:
        raise HubError(f"{root}: its card and its run.json are of different runs; {cure}")


def forbids_republishing(front: Mapping[str, Any], corpus: str | None) -> bool:
    """Say whether the licence of a set's corpus forbids to republish its rows, by the card or by the corpus's own entry."""
    if front.get("republish", True) is False:
        return True
    from hfcf.corpora import builder_class, names

    return corpus in names() and not builder_class(str(corpus)).INFO.republish


def _refuse_pickles(root: Path, paths: Iterable[str], sent: Iterable[str]) -> None:
    cure = "store the weights as safetensors (save_pretrained does), and remove this file"
    for path in paths:
        if Path(path).suffix.lower() in PICKLES and "/" not in path:
            raise HubError(f"{root / path} may run code when it is read: {cure}")
    for path in sent:
        if path.endswith(".safetensors") and not _is_safetensors(root / path):
            raise HubError(f"{root / path} is not a safetensors file, although its name says so: {cure}")


def _is_safetensors(path: Path) -> bool:
    with path.open("rb") as file:
        length, first = int.from_bytes(file.read(8), "little"), file.read(1)
    return first == b"{" and 8 + length <= path.stat().st_size
