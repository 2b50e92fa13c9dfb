"""Vectors of questions and passages by an encoder, and a FAISS index of the passages', read memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hfcf.core.decisions import TOLERANCE
from hfcf.core.model import Model
from hfcf.core.pretrained import read_config, read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.networks import load_network
from hfcf.engines.retriever.topk import Hits, top_k

if TYPE_CHECKING:
    from datasets import Dataset

POOLINGS = ("mean", "cls", "pooler")
CHUNK = 4_096
"""Passages that are tokenised at once, and sorted by length."""
_FILE = "vectors.faiss"
INSTALL = 'FAISS is not installed; the extra has it: pip install "hfcf[dense]", or pip install "faiss-cpu>=1.11"'


@dataclass(frozen=True, kw_only=True)
class Encoder(Engine):
    """Vectors of `[title, text]` requests; the arguments are those of `Retriever`. It is not asked through the request cache.

    Raises:
        ValueError: there is no such pooling.
    """

    model: Model
    pooling: str
    normalise: bool
    max_length: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling={self.pooling!r}: use {', '.join(map(repr, POOLINGS))}")

    def load(self, device: torch.device) -> Any:
        import transformers

        config = read_config(self.model)
        # `AutoModel` reads both of DPR's encoders as that of questions, and leaves the other's weights random.
        passages = any("ContextEncoder" in name for name in config.architectures or ())
        auto = transformers.DPRContextEncoder if passages else transformers.AutoModel
        network = load_network(auto, self.model, self.dtype(), unread=() if self.pooling == "pooler" else ("pooler.",))
        return network.to(device), read_tokenizer(self.model)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer, rows = loaded[1], []
        for title, text in requests:
            pair = (title, text) if title else (text,)  # as DPR was trained
            row = tokenizer(*pair, truncation="longest_first", max_length=self.max_length, return_attention_mask=False)
            rows.append(Encoded({name: row[name] for name in tokenizer.model_input_names if name in row}))
        return rows

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        batch = pad(tokenizer, encoded, network.device)
        with torch.inference_mode():
            output = network(**batch)
        vectors = self.pool(output, batch["attention_mask"])
        return [*vectors.cpu().numpy().astype(np.float32)]

    def pool(self, output: Any, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the vector of each text of a batch, from the network's output."""
        if self.pooling == "pooler":
            if getattr(output, "pooler_output", None) is None:
                raise ValueError(f'{self.model.name} has no pooled output: use pooling="mean" or "cls"')
            vectors: torch.Tensor = output.pooler_output.float()
        elif getattr(output, "last_hidden_state", None) is None:
            raise ValueError(f'{self.model.name} gives one vector only: use pooling="pooler"')
        elif self.pooling == "cls":
            vectors = output.last_hidden_state[:, 0].float()
        else:
            mask = attention_mask.unsqueeze(-1).float()
            vectors = (output.last_hidden_state.float() * mask).sum(1) / mask.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(vectors, dim=-1) if self.normalise else vectors


def build(folder: Path, passages: Dataset, encoder: Encoder, kept: Path) -> None:
    """Write the index of a collection's vectors, `IndexFlatIP`, into a new folder.

    Memory: all vectors, 4 bytes a dimension and passage: 21 million of 768 dimensions take 65 GB, of 128 dimensions 11 GB. On disk
    they take as much again until the index is written.
    """
    faiss = _faiss()
    try:
        records = _encode(passages, encoder, kept)
    except ValueError:  # another encoder will have another file
        kept.unlink(missing_ok=True)
        raise
    places = np.empty(len(passages), dtype=np.int64)
    places[records["number"] - 1] = np.arange(len(records))
    index = faiss.IndexFlatIP(records["vector"].shape[1])
    for start in range(0, len(passages), CHUNK):
        index.add(records["vector"][places[start : start + CHUNK]])
    folder.mkdir()
    faiss.write_index(index, str(folder / _FILE))


