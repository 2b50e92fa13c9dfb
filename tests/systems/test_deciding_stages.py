"""Every stage that compares a model's scores decides alike in every batch, at every threshold between two scores.

The models are played: the score of a text is that of the text alone, and a batch moves its last digits, as padding does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from thresholds import differing

from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.engines import reader
from hfcf.engines.base import Encoded, Engine
from hfcf.engines.classifier import Classifier
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.question_generator import QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.metrics.shared.moverscore import MoverScore
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.ccg import candidate_checks
from hfcf.systems.ccg.candidate_checks import CheckRelation
from hfcf.systems.race.filter_claim import FilterClaim
from hfcf.systems.race.generate_claim import GenerateClaim
from hfcf.systems.rgf.generate_question import GenerateQuestion
from hfcf.systems.rgf.retrieve import Read
from hfcf.systems.rgf.round_trip import RoundTrip
from hfcf.tasks.verification import LABELS, candidate

NOISE = 8e-6
ROWS = 8
RELATIONS = ("Cause-Effect(e1,e2)", "Message-Topic(e1,e2)", "Other")


def share(*parts: Any) -> float:
    """A number from 0 to 1 for each text."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 16**8


def labels(names: Sequence[str], request: Any, noise: float) -> dict[str, float]:
    # The last label has what the others leave; many scores lie near ½, where the choice is narrow.
    first = 0.5 + 0.02 * (share(request, "p") - 0.5) if share(request) < 0.3 else share(request, "p")
    return {names[0]: round(first + noise, 5), names[1]: round(1 - first - noise, 5), names[2]: 0.0}


def span(request: Any, noise: float) -> list[dict[str, Any]]:
    context, p = request[1], share(request, "p") + noise
    text = context.split()[int(3 * share(request, "word"))]
    start = context.index(text)
    none = round(share(request, "none"), 5)
    scores = {"score": math.log(p), "probability": round(p, 5), "no_answer": none}
    return [{"text": text, "start": start, "end": start + len(text), **scores}]


def hypotheses(request: Any, noise: float) -> list[dict[str, Any]]:
    return [{"text": f"{word} tells of {share(request):.4f}", "score": round(-share(request, word) + noise, 5), "finished": True}
            for word in ("Ann", "Bob")]  # fmt: skip


PLAYED: dict[type[Engine], Callable[[Any, float], Any]] = {
    Classifier: lambda request, noise: labels(LABELS, request, noise),
    RelationClassifier: lambda request, noise: labels(RELATIONS, request, noise),
    Perplexity: lambda request, noise: 100 * (0.9 + 0.2 * share(request)) * (1 + noise),
    MoverScore: lambda request, noise: share(request) + noise,
    Reader: span,
    Generator: hypotheses,
    QuestionGenerator: hypotheses,
}


def forward(self: Engine, loaded: Any, encoded: Sequence[Encoded]) -> list[Any]:
    answers = []
    for item in encoded:
        noise = 0.0 if len(encoded) == 1 else NOISE * (1 if share(item.extra, len(encoded)) < 0.5 else -1)
        answers.append(PLAYED[type(self)](item.extra, noise))
    return answers


