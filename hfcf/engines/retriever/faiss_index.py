"""FAISS indexes by name: make, train, fill and tune what `index_factory` describes, so that equal settings find equal passages.

Bytes for each passage of d dimensions: "Flat" takes 4d. "HNSW32" takes 4d + 2 · 32 · 4 for links of the ground level (about 4d +
280 in all). "IVF65536,PQ64" takes 64, 8 for its number and 8 for its place, and 4d for each of the 65,536 lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

FLAT = "Flat"
"""The exact index: every passage is compared."""
INSTALL = 'FAISS is not installed: pip install "faiss-cpu>=1.11", or in a checkout of hfcf: pip install ".[dense]"'
LEAST, EACH = 39, 40
"""Passages for each centroid: the fewest that FAISS trains on without a warning, and how many are read."""
SAMPLE = 65_536
"""Passages that every training reads if the collection has them: FAISS uses as many for the codes of a product quantiser."""
SEED = 13
_CHUNK = 4_096

Vectors = Callable[[np.ndarray], np.ndarray]
"""Returns the vectors of passages by their numbers."""


def import_faiss() -> Any:
    """Return the module; raise `ModuleNotFoundError` with the command that installs it."""
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(INSTALL) from error
    return faiss


def new_index(index: str, index_search: str, dimensions: int, passages: int) -> Any:
    """Make an empty index, and check all that can be checked before the hours of encoding.

    Args:
        index: a string of FAISS's `index_factory`.
        index_search: parameters of a search in the form of FAISS's `ParameterSpace`, such as "nprobe=64"; "" for FAISS's own.
        dimensions: the number of dimensions of a vector.
        passages: the number of passages of the collection.

    Raises:
        ValueError: FAISS can't make the index or does not have a parameter, its metric is not the inner product, or the collection
            is too small.
    """
    faiss = import_faiss()
    try:
        made = faiss.index_factory(dimensions, index, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        if _makes(faiss, dimensions, index, faiss.METRIC_L2):
            raise ValueError(_other_metric(index)) from error
        raise ValueError(
            f"index={index!r} must be a string of FAISS's index_factory that fits {dimensions} dimensions, such as "
            f'"Flat", "HNSW32" or "IVF65536,PQ64": {_reason(error)}'
        ) from error
    if made.metric_type != faiss.METRIC_INNER_PRODUCT:
        raise ValueError(_other_metric(index))
    tune(made, index, index_search)
    if passages < (needed := LEAST * (centroids := _centroids(faiss, made))):
        raise ValueError(
            f"index={index!r} must be trained on at least {needed:,} passages ({LEAST} for each of its {centroids:,} centroids), "
            f'the collection has {passages:,}: take fewer lists, or index="Flat"'
        )
    return made


def tune(made: Any, index: str, index_search: str) -> None:
    """Set the parameters of a search, such as "nprobe=64" or "efSearch=128"."""
    if not index_search:
        return
    try:
        import_faiss().ParameterSpace().set_index_parameters(made, index_search)
    except RuntimeError as error:
        raise ValueError(
            f"index_search={index_search!r} must be parameters that index={index!r} has, such as "
            f'"nprobe=64" for IVF or "efSearch=128" for HNSW: {_reason(error)}'
        ) from error


def fill(made: Any, index: str, vectors: Vectors, passages: int) -> None:
    """Train an index on a seeded sample of the passages, and add all of them chunk by chunk.

    It needs memory for the sample, at most `max(EACH × centroids, SAMPLE)` vectors, for a chunk, and for the index itself.

    A graph depends on the order in which its nodes come, so it grows in one thread: HNSW over millions of passages takes hours.
    """
    faiss = import_faiss()
    inner = _inner(faiss, made)
    ivf = faiss.try_extract_index_ivf(made)
    try:
        if not made.is_trained:
            size = min(passages, max(EACH * _centroids(faiss, made), SAMPLE))
            sample = np.sort(np.random.default_rng(SEED).choice(passages, size, replace=False))
            made.train(np.ascontiguousarray(vectors(sample)))
            if ivf is not None and _is_graph(faiss, faiss.downcast_index(ivf.quantizer)):
                _grow_again(faiss, faiss.downcast_index(ivf.quantizer), ivf.nlist)
        with _threads(faiss, 1 if _is_graph(faiss, inner) else faiss.omp_get_max_threads()):
            for start in range(0, passages, _CHUNK):
                made.add(np.ascontiguousarray(vectors(np.arange(start, min(start + _CHUNK, passages)))))
    except RuntimeError as error:
        raise ValueError(f"index={index!r} can't be built in chunks: {_reason(error)}") from error
    if ivf is not None:
        ivf.make_direct_map()  # a search computes the scores again from what the index has of each passage


class Approximate:
    """Search in an index that does not compare every passage; a question finds the same passages alone and in a batch.

    FAISS multiplies large batches by BLAS, whose last bits depend on the batch, and they could choose another list. So rotations of
    the vectors are computed for each question, and lists are chosen without BLAS.
    """

    def __init__(self, made: Any) -> None:
        faiss = self._faiss = import_faiss()
        self._owner = made  # the parts below are pointers into it
        self._chain: list[Any] = []
        while isinstance(made := faiss.downcast_index(made), faiss.IndexPreTransform):
            self._chain += [faiss.downcast_VectorTransform(made.chain.at(i)) for i in range(made.chain.size())]
            made = made.index
        self._inner = made
        # Below it there may be another rotation.
        self._alone = isinstance(made, faiss.IndexRefine)

    def search(self, questions: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the numbers of the passages of each question, in order, and their scores in float64 from what the index stores."""
        size = min(size, self._inner.ntotal)
        moved = np.concatenate([self._move(question[None]) for question in questions])
        parts = [moved[i : i + 1] for i in range(len(moved))] if self._alone else [moved]
        with blas(self._faiss, use=False):
            found = np.concatenate([self._inner.search(part, size)[1] for part in parts])
        for vector, places in zip(moved, found, strict=True):
            numbers = np.sort(places[places >= 0])
            stored = self._inner.reconstruct_batch(numbers).astype(np.float64)
            yield numbers, stored @ vector.astype(np.float64)

    def _move(self, vectors: np.ndarray) -> np.ndarray:
        for transform in self._chain:
            vectors = transform.apply(vectors)
        return vectors


