"""Train a system's models once: they are stored in the cache folder under a digest of the rows and settings."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from hfcf.core.model import Model
from hfcf.core.paths import cache_dir
from hfcf.training.steps import with_steps
from hfcf.training.trainer import CHECKPOINTS, Hyperparameters

log = logging.getLogger(__name__)


def train_once(kind: str, content: Mapping[str, Any], hp: Hyperparameters, train: Callable[[Path], None]) -> str:
    """Train a model unless the cache folder holds a model with the same kind, rows and settings; return its digest for
    `stored_model`.

    An interrupted training resumes; a second process waits for the first and uses its model.

    Args:
        kind: the kind of model, with a version: "indicator 1".
        content: everything in the rows that the training reads; JSON-able.
        hp: the settings. The contents of their model count, not its name.
        train: function that trains the model and stores it in the given folder.
    """
    settings = {**asdict(hp), "model": hp.model.key()}
    data = json.dumps([kind, content, settings], sort_keys=True, ensure_ascii=False).encode()
    digest = hashlib.sha256(data).hexdigest()
    folder = _folder(digest)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_suffix(".training")  # of this digest alone: so are its checkpoints
        with FileLock(lock := folder.with_suffix(".lock")):
            try:
                if not folder.exists():
                    log.info("training the %s", kind.rpartition(" ")[0])
                    train(part)
                    part.rename(folder)
            finally:
                if not any(part.glob(f"{CHECKPOINTS}/*")):  # nothing to continue
                    shutil.rmtree(part, ignore_errors=True)
                lock.unlink(missing_ok=True)
    return digest


def check_full_tuning(name: str, hp: Hyperparameters) -> Hyperparameters:
    """Return the settings if they store all weights, as `stored_model` expects; raise `ValueError` with their `name` otherwise."""
    if hp.tune != "full":
        cure = "systems store all weights of what they train: set tune='full'"
        raise ValueError(f"{name}: tune={hp.tune!r} would store an adapter, but {cure}")
    return hp


def ensure_steps(hp: Hyperparameters, steps: int, rows: int) -> Hyperparameters:
    """Return the settings with enough epochs, or `max_steps`, for this number of steps on this number of rows."""
    return replace(hp, **with_steps(hp, steps, rows))


def stored_model(digest: str) -> Model:
    """Return the model that `train_once` stored; raise `FileNotFoundError` if its folder no longer exists."""
    folder = _folder(digest)
    if not folder.exists():
        raise FileNotFoundError(f"the trained model {folder} no longer exists: fit the system again")
    return Model(str(folder))


def _folder(digest: str) -> Path:
    return cache_dir() / "fitted" / digest
