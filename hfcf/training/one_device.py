"""The arguments of a training with one device in each process; a module of its own, since it imports Transformers' trainer."""

from __future__ import annotations

from transformers import TrainingArguments


class OneDeviceArguments(TrainingArguments):
    """Use one GPU of a process that sees several: else they share a batch, and a step has `batch_size` rows of each."""

    @property
    def n_gpu(self) -> int:
        return min(super().n_gpu, 1)
