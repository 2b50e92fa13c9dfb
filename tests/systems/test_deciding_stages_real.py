"""What `test_deciding_stages` plays, with the models of the offline presets on 300 real rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from offline_models import installed
from thresholds import differing

import hfcf
from hfcf.core.edits import rewrite
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.ccg.candidate_checks import CheckRelation
from hfcf.systems.race.system import RACE
from hfcf.systems.rgf.system import RGF
from hfcf.tasks.relation import candidate as relation_candidate
from hfcf.tasks.relation import token_edits
from hfcf.tasks.verification import candidate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif("HFCF_DATA" not in os.environ, reason="HFCF_DATA, the folder of the real release files, is not set"),
    pytest.mark.skipif(not installed("minilm"), reason="the offline models are not installed"),
]
DATA = Path(os.environ.get("HFCF_DATA", ""))
ROWS = 300
Row = dict[str, Any]


def claims() -> list[Row]:
    """Pairs of VitaminC, each with the claim of the next as its candidate."""
    rows = hfcf.load("vitaminc", data_dir=DATA / "vitaminc" / "vitaminc_real", split="test").select(range(ROWS + 1)).to_list()
    for row, other in pairwise(rows):
        edited = rewrite("claim", row["claim"], other["claim"])
        row["candidates"] = [candidate(other["claim"], other["label"], "claim", edited)]
        row |= {"entities": [], "edits": []}
    return rows[:ROWS]


def evidence() -> list[Row]:
    return claims()[:40]


def relations() -> list[Row]:
    """Sentences of SemEval without the word before the second entity."""
    folder = DATA / "semeval2010_task8"
    rows: list[Row] = []
    for row in hfcf.load("semeval", data_dir=folder, split="train").to_list():
        if row["tail"]["start"] - row["head"]["end"] > 1 and len(rows) < ROWS:
            edited = token_edits(row["tokens"], [row["tail"]["start"] - 1], "of")
            rows.append({**row, "candidates": [relation_candidate(row, "Other", edited)]})
    return rows


def questions() -> list[Row]:
    """Questions of XQuAD, each with its own passage."""
    rows = hfcf.load("xquad", data_dir=DATA / "xquad_en", split="validation").select(range(ROWS)).to_list()
    gold = {"text": ["nothing of it"], "answer_start": [0]}
    for row in rows:
        passage = {"id": row["id"], "title": row["title"], "text": row["context"], "score": 1.0, "rank": 1}
        row |= {"passages": [passage], "aliases": None, "answers": gold}
    return rows


def share_of(threshold: float) -> float:
    return min(1.0, max(0.0, threshold))


SURE = RACE.preset("offline")
VERIFIER: Model = SURE.check_claim.verifier
STAGES: dict[str, tuple[Callable[[float], Stage], Callable[[], list[Row]], float]] = {
    "certainty": (lambda t: JudgeCandidates(verifier=VERIFIER, certainty=share_of(t), max_length=160), claims, 0.0),
    "certainty of judges": (
        lambda t: JudgeCandidates(
            verifier=VERIFIER, judges=SURE.check_claim.judges, certainty=share_of(t), max_length=160
        ), claims, 0.0,
    ),
    "perplexity ratio": (
        lambda t: replace(SURE.filter_claim, max_perplexity_ratio=max(t, 0.01), max_copied=None, min_kept=None), claims, 1.0,
    ),
    "loss of fluency": (
        lambda t: CheckRelation(language_model=Model("offline:smollm2"), max_loss=max(t, 1e-3)), relations, 1.0,
    ),
    "answers": (lambda t: replace(RGF.preset("offline").read, min_probability=share_of(t), no_answer_margin=None), questions, 0.0),
    "no answer": (lambda t: replace(RGF.preset("offline").read, no_answer_margin=t), questions, 0.0),
    "attribution": (lambda t: replace(SURE.explain, token_share=share_of(t), sentence_share=share_of(t)), evidence, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGES)
def test_real_rows_are_decided_alike_in_every_batch_at_every_threshold_between_two_scores(name: str, cache: Path) -> None:
    make, rows, start = STAGES[name]
    thresholds, wrong = differing(make, rows(), cache, start)
    print(f"{name}: {len(thresholds)} thresholds")
    assert len(thresholds) > 20
    assert wrong == []
