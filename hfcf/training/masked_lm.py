"""Train a masked language model to fill in single words, on sentences of corpora and WordNet."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.engines.masked import MaskFiller, keep
from hfcf.engines.networks import load_network
from hfcf.text.normalise import normalise
from hfcf.training.trainer import Hyperparameters, fit

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
    """Train a masked language model on sentences and store it in `out`, in half precision; an interrupted run continues.

    Only words that are one token are masked, never pieces of longer words. In use a mask hides a whole word, and a model that
    learned to fill in pieces would answer with the beginnings of words. `share` of the words are chosen: 80 % of them become the
    mask token, 10 % a random token, and 10 % stay (Devlin et al. 2019, BERT). `hp.tune` must be "full".
    """
    from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

    if hp.tune != "full" or hp.model.adapter:
        raise ValueError("a masked language model is trained whole: tune: full, and a model without adapter")
    tokenizer = read_tokenizer(hp.model)
    network = load_network(AutoModelForMaskedLM, hp.model, torch.float32)
    masker = DataCollatorForLanguageModeling(tokenizer, mlm_probability=share)

    def encode(batch: Mapping[str, list[str]]) -> dict[str, Any]:
        coded = tokenizer(batch["text"], truncation=True, max_length=hp.max_length)
        labels = []
        for i, (text, tokens) in enumerate(zip(batch["text"], coded["input_ids"], strict=True)):
            places = {k for k, _ in words(coded, i, text)}
            labels.append([token if k in places else _IGNORED for k, token in enumerate(tokens)])
        return {"input_ids": coded["input_ids"], "labels": labels, "length": list(map(len, labels))}

    def collate(rows: Sequence[Mapping[str, list[int]]]) -> dict[str, torch.Tensor]:
        masks = [[int(label == _IGNORED) for label in row["labels"]] for row in rows]
        while True:  # a small batch may get no mask at all
            items = [{"input_ids": row["input_ids"], "special_tokens_mask": mask} for row, mask in zip(rows, masks, strict=True)]
            batch = dict(masker(items))
            if bool((batch["labels"] != _IGNORED).any()):
                return batch

    rows = Dataset.from_dict({"text": list(texts)}).map(encode, batched=True, remove_columns=["text"], desc="tokenise")
    rows = rows.filter(lambda labels: any(label != _IGNORED for label in labels), input_columns="labels", desc="masked")
    if not len(rows):
        raise ValueError("there is nothing to train on: no text has a word that is one token")
    with head_at_labels(network):
        network = fit(network, tokenizer, rows, hp, collator=collate, task_type="", head=(), out=out, draws=True)
    network.half().save_pretrained(out)
    config = network.float().config  # so that a model loaded without a number type works on a CPU
    config.dtype = torch.float32
    config.save_pretrained(out)


@contextmanager
def head_at_labels(network: Any) -> Iterator[None]:
    """Show the head and the loss of `network` only the positions with a label, which is several times as fast."""
    handles: list[Any] = []

    def before(_module: Any, inputs: Any, options: dict[str, Any]) -> Any:
        mask = options["labels"] != _IGNORED
        handles.append(network.base_model.register_forward_hook(keep(mask)))
        return inputs, {**options, "labels": options["labels"][mask][None]}

    def after(*_: Any) -> None:
        handles.pop().remove()

    hooks = [network.register_forward_pre_hook(before, with_kwargs=True), network.register_forward_hook(after, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def words(coded: Any, i: int, text: str) -> list[tuple[int, tuple[int, int]]]:
    """List the words and numbers of a tokenised text that are one token each: (index, span in the text)."""
    numbers = coded.word_ids(i)
    sizes, results = Counter(numbers), []
    for k, number in enumerate(numbers):
        if number is None or sizes[number] > 1:
            continue
        start, end = coded.token_to_chars(i, k)
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if text[start:end].isalnum():
            results.append((k, (start, end)))
    return results


def evaluate_masked_lm(texts: Sequence[str], model: Model, *, max_length: int, seed: int = 13) -> dict[str, Any]:
    """Measure how often a word, of the 15 % that are masked, is the first fill, or one of the first five fills."""

    tokenizer = read_tokenizer(model)
    coded = tokenizer(list(texts)) if texts else []
    requests: list[list[Any]] = []
    for i, text in enumerate(texts):
        rng = random.Random(f"{seed}:{text}")
        spans = [list(span) for _, span in words(coded, i, text)]
        if spans:
            requests.append([text, sorted(rng.sample(spans, max(1, round(0.15 * len(spans)))))])
    ranks = []
    for (text, spans), fills in zip(requests, MaskFiller(model=model, top=5, max_length=max_length).run(requests), strict=True):
        for (start, end), answers in zip(spans, fills, strict=True):
            ranked, word = [answer.casefold() for answer, _ in answers], text[start:end].casefold()
            ranks.append(ranked.index(word) if word in ranked else 5)
    shares = {f"top{most}": round(sum(rank < most for rank in ranks) / max(1, len(ranks)), 4) for most in (1, 5)}
    return {"sentences": len(requests), "masked": len(ranks), **shares}


def cloze(models: Mapping[str, Model], *, max_length: int) -> dict[str, Any]:
    """Show the first five fills of each model for each of `CLOZE`, and count how often the fitting word is among them."""
    fills = {name: _fills(model, max_length) for name, model in models.items()}
    hits = {name: sum(word in answers[i] for i, (_, word) in enumerate(CLOZE)) for name, answers in fills.items()}
    shown = {text: {name: ", ".join(answers[i]) for name, answers in fills.items()} for i, (text, _) in enumerate(CLOZE)}
    return {f"hits of {len(CLOZE)}": hits, **shown}


def _fills(model: Model, max_length: int) -> list[list[str]]:
    requests = [[text, [[text.index("[MASK]"), text.index("[MASK]") + len("[MASK]")]]] for text, _ in CLOZE]
    answers = MaskFiller(model=model, top=5, max_length=max_length).run(requests)
    return [[word.casefold() for word, _ in answer[0]] for answer in answers]


_EXAMPLE = re.compile(r'"([^"]+)"?')


def collect(
    training: Dataset, development: Dataset, excluded: Sequence[Dataset], *, wordnet: bool, held_out: float, seed: int
) -> tuple[list[str], dict[str, list[str]], int]:
    """Collect sentences to train on, and the held-out sentences of each kind.

    Args:
        training: verification rows.
        development: rows that are held out.
        excluded: rows whose sentences and whole texts may not be trained on or scored.
        wordnet: also read WordNet's glosses; a hash of the text decides whether a gloss is held out.
        held_out: share of the glosses to hold out.
        seed: for the choice of the glosses to hold out.

    Returns: The sentences to train on; the held-out sentences, as "corpora" and "WordNet"; and how many sentences were dropped from
        training because of `excluded`.
    """
    from hfcf.core import offline

    used = {normalise(text) for rows in excluded for text in (*_texts(rows), *sentences(rows))}
    parts: dict[bool, list[str]] = {True: [], False: []}
    for text in glosses(offline.folder("wordnet") / "corpora" / "wordnet") if wordnet else ():
        parts[is_held_out(text, held_out, seed)].append(text)
    candidates = unique([*sentences(training), *parts[False]])
    texts = unique(candidates, used)
    used |= {normalise(text) for text in texts}
    sets = {"corpora": unique(sentences(development), used)}
    if wordnet:
        sets["WordNet"] = unique(parts[True], used)
    return texts, sets, len(candidates) - len(texts)


def sentences(rows: Dataset) -> Iterator[str]:
    """Yield every sentence of the rows' claims and evidence, without titles."""
    for text in dict.fromkeys(_texts(rows)):
        yield from split_sentences(_plain(text))


