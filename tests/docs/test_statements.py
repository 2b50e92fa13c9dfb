"""What the pages on systems, statistics and search say of the code is so; each test names its page."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from datasets import Dataset
from pages import ROOT, blocks, section, text_of
from tagged_rows import row

import hfcf
from hfcf.core import pretrained, recipe
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model, is_chat
from hfcf.core.system import System
from hfcf.engines.constrained import generate_constrained
from hfcf.engines.constrained.plan import EXACT_CLAUSES
from hfcf.engines.constrained.vocabulary import MOST_CLAUSES
from hfcf.studies.compare.recipe import MethodRecipe
from hfcf.systems import system_class, systems
from hfcf.systems.race.edit import EditEvidence
from hfcf.tasks.verification import LABELS

SYSTEMS, EXPLAIN = ROOT / "docs" / "systems", ROOT / "docs" / "explain"
PAPERS = ("race", "crossaug", "ccg", "rgf", "checkwhy")
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
SUPPORTS, REFUTES, NEI = LABELS


# --- the form of the pages


@pytest.mark.parametrize("page", [*sorted(SYSTEMS.glob("*.md")), *sorted(EXPLAIN.glob("*.md"))], ids=lambda page: page.stem)
def test_a_page_is_short_without_what_is_generated(page: Path) -> None:
    words = GENERATED.sub("", text_of(page)).split()
    assert len(words) <= (1000 if page.parent == SYSTEMS else 1200)


@pytest.mark.parametrize("name", [*PAPERS, "baselines"])
def test_the_page_of_a_system_has_its_parts(name: str) -> None:
    page = SYSTEMS / f"{name}.md"
    headings = re.findall(r"^## (.*)$", text_of(page), re.MULTILINE)
    assert {"Example", "Limits"} <= set(headings)
    assert f"../reference/settings.md#{name}" in text_of(page)
    assert f"../reference/paper_index.md#{name}" in section(page, next(one for one in headings if one.startswith("What differs")))
    assert any(block.language == "mermaid" for block in blocks(page))
    assert "../results/" in text_of(page)


@pytest.mark.parametrize("name", PAPERS)
def test_the_picture_of_a_system_has_its_stages_in_order(name: str) -> None:
    picture = next(block.text for block in blocks(SYSTEMS / f"{name}.md") if block.language == "mermaid")
    places = [picture.find(stage) for stage in system_class(name).parts]
    shown = [place for place in places if place >= 0]
    assert len(shown) == len(places)
    assert shown == sorted(shown)


@pytest.mark.parametrize(
    ("name", "setting", "expected"),
    [
        ("race", "flip", {"paper": "any", "hub": "opposite", "offline": "opposite"}),
        ("race", "explainer", {"paper": "cure", "hub": "gradient_x_input", "offline": "gradient_x_input", "llm": "llm"}),
        ("crossaug", "verifier", {"paper": None}),
        ("crossaug", "num_beams", {"paper": 5}),
        ("ccg", "verifier", {"paper": None, "offline": None}),
        ("ccg", "phrases", {"paper": None, "hub": "all", "llm": "all", "offline": "all"}),
        ("ccg", "method", {"paper": "intervention", "hub": "editor", "llm": "editor", "offline": "intervention"}),
        ("ccg", "judge_folds", {"paper": 0, "offline": 0}),
        ("rgf", "retrieval", {"paper": "dense", "hub": "bm25", "offline": "bm25", "llm": "bm25"}),
        ("mice", "folds", {"paper": 1, "offline": 2}),
        ("autocad", "folds", {"paper": 1, "offline": 2}),
        ("coco", "folds", {"paper": 1, "offline": 2}),
        ("mice", "closed", {"paper": False, "offline": True}),
        ("autocad", "closed", {"paper": False, "offline": True}),
    ],
)
def test_presets_are_as_the_pages_say(name: str, setting: str, expected: dict[str, Any]) -> None:
    cls = system_class(name)
    default = cls.schema[setting].default
    assert {preset: cls.presets[preset].get(setting, default) for preset in expected} == expected


def test_models_that_write_in_hub_are_chat_models() -> None:
    written = {"race": "generator", "crossaug": "generator", "ccg": "editor", "rgf": "generator", "checkwhy": "model"}
    for name, setting in written.items():
        assert is_chat(system_class(name).presets["hub"][setting]), name


# --- RACE


def test_race_uses_three_models_that_one_trains() -> None:
    cls = system_class("race")
    assert "three models" in section(SYSTEMS / "race.md", "How to run it")
    named = recipe.read_recipe(recipe.find_recipe("race_hover"))["settings"]
    assert set(named) == {"verifier", "generator", "explainer_model"}
    recipes = {cls.recipe_of(cls.schema[setting]) for setting in named}
    assert recipes == {"train_verifier", "train_generator", "train_explainer"}
    assert all(one in text_of(SYSTEMS / "race.md") for one in recipes)
    with pytest.raises(ValueError, match="explainer_model"):
        hfcf.RACE(verifier="v", generator="g")


def test_race_edits_evidence_of_a_single_piece() -> None:
    given = row([("Jaws", "Jaws is a film of 1975.")], {"1975": "DATE"})
    stage = EditEvidence().with_fitted(save_artifact({"entities": {"DATE": {"Year": ["1994"]}}}))
    assert [piece["text"] for piece in stage(given)["edited_evidence"]] == ["Jaws is a film of 1994."]


def test_the_page_has_every_explainer() -> None:
    _, *shown = re.findall(r"^\| `(\w+)` ", section(SYSTEMS / "race.md", "Choose an explainer"), re.MULTILINE)
    assert shown == list(get_args(system_class("race").schema["explainer"].annotation))
    assert system_class("race").presets["offline"]["explainer"] == "gradient_x_input"


def test_race_rejects_not_enough_info() -> None:
    race = hfcf.RACE(verifier="v", generator="g", explainer="gradient_x_input")
    rows = hfcf.prepare(verification([NEI]), race)
    assert rows.map(race.explain, batched=True)[0]["status"]["reason"].startswith("a NOT ENOUGH INFO row has no label")


@pytest.mark.parametrize("name", ["race", "crossaug"])
@pytest.mark.parametrize("preset", ["hub", "offline"])
def test_a_verifier_of_ones_own_drops_the_judges_of_a_preset(name: str, preset: str, caplog: pytest.LogCaptureFixture) -> None:
    cls: type[System] = system_class(name)
    assert cls.presets[preset]["judges"]
    with caplog.at_level(logging.WARNING):
        own = cls.preset(preset, verifier="me/verifier")
    assert (own.judges, own.certainty) == ((), 0.0)
    assert "judges" in caplog.text
    kept = cls.preset(preset, verifier="me/verifier", judges=["me/judge"], certainty=0.6)
    assert (kept.judges, kept.certainty) == ((Model("me/judge"),), 0.6)


# --- CrossAug


def test_crossaug_passes_over_neutral_and_contradiction_rows() -> None:
    rows = [{"premise": "It is red.", "hypothesis": f"It is {one}.", "label": one} for one in ("neutral", "contradiction")]
    ds = hfcf.CrossAug()(hfcf.from_dataset(rows))
    assert [one["reason"] for one in ds["status"]] == ["only SUPPORTS rows are augmented"] * 2
    assert "only SUPPORTS rows are augmented" in text_of(SYSTEMS / "crossaug.md")


# --- RGF


def test_rejected_lists_candidates_of_accepted_sources() -> None:
    no = {"accepted": False, "stage": "round_trip", "reason": "fewer than 2 of 3 readers give the answer"}
    yes = {"accepted": True, "stage": "categorise", "reason": None}
    candidates = [{"question": "who", "status": no}, {"question": "what", "status": yes}]
    ds = Dataset.from_list([{"id": "1", "group_id": "1", "status": yes, "candidates": candidates}])
    lost = hfcf.rejected(ds)
    assert [(one["level"], one["stage"], one["reason"]) for one in lost] == [("candidate", no["stage"], no["reason"])]


def test_rgf_skips_the_round_trip_without_readers() -> None:
    assert hfcf.RGF.preset("offline", readers=()).round_trip.readers == ()
    with pytest.raises(ValueError, match="reader, generator, readers"):
        hfcf.RGF.preset("paper")


# --- baselines


def test_no_recipe_compares_all_baselines() -> None:
    assert "Not every system is compared with every baseline" in text_of(SYSTEMS / "baselines.md")
    baselines = {name for name in systems() if system_class(name).__module__.startswith("hfcf.systems.baselines.")}
    for name in (one for one in recipe.names() if one.startswith("compare_")):
        content = yaml.safe_load(recipe.find_recipe(name).read_text(encoding="utf-8"))
        methods = [content, *content.get("presets", {}).values()]
        used = {part["system"] for each in methods for part in each.get("methods", {}).values() if part and "system" in part}
        assert baselines - used, name


def test_the_controls_of_a_comparison_are_settings_of_a_method() -> None:
    shown = re.findall(r"^\| `(\w+): ", section(EXPLAIN / "statistics.md", "Controls"), re.MULTILINE)
    assert len(shown) == 5
    assert set(shown) <= set(MethodRecipe.model_fields)


# --- search and security


def test_the_search_is_exact_up_to_the_clauses_that_the_page_names() -> None:
    page = text_of(EXPLAIN / "constrained_search.md")
    ((exact, most),) = re.findall(r"exact up to (\d+) clauses in a row. Above that, up to the limit of (\d+)", page)
    assert (int(exact), int(most)) == (EXACT_CLAUSES, MOST_CLAUSES)
    assert hfcf.generate_constrained is generate_constrained


def test_weights_are_safetensors_or_gguf() -> None:
    assert set(pretrained._SAFE) == {".safetensors", ".gguf"}


def verification(labels: list[str]) -> Dataset:
    rows: list[dict[str, Any]] = [
        {"claim": f"It is {i}.", "evidence": ["It is a number."], "label": label} for i, label in enumerate(labels)
    ]
    return hfcf.from_dataset(rows)
