"""The margin of a relation classifier's prediction, and its gradient by the words of the sentence."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from hfcf.engines.base import Encoded
from hfcf.engines.classifier import label_probabilities
from hfcf.engines.rbert import RBert, collate
from hfcf.engines.word_effects import mean_embeddings


class Margin(NamedTuple):
    """The answer to a sentence, and the margin's gradient by the embeddings of its words."""

    answer: Mapping[str, float]
    gradients: Mapping[int, torch.Tensor]

    def to_json(self) -> dict[str, Any]:
        """Return values for JSON, from which `from_json` makes the same numbers to the last bit."""
        texts = {word: base64.b64encode(one.cpu().numpy().tobytes()).decode() for word, one in self.gradients.items()}
        return {"answer": self.answer, "gradients": texts}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], device: torch.device) -> Self:
        """Read what `to_json` returned, also after a trip through JSON, which has texts as keys."""
        arrays = {int(word): np.frombuffer(base64.b64decode(text), np.float32) for word, text in values["gradients"].items()}
        return cls(values["answer"], {word: torch.tensor(array, device=device) for word, array in arrays.items()})


class Margins:
    """Predict one batch, and differentiate each margin (the predicted class's logit over the next one's) by the pieces."""

    def __init__(self, network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> None:
        logits, states = with_embeddings(network, collate(tokenizer, encoded, network.device))
        self.answers = label_probabilities(logits, network.labels)
        margins = logits.float().topk(min(2, logits.shape[-1])).values
        (self._gradients,) = torch.autograd.grad((margins[:, 0] - margins[:, -1]).sum(), states)

    def gradient(self, sentence: int, places: Sequence[int]) -> torch.Tensor:
        """Return the gradient by the embeddings of some pieces, summed."""
        return self._gradients[sentence, list(places)].sum(0).float()


def order_fills(
    fills: Sequence[tuple[int, ...]], gradient: torch.Tensor, table: torch.Tensor
) -> tuple[list[tuple[int, ...]], torch.Tensor]:
    """Sort fills by the fall of the margin, were it linear (a stable sort), and return the falls, up to a constant.

    A word of several pieces counts by its mean embedding.
    """
    if not fills:
        return [], torch.zeros(0)
    slopes = mean_embeddings(table, fills) @ gradient
    order = slopes.argsort(stable=True).tolist()
    return [fills[i] for i in order], slopes[order].cpu()


def with_embeddings(network: RBert, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of a batch (see `hfcf.engines.rbert.collate`), and its embeddings to differentiate them by."""
    embeddings: list[torch.Tensor] = []

    def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        embeddings.append(output.detach().requires_grad_())
        return embeddings[0]

    handle = network.encoder.get_input_embeddings().register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = network(**batch).logits
    finally:
        handle.remove()
    return logits, embeddings[0]
