"""The base of all engines: answer each distinct request once, in batches of similar length, and cache the answers."""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import multiprocess
import torch
from accelerate import PartialState
from accelerate.utils import get_int_from_env
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from hfcf.core import progress
from hfcf.core.errors import NO_DEVICE_MEMORY
from hfcf.core.model import Model, is_chat, is_prompted
from hfcf.core.settings import check_numbers
from hfcf.core.workers import is_worker
from hfcf.engines.cache import open_cache

log = logging.getLogger(__name__)


def process_device() -> torch.device:
    """Return the device of this process: `HFCF_DEVICE`, else accelerate's choice, or an accelerator by the process number.

    Under a launcher, a new `PartialState` waits until every rank has made its own. A rank that runs no model (an empty shard,
    answers from the cache) never makes it. So a launched process joins no process group here. It takes the device of
    `ACCELERATE_TORCH_DEVICE`, else the accelerator of its `LOCAL_RANK`, as `PartialState` would. If a group exists, accelerate
    chooses.

    Workers of `Dataset.map(num_proc=…)` inherit the environment of their parent. Under a launcher they share its device; otherwise
    each worker takes the next accelerator.

    Raises:
        RuntimeError: this process was forked from a process that uses a GPU, and can't use the GPU itself.
    """
    if name := os.environ.get("HFCF_DEVICE"):
        return _usable(torch.device(name))
    rank = get_int_from_env(["LOCAL_RANK"], -1)
    if not is_worker() and (rank < 0 or torch.distributed.is_initialized()):
        return PartialState().device
    if name := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        return torch.device(name)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return torch.device("cpu")
    return _usable(torch.device(accelerator.type, (rank if rank >= 0 else _worker_number()) % torch.accelerator.device_count()))


def _usable(device: torch.device) -> torch.device:
    if device.type == "cuda" and is_worker():
        try:
            torch.cuda.init()
        except RuntimeError as error:
            raise RuntimeError(
                "num_proc: this worker can't use the GPU. If its parent process has used it, leave num_proc out, or call "
                'multiprocess.set_start_method("spawn", force=True) before the map'
            ) from error
    return device


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device computes in bfloat16; others emulate it, several times slower than float32.

    GPUs have it since Ampere, not V100 and T4; of processors, versions of torch before 2.10 do not tell.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name) for name in ("amx_bf16", "avx512_bf16", "bf16"))


def limit_threads() -> None:
    """Limit torch to one thread in a pool's worker.

    With more threads, two workers on two cores are several times slower than one, and after a fork they hang.
    """
    if is_worker():
        torch.set_num_threads(1)


def _worker_number() -> int:
    # `datasets` tells the number to mapped functions only, and only with `with_rank`; but pools number their workers' names from 1.
    names = (multiprocess.current_process().name, multiprocessing.current_process().name)
    digits = next((number for name in names if (number := name.rpartition("-")[2]).isdigit()), "1")
    return int(digits) - 1


@dataclass
class Usage:
    """Counts of what an engine has done in this process."""

    calls: int = 0
    """The number of requests that a model answered."""
    cached: int = 0
    """The number of requests that the cache answered."""
    tokens: int = 0
    """The number of tokens (characters, for taggers) that went through a model, without padding."""
    seconds: float = 0.0
    """Seconds inside models, forward and backward; for a remote model, until the last answer came."""
    attempts: int = 0
    """Calls of a remote endpoint, including failed and unusable calls; attempts of a chat model in this process."""
    written: int = 0
    """How many of `tokens` a language model wrote."""
    cut: int = 0
    """The number of requests whose text was longer than the model read."""
    cost: float = 0.0
    """The price of the tokens by `HFCF_LLM_PRICE_IN` and `HFCF_LLM_PRICE_OUT`."""
    loading: float = 0.0
    """Seconds in which weights were loaded: once a process, however many rows there are."""


PART = 1024
"""The number of requests that are encoded at once while the device computes."""


def usage() -> dict[str, Usage]:
    """Return the running totals of this process, by engine name. Workers of `num_proc` have their own."""
    return _usage(os.getpid())


@lru_cache(maxsize=1)
def _usage(pid: int) -> dict[str, Usage]:
    return {}


@dataclass
class Encoded:
    """A tokenised request: the features that `tokenizer.pad` takes, data of the engine, and whether its text was cut."""

    features: dict[str, list[int]]
    extra: Any = None
    cut: bool = False

    def __len__(self) -> int:
        return len(self.features["input_ids"])


