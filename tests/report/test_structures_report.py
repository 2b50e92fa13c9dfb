"""Argument structures in `hfcf peek`, in arrows."""

from __future__ import annotations

from pathlib import Path

from datasets import load_dataset
from run_folder import published
from structure_rows import judged, rows

from hfcf.report.peek import peek, rows_of_corpus

MARKED = "structure: (s1, s2) → [s3]? → [s4]? ([s4]?, s5) → [Claim]?"


def test_peek_shows_the_arrows(tmp_path: Path) -> None:
    run = published(judged(), tmp_path)
    assert run["task"] == "structures"
    shown = "\n".join(line.plain for line in peek(tmp_path, marks=True))
    assert "on for [-12-] hours." in shown
    assert "on for {+13+} hours." in shown
    assert MARKED in shown
    assert shown.count("structure: ") == 2, "a row without a structure shows none"
    lost = "\n".join(line.plain for line in peek(tmp_path, config="rejected", rows=1))
    assert "structure: (s1, s2) → s3 → s4 (s4, s5) → Claim" in lost
    assert "structure: (s1, s2) → s3" in next(line.plain for line in rows_of_corpus(rows(), 1, None) if "structure" in line.plain)


def test_peek_shows_rows_that_have_no_claim_yet() -> None:
    row = {**rows()[0], "id": "pair", "claim": "", "evidence": [], "evidence_info": [], "structure": [], "label": None}
    row |= {
        "cause": "Salt lay on the ice.",
        "effect": "The ice melted.",
        "question": "Why did the ice melt?",
        "explanation": ["a", "b"],
    }
    shown = [line.plain for line in rows_of_corpus([row], 1, None)]
    assert shown[:2] == ["pair", "  there is no claim yet, only a cause and its effect"]
    texts = ("cause: Salt lay on the ice.", "effect: The ice melted.", "question: Why did the ice melt?", "explanation: a / b")
    assert [text for text in texts if f"  {text}" not in shown] == []
    assert len(list(rows_of_corpus([row], 1, "SALT ice"))) > 1


def test_the_result_has_what_is_stale(tmp_path: Path) -> None:
    published(judged(), tmp_path)
    assert load_dataset(str(tmp_path), split="train")["stale"][:] == [["s3", "s4", "claim"], ["s3", "s4", "s6", "claim"], []]
    assert "stale" not in load_dataset(str(tmp_path), "augmented", split="train").features
