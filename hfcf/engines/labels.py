"""What the classes of a user's own classifier mean: its names for them, and ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.model import Model
from hfcf.text.label_names import LABELS, REFUTES, SUPPORTS, label_of
from hfcf.text.normalise import normalise

UNNAMED = re.compile(r"LABEL_\d+", re.IGNORECASE)
"""The names that Transformers gives to classes which nobody named."""
BLANK = "?"
"""What stands in the line to type where only its user knows the answer."""


def output_names(config: Any) -> tuple[str, ...]:
    """Return a classifier's own names of its classes, in the order of its outputs."""
    names = config.id2label
    return tuple(str(names[i]) for i in range(len(names)))


def given_labels(model: Model, names: Sequence[str]) -> list[str | None]:
    """Return what `Model.labels` says of every class, by its name or by the number of its output; None of the others."""
    given = dict(model.labels or ())
    if unknown := [own for own in given if own not in names and own not in map(str, range(len(names)))]:
        raise ValueError(f"{model.name}: labels names the class {unknown[0]!r}, and its classes are {', '.join(names)}")
    return [given.get(name, given.get(str(i))) for i, name in enumerate(names)]


def rename_classes(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of classes that are open: what `Model.labels` says, else the model's own."""
    return tuple(label or name for label, name in zip(given_labels(model, names), names, strict=True))


def verdicts(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return SUPPORTS, REFUTES or NOT ENOUGH INFO for every class of a verifier, in the order of its outputs.

    `Model.labels` says it, else the names do, where they can mean nothing else (`hfcf.text.label_names`). Two classes may have one
    label: then their probabilities are added up.
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
            f"{', '.join(LABELS)} in the place of each '{BLANK}': {how_to_type(model, blanks, model.inputs or BLANK)}"
        )
    if missing := [label for label in (SUPPORTS, REFUTES) if label not in labels]:
        raise ValueError(f"{classes}; none of them is {' or '.join(missing)}: a verifier tells {SUPPORTS} and {REFUTES} apart")
    return tuple(label for label in labels if label is not None)


def are_of_inference(names: Sequence[str]) -> bool:
    """Say whether classes have the names of natural language inference, whose models read the premise first."""
    return all(normalise(name).startswith(("entail", "contradict", "neutral")) for name in names)


def how_to_type(model: Model, labels: Mapping[str, str], inputs: str) -> str:
    """Write a model with its labels and inputs as code, recipes and the command line have it."""
    pairs = ", ".join(f"{_quote(own)}: {_quote(label)}" for own, label in labels.items())
    python = [f"labels={{{pairs}}}"] * bool(labels) + [f"inputs={_quote(inputs)}"]
    recipe = [f"labels: {{{pairs}}}"] * bool(labels) + [f"inputs: {_quote(inputs)}"]
    options = [f"--labels {_quote(f'{own}={label}')}" for own, label in labels.items()] + [f"--inputs {_quote(inputs)}"]
    return (
        f"Model({_quote(model.name)}, {', '.join(python)}); in a recipe {{name: {model.name}, {', '.join(recipe)}}}; "
        f"for hfcf evaluate {' '.join(options)}"
    )


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