def glosses(folder: Path) -> Iterator[str]:
    """Yield every definition and example of WordNet from its folder."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith("  "):  # the licence
                yield from gloss_parts(line.partition(" | ")[2])


def gloss_parts(gloss: str) -> list[str]:
    definition, quote, examples = gloss.partition('"')
    parts = [definition.strip(" ;"), *_EXAMPLE.findall(quote + examples)]
    return [text for part in parts if (text := _plain(part))]


def unique(texts: Iterable[str], without: Collection[str] = (), words: int = 3) -> list[str]:
    """Select texts of at least `words` words that differ in letters and digits and are not in `without` (normalised)."""
    by_key: dict[str, str] = {}
    for text in texts:
        if (key := normalise(text)) not in without and len(text.split()) >= words:
            by_key.setdefault(key, text)
    return list(by_key.values())


def is_held_out(text: str, share: float, seed: int) -> bool:
    """Return whether a text is held out. Only its letters decide, so texts that differ in numbers alone go together."""
    letters = "".join(character for character in text.casefold() if character.isalpha())
    return int(hashlib.sha256(f"{seed}:{letters}".encode()).hexdigest()[:12], 16) / 16**12 < share


def _texts(rows: Dataset) -> Iterator[str]:
    for row in rows.select_columns(["claim", "evidence"]):
        yield row["claim"]
        yield from (piece["text"] for piece in row["evidence"])


def _plain(text: str) -> str:
    return " ".join(text.replace("``", '"').replace("''", '"').split())
