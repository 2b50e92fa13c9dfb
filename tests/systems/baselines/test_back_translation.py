from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import translators
from datasets import Dataset
from scripted_continuation import answer, script_models

import hfcf
from hfcf.core import edits
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.engines.continuation import Continuation
from hfcf.pipeline import run as runner
from hfcf.systems.baselines.back_translation import BackTranslation

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(translators.marian(tmp_path_factory.mktemp("marian")))


@pytest.fixture(scope="module")
def m2m100(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(translators.m2m100(tmp_path_factory.mktemp("m2m100")))


def rows(demo: Dataset, *changes: dict[str, Any]) -> Dataset:
    made = [{**demo[0], "id": str(i), "group_id": str(i), "claim": f"Rome {i}.", **change} for i, change in enumerate(changes)]
    return Dataset.from_list(made, features=demo.features)


def test_every_row_once_more_with_its_label(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = script_models(monkeypatch, there=lambda text: [answer(f"Rom: {text}")], back=lambda text: [answer(f"The city: {text}")])
    labels = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
    ds = rows(demo, *({"label": label} for label in labels))
    system = BackTranslation(forward="there", backward="back", forward_prompt="to German: {}", backward_prompt="to English: {}")
    assert not system.flips
    assert system.name == "back_translation"
    made = hfcf.expand(system(ds))
    assert asked == [
        *(("there", f"to German: Rome {i}.") for i in range(3)),
        *(("back", f"to English: Rom: to German: Rome {i}.") for i in range(3)),
    ]
    assert made["label"] == labels
    assert made["id"] == [f"{i}:back_translation:claim" for i in range(3)]
    for row, source in zip(made, ds, strict=True):
        assert row["claim"].startswith("The city: ")
        assert row["edits"] == edits.rewrite("claim", source["claim"], row["claim"])
        assert row["evidence"] == source["evidence"]
        assert row["change"] == "claim"


FATES: dict[str, tuple[Any, Any, str]] = {
    "too long": (None, AssertionError, "the claim is longer than the model reads"),
    "no translation": ([], AssertionError, "the translation into the other language is empty"),
    "half of one": (
        [answer("x", finished=False)],
        AssertionError,
        "translation into the other language is cut off at 256 tokens",
    ),
    "too long a translation": (
        [answer("x")],
        None,
        "translation into the other language is longer than the second model reads",
    ),
    "half way back": ([answer("x")], [answer("Rome", finished=False)], "is cut off at 256 tokens"),
}


@pytest.mark.parametrize("fate", FATES)
def test_what_is_no_augmentation_is_rejected_and_shifts_nothing(fate: str, demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    there, back, reason = FATES[fate]

    def second(text: str) -> Any:
        assert text != "x" or back is not AssertionError, "was translated back"
        return back if text == "x" else [answer(f"Back of {text}")]

    asked = script_models(monkeypatch, there=lambda text: there if text == "Rome 1." else [answer(f"There of {text}")], back=second)
    system = BackTranslation(forward="there", backward="back")
    ds = rows(demo, {}, {}, {})
    done = system(ds)
    assert [row["status"]["accepted"] for row in done] == [True, False, True]
    assert done[1]["status"]["stage"] == "rewrite_back_translation"
    assert reason in done[1]["status"]["reason"]
    assert hfcf.expand(done)["claim"] == ["Back of There of Rome 0.", "Back of There of Rome 2."]
    assert len(asked) == (5 if back is AssertionError else 6)
    with pytest.raises(StageError, match="row '1'"):
        BackTranslation(forward="there", backward="back", strict=True)(ds)


def test_asks_nothing_about_a_bad_row(demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = script_models(monkeypatch, there=lambda text: [answer("There.")], back=lambda text: [answer("Back.")])
    done = BackTranslation(forward="there", backward="back")(rows(demo, {"evidence": []}, {"claim": None}, {}))
    assert asked == [("there", "Rome 2."), ("back", "There.")]
    assert [row["status"]["accepted"] for row in done] == [False, False, True]


def test_wrong_settings_are_errors_that_say_so() -> None:
    for name in ("forward_prompt", "backward_prompt"):
        with pytest.raises(ValueError, match=rf"{name}='to English' must hold \{{\}} once"):
            BackTranslation(**{name: "to English"})
    with pytest.raises(ValueError, match="both languages"):
        BackTranslation(source="eng_Latn")
    with pytest.raises(ValueError, match="no preset 'offline'"):
        BackTranslation.preset("offline")


def test_a_recipe_can_name_its_models() -> None:
    settings = {"forward": {"name": "nllb", "dtype": "float32"}, "backward": "nllb", "source": "eng_Latn", "pivot": "deu_Latn"}
    found = runner.make_system("back_translation", settings=settings)
    assert isinstance(found, BackTranslation)
    assert runner.read_models(found, {}) == {"forward": "nllb", "backward": "nllb"}
    default = runner.make_system("back_translation")
    assert runner.read_models(default, {}) == {"forward": "Helsinki-NLP/opus-mt-en-de", "backward": "Helsinki-NLP/opus-mt-de-en"}


def test_each_translator_is_told_its_direction(demo: Dataset, m2m100: Model) -> None:
    system = BackTranslation(forward=m2m100, backward=m2m100, source="en", pivot="de", num_beams=2, max_new_tokens=20)
    settings: dict[str, Any] = {"model": m2m100, "num_beams": 2, "max_new_tokens": 20}
    done = map_stage(hfcf.prepare(demo.select(range(8)), system), system.rewrite_back_translation, {})
    claims = list(demo["claim"][:8])
    german = Continuation(**settings, source="en", target="de").run(claims)
    for row, found in zip(done, german, strict=True):
        if not found or not found[0]["finished"]:
            assert "the translation into the other language" in row["status"]["reason"]
            continue
        expected = Continuation(**settings, source="de", target="en").run([found[0]["text"]])[0]
        assert [new["claim"] for new in row["candidates"]] == [answer["text"] for answer in expected]


def test_one_model_both_ways_is_loaded_once(m2m100: Model) -> None:
    settings: dict[str, Any] = {"model": m2m100, "num_beams": 2}
    there = Continuation(**settings, source="en", target="de").loaded()
    back = Continuation(**settings, source="de", target="en").loaded()
    assert there[0] is back[0]
    assert (there[1].src_lang, back[1].src_lang) == ("en", "de")
    assert there[2] != back[2]


@pytest.mark.usefixtures("no_request_cache")
def test_however_it_is_mapped_the_rows_are_the_same(demo: Dataset, marian: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Continuation.forward

    def ends(self: Continuation, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        # Random weights seldom end a text.
        return [[{**row, "finished": True} for row in found] for found in search(self, loaded, encoded)]

    monkeypatch.setattr(Continuation, "forward", ends)
    system = BackTranslation(forward=marian, backward=marian, num_beams=3, max_new_tokens=8)
    ds = hfcf.prepare(demo.select(range(5)), system)
    stage = system.rewrite_back_translation
    expected = [texts(row) for row in map_stage(ds, stage, {})]
    assert all(len(its) == 1 for its, _ in expected)
    assert [texts(row) for row in ds.map(stage)] == expected
    assert [texts(row) for row in ds.map(stage, batched=True, batch_size=3)] == expected
    assert [texts(row) for row in ds.to_iterable_dataset().map(stage, batched=True, batch_size=2)] == expected


def texts(row: dict[str, Any]) -> tuple[list[Any], Any]:
    return [(new["claim"], new["label"], new["edits"], new["status"]) for new in row["candidates"]], row["status"]


def test_survives_a_claim_of_any_length(demo: Dataset, marian: Model) -> None:
    system = BackTranslation(forward=marian, backward=marian, num_beams=2, max_new_tokens=6)
    done = system(rows(demo, {"claim": "and " * 4000}, {"claim": "a"}, {"claim": "x" * 300}))
    reasons = [row["status"]["reason"] for row in done]
    assert "longer than the model reads" in reasons[0]
    assert "longer than the model reads" in reasons[2]
    assert "longer than the model reads" not in (reasons[1] or "")
