"""Vectors of questions and passages by an encoder, and a FAISS index of the passages' vectors, read memory-mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hfcf.core.model import Model
from hfcf.core.pretrained import read_config, read_tokenizer
from hfcf.core.settings import Positive
from hfcf.core.workers import is_worker
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND
from hfcf.engines.networks import load_network
from hfcf.engines.retriever.topk import Hits, top_k

if TYPE_CHECKING:
    from datasets import Dataset

POOLINGS = ("mean", "cls", "pooler")
CHUNK = 4_096
"""The number of passages that are tokenised at once, and sorted by length."""
FLAT = "Flat"
"""The exact index: every passage is compared."""
INSTALL = 'FAISS is not installed: pip install "faiss-cpu>=1.11", or in a checkout of hfcf: pip install ".[dense]"'
SAMPLE = 65_536
"""Passages that a training reads if the collection has them, or 40 for each list: FAISS uses as many."""
MARGIN = 32
"""Passages that are found besides twice `k`, so that equal scores around the k-th place are all seen."""
_SEED = 13
_FILE = "vectors.faiss"
Vectors = Callable[[np.ndarray], np.ndarray]
"""Returns the vectors of passages by their numbers."""


@dataclass(frozen=True, kw_only=True)
class PassageEncoder(Engine):
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
    folder: Path, passages: Dataset, encoder: PassageEncoder, kept: Path, *, index: str = FLAT, index_search: str = "",
    flat: Path | None = None,
) -> None:  # fmt: skip
    """Write the index of a collection's vectors into a new folder.

    Bytes for each passage of d dimensions: "Flat" takes 4d, so 21 million of 768 dimensions take 65 GB. "HNSW32" takes about 4d +
    280. "IVF65536,PQ64" takes 64, 16 for its number and place, and 4d for each of the 65,536 lists. On disk the vectors take as
    much again until the index is written.

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
        add_vectors(made, lambda numbers: records["vector"][places[numbers]], len(passages))
    else:
        add_vectors(made, _read(flat).reconstruct_batch, len(passages))
    folder.mkdir()
    faiss.write_index(made, str(folder / _FILE))


def import_faiss() -> Any:
    """Return the module; raise `ModuleNotFoundError` with the command that installs it."""
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(INSTALL) from error
    return faiss


def new_index(index: str, index_search: str, dimensions: int, passages: int) -> Any:
    """Make an empty index, before the hours of encoding.

    Args:
        index: a string of FAISS's `index_factory`.
        index_search: parameters of a search in the form of FAISS's `ParameterSpace`, such as "nprobe=64"; "" for FAISS's own.
        dimensions: the number of dimensions of a vector.
        passages: the number of passages of the collection.

    Raises:
        ValueError: FAISS can't make the index or does not have a parameter, its metric is not the inner product, or the collection
            is smaller than its number of lists.
    """
    faiss = import_faiss()
    try:
        made = faiss.index_factory(dimensions, index, faiss.METRIC_INNER_PRODUCT)
        tune(made, index_search)
    except RuntimeError as error:
        raise ValueError(
            f"index={index!r} and index_search={index_search!r} must be strings of FAISS's index_factory and ParameterSpace for "
            f'{dimensions} dimensions, such as "IVF65536,PQ64" and "nprobe=64": {error}'
        ) from error
    if made.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError(f'index={index!r} does not compare by the inner product: take one of "Flat", "HNSW…" or "IVF…"')
    if passages < (lists := _lists(made)):
        raise ValueError(f"index={index!r} has {lists:,} lists and the collection {passages:,} passages: take fewer lists")
    return made


def _lists(made: Any) -> int:
    ivf = import_faiss().try_extract_index_ivf(made)
    return 0 if ivf is None else int(ivf.nlist)


def tune(made: Any, index_search: str) -> None:
    """Set the parameters of a search, such as "nprobe=64" or "efSearch=128"."""
    if index_search:
        import_faiss().ParameterSpace().set_index_parameters(made, index_search)


def add_vectors(made: Any, vectors: Vectors, passages: int) -> None:
    """Train an index on a seeded sample of the passages, and add all of them chunk by chunk."""
    if not made.is_trained:
        size = min(passages, max(40 * _lists(made), SAMPLE))
        sample = np.sort(np.random.default_rng(_SEED).choice(passages, size, replace=False))
        made.train(np.ascontiguousarray(vectors(sample)))
    for start in range(0, passages, CHUNK):
        made.add(np.ascontiguousarray(vectors(np.arange(start, min(start + CHUNK, passages)))))
    if (ivf := import_faiss().try_extract_index_ivf(made)) is not None:
        ivf.make_direct_map()  # a search computes the scores again from what the index has of each passage


def _read(folder: Path) -> Any:
    faiss = import_faiss()
    # `IO_FLAG_MMAP` reads a flat index into memory; this flag maps it.
    return faiss.read_index(str(folder / _FILE), faiss.IO_FLAG_MMAP_IFC)


def _encode(passages: Dataset, encoder: PassageEncoder, kept: Path, shape: tuple[int, ...]) -> np.ndarray:
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


class DenseIndex:
    """Search in the file of `build`, memory-mapped."""

    def __init__(self, folder: Path, encoder: PassageEncoder, index_search: str = "") -> None:
        if is_worker():
            import_faiss().omp_set_num_threads(1)  # after a fork, more threads hang
        self._index = _read(folder)
        tune(self._index, index_search)
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
        readable = [i for i, question in enumerate(questions) if len(question)]
        hits: list[Hits] = [[] for _ in questions]
        if readable:
            vectors = np.concatenate([self._vector(questions[i]) for i in readable])
            for i, found in zip(readable, search(self._index, vectors, k), strict=True):
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


def search(made: Any, vectors: np.ndarray, k: int) -> list[Hits]:
    """Return the k best passages for each of some vectors, by scores that are computed again in float64."""
    found = []
    for vector, places in zip(vectors, made.search(vectors, min(2 * k + MARGIN, made.ntotal))[1], strict=True):
        numbers = np.sort(places[places >= 0])
        found.append(top_k(numbers, made.reconstruct_batch(numbers).astype(np.float64) @ vector.astype(np.float64), k))
    return found
