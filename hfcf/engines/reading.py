"""How a verifier reads a row and what its outputs mean, known from its configuration before its weights are loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import yaml

from hfcf.core.model import Model, find_file
from hfcf.core.pretrained import read_config
from hfcf.core.safe_yaml import front_matter
from hfcf.engines.inputs import CLAIM_FIRST, EVIDENCE_FIRST, OURS, PAIRS, Form, parse_form
from hfcf.engines.labels import BLANK, are_of_inference, how_to_type, output_names, verdicts
from hfcf.text.label_names import LABELS

log = logging.getLogger(__name__)

MARK = "hfcf_inputs"
"""The key of a configuration and of a card's front matter in which our trainings write the form of the inputs."""


@dataclass(frozen=True)
class Reading:
    """How a verifier reads a row, and what its outputs mean.

    Args:
        labels: our label of each output; several outputs may have the same.
        form: of its inputs.
        own: its own names of its outputs.
    """

    labels: tuple[str, ...]
    form: Form = OURS
    own: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The labels, each once, in the order of `merge`."""
        return list(dict.fromkeys(self.labels))

    def merge(self, logits: torch.Tensor) -> torch.Tensor:
        """Return one logit for each of `names`: of a label with several outputs, that of the sum of their probabilities."""
        if len(self.names) == len(self.labels):
            return logits
        outputs = [[i for i, label in enumerate(self.labels) if label == name] for name in self.names]
        return torch.stack([logits[:, chosen].logsumexp(-1) for chosen in outputs], -1)

    def settings(self) -> dict[str, Any]:
        """Return what changes an answer beside the weights; nothing of a verifier with our names that reads as ours do."""
        if self.labels == self.own and self.form == OURS:
            return {}  # so that the keys of their cached answers stay as they were
        return {"reads": self.form.name, "means": self.labels}


def read_reading(model: Model) -> Reading:
    """Return how a verifier reads and what its outputs mean, from its configuration, its card and the settings of `Model`.

    The form of its inputs is `Model.inputs`; else what our training wrote into its configuration or its card; else, where its
    classes have the names of natural language inference, premise first as all such models are trained, with a line in the log;
    else, where they have exactly our names, claim first as ours are, with a line in the log. Others are refused.
    """
    return _read(model, model.key())


@lru_cache(maxsize=64)
def _read(model: Model, contents: str) -> Reading:
    # `contents` is in the key, so that a folder that was trained again in place is read again.
    config = load_config(model)
    check_head(model, config)
    own = output_names(config)
    labels = verdicts(model, own)
    return Reading(labels, _form(model, config, own, labels), own)


def load_config(model: Model) -> Any:
    """Load the configuration of a model, or of its adapter, which names the classes of the tuned model."""
    if (adapter := model.adapter_source()) is not None and find_file(adapter, "config.json") is not None:
        return read_config(Model(adapter))
    return read_config(model)


def check_head(model: Model, config: Any) -> None:
    """Raise an error unless a model has a head of classes that exclude each other."""
    kinds = list(config.architectures or ())
    if kinds and model.adapter is None and not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise ValueError(f"{model.name} is a {kinds[0]}, and no sequence classifier: its head would be random")
    if config.num_labels == 1:
        raise ValueError(
            f"{model.name} has one output, a score (a sigmoid or a regression head, as rerankers have): it gives no probability of "
            "each label: take a classifier of two or three"
        )
    if config.problem_type == "multi_label_classification":
        raise ValueError(f"{model.name} answers each of its classes on its own (problem_type multi_label_classification)")


def _form(model: Model, config: Any, own: Sequence[str], labels: Sequence[str]) -> Form:
    if model.inputs is not None:
        return parse_form(model.inputs)
    if (mark := getattr(config, MARK, None) or _card_mark(model)) is not None:
        form = parse_form(str(mark))
        if not form.titles:  # whoever joins the evidence sees the setting alone
            raise ValueError(f"{model.name}: it was trained without titles: type {how_to_type(model, {}, form.name)}")
        return form
    if are_of_inference(own):
        _guess(model, EVIDENCE_FIRST, "its classes are those of natural language inference")
        return parse_form(EVIDENCE_FIRST)
    if set(own) <= set(LABELS):
        _guess(model, CLAIM_FIRST, "its classes are named as in this library")
        return OURS
    known = {} if tuple(own) == tuple(labels) else dict(model.labels or ())
    raise ValueError(
        f"{model.name}: which text it reads first is not known. Write one of {', '.join(PAIRS)} ('text' is the evidence without "
        "titles), or a text such as '{claim} [SEP] {evidence}', in the place of "
        f"'{BLANK}': {how_to_type(model, known, BLANK)}"
    )


def _guess(model: Model, inputs: str, why: str) -> None:
    log.warning(
        "%s is read as %s, because %s; set Model(%r, inputs=…) if it was trained otherwise", model.name, inputs, why, model.name
    )


def _card_mark(model: Model) -> str | None:
    """Return the form that a card of ours says; cards before it was written there are of verifiers that read the claim first."""
    from transformers.utils import cached_file

    place, at = (model.source(), model.revision) if model.adapter is None else (str(model.adapter_source()), None)
    quiet = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    if (path := cached_file(place, "README.md", revision=at, **quiet)) is None:
        return None
    try:
        front = front_matter(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError):  # it is no card of ours
        return None
    return front.get(MARK) or (CLAIM_FIRST if "hfcf" in (front.get("tags") or ()) else None)
