"""Checkpoints of a training: saved at intervals of time, tied to its data, and continued in the middle of an epoch."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import Sampler

from hfcf.core.model_checks import is_whole

SECONDS = 300.0
"""Seconds between two checkpoints; `HFCF_CHECKPOINT_SECONDS` changes them."""
_SHARE = 0.05
"""The share of a training's time that checkpoints may take: large models on slow disks are saved less often."""
_STATE = "trainer_state.json"
"""The file of a checkpoint that Transformers writes last."""
_CALLBACK = "Checkpoints"


class CheckpointError(ValueError):
    """A checkpoint that this training can't continue from."""


def data_digest(rows: Dataset, hp: Any, more: Any = None) -> str:
    """Hash what a training reads: tokenised rows, settings (a model's contents, not its name), and `more`, which is JSON-able."""
    settings = {**asdict(hp), "model": hp.model.key()}
    digest = hashlib.sha256(json.dumps([settings, rows.column_names, more], sort_keys=True, default=str).encode())
    for batch in rows.with_format(None).iter(1_000):
        digest.update(json.dumps(batch, default=str).encode())
    return digest.hexdigest()


def last_checkpoint(work: Path, data: str) -> Path | None:
    """Return the last complete checkpoint in `work` of a training on `data`; remove incomplete checkpoints.

    Raises:
        CheckpointError: the checkpoint belongs to other data or other settings.
    """
    from transformers.trainer_utils import get_last_checkpoint

    while last := get_last_checkpoint(str(work)) if work.is_dir() else None:
        try:
            state = json.loads((Path(last) / _STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            state = None
        # The state is written last, but if a signal interrupts the saving, weights can still be missing.
        weights = list(Path(last).glob("*.safetensors"))
        if state is None or not weights or not all(map(is_whole, weights)) or not (Path(last) / "optimizer.pt").is_file():
            shutil.rmtree(last)
            continue
        if _own(state).get("data") != data:
            raise CheckpointError(
                f"{last} is a checkpoint of a training on other data or with other settings, and can't be continued: "
                f"restore them, or remove {work} to train from the start"
            )
        return Path(last)
    return None


class Order(Sampler[int]):
    """The order of the rows. A training that resumes within an epoch repeats the order of that epoch."""

    def __init__(self, order: Any, checkpoint: Path | None) -> None:
        self.order = order
        """A sampler that gives the order of every epoch. It may draw from Torch's random numbers."""
        self.start: torch.Tensor | None = None
        """Torch's random numbers as they were when the epoch's order was drawn."""
        self.epoch = 0
        """The epoch that the trainer is in."""
        self._resumed: torch.Tensor | None = None
        if checkpoint is not None:
            state = json.loads((checkpoint / _STATE).read_text(encoding="utf-8"))
            if (start := _own(state).get("start")) and not float(state["epoch"]).is_integer():
                self._resumed = torch.frombuffer(bytearray(base64.b64decode(start)), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.order)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        if hasattr(self.order, "set_epoch"):
            self.order.set_epoch(epoch)

    def __iter__(self) -> Iterator[int]:
        now = torch.get_rng_state()
        self.start, self._resumed = now if self._resumed is None else self._resumed, None
        torch.set_rng_state(self.start)
        order = list(self.order)
        if self.start is not now:
            torch.set_rng_state(now)
        return iter(order)


def checkpoint_callback(data: str, order: Order) -> Any:
    """Make the `TrainerCallback` that saves checkpoints by time and writes what `last_checkpoint` reads into each."""
    from transformers import TrainerCallback
    from transformers.trainer_callback import ExportableState

    seconds = float(os.environ.get("HFCF_CHECKPOINT_SECONDS") or SECONDS)

    class Checkpoints(TrainerCallback, ExportableState):
        def state(self) -> dict[str, Any]:
            start = order.start
            encoded = None if start is None else base64.b64encode(bytes(start.tolist())).decode()
            return {"args": {}, "attributes": {"data": data, "start": encoded}}

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved, self.began, self.cost = time.monotonic(), 0.0, 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if not float(state.epoch).is_integer():  # so that it includes what other callbacks do at the end of the epoch
                self.on_epoch_end(args, state, control)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.monotonic()
            if self.began - self.saved >= max(seconds, self.cost / _SHARE) and state.global_step < state.max_steps:
                control.should_save = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved = time.monotonic()
            self.cost = self.saved - self.began

    assert Checkpoints.__name__ == _CALLBACK
    return Checkpoints()


def _own(state: dict[str, Any]) -> dict[str, Any]:
    """Return what this library wrote into the state of a checkpoint."""
    callbacks: Iterable[Any] = (state.get("stateful_callbacks") or {}).get(_CALLBACK) or {}
    entries = callbacks if isinstance(callbacks, list) else [callbacks]
    # A continued training that is saved again appends its present state.
    return dict(entries[-1].get("attributes", {})) if entries and isinstance(entries[-1], dict) else {}
