"""Whether a classifier can be read, before any weights are loaded."""

from __future__ import annotations

from collections.abc import Sequence

from hfcf.core.model import Model, is_remote
from hfcf.engines.reading import read_reading
from hfcf.engines.relation_reading import check_relation
from hfcf.text.label_names import LABELS


def check_classifier(model: Model, labels: Sequence[str] | None = LABELS) -> None:
    """Raise an error that says what to type if a classifier can't be read as one of these labels; read no weights."""
    if is_remote(model):
        return
    if labels is None:
        check_relation(model)
    else:
        read_reading(model)
