"""Named entities by spaCy or Stanza, behind one map of types."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.model_checks import check_weights, is_package
from hfcf.engines.base import Engine

TYPES = ("ORG", "PERSON", "DATE", "GPE", "NUM")
"""The five types that RACE keeps (section 3.2)."""

# OntoNotes' labels, which spaCy's and Stanza's English models use, and CoNLL's. No tagger has the paper's "NUM"; here it means
# every kind of number.
_TYPE_OF = {
    "ORG": "ORG", "PERSON": "PERSON", "PER": "PERSON", "DATE": "DATE", "GPE": "GPE",
    "CARDINAL": "NUM", "ORDINAL": "NUM", "QUANTITY": "NUM", "MONEY": "NUM", "PERCENT": "NUM", "NUM": "NUM",
}  # fmt: skip

# Taggers include a leading article and a possessive ending; neither is part of the name.
_LEAD = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
# The last full stop of "U.S." is a part of it.
_TAIL = re.compile(r"(?:'s|’s|')$|(?<![\s,;:])[\s,;:]+$|(?<![.\s]\w)\.$")


@dataclass(frozen=True, kw_only=True)
class Ner(Engine):
    """Entities of text requests (`[[start, end, type], …]` of the five types of `TYPES`, in order).

    Args:
        backend: "stanza" or "spacy".
        model: spaCy: a pipeline's package or folder, or "offline:spacy". Stanza: a language ("en") or a folder with
            `resources.json` and its models. A file `stanza.json` in the folder names your own models by arguments of
            `stanza.Pipeline`; paths are relative to it: {"lang": "en", "ner_model_path": "ner.pt", "ner_pretrain_path":
            "vectors.pt"}.
        processors: Stanza's processors, with their packages; None takes the language's defaults for tokens and entities.
    """

    backend: str = "stanza"
    model: Model = Model("en")
    processors: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_backend(self.backend)

    def check_available(self, where: str) -> None:
        """Raise an error unless the backend and its model are installed; `hfcf.core.preflight` calls it."""
        check_pipeline(self.backend, self.model, "NER", where)

    def settings(self) -> dict[str, Any]:
        return {**backend_settings(self.backend, self.model, "NER"), "processors": self.processors}

    def dtype(self) -> torch.dtype:
        return torch.float32

    def load(self, device: torch.device) -> Any:
        if self.backend == "spacy":
            import spacy

            pipeline = spacy.load(self.model.source())
            # A recogniser with its own encoder runs alone, at twice the speed and with the same entities.
            parts = {name: getattr(part, "listening_components", []) for name, part in pipeline.pipeline}
            encoders = [name for name, listeners in parts.items() if "ner" in listeners]
            if [name for name in parts if "doc.ents" in pipeline.get_pipe_meta(name).assigns] == ["ner"]:
                pipeline.select_pipes(enable=[*encoders, "ner"])
            return pipeline
        return stanza_pipeline(self.model.source(), self.processors or "tokenize,ner", device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return list(requests)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        if self.backend == "spacy":
            # More processes would fork a process with threads; use the stage's num_proc for more cores.
            docs = loaded.pipe(encoded, batch_size=256)
            entities = [[(e.start_char, e.end_char, e.label_) for e in doc.ents] for doc in docs]
        else:
            entities = [[(e.start_char, e.end_char, e.type) for e in doc.ents] for doc in loaded.bulk_process(list(encoded))]
        return [clean(text, spans) for text, spans in zip(encoded, entities, strict=True)]


def clean(text: str, spans: Sequence[tuple[int, int, str]]) -> list[list[Any]]:
    """Return the spans of the five types, without articles, possessives and punctuation at their ends."""
    cleaned = []
    for start, end, label in spans:
        if label not in _TYPE_OF:
            continue
        if lead := _LEAD.match(text, start, end):
            start = lead.end()
        while tail := _TAIL.search(text[start:end]):
            end = start + tail.start()
        if start < end:
            cleaned.append([start, end, _TYPE_OF[label]])
    return cleaned


def stanza_pipeline(source: str, processors: str, device: torch.device, **kwargs: Any) -> Any:
    """Make a Stanza pipeline from a language or a folder (see `Ner`), with more arguments of `stanza.Pipeline` in `kwargs`."""
    import stanza
    from huggingface_hub import constants

    kwargs |= {"processors": processors, "use_gpu": device.type == "cuda", "verbose": False, "lang": source}
    if os.path.isdir(source):
        file = Path(source) / "stanza.json"
        settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        paths = {name: os.path.join(source, value) for name, value in settings.items() if name.endswith("_path")}
        return stanza.Pipeline(**kwargs | {"lang": "en", **settings, **paths, "dir": source, "download_method": None})
    offline = {"download_method": None}
    try:
        # Stanza asks the network for its list of models each time, also when they are here.
        return stanza.Pipeline(**kwargs | (offline if constants.HF_HUB_OFFLINE else {}))
    except OSError as error:
        with suppress(OSError):
            return stanza.Pipeline(**kwargs | offline)
        raise ValueError(
            f"Stanza's models of {source!r} are not on this machine and can't be downloaded. Run stanza.download({source!r}) with "
            "a network, give a folder with them, or use spaCy's: {backend: spacy, model: offline:spacy}"
        ) from error


def check_backend(backend: str) -> None:
    """Raise `ValueError` unless the backend is "stanza" or "spacy"."""
    if backend not in ("stanza", "spacy"):
        raise ValueError(f"backend must be stanza or spacy, got {backend!r}")


def check_pipeline(backend: str, model: Model, purpose: str, where: str) -> None:
    """Raise an error if a backend or its pipeline is not installed."""
    if not is_package(backend):
        raise ImportError(f'{where}: {purpose} by {backend} needs an extra; in a checkout of hfcf: pip install ".[{backend}]"')
    if model.name.startswith("offline:"):
        check_weights(model, where)
    elif backend == "spacy" and not is_package(model.name) and not os.path.isdir(model.name):
        raise ValueError(
            f"{where}: spaCy has no pipeline {model.name!r}. Name an installed package, a folder or offline:spacy; a pipeline of "
            f"spaCy's own is installed by: python -m spacy download {model.name}"
        )


def backend_settings(backend: str, model: Model, purpose: str) -> dict[str, Any]:
    """Return the settings of an engine that come from the backend, its installed version and its model."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        library = version(backend)
    except PackageNotFoundError:
        raise ImportError(f'{purpose} by {backend} needs an extra; in a checkout of hfcf: pip install ".[{backend}]"') from None
    contents = model.key() if os.path.isdir(model.source()) else model.name
    with suppress(PackageNotFoundError, ValueError):
        contents = f"{contents} {version(model.name)}"  # an installed pipeline, such as en_core_web_sm
    return {"backend": backend, "model": contents, "library": library}
