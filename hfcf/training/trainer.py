"""The training loop that all models share: Transformers' Trainer, storing all weights or a small part of them."""

from __future__ import annotations

import inspect
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from datasets import Dataset
from pydantic import Field
from torch.utils.data import Sampler

from hfcf.core.model import Model
from hfcf.core.progress import Bar, is_shown, time_left
from hfcf.core.redact import short_path
from hfcf.core.settings import Positive, Seed, Share, check_fields
from hfcf.engines.base import has_bfloat16, process_device
from hfcf.engines.networks import quiet_peft, save_adapter, save_changes
from hfcf.engines.open_reader import FILE as OPEN_DOMAIN
from hfcf.training import steps
from hfcf.training.checkpoints import Order, checkpoint_callback, data_digest, last_checkpoint

log = logging.getLogger(__name__)

WEIGHTS = (
    "model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "generation_config.json",
    "adapter_model.safetensors", "adapter_config.json", "rbert.safetensors", "graph.safetensors", OPEN_DOMAIN,
)  # fmt: skip
"""Files of a training that a second training into the same folder may not overwrite."""

CHECKPOINTS = "checkpoints"
"""The folder, inside that of a model, of a training that is under way."""

MINUTES = 5
"""Between two lines of a log within an epoch."""
_SPREAD = 1.5
"""Up to how many times its length a row counts when rows are sorted by length."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """The settings of a training, which recipes take as keys. The defaults are RACE's (section 4, appendix B).

    Args:
        model: the model to start from.
        max_length: tokens of an input.
        batch_size: rows to a step; with several processes, of each.
        learning_rate: of AdamW, falling linearly to zero (the paper names no schedule).
        epochs: passes over the rows (the paper gives no number). `max_steps` replaces the default; with another number it is an
            error.
        warmup: share of the steps in which the learning rate rises.
        weight_decay: of AdamW.
        tune: "full" trains and stores all weights, "lora" a LoRA adapter. "lowrank" trains all weights but
            the input embeddings and stores the best low-rank form of what changed as such an adapter, which keeps more of a small
            encoder's gain.
        rank: of the stored matrices, with "lora" or "lowrank".
        bf16: compute in bfloat16 (mixed precision; the weights stay in float32). Processors and GPUs that have it take less than
            half of the time; others would emulate it, and compute in float32.
        seed: of the order of the rows and of new weights.
        micro_batch_size: rows of a batch that are computed at a time, to save memory. Null computes the batch at once. It divides
            `batch_size`, and a step has the mean of the parts' losses (Transformers' gradient accumulation).
        gradient_checkpointing: compute each layer again in the backward pass, from its input, which alone is kept. It saves most
            of the memory of activations, and takes about a third more time.
        max_steps: steps of the optimiser, instead of `epochs`. Warm-up and decay are over exactly these steps; the rows
            are repeated as often as it takes, and the last pass may be partial.

    Raises:
        ValueError: a value has another type or is out of range, or both `max_steps` and `epochs` are given; the message names the
            field.
    """

    model: Model
    max_length: Positive = 130
    batch_size: Positive = 4
    learning_rate: Annotated[float, Field(gt=0)] = 1e-5
    epochs: Annotated[float, Field(gt=0)] = 3.0
    warmup: Share = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    tune: Literal["full", "lora", "lowrank"] = "full"
    rank: Positive = 16
    bf16: bool = False
    seed: Seed = 13
    micro_batch_size: Positive | None = None
    gradient_checkpointing: bool = False
    max_steps: Positive | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", Model.of(self.model))
        check_fields(self)
        steps.check_settings(self)

    def replace(self, **changes: Any) -> Self:
        """Return settings with changes, of which `max_steps` replaces the epochs, and `epochs` the steps.

        >>> hp = Hyperparameters(model=Model("gpt2"), epochs=5)
        >>> hp.replace(max_steps=100).epochs, hp.replace(max_steps=100).replace(epochs=2).max_steps
        (3.0, None)
        """
        if changes.get("max_steps") is not None and "epochs" not in changes:
            changes["epochs"] = type(self).epochs
        elif "epochs" in changes and "max_steps" not in changes:
            changes["max_steps"] = None
        return replace(self, **changes)


@dataclass(frozen=True)
class Loss:
    """A loss that replaces the network's own.

    Args:
        of: computes a scalar from the network's output and the batch, which holds `labels` and `columns`.
        columns: columns of numbers that `of` reads and the network does not.
        order: the order of the rows, a `torch.utils.data.Sampler`; by default batches hold rows of similar length.
    """

    of: Callable[[Any, Mapping[str, Any]], Any]
    columns: tuple[str, ...] = ()
    order: Iterable[int] | None = None


class LengthSampler(Sampler[int]):
    """Shuffle the rows in every epoch, in batches of similar lengths; the loader cuts the order into batches of `batch_size`.

    Transformers' own sampler sorts within pools of four batches or more, so it does not sort fewer than eight batches at all. It
    pads 72 sentences to twice their length, this sampler to 1.3 times.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, as the trainer does: a resumed training has the same order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"{self.seed}:{self.epoch}")
        self.epoch += 1
        # Some chance in addition to the length, or all epochs would have the same batches.
        keys = [length * rng.uniform(1, _SPREAD) for length in self.lengths]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        batches = [order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size)]
        # The batch that is not full must stay the last: the loader cuts the order again.
        last = [batches.pop()] if batches and len(batches[-1]) < self.batch_size else []
        rng.shuffle(batches)
        return (i for batch in (*batches, *last) for i in batch)


