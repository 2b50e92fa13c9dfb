from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest
from datasets import Dataset
from scripted_continuation import answer, script

import hfcf
from hfcf.core import edits
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.pipeline import run as runner
from hfcf.systems.baselines.polyjuice import MARKS, Code, Polyjuice, fill_blanks, random_blank

CLAIM = "It is great for kids."


def rows(demo: Dataset, *changes: dict[str, Any]) -> Dataset:
    made = [{**demo[0], "id": str(i), "group_id": str(i), "claim": CLAIM, **change} for i, change in enumerate(changes)]
    return Dataset.from_list(made, features=demo.features)


# --- what the model's language means


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("It is [BLANK] great for kids. [SEP] not [ANSWER]", "It is not great for kids."),
        ("It is [BLANK] great for [BLANK]. [SEP] never [ANSWER] any adult [ANSWER]", "It is never great for any adult."),
        ("It is great [BLANK]. [SEP] [EMPTY] [ANSWER]", "It is great."),
        ("It is great [BLANK]. [SEP]  [ANSWER]", "It is great."),
        ("[BLANK] is great. [SEP] [EMPTY] [ANSWER]", "is great."),
        ("[BLANK] [SEP] It is not great. [ANSWER]", "It is not great."),
        ("It is [BLANK]great. [SEP] un [ANSWER] bad [ANSWER] and so on", "It is ungreat."),
        ("It is [BLANK] great. [SEP] not [ANSWER] It", "It is not great."),
    ],
)
def test_answers_go_into_their_blanks(text: str, sentence: str) -> None:
    assert fill_blanks(text) == sentence


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is not great for kids.", "has [SEP] 0 times, not once"),
        ("", "has [SEP] 0 times"),
        ("It is [BLANK]. [SEP] bad [ANSWER] [SEP] good [ANSWER]", "has [SEP] 2 times"),
        ("It is not great. [SEP] not [ANSWER]", "has no blank"),
        ("It is [BLANK] great for [BLANK]. [SEP] not [ANSWER]", "has 1 answers for 2 blanks"),
        ("It is [BLANK] great. [SEP] not", "has 0 answers for 1 blanks"),
        ("It is [BLANK] great. <|perturb|> [SEP] not [ANSWER]", "has <|perturb|> in its sentence"),
        ("It is [BLANK] great. [SEP] [BLANK] [ANSWER]", "has [BLANK] in its sentence"),
        ("[BLANK] [SEP] [EMPTY] [ANSWER]", "is not a sentence: its sentence is empty"),
        ("[BLANK]. [SEP] [EMPTY] [ANSWER]", "is not a sentence: its sentence has no letters"),
    ],
)
def test_a_malformed_answer_says_how(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}"):
        fill_blanks(text)


def test_a_random_blank_is_one_and_takes_or_precedes_one_word(demo: Dataset) -> None:
    taken = before = 0
    for i, claim in enumerate(demo["claim"]):
        blanked = random_blank(claim, random.Random(i))
        assert blanked.count("[BLANK]") == 1
        if fill_blanks(f"{blanked} [SEP] [EMPTY] [ANSWER]") == " ".join(claim.split()):
            before += 1
        else:
            taken += 1
            start = blanked.index("[BLANK]")
            after = blanked[start + len("[BLANK]") :]
            word = claim[start : len(claim) - len(after)]
            assert claim == blanked[:start] + word + after
            assert any(c.isalnum() for c in word)
            assert " " not in word
    assert taken > before > 5


def test_a_random_blank_finds_words_of_any_script() -> None:
    assert random_blank("«Рим» — старый", random.Random(2)).count("[BLANK]") == 1
    assert random_blank("罗马是古老的。", random.Random(2)).count("[BLANK]") == 1


# --- the system


def test_raises_for_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match=r"negation.*negate"):
        Polyjuice(code="negate")
    with pytest.raises(ValueError, match=r"blanks.*model.*parse"):
        Polyjuice(blanks="parse")
    assert [Polyjuice(code=code).code for code in get_args(Code)] == list(get_args(Code))
    with pytest.raises(ValueError, match="no preset 'offline'"):
        Polyjuice.preset("offline")


