"""Counterfactuals that two sources have in common are kept once, and nothing is lost without a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from datasets import Dataset

import hfcf
from hfcf.core.dedup import find_duplicates
from hfcf.core.edits import rewrite
from hfcf.core.funnel import funnel
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.verification import CANDIDATES, TASK, candidate

CLAIMS = {
    "a": ["Rome is old."],
    "b": ["rome is OLD", "Rome is big."],
    "c": ["Rome is old!"],
    "d": ["Rome is new.", "Rome is new ."],
}


@dataclass(frozen=True, kw_only=True)
class Write(Stage):
    """Writes the claims of `CLAIMS`; a row's evidence is that of its group."""

    inputs: ClassVar = TASK.columns
    outputs: ClassVar = {"candidates": CANDIDATES}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        source = row["id"].partition("-")[0]
        claims = CLAIMS[source]
        return {"candidates": [candidate(text, "REFUTES", "claim", rewrite("claim", row["claim"], text)) for text in claims]}


class Twice(System):
    task = "verification"
    chain = (Write, JudgeCandidates)
    defaults: ClassVar = {"unique": True}


def rows(*ids: str, evidence: str = "It is so.") -> Dataset:
    common = {"corpus": "made", "split": "train", "label": "SUPPORTS", "evidence": [{"title": "", "text": evidence}]}
    return Dataset.from_list([{"id": one, "group_id": one, "claim": f"The claim of {one}.", **common} for one in ids])


def kept(ds: Dataset) -> list[tuple[str, str]]:
    return [(row["source_id"], row["claim"]) for row in hfcf.expand(ds)]


def test_the_first_of_equal_counterfactuals_is_kept() -> None:
    ds = Twice()(rows(*CLAIMS))
    assert kept(ds) == [("a", "Rome is old."), ("b", "Rome is big."), ("d", "Rome is new."), ("d", "Rome is new .")]
    lost = {(row["source_id"], row["level"]): row for row in hfcf.rejected(ds)}
    assert set(lost) == {("b", "candidate"), ("c", "candidate"), ("c", "row")}
    assert lost["b", "candidate"]["reason"] == lost["c", "candidate"]["reason"] == "the same counterfactual as that of row a"
    assert {row["stage"] for row in lost.values()} == {"judge_candidates"}
    assert [status["accepted"] for status in ds["status"]] == [True, True, False, True]
    assert ds["status"][2]["reason"].startswith("no candidate is left of 1: the same counterfactual")
    assert ds.features == Twice(unique=False)(rows(*CLAIMS)).features


def test_the_funnel_counts_them() -> None:
    last = funnel(Twice()(rows(*CLAIMS)), list(Twice.parts))[-1]
    assert (last["rows_in"], last["rows_out"], last["candidates_rejected"]) == (4, 3, 2)
    assert last["candidate_reasons"] == {"the same counterfactual as that of row N": 2}


def test_the_funnel_has_one_reason_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLAIMS, "e", ["Rome is big."])
    last = funnel(Twice()(rows("b", "a", "e")), list(Twice.parts))[-1]
    assert last["candidate_reasons"] == {"the same counterfactual as that of row N": 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [("It costs 1.5 million.", "It costs 15 million."), ("वह लड़का है।", "वह लड़की है।"), ("はしが好きだ。", "ばしが好きだ。")],
)
def test_other_numbers_and_other_words_of_other_languages_are_no_twins(
    one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CLAIMS, "a", [one])
    monkeypatch.setitem(CLAIMS, "b", [other])
    assert kept(Twice()(rows("a", "b"))) == [("a", one), ("b", other)]


def test_without_the_setting_all_stay() -> None:
    ds = Twice(unique=False)(rows(*CLAIMS))
    assert len(kept(ds)) == 6
    assert not len(hfcf.rejected(ds))


def test_claims_on_other_evidence_are_no_twins() -> None:
    both = [*rows("a"), *rows("c", evidence="It is not so.")]
    assert kept(Twice()(Dataset.from_list(both))) == [("a", "Rome is old."), ("c", "Rome is old!")]


def test_a_limit_a_second_run_and_an_empty_set_change_nothing() -> None:
    whole = Twice()(rows(*CLAIMS))
    assert list(Twice()(rows(*CLAIMS), limit=2)) == list(whole.select(range(2)))
    assert list(Twice()(rows(*CLAIMS), load_from_cache_file=False)) == list(whole)
    assert list(Twice()(rows(*CLAIMS), num_proc=2, batch_size=1)) == list(whole)
    assert find_duplicates(whole) == {}
    assert find_duplicates(whole.select([])) == {}


def test_a_stream_keeps_its_twins() -> None:
    assert len([one for row in Twice()(rows(*CLAIMS).to_iterable_dataset()) for one in row["counterfactuals"]]) == 6


@pytest.mark.parametrize(("system", "unique"), [(hfcf.RACE, True), (hfcf.CrossAug, True), (hfcf.CCG, False)])
def test_which_presets_reject_them(system: Any, unique: bool) -> None:
    assert system.preset("offline").unique == unique
    paper = system.preset("paper", **({"verifier": "v", "generator": "g", "explainer_model": "e"} if system is hfcf.RACE else {}))
    assert paper.unique is False