@pytest.fixture(autouse=True)
def players(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in PLAYED:
        monkeypatch.setattr(engine, "settings", lambda self: {"model": type(self).__name__})
        monkeypatch.setattr(engine, "dtype", lambda self: torch.float32)
        monkeypatch.setattr(engine, "load", lambda self, device: None)
        monkeypatch.setattr(
            engine, "encode", lambda self, loaded, requests: [Encoded({"input_ids": [0] * 10}, one) for one in requests]
        )
        monkeypatch.setattr(engine, "batches", Engine.batches)
        monkeypatch.setattr(engine, "forward", forward)
    monkeypatch.setattr(reader, "two_sided", lambda model: False)
    monkeypatch.setattr(Ner, "run", lambda self, texts: [[] for _ in texts])
    monkeypatch.setattr(candidate_checks, "requests", lambda rows, indicator: [[row["tokens"]] for row in rows])


MODEL = Model("any")


def claims() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in range(ROWS):
        pieces = [{"title": "T", "text": f"Ann wrote it in {1900 + i}."}]
        source, new = f"Ann wrote book {i}.", [f"Bob wrote book {i}.", f"Eve wrote book {i}."]
        rows.append(
            {
                "id": str(i), "group_id": str(i), "corpus": "", "split": "", "claim": source, "evidence": pieces,
                "label": LABELS[0],
                "entities": [], "edits": [], "edited_evidence": pieces, "edited_entities": [],
                "sentence_rationales": [{"piece": 0, "score": None}], "status": None,
                "candidates": [candidate(text, LABELS[i % 2], "claim", []) for text in new],
            }
        )  # fmt: skip
        for made in rows[-1]["candidates"]:
            edit = {"field": "claim", "piece": -1, "start": 0, "end": 3, "before": "Ann", "after": made["claim"][:3]}
            made["edits"] = [edit]
    return rows


def relations() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in range(ROWS):
        tokens = ["rain", "caused", f"flood{i}"]
        edit = {"field": "tokens", "piece": -1, "start": 1, "end": 2, "before": "caused", "after": "follows"}
        new = {"text": f"rain follows flood{i}", "label": RELATIONS[0], "change": "relation", "edits": [edit], "scores": []}
        row = {"id": str(i), "tokens": tokens, "head": {"start": 0, "end": 1, "type": None}, "label": RELATIONS[2]}
        rows.append({**row, "tail": {"start": 2, "end": 3, "type": None}, "candidates": [{**new, "status": None}]})
    return rows


def questions() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in range(ROWS):
        passages: list[dict[str, Any]] = [
            {"id": f"{i}-{n}", "title": "", "text": f"Ann{n} Bob{n} Eve{n} met in {i}.", "score": 1.0, "rank": n + 1}
            for n in range(3)
        ]
        answers = {"text": ["Bob0"], "answer_start": [passages[0]["text"].index("Bob0")]}
        asked = {
            "title": "", "context": passages[0]["text"], "question": f"Who met whom in {i}?", "answers": answers, "change": None,
            "edits": [], "scores": [{"name": "retrieval rank", "value": 1.0}], "status": None,
        }  # fmt: skip
        row = {"id": str(i), "question": f"Who was there {i}?", "answers": {"text": ["Zoe"], "answer_start": [0]}}
        rows.append({**row, "passages": passages, "aliases": None, "candidates": [asked]})
    return rows


def share_of(threshold: float) -> float:
    return min(1.0, max(0.0, threshold))


SEARCH: dict[str, Any] = {"generator": MODEL, "num_beams": 2}
STAGES: dict[str, tuple[Callable[[float], Stage], Callable[[], list[dict[str, Any]]], float]] = {
    "certainty": (lambda t: JudgeCandidates(verifier=MODEL, certainty=share_of(t)), claims, 0.0),
    "certainty of judges": (
        lambda t: JudgeCandidates(verifier=Model("sure"), judges=(MODEL,), certainty=share_of(t)), claims, 0.0,
    ),
    "perplexity ratio": (lambda t: FilterClaim(fluency_model=MODEL, max_perplexity_ratio=max(t, 0.01)), claims, 1.0),
    "indicator": (
        lambda t: CheckRelation(consistency=True, indicator=MODEL, min_probability=share_of(t)), relations, 0.0,
    ),
    "loss of fluency": (lambda t: CheckRelation(language_model=MODEL, max_loss=max(t, 1e-3)), relations, 1.0),
    "claims": (
        lambda t: GenerateClaim(**SEARCH, num_candidates=2, constrain=False, min_log_probability=-abs(t)), claims, -1.0,
    ),
    "questions": (lambda t: GenerateQuestion(**SEARCH, questions=2, min_log_probability=-abs(t)), questions, -1.0),
    "answers": (lambda t: Read(reader=MODEL, min_probability=share_of(t)), questions, 0.0),
    "no answer": (lambda t: Read(reader=MODEL, no_answer_margin=t), questions, 0.0),
    "no answer, negative": (lambda t: Read(reader=MODEL, no_answer_margin=-t), questions, 0.0),
    "vote": (lambda t: RoundTrip(readers=(MODEL,), agree=1, keep=None, min_vote=share_of(t)), questions, 0.0),
    "elsewhere": (lambda t: RoundTrip(readers=(MODEL,), agree=1, keep=None, elsewhere=t), questions, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_decides_alike_in_every_batch_at_every_threshold_between_two_scores(name: str, cache: Path) -> None:
    make, rows, start = STAGES[name]
    thresholds, wrong = differing(make, rows(), cache, start)
    assert len(thresholds) > 3
    assert wrong == []


def test_the_played_batches_would_split_a_decision_that_trusts_them(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfcf.tasks.ensemble.settled", lambda ask, requests, _: ask(requests))
    make, rows, start = STAGES["certainty"]
    assert differing(make, rows(), cache, start)[1]
