"""Load and store networks: adapters over a base model, patches, and an encoder with layers of our own.

An adapter is PEFT's, or a patch, which stores the changes of training in low-rank form at half precision. Its folder also holds
the `config.json` of the tuned model, which names its classes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch

from hfcf.core.model import Model, find_file
from hfcf.core.pretrained import PEFT, read_adapter, read_tuned_config, read_weights

PATCH = "patch.safetensors"
Network = TypeVar("Network", bound=torch.nn.Module)


def load_network(auto: Any, model: Model, dtype: Any, *, unread: tuple[str, ...] = ()) -> Any:
    """Load the network of `model` by the `AutoModelFor…` class `auto`, with its adapter merged in.

    Its attention is Transformers' default: SDPA if the architecture has it. With `HFCF_COMPILE=1`, `torch.compile` compiles its
    forward pass. This takes minutes at first and moves scores only by rounding.
    """
    adapter = _local(model.adapter_source())
    kwargs: dict[str, Any] = {}
    if adapter:
        kwargs["config"] = read_tuned_config(model)
    with quiet_weights(report=adapter is None):
        network, loading = read_weights(auto, model, dtype=dtype, output_loading_info=True, **kwargs)
    _check_complete([name for name in loading["missing_keys"] if not name.startswith(unread)], adapter, model)
    if adapter and (Path(adapter) / PATCH).exists():
        _patch(network, Path(adapter) / PATCH)
    elif adapter:
        with quiet_peft():
            network = read_adapter(network, adapter, str(model.adapter)).merge_and_unload()
    network = network.to(dtype=dtype).eval()
    if os.environ.get("HFCF_COMPILE") == "1":
        network.compile(dynamic=True)  # in place: what the network is stays as it was
    return network


def _check_complete(missing: Iterable[str], adapter: str | None, model: Model) -> None:
    """Raise `ValueError` unless the adapter has every weight that the base lacks: a missing weight would be random."""
    from safetensors import safe_open

    brought: list[str] = []
    for path in (Path(adapter, name) for name in (PATCH, PEFT) if adapter and Path(adapter, name).exists()):
        with safe_open(path, "np") as weights:
            brought += [f".{name}" for name in weights.keys()]  # noqa: SIM118, not a mapping
    if lacking := [name for name in sorted(missing) if not any(key.endswith(f".{name}") for key in brought)]:
        if adapter is None:
            raise ValueError(
                f"{model.name} has no weights {', '.join(lacking[:3])}, which would be random: it was trained for something else; "
                "train it, or name a model that was"
            )
        raise ValueError(
            f"neither {model.name} nor its adapter {model.adapter} has {', '.join(lacking[:3])}: which base was it made for?"
        )


def _local(adapter: str | None) -> str | None:
    """Return the adapter's folder; from the Hub, download only its configuration and safetensors."""
    if adapter is None or os.path.isdir(adapter):
        return adapter
    from huggingface_hub import snapshot_download

    return snapshot_download(adapter, allow_patterns=["*.json", "*.safetensors"])


@contextmanager
def quiet_weights(*, report: bool) -> Iterator[None]:
    """Hide Transformers' progress bars for reading and writing weights and, unless `report`, its table of missing weights.

    A base lacks the head that its adapter has, so the table's advice to train the head would be wrong. Download bars stay.
    """
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    level, bars, downloads = logging.get_verbosity(), logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    logging.disable_progress_bar()
    if downloads:
        enable_progress_bars()
    if not report:
        logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        if not downloads:
            disable_progress_bars()


@contextmanager
def quiet_peft() -> Iterator[None]:
    """Hide warnings of PEFT that do not concern our code.

    PEFT reads a property that Transformers renamed. T5's configuration declares tied embeddings for every T5. The base model that a
    published adapter names is not a folder of this machine.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        warnings.filterwarnings("ignore", "Input and output embeddings are no longer tied", UserWarning)
        warnings.filterwarnings("ignore", "Could not find a config file in", UserWarning)
        yield


def save_patch(network: Any, before: Mapping[str, Any], out: Path, rank: int, head: tuple[str, ...]) -> None:
    """Store the changes of training, with the network's configuration."""
    import torch
    from safetensors.torch import save_file

    tensors: dict[str, Any] = {}
    for name, tensor in network.state_dict().items():
        change = tensor - before[name]
        if name.startswith(head):
            tensors[name] = tensor
        elif not change.any():
            continue
        elif change.dim() == 2 and rank < min(change.shape) // 2:
            left, values, right = torch.linalg.svd(change.float(), full_matrices=False)
            tensors[f"{name}:left"], tensors[f"{name}:right"] = left[:, :rank] * values[:rank], right[:rank]
        else:
            tensors[f"{name}:change"] = change
    halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
    save_file(halves, out / PATCH, metadata={"format": "pt"})
    network.config.save_pretrained(out)


def _patch(network: Any, path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    state, patch = network.state_dict(), load_file(os.fspath(path))
    with torch.no_grad():
        for key, stored in patch.items():
            name, _, kind = key.partition(":")
            if name not in state:
                raise ValueError(f"{path} does not fit this model, which has no {name!r}")
            # state_dict() shares the network's memory, so writing there changes the network.
            if kind == "left":
                state[name] += (stored.float() @ patch[f"{name}:right"].float()).to(state[name].dtype)
            elif kind == "change":
                state[name] += stored.to(state[name].dtype)
            elif not kind:
                state[name].copy_(stored)


def name_classes(encoder: Any, labels: Sequence[str]) -> None:
    """Write the names of the classes, in the order of the outputs, into an encoder's configuration."""
    encoder.config.id2label = dict(enumerate(labels))
    encoder.config.label2id = {label: i for i, label in enumerate(labels)}


def save_whole(network: Any, folder: str | os.PathLike[str], file: str) -> None:
    """Store a network's `encoder` as Transformers does, and its other weights in another file of the folder."""
    from safetensors.torch import save_file

    with quiet_weights(report=True):
        network.encoder.save_pretrained(folder)
    rest = {name: tensor.contiguous() for name, tensor in network.state_dict().items() if not name.startswith("encoder.")}
    save_file(rest, Path(folder) / file, metadata={"format": "pt"})


def load_whole(
    model: Model, file: str, make: Callable[[Any], Network], *, kind: str, training: str, device: torch.device, dtype: torch.dtype
) -> Network:
    """Load a network that `save_whole` stored."""
    from safetensors.torch import load_file
    from transformers import AutoModel

    if model.adapter:
        raise ValueError(f"{model.name}: {kind} is stored whole and takes no adapter: leave the adapter out")
    path = find_file(model.source(), file, model.revision)
    if path is None:
        raise ValueError(f"{model.name} is not {kind}: it has no {file}; train one by `{training}`")
    with quiet_weights(report=True):
        encoder = read_weights(AutoModel, model, dtype=dtype)
    network = make(encoder)
    missing, unknown = network.load_state_dict(load_file(path), strict=False)
    if unknown or any(not name.startswith("encoder.") for name in missing):
        raise ValueError(f"{model.name}: the weights in {file} do not fit {kind}")
    return network.to(device=device, dtype=dtype).eval().requires_grad_(False)
