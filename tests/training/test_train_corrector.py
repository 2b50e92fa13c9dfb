"""Correctors, from the recipe to the card, on a tiny random T5."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.engines.corrector import Corrector, filled
from hfcf.engines.ner import Ner
from hfcf.pipeline.train import train
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.training.corrector import evaluate_corrector, masked_claims, train_corrector
from hfcf.training.trainer import Hyperparameters

CLAIMS = ["The old town of Rome has 30 gates.", "Ann was born in Oslo in May 1859.", "Too short."]


def rows(label: str = SUPPORTS) -> Dataset:
    return Dataset.from_list([
        {
            "id": str(i), "group_id": str(i), "corpus": "made", "claim": claim, "label": label,
            "evidence": [{"title": "T", "text": claim}],
        }
        for i, claim in enumerate(CLAIMS)
    ])  # fmt: skip


@pytest.fixture
def ner(monkeypatch: pytest.MonkeyPatch) -> Ner:
    def run(self: Ner, texts: list[str]) -> list[Any]:
        return [[[text.index(n), text.index(n) + len(n), "GPE"] for n in ("Rome", "Oslo") if n in text] for text in texts]

    monkeypatch.setattr(Ner, "run", run)
    return Ner(backend="spacy")


def test_supported_claims_are_masked_by_row_and_seed(ner: Ner) -> None:
    pairs = masked_claims(rows(), ner, masks=4, seed=1)
    assert set(pairs["claim"]) == set(CLAIMS[:2])
    assert 2 < len(pairs) <= 8
    for pair in pairs:
        assert pair["source"].endswith(f"evidence: T: {pair['claim']}")
        assert filled(pair["claim"], pair["spans"], pair["target"]) == pair["claim"]
    assert len(set(zip(pairs["source"], pairs["target"], strict=True))) == len(pairs)
    alone = masked_claims(rows().select([1]), ner, masks=4, seed=1)
    assert alone["source"] == pairs.filter(lambda pair: pair["claim"] == CLAIMS[1])["source"]
    assert masked_claims(rows(), ner, masks=4, seed=2)["source"] != pairs["source"]
    assert len(masked_claims(rows(REFUTES), ner)) == 0


def test_scores_compare_with_the_same_model_without_the_evidence(ner: Ner, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Corrector, asked: list[Any]) -> list[Any]:
        return [[{"text": claim.upper() if evidence else "No."}] for claim, _, evidence in asked]

    monkeypatch.setattr(Corrector, "run", run)
    found = evaluate_corrector(rows(), ner, Model("any"), max_length=9)
    assert found == {"claims": 2, "model": {"restored": 1.0}, "without evidence": {"restored": 0.0}}
    assert evaluate_corrector(rows(REFUTES), ner, Model("any"), max_length=9) == {"claims": 0}


def test_no_claim_to_mask_is_an_error(ner: Ner, tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    hp = Hyperparameters(model=Model(tiny_model("t5_marked")))
    with pytest.raises(ValueError, match=r"3 rows.*SUPPORTS"):
        train_corrector(rows(REFUTES), ner, hp, tmp_path / "out")


@pytest.mark.usefixtures("ner", "on_cpu")
def test_a_recipe_trains_scores_and_writes_a_card(tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    path = tmp_path / "rows.jsonl"
    made = [
        {"id": str(i), "group_id": str(i), "claim": f"Town {i} in Rome is very old.", "evidence": f"Town {i}.", "label": SUPPORTS}
        for i in range(20)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in made))
    report = train(
        {
            "train": "corrector", "preset": "offline", "model": tiny_model("t5_marked"), "max_length": 32, "epochs": 1,
            "data": [{"corpus": "jsonl", "data_files": str(path), "split": "train"}], "held_out": 0.3,
            "ner": {"backend": "spacy"}, "masks": 1,
        },
        tmp_path / "out", command="hfcf train …",
    )  # fmt: skip
    assert report["scores"]["trained on"]["pairs"] == report["rows"]["train"] > 0
    assert report["scores"]["held out: jsonl"]["claims"] == report["rows"]["held_out"] > 0
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Corrector of claims" in card
    assert "without evidence" in card
