"""Load and store networks: PEFT adapters over a base model, and an encoder with layers of our own.

The folder of an adapter also holds the `config.json` of the tuned model, which names its classes.
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
from hfcf.core.pretrained import PEFT, quiet_weights, read_adapter, read_tuned_config, read_weights

PEFT_HEADS = ("classifier", "score", "qa_outputs")
"""Last layers that PEFT stores whole for tasks with a head, whatever its configuration says."""
Network = TypeVar("Network", bound=torch.nn.Module)


def most_tokens(network: Any, max_length: int) -> int:
    """Return how many tokens a network reads: at most its positions, of which it has none where they are relative, as in T5."""
    return min(max_length, getattr(network.config, "max_position_embeddings", None) or max_length)


def load_network(auto: Any, model: Model, dtype: Any, *, unread: tuple[str, ...] = ()) -> Any:
    """Load the network of `model` by the `AutoModelFor…` class `auto`, with its adapter merged in.

    Its attention is Transformers' default: SDPA if the architecture has it. With `HFCF_COMPILE=1`, `torch.compile` compiles its
    forward pass. This takes minutes at first and moves scores only by rounding.
    """
    adapter = _local(model.adapter_source())
    kwargs: dict[str, Any] = {}
    if adapter:
        kwargs["config"] = read_tuned_config(model)
    network, loading = read_weights(auto, model, report=adapter is None, dtype=dtype, output_loading_info=True, **kwargs)
    _check_complete([name for name in loading["missing_keys"] if not name.startswith(unread)], adapter, model)
    if adapter:
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
    if adapter and (path := Path(adapter, PEFT)).exists():
        with safe_open(path, "np") as weights:
            brought = [f".{name}" for name in weights.keys()]  # noqa: SIM118, not a mapping
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


def save_changes(
    network: Any, before: Mapping[str, Any], out: Path, *, base: str, rank: int, head: tuple[str, ...], task_type: str
) -> Any:
    """Store the changes of a training of all weights as a LoRA adapter, with the network's configuration; return the network that
    has these changes.

    The change of a matrix is stored as its best form of a rank, at half precision; biases, norms and new layers are stored whole.

    Args:
        network: the trained network; its input embeddings were not trained.
        before: its tensors before the training.
        out: the folder of the adapter.
        base: the name of the base model, for the adapter's configuration.
        rank: the highest rank of a change.
        head: layers that the base lacks.
        task_type: PEFT's name of the task.
    """
    from peft import LoraConfig, get_peft_model
    from peft.tuners.lora import LoraLayer
    from peft.utils import ModulesToSaveWrapper

    trained = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    layers, matrices = dict(network.named_modules()), dict[str, int]()
    head = (*head, *PEFT_HEADS)
    others = {name for name in head if name in layers}
    frozen = network.get_input_embeddings().weight
    for name, module in layers.items():
        if name.startswith(head) or getattr(module, "weight", None) is frozen:  # a tied output layer too
            continue
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
            matrices[name] = min(rank, *module.weight.shape)
        elif next(module.parameters(recurse=False), None) is not None:
            others.add(name)
    config = LoraConfig(
        task_type=task_type, r=rank, lora_alpha=rank, target_modules=list(matrices), bias="lora_only",
        rank_pattern={name: its for name, its in matrices.items() if its < rank}, modules_to_save=sorted(others) or None,
        inference_mode=True,
    )  # fmt: skip
    network.load_state_dict(before)
    with quiet_peft(), torch.no_grad():
        tuned = get_peft_model(network, config)
        for name, layer in list(tuned.get_base_model().named_modules()):
            if isinstance(layer, ModulesToSaveWrapper):
                whole = layer.modules_to_save["default"]
                whole.load_state_dict({key: trained[f"{name}.{key}"] for key in whole.state_dict()})
            elif isinstance(layer, LoraLayer):
                _set_change(layer, trained[f"{name}.weight"] - before[f"{name}.weight"])
                if (bias := getattr(layer.get_base_layer(), "bias", None)) is not None:
                    bias.copy_(trained[f"{name}.bias"])
        return save_adapter(tuned, out, base)


def _set_change(layer: Any, change: torch.Tensor) -> None:
    """Set the two matrices of a LoRA layer to the best form of a change that their rank allows, at half precision."""
    rank = layer.r["default"]
    left, values, right = torch.linalg.svd(change.float(), full_matrices=False)
    left, right = (left * values / layer.scaling["default"])[:, :rank].half(), right[:rank].half()
    if isinstance(layer.get_base_layer(), torch.nn.Embedding):
        layer.lora_embedding_A["default"].data, layer.lora_embedding_B["default"].data = left.T.contiguous(), right.T.contiguous()
    else:
        layer.lora_A["default"].weight.data, layer.lora_B["default"].weight.data = right.contiguous(), left.contiguous()


def save_adapter(tuned: Any, out: Path, base: str) -> Any:
    """Store a PEFT adapter and the configuration of its network; return the network with the adapter merged in."""
    tuned.peft_config["default"].base_model_name_or_path = base
    with quiet_peft():
        tuned.save_pretrained(out)
        (out / "README.md").unlink(missing_ok=True)  # PEFT's empty card; ours is written from the scores
        network = tuned.float().merge_and_unload()
    network.config.save_pretrained(out)
    return network


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


def load_encoder(model: Model, dtype: Any, kind: str, **settings: Any) -> Any:
    """Load the encoder of a model without a head, which `kind` reads; an adapter is an error."""
    from transformers import AutoModel

    if model.adapter:
        raise ValueError(f"{model.name}: {kind} reads a whole model and takes no adapter: leave the adapter out, or merge it")
    return read_weights(AutoModel, model, dtype=dtype, **settings)


def load_whole(
    model: Model, file: str, make: Callable[[Any], Network], *, kind: str, training: str, device: torch.device, dtype: torch.dtype
) -> Network:
    """Load a network that `save_whole` stored."""
    from safetensors.torch import load_file

    path = find_file(model.source(), file, model.revision)
    if path is None:
        raise ValueError(f"{model.name} is not {kind}: it has no {file}; train one by `{training}`")
    network = make(load_encoder(model, dtype, kind))
    missing, unknown = network.load_state_dict(load_file(path), strict=False)
    if unknown or any(not name.startswith("encoder.") for name in missing):
        raise ValueError(f"{model.name}: the weights in {file} do not fit {kind}")
    return network.to(device=device, dtype=dtype).eval().requires_grad_(False)
