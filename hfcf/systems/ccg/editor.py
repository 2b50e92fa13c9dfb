"""The editor, a model that writes causal terms for two entities and a relation: how it is trained and asked (CCG, section 3.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from datasets import Dataset

from hfcf.core.decisions import ranked
from hfcf.core.model import Model
from hfcf.core.settings import Trains
from hfcf.core.stage import StageError
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import load_tokenizer, two_sided
from hfcf.engines.likelihood import Likelihood
from hfcf.systems.ccg.terms import count_terms, repeats_a_word, term, tokenised
from hfcf.tasks.relation import entities, head_first, roles
from hfcf.training.generator import train_texts
from hfcf.training.model_cache import stored_model, train_once
from hfcf.training.trainer import Hyperparameters

log = logging.getLogger(__name__)

EDITOR = Hyperparameters(model=Model("gpt2"), max_length=47, batch_size=1, learning_rate=2e-5, epochs=2)
"""The released code's, but that the learning rate falls to zero."""
EditorTraining = Annotated[Hyperparameters, Trains("editor")]
"""The type of a setting: how an editor is trained on the rows."""
MASK = "<mask>"
_TEMPLATE = "sentence1: {first} ({role}) {mask} {second} sentence2: {first} ({role})"
_SHORT = "{first} ({role}) {mask} {second}"


def engine_of(stage: Any, model: Model) -> Continuation:
    """Make the engine of an editor with a stage's settings of the search."""
    return Continuation(
        model=model, num_beams=stage.num_beams, num_return_sequences=stage.num_candidates, max_new_tokens=stage.max_new_tokens
    )


def prompt_text(row: Mapping[str, Any], relation: str, model: Model) -> str:
    """Write the editor's prompt: the entities in the order of the sentence, and their roles in the same order."""
    first, second = _in_order(row)
    template, mask = _template_of(model)
    return template.format(first=first, second=second, role=roles(relation, forward=head_first(row)), mask=mask)


def _in_order(row: Mapping[str, Any]) -> tuple[str, str]:
    head, tail = entities(row)
    return (head, tail) if head_first(row) else (tail, head)


@lru_cache(maxsize=16)
def _template_of(model: Model) -> tuple[str, str]:
    """Return a model's template, and its sign for a blank."""
    if not two_sided(model):
        return _TEMPLATE, MASK
    tokenizer = load_tokenizer(model)
    blank = "<extra_id_0>" if "<extra_id_0>" in tokenizer.get_vocab() else tokenizer.mask_token
    return _SHORT, blank or MASK


def target_text(row: Mapping[str, Any], text: str, model: Model) -> str:
    """Return what the editor should write for a term: the term, and after the paper's template the second entity too."""
    return text if two_sided(model) else f"{text} {_in_order(row)[1]}"


def cut_term(text: str, row: Mapping[str, Any]) -> str:
    """Return the term in what the editor wrote: its tokens up to the second entity.

    Deviation: the released code deletes the entities' text everywhere, inside other words too, and keeps what follows.
    """
    before, _, _ = f" {tokenised(text)} ".partition(f" {tokenised(_in_order(row)[1])} ")
    return before.strip()


def hypotheses(answer: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """List the different terms in what the editor wrote, best first, each with the score of its best hypothesis."""
    results: dict[str, float] = {}
    for hypothesis in answer:
        results.setdefault(cut_term(hypothesis["text"], row), hypothesis["score"])
    return [(text, score) for text, score in results.items() if text and not repeats_a_word(text)]


def rank_terms(model: Model, requests: Sequence[tuple[Mapping[str, Any], str, Sequence[str]]]) -> list[list[tuple[str, float]]]:
    """Rank the terms of each request (row, relation, terms) by the editor's likelihood, best first, each with its score.

    Terms that the editor can't read with the row's entities are left out.
    """
    # Rows share entities and relations, so many pairs are equal; the engine scores each once.
    pairs = [
        [prompt_text(row, relation, model), target_text(row, text, model)] for row, relation, texts in requests for text in texts
    ]
    scores = iter(Likelihood(model=model).run(pairs))
    results = []
    for _, _, texts in requests:
        readable = [(text, score) for text in texts if (score := next(scores)) is not None]
        results.append(ranked(readable, itemgetter(1), itemgetter(0)))
    return results


def fitted_editor(stage: str, digest: str | None) -> Model:
    """Return the editor that was fitted for a stage; raise `StageError` if none was."""
    if digest is None:
        raise StageError(f"{stage} has no editor: none is given, and none was fitted, as no row had causal terms")
    return stored_model(digest)


def learn_editor(examples: Sequence[Mapping[str, Any]], train: Callable[[list[Any]], str] | None) -> dict[str, Any]:
    """Describe for a fitted file the causal terms of rows, and the editor that `train` trains on them, if it is not None."""
    digest = train(list(examples)) if train is not None and examples else None
    # Another training of equal rows may give other weights.
    return {"terms": count_terms(examples), "editor": digest, "editor_contents": digest and stored_model(digest).key()}


def keep_readable(pairs: Mapping[str, list[Any]], hp: Hyperparameters, max_target: int) -> dict[str, list[Any]]:
    """Keep the pairs of `source` and `target` that fit the editor; log how many are left out, raise `ValueError` if all are."""
    tokenizer = load_tokenizer(hp.model)
    sources = tokenizer(pairs["source"])["input_ids"]
    # Tokenised as in `train_texts`.
    if two_sided(hp.model):
        targets = tokenizer(text_target=pairs["target"])["input_ids"]
    else:
        targets = tokenizer([f" {target}" for target in pairs["target"]], add_special_tokens=False)["input_ids"]
    lengths = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    fit = [i for i, (source, target) in enumerate(lengths) if source <= hp.max_length and target <= max_target]
    if not fit:
        raise ValueError(
            f"the editor can't be trained: each of its {len(sources)} pairs has a prompt of more than {hp.max_length} tokens or an "
            f"answer of more than {max_target}; raise editor_training.max_length or max_new_tokens"
        )
    if left := len(sources) - len(fit):
        log.warning(
            "%d of the editor's %d training pairs are left out: a prompt has more than %d tokens, or an answer more than %d",
            left, len(sources), hp.max_length, max_target,
        )  # fmt: skip
    return {name: [column[i] for i in fit] for name, column in pairs.items()}


def train_editor(rows: Sequence[Mapping[str, Any]], hp: Hyperparameters, *, max_target: int = 24) -> str:
    """Train the editor, once; returns its digest (`hfcf.training.model_cache.stored_model` names the model).

    Deviations: the loss is that of the answer alone, where the released code's is also of the template. An answer ends with one
    end of text, where the released code fills the 47 tokens with them. Pairs that are too long are left out, not cut.
    """
    pairs = {
        "source": [prompt_text(row, row["label"], hp.model) for row in rows],
        "target": [target_text(row, term(row), hp.model) for row in rows],
    }
    texts = keep_readable(pairs, hp, max_target)

    def train(out: Path) -> None:
        train_texts(Dataset.from_dict(texts), hp, out, max_target=max_target, prompt="{}", checkpoints=False)

    return train_once("editor 1", {**texts, "max_target": max_target}, hp, train)
