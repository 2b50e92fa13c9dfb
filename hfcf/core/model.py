"""A reference to a model: Hub id, folder or offline name, with revision, adapter and number type."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from hfcf.core.names import check_settings

REMOTE = "llm:"
"""The prefix of the name of a model behind an endpoint."""
CHAT = "chat:"
"""The prefix of the name of a model that runs in this process and answers prompts, as a model behind an endpoint does."""
INPUTS_KEY = "hfcf_inputs"
"""The key of a configuration in which our trainings write the order of a verifier's inputs."""
SEEN = "seen.npy"
"""The file in a model's folder with hashes of what it was trained on: see `hfcf.core.contamination`."""


@dataclass(frozen=True)
class Model:
    """A reference to weights, with everything that changes their answers.

    Args:
        name: a Hub id ("me/roberta-hover"), a local folder, or "offline:NAME" (`hfcf.core.offline` lists the names). The folder may
            hold a PEFT adapter, which names its base. Some settings of systems also take a language model that answers prompts:
            "llm:NAME" is a model behind an endpoint (`hfcf.engines.llm.engine.LanguageModel`), and "chat:NAME" is a model in this
            process, where NAME is a Hub id, a folder or offline:NAME.
        revision: the Hub revision; pin it, or a new upload changes your results.
        adapter: a PEFT adapter to merge in: a Hub id, a folder, or "hfcf:NAME" for one of the package hfcf-offline.
        dtype: "auto" (bfloat16 where the GPU has it, else float32), "float32", "bfloat16" or "float16".
        labels: for a classifier whose classes have names of its own: {its name: our name}, such as {"LABEL_0": "REFUTES", …}.
            Stored as pairs, because a reference must be hashable.
        inputs: what your own classifier reads, if it differs from ours: for a verifier "claim-evidence", "evidence-claim" or a text
            such as "{claim} [SEP] {evidence}"; for a relation classifier see `hfcf.engines.markers`.
        samples: for "llm:NAME" as a judge, the number of answers to request if the server gives no log-probabilities. The
            probability of a label is its share of the answers; with 1 answer, its label has the probability 1. "chat:NAME" always
            has log-probabilities.
        prompts: for "llm:NAME" and "chat:NAME", a folder with prompts of your own, asked instead of ours of the same names.

    Raises:
        ValueError: `samples` is less than 1. Or a model that does not answer prompts has `samples` above 1 or sets `prompts`. Or
            the name ends after "llm:" or "chat:".

    >>> Model.of("t5-base").name
    't5-base'
    >>> Model("chat:offline:smollm2").name
    'chat:offline:smollm2'
    >>> Model("me/nli", labels={"yes": "SUPPORTS", "no": "REFUTES"}).labels
    (('no', 'REFUTES'), ('yes', 'SUPPORTS'))
    """

    name: str
    revision: str | None = None
    adapter: str | None = None
    dtype: str = "auto"
    labels: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    inputs: str | None = None
    samples: int = 1
    prompts: str | None = None

    def __post_init__(self) -> None:
        if is_prompted(self):
            _check_prompted(self.name)
        elif self.prompts is not None:
            raise ValueError(f"prompts are asked of {REMOTE}NAME or {CHAT}NAME, a language model, got {self.name}")
        if self.prompts is not None:  # its contents are in the key
            object.__setattr__(self, "prompts", os.path.expanduser(self.prompts))
        if self.samples < 1 or (self.samples > 1 and not is_prompted(self)):
            raise ValueError(f"samples must be 1, or more for {REMOTE}NAME or {CHAT}NAME, got {self.samples}")
        if self.adapter is None and (base := find_base(folder := self.name.removeprefix(CHAT))) is not None:
            name, revision = base
            for field, value in (("adapter", folder), ("name", (CHAT if is_chat(self) else "") + name), ("revision", revision)):
                object.__setattr__(self, field, value)
        if self.labels is not None:
            if isinstance(self.labels, list | str):
                raise ValueError(
                    f"labels must map the model's classes to labels, got {self.labels!r}: write {{'LABEL_0': 'REFUTES', …}}; a "
                    "class without a name has the number of its output, '0'"
                )
            pairs = sorted((str(name), str(label)) for name, label in dict(self.labels).items())
            object.__setattr__(self, "labels", tuple(pairs))

    @classmethod
    def of(cls, value: Model | str | dict[str, Any]) -> Model:
        """Make a `Model` from its name or from a recipe's mapping."""
        if isinstance(value, Model):
            return value
        return cls(value) if isinstance(value, str) else cls(**value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Accept a name or a mapping instead of a model in settings that pydantic validates."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(cls._parse)

    @classmethod
    def _parse(cls, value: Any) -> Model:
        if isinstance(value, Mapping):
            check_settings(cls, map(str, value))
            if "name" not in value:
                raise ValueError("the key 'name' is missing")
            value = dict(value)
        elif not value or not isinstance(value, str | Model):
            raise ValueError("give a name, or a mapping such as {name: t5-base, revision: …}")
        return cls.of(value)

    def source(self) -> str:
        """Return what `from_pretrained` takes: a folder or a Hub id."""
        return source_of(self.name)

    def adapter_source(self) -> str | None:
        """Return the adapter's folder or Hub id."""
        return None if self.adapter is None else source_of(self.adapter)

    def key(self) -> str:
        """Identify the weights in every cache: by contents for a folder, by commit for a Hub id."""
        parts = [self.name if is_remote(self) else _identity(self.source(), self.revision)]
        if is_chat(self):  # the same weights as a classifier give other answers
            parts[0] = CHAT + parts[0]
        if (adapter := self.adapter_source()) is not None:
            parts.append(_identity(adapter, None))
        samples = self.samples if self.samples > 1 else None
        prompts = folder_hash(self.prompts) if self.prompts else None
        settings = (("labels", self.labels), ("inputs", self.inputs), ("samples", samples), ("prompts", prompts))
        reading = [f"{name}={value}" for name, value in settings if value]
        return "+".join([*parts, self.dtype, *reading])

    def __getstate__(self) -> dict[str, Any]:
        # A folder that was trained again in place must not find the old rows in the map cache.
        state: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        local = [source for source in (self.source(), self.adapter_source(), self.prompts) if source and os.path.isdir(source)]
        return {**state, "contents": [_identity(source, None) for source in local]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if name != "contents":
                object.__setattr__(self, name, value)


def find_base(folder: str) -> tuple[str, str | None] | None:
    """Return the base of a PEFT adapter's folder, and its revision; None for another folder, or if no base is named.

    A folder with weights of its own is a model, although an adapter may lie in it.
    """
    path = Path(folder, "adapter_config.json")
    if not path.is_file() or Path(folder, "model.safetensors").is_file():
        return None
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    base = settings.get("base_model_name_or_path") if isinstance(settings, dict) else None
    return (str(base), settings.get("revision")) if base else None


def is_remote(model: Model) -> bool:
    """Return whether a model is behind an endpoint."""
    return model.name.startswith(REMOTE)


def is_chat(model: Model) -> bool:
    """Return whether a model is a chat model in this process."""
    return model.name.startswith(CHAT)


def is_prompted(model: Model) -> bool:
    """Return whether a model answers prompts: behind an endpoint, or in this process."""
    return model.name.startswith((REMOTE, CHAT))


def weights_of(model: Model) -> Model:
    """Return the weights of a chat model, without the settings of its prompts."""
    return Model(model.name.removeprefix(CHAT), revision=model.revision, adapter=model.adapter, dtype=model.dtype)


def _check_prompted(name: str) -> None:
    """Raise `ValueError` for the name of a language model that has only a prefix, or an unusable name after it."""
    prefix = REMOTE if name.startswith(REMOTE) else CHAT
    rest = name.removeprefix(prefix)
    if not rest.strip():
        what = "the name by which the server knows it" if prefix == REMOTE else "a Hub id, a folder or offline:NAME"
        raise ValueError(f"{name!r} names no model: write {prefix}NAME, where NAME is {what}")
    if prefix == CHAT and rest.startswith((REMOTE, CHAT)):
        raise ValueError(f"{name!r} has two prefixes: {REMOTE} is for a model behind an endpoint, {CHAT} for one in this process")


def source_of(name: str) -> str:
    """Return the folder or the Hub id of a model's name."""
    name = name.removeprefix(CHAT)
    if name.startswith("offline:"):
        from hfcf.core import offline

        return str(offline.folder(name.removeprefix("offline:")))
    if name.startswith("hfcf:"):
        from hfcf.core import offline

        return str(offline.adapter(name.removeprefix("hfcf:")))
    return name


def commit(model: Model) -> str | None:
    """Return the commit of a Hub model in the cache, else the revision of the `Model`; None for a folder."""
    return _commit(model.name, model.revision)


def _commit(name: str, revision: str | None) -> str | None:
    name = name.removeprefix(CHAT)
    if name.startswith(("offline:", "hfcf:", REMOTE)) or os.path.isdir(name):
        return revision
    try:
        found = _identity(name, revision).rpartition("@")[2]
    except OSError:  # it was not read, or can't be: there is nothing to tell
        return revision
    return revision if found == "None" else found


def named(model: Model) -> str:
    """Name a model as cards do: with its commit, and with its adapter and the adapter's commit."""
    return " + ".join(named_part(*part) for part in ((model.name, model.revision), (model.adapter, None)) if part[0])


def named_part(name: str, revision: str | None = None) -> str:
    """Name a model or an adapter alone as cards do."""
    return name + (f"@{at}" if (at := _commit(name, revision)) else "")


def _identity(source: str, revision: str | None) -> str:
    if os.path.isdir(source):
        return folder_hash(source)
    from transformers.utils import cached_file

    # The cached path names the commit ("…/snapshots/<commit>/config.json"), so no weights are read to learn it.
    names = ("config.json", "adapter_config.json", "explainer.json")
    path = next((path for name in names[:-1] if (path := find_file(source, name, revision))), None)
    path = path or cached_file(source, names[-1], revision=revision)
    match = re.search(r"/snapshots/([^/]+)/", str(path))
    return f"{source}@{match[1] if match else revision}"


def find_file(source: str, name: str, revision: str | None = None) -> str | None:
    """Return the path of a file in a folder or a Hub repository, downloaded if necessary; None if there is no such file."""
    from transformers.utils import cached_file

    path: str | None = cached_file(source, name, revision=revision, _raise_exceptions_for_missing_entries=False)
    return path


def folder_hash(folder: str) -> str:
    """Hash the contents of a folder of weights; memoised by every file's size and time."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith("."))
    stamp = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return _hash_files(folder, stamp)


@lru_cache(maxsize=64)
def _hash_files(folder: str, stamp: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamp:
        if Path(path).suffix == ".md" or Path(path).name == SEEN:
            continue  # a card and a list of training rows say nothing about the answers
        digest.update(os.path.relpath(path, folder).encode())
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