def pad(tokenizer: Any, encoded: Sequence[Encoded], device: torch.device) -> dict[str, torch.Tensor]:
    """Pad requests to one batch on the device.

    The copy to a GPU starts from pinned memory, so that the next batch is padded while the GPU copies and computes.
    """
    batch = tokenizer.pad([item.features for item in encoded], return_tensors="pt")
    if device.type != "cuda":
        return {name: tensor.to(device) for name, tensor in batch.items()}
    return {name: tensor.pin_memory().to(device, non_blocking=True) for name, tensor in batch.items()}


def skip_empty(encoded: Sequence[Encoded], answer: Callable[[Sequence[Encoded]], list[Any]]) -> list[Any]:
    """Answer the requests that have tokens; a request that `encode` found empty or too long gets None."""
    readable = [item for item in encoded if len(item)]
    answers = iter(answer(readable) if readable else [])
    return [next(answers) if len(item) else None for item in encoded]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Run one kind of inference; the weights are loaded at the first request that the cache can't answer.

    A stage passes all requests of its rows at once. Equal requests are computed once, and answers of earlier runs come from the
    request cache. The remaining requests are sorted by length and packed by token budget; a batch that does not fit into memory is
    halved.

    The fields are the settings. Subclasses implement `load`, `encode` and `forward`.

    Environment: `HFCF_DEVICE` (else accelerate's choice), `HFCF_TOKEN_BUDGET` (padded tokens to a batch),
    `HFCF_REQUEST_CACHE=off`, `HFCF_CACHE`.
    """

    VERSION: ClassVar[str] = "1"
    """Increase it when equal requests get different answers: it is part of the cache key."""
    AHEAD: ClassVar[bool] = False
    """Whether `encode` may run during `forward`: only if `forward` uses the tokenizer for nothing but padding."""

    def __post_init__(self) -> None:
        check_numbers(self)

    @property
    def width(self) -> int:
        """The number of sequences that a request holds in memory, such as the beams of a search."""
        return 1

    def load(self, device: torch.device) -> Any:
        """Load the weights on `device`, with their tokenizer."""
        raise NotImplementedError

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        """Convert requests to the model's form; `len()` of each is its length in tokens."""
        raise NotImplementedError

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        """Answer one batch, with values that JSON can hold."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Return all settings that change an answer, as values that JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, Model) and is_prompted(value):
                why = "asks no prompt" if is_chat(value) else "an endpoint has none"
                raise ValueError(f"{name}={value.name!r}: {type(self).__name__} reads weights, and {why}: give a local model")
        return {name: value.key() if isinstance(value, Model) else value for name, value in values.items()}

    def run(self, requests: Sequence[Any]) -> list[Any]:
        """Answer every request, in order."""
        if not requests:
            return []
        kind = type(self).__name__
        head = self._head()
        keys = [request_key(head, request) for request in requests]
        first = dict(reversed(list(zip(keys, requests, strict=True))))
        cache = open_cache()
        answers = cache.get(first) if cache is not None else {}
        record = usage().setdefault(kind, Usage())
        record.cached += len(answers)
        missing = [key for key in dict.fromkeys(keys) if key not in answers]
        if missing:
            loaded = self.loaded()
            with progress.count_requests(kind, len(missing)) as count:
                answered = 0
                for part, encoded in self._encoded(loaded, [first[key] for key in missing]):
                    self._note_cut(record, encoded)
                    for batch in self.batches([len(item) for item in encoded]):
                        start = time.perf_counter()
                        for places, results in self.answer(loaded, [encoded[i] for i in batch]):
                            record.seconds += time.perf_counter() - start
                            done = [batch[place] for place in places]
                            record.calls += len(done)
                            record.tokens += sum(len(encoded[i]) for i in done)
                            new = {missing[part[i]]: result for i, result in zip(done, results, strict=True)}
                            if cache is not None:
                                cache.put(new, kind)
                            answers.update(new)
                            count(answered := answered + len(done))
                            start = time.perf_counter()
        return [answers[key] for key in keys]

    def _note_cut(self, record: Usage, encoded: Sequence[Any]) -> None:
        """Count the requests that are cut; warn once a process, since a run has thousands of batches."""
        if cut := sum(getattr(item, "cut", False) for item in encoded):
            if not record.cut:
                kind, most = type(self).__name__, getattr(self, "max_length", None)
                log.warning(
                    "%s: %d of the first %d texts have more than max_length=%s tokens and are cut; later texts may be cut as well",
                    kind, cut, len(encoded), most,
                )  # fmt: skip
            record.cut += cut

    def answer(self, loaded: Any, encoded: Sequence[Any]) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Answer one batch: yield indices into it and their answers, which are stored at once.

        Most engines yield all answers together.
        """
        yield range(len(encoded)), self.forward_split(loaded, encoded)

    def _encoded(self, loaded: Any, requests: Sequence[Any]) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Yield encoded requests with their indices: all at once or, while a GPU computes, a part at a time.

        The requests of a part have similar lengths, and the longest texts come first. A thread encodes the next part while the GPU
        computes; on a CPU this would save nothing.
        """
        if not self.AHEAD or len(requests) <= PART or self.device().type == "cpu":
            yield range(len(requests)), self.encode(loaded, requests)
            return
        order = sorted(range(len(requests)), key=lambda i: (-len(json.dumps(requests[i], ensure_ascii=False)), i))
        parts = [order[i : i + PART] for i in range(0, len(order), PART)]
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(self.encode, loaded, [requests[i] for i in parts[0]])
            for part, after in zip(parts, [*parts[1:], []], strict=True):
                encoded = following.result()
                if after:
                    following = pool.submit(self.encode, loaded, [requests[i] for i in after])
                yield part, encoded

    def loaded(self) -> Any:
        """Return the loaded weights: loaded at the first use, and again after their files change."""
        return load(self, self.device(), os.getpid(), self._head())

    def _head(self) -> str:
        """Return the part of the cache key that all requests to this engine share."""
        return json.dumps([type(self).__name__, self.VERSION, self.settings(), str(self.dtype())], sort_keys=True, default=str)

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Group indices into batches of similar length whose padded size fits the token budget.

        The longest come first: a request that does not fit into memory fails in the first minute of a run, not in the last.
        """
        order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
        batches, start = [], 0
        while start < len(order):
            stop = start + self.room(lengths[order[start]])
            batches.append(order[start:stop])
            start = stop
        return batches

    def room(self, length: int) -> int:
        """Return how many requests of this length fill a batch."""
        budget = int(os.environ.get("HFCF_TOKEN_BUDGET", 65_536 if self.device().type == "cuda" else 4_096))
        return max(1, budget // (max(1, length) * self.width))

    def forward_split(self, loaded: Any, batch: Sequence[Any]) -> list[Any]:
        """Answer one batch by `forward`, in halves if it does not fit into memory."""
        try:
            return self.forward(loaded, batch)
        except RuntimeError as error:
            if len(batch) == 1 or not is_out_of_memory(error):
                raise
        clear_device_cache(garbage_collection=True)
        half = len(batch) // 2
        return self.forward_split(loaded, batch[:half]) + self.forward_split(loaded, batch[half:])

    def device(self) -> torch.device:
        """Return the device of this process: `HFCF_DEVICE`, else the choice of accelerate."""
        return process_device()

    def dtype(self) -> torch.dtype:
        """Return the number type of the first model; "auto" is bfloat16 on a GPU that computes in it."""
        name = next((v.dtype for f in fields(self) if isinstance(v := getattr(self, f.name), Model)), "float32")
        if name != "auto":
            return getattr(torch, name)
        device = self.device()
        return torch.bfloat16 if device.type == "cuda" and has_bfloat16(device) else torch.float32


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error says that a batch does not fit into memory."""
    return should_reduce_batch_size(error) or any(words in str(error) for words in NO_DEVICE_MEMORY)


def request_key(head: str, request: Any) -> str:
    """Return the key of a request in the cache; `head` is the part that all requests to its engine share."""
    return hashlib.sha256(f"{head}\n{json.dumps(request, ensure_ascii=False)}".encode()).hexdigest()


@lru_cache(maxsize=8)
def load(engine: Engine, device: torch.device, pid: int, contents: str) -> Any:
    """Load an engine once for each process, device and state of its files; weights from before a fork are not reused."""
    limit_threads()
    start = time.perf_counter()
    loaded = engine.load(device)
    usage().setdefault(type(engine).__name__, Usage()).loading += time.perf_counter() - start
    return loaded


@lru_cache(maxsize=8)
def load_once(
    read: Callable[[Model, torch.device, torch.dtype], Any], model: Model, device: torch.device, dtype: torch.dtype, pid: int,
    contents: str,
) -> Any:  # fmt: skip
    """Read weights once for all engines of a process; `contents`, their hash, is another one if they are trained again in place."""
    return read(model, device, dtype)


def free_models() -> None:
    """Forget all weights that this process has loaded, so that a training has the memory; an engine reads its own again."""
    load.cache_clear()
    load_once.cache_clear()
    clear_device_cache(garbage_collection=True)
