"""How a relation classifier of a user's own reads a sentence and what its outputs mean, known before its weights are loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hfcf.core.model import Model, find_file
from hfcf.engines.inputs import model_inputs
from hfcf.engines.labels import BLANK, UNNAMED, given_labels, how_to_type, output_names, rename_classes
from hfcf.engines.markers import FORMS, parse_markers
from hfcf.engines.rbert import HEAD
from hfcf.engines.reading import Reading, check_head, load_config

log = logging.getLogger(__name__)


def is_rbert(model: Model) -> bool:
    """Say whether a model is an R-BERT as our training stores it; it needs no `inputs`."""
    return find_file(model.source(), HEAD, model.revision) is not None


def check_relation(model: Model) -> None:
    """Raise an error that says what to type if it is not known how a relation classifier reads a sentence; read no weights."""
    if not is_rbert(model):
        relation_reading(model)
    elif model.inputs is not None:
        raise ValueError(f"{model.name} is an R-BERT, which has markers of its own: leave inputs={model.inputs!r} out")


def relation_reading(model: Model) -> Reading:
    """Return the relation that each output of a plain classifier stands for: its own name, or what `Model.labels` says."""
    return _read(model, model.key())


@lru_cache(maxsize=64)
def _read(model: Model, contents: str) -> Reading:
    config = load_config(model)
    check_head(model, config)
    own = output_names(config)
    given = given_labels(model, own)
    # Without a mapping: "LABEL_3" is no row's label, so every prediction would count as wrong.
    unnamed = [name for name, label in zip(own, given, strict=True) if label is None and UNNAMED.fullmatch(name)]
    blanks = {name: label or BLANK for name, label in zip(own, given, strict=True)} if unnamed else dict(model.labels or ())
    if unnamed:
        line = how_to_type(model, blanks, model.inputs or BLANK)
        raise ValueError(f"{model.name}: nobody named its classes {', '.join(unnamed)}. Write the relations: {line}")
    if model.inputs is None:
        raise ValueError(
            f"{model.name} is a plain classifier, and no R-BERT: how it marks the two entities is not known. Write one of "
            f"{', '.join(FORMS)}, or what stands in their places, such as {FORMS['entity-markers']!r}, in the place of '{BLANK}': "
            f"{how_to_type(model, blanks, BLANK)}"
        )
    parse_markers(model.inputs)
    return Reading(rename_classes(model, own), own=own)


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
    """Say it once."""
    log.warning(
        "%s: its tokenizer cuts the marker %s into %d pieces; one trained with it mostly has it whole", name, marker, pieces
    )
