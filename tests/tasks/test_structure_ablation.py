"""The ablation of Tasks 1 and 2: what each arm shows of a row, and what its table counts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from structure_rows import SENTENCES, row

from hfcf.metrics.shared.bootstrap import mean_interval, repeated_interval
from hfcf.studies.compare.results import Cells
from hfcf.tasks.structures.model import Structure
from hfcf.tasks.task_inputs import evidence_text, view

ROOT = Path(__file__).parents[2]
ROW = row("sup", "(s1, s2) → s3 → s4 (s4, s5) → Claim", "SUPPORTS")
"""Useful leaves s1, s2 and s5, conclusions s3 and s4; s6 and d1 are distractors."""


@pytest.fixture
def arms(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("structure_arms")


@pytest.fixture
def script(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("structure_table")


def shown(arms: ModuleType, name: str) -> str:
    arm = next(arm for arm in arms.ARMS if arm.name == name)
    return evidence_text(view(arm.change(ROW), arm.task))


def names(text: str) -> set[str]:
    return {name for name, sentence in SENTENCES.items() if sentence in text}


@pytest.mark.parametrize(
    ("arm", "sentences"),
    [
        ("task 1", {"s1", "s2", "s5", "s6", "d1"}),
        ("task 1, distractors not denied", {"s1", "s2", "s5", "s6", "d1"}),
        ("task 1, no distractors", {"s1", "s2", "s5"}),
        ("task 1, useful pieces marked", {"s1", "s2", "s5", "s6", "d1"}),
        ("task 1, conclusions added", set(SENTENCES)),
        ("task 1, conclusions added, useful pieces marked", set(SENTENCES)),
        ("task 1, premises of the last step alone", {"s4", "s5"}),
        ("task 2, links permuted", set(SENTENCES)),
        ("task 2, conclusions removed", {"s1", "s2", "s5", "s6", "d1"}),
        ("task 2", set(SENTENCES)),
    ],
)
def test_the_sentences_that_an_arm_shows(arms: ModuleType, arm: str, sentences: set[str]) -> None:
    text = shown(arms, arm)
    assert names(text) == sentences
    assert ("->" in text) == arm.startswith("task 2")


def test_task_1_and_task_2_are_those_of_the_library(arms: ModuleType) -> None:
    assert shown(arms, "task 1") == evidence_text(view(ROW, 1))
    assert shown(arms, "task 2") == evidence_text(view(ROW, 2))


def test_marks_tell_premises_from_conclusions(arms: ModuleType) -> None:
    pieces = {text.rpartition(": ")[2]: text.rpartition(": ")[0] for text in shown(arms, arms.ARMS[5].name).split(" ; ")}
    marks = {name: pieces[sentence] for name, sentence in SENTENCES.items()}
    used = {"s1": "premise", "s2": "premise", "s3": "conclusion", "s4": "conclusion", "s5": "premise"}
    assert marks == {**used, "s6": "", "d1": ""}


def test_permuted_links_use_the_same_sentences_in_another_structure(arms: ModuleType) -> None:
    permuted = arms.permute_links(ROW)
    old, new = Structure.from_row(ROW), Structure.from_row(permuted)
    assert old != new
    assert {*old.nodes()} == {*new.nodes()}
    assert [len(step.premises) for step in old.steps] == [len(step.premises) for step in new.steps]
    assert {info["id"] for info in permuted["evidence_info"] if info["leaf"]} == {*new.leaves()}
    one = row("one", "(s1, s2) → Claim", "SUPPORTS")
    assert Structure.from_row(arms.permute_links(one)) == Structure.from_row(one)


def test_links_name_conclusions_whose_sentences_are_removed(arms: ModuleType) -> None:
    assert "conclusion 2 & Melted ice waters the seeds. -> claim" in shown(arms, "task 2, conclusions removed")


def test_rules_count_denials_in_what_is_shown(arms: ModuleType) -> None:
    denied = arms.rewrite(ROW, lambda info, text: text.replace("is in", "is not in") if info["id"] == "d1" else text)
    denied = arms.rewrite(denied, lambda info, text: text.replace("gives", "does not give") if info["id"] == "s2" else text)
    task_1 = arms.leaves_only(denied)
    assert (arms.count_denials(task_1), arms.count_used(task_1)) == ((0, 2), (0, 1))
    assert arms.count_denials(arms.no_distractors(denied)) == (0, 1)
    assert arms.count_denials({**task_1, "claim": "It is not cold."}) == (1, 2)


def stored(folder: Path, version: str, answers: dict[str, list[list[str]]]) -> Cells:
    """Cells of two folds of two rows each: of each arm a list of seeds, each with the answers of its folds."""
    cells, common = Cells(folder / "cells.jsonl"), {"versions": {"structure_tasks": version}}
    for fold in (0, 1):
        cells.put(f"rows {fold}", {"kind": "rows", "fold": fold, "groups": [fold, fold], "steps": [1, 2], **common})
    for name, seeds in answers.items():
        cells.put(f"rule {name}", {"kind": "rule", "method": name, "rule": "a rule", "right": [1, 1, 1, 0], **common})
        for seed, folds in enumerate(seeds):
            for fold, predicted in enumerate(folds):
                made: dict[str, Any] = {"method": name, "model": "m", "epochs": 2.0, "seed": seed, "fold": fold}
                scores = {"train_accuracy": 1 - fold / 2, "gold": "SR", "ids": str(fold), "predicted": predicted}
                machine = {"device": "cpu", "torch": "2", "transformers": "5"}
                cells.put(f"{name} {seed} {fold}", {"kind": "run", **made, **scores, **machine, **common})
    return cells


def test_a_line_counts_whole_seeds_and_the_gain_is_paired(script: ModuleType, tmp_path: Path) -> None:
    answers = {"task 1": [["SS", "RR"], ["SR", "RS"], ["SR"]], "task 2": [["SR", "SR"], ["SR", "SS"]]}
    first, second = script.lines(stored(tmp_path, script.VERSION, answers))
    line = dict(zip(script.COLUMNS, first, strict=True))
    assert (line["seeds"], line["rows"], line["accuracy"]) == ("2", "4", "0.500")  # the third seed lacks a fold
    assert (line["one step"], line["more steps"]) == ("0.500", "0.500")
    assert line["training rows (lowest)"] == "0.750 (0.500)"
    assert line["best rule on what is shown"] == "0.750 (a rule)"
    assert line["model where the rule errs"] == "0.500 of 1 rows"
    assert line["task 2 less this"].startswith("+0.375 (")
    assert dict(zip(script.COLUMNS, second, strict=True))["task 2 less this"] == ""


def test_an_interval_over_seeds_is_wider_where_seeds_differ() -> None:
    groups = [0, 1, 2, 3]
    same, differing = [[1.0, 0.0, 1.0, 0.0]] * 2, [[1.0, 1.0, 1.0, 1.0], [0.0] * 4]
    mean, low, high = repeated_interval(same, groups)
    assert (mean, low, high) == pytest.approx((*mean_interval(same[0], groups),), abs=0.01)
    assert repeated_interval(differing, groups) == (0.5, 0.0, 1.0)


def test_cells_of_another_version_are_not_in_the_table(script: ModuleType, tmp_path: Path) -> None:
    cells = stored(tmp_path, "0", {"task 2": [["SR", "SR"]]})
    assert script.lines(cells) == []
    assert script.notes(cells) == ""


def test_the_figures_of_the_benchmark_s_text_are_those_of_the_table(script: ModuleType) -> None:
    text = ast.get_docstring(ast.parse((ROOT / "benchmarks" / "structure_tasks.py").read_text(encoding="utf-8"))) or ""
    table = " ".join(" ".join(line) for line in script.lines(Cells(script.RESULTS)))
    figures = re.findall(r"[+−]?\d\.\d{3}", text)
    assert figures
    assert [figure for figure in figures if figure not in table] == []


def test_the_stored_results_make_the_table_of_the_documentation(script: ModuleType, arms: ModuleType) -> None:
    lines = [dict(zip(script.COLUMNS, line, strict=True)) for line in script.lines(Cells(script.RESULTS))]
    assert {arm.name for arm in arms.ARMS} <= {line["shown"] for line in lines if line["model"] == "classifier"}
    trained = [line for line in lines if line["model"] != "no model"]
    assert all(int(line["seeds"]) >= 1 and line["rows"] == "374" for line in trained)
    written = [json.loads(line) for line in script.RESULTS.read_text(encoding="utf-8").splitlines()]
    runs = [cell for cell in written if cell.get("kind") == "run"]
    notes = script.notes(Cells(script.RESULTS)).split("; ")
    assert sum(int(note.split()[0]) for note in notes) == len(runs)