def _encode(passages: Dataset, encoder: Encoder, kept: Path) -> np.ndarray:
    """Write the vectors that a file lacks, batch by batch; map the file: the `number`, from 1, and the `vector` of each passage."""
    loaded = encoder.loaded()
    [any_vector] = encoder.forward(loaded, encoder.encode(loaded, [["", "."]]))
    record = np.dtype([("number", np.int64), ("vector", np.float32, any_vector.shape)])
    done = np.zeros(len(passages), dtype=bool)
    with kept.open("ab") as file:
        if whole := file.tell() // record.itemsize:
            numbers = np.memmap(kept, record, "r", shape=(whole,))["number"].copy()
            wrong = (numbers < 1) | (numbers > len(passages))
            whole = int(np.argmax(wrong)) if wrong.any() else whole
            done[numbers[:whole] - 1] = True
        file.truncate(whole * record.itemsize)  # a kill may have cut the last record off, a crash of the machine left zeros
        for start in range(0, len(passages), CHUNK):
            if done[start : start + CHUNK].all():
                continue
            part = passages[start : start + CHUNK]
            encoded = encoder.encode(loaded, [*zip(part["title"], part["text"], strict=True)])
            for batch in encoder.batches([len(item) for item in encoded]):
                numbers = start + np.array(batch)
                if done[numbers].all():
                    continue
                rows = np.empty(len(batch), dtype=record)
                rows["number"], rows["vector"] = numbers + 1, np.stack(encoder.forward_split(loaded, [encoded[i] for i in batch]))
                if not (finite := np.isfinite(rows["vector"]).all(axis=1)).all():
                    number = numbers[np.argmin(finite)]
                    raise ValueError(
                        f'{encoder.model.name} gives passage {number} a vector that is not a number; try dtype="float32"'
                    )
                file.write(rows.tobytes())
                file.flush()
    return np.memmap(kept, record, "r")


class Index:
    """Search in the file of `build`, memory-mapped."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        faiss = _faiss()
        # `IO_FLAG_MMAP` reads a flat index into memory; this flag maps it.
        self._index = faiss.read_index(str(folder / _FILE), faiss.IO_FLAG_MMAP_IFC)
        self._encoder, self._loaded = encoder, encoder.loaded()

    def encode(self, text: str) -> Encoded:
        """Return a question in the network's form, without tokens if it is blank."""
        return self._encoder.encode(self._loaded, [["", text]])[0] if text.strip() else Encoded({"input_ids": []})

    def vectors(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the vectors of passages by their numbers, passages × dimensions."""
        return np.asarray(self._index.reconstruct_batch(np.asarray(numbers, dtype=np.int64)))

    def search(self, question: Encoded, k: int) -> Hits:
        """Return the passages with the largest inner product, computed again in float64."""
        if not len(question):
            return []
        vector = self._vector(question)
        size = min(2 * k, self._index.ntotal)
        while True:
            _, places = self._index.search(vector, size)
            numbers = np.sort(places[0])
            vectors = self._index.reconstruct_batch(numbers)
            scores = vectors.astype(np.float64) @ vector[0].astype(np.float64)
            hits = top_k(numbers, scores, k)
            # By how much FAISS, in float32, may misjudge a score, and which scores are equal.
            slack = 2 * TOLERANCE + 1e-5 * float(np.linalg.norm(vector) * np.linalg.norm(vectors, axis=1).max())
            # FAISS cuts equal passages anywhere: read on until the last is worse than the k-th by more than this.
            if size == self._index.ntotal or scores.min() < hits[-1][1] - slack:
                return hits
            size = min(4 * size, self._index.ntotal)

    def score(self, question: Encoded, numbers: Sequence[int]) -> list[float]:
        """Return the inner product with each of some passages, in float64 and rounded; 0 for a blank question."""
        if not len(question) or not len(numbers):
            return [0.0] * len(numbers)
        vectors = self._index.reconstruct_batch(np.asarray(numbers, dtype=np.int64)).astype(np.float64)
        return [round(float(score), ROUND) for score in vectors @ self._vector(question)[0].astype(np.float64)]

    def _vector(self, question: Encoded) -> Any:
        vector = np.stack(self._encoder.forward(self._loaded, [question]))
        if vector.shape[1] != self._index.d:
            raise ValueError(
                f"the questions' vectors have {vector.shape[1]} dimensions, the passages' {self._index.d}: the encoders differ"
            )
        return vector


def _faiss() -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(INSTALL) from error
    return faiss
