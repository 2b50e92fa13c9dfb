"""A masked language model, trained on sentences to fill in single words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.engines.adapters import load_network
from hfcf.engines.masked import MaskedLM, keep
from hfcf.training.loop import Hyperparameters, fit

CLOZE = (
    ("The capital of France is [MASK].", "paris"),
    ("The cat sat on the [MASK].", "floor"),
    ("She is an American actress and [MASK].", "singer"),
    ("The president lives in the White [MASK].", "house"),
    ("He was born in [MASK] in the United States.", "california"),
    ("The film was directed by an English [MASK].", "director"),
    ("The team won the world [MASK].", "championship"),
    ("Water freezes into [MASK].", "ice"),
    ("He is the [MASK] of the company.", "president"),
    ("The doctor worked at the [MASK].", "hospital"),
)
"""Sentences to look at, each with one of the words that fit."""
_IGNORED = -100


def train_masked_lm(texts: Sequence[str], hp: Hyperparameters, out: Path, *, share: float) -> None:
    """Train a masked language model and store it in `out`, in half precision.

    Only words that are one token are masked, never the pieces of longer ones: a mask in use stands for one whole word, and a model
    that learned to fill in pieces would answer with the beginnings of words. Of the chosen words 80 % become the mask token,
    10 % another token and 10 % stay (Devlin et al. 2019, BERT).

    Args:
        texts: sentences, one to a row.
        hp: how; `tune` must be "full".
        out: a folder; an interrupted run in it goes on.
        share: of the words to be masked.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling

    if hp.tune != "full" or hp.model.adapter:
        raise ValueError("a masked language model is trained whole: tune: full, and a model without adapter")
    tokenizer = AutoTokenizer.from_pretrained(hp.model.source(), revision=hp.model.revision)
    network = load_network(AutoModelForMaskedLM, hp.model, torch.float32)
    masker = DataCollatorForLanguageModeling(tokenizer, mlm_probability=share)

    def encode(batch: Mapping[str, list[str]]) -> dict[str, Any]:
        coded = tokenizer(batch["text"], truncation=True, max_length=hp.max_length)
        rows = coded["input_ids"]
        places = [{k for k, _ in words(coded, i, text)} for i, text in enumerate(batch["text"])]
        labels = [[token if k in its else _IGNORED for k, token in enumerate(row)] for row, its in zip(rows, places, strict=True)]
        return {"input_ids": rows, "labels": labels, "length": [len(row) for row in rows]}

    def collate(rows: Sequence[Mapping[str, list[int]]]) -> dict[str, torch.Tensor]:
        given = [
            {"input_ids": row["input_ids"], "special_tokens_mask": [int(label == _IGNORED) for label in row["labels"]]}
            for row in rows
        ]
        while True:  # a small batch may get no mask at all
            batch = dict(masker([dict(one) for one in given]))
            if bool((batch["labels"] != _IGNORED).any()):
                return batch

    rows = Dataset.from_dict({"text": list(texts)}).map(encode, batched=True, remove_columns=["text"], desc="tokenise")
    rows = rows.filter(lambda labels: any(label != _IGNORED for label in labels), input_columns="labels", desc="masked")
    if not len(rows):
        raise ValueError("there is nothing to train on: no text has a word that is one token")
    with head_at_labels(network):
        network = fit(network, tokenizer, rows, hp, collator=collate, task_type="", head=(), out=out)
    network.half().save_pretrained(out)
    config = network.float().config  # so that whoever loads it without naming a number type computes with it on a CPU
    config.dtype = torch.float32
    config.save_pretrained(out)


@contextmanager
def head_at_labels(network: Any) -> Iterator[None]:
    """Within it, the head and the loss of `network` see the positions with a label alone: several times as fast."""
    handles: list[Any] = []

    def before(_module: Any, inputs: Any, given: dict[str, Any]) -> Any:
        mask = given["labels"] != _IGNORED
        handles.append(network.base_model.register_forward_hook(keep(mask)))
        return inputs, {**given, "labels": given["labels"][mask][None]}

    def after(*_: Any) -> None:
        handles.pop().remove()

    hooks = [
        network.register_forward_pre_hook(before, with_kwargs=True),
        network.register_forward_hook(after, always_call=True),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def words(coded: Any, i: int, text: str) -> list[tuple[int, tuple[int, int]]]:
    """The words and numbers of a tokenised text that are one token each: (its place, its span in the text)."""
    its = coded.word_ids(i)
    found = []
    for k, word in enumerate(its):
        if word is None or word in (its[k - 1] if k else None, its[k + 1] if k + 1 < len(its) else None):
            continue
        start, end = coded.token_to_chars(i, k)
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if text[start:end].isalnum():
            found.append((k, (start, end)))
    return found


def evaluate_masked_lm(
    texts: Sequence[str], model: Model, *, max_length: int, share: float = 0.15, seed: int = 13
) -> dict[str, Any]:
    """How often a masked word is the first, or one of the first five, of its fills.

    Args:
        texts: sentences that it was not trained on.
        model: the masked language model.
        max_length: tokens that it reads.
        share: of the words of a sentence that are one token, masked together; at least one.
        seed: which.

    Returns:
        `sentences`, `masked` (words), `top1` and `top5`.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.source(), revision=model.revision)
    coded = tokenizer(list(texts)) if texts else []
    requests: list[list[Any]] = []
    for i, text in enumerate(texts):
        rng = random.Random(f"{seed}:{text}")
        spans = [list(span) for _, span in words(coded, i, text)]
        if spans:
            requests.append([text, sorted(rng.sample(spans, max(1, round(share * len(spans)))))])
    ranks = []
    for (text, spans), fills in zip(requests, MaskedLM(model=model, top=5, max_length=max_length).run(requests), strict=True):
        for (start, end), found in zip(spans, fills, strict=True):
            given = [word.casefold() for word, _ in found]
            word = text[start:end].casefold()
            ranks.append(given.index(word) if word in given else 5)
    number = max(1, len(ranks))
    return {
        "sentences": len(requests),
        "masked": len(ranks),
        "top1": round(sum(rank == 0 for rank in ranks) / number, 4),
        "top5": round(sum(rank < 5 for rank in ranks) / number, 4),
    }


def cloze(models: Mapping[str, Model], *, max_length: int) -> dict[str, Any]:
    """The first five fills of each model for each of `CLOZE`, and for how many of these the word given there is one of them."""
    fills = {name: _fills(model, max_length) for name, model in models.items()}
    hits = {name: sum(word in found[i] for i, (_, word) in enumerate(CLOZE)) for name, found in fills.items()}
    shown = {text: {name: ", ".join(found[i]) for name, found in fills.items()} for i, (text, _) in enumerate(CLOZE)}
    return {f"hits of {len(CLOZE)}": hits, **shown}


def _fills(model: Model, max_length: int) -> list[list[str]]:
    requests = [[text, [[text.index("[MASK]"), text.index("[MASK]") + len("[MASK]")]]] for text, _ in CLOZE]
    answers = MaskedLM(model=model, top=5, max_length=max_length).run(requests)
    return [[word.casefold() for word, _ in answer[0]] for answer in answers]
