"""Train claim generators: all gold evidence of FEVEROUS rows → their claim (RACE, sections 3.3 and 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.core.pretrained import read_weights
from hfcf.engines.generator import PROMPT, Generator, load_tokenizer, two_sided
from hfcf.engines.token_cuts import cut_texts
from hfcf.metrics.scores.translation import bleu_chrf
from hfcf.tasks.verification import REFUTES, SUPPORTS, generator_prefix
from hfcf.text.evidence import join
from hfcf.training.trainer import Hyperparameters, Loss, fit

log = logging.getLogger(__name__)


def train_generator(rows: Dataset, hp: Hyperparameters, out: Path, *, prefixed: bool = False) -> None:
    """Train a claim generator and store it, or its adapter, in `out`; an interrupted run continues.

    Args:
        rows: verification rows; rows that `usable` leaves out are not trained on.
        hp: how; an encoder-decoder and a decoder-only model both work.
        out: a folder.
        prefixed: train the generator of the ablation −EDIT, whose source begins with the wanted label (`generator_prefix`).
    """
    rows = usable(rows, prefixed)
    texts = _texts(rows["evidence"], rows["label"], prefixed)
    train_texts(Dataset.from_dict({"source": texts, "target": list(rows["claim"])}), hp, out)


def train_texts(
    pairs: Dataset, hp: Hyperparameters, out: Path, *, max_target: int = 96, prompt: str = PROMPT, checkpoints: bool = True,
    loss: Loss | None = None,
) -> None:  # fmt: skip
    """Train a model that writes a text from a text, for `hfcf.engines.generator.Generator`, and store it in `out`.

    Args:
        pairs: `source` and `target`, cut to `hp.max_length` and `max_target` tokens, and the columns of `loss`.
        hp: how.
        out: a folder; an interrupted run in it resumes.
        max_target: maximum number of tokens in the target.
        prompt: for a decoder-only model, {} for the source and what follows it.
        checkpoints: see `fit`.
        loss: see `fit`.
    """
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, DataCollatorForSeq2Seq

    if hp.model.adapter:
        raise ValueError(f"{hp.model.adapter}: a generator's training starts from a whole model, not from an adapter")
    encodes, tokenizer = two_sided(hp.model), load_tokenizer(hp.model)
    auto = AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM
    network = read_weights(auto, hp.model)

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        ids = tokenizer(batch["source"], truncation=True, max_length=hp.max_length)["input_ids"]
        if encodes:
            labels = tokenizer(text_target=batch["target"], truncation=True, max_length=max_target)["input_ids"]
            return {"input_ids": ids, "labels": labels}
        # Only the source may begin with a special token, because the target continues it.
        settings = {"add_special_tokens": False, "truncation": True, "max_length": max_target}
        ending, stop = tokenizer(prompt.format(""), **settings)["input_ids"], [tokenizer.eos_token_id]
        targets = tokenizer([f" {target}" for target in batch["target"]], **settings)["input_ids"]
        return {
            "input_ids": [head + ending + target + stop for head, target in zip(ids, targets, strict=True)],
            # −100 keeps the source out of the loss.
            "labels": [[-100] * len(head + ending) + target + stop for head, target in zip(ids, targets, strict=True)],
        }

    for side, limit in (("source", hp.max_length), ("target", max_target)):  # a cut target teaches texts without an end
        if cut := sum(cut_texts(tokenizer, pairs[side][:], limit)):
            log.warning("%d of %d texts are cut: the %s has more than %d tokens", cut, len(pairs), side, limit)
    read = [column for column in pairs.column_names if loss is None or column not in loss.columns]
    encoded = pairs.map(encode, batched=True, remove_columns=read, desc="tokenise")
    task = "SEQ_2_SEQ_LM" if encodes else "CAUSAL_LM"
    fit(
        network, tokenizer, encoded, hp, collator=DataCollatorForSeq2Seq(tokenizer, model=network), task_type=task, head=(),
        out=out, loss=loss, checkpoints=checkpoints,
    )  # fmt: skip


def usable(rows: Dataset, prefixed: bool) -> Dataset:
    """Select the rows whose claim a generator learns to write: SUPPORTS, and REFUTES for a prefixed generator."""
    labels = (SUPPORTS, REFUTES) if prefixed else (SUPPORTS,)
    return rows.select([i for i, label in enumerate(rows["label"]) if label in labels])


def _texts(evidence: Sequence[Any], labels: Sequence[str], prefixed: bool) -> list[str]:
    return [(generator_prefix(label) if prefixed else "") + join(pieces)[0] for pieces, label in zip(evidence, labels, strict=True)]


def evaluate_generator(rows: Dataset, model: Model, *, max_length: int, prefixed: bool = False) -> dict[str, Any]:
    """Score a generator on up to 100 held-out rows, and the baseline that copies the first piece of evidence."""
    rows = first_rows(usable(rows, prefixed), 100)
    if not len(rows):
        return {"rows": 0}
    engine = Generator(model=model, num_beams=5, num_return_sequences=1, max_length=max_length)
    texts = _texts(rows["evidence"], rows["label"], prefixed)
    claims = [answer[0]["text"] if answer else "" for answer in engine.run([[text, []] for text in texts])]
    copies, gold = [evidence[0]["text"] for evidence in rows["evidence"]], list(rows["claim"])
    copied = sum(claim in text for claim, text in zip(claims, texts, strict=True)) / max(1, len(rows))
    scores = {**bleu_chrf(claims, gold), "copied": round(copied, 4)}
    return {"rows": len(rows), "model": scores, "first piece": bleu_chrf(copies, gold)}
