"""Scores of pairs that anyone wrote, from a file in columns of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import own_models
import pytest
from datasets import Dataset
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.task import get_task
from hfcf.pipeline.score_pairs import score_pairs, to_page

REVIEWS = [
    {"orig": "A good film.", "new": "A bad film.", "again": "An awful film.", "wanted": "bad"},
    {"orig": "It is dull.", "new": "It is good fun.", "again": "It is dull.", "wanted": "good"},
    {"orig": "Good.", "new": "", "again": None, "wanted": "bad"},
]
SIDES: dict[str, Any] = {"original": {"text": "orig"}, "revised": [{"text": "new"}, {"text": "again"}]}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a classifier is asked that calls every text with "good" good, and every claim with "not" refuted."""
    asked: list[dict[str, Any]] = []

    def judge(self: Any, rows: Any, model: Any, max_length: int) -> list[Any]:
        asked.extend(rows)
        if "text" in rows[0]:
            return [{"good": 0.9, "bad": 0.1} if "good" in row["text"].casefold() else {"good": 0.2, "bad": 0.8} for row in rows]
        return [{"SUPPORTS": 0.1, "REFUTES": 0.9} if "not" in row["claim"] else {"SUPPORTS": 0.7, "REFUTES": 0.3} for row in rows]

    for name in ("classification", "verification"):
        monkeypatch.setattr(type(get_task(name)), "judge", judge)
        monkeypatch.setattr(type(get_task(name)), "input_tokens", lambda self, rows, model, length: [len(rows)] * len(rows))
    monkeypatch.setattr("hfcf.pipeline.score_pairs.read_length", lambda model, length: length or 100)
    return asked


def test_flips_and_distances_of_several_revisions(judged: list[dict[str, Any]]) -> None:
    result = score_pairs(Dataset.from_list(REVIEWS), **SIDES, model="any", target="wanted")
    assert (result["originals"], result["pairs"], result["left_out"]) == (2, 4, 1)
    scores = {name: found[0] for name, found in result["scores"].items()}
    assert scores["flip_rate"] == 0.75, "good → bad twice, dull → good, and dull again"
    assert scores["hit_rate"] == 0.75
    assert scores["probability_change"] == pytest.approx((0.7 + 0.7 + 0.7 + 0) / 4)
    assert scores["distance"] == pytest.approx((1 + 2 + 2 + 0) / 4)
    assert scores["diversity"] == pytest.approx((2 + 2) / 2)
    assert len(judged) == 6, "each original is asked once"
    low, high = result["scores"]["flip_rate"][1:]
    assert (low, high) == (0.5, 1.0), "revisions of one original are drawn together"


def test_an_original_in_several_rows_counts_once(judged: list[dict[str, Any]]) -> None:
    long = [{"orig": row["orig"], "new": row[side]} for row in REVIEWS[:2] for side in ("new", "again")]
    result = score_pairs(Dataset.from_list(long), original={"text": "orig"}, revised=[{"text": "new"}], model="any")
    assert result == score_pairs(Dataset.from_list(REVIEWS[:2]), **SIDES, model="any")
    assert (result["originals"], result["pairs"]) == (2, 4)


def test_evidence_is_read_as_rows_of_ones_own_are(judged: list[dict[str, Any]]) -> None:
    sides: dict[str, Any] = {"original": {"claim": "c", "evidence": "e"}, "revised": [{"claim": "c2", "evidence": "e2"}]}
    pieces: list[Any] = [
        ["Oslo is old.", "It is big."],
        [{"title": "Oslo", "text": "It is old."}],
        '["Oslo is old.", "It is big."]',
    ]
    for evidence in pieces:
        judged.clear()
        rows = [{"c": "Oslo is old.", "e": evidence, "c2": "Oslo is not old.", "e2": evidence}]
        result = score_pairs(Dataset.from_list(rows), **sides, model="any")
        assert all("[" not in piece["text"] for row in judged for piece in row["evidence"])
        assert (result["scores"]["distance"][0], result["scores"]["flip_rate"][0]) == (1, 1)
    shorter = {"c": "Oslo is old.", "e": pieces[0], "c2": "Oslo is old.", "e2": ["Oslo is new."]}
    result = score_pairs(Dataset.from_list([shorter]), **sides)
    assert result["scores"]["distance"][0] == 5, "old → new, and a sentence of four tokens less"
    with pytest.raises(ValueError, match=r"row 1.*evidence"):
        score_pairs(Dataset.from_list([{**shorter, "e": {"a": 1}}]), **sides)


