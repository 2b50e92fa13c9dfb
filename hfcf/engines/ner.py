"""Named entities by spaCy or Stanza, behind one map of types."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Engine

TYPES = ("ORG", "PERSON", "DATE", "GPE", "NUM")
"""The five types that RACE keeps (section 3.2)."""

# OntoNotes' labels, which spaCy's and Stanza's English models use, and the shorter ones of CoNLL models. The paper names
# "NUM", which no tagger outputs: we read it as every kind of number.
_TYPE_OF = {
    "ORG": "ORG", "PERSON": "PERSON", "PER": "PERSON", "DATE": "DATE", "GPE": "GPE",
    "CARDINAL": "NUM", "ORDINAL": "NUM", "QUANTITY": "NUM", "MONEY": "NUM", "PERCENT": "NUM", "NUM": "NUM",
}  # fmt: skip

# Taggers keep a leading article and a possessive ending; neither is part of the name.
_LEAD = re.compile(r"(?:the|an?)\s+", re.IGNORECASE)
# The last full stop of "U.S." is.
_TAIL = re.compile(r"(?:'s|’s|')$|[\s,;:]+$|(?<![.\s]\w)\.$")


@dataclass(frozen=True, kw_only=True)
class Ner(Engine):
    """Entities of text requests, as `[[start, end, type], …]` of the five types of `TYPES`, in order.

    Args:
        backend: "stanza" or "spacy".
        model: spaCy: a pipeline's package or folder, or "offline:spacy". Stanza: a language ("en") or a folder that holds
            `resources.json` and the models that it names. Models that you trained are named in a `stanza.json` beside it,
            with the arguments of `stanza.Pipeline`: {"lang": "en", "ner_model_path": "ner.pt", "ner_pretrain_path":
            "vectors.pt"}; paths are relative to the folder.
        processors: Stanza's, with their packages; None takes the language's defaults for tokens and entities.
    """

    backend: str = "stanza"
    model: Model = Model("en")
    processors: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in ("stanza", "spacy"):
            raise ValueError(f"backend={self.backend!r}: choose stanza or spacy")

    def settings(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "model": self._contents(),
            "processors": self.processors,
            "library": library_version(self.backend, "NER"),
        }

    def _contents(self) -> str:
        return self.model.key() if os.path.isdir(self.model.source()) else self.model.name

    def dtype(self) -> torch.dtype:
        return torch.float32

    def load(self, device: torch.device) -> Any:
        if self.backend == "spacy":
            import spacy

            pipeline = spacy.load(self.model.source())
            encoders = [
                name for name in pipeline.pipe_names if "ner" in getattr(pipeline.get_pipe(name), "listening_components", [])
            ]
            # A recogniser with an encoder of its own runs alone, at twice the speed and with the same entities.
            pipeline.select_pipes(enable=[*encoders, "ner"])
            return pipeline
        return stanza_pipeline(self.model.source(), self.processors or "tokenize,ner", device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return list(requests)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        if self.backend == "spacy":
            # More processes would be forks of a process with threads; the stage's num_proc is the way to more cores.
            docs = loaded.pipe(encoded, batch_size=256)
            found = [[(e.start_char, e.end_char, e.label_) for e in doc.ents] for doc in docs]
        else:
            found = [[(e.start_char, e.end_char, e.type) for e in doc.ents] for doc in loaded.bulk_process(list(encoded))]
        return [clean(text, spans) for text, spans in zip(encoded, found, strict=True)]


def clean(text: str, spans: Sequence[tuple[int, int, str]]) -> list[list[Any]]:
    """Spans of the five types without articles, possessives and punctuation at their ends.

    >>> clean("the Beatles' 1994 tour", [(0, 12, "ORG"), (13, 17, "DATE")])
    [[4, 11, 'ORG'], [13, 17, 'DATE']]
    """
    kept = []
    for start, end, label in spans:
        if label not in _TYPE_OF:
            continue
        if lead := _LEAD.match(text, start, end):
            start = lead.end()
        while tail := _TAIL.search(text[start:end]):
            end = start + tail.start()
        if start < end:
            kept.append([start, end, _TYPE_OF[label]])
    return kept


def stanza_pipeline(source: str, processors: str, device: torch.device, **kwargs: Any) -> Any:
    """A Stanza pipeline from a language or a folder of its own (see `Ner`).

    Args:
        source: the language, or the folder.
        processors: Stanza's, with their packages.
        device: where it computes.
        kwargs: more arguments of `stanza.Pipeline`.
    """
    import stanza

    given: dict[str, Any] = {"processors": processors, "use_gpu": device.type == "cuda", "verbose": False, **kwargs}
    if os.path.isdir(source):
        given |= {"dir": source, "download_method": None, "lang": "en", **_arguments(Path(source))}
    else:
        given["lang"] = source
    return stanza.Pipeline(**given)


def _arguments(folder: Path) -> dict[str, Any]:
    """What the `stanza.json` of a folder says, with the paths of its models."""
    file = folder / "stanza.json"
    given = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {name: str(folder / value) if name.endswith("_path") else value for name, value in given.items()}


def library_version(package: str, what: str) -> str:
    """The installed version of a backend, which is part of its engine's cache key.

    Args:
        package: "spacy" or "stanza".
        what: it does for the engine, for the error when it is missing.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        raise ImportError(f'{what} by {package} needs an extra: pip install "hfcf[{package}]"') from None
