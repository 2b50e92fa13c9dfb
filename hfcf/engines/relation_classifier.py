"""Relation classification of sentences with two marked entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad, skip_empty
from hfcf.engines.classifier import label_probabilities, load_classifier
from hfcf.engines.classifier_spec import ClassifierSpec, check_relation, is_rbert, relation_spec, rename_classes
from hfcf.engines.markers import parse_markers
from hfcf.engines.rbert import RBert, encode_marked, load_rbert, longest, rbert_logits
from hfcf.engines.verifier_inputs import model_inputs


@dataclass(frozen=True, kw_only=True)
class RelationClassifier(Engine):
    """Class probabilities of `[tokens, [head start, head end], [tail start, tail end]]` requests, as `{class: probability}`.

    The model is an R-BERT, or a plain sequence classifier with markers around the entities, which `Model.inputs` names
    (`hfcf.engines.markers`). If the markers contain the types, a span has its type as a third value. `Model.labels` renames
    classes.

    Head is the first argument of the relation and tail the second, in any order in the sentence; ends are exclusive. A sentence
    with more pieces than the classifier reads is not cut, because that could cut its entities: its answer is None.

    Args:
        model: an R-BERT (a folder that `hfcf.training.relation.train_relation` wrote, or its Hub id), or a plain classifier.
        max_length: the number of tokens that it reads, including markers and special tokens.

    Raises:
        ValueError: how `model` reads a sentence is not known, or an entity is empty, lies outside its sentence or has no type.
    """

    model: Model
    max_length: Positive = 128

    def load(self, device: torch.device) -> Any:
        check_relation(self.model)
        if is_rbert(self.model):
            return self.load_rbert(device)
        network, tokenizer = load_classifier(self.model, device, self.dtype())
        return network, tokenizer, longest(network.config, tokenizer, self.max_length)

    def load_rbert(self, device: torch.device) -> tuple[RBert, Any, int]:
        """Load an R-BERT for code that reads its layers; refuse a plain classifier."""
        network, tokenizer = load_rbert(self.model, device, self.dtype())
        return network, tokenizer, longest(network.encoder.config, tokenizer, self.max_length)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, most = loaded
        if isinstance(network, RBert):
            encoded = [encode_marked(tokenizer, *request) for request in requests]
        else:
            encoded = [Encoded(features) for features in encode_sentences(self.model, tokenizer, requests)]
        return [item if len(item) <= most else Encoded({"input_ids": []}) for item in encoded]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, _ = loaded
        if isinstance(network, RBert):
            reading = ClassifierSpec(rename_classes(self.model, network.labels))
            logits = lambda items: rbert_logits(network, tokenizer, items)  # noqa: E731 - one of two
        else:
            reading = relation_spec(self.model)
            logits = lambda items: network(**pad(tokenizer, items, network.device)).logits  # noqa: E731 - as above

        def answer(items: Sequence[Encoded]) -> list[dict[str, float]]:
            with torch.inference_mode():
                return label_probabilities(reading.merge(logits(items).float()), reading.names)

        return skip_empty(encoded, answer)


def encode_sentences(model: Model, tokenizer: Any, requests: Sequence[Sequence[Any]]) -> list[dict[str, list[int]]]:
    """Tokenise `[tokens, head, tail]` requests, or those of `written_requests`, with the model's markers; sentences are not cut."""
    markers = parse_markers(model.inputs or "")
    types = {tuple((*span, None)[2] for span in request[1:3]) for request in requests}
    for marker in sorted({marker for pair in types for marker in markers.markers(pair)}):
        ids = tokenizer(f" {marker}", add_special_tokens=False)["input_ids"]
        if not ids or tokenizer.unk_token_id in ids:
            raise ValueError(
                f"{model.name}: its tokenizer does not know {marker!r} of inputs={model.inputs!r}; write those of its training"
            )
    return model_inputs(tokenizer, tokenizer([markers.render(*request) for request in requests], verbose=False))
