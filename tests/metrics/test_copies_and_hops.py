"""How much of a claim is one run of its evidence, and whether it combines pieces: by hand-made cases."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset
from made_rows import EVIDENCE, claim_row, evidence_row, relation_row
from made_rows import relation as relation_set
from made_rows import verification as verification_set

from hfcf.core.recipe import RecipeError
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import apply_edits, get_task
from hfcf.metrics import load
from hfcf.metrics.copy_rate import copy_rate, measure_copy_rate
from hfcf.metrics.multi_hop import measure_multi_hop, multi_hop
from hfcf.metrics.shared.measure import measure
from hfcf.metrics.shared.parsing import read_metrics
from hfcf.metrics.shared.summary import summaries


def copies(row: dict[str, Any], **settings: Any) -> Any:
    (score,) = measure_copy_rate(Dataset.from_list([row]), **settings)
    return score


def hops(row: dict[str, Any]) -> Any:
    (score,) = measure_multi_hop(Dataset.from_list([row]))
    return score


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
    assert found["copy_rate"][:] == [{"rate": 0.8, "copied": False, "source": 0.33333}, None, None]
    assert found["multi_hop"][:] == [{"combines": True, "source": False, "kept": None}, None, None]
    assert summaries(found)["multi_hop"]["after"]["combines"] == {"n": 1, "yes": 1, "null": 2, "share": 1.0}


def test_the_source_is_measured_with_its_own_evidence() -> None:
    """Claim and evidence were both changed: the source's claim is compared with what its evidence was."""
    before = {"claim": "Romulus built Rome on the Tiber.", "evidence": EVIDENCE}
    change = [
        {"field": "claim", "piece": -1, "start": 0, "end": 7, "before": "Romulus", "after": "Remus"},
        {"field": "evidence", "piece": 0, "start": 18, "end": 25, "before": "Romulus", "after": "Remus"},
    ]
    row = {**apply_edits(before, change), "edits": change}
    assert row["evidence"][0]["text"] == "Rome was built by Remus."
    # "on the Tiber" is the longest run: three of six words on both sides.
    assert copies(row) == {"rate": 0.5, "copied": False, "source": 0.5}
    assert hops(row) == {"combines": True, "source": True, "kept": True}


def test_shares_of_a_set_by_hand() -> None:
    """Of four claims, two are one piece word for word; of the three whose source combines pieces, one still does."""
    combined = "Romulus built Rome on the Tiber."
    rows = [
        claim_row(0, combined, "Rome was built by Romulus."),  # a copy
        claim_row(1, combined, "Remus built Rome on the Tiber."),
        claim_row(2, combined, "It lies on the Tiber."),  # a copy
        claim_row(3, "Rome was built by Remus.", "Rome was built on the Tiber."),  # the source has one piece alone
    ]
    told = summaries(measure(verification_set(*rows), ["copy_rate", "multi_hop", "minimality"]))
    assert told["copy_rate"]["after"]["copied"] == {"n": 4, "yes": 2, "share": 0.5}
    # 5/5, 3/6 (on the Tiber), 5/5, 3/6 (Rome was built; on the Tiber).
    assert told["copy_rate"]["after"]["rate"]["mean"] == 0.75
    # 3 of 6 three times, then 4 of 5.
    assert told["copy_rate"]["after"]["source"]["mean"] == 0.575
    assert told["multi_hop"]["after"]["combines"] == {"n": 4, "yes": 2, "share": 0.5}
    assert told["multi_hop"]["after"]["source"] == {"n": 4, "yes": 3, "share": 0.75}
    assert told["multi_hop"]["after"]["kept"] == {"n": 3, "yes": 1, "null": 1, "share": 0.33333}
    # romulus built rome of six; built rome on the tiber; on the tiber; rome was built of five.
    assert told["minimality"]["after"]["kept"]["mean"] == round((3 / 6 + 5 / 6 + 3 / 6 + 3 / 5) / 4, 5)


