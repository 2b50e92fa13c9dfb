from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from datasets import Dataset
from scripted_continuation import answer, script

import hfcf
from hfcf.core import edits
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.engines.generator import Generator
from hfcf.pipeline import run as runner
from hfcf.systems.baselines.paraphrase import Paraphrase

LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def rows(demo: Dataset, *changes: dict[str, Any]) -> Dataset:
    made = [{**demo[0], "id": str(i), "group_id": str(i), "claim": "Rome is old.", **change} for i, change in enumerate(changes)]
    return Dataset.from_list(made, features=demo.features)


def test_every_row_once_more_with_its_label(
    demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    script(monkeypatch, lambda prompt: [answer(f"They say: {prompt}")])
    ds = rows(demo, *({"label": label} for label in LABELS))
    system = Paraphrase(generator=tiny_model("t5"))
    assert not system.flips
    assert system.name == "paraphrase"
    made = hfcf.expand(system(ds))
    assert made["label"] == list(LABELS)
    assert made["claim"] == ["They say: Rome is old."] * 3
    assert made["id"] == [f"{i}:paraphrase:claim" for i in range(3)]
    for row, source in zip(made, ds, strict=True):
        assert row["edits"] == edits.rewrite("claim", source["claim"], row["claim"])
        assert row["evidence"] == source["evidence"]
        assert row["change"] == "claim"
        assert row["scores"] == [{"name": "log-probability", "value": -0.25}]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([answer("rome is OLD")], "repeats the source's claim"),
        ([answer("Rome has been", finished=False)], "is cut off at 96 tokens"),
        ([answer("...")], "the new claim has no letters"),
        ([answer("Рим стар.")], "is mostly in cyrillic script, and its source in latin"),
        ([], "the model wrote nothing"),
        (None, "the claim is longer than the model reads (max_length=512 tokens, or its positions)"),
    ],
)
def test_what_is_no_paraphrase_is_rejected_with_the_reason(
    found: Any, reason: str, demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    script(monkeypatch, lambda prompt: found if prompt == "Rome is old." else [answer("Another one.")])
    ds = rows(demo, {"claim": "Sound one."}, {}, {"claim": "Sound two."})
    done = Paraphrase(generator=tiny_model("t5"))(ds)
    assert [row["status"]["accepted"] for row in done] == [True, False, True]
    assert done[1]["status"]["stage"] == "rewrite_paraphrase"
    assert reason in done[1]["status"]["reason"]
    assert hfcf.expand(done)["source_id"] == ["0", "2"]
    with pytest.raises(StageError, match="row '1'"):
        Paraphrase(generator=tiny_model("t5"), strict=True)(ds)


@pytest.mark.parametrize(
    ("source", "found", "accepted"),
    [
        ("Nothing about the hotel disappointed us.", "The hotel was a disappointment.", False),
        ("Nothing about the hotel disappointed us.", "The hotel did not disappoint us.", True),
        ("Paris is in France.", "Paris is not in France.", False),
        ("Paris is not in Germany.", "Paris is in Germany.", False),
    ],
)
def test_a_paraphrase_keeps_negations(
    source: str, found: str, accepted: bool, demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    script(monkeypatch, lambda prompt: [answer(found)])
    (row,) = Paraphrase(generator=tiny_model("t5"))(rows(demo, {"claim": source}))
    assert row["status"]["accepted"] is accepted
    assert accepted or "negation" in row["status"]["reason"]


def test_asks_nothing_about_a_bad_row(demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]) -> None:
    asked = script(monkeypatch, lambda prompt: [answer("Another one.")])
    done = Paraphrase(generator=tiny_model("t5"))(rows(demo, {"evidence": []}, {"claim": ""}, {"label": "MAYBE"}, {}))
    assert asked == ["Rome is old."]
    assert [row["status"]["accepted"] for row in done] == [False, False, False, True]


def test_the_prompt_is_the_models(demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]) -> None:
    asked = script(monkeypatch, lambda prompt: [answer("Another one.")])
    ds = rows(demo, {"claim": "A {} of {braces}."})
    for settings in (
        {"generator": tiny_model("t5")}, {"generator": tiny_model("gpt2")},
        {"generator": tiny_model("t5"), "prompt": "paraphrase: {} </s>"},
    ):  # fmt: skip
        Paraphrase(**settings)(ds)
    claim = "A {} of {braces}."
    assert asked == [claim, f"{claim}\nClaim:", f"paraphrase: {claim} </s>"]
    with pytest.raises(ValueError, match="prompt='paraphrase:'"):
        Paraphrase(generator="t5-base", prompt="paraphrase:")


def test_a_recipe_must_name_a_paraphraser_or_take_the_offline_one() -> None:
    with pytest.raises(RecipeError, match=r"(?s)generator.*train_paraphraser"):
        runner.make_system("paraphrase")
    found = runner.make_system("paraphrase", settings={"generator": "me/bart", "num_beams": 3})
    assert isinstance(found, Paraphrase)
    assert found.rewrite_paraphrase.num_beams == 3
    offline = runner.make_system("paraphrase", preset="offline")
    assert isinstance(offline, Paraphrase)
    assert offline.generator == Model("offline:t5", adapter="hfcf:paraphraser")


def test_writes_what_the_models_trainer_measures(demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    model = Model(tiny_model("t5"))
    claims = list(demo["claim"][:6])
    found = Generator(model=model, num_beams=5, num_return_sequences=1, max_new_tokens=12).run([[claim, []] for claim in claims])
    stage = Paraphrase(generator=model, max_new_tokens=12).rewrite_paraphrase
    done = map_stage(hfcf.prepare(demo.select(range(6)), stage), stage, {})
    assert [row["candidates"][0]["claim"] for row in done] == [row[0]["text"] for row in found]


@pytest.mark.usefixtures("no_request_cache")
@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_however_it_is_mapped_the_rows_are_the_same(kind: str, demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    system = Paraphrase(generator=Model(tiny_model(kind)), num_beams=3, num_return_sequences=2, max_new_tokens=8)
    ds = hfcf.prepare(demo.select(range(5)), system)
    stage = system.rewrite_paraphrase
    expected = [texts(row) for row in map_stage(ds, stage, {})]
    assert sum(len(its) for its, _ in expected) >= 5
    assert [texts(row) for row in ds.map(stage)] == expected
    assert [texts(row) for row in ds.map(stage, batched=True, batch_size=3)] == expected
    assert [texts(row) for row in ds.to_iterable_dataset().map(stage, batched=True, batch_size=2)] == expected


def texts(row: dict[str, Any]) -> tuple[list[Any], Any]:
    return [(new["claim"], new["label"], new["edits"], new["status"]) for new in row["candidates"]], row["status"]


def test_survives_a_claim_of_any_length(demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    system = Paraphrase(generator=Model(tiny_model("t5")), num_beams=2, max_new_tokens=6)
    done = system(rows(demo, {"claim": "and " * 4000}, {"claim": "a"}, {"claim": "film " * 511}, {"claim": "film " * 512}))
    long = ["longer than the model reads" in (row["status"]["reason"] or "") for row in done]
    assert long == [True, False, False, True]


def test_a_paraphrase_that_repeats_a_better_one_is_rejected(
    demo: Dataset, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    script(monkeypatch, lambda prompt: [answer("It is good."), answer("it is good"), answer("It is fine.")])
    done = Paraphrase(generator=tiny_model("t5"), num_return_sequences=3, num_beams=3)(rows(demo, {}))
    assert [new["status"]["accepted"] for new in done[0]["candidates"]] == [True, False, True]
