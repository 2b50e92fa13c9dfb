"""Search for texts that mention what they must: the interface between the claim generator and its decoder.

A row's constraints are a conjunction of clauses, a clause is a list of alternatives: `[["Rome", "Paris"], ["1994"]]` is met by
a text that names Rome or Paris, and 1994. Today the search is the plain beam search of Transformers, which has no constraints
of its own since
release 5, and `met` tells which hypotheses meet them; a decoder that searches under the constraints takes the place of `search`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

Clauses = Sequence[Sequence[str]]


# Where a phrase of whole words begins and ends: a part of a hyphenated word or of a number ("3" in "3,000") is no whole word.
WORD_START = r"(?<![\w-])(?<!\d[.,])"
WORD_END = r"(?![\w-])(?![.,]\d)"


def mentions(text: str, phrase: str) -> bool:
    """Whether `phrase` stands in `text` as whole words, in any case.

    >>> mentions("The Romans left.", "Roman"), mentions("the romans left", "The Romans")
    (False, True)
    """
    return re.search(WORD_START + re.escape(phrase) + WORD_END, text, re.IGNORECASE) is not None


def met(text: str, clauses: Clauses) -> list[bool]:
    """Which clauses a text meets.

    >>> met("It stands in Rome.", [["Rome", "Paris"], ["1994"]])
    [True, False]
    """
    return [any(mentions(text, phrase) for phrase in clause) for clause in clauses]


def search(
    network: Any,
    inputs: dict[str, torch.Tensor],
    clauses: Sequence[Clauses],
    *,
    num_beams: int,
    num_return_sequences: int,
    max_new_tokens: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best hypotheses of a beam search for every input.

    Args:
        network: an encoder-decoder or decoder-only model.
        inputs: padded `input_ids` and `attention_mask` (on the left, for a decoder-only model).
        clauses: every input's own clauses. Plain beam search does not look at them.
        num_beams: beams of the search.
        num_return_sequences: hypotheses to return for each input, best first.
        max_new_tokens: longest hypothesis.

    Returns:
        Token ids of shape (inputs × num_return_sequences, length), and the hypotheses' length-normalised log-probabilities.
    """
    del clauses
    output = network.generate(
        **inputs,
        num_beams=num_beams,
        num_return_sequences=num_return_sequences,
        max_new_tokens=max_new_tokens,
        do_sample=False,
        early_stopping=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    return output.sequences, output.sequences_scores


def hypotheses(tokenizer: Any, sequences: torch.Tensor, scores: torch.Tensor, inputs: int) -> list[list[dict[str, Any]]]:
    """The different texts found for each input, best first, as `{"text", "score", "finished"}`.

    `finished` tells whether the model ended the text or the limit of tokens cut it off.
    """
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(sequences, skip_special_tokens=True)]
    # The first token of an encoder-decoder may be the end token too: it starts the search there.
    ended = (sequences[:, 1:] == tokenizer.eos_token_id).any(-1).tolist()
    values, each = scores.float().cpu().tolist(), len(texts) // inputs
    found: list[list[dict[str, Any]]] = []
    for i in range(inputs):
        best: dict[str, dict[str, Any]] = {}
        for j in range(i * each, (i + 1) * each):
            if texts[j]:
                best.setdefault(texts[j], {"text": texts[j], "score": round(values[j], 5), "finished": ended[j]})
        found.append(list(best.values()))
    return found