def test_texts_that_the_language_model_does_not_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Short:
        def __init__(self, **_: Any) -> None: ...

        def run(self, texts: list[str]) -> list[float | None]:
            return [None if len(text) > 14 else 20.0 for text in texts]

    monkeypatch.setattr("hfcf.pipeline.score_pairs.Perplexity", Short)
    result = score_pairs(Dataset.from_list(REVIEWS), **SIDES, language_model="any")
    assert (result["unread"], result["scores"]["perplexity"][0]) == (1, 20.0)
    assert "1 revisions without a perplexity" in to_page(result)


def test_what_a_model_does_not_read_is_counted(judged: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(get_task("classification"))
    monkeypatch.setattr(kind, "input_tokens", lambda self, rows, model, length: [len(row["text"]) for row in rows])
    judge = kind.judge

    def some(self: Any, rows: Any, *settings: Any) -> list[Any]:
        return [None if "awful" in row["text"] else one for row, one in zip(rows, judge(self, rows, *settings), strict=True)]

    monkeypatch.setattr(kind, "judge", some)
    rows = Dataset.from_list([REVIEWS[0], {**REVIEWS[1], "wanted": None}])
    result = score_pairs(rows, **SIDES, model="any", target="wanted", max_length=14)
    assert (result["pairs"], result["unanswered"], result["cut"]) == (4, 1, 1)
    assert result["scores"]["hit_rate"][0] == 1.0, "of the one revision that has an answer and a target"
    assert "1 revisions without an answer" in to_page(result)


def test_premises_and_hypotheses_in_a_file(tmp_path: Path, judged: list[dict[str, Any]]) -> None:
    rows = [
        {"p": "A man sleeps.", "h": "He rests.", "p2": "A man runs.", "h2": "He rests.", "gold": "contradiction"},
        {"p": "A dog runs.", "h": "It moves.", "p2": "A dog runs.", "h2": "It does not move.", "gold": "contradiction"},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sides = {"original": {"claim": "h", "evidence": "p"}, "revised": [{"claim": "h2", "evidence": "p2"}]}
    result = score_pairs(file, **sides, model="any", target="gold")  # type: ignore[arg-type]
    assert result["task"] == "verification"
    assert result["scores"]["hit_rate"][0] == 0.5
    assert result["scores"]["distance"][0] == pytest.approx((1 + 3) / 2), "only the side that changed counts"
    assert "diversity" not in result["scores"]
    page = to_page(result)
    assert all(name.replace("_", " ") in page for name in result["scores"])


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"original": {"text": "origin"}}, ("origin", "orig", "new")),
        ({"original": {"claim": "orig"}}, ("claim", "text")),
        ({"revised": []}, ("revised",)),
        ({"target": "orig", "model": "any"}, ("A good film.", "bad", "good")),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], facts: tuple[str, ...], judged: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        score_pairs(Dataset.from_list(REVIEWS), **{**SIDES, **changes})
    assert all(fact in str(error.value) for fact in facts)


def test_a_model_with_class_names_of_its_own(tmp_path: Path) -> None:
    new = ("He runs.", "He sings.", "He reads.")
    rows = [{"p": "A man sleeps.", "h": "He rests.", "new": text, "gold": "REFUTES"} for text in new]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    model = own_models.save(tmp_path / "model", "bert", ["no", "yes"], range(2))
    pairs = [
        "score", "pairs", str(tmp_path / "pairs.jsonl"), "--original", "claim=h,evidence=p", "--revised", "claim=new,evidence=p",
        "--target", "gold",
    ]  # fmt: skip

    def hits(no: str, yes: str) -> float:
        command = [*pairs, "--model", str(model), "--labels", f"no={no},yes={yes}", "--inputs", "claim-evidence"]
        answer = CliRunner().invoke(app, [*command, "--out", str(tmp_path / f"{no}.json")])
        assert answer.exit_code == 0, answer.exception
        rate = json.loads((tmp_path / f"{no}.json").read_text())["scores"]["hit_rate"][0]
        assert isinstance(rate, float)
        return rate

    assert hits("REFUTES", "SUPPORTS") + hits("SUPPORTS", "REFUTES") == pytest.approx(1, abs=1e-4), "as the classes are named"
    with pytest.raises(ValueError, match="no") as error:
        CliRunner().invoke(app, [*pairs, "--model", str(model)], catch_exceptions=False)
    assert all(fact in str(error.value) for fact in ("yes", "--labels"))
    with pytest.raises(ValueError, match=r"--labels.*--model"):
        CliRunner().invoke(app, [*pairs, "--labels", "no=REFUTES"], catch_exceptions=False)
