"""Pairs of claims, and rewriters trained on them: from the recipe to the scores, on tiny random models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.engines.classifier import Classifier
from hfcf.engines.generator import Generator
from hfcf.pipeline.train import train
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.training.rewriter import claim_pairs, evaluate_rewriter


def row(i: int, group: str, claim: str, label: str, text: str = "It is so.") -> dict[str, Any]:
    evidence = [{"title": "", "text": text}]
    common = {"id": str(i), "group_id": group, "corpus": "made", "split": "train", "evidence": evidence}
    return {**common, "claim": claim, "label": label}


ROWS = [
    row(0, "a", "Rome is old.", SUPPORTS),
    row(1, "a", "Rome is new.", REFUTES),
    row(2, "a", "rome is old", SUPPORTS),
    row(3, "a", "Rome is big.", NOT_ENOUGH_INFO),
    row(4, "a", "Rome was built long ago.", SUPPORTS),
    row(5, "a", "Rome is a star.", REFUTES, text="Another text."),
    row(6, "b", "Paris is small.", REFUTES),
]


def test_negative_pairs_are_of_one_case_and_go_both_ways() -> None:
    pairs = claim_pairs(Dataset.from_list(ROWS), "negative")
    found = list(zip(pairs["source"], pairs["target"], strict=True))
    assert found == [
        ("Rome is old.", "Rome is new."), ("Rome is new.", "Rome is old."),
        ("rome is old", "Rome is new."), ("Rome is new.", "rome is old"),
        ("Rome was built long ago.", "Rome is new."), ("Rome is new.", "Rome was built long ago."),
    ]  # fmt: skip
    assert set(pairs["group_id"]) == {"a"}


def test_paraphrases_are_what_the_judge_takes_for_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    follows = {("Rome is old.", "Rome was built long ago."), ("Rome was built long ago.", "Rome is old."),
               ("rome is old", "Rome was built long ago.")}  # fmt: skip
    monkeypatch.setattr(Classifier, "run", lambda self, asked: [
        {SUPPORTS: float((claim, text) in follows), REFUTES: 0.0, NOT_ENOUGH_INFO: 0.5} for claim, text in asked
    ])  # fmt: skip
    pairs = claim_pairs(Dataset.from_list(ROWS), "paraphrase", Classifier(model=Model("judge"), max_length=9))
    found = set(zip(pairs["source"], pairs["target"], strict=True))
    assert found == {("Rome is old.", "Rome was built long ago."), ("Rome was built long ago.", "Rome is old.")}
    assert len(claim_pairs(Dataset.from_list(ROWS), "paraphrase")) == 4  # unjudged; the two that say the same are no pair


def test_no_pair_is_an_empty_set_with_columns() -> None:
    pairs = claim_pairs(Dataset.from_list(ROWS[-1:]), "negative")
    assert (len(pairs), pairs.column_names) == (0, ["source", "target", "group_id", "corpus", "evidence"])


def test_scores_count_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"a b c.": "a x c.", "d e f.": "D e f", "g h i.": "k l m n o"}
    pairs = Dataset.from_list([{"source": s, "target": "a x c.", "evidence": []} for s in made])
    monkeypatch.setattr(Generator, "run", lambda self, asked: [[{"text": made[text]}] for text, _ in asked])
    found = evaluate_rewriter(pairs, Model("any"), max_length=9)
    assert found["pairs"] == 3
    assert found["repeats"] == pytest.approx(1 / 3, abs=1e-4)
    assert found["one span of 3 words"] == pytest.approx(1 / 3, abs=1e-4)
    assert found["words changed"] == 2  # 1, 2 ("d" → "D", and the full stop) and 5
    assert evaluate_rewriter(pairs.select([]), Model("any"), max_length=9) == {"pairs": 0}


@pytest.fixture
def recipe(tmp_path: Path, tiny_model: Callable[[str], str]) -> dict[str, Any]:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": f"{g}-{label}", "group_id": str(g), "claim": f"Town {g} is {word}.", "evidence": f"Town {g}.", "label": label}
        for g in range(30)
        for word, label in (("old", SUPPORTS), ("new", REFUTES))
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return {
        "train": "rewriter", "pairs": "negative", "preset": "offline", "model": tiny_model("t5"), "max_length": 16,
        "data": [{"corpus": "jsonl", "data_files": str(path), "split": "train"}], "held_out": 0.3, "epochs": 1,
        "judge": {"model": tiny_model("verifier"), "max_length": 32},
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_a_recipe_trains_scores_and_writes_a_card(
    recipe: dict[str, Any], tiny_model: Callable[[str], str], tmp_path: Path, kind: str
) -> None:
    report = train({**recipe, "model": tiny_model(kind)}, tmp_path / "out", command="hfcf train …")
    assert report["scores"]["trained on"]["pairs"] == report["rows"]["train"]  # two rows of a group make two directed pairs
    held = report["scores"]["held out: jsonl"]
    assert held["pairs"] == report["rows"]["held_out"] > 0
    assert sum(held[f"judged {label}"] for label in (SUPPORTS, REFUTES, NOT_ENOUGH_INFO)) == pytest.approx(1, abs=1e-3)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Generator of negative claims" in card
    assert "CrossAug" in card
    assert re.search(rf'"judged":.*verifier, `{Path(recipe["judge"]["model"]).name}`', card)


def test_what_a_recipe_must_say(recipe: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"pairs.*negative.*paraphrase"):
        train({**recipe, "pairs": "positive"}, tmp_path)
    with pytest.raises(RecipeError, match=r"pairs.*negative.*paraphrase"):
        train({key: value for key, value in recipe.items() if key != "pairs"}, tmp_path)
    with pytest.raises(RecipeError, match="judge: must name"):
        train({**{k: v for k, v in recipe.items() if k != "judge"}, "pairs": "paraphrase"}, tmp_path)
    with pytest.raises(RecipeError, match=r"judge.*'max_lenght'.*'max_length'"):
        train({**recipe, "judge": {**recipe["judge"], "max_lenght": 32}}, tmp_path)
    for judge in ({"max_length": 32}, {"model": None}, {}, "out/verifier"):
        with pytest.raises(RecipeError, match=r"judge.*model"):
            train({**recipe, "judge": judge}, tmp_path)


@pytest.mark.parametrize(("pairs", "told"), [("negative", "one supported and one refuted"), ("paraphrase", "both supported")])
def test_without_a_pair_there_is_nothing_to_train_on(recipe: dict[str, Any], tmp_path: Path, pairs: str, told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        train({**recipe, "pairs": pairs, "held_out": 0.0}, tmp_path / "out", limit=1)
