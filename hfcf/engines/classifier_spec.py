"""How a classifier reads a row and what its classes mean; both are known from its configuration, before its weights are loaded."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from hfcf.core.errors import UnclearModel
from hfcf.core.model import INPUTS_KEY, Model, find_file, is_prompted
from hfcf.core.pretrained import read_tuned_config
from hfcf.core.safe_yaml import write_flow
from hfcf.engines.markers import FORMS, parse_markers
from hfcf.engines.verifier_inputs import CLAIM_FIRST, EVIDENCE_FIRST, ORDERS, OURS, InputFormat, parse_inputs
from hfcf.text.label_names import LABELS, REFUTES, SUPPORTS, label_of
from hfcf.text.normalise import normalise

log = logging.getLogger(__name__)

UNNAMED = re.compile(r"LABEL_\d+", re.IGNORECASE)
"""The names that Transformers gives to unnamed classes."""
BLANK = "?"
"""The placeholder in a suggested line for what only the user knows."""
RBERT = "rbert.safetensors"
"""The file of an R-BERT's head, by which R-BERTs are recognised; the encoder's `config.json` names the classes."""


def output_names(config: Any) -> tuple[str, ...]:
    """Return a classifier's own names of its classes, in the order of its outputs."""
    return tuple(str(config.id2label[i]) for i in range(len(config.id2label)))


def given_labels(model: Model, names: Sequence[str]) -> list[str | None]:
    """Return the label that `Model.labels` gives to each class, by class name or output number; None for other classes."""
    stated = dict(model.labels or ())
    if unknown := [name for name in stated if name not in names and name not in map(str, range(len(names)))]:
        raise ValueError(f"{model.name}: labels names the class {unknown[0]!r}, but its classes are {', '.join(names)}")
    return [stated.get(name, stated.get(str(i))) for i, name in enumerate(names)]