def test_one_piece_is_combined_by_nobody_and_a_set_without_rows_has_no_shares() -> None:
    alone = {**claim_row(0, "Rome is old.", "Rome was built by Remus."), "evidence": EVIDENCE[:1]}
    assert hops(alone) == {"combines": False, "source": False, "kept": None}
    told = summaries(measure(verification_set(alone), ["multi_hop"]))["multi_hop"]["after"]
    assert told["kept"] == {"n": 0, "yes": 0, "null": 1, "share": None}
    nothing = summaries(measure(verification_set(alone).select([]), ["copy_rate", "multi_hop", "minimality"]))
    assert nothing["copy_rate"]["after"] == {"rate": {"n": 0}, "copied": {"n": 0, "yes": 0, "share": None}, "source": {"n": 0}}
    assert nothing["minimality"]["after"]["kept"] == {"n": 0}


@pytest.mark.parametrize(("limit", "copied"), [(0.8, False), (0.79, True)])
def test_four_of_five_words_are_not_over_the_limit(limit: float, copied: bool) -> None:
    row = claim_row(0, "Rome is old.", "Romulus lies on the Tiber.")
    assert copies(row, limit=limit) == {"rate": 0.8, "copied": copied, "source": 0.33333}


def test_edits_that_lead_to_no_source_are_rejected() -> None:
    row = {**claim_row(0, "Rome is old.", "Rome is new."), "claim": "Somebody wrote this."}
    for score in (copies(row), hops(row)):
        assert isinstance(score, Reject)
        assert "do not lead back to a source" in score.reason


def test_a_title_counts_as_part_of_its_piece() -> None:
    edits = claim_row(0, "A river.", "The Tiber is a river of Italy.")["edits"]
    pieces = [{"title": "Tiber", "text": "A river of Italy."}, {"title": None, "text": "A town."}]
    row: dict[str, Any] = {"claim": "The Tiber is a river of Italy.", "evidence": pieces, "edits": edits}
    assert hops(row)["combines"] is False
    assert copies(row) == {"rate": 0.57143, "copied": False, "source": 1.0}


def test_structures_have_pieces_and_their_structure_is_none() -> None:
    task = get_task("structures")
    assert task.pieces == "evidence"
    edits = claim_row(0, "Yeast helps.", "Yeast makes dough rise.")["edits"]
    texts = {"claim": "Yeast makes dough rise.", "evidence": EVIDENCE, "edits": edits}
    structure = [{"premises": ["s1"], "conclusion": "Yeast makes dough rise."}]
    row: dict[str, Any] = {**task.empty_row, **texts, "structure": structure}
    assert copies(row) == {"rate": 0.0, "copied": False, "source": 0.0}


@pytest.mark.parametrize("name", ["copy_rate", "multi_hop"])
def test_tasks_without_pieces_are_refused_and_measured_by_the_others(name: str) -> None:
    with pytest.raises(StageError, match=name):
        measure(relation_set(relation_row(0)), [name])
    for task in ("relation", "qa"):
        assert name not in read_metrics(None, task)
    assert name in read_metrics(None, "verification")
    with pytest.raises(RecipeError, match=f"metrics: {name}.*'share'"):
        measure(Dataset.from_list([claim_row(0, "a", "b")]), {name: {"share": 1}})


def test_over_lists() -> None:
    given = {"predictions": ["Jaws in Ohio", "Steven Spielberg"], "references": [[JAWS, SPIELBERG], [JAWS]]}
    hops = load("multi_hop").compute(**given)
    assert (hops["combines"], hops["source"], [score["combines"] for score in hops["scores"]]) == (0.5, None, [True, False])
    copies = load("copy_rate").compute(**given)
    assert (copies["rate"], copies["copied"], copies["source"]) == (pytest.approx(2 / 3, abs=1e-4), 0.5, None)
    assert [score["rate"] for score in copies["scores"]] == [0.33333, 1.0]
