"""Models that a system trains on the rows it is given: once, and kept in the cache folder under what they were made of."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hfcf.core.model import Model
from hfcf.core.paths import cache_dir
from hfcf.training.loop import Hyperparameters

log = logging.getLogger(__name__)


def train_once(kind: str, content: Mapping[str, Any], hp: Hyperparameters, train: Callable[[Path], None]) -> str:
    """Train a model unless one of the same kind, rows and settings lies in the cache folder; returns its digest, for `kept`.

    Args:
        kind: what it is, with its version: "indicator 1".
        content: JSON-able: everything of the rows that training reads.
        hp: how; of its model the contents count, not the name.
        train: trains it and stores it in the folder that it is given.
    """
    settings = {**asdict(hp), "model": hp.model.key()}
    data = json.dumps([kind, content, settings], sort_keys=True, ensure_ascii=False).encode()
    digest = hashlib.sha256(data).hexdigest()
    target = _folder(digest)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        log.info("training the %s", kind)
        # Made beside its place and renamed: neither a kill nor a second process leaves half a model behind.
        work = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            train(work / "model")
            os.rename(work / "model", target)
        except OSError:
            if not target.exists():
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return digest


def whole(name: str, hp: Hyperparameters) -> Hyperparameters:
    """The settings of a training whose model `kept` will name, if it stores all weights.

    Args:
        name: what a system calls them.
        hp: the settings.

    Raises:
        ValueError: it would store an adapter.

    >>> whole("classifier", Hyperparameters(model=Model("mine"), tune="lora"))
    Traceback (most recent call last):
        ...
    ValueError: classifier: tune='lora' would keep an adapter, and a model that is trained here is kept whole: set tune='full'
    """
    if hp.tune != "full":
        raise ValueError(
            f"{name}: tune={hp.tune!r} would keep an adapter, and a model that is trained here is kept whole: set tune='full'"
        )
    return hp


def take_trainings(system: Any) -> None:
    """Make `Hyperparameters` of a new system's `trainings` that a recipe gave as mappings; all of them get the system's seed.

    Args:
        system: a frozen dataclass that is being made.
    """
    for name in type(system).trainings:
        value = getattr(system, name)
        if isinstance(value, Mapping):
            value = Hyperparameters(**value)
        object.__setattr__(system, name, replace(whole(name, value), seed=system.seed))


def enough(hp: Hyperparameters, steps: int, rows: int) -> Hyperparameters:
    """Training settings with the epochs that so many steps on so many rows make, if these are more.

    >>> enough(Hyperparameters(model=Model("mine"), batch_size=8, epochs=2), 50, 40).epochs
    10.0
    """
    return replace(hp, epochs=max(hp.epochs, steps * hp.batch_size / rows))


def kept(digest: str) -> Model:
    """The model that `train_once` stored.

    Raises:
        FileNotFoundError: it is not there any more.
    """
    folder = _folder(digest)
    if not folder.is_dir():
        raise FileNotFoundError(f"the trained model {folder} is gone: fit the system again")
    return Model(str(folder))


def _folder(digest: str) -> Path:
    return cache_dir() / "fitted" / digest