def rename_classes(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each class: the label that `Model.labels` gives, else the model's own name."""
    return tuple(label or name for label, name in zip(given_labels(model, names), names, strict=True))


def verdicts(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return SUPPORTS, REFUTES or NOT ENOUGH INFO for every class of a verifier, in the order of its outputs.

    The labels come from `Model.labels`, else from class names with only one meaning (`hfcf.text.label_names`). Two classes may have
    the same label: then their probabilities are added.
    """
    stated = given_labels(model, names)
    if wrong := [label for label in stated if label is not None and label_of(label) is None]:
        raise ValueError(f"{model.name}: labels gives the label {wrong[0]!r}; give one of {', '.join(LABELS)}")
    labels = [label_of(name if label is None else label) for name, label in zip(names, stated, strict=True)]
    if None in labels:
        blanks = {name: label or BLANK for name, label in zip(names, labels, strict=True)}
        what = f"what its classes mean is not known. Write one of {', '.join(LABELS)} instead of each '{BLANK}'"
        raise unclear(what, model, blanks, model.inputs or BLANK)
    if missing := {SUPPORTS, REFUTES} - set(labels):
        raise ValueError(f"{model.name}: none of its classes {', '.join(names)} is {' or '.join(sorted(missing))}")
    return tuple(label for label in labels if label is not None)


def unclear(what: str, model: Model, labels: Mapping[str, str], inputs: str | None) -> UnclearModel:
    """Return the error that says what is not known of a model, with its labels and inputs, or blanks, in every form."""
    settings = {name: value for name, value in (("labels", dict(labels)), ("inputs", inputs)) if value}
    arguments = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]
    options = {"--labels": ",".join(f"{name}={label}" for name, label in labels.items()), "--inputs": inputs}
    return UnclearModel(
        f"{model.name}: {what}",
        in_code=f"Model({', '.join([json.dumps(model.name, ensure_ascii=False), *arguments])})",
        in_recipe=write_flow({"name": model.name, **({"adapter": model.adapter} if model.adapter else {}), **settings}),
        in_command=shlex.join(part for name, value in options.items() if value for part in (name, value)),
    )


@dataclass(frozen=True)
class ClassifierSpec:
    """How a classifier reads a row, and what its outputs mean."""

    labels: tuple[str, ...]
    inputs: InputFormat = OURS

    @property
    def names(self) -> list[str]:
        """The labels, each once, in the order of `merge`."""
        return list(dict.fromkeys(self.labels))

    def merge(self, logits: torch.Tensor) -> torch.Tensor:
        """Return one logit for each of `names`; for a label with several outputs, the logit of their summed probability."""
        if len(self.names) == len(self.labels):
            return logits
        outputs = [[i for i, label in enumerate(self.labels) if label == name] for name in self.names]
        return torch.stack([logits[:, chosen].logsumexp(-1) for chosen in outputs], -1)

    def settings(self) -> dict[str, Any]:
        """Return what changes an answer besides the weights."""
        return {"reads": self.inputs.name, "means": self.labels}


def read_spec(model: Model) -> ClassifierSpec:
    """Return the spec of a verifier, from its configuration and the settings of its `Model`.

    What it reads is `Model.inputs`, else what our training wrote into its configuration. Without either, it is guessed from the
    class names, and the guess is logged. Classes named as in natural language inference mean premise first, and classes named
    exactly as ours mean claim first. Other verifiers are refused.
    """
    return _read_verifier(model, model.key())


@lru_cache(maxsize=64)
def _read_verifier(model: Model, contents: str) -> ClassifierSpec:
    # `contents` is in the key, so that a folder that was trained again in place is read again.
    config = read_tuned_config(model)
    check_head(model, config)
    names = output_names(config)
    return ClassifierSpec(verdicts(model, names), _find_inputs(model, config, names))


def check_head(model: Model, config: Any) -> None:
    """Raise `ValueError` unless a model has a head of mutually exclusive classes."""
    kinds = list(config.architectures or ())
    if kinds and model.adapter is None and not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise ValueError(f"{model.name} is a {kinds[0]} and not a sequence classifier: its head would be random")
    if config.num_labels == 1:
        raise ValueError(f"{model.name} has one output, a score: use a classifier with two or three labels")
    if config.problem_type == "multi_label_classification":
        raise ValueError(f"{model.name} answers each of its classes on its own (problem_type multi_label_classification)")


def _find_inputs(model: Model, config: Any, names: Sequence[str]) -> InputFormat:
    if inputs := model.inputs or getattr(config, INPUTS_KEY, None):
        return parse_inputs(str(inputs))
    if all(normalise(name).startswith(("entail", "contradict", "neutral")) for name in names):
        guess, why = EVIDENCE_FIRST, "its classes have the names of natural language inference"
    elif set(names) <= set(LABELS):
        guess, why = CLAIM_FIRST, "its classes are named as in this library"
    else:
        orders = f"{' or '.join(ORDERS)}, or a text such as '{{claim}} [SEP] {{evidence}}'"
        what = f"which text it reads first is not known. Write {orders}, instead of '{BLANK}'"
        raise unclear(what, model, dict(model.labels or ()), BLANK)
    log.warning("%s is read as %s, because %s; give its `inputs` if it was trained otherwise", model.name, guess, why)
    return parse_inputs(guess)


def is_rbert(model: Model) -> bool:
    """Return whether a model is an R-BERT that this library trained; it needs no `inputs`."""
    return find_file(model.source(), RBERT, model.revision) is not None


def check_relation(model: Model) -> None:
    """Raise `ValueError`, with the line to type, unless the input format of a relation classifier is known; read no weights."""
    if not is_rbert(model):
        relation_spec(model)
    elif model.inputs is not None:
        raise ValueError(f"{model.name} is an R-BERT, which has markers of its own: leave inputs={model.inputs!r} out")


def relation_spec(model: Model) -> ClassifierSpec:
    """Return the relation of each output of a plain classifier: its own name, or the label that `Model.labels` gives."""
    return _read_relation(model, model.key())


@lru_cache(maxsize=64)
def _read_relation(model: Model, contents: str) -> ClassifierSpec:
    spec = _named_classes(model, "relations", model.inputs or BLANK)
    if model.inputs is None:
        what = (
            "it is a plain classifier, not an R-BERT: how it marks the two entities is not known. Write one of "
            f"{', '.join(FORMS)}, or the text for head and tail, such as {FORMS['entity-markers']!r}, instead of '{BLANK}'"
        )
        raise unclear(what, model, dict(model.labels or ()), BLANK)
    parse_markers(model.inputs)
    return spec


def _named_classes(model: Model, called: str, inputs: str | None) -> ClassifierSpec:
    """Return the spec of a classifier with open labels; its unnamed classes are refused, with the line to type."""
    config = read_tuned_config(model)
    check_head(model, config)
    names = output_names(config)
    stated = given_labels(model, names)
    # No row has the label "LABEL_3", so every prediction would count as wrong.
    if unnamed := [name for name, label in zip(names, stated, strict=True) if label is None and UNNAMED.fullmatch(name)]:
        labels = {name: label or BLANK for name, label in zip(names, stated, strict=True)}
        raise unclear(f"nobody named its classes {', '.join(unnamed)}. Write the {called}", model, labels, inputs)
    return ClassifierSpec(rename_classes(model, names))


def text_spec(model: Model) -> ClassifierSpec:
    """Return the label of each output of a classifier of single texts: its own name, or the label that `Model.labels` gives."""
    return _read_text(model, model.key())


@lru_cache(maxsize=64)
def _read_text(model: Model, contents: str) -> ClassifierSpec:
    if model.inputs is not None:
        raise ValueError(f"{model.name}: a classifier of single texts reads the text alone: leave inputs={model.inputs!r} out")
    return _named_classes(model, "labels", None)


def check_classifier(model: Model, labels: Sequence[str] | None = LABELS) -> None:
    """Raise `ValueError`, with the line to type, unless the labels and inputs of a classifier are known; read no weights."""
    if is_prompted(model):
        return
    if labels is None:
        check_relation(model)
    else:
        read_spec(model)
