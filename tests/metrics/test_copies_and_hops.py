"""How much of a claim is one run of its evidence, and whether it combines pieces: by hand-made cases."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset
from made_rows import EVIDENCE, claim_row, evidence_row, relation_row
from made_rows import relation as relation_set
from made_rows import verification as verification_set

from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.metrics import load
from hfcf.metrics.copy_rate import MeasureCopyRate, copy_rate
from hfcf.metrics.multi_hop import MeasureMultiHop, multi_hop
from hfcf.metrics.shared.measure import measure
from hfcf.metrics.shared.parsing import read_metrics
from hfcf.metrics.shared.summary import summaries

JAWS = "Jaws: Jaws is a 1975 American thriller film directed by Steven Spielberg."
SPIELBERG = "Steven Spielberg: He was born in Cincinnati, Ohio, in 1946."


@pytest.mark.parametrize(
    ("claim", "texts", "rate"),
    [
        ("Jaws is a film.", ["Jaws is a film."], 1.0),
        ("JAWS, is a film", ["“Jaws” is a film !"], 1.0),  # case and punctuation are no words
        ("Beyoncé's song (2003) is old.", ["Beyonce song -LRB- 2003 -RRB- is old"], 1.0),  # nor are names of brackets
        ("A man is old.", ["Rome is old, a man."], 0.5),  # the longest of two runs
        ("Jaws is old.", ["Jaws is", "old and grey"], 0.66667),  # a run ends where its piece does
        ("Nothing here.", ["Rome lies on the Tiber."], 0.0),
        ("Rome.", [], 0.0),
        ("...", ["..."], None),
    ],
)
def test_copy_rate_by_hand(claim: str, texts: list[str], rate: float | None) -> None:
    assert copy_rate(claim, texts) == rate


@pytest.mark.parametrize(
    ("claim", "pieces", "expected"),
    [
        ("The film Jaws was directed by a man born in Ohio.", [JAWS, SPIELBERG], True),
        ("Jaws is a thriller directed by Steven Spielberg.", [JAWS, SPIELBERG], False),  # one piece has it all
        ("Steven Spielberg was born in 1946.", [JAWS, SPIELBERG], False),  # a name that both have makes no hop
        ("Jaws was the first of all films in Paris.", [JAWS, SPIELBERG], False),  # what stands nowhere does not count
        ("Jaws in Ohio", [JAWS], False),
        ("Jaws in Ohio", [JAWS, "", SPIELBERG], True),
        ("It is in the and of.", [JAWS, "It is in the and of."], None),  # function words alone
    ],
)
def test_multi_hop_by_hand(claim: str, pieces: list[str], expected: bool | None) -> None:
    assert multi_hop(claim, pieces) is expected


def test_only_a_new_claim_is_measured() -> None:
    """A counterfactual of the evidence has its source's claim, which nobody wrote for it."""
    rows = [claim_row(0, "Rome is old.", "Romulus lies on the Tiber."), evidence_row(1), {**claim_row(2, "a", "b"), "edits": None}]
    found = measure(verification_set(*rows), ["copy_rate", "multi_hop"])
    assert found["copy_rate"][:] == [0.8, None, None]
    assert found["multi_hop"][:] == [True, None, None]
    assert summaries(found)["multi_hop"]["after"] == {"n": 1, "yes": 1, "null": 2, "share": 1.0}


def test_a_title_counts_as_part_of_its_piece() -> None:
    edits = claim_row(0, "x", "y")["edits"]
    pieces = [{"title": "Tiber", "text": "A river of Italy."}, {"title": None, "text": "A town."}]
    row: dict[str, Any] = {"claim": "The Tiber is a river of Italy.", "evidence": pieces, "edits": edits}
    assert MeasureMultiHop().row(row) == {"multi_hop": False}
    assert MeasureCopyRate().row(row) == {"copy_rate": 0.57143}


def test_structures_have_pieces_and_their_structure_is_none() -> None:
    task = get_task("structures")
    assert task.pieces == "evidence"
    texts = {"claim": "Yeast makes dough rise.", "evidence": EVIDENCE, "edits": claim_row(0, "x", "y")["edits"]}
    structure = [{"premises": ["s1"], "conclusion": "Yeast makes dough rise."}]
    row: dict[str, Any] = {**task.empty_row, **texts, "structure": structure}
    assert MeasureCopyRate(task="structures").row(row) == {"copy_rate": 0.0}


@pytest.mark.parametrize("name", ["copy_rate", "multi_hop"])
def test_tasks_without_pieces_are_refused_and_measured_by_the_others(name: str) -> None:
    with pytest.raises(StageError, match=f"measure_{name}.*relation rows: they list none"):
        measure(relation_set(relation_row(0)), [name])
    for task in ("relation", "qa"):
        assert name not in read_metrics(None, task)
    assert name in read_metrics(None, "verification")
    with pytest.raises(RecipeError, match=f"metrics: {name}.*'share'"):
        measure(Dataset.from_list([claim_row(0, "a", "b")]), {name: {"share": 1}})


def test_over_lists() -> None:
    given = {"predictions": ["Jaws in Ohio", "Steven Spielberg"], "references": [[JAWS, SPIELBERG], [JAWS]]}
    assert load("multi_hop").compute(**given) == {"multi_hop": 0.5, "scores": [True, False]}
    assert load("copy_rate").compute(**given) == {"copy_rate": pytest.approx(2 / 3, abs=1e-4), "scores": [0.33333, 1.0]}