def _trainer_with(loss: Loss | None, order: Order) -> type[Any]:
    """Make the trainer's class: rows come in `order`, and `loss` replaces the network's own."""
    from torch.utils.data import DataLoader
    from transformers import Trainer

    class OrderedTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            rows: Any = self.train_dataset
            size = self.args.train_batch_size
            loader = DataLoader(rows, size, sampler=order, collate_fn=self.data_collator, pin_memory=False)
            return self.accelerator.prepare(loader)

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            if loss is None:
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            features = {name: value for name, value in inputs.items() if name not in ("labels", *loss.columns)}
            outputs = model(**features)
            value = loss.of(outputs, inputs)
            return (value, outputs) if return_outputs else value

    return OrderedTrainer


def _read_columns(rows: Dataset, network: Any, loss: Loss | None) -> Dataset:
    """Select the columns that the network or the loss reads."""
    read = {*inspect.signature(network.forward).parameters, "labels", *(loss.columns if loss else ())}
    return rows.select_columns([name for name in rows.column_names if name in read])


def remove_weights(out: Path) -> None:
    """Remove an earlier training's weights, which are read first if `tune` differs. Call it when the new weights are ready."""
    for pattern in WEIGHTS:
        for path in out.glob(pattern):
            path.unlink()


def remove_checkpoints(out: Path) -> None:
    """Remove an unfinished training's checkpoints from a model's folder and its subfolders: another recipe must not resume it."""
    for folder in (*out.glob(CHECKPOINTS), *out.glob(f"*/{CHECKPOINTS}")):
        shutil.rmtree(folder)


def trained_model(hp: Hyperparameters, out: Path) -> Model:
    """Return the reference to the model that `fit` stored in `out`; inputs and number type are the start model's."""
    start = hp.model
    if hp.tune == "full":
        return Model(str(out), dtype=start.dtype, inputs=start.inputs)
    return Model(start.name, start.revision, adapter=str(out), dtype=start.dtype, inputs=start.inputs)


def in_bfloat16(hp: Hyperparameters, device: torch.device) -> bool:
    """Return whether a training computes in bfloat16; a processor or a GPU without it computes in float32."""
    from transformers.utils import is_torch_bf16_gpu_available

    return hp.bf16 and (has_bfloat16(device) or (device.type not in ("cpu", "cuda") and is_torch_bf16_gpu_available()))


def _where(hp: Hyperparameters) -> dict[str, Any]:
    """Return the arguments for the device and for mixed precision."""
    device = process_device()
    on_cpu = device.type == "cpu" and (in_bfloat16(hp, device) or torch.accelerator.is_available())
    return {"bf16": in_bfloat16(hp, device), "use_cpu": on_cpu}


@contextmanager
def training_progress() -> Iterator[Any]:
    """Make the `TrainerCallback` that shows a training: a bar on a terminal; in a log a line for an epoch, or for five minutes.

    Of more than ten epochs a log has ten lines.
    """
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        loss, bar = "", None

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.first, self.start = state.global_step, time.monotonic()
            self.tenths = 10 * state.global_step // state.max_steps
            self.logged = self.start
            if is_shown():
                self.bar = bars.enter_context(Bar("training", state.max_steps, state.global_step))

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                self.loss = f", loss {float(logs['loss']):.3g}"

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.bar is not None:
                self.bar.move(state.global_step, self._text(state))
            elif time.monotonic() - self.logged > 60 * MINUTES:
                self._log(state)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            tenths = 10 * state.global_step // state.max_steps
            if self.bar is None and tenths > self.tenths:
                self.tenths = tenths
                self._log(state)

        def _text(self, state: Any) -> str:
            epoch = f"epoch {state.epoch or 0:.1f} of {state.num_train_epochs:g}"
            return f"{epoch}, step {state.global_step} of {state.max_steps}{self.loss}"

        def _log(self, state: Any) -> None:
            now, steps = time.monotonic(), state.global_step - self.first
            left = state.max_steps - state.global_step
            more = f", {time_left((now - self.start) / steps * left)}" if left and steps else ""
            log.info("training: %s%s", self._text(state), more)
            self.logged = now

    with ExitStack() as bars:
        yield Progress()