def _makes(faiss: Any, dimensions: int, index: str, metric: int) -> bool:
    try:
        faiss.index_factory(dimensions, index, metric)
    except RuntimeError:
        return False
    return True


def _other_metric(index: str) -> str:
    return (
        f"index={index!r} compares vectors by another metric than the inner product, by which the encoders were trained: take "
        'one of "Flat", "HNSW…" or "IVF…"'
    )


def _reason(error: RuntimeError) -> str:
    """Return the last part of FAISS's message, which names a line of its source before it."""
    return str(error).rpartition("Error: ")[2].rpartition(".cpp:")[2].lstrip("0123456789: ")


def _inner(faiss: Any, made: Any) -> Any:
    """Return the index below rotations and a second ranking."""
    made = faiss.downcast_index(made)
    if isinstance(made, faiss.IndexPreTransform):
        return _inner(faiss, made.index)
    return _inner(faiss, made.base_index) if isinstance(made, faiss.IndexRefine) else made


def _centroids(faiss: Any, made: Any) -> int:
    """Return the most centroids that one training of the index computes: its lists, or the codes of its quantiser."""
    inner = _inner(faiss, made)
    return max(getattr(inner, "nlist", 0), getattr(getattr(inner, "pq", None), "ksub", 0))


def _is_graph(faiss: Any, made: Any) -> bool:
    return isinstance(made, faiss.IndexHNSW | faiss.IndexNSG)


def _grow_again(faiss: Any, quantizer: Any, lists: int) -> None:
    """Make the graph of the lists' centres again, in one thread."""
    centres = quantizer.reconstruct_n(0, lists)
    quantizer.reset()
    with _threads(faiss, 1):
        quantizer.add(centres)


@contextmanager
def _threads(faiss: Any, number: int) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def blas(faiss: Any, use: bool) -> Iterator[None]:
    """Let FAISS multiply matrices by BLAS, or compare vector by vector; its own rule differs between versions."""
    before = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 1 if use else 1 << 30
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = before
