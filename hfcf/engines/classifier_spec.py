"""How a classifier reads a row and what its classes mean; both are known from its configuration, before its weights are loaded."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import yaml

from hfcf.core.model import Model, find_file, is_prompted
from hfcf.core.pretrained import read_tuned_config
from hfcf.core.safe_yaml import front_matter
from hfcf.engines.markers import FORMS, parse_markers
from hfcf.engines.verifier_inputs import CLAIM_FIRST, EVIDENCE_FIRST, OURS, PAIRS, InputFormat, model_inputs, parse_form
from hfcf.text.label_names import LABELS, REFUTES, SUPPORTS, label_of
from hfcf.text.normalise import normalise

UNNAMED = re.compile(r"LABEL_\d+", re.IGNORECASE)
"""The names that Transformers gives to unnamed classes."""
BLANK = "?"
"""The placeholder in a suggested line for what only the user knows."""


def output_names(config: Any) -> tuple[str, ...]:
    """Return a classifier's own names of its classes, in the order of its outputs."""
    names = config.id2label
    return tuple(str(names[i]) for i in range(len(names)))


def given_labels(model: Model, names: Sequence[str]) -> list[str | None]:
    """Return the label that `Model.labels` gives to each class, by class name or output number; None for other classes."""
    given = dict(model.labels or ())
    if unknown := [own for own in given if own not in names and own not in map(str, range(len(names)))]:
        raise ValueError(f"{model.name}: labels names the class {unknown[0]!r}, but its classes are {', '.join(names)}")
    return [given.get(name, given.get(str(i))) for i, name in enumerate(names)]