def fit(
    network: Any, tokenizer: Any, rows: Dataset, hp: Hyperparameters, *, collator: Any, task_type: str, head: tuple[str, ...],
    out: Path, loss: Loss | None = None, checkpoints: bool = True, callbacks: Sequence[Any] = (),
    base: Mapping[str, Any] | None = None, data: Any = None, draws: bool = False,
) -> Any:  # fmt: skip
    """Train `network` on tokenised rows and store it in `out`; continue from the checkpoint of an interrupted run.

    Checkpoints are written every five minutes (`HFCF_CHECKPOINT_SECONDS`), and after each epoch. An interrupted training ends with
    the same weights as an uninterrupted training. `draws` says that the collator draws at random.
    """
    from transformers import PrinterCallback, set_seed
    from transformers.trainer_pt_utils import LengthGroupedSampler

    from hfcf.training.one_device import OneDeviceArguments

    parts = hp.batch_size // (hp.micro_batch_size or hp.batch_size)
    work = out / CHECKPOINTS
    digest = data_digest(rows, hp, data)
    checkpoint = last_checkpoint(work, digest)
    set_seed(hp.seed)
    rows = _read_columns(rows, network, loss)
    if hp.tune == "lora":
        from peft import LoraConfig, get_peft_model

        # PEFT can't load a part of a part that is stored whole.
        head = tuple(name for name in head if not any(name.startswith(f"{other}.") for other in head))
        config = LoraConfig(
            task_type=task_type, r=hp.rank, lora_alpha=2 * hp.rank, lora_dropout=0.05, target_modules="all-linear",
            modules_to_save=list(head) or None, exclude_modules=list(head) or None,
        )  # fmt: skip
        with quiet_peft():
            network = get_peft_model(network, config)
    before: Mapping[str, Any] = {}
    if hp.tune == "lowrank":
        before = base or {name: tensor.clone() for name, tensor in network.state_dict().items()}
        # A change of the embeddings has as many rows as the vocabulary: it would not be small in any form.
        network.get_input_embeddings().weight.requires_grad = False
    arguments = OneDeviceArguments(
        output_dir=str(work), per_device_train_batch_size=hp.batch_size // parts, gradient_accumulation_steps=parts,
        learning_rate=hp.learning_rate,
        num_train_epochs=hp.epochs, max_steps=hp.max_steps or -1, warmup_steps=hp.warmup, weight_decay=hp.weight_decay,
        seed=hp.seed, data_seed=hp.seed,
        save_strategy="epoch" if checkpoints else "no", save_total_limit=1, logging_steps=10, report_to="none",
        remove_unused_columns=False, disable_tqdm=True, **_where(hp),
    )  # fmt: skip
    if loss is not None and loss.order is not None:
        order = Order(loss.order, checkpoint)
    else:
        sampler = LengthGroupedSampler(hp.batch_size, rows, model_input_name=tokenizer.model_input_names[0])
        order = Order(sampler, checkpoint)
    recomputed = steps.recomputed(network, hp.model.name, hp.gradient_checkpointing)
    if draws:
        collator = steps.seeded_collator(collator, hp.seed, lambda: order.epoch)
    with training_progress() as progress, recomputed:
        trainer = _trainer_with(loss, order)(
            model=network, args=arguments, train_dataset=rows, data_collator=collator, processing_class=tokenizer,
            callbacks=[progress, checkpoint_callback(digest, order), *callbacks],
        )  # fmt: skip
        # Each part's loss is a mean of its own. T5 and BERT do not divide by the items of the whole batch when they are told to.
        trainer.model_accepts_loss_kwargs = False
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    network = network.cpu().float().eval()
    remove_weights(out)
    out.mkdir(parents=True, exist_ok=True)
    steps.write_steps(out, hp, trainer.state.global_step, len(rows))
    name = short_path(hp.model.name)  # not the folder that it was loaded from on this machine
    if hp.tune == "lora":
        network = save_adapter(network.half(), out, name)
    elif hp.tune == "lowrank":
        network = save_changes(network, before, out, base=name, rank=hp.rank, head=head, task_type=task_type)
    else:
        network.save_pretrained(out)
        tokenizer.save_pretrained(out)
    shutil.rmtree(work, ignore_errors=True)  # else the next training in this folder would go on from this one's end
    return network.eval()
