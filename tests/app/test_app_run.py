"""What is pasted into a form becomes a row, its run tells what each stage did, and what a person pasted stays text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import load_dataset

from hfcf.app import run as runs
from hfcf.core.task import Task, get_task
from hfcf.corpora.custom.load import read_one
from hfcf.hub.render import render

TASKS = runs.tasks_with_forms()


def finish(task: str, system: str = "eda", preset: str = "paper", settings: str = "", **changes: str) -> runs.ShownRun:
    texts = {**runs.example(get_task(task), 0), **changes}
    *_, last = runs.run(get_task(task), texts, system, preset, settings)
    return last


def write_html(run: runs.ShownRun) -> str:
    return "".join(render("run.html.jinja", package="hfcf.app", part=part, run=run) for part in ("made", "steps"))


@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_every_row_that_ships_goes_through_its_form_and_back(task: Task) -> None:
    rows = runs.demo_rows(task.name)
    assert len(rows) >= 10
    for number, row in enumerate(rows):
        [read] = read_one([task.read_form(runs.example(task, number))], task.name)
        assert task.segments(read) == task.segments(row), "entities and answers are where they were"
        assert task.outcome(read) == task.outcome(row)


@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_every_system_and_preset_has_settings_that_make_it(task: Task) -> None:
    for system in runs.systems_for(task):
        for preset in runs.presets_for(system, "offline"):
            settings = runs.read_settings(runs.write_settings(system, preset, task))
            assert "seed" in settings
            assert len(settings) <= runs.SETTINGS
            assert isinstance(runs.describe_needs(system, preset, task), str)


def test_a_run_at_once_after_a_change_of_system_takes_that_systems_settings() -> None:
    task = get_task("verification")
    race, eda = runs.write_settings("race", "offline", task), runs.write_settings("eda", "paper", task)
    assert runs.settle_fields(task, "race", "offline", "seed=7", runs.owner("race", "offline")) == ("offline", "seed=7")
    assert runs.settle_fields(task, "eda", "hub", race, runs.owner("race", "hub")) == ("paper", eda)
    last = finish("verification", *("eda", *runs.settle_fields(task, "eda", "hub", race, runs.owner("race", "hub"))))
    assert (last.state, last.error) == ("done", "")


def test_the_recipe_that_ships_gives_the_first_system_and_its_small_search() -> None:
    task = get_task("verification")
    assert runs.systems_for(task)[:2] == ["race", "crossaug"]
    assert runs.first_settings("race", "offline", task)["max_new_tokens"] == 32
    assert "50 rows of demo" in runs.describe_needs("race", "offline", task)


def test_a_system_that_trains_says_so_and_judges_the_row_by_one_model() -> None:
    task = get_task("relation")
    assert runs.first_settings("ccg", "offline", task)["folds"] == 1
    assert "trains" in runs.describe_needs("ccg", "offline", task)
    assert "trains" not in runs.describe_needs("eda", "offline", task)


def test_a_run_goes_from_the_form_to_counterfactuals(tmp_path: Path) -> None:
    pytest.importorskip("gradio")
    from hfcf.app.page import write_files

    run = finish("classification", settings="num_augmentations = 2\n\nalpha=0.3")
    assert (run.state, run.error) == ("done", "")
    assert {step.state for step in run.steps} == {"done"}
    assert run.rows is not None
    assert len(run.made) == len(run.rows) >= 1
    files = write_files(run.rows, get_task("classification").read_form(runs.example(get_task("classification"), 0)), tmp_path)
    rows, pasted = (load_dataset("json", data_files=str(file), split="train") for file in files)
    assert all(row["source_id"] and row["edits"] for row in rows)
    assert len(pasted) == len(rows)


def test_stages_are_told_as_they_run() -> None:
    task = get_task("classification")
    states = [[step.state for step in run.steps] for run in runs.run(task, runs.example(task, 0), "eda", "paper", "")]
    assert states[-1] == ["done"] * len(states[-1])


@pytest.mark.parametrize(
    ("task", "changes", "part"),
    [
        ("verification", {"claim": "…"}, "claim"),
        ("relation", {"sentence": "No entity here."}, "<e1>"),
        ("classification", {"text": " "}, "text"),
    ],
)
def test_a_mistake_is_a_sentence(task: str, changes: dict[str, str], part: str) -> None:
    run = finish(task, **changes)
    assert run.state == "failed"
    assert part in run.error
    assert "Traceback" not in run.error


@pytest.mark.parametrize(("settings", "part"), [("alpha", "alpha"), ("alpha=[", "alpha"), ("alpha=7", "7"), ("alpa=1", "alpha")])
def test_a_wrong_setting_is_a_sentence(settings: str, part: str) -> None:
    assert part in finish("classification", settings=settings).error


def test_a_fault_of_the_program_is_not_shown_but_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("sk-secret")

    monkeypatch.setattr(runs, "make_system", fail)
    run = finish("classification")
    assert "ZeroDivisionError" in run.error
    assert "sk-secret" not in run.error
    assert any(record.exc_info for record in caplog.records)


def test_what_is_pasted_is_text() -> None:
    evil = "It is <img src=x onerror=pwn()> a good film <script>pwn()</script> {{ 7*7 }}."
    shown = write_html(finish("classification", text=evil, label="<b>good</b>", settings="alpha=0.3"))
    assert "<article" in shown
    for part in ("<img", "<script", "<b>good", "49"):
        assert part not in shown


def test_what_a_stage_marks_is_marked() -> None:
    task = get_task("verification")
    text = "Roy Scheider was born in Ohio."
    row = {"claim": text, "evidence": [{"title": "Ohio", "text": "Ohio is a state."}], "label": "SUPPORTS", "entities": [
        {"field": "claim", "piece": -1, "start": 0, "end": 12, "text": "Roy Scheider", "type": "PERSON"},
        {"field": "evidence.title", "piece": 0, "start": 0, "end": 4, "text": "Ohio", "type": "GPE"},
    ]}  # fmt: skip

    stage = SimpleNamespace(outputs={"entities": None})
    column, shown = runs._mark_texts(task, stage, row)  # type: ignore[arg-type]
    assert column == "entities"
    assert '<mark class="found" title="PERSON">Roy Scheider</mark> was born' in shown
    assert '<b><mark class="found" title="GPE">Ohio</mark></b>' in shown
