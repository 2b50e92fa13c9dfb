"""Train readers: extractive readers, which find spans of a passage, and encoder-decoders, which write answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, Features, List, Value, concatenate_datasets

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer, read_weights
from hfcf.engines.generator import load_tokenizer, two_sided
from hfcf.engines.networks import load_network
from hfcf.engines.reader import Reader, encode_windows, written_windows
from hfcf.tasks.qa import span_problem
from hfcf.text.phrase_match import find_answer
from hfcf.training.generator import train_texts
from hfcf.training.trainer import Hyperparameters, fit
from hfcf.training.unanswered import unanswered

log = logging.getLogger(__name__)
STRIDE = Reader.stride
TASK_TYPE = "QUESTION_ANS"
"""PEFT's name for extractive question answering."""


def train_reader(rows: Dataset, hp: Hyperparameters, out: Path, *, unanswerable: float = 0.0) -> None:
    """Train a reader and store it, or its adapter, in `out`; an interrupted run continues.

    An encoder (BERT, RoBERTa …) learns where the answer begins and ends in each window of its passage. In a window without the
    answer, and in a row without any, as in SQuAD 2.0, it learns to point at the first token. An encoder-decoder (T5) learns to
    write `question » title » passage` → answer, as the paper's readers do (RGF, appendix A). It reads the window with the answer
    of a long passage. Both learn the first answer of a row; the other answers are alternatives.

    Args:
        rows: question answering rows. An encoder leaves out rows whose answers are no spans of the context ("yes"), an
            encoder-decoder those without an answer; a warning says how many.
        hp: how. The training of a model with an adapter continues from the adapter; with `tune="lowrank"` the change from the model
            without the adapter is stored.
        unanswerable: the share of an encoder's questions to repeat on passages that do not answer them (0–1), see `unanswered`.

    Raises:
        ValueError: no row is left to train on, or `unanswerable` with an encoder-decoder, which always writes an answer.
    """
    if two_sided(hp.model):
        if unanswerable:
            raise ValueError(f"unanswerable must be 0 for {hp.model.name}, which always writes an answer: leave it out")
        kept = usable(rows, hp.model)
        tokenizer = load_tokenizer(hp.model)
        columns = zip(kept["question"], kept["context"], kept["title"], kept["answers"], strict=True)
        targets = [answers["text"][0] for answers in kept["answers"]]
        sources = [
            _window(written_windows(tokenizer, [question, context or "", title or ""], hp.max_length, STRIDE), answers)
            for question, context, title, answers in columns
        ]
        train_texts(Dataset.from_dict({"source": sources, "target": targets}), hp, out, max_target=Reader.max_answer)
        return
    from transformers import DataCollatorWithPadding

    rows = usable(rows, hp.model)
    answered, without = (
        rows.select([i for i, answers in enumerate(rows["answers"]) if bool(answers["text"]) is has]) for has in (True, False)
    )
    made = [unanswered(answered, unanswerable, seed=hp.seed)] if unanswerable else []
    kept = concatenate_datasets([answered, without, *made])
    start = load_start(hp)
    encoded = encode_spans(kept, start.tokenizer, hp.max_length)
    fit(
        start.network, start.tokenizer, encoded, hp, collator=DataCollatorWithPadding(start.tokenizer), task_type=TASK_TYPE,
        head=start.head, out=out, base=start.base,
    )  # fmt: skip


def _window(windows: Sequence[tuple[int, str, str]], answers: Mapping[str, Any]) -> str:
    """Return the input whose window holds the first answer, at its place if it has a place; else the first input."""
    answer, start = answers["text"][0], next(iter(answers["answer_start"] or []), -1)
    for first, part, text in windows:
        if start - first >= 0 and part.startswith(answer, start - first):
            return text
    return next((text for _, part, text in windows if find_answer(answer, part)[1] >= 0), windows[0][2])


class Start(NamedTuple):
    """An extractive reader before its training; `base` has the tensors of the model without its adapter, if there is an adapter."""

    network: Any
    tokenizer: Any
    head: tuple[str, ...]
    base: Mapping[str, Any] | None


def load_start(hp: Hyperparameters) -> Start:
    """Load the extractive reader that a training starts from."""
    from transformers import AutoModelForQuestionAnswering, set_seed

    set_seed(hp.seed)  # the new head's weights too
    tokenizer = read_tokenizer(hp.model)
    network, loading = read_weights(AutoModelForQuestionAnswering, hp.model, output_loading_info=True)
    head = tuple(sorted({name.rpartition(".")[0] for name in loading["missing_keys"]}))
    base = None
    if hp.model.adapter:
        if hp.tune == "lora":
            raise ValueError("tune='lora': a training that starts from an adapter stores all weights or tune='lowrank'")
        base = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        network = load_network(AutoModelForQuestionAnswering, hp.model, network.dtype)
    return Start(network, tokenizer, head, base)


def usable(rows: Dataset, model: Model) -> Dataset:
    """Return the rows that a reader can learn from, see `train_reader`; a warning says how many are left out.

    Raises:
        ValueError: none has an answer that it can learn.
    """
    if two_sided(model):
        what, answered = "an answer", [i for i, answers in enumerate(rows["answers"]) if answers["text"]]
        without = []
    else:
        what, answered = "an answer that is a span of the context", [i for i, row in enumerate(rows) if span_problem(row) is None]
        without = [i for i, row in enumerate(rows) if row["context"] and not row["answers"]["text"]]
    if not answered:
        raise ValueError(f"there is nothing to train on: none of the {len(rows)} rows has {what}")
    if left_out := len(rows) - len(answered) - len(without):
        log.warning("%d of %d rows are not trained on: they do not have %s", left_out, len(rows), what)
    return rows.select(sorted(answered + without))


def encode_spans(rows: Dataset, tokenizer: Any, max_length: int) -> Dataset:
    """Tokenise rows in windows, each with the first and last token of the first answer: 0 and 0 where it has none."""

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        requests = list(zip(batch["question"], batch["context"], strict=True))
        columns: dict[str, list[Any]] = {"start_positions": [], "end_positions": []}
        for windows, answers in zip(encode_windows(tokenizer, requests, max_length, STRIDE), batch["answers"], strict=True):
            start, text = answers["answer_start"][:1], answers["text"][:1]
            for features, places in windows:
                first, last = tokens_of(places, start[0], start[0] + len(text[0])) if start else (0, 0)
                columns["start_positions"].append(first)
                columns["end_positions"].append(last)
                for name, values in features.items():
                    columns.setdefault(name, []).append(values)
        return columns

    names = [name for name in tokenizer.model_input_names if name != "attention_mask"]
    features = {"start_positions": Value("int64"), "end_positions": Value("int64"), **dict.fromkeys(names, List(Value("int64")))}
    return rows.map(encode, batched=True, remove_columns=rows.column_names, desc="tokenise", features=Features(features))


def tokens_of(places: Sequence[tuple[int, int] | None], start: int, end: int) -> tuple[int, int]:
    """Return the first and last token of the words that a span touches; 0 and 0 unless the whole span is in the window."""
    inside = [i for i, place in enumerate(places) if place is not None and place[0] < end and start < place[1]]
    covered = [place for i in inside if (place := places[i]) is not None]
    if not inside or min(first for first, _ in covered) > start or max(last for _, last in covered) < end:
        return 0, 0
    return inside[0], inside[-1]