def test_a_recipe_can_name_its_settings() -> None:
    settings = {"generator": {"name": "me/polyjuice", "revision": "refs/pr/1"}, "code": "quantifier", "verifier": "me/verifier"}
    found = runner.make_system("polyjuice", seed=7, settings=settings)
    assert isinstance(found, Polyjuice)
    assert found.flips
    assert found.name == "polyjuice"
    assert found.rewrite_polyjuice.generator == Model("me/polyjuice", revision="refs/pr/1")
    assert (found.rewrite_polyjuice.code, found.rewrite_polyjuice.seed) == ("quantifier", 7)
    assert found.judge_candidates.verifier == Model("me/verifier")


def test_asks_in_the_models_language(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = script(monkeypatch, lambda prompt: [answer("It is [BLANK] great for kids. [SEP] not [ANSWER]")])
    ds = rows(demo, {"label": "SUPPORTS"}, {"label": "REFUTES"})
    Polyjuice(blanks="model", code="delete")(ds)
    assert asked == [f"{CLAIM} <|perturb|> [delete]"] * 2
    asked.clear()
    Polyjuice()(ds)
    begun = [prompt.removeprefix(f"{CLAIM} <|perturb|> [negation] ") for prompt in asked]
    assert all(prompt.count("[BLANK]") == 1 and "[SEP]" not in prompt for prompt in begun)
    assert begun == [random_blank(CLAIM, random.Random(f"13:rewrite_polyjuice:{i}")) for i in range(2)]


def test_the_label_flips_and_the_claim_is_one_edit(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, lambda prompt: [answer("[SEP] not good [ANSWER]")])
    ds = rows(demo, {"label": "SUPPORTS"}, {"label": "REFUTES"})
    made = hfcf.expand(Polyjuice()(ds))
    assert made["label"] == ["REFUTES", "SUPPORTS"]
    for i, row in enumerate(made):
        blanked = random_blank(CLAIM, random.Random(f"13:rewrite_polyjuice:{i}"))
        assert row["claim"] == blanked.replace("[BLANK]", "not good")
        assert row["edits"] == edits.rewrite("claim", CLAIM, row["claim"])
        assert row["evidence"] == ds[i]["evidence"]
        assert (row["system"], row["change"], row["source_id"]) == ("polyjuice", "claim", str(i))
        assert row["scores"] == [{"name": "log-probability", "value": -0.25}]


FATES: dict[str, tuple[dict[str, Any], Any, str]] = {
    "no SEP": ({}, [answer("It is bad.")], "has [SEP] 0 times"),
    "too few answers": ({}, [answer("It [BLANK] [BLANK]. [SEP] is [ANSWER]")], "has 1 answers for 2 blanks"),
    "cut off": ({}, [answer("It is [BLANK] great. [SEP] not", finished=False)], "is cut off at 200 tokens"),
    "the claim again": ({}, [answer("it is [BLANK] for kids [SEP] great [ANSWER]")], "repeats the source's claim"),
    "nothing": ({}, [], "the model wrote nothing"),
    "too long": ({}, None, "the claim is longer than the model reads"),
    "no opposite": ({"label": "NOT ENOUGH INFO"}, AssertionError, "a NOT ENOUGH INFO row has no opposite label"),
    "a mark": ({"claim": "It is [SEP] great."}, AssertionError, "the claim holds [SEP], which is a mark of the model's"),
    "no claim": ({"claim": " "}, AssertionError, "the claim is empty"),
    "no evidence": ({"evidence": []}, AssertionError, "there is no evidence"),
}


@pytest.mark.parametrize("fate", FATES)
def test_what_is_no_counterfactual_is_rejected_with_the_reason(fate: str, demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    change, found, reason = FATES[fate]

    def answers(prompt: str) -> Any:
        if prompt.startswith("Sound"):
            return [answer("Sound [BLANK]. [SEP] not [ANSWER]")]
        assert found is not AssertionError, "a bad row was asked about"
        return found

    script(monkeypatch, answers)
    ds = rows(
        demo,
        {"label": "SUPPORTS", "claim": "Sound one."},
        {"label": "SUPPORTS", **change},
        {"label": "REFUTES", "claim": "Sound two."},
    )
    system = Polyjuice(blanks="model")
    done = system(ds)
    assert done["id"] == ["0", "1", "2"]
    status = done[1]["status"]
    assert (status["accepted"], status["stage"]) == (False, "rewrite_polyjuice")
    assert reason in status["reason"]
    assert [len(hfcf.expand(done.select([i]))) for i in range(3)] == [1, 0, 1]
    if isinstance(found, list) and found:  # what the model wrote can be read
        assert done[1]["candidates"][0]["claim"]
        assert reason in done[1]["candidates"][0]["status"]["reason"]
    with pytest.raises(StageError, match="row '1'"):
        Polyjuice(blanks="model", strict=True)(ds)


def test_an_answer_that_is_whole_before_the_limit_is_not_cut_off(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    script(monkeypatch, lambda prompt: [answer("It is [BLANK] great. [SEP] not [ANSWER] and on and", finished=False)])
    made = hfcf.expand(Polyjuice(blanks="model")(rows(demo, {"label": "SUPPORTS"})))
    assert made["claim"] == ["It is not great."]


def test_answers_that_say_the_same_count_once(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "It is [BLANK] great. [SEP] not [ANSWER]",
        "It [BLANK] great. [SEP] is not [ANSWER]",
        "[BLANK] [SEP] No kids. [ANSWER]",
    ]
    script(monkeypatch, lambda prompt: [answer(text) for text in texts])
    done = Polyjuice(blanks="model", num_return_sequences=3)(rows(demo, {"label": "SUPPORTS"}))
    assert [new["status"]["accepted"] for new in done[0]["candidates"]] == [True, False, True]
    assert done[0]["candidates"][1]["status"]["reason"] == "repeats an earlier candidate"
    assert hfcf.expand(done)["id"] == ["0:polyjuice:claim", "0:polyjuice:claim:2"]


def test_a_verifier_has_the_last_word(demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]) -> None:
    script(monkeypatch, lambda prompt: [answer("[SEP] not [ANSWER]")])
    ds = demo.select(range(12))
    unchecked = Polyjuice()(ds)
    checked = Polyjuice(verifier=Model(tiny_model("verifier")))(ds)
    assert sum(hfcf.accepted(unchecked[:])) > sum(hfcf.accepted(checked[:])) > 0
    reasons = [new["status"]["reason"] for row in checked for new in row["candidates"] if not new["status"]["accepted"]]
    assert any(reason.startswith("the verifier says") for reason in reasons)


# --- with a real network


@pytest.mark.usefixtures("no_request_cache")
@pytest.mark.parametrize("blanks", ["random", "model"])
def test_however_it_is_mapped_the_rows_are_the_same(blanks: str, demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    system = Polyjuice(generator=Model(tiny_model("gpt2")), blanks=blanks, num_beams=3, num_return_sequences=2, max_new_tokens=6)
    ds = hfcf.prepare(demo.select(range(5)), system)
    stage = system.rewrite_polyjuice
    expected = list(map_stage(ds, stage, {}))
    assert any(row["candidates"] for row in expected)
    ways: dict[str, Any] = {
        "row by row": ds.map(stage),
        "batches": ds.map(stage, batched=True, batch_size=3),
        "stream": ds.to_iterable_dataset().map(stage, batched=True, batch_size=2),
    }
    if blanks == "random":
        ways["two processes"] = ds.map(stage, batched=True, batch_size=2, num_proc=2)
    for way, found in ways.items():
        for first, other in zip(found, expected, strict=True):
            assert without_scores(first) == without_scores(other), way
            assert scores(first) == pytest.approx(scores(other), abs=1e-4), way


def without_scores(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "candidates": [{**new, "scores": None} for new in row["candidates"] or []]}


def scores(row: dict[str, Any]) -> list[float]:
    return [score["value"] for new in row["candidates"] or [] for score in new["scores"]]


def test_survives_a_claim_of_any_length(demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    system = Polyjuice(generator=Model(tiny_model("gpt2")), num_beams=2, max_new_tokens=6)
    claims = ["and " * 4000, "a", "film " * 250, "x" * 30_000]
    done = system(rows(demo, *({"claim": claim, "label": "SUPPORTS"} for claim in claims)))
    reasons = [row["status"]["reason"] for row in done]
    assert "longer than the model reads" in reasons[0]
    assert "longer" not in reasons[1]
    assert "longer than the model reads" in reasons[2]  # the prompt holds the claim twice
    assert "the limit is 20,000" in reasons[3]


def test_no_claim_of_the_demo_holds_a_mark(demo: Dataset) -> None:
    assert not [claim for claim in demo["claim"] if any(mark in claim for mark in MARKS)]
