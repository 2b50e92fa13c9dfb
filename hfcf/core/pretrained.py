"""Read pretrained weights, configurations and tokenizers, and never the code or the pickles of a folder or a Hub repository.

No other module calls `from_pretrained`, except the conversion of `hfcf.core.offline`: so `trust_remote_code` and `use_safetensors`
are set here. Without them, Transformers asks at a terminal whether to run a repository's code, and reads a `pytorch_model.bin`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hfcf.core.model import Model, find_file

PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
"""Files that may run code when they are read: the library stores no weights in such files, and never reads them."""
PEFT = "adapter_model.safetensors"
_HEADS = ("classifier.weight", "classifier.out_proj.weight", "classification_head.out_proj.weight", "score.weight")
"""The endings of the names of a classifier's last weights."""
_SAFE = (".safetensors", ".gguf")
_WEIGHTS = ("pytorch_model", "adapter_model", "tf_model", "flax_model")
"""The beginnings of the names of files that Transformers and PEFT take for weights."""
_NO_CODE = ("peft_type", "XLORA"), ("megatron_config", None)
"""Settings of an adapter that make PEFT read further adapters, or import a module that the adapter names."""
_CURE = "give safetensors or GGUF; if you trust its author, load it with Transformers once and save it again (save_pretrained)"


class UnsafeModel(ValueError):
    """A model's folder or repository needs code of its own, or has its weights in a pickle; the message has the cure."""


def read_weights(auto: Any, model: Model, *, report: bool = True, **settings: Any) -> Any:
    """Return the network of a model's weights, from safetensors alone; its adapter is not read. `report` missing weights."""
    refuse_pickles(model.source(), model.name)
    with _refuse_code(model.name), quiet_weights(report=report):
        return auto.from_pretrained(
            model.source(), revision=model.revision, trust_remote_code=False, use_safetensors=True, **settings
        )


def read_config(model: Model) -> Any:
    """Return the configuration of a model; the configuration of its adapter is not read."""
    return _read_config(model.source(), model.revision, model.name)


def _read_config(source: str, revision: str | None, name: str) -> Any:
    from transformers import AutoConfig

    with _refuse_code(name):
        return AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)


def read_tuned_config(model: Model) -> Any:
    """Return the configuration of a model, or of its adapter, which names the classes of the tuned model.

    PEFT stores no configuration: then it is the configuration of the base, with as many outputs as the head in the adapter has.
    """
    if (adapter := model.adapter_source()) is None:
        return read_config(model)
    if find_file(adapter, "config.json") is not None:
        return _read_config(adapter, None, str(model.adapter))
    config = read_config(model)
    if (path := find_file(adapter, PEFT)) is not None and (outputs := _head_size(path)) not in (None, config.num_labels):
        config.num_labels = outputs  # with the names that Transformers gives: nobody named them
    return config


def _head_size(path: str) -> int | None:
    """Return the number of outputs of a classifier's head in an adapter's file; None if there is no head."""
    from safetensors import safe_open

    with safe_open(path, "np") as weights:
        heads = [name for name in weights.keys() if name.endswith(_HEADS)]  # noqa: SIM118 - no mapping
        return int(weights.get_slice(heads[0]).get_shape()[0]) if heads else None


def read_tokenizer(model: Model, **settings: Any) -> Any:
    """Return the tokenizer of a model."""
    from transformers import AutoTokenizer

    with _refuse_code(model.name):
        return AutoTokenizer.from_pretrained(model.source(), revision=model.revision, trust_remote_code=False, **settings)


def read_adapter(network: Any, folder: str | Path, name: str) -> Any:
    """Return a network with a PEFT adapter around it, read from its safetensors."""
    from peft import PeftModel

    folder = Path(folder)
    refuse_pickles(str(folder), name)
    if not (folder / PEFT).is_file():
        # PEFT would look for a pickle, here and on the Hub.
        raise UnsafeModel(f"{name} is not an adapter: it has no {PEFT}, and weights in a pickle (adapter_model.bin) are not read")
    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    for key, value in _NO_CODE:
        if settings.get(key) is not None and value in (None, settings[key]):
            raise UnsafeModel(f"{name}: an adapter with {key}={settings[key]!r} is not read: it brings code or further weights")
    return PeftModel.from_pretrained(network, str(folder))


def refuse_pickles(source: str, name: str) -> None:
    """Raise if a folder has its weights only in a pickle; on the Hub, Transformers reads only safetensors."""
    if not os.path.isdir(source):
        return
    paths = sorted(Path(source).iterdir())
    pickles = [path for path in paths if path.suffix in PICKLES and path.name.startswith(_WEIGHTS)]
    if not pickles or any(path.suffix in _SAFE for path in paths):
        return
    raise UnsafeModel(f"{name}: its weights are a pickle ({pickles[0].name}), which may run code when it is read; {_CURE}")


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
            with warnings.catch_warnings():  # of HF_HUB_DISABLE_PROGRESS_BARS, by which a user has no bars of downloads
                warnings.filterwarnings("ignore", "Cannot enable progress bars", UserWarning)
                logging.enable_progress_bar()
        if not downloads:
            disable_progress_bars()


@contextmanager
def _refuse_code(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise UnsafeModel(
            f"{name} brings Python code of its own, which is never run: give a model of an architecture that Transformers has"
        ) from error
    except OSError as error:
        if "safetensors" not in str(error):
            raise
        raise UnsafeModel(
            f"{name}: there is no model.safetensors, and weights in a pickle (pytorch_model.bin) are not read; {_CURE}"
        ) from error