def rename_classes(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each class: the label that `Model.labels` gives, else the model's own name."""
    return tuple(label or name for label, name in zip(given_labels(model, names), names, strict=True))


def verdicts(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return SUPPORTS, REFUTES or NOT ENOUGH INFO for every class of a verifier, in the order of its outputs.

    The labels come from `Model.labels`, else from class names with only one meaning (`hfcf.text.label_names`). Two classes may have
    the same label: then their probabilities are added.
    """
    given = given_labels(model, names)
    for own, label in dict(model.labels or ()).items():
        if label_of(label) is None:
            raise ValueError(f"{model.name}: labels gives the class {own!r} the label {label!r}; give one of {', '.join(LABELS)}")
    labels = [label_of(name if label is None else label) for name, label in zip(names, given, strict=True)]
    classes = f"{model.name}: its classes are {', '.join(names)}"
    if unknown := [name for name, label in zip(names, labels, strict=True) if label is None]:
        blanks = {name: label or BLANK for name, label in zip(names, labels, strict=True)}
        raise ValueError(
            f"{classes}; what {' and '.join(unknown)} mean{'s' if len(unknown) == 1 else ''} is not known. Write one of "
            f"{', '.join(LABELS)} instead of each '{BLANK}': {how_to_type(model, blanks, model.inputs or BLANK)}"
        )
    if missing := [label for label in (SUPPORTS, REFUTES) if label not in labels]:
        raise ValueError(f"{classes}; none of them is {' or '.join(missing)}: a verifier must distinguish {SUPPORTS} and {REFUTES}")
    return tuple(label for label in labels if label is not None)


def are_of_inference(names: Sequence[str]) -> bool:
    """Return whether classes have the names of natural language inference, whose models read the premise first."""
    return all(normalise(name).startswith(("entail", "contradict", "neutral")) for name in names)


def how_to_type(model: Model, labels: Mapping[str, str], inputs: str | None) -> str:
    """Write a model with its labels and inputs, if it needs any, in the form of code, recipes and the command line."""
    pairs = ", ".join(f"{_quote(own)}: {_quote(label)}" for own, label in labels.items())
    python, recipe = ([f"labels{sign}{{{pairs}}}"] * bool(labels) for sign in ("=", ": "))
    options = [f"--labels {_quote(f'{own}={label}')}" for own, label in labels.items()]
    if inputs is not None:
        python.append(f"inputs={_quote(inputs)}")
        recipe.append(f"inputs: {_quote(inputs)}")
        options.append(f"--inputs {_quote(inputs)}")
    return (
        f"Model({_quote(model.name)}, {', '.join(python)}); in a recipe {{name: {model.name}, {', '.join(recipe)}}}; "
        f"for hfcf evaluate {' '.join(options)}"
    )


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


log = logging.getLogger(__name__)

RBERT = "rbert.safetensors"
"""The file of an R-BERT's head, by which R-BERTs are recognised; the encoder's `config.json` names the classes."""
MARK = "hfcf_inputs"
"""The key of a configuration and of a card's front matter in which our trainings write the form of the inputs."""


@dataclass(frozen=True)
class ClassifierSpec:
    """How a classifier reads a row, and what its outputs mean."""

    labels: tuple[str, ...]
    form: InputFormat = OURS
    own: tuple[str, ...] = ()

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
        """Return what changes an answer besides the weights: nothing for a verifier with our labels and our input format."""
        if self.labels == self.own and self.form == OURS:
            return {}  # the keys of paid answers depend on it
        return {"reads": self.form.name, "means": self.labels}


def read_spec(model: Model) -> ClassifierSpec:
    """Return the spec of a verifier, from its configuration, its card and the settings of its `Model`.

    The input format is `Model.inputs`, else the format that our training wrote into its configuration or its card. Without either,
    it is guessed from the class names, and the guess is logged. Classes named as in natural language inference mean premise first,
    and classes named exactly as ours mean claim first. Other verifiers are refused.
    """
    return _read(model, model.key())


@lru_cache(maxsize=64)
def _read(model: Model, contents: str) -> ClassifierSpec:
    # `contents` is in the key, so that a folder that was trained again in place is read again.
    config = read_tuned_config(model)
    check_head(model, config)
    own = output_names(config)
    labels = verdicts(model, own)
    return ClassifierSpec(labels, _form(model, config, own, labels), own)


def check_head(model: Model, config: Any) -> None:
    """Raise `ValueError` unless a model has a head of mutually exclusive classes."""
    kinds = list(config.architectures or ())
    if kinds and model.adapter is None and not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise ValueError(f"{model.name} is a {kinds[0]} and not a sequence classifier: its head would be random")
    if config.num_labels == 1:
        raise ValueError(
            f"{model.name} has one output, a score (a sigmoid or a regression head, as rerankers have). It gives no probability of "
            "each label: use a classifier with two or three labels"
        )
    if config.problem_type == "multi_label_classification":
        raise ValueError(f"{model.name} answers each of its classes on its own (problem_type multi_label_classification)")


def _form(model: Model, config: Any, own: Sequence[str], labels: Sequence[str]) -> InputFormat:
    if model.inputs is not None:
        return parse_form(model.inputs)
    if (mark := getattr(config, MARK, None) or _card_mark(model)) is not None:
        form = parse_form(str(mark))
        if not form.titles:  # the code that joins the evidence only sees the setting
            raise ValueError(f"{model.name}: it was trained without titles: type {how_to_type(model, {}, form.name)}")
        return form
    if are_of_inference(own):
        _guess(model, EVIDENCE_FIRST, "its classes have the names of natural language inference")
        return parse_form(EVIDENCE_FIRST)
    if set(own) <= set(LABELS):
        _guess(model, CLAIM_FIRST, "its classes are named as in this library")
        return OURS
    known = {} if tuple(own) == tuple(labels) else dict(model.labels or ())
    raise ValueError(
        f"{model.name}: which text it reads first is not known. Write one of {', '.join(PAIRS)} ('text' is the evidence without "
        "titles), or a text such as '{claim} [SEP] {evidence}', instead of "
        f"'{BLANK}': {how_to_type(model, known, BLANK)}"
    )


def _guess(model: Model, inputs: str, why: str) -> None:
    log.warning(
        "%s is read as %s, because %s; set Model(%r, inputs=…) if it was trained otherwise", model.name, inputs, why, model.name
    )


def _card_mark(model: Model) -> str | None:
    """Return the input format that a card of this library names."""
    place, at = (model.source(), model.revision) if model.adapter is None else (str(model.adapter_source()), None)
    if (path := find_file(place, "README.md", at)) is None:
        return None
    try:
        front = front_matter(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError):  # not a card of this library
        return None
    return front.get(MARK)


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
        raise ValueError(
            f"{model.name} is a plain classifier, not an R-BERT: how it marks the two entities is not known. Write one of "
            f"{', '.join(FORMS)}, or the text for head and tail, such as {FORMS['entity-markers']!r}, instead of '{BLANK}': "
            f"{how_to_type(model, dict(model.labels or ()), BLANK)}"
        )
    parse_markers(model.inputs)
    return spec


def _named_classes(model: Model, called: str, inputs: str | None) -> ClassifierSpec:
    """Return the spec of a classifier with open labels; its unnamed classes are refused, with the line to type."""
    config = read_tuned_config(model)
    check_head(model, config)
    own = output_names(config)
    given = given_labels(model, own)
    # No row has the label "LABEL_3", so every prediction would count as wrong.
    if unnamed := [name for name, label in zip(own, given, strict=True) if label is None and UNNAMED.fullmatch(name)]:
        line = how_to_type(model, {name: label or BLANK for name, label in zip(own, given, strict=True)}, inputs)
        raise ValueError(f"{model.name}: nobody named its classes {', '.join(unnamed)}. Write the {called}: {line}")
    return ClassifierSpec(rename_classes(model, own), own=own)


def text_spec(model: Model) -> ClassifierSpec:
    """Return the label of each output of a classifier of single texts: its own name, or the label that `Model.labels` gives."""
    return _read_text(model, model.key())


@lru_cache(maxsize=64)
def _read_text(model: Model, contents: str) -> ClassifierSpec:
    if model.inputs is not None:
        raise ValueError(f"{model.name}: a classifier of single texts reads the text alone: leave inputs={model.inputs!r} out")
    return _named_classes(model, "labels", None)


def encode_sentences(model: Model, tokenizer: Any, requests: Sequence[Sequence[Any]]) -> list[dict[str, list[int]]]:
    """Tokenise `[tokens, head, tail]` requests with the model's markers; sentences are not cut."""
    form = parse_markers(model.inputs or "")
    texts = [form.render(*request) for request in requests]
    kinds = {tuple((*span, None)[2] for span in request[1:3]) for request in requests}
    for marker in dict.fromkeys(marker for types in sorted(kinds, key=str) for marker in form.markers(types)):
        _check_marker(model, tokenizer, marker)
    encoded = tokenizer(texts, verbose=False)
    return model_inputs(tokenizer, encoded)


def _check_marker(model: Model, tokenizer: Any, marker: str) -> None:
    ids = tokenizer(f" {marker}", add_special_tokens=False)["input_ids"]
    if not ids or tokenizer.unk_token_id in ids:
        raise ValueError(
            f"{model.name}: its tokenizer does not know {marker!r} of inputs={model.inputs!r}: it was trained with other markers"
        )
    if len(ids) > 1:
        _warn(model.name, marker, len(ids))


@lru_cache(maxsize=256)
def _warn(name: str, marker: str, pieces: int) -> None:
    """Warn once for each marker."""
    log.warning(
        "%s: its tokenizer cuts the marker %s into %d pieces; one trained with it mostly has it whole", name, marker, pieces
    )


def check_classifier(model: Model, labels: Sequence[str] | None = LABELS) -> None:
    """Raise `ValueError`, with the line to type, unless the labels and inputs of a classifier are known; read no weights."""
    if is_prompted(model):
        return
    if labels is None:
        check_relation(model)
    else:
        read_spec(model)
