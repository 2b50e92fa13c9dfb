"""Calibrate a trained verifier: one temperature for its logits, fitted on held-out rows and stored inside its last layer."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from numpy.typing import NDArray
from scipy.special import softmax

from hfcf.core.model import Model
from hfcf.core.pretrained import PEFT
from hfcf.core.splits import group_safe_split
from hfcf.engines.classifier import Classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.networks import load_network
from hfcf.training.classifier import predict

log = logging.getLogger(__name__)

BINS = 15
HALVES = 2017
"""The seed for halving the groups. With the training's seed all held-out groups would be in one half."""
BOUNDS = (0.05, 20.0)
"""Temperatures to search."""
Numbers = NDArray[np.float64]


def fit_temperature(logits: Numbers, gold: Sequence[int]) -> float:
    """Find the temperature T with the least negative log-likelihood of softmax(logits / T) (Guo et al. 2017, section 4.2)."""
    from scipy.optimize import minimize_scalar

    bounds = np.log(BOUNDS)
    found = minimize_scalar(lambda log: log_loss(softmax(logits / np.exp(log), axis=-1), gold), bounds=bounds, method="bounded")
    return float(np.exp(found.x))


def log_loss(probabilities: Numbers, gold: Sequence[int]) -> float:
    right = probabilities[np.arange(len(gold)), np.asarray(gold)]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def calibration_error(probabilities: Numbers, gold: Sequence[int], bins: int = BINS) -> float:
    """Return the expected calibration error over `bins` equal intervals of the top probability (Guo et al. 2017, equation 3)."""
    sure, right = probabilities.max(-1), probabilities.argmax(-1) == np.asarray(gold)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(float((sure[place == i] - right[place == i]).sum())) for i in range(bins)]
    return round(sum(gaps) / len(sure), 6)


def calibrate(model: Model, out: Path, rows: Dataset, *, max_length: int) -> dict[str, Any]:
    """Fit a temperature on rows that a verifier was not trained on, and divide the stored weights of its last layer by it.

    A program that loads the verifier then gets calibrated probabilities, and its verdicts stay the same. The error afterwards is
    measured on rows that the temperature was not fitted on. Each half of the groups is scored with the temperature of the other
    half. The stored temperature is fitted on all rows.

    Args:
        model: the verifier, as `hfcf.training.trainer.trained_model` names it.
        out: the folder of its weights, or of its adapter.
        rows: held-out rows with `group_id`, of all its classes.
        max_length: tokens of claim and evidence.

    Returns:
        `rows`, `temperature`, and `ECE` (15 bins) and `NLL` before and after.

    Raises:
        ValueError: see `check_held_out`; two of its outputs have the same label, or its last layer is not found.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks" (ICML).
    """
    reading = read_spec(model)
    if (names := reading.names) != list(reading.labels):
        raise ValueError(f"calibrate: several outputs of {model.name} have the same label, and one temperature can't serve them")
    halves = check_held_out(rows, names)
    parts = [_answers(part, model, max_length, names) for part in halves.values()]
    crossed = [softmax(logits / fit_temperature(*other), axis=-1) for (logits, _), other in zip(parts, parts[::-1], strict=True)]
    logits, gold = np.concatenate([part[0] for part in parts]), [label for part in parts for label in part[1]]
    temperature, before, after = fit_temperature(logits, gold), softmax(logits, axis=-1), np.concatenate(crossed)
    if not 1.01 * BOUNDS[0] < temperature < 0.99 * BOUNDS[1]:  # such as a few rows that it all gets right
        log.warning("%s is not calibrated: its %d held-out rows fit no temperature from %g to %g", out, len(rows), *BOUNDS)
        temperature, after = 1.0, before
    else:
        divide_logits(model, out, temperature)
    scores = {
        f"{name} {when}": round(of(probabilities, gold), 4)
        for name, of in (("ECE", calibration_error), ("NLL", log_loss))
        for when, probabilities in (("before", before), ("after", after))
    }
    return {"rows": len(rows), "temperature": round(temperature, 4), **scores}


def check_held_out(rows: Dataset, labels: Sequence[str]) -> DatasetDict:
    """Return two halves of held-out rows, split by group; raise `ValueError` where a verifier can't be calibrated on them."""
    if unknown := sorted(set(rows["label"]) - set(labels)):
        raise ValueError(f"calibrate: the verifier knows the labels {', '.join(labels)}, but rows have the label {unknown[0]!r}")
    halves = group_safe_split(rows, 0.5, seed=HALVES)
    if not all(len(half) for half in halves.values()):
        raise ValueError(f"calibrate: {len(rows)} held-out rows can't be halved by group: hold more out (held_out)")
    return halves


def _answers(rows: Dataset, model: Model, max_length: int, names: Sequence[str]) -> tuple[Numbers, list[int]]:
    answers = predict(rows, Classifier(model=model, max_length=max_length))
    # Logarithms of probabilities are logits; a probability that was rounded to 0 counts as the smallest that is not.
    logits = np.log(np.maximum([[answer[name] for name in names] for answer in answers], 1e-6))
    return logits, [names.index(label) for label in rows["label"]]


def divide_logits(model: Model, out: Path, temperature: float) -> None:
    """Divide the stored weights of a classifier's last layer in `out` by a temperature, in any form that `tune` stores."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file
    from transformers import AutoModelForSequenceClassification

    network = load_network(AutoModelForSequenceClassification, model, torch.float32)
    last = _last_layer(network)
    scaled = {name: tensor / temperature for name, tensor in network.state_dict().items() if name.rpartition(".")[0] == last}
    missing, files = set(scaled), dict[Path, tuple[dict[str, Any], Any]]()
    for path in sorted(out / name for name in _files(out)):
        with safe_open(path, "pt") as file:
            metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
        changed = {name: _parameter_name(name) for name in tensors if _parameter_name(name) in scaled}
        if changed:
            kept = {name: tensor for name, tensor in tensors.items() if name not in changed}
            new = {name: scaled[parameter].to(tensors[name].dtype).contiguous() for name, parameter in changed.items()}
            files[path] = {**kept, **new}, metadata
            missing -= set(changed.values())
    if missing:
        raise ValueError(f"calibrate: {out} does not hold {', '.join(sorted(missing))}, the last layer of the classifier")
    for path, (tensors, metadata) in files.items():
        save_file(tensors, written := path.with_suffix(".new"), metadata=metadata)
        os.replace(written, path)


def _files(out: Path) -> list[str]:
    return [PEFT] if (out / PEFT).exists() else [path.name for path in out.glob("model*.safetensors")]


def _parameter_name(stored: str) -> str:
    """Return the network's name of a stored tensor: PEFT puts its own before it."""
    return stored.removeprefix("base_model.model.")


def _last_layer(network: Any) -> str:
    """Name the linear layer that gives the logits: the last layer with as many outputs as there are classes."""
    import torch

    layers = [
        name
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.Linear) and module.out_features == network.config.num_labels
    ]
    if not layers:
        raise ValueError(
            f"calibrate: {type(network).__name__} has no linear layer that gives its {network.config.num_labels} logits"
        )
    return str(layers[-1])
