"""A tiny verifier that reads one word, and its explainer.

"film" in the evidence SUPPORTS, "born" REFUTES, neither is NOT ENOUGH INFO.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import tiny
import torch
from datasets import Dataset
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.evidence import join
from hfcf.training.explainer import Weights, train_explainer
from hfcf.training.trainer import Hyperparameters

SIGNAL = {SUPPORTS: "film", REFUTES: "born"}
FILLERS = ("the", "city", "was", "in", "river", "and", "first", "American", "band", "county", "of", "by")


def rows(number: int, *, seed: int = 0, labels: tuple[str, ...] = (SUPPORTS, REFUTES)) -> Dataset:
    """Rows of three pieces of four words; one word of one piece, the human rationale, decides the label."""
    rng = random.Random(seed)
    made = []
    for i in range(number):
        pieces = [[rng.choice(FILLERS) for _ in range(4)] for _ in range(3)]
        label, at = labels[i % len(labels)], rng.randrange(3)
        if label in SIGNAL:
            pieces[at][rng.randrange(4)] = SIGNAL[label]
        texts = [" ".join(piece) for piece in pieces]
        human = {"field": "evidence", "piece": at, "start": 0, "end": len(texts[at]), "score": 1.0}
        made.append(
            {
                "id": f"row-{i}", "claim": f"It was in city {i}.", "label": label,
                "evidence": [{"title": "", "text": text} for text in texts], "rationales": [human],
                "group_id": f"group-{i}", "corpus": "made", "split": "train",
            }
        )  # fmt: skip
    return Dataset.from_list(made)


def canonical(ds: Dataset) -> Dataset:
    return ds.select_columns(list(get_task("verification").features))


def verifier(folder: Path, hidden_size: int = 32) -> str:
    """Train it: a few seconds.

    It reads a masked text as NOT ENOUGH INFO, and an explainer can't learn a mask that it reads otherwise. If a mask stands for one
    of the other classes, the gates of this class have no reason to open; some seeds and machines came to that.
    """
    torch.manual_seed(0)
    tiny.classifier(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = BertConfig.from_pretrained(folder, initializer_range=0.1, hidden_size=hidden_size, hidden_dropout_prob=0.0)
    network = BertForSequenceClassification(config)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    # It learns what a mask is, of which an explainer starts: all words of the evidence but the signals are masked in any share.
    spared = torch.tensor(tokenizer.convert_tokens_to_ids([*SIGNAL.values(), tokenizer.sep_token]))
    ds = rows(3000, labels=(SUPPORTS, REFUTES, NOT_ENOUGH_INFO))
    for start in range(0, len(ds), 24):
        batch: dict[str, Any] = ds[start : start + 24]
        texts = [join(evidence)[0] for evidence in batch["evidence"]]
        inputs = tokenizer(batch["claim"], texts, padding=True, return_tensors="pt")
        labels = torch.tensor([LABELS.index(label) for label in batch["label"]])
        ids = inputs["input_ids"]
        others = (inputs["token_type_ids"] == 1) & ~torch.isin(ids, spared)
        ids[others & (torch.rand(ids.shape) < torch.rand(len(ids), 1))] = tokenizer.pad_token_id
        network.train()(**inputs, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    # The layer norm behind the embeddings undoes the factor: the verifier answers the same. But the mask that an explainer learns
    # can no longer reach a signal word.
    with torch.no_grad():
        for table in network.bert.embeddings.children():
            if isinstance(table, torch.nn.Embedding):
                table.weight *= 10
    network.eval().save_pretrained(folder)
    return str(folder)


def explainer(verifier: str, folder: Path) -> str:
    """Train its gates until those of the words and pieces that decide are open: a few seconds."""
    hp = Hyperparameters(model=Model(verifier), max_length=64, batch_size=16, learning_rate=3e-3, epochs=5.0, warmup=0.3)
    train_explainer(canonical(rows(900, seed=1)), hp, folder, Weights(token_budget=0.15, sentence_budget=0.34))
    return str(folder)
