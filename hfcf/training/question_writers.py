"""Train RGF's models that write questions for answers, answers for passages, and the references of questions (QED)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import Model
from hfcf.engines.generator import load_tokenizer
from hfcf.engines.question_generator import AnswerGenerator, Decomposer, QuestionGenerator
from hfcf.metrics.scores.translation import bleu_chrf
from hfcf.tasks.qa import span_problem
from hfcf.text.normalise import normalise
from hfcf.text.questions import write_references
from hfcf.training.generator import train_texts
from hfcf.training.trainer import Hyperparameters

Row = Mapping[str, Any]


def _place(row: Row) -> tuple[int, int]:
    start = row["answers"]["answer_start"][0]
    return start, start + len(row["answers"]["text"][0])


def _ask_question(row: Row) -> list[Any]:
    return [row["title"] or "", row["context"], *_place(row)]


def _ask_answer(row: Row) -> list[Any]:
    return [row["title"] or "", row["context"]]


def _ask_references(row: Row) -> list[Any]:
    return [row["question"], row["title"] or "", row["context"], *_place(row)]


WRITERS: Mapping[str, tuple[type[QuestionGenerator], Callable[[Row], list[Any]], Callable[[Row], str]]] = {
    "question_generator": (QuestionGenerator, _ask_question, lambda row: row["question"]),
    "answer_generator": (AnswerGenerator, _ask_answer, lambda row: row["answers"]["text"][0]),
    "decomposer": (
        Decomposer, _ask_references, lambda row: write_references(row["question_references"], row["sentence_references"])
    ),
}  # fmt: skip
"""For each kind of model: its engine, the engine's request for a row, and the text that it learns to write."""


def writer_pairs(kind: str, rows: Dataset, model: Model, max_length: int) -> Dataset:
    """Make the pairs that a writer learns from; leave out rows without spans, and rows whose answer exceeds `max_length`."""
    engine, request, target = WRITERS[kind]
    kept = [row for row in rows if span_problem(row) is None]
    sources = engine(model=model, max_length=max_length).texts(load_tokenizer(model), [request(row) for row in kept])
    pairs = [(source, target(row)) for source, row in zip(sources, kept, strict=True) if source is not None]
    return Dataset.from_dict({"source": [source for source, _ in pairs], "target": [text for _, text in pairs]})


def train_writer(kind: str, rows: Dataset, hp: Hyperparameters, out: Path) -> None:
    """Train a model that writes and store it, or its adapter, in `out`; an interrupted run continues.

    Source: RGF, appendix A: T5-3B on Natural Questions, 20,000 steps at 2e-5 in batches of 128, 640 and 256 tokens.

    Args:
        kind: "question_generator" (title » passage with the answer marked → question), "answer_generator" (title » passage →
            answer) or "decomposer" (question » title » passage with the answer marked → references).
        rows: see `writer_pairs`.
        hp: how.
        out: a folder.

    Raises:
        ValueError: no row is left to train on.
    """
    pairs = writer_pairs(kind, rows, hp.model, hp.max_length)
    if not len(pairs):
        raise ValueError(f"there is nothing to train on: none of the {len(rows)} rows has an answer that is a span of its context")
    engine = WRITERS[kind][0]
    train_texts(pairs, hp, out, max_target=engine.max_new_tokens, prompt=engine.prompt)


def evaluate_writer(kind: str, rows: Dataset, model: Model, *, max_length: int) -> dict[str, Any]:
    """Score a writer on up to 100 held-out rows."""
    engine, request, target = WRITERS[kind]
    kept = [row for row in rows if span_problem(row) is None][:100]
    if not kept:
        return {"rows": 0}
    answers = engine(model=model, num_beams=4, num_return_sequences=1, max_length=max_length).run(list(map(request, kept)))
    texts, gold = [answer[0]["text"] if answer else "" for answer in answers], [target(row) for row in kept]
    exact = sum(normalise(text) == normalise(true) for text, true in zip(texts, gold, strict=True)) / len(kept)
    scores = {"rows": len(kept), **bleu_chrf(texts, gold), "exact": round(exact, 4)}
    if kind == "answer_generator":
        scores["spans"] = round(
            sum(bool(text) and text in row["context"] for text, row in zip(texts, kept, strict=True)) / len(kept), 4
        )
    return scores
