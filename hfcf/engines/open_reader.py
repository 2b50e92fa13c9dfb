"""Open-domain question answering: a retriever finds passages for a question, and a reader answers from them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from hfcf.core.decisions import ranked
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.settings import Weight
from hfcf.engines.classifier import ROUND
from hfcf.engines.reader import Reader
from hfcf.engines.retriever import Retriever

FILE = "open_domain.json"
"""The file that describes the retriever of a trained reader; a reader without it answers from the passage of the row."""
ENCODER = "question_encoder"
"""The subfolder of the question encoder that was trained with the reader."""


@dataclass(frozen=True, kw_only=True)
class OpenReader:
    """Answers to questions from a collection of passages.

    An answer has the keys of `Reader`, the id of its `passage`, and the `title`. Its probability is p(c|q) · p(a|q, c): the softmax
    of the retriever's scores over the passages of the question, times the reader's probability. Each passage gives as many answers
    as the reader's `n_best`; all answers are sorted together, the likeliest first. A question for which the retriever finds no
    passage has no answers.

    Source: Guu et al. 2020, REALM, which RGF fine-tunes (section 5.3, appendix A). As in Lee et al. 2019, ORQA, the answer is the
        likeliest single span. The probabilities of the same text in several passages are not added.

    Args:
        reader: reads each passage by itself.
        retriever: finds the passages.
        scale: the retriever's scores are multiplied by it before the softmax.
    """

    reader: Reader
    retriever: Retriever
    scale: Weight = 1.0

    def run(self, questions: Sequence[str]) -> list[list[dict[str, Any]]]:
        """Answer every question, in order."""
        return self.read_hits(questions, self.retriever.run(questions))

    def read_hits(self, questions: Sequence[str], hits: Sequence[Sequence[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        """Answer questions from the passages that the retriever found for each."""
        requests = [[question, hit["text"], hit["title"]] for question, found in zip(questions, hits, strict=True) for hit in found]
        answers = iter(self.reader.run(requests))
        return [
            ranked(
                (
                    _joint(answer, hit, prior)
                    for hit, prior in zip(found, priors([hit["score"] for hit in found], self.scale), strict=True)
                    for answer in next(answers)
                ),
                itemgetter("score"),
                itemgetter("text", "passage"),
            )
            for found in hits
        ]


def _joint(answer: dict[str, Any], hit: dict[str, Any], prior: float) -> dict[str, Any]:
    score = round(answer["score"] + prior, ROUND)
    where = {"passage": hit["id"], "title": hit["title"]}
    return {**answer, "score": score, "probability": round(math.exp(score), ROUND), **where}


def priors(scores: Sequence[float], scale: float) -> list[float]:
    """Return log p(c|q) of each passage: the log-softmax of the retriever's scores."""
    if not scores:
        return []
    scaled = [scale * score for score in scores]
    total = max(scaled) + math.log(sum(math.exp(score - max(scaled)) for score in scaled))
    return [score - total for score in scaled]


def store_retriever(folder: Path, retriever: Retriever, scale: float, about: dict[str, Any]) -> None:
    """Record which retriever a reader in a folder was trained with."""
    content = {"scale": scale, "retriever": asdict(retriever), "training": about}
    (folder / FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def stored_open_reader(model: Model, max_length: int) -> OpenReader | None:
    """Return the open-domain reader that a trained model is; None for a reader that answers from the passage of a row."""
    folder = Path(model.adapter_source() or model.source())
    if not (folder / FILE).is_file():
        return None
    content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    settings = content["retriever"]
    for name in ("model", "passage_model"):
        settings[name] = Model(**settings[name]) if settings[name] else None
    retriever = Retriever(**{**settings, "passages": Passages(**settings["passages"])})
    if (folder / ENCODER).is_dir():
        # The index is that of the passages' own encoder, which was not trained.
        trained = Model(str(folder / ENCODER), dtype=retriever.encoder().model.dtype)
        retriever = replace(retriever, model=trained, passage_model=retriever.passage_model or retriever.model)
    return OpenReader(reader=Reader(model=model, max_length=max_length, n_best=1), retriever=retriever, scale=content["scale"])
