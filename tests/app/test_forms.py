"""What is pasted into a form becomes a row, or a sentence says why not."""

from __future__ import annotations

import pytest

from hfcf.app import choices, forms
from hfcf.core.task import Task, get_task

TASKS = forms.tasks_with_forms()
ids = {"ids": [task.name for task in TASKS]}


@pytest.mark.parametrize("task", TASKS, **ids)
def test_every_row_that_ships_goes_through_its_form_and_back(task: Task) -> None:
    rows = forms.demo_rows(task.name)
    assert len(rows) >= 10
    for number, row in enumerate(rows):
        ds, _ = forms.read_row(task, forms.example(task, number))
        own = [name for name in (*task.columns, *(["label"] if task.labelled else [])) if name not in ("head", "tail")]
        assert {name: ds[0][name] for name in own} == {name: row[name] for name in own}
        assert task.segments(ds[0]) == task.segments(row), "entities and answers are where they were"


def test_evidence_is_a_piece_a_line_with_or_without_a_title() -> None:
    texts = {"claim": " Rome is old. ", "evidence": "[Rome (city)] It is [very] old.\n\n  It is in Italy.  ", "label": "SUPPORTS"}
    ds, own = forms.read_row(get_task("verification"), texts)
    assert ds[0]["claim"] == "Rome is old."
    assert ds[0]["evidence"] == [
        {"title": "Rome (city)", "text": "It is [very] old."},
        {"title": "", "text": "It is in Italy."},
    ]
    assert own == {}


def test_entities_are_marked_in_either_form_and_order() -> None:
    task = get_task("relation")
    for sentence in ("[TAIL]eggs[/TAIL] in a [head]big box[/head].", "<e2>eggs</e2> in a <e1>big box</e1>."):
        row = forms.read_row(task, {"sentence": sentence, "label": "Content-Container(e2,e1)"})[0][0]
        assert row["tokens"] == ["eggs", "in", "a", "big", "box", "."]
        assert [(row[name]["start"], row[name]["end"]) for name in ("head", "tail")] == [(3, 5), (0, 1)]


def test_passages_are_a_setting_and_the_title_is_that_of_the_passage() -> None:
    texts = {"question": "who?", "context": "[Ada] Ada wrote it.", "answer": "Ada", "passages": "[Bob] Bob wrote that.\nNobody."}
    ds, own = forms.read_row(get_task("qa"), texts)
    assert (ds[0]["title"], ds[0]["context"], ds[0]["answers"]) == ("Ada", "Ada wrote it.", {"text": ["Ada"], "answer_start": [0]})
    assert own["passages"][:] == {"title": ["Bob", ""], "text": ["Bob wrote that.", "Nobody."]}


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("verification", {"claim": "  "}, "the claim is empty"),
        ("verification", {"evidence": "a" * 20_001}, "the evidence must have at most 20,000 characters, got 20,001"),
        ("verification", {"evidence": "a\n" * 201}, "the evidence must have at most 200 lines, got 201"),
        ("verification", {"claim": "…"}, "the claim"),
        ("relation", {"sentence": "No entity here."}, "entities have no places"),
        ("relation", {"sentence": "[head]Eggs[/head] came."}, "e2"),
        ("classification", {"text": "\x00"}, "the text"),
    ],
)
def test_what_can_not_be_worked_on_gets_a_sentence(name: str, changes: dict[str, str], sentence: str) -> None:
    task = get_task(name)
    with pytest.raises(ValueError, match=sentence):
        forms.read_row(task, {**forms.example(task, 0), **changes})


@pytest.mark.parametrize("task", TASKS, **ids)
def test_every_system_and_preset_has_settings_that_make_it(task: Task) -> None:
    for system in choices.systems_for(task):
        for preset in choices.presets_for(system, "offline"):
            shown = {setting.name: value for setting, value in choices.shown_settings(system, preset, task)}
            assert len(shown) <= choices.SHOWN
            assert "seed" in shown
            given = choices.read_settings(shown, "")
            values = choices.values_of(system, preset, task)
            assert given == {name: values[name] for name in shown}
            assert isinstance(choices.needs(system, preset, task, 50), str)


def test_the_recipe_that_ships_gives_the_first_system_and_its_small_search() -> None:
    task = get_task("verification")
    assert choices.systems_for(task)[:2] == ["race", "crossaug"]
    shown = {setting.name: value for setting, value in choices.shown_settings("race", "offline", task)}
    assert (shown["num_beams"], shown["max_new_tokens"]) == ("10", "32")
    assert "50 rows of demo" in choices.needs("race", "offline", task, 50)


def test_a_system_that_trains_says_so_and_judges_the_row_by_one_model() -> None:
    task = get_task("relation")
    assert choices.values_of("ccg", "offline", task)["folds"] == 1
    assert "trains 2 models" in choices.needs("ccg", "offline", task, 48)
    assert "trains" not in choices.needs("eda", "offline", task, 48)


def test_settings_are_read_as_the_library_reads_them() -> None:
    task = get_task("classification")
    settings = choices.read_settings({"seed": "7", "alpha": " "}, "num_augmentations = 2\n\nalpha=0.2")
    assert settings == {"seed": 7, "num_augmentations": 2, "alpha": 0.2}
    assert choices.make("eda", "paper", task, settings).seed == 7
    with pytest.raises(ValueError, match="lines such as"):
        choices.read_settings({}, "alpha")
    with pytest.raises(ValueError, match="the value of alpha can't be read"):
        choices.read_settings({}, "alpha=[")
    with pytest.raises(ValueError, match="alpha must be"):
        choices.make("eda", "paper", task, {"alpha": 7})
    with pytest.raises(TypeError, match="did you mean"):
        choices.make("eda", "paper", task, {"alpa": 0.1})
