"""Classification of single texts, by any sequence classifier with names of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad, skip_empty
from hfcf.engines.classifier import label_probabilities, load_classifier
from hfcf.engines.classifier_spec import text_spec
from hfcf.engines.rbert import longest
from hfcf.engines.token_cuts import cut_texts
from hfcf.engines.verifier_inputs import model_inputs


@dataclass(frozen=True, kw_only=True)
class TextClassifier(Engine):
    """Class probabilities of texts, as `{class: probability}`; `Model.labels` renames classes.

    Args:
        model: a sequence classifier.
        max_length: the number of tokens of a text, including special tokens.
        cut: whether a longer text is cut; if not, its answer is None, because the words that decide may be past the limit.

    Raises:
        ValueError: the meaning of its classes is unknown.
    """

    AHEAD: ClassVar = True

    model: Model
    max_length: Positive
    cut: bool = False

    def load(self, device: torch.device) -> Any:
        text_spec(self.model)
        network, tokenizer = load_classifier(self.model, device, self.dtype())
        return network, tokenizer, longest(network.config, tokenizer, self.max_length)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        _, tokenizer, most = loaded
        encoded = tokenizer(list(requests), verbose=False, truncation=self.cut, max_length=most if self.cut else None)
        items = [*map(Encoded, model_inputs(tokenizer, encoded))]
        if self.cut:
            longer = cut_texts(tokenizer, list(requests), most, lengths=[len(item) for item in items])
            return [Encoded(item.features, cut=is_cut) for item, is_cut in zip(items, longer, strict=True)]
        return [item if len(item) <= most else Encoded({"input_ids": []}) for item in items]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, _ = loaded
        reading = text_spec(self.model)

        def answer(items: Sequence[Encoded]) -> list[dict[str, float]]:
            with torch.inference_mode():
                logits = network(**pad(tokenizer, items, network.device)).logits
            return label_probabilities(reading.merge(logits.float()), reading.names)

        return skip_empty(encoded, answer)
