"""Vectors of questions and passages by an encoder, and a FAISS index of the passages' vectors, read memory-mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hfcf.core.decisions import TOLERANCE
from hfcf.core.model import Model
from hfcf.core.pretrained import read_config, read_tokenizer
from hfcf.core.settings import Positive
from hfcf.core.workers import is_worker
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.networks import load_network
from hfcf.engines.retriever.faiss_index import FLAT, Approximate, blas, fill, import_faiss, new_index, tune
from hfcf.engines.retriever.topk import Hits, top_k

if TYPE_CHECKING:
    from datasets import Dataset

POOLINGS = ("mean", "cls", "pooler")
CHUNK = 4_096
"""The number of passages that are tokenised at once, and sorted by length."""
MANY = 16
"""The number of questions from which on an exact search multiplies matrices."""
_FILE = "vectors.faiss"


@dataclass(frozen=True, kw_only=True)
class Encoder(Engine):
    """Vectors of `[title, text]` requests; the arguments are the same as in `Retriever`. It does not use the request cache.

    Raises:
        ValueError: the pooling is unknown.
    """

    model: Model
    pooling: str
    normalise: bool
    max_length: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(map(repr, POOLINGS))}, got {self.pooling!r}")

    def load(self, device: torch.device) -> Any:
        import transformers

        config = read_config(self.model)
        # `AutoModel` reads both of DPR's encoders as question encoders, and leaves the weights of the passage encoder random.
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


def build(
    folder: Path, passages: Dataset, encoder: Encoder, kept: Path, *, index: str = FLAT, index_search: str = "",
    flat: Path | None = None,
) -> None:  # fmt: skip
    """Write the index of a collection's vectors into a new folder.

    For its memory see `hfcf.engines.retriever.faiss_index`. The exact index holds all vectors, 4 bytes a dimension and passage: 21
    million of 768 dimensions take 65 GB, of 128 dimensions 11 GB. On disk they take as much again until the index is written.

    Args:
        kept: the file of encoded vectors, from which a build that was killed continues.
        index: a string of FAISS's `index_factory`.
        index_search: parameters of a search, which are checked here.
        flat: the folder of the exact index of the same vectors, if it exists: they are not encoded again.
    """
    faiss, loaded = import_faiss(), encoder.loaded()
    [any_vector] = encoder.forward(loaded, encoder.encode(loaded, [["", "."]]))
    made = new_index(index, index_search, len(any_vector), len(passages))
    if flat is None:
        try:
            records = _encode(passages, encoder, kept, any_vector.shape)
        except ValueError:  # another encoder will have another file
            kept.unlink(missing_ok=True)
            raise
        places = np.empty(len(passages), dtype=np.int64)
        places[records["number"] - 1] = np.arange(len(records))
        fill(made, index, lambda numbers: records["vector"][places[numbers]], len(passages))
    else:
        fill(made, index, _read(flat).reconstruct_batch, len(passages))
    folder.mkdir()
    faiss.write_index(made, str(folder / _FILE))


def _read(folder: Path) -> Any:
    faiss = import_faiss()
    # `IO_FLAG_MMAP` reads a flat index into memory; this flag maps it.
    return faiss.read_index(str(folder / _FILE), faiss.IO_FLAG_MMAP_IFC)


def _encode(passages: Dataset, encoder: Encoder, kept: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Write the vectors that a file lacks, batch by batch; map the file: the `number`, from 1, and the `vector` of each passage."""
    loaded = encoder.loaded()
    record = np.dtype([("number", np.int64), ("vector", np.float32, shape)])
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

    def __init__(self, folder: Path, encoder: Encoder, index: str = FLAT, index_search: str = "") -> None:
        if is_worker():
            import_faiss().omp_set_num_threads(1)  # after a fork, more threads hang
        self._index = _read(folder)
        tune(self._index, index, index_search)
        self._find = searcher(self._index, index)
        self._encoder, self._loaded = encoder, encoder.loaded()

    def encode(self, text: str) -> Encoded:
        """Return a question in the network's form, without tokens if it is blank."""
        return self._encoder.encode(self._loaded, [["", text]])[0] if text.strip() else Encoded({"input_ids": []})

    def vectors(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the vectors of passages by their numbers, passages × dimensions; for an index with codes, the decoded vectors."""
        return np.asarray(self._index.reconstruct_batch(np.asarray(numbers, dtype=np.int64)))

    def search(self, questions: Sequence[Encoded], k: int) -> list[Hits]:
        """Return the passages with the largest inner products, computed again in float64, for each question.

        Each question is encoded alone: padding moves the last bits of a vector. The index is searched for all of them at once.
        """
        asked = [i for i, question in enumerate(questions) if len(question)]
        hits: list[Hits] = [[] for _ in questions]
        if asked:
            vectors = np.concatenate([self._vector(questions[i]) for i in asked])
            for i, found in zip(asked, self._find(vectors, k), strict=True):
                hits[i] = found
        return hits

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


def searcher(made: Any, index: str) -> Callable[[np.ndarray, int], list[Hits]]:
    """Return the function that finds the k best passages for each of some vectors."""
    if index == FLAT:
        return partial(_find_exactly, made)
    approximate = Approximate(made)
    return lambda vectors, k: [top_k(numbers, scores, k) for numbers, scores in approximate.search(vectors, 2 * k)]


def _find_exactly(made: Any, vectors: np.ndarray, k: int) -> list[Hits]:
    hits: list[Hits] = [[] for _ in vectors]
    unsure, size = list(range(len(vectors))), min(2 * k, made.ntotal)
    while unsure:
        # BLAS is faster for many questions, slower for one. Its last bits don't matter: scores are computed again.
        with blas(import_faiss(), use=len(unsure) >= MANY):
            _, places = made.search(vectors[unsure], size)
        asked, unsure = unsure, []
        for i, found in zip(asked, places, strict=True):
            numbers = np.sort(found)
            stored = made.reconstruct_batch(numbers)
            scores = stored.astype(np.float64) @ vectors[i].astype(np.float64)
            hits[i] = top_k(numbers, scores, k)
            # By how much FAISS, in float32, may misjudge a score, and which scores are equal.
            slack = 2 * TOLERANCE + 1e-5 * float(np.linalg.norm(vectors[i]) * np.linalg.norm(stored, axis=1).max())
            # FAISS cuts equal passages anywhere: read on until the last is worse than the k-th by more than this.
            if size < made.ntotal and scores.min() >= hits[i][-1][1] - slack:
                unsure.append(i)
        size = min(4 * size, made.ntotal)
    return hits
