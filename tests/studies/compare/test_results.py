"""The file of finished cells: exact, shared by processes, and robust against what a kill leaves."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from hfcf.studies.compare.results import Cells


def cell(method: str, predicted: str, **more: Any) -> dict[str, Any]:
    letters = {"REFUTES": "R", "SUPPORTS": "S"}
    return {"method": method, "gold": "SRS", "ids": "a1", "letters": letters, "predicted": predicted, **more}


def test_what_is_put_is_read_again_exactly(tmp_path: Path) -> None:
    dev = {"rows": 2, "micro_f1": 1 / 3, "ids": "d1", "gold": "RS", "letters": {"REFUTES": "R"}, "predicted": "RR"}
    whole = cell("RACE w/ (c, E′)", "SSS", accuracy=0.1 + 0.2, rows=3, best=None, dev=dev)
    Cells(tmp_path / "one.jsonl").put("k", whole)
    again = Cells(tmp_path / "one.jsonl").get("k")
    assert again == whole
    assert (type(again["rows"]), again["accuracy"]) == (int, 0.1 + 0.2)


def test_open_answers_are_stored_as_they_are(tmp_path: Path) -> None:
    whole = {"gold": [["Rome", "the city"], ["1871"]], "ids": "q", "predicted": ["Rome", ""], "exact": 0.5}
    Cells(tmp_path / "one.jsonl").put("k", whole)
    assert Cells(tmp_path / "one.jsonl").get("k") == whole


def test_true_answers_are_stored_once_for_a_set(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    Cells(file).put("a", cell("none", "SSS"))
    Cells(file).put("b", cell("RACE", "SRS"))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [next(iter(line)) for line in lines] == ["set", "cell", "cell"]
    assert sum("gold" in line for line in lines) == 1
    other = {**cell("EDA", "SSS"), "letters": {"REFUTES": "S", "SUPPORTS": "R"}}
    Cells(file).put("c", other)
    assert Cells(file).get("c") == other, "the same rows with other letters are a set of their own"


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_a_kill_cut_off_is_lost_and_nothing_else(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "one.jsonl"
    Cells(file).put("a", cell("none", "SSS"))
    kept = file.read_bytes()
    Cells(file).put("b", cell("RACE", "SRS"))
    file.write_bytes(file.read_bytes()[:-cut])
    torn = Cells(file)
    assert torn.get("a") == cell("none", "SSS")
    assert torn.get("b") is None
    torn.put("c", cell("EDA", "RRR"))
    assert [Cells(file).get(key) is not None for key in "abc"] == [True, False, True]
    assert file.read_bytes().startswith(kept)
    assert all(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def test_a_line_in_the_middle_that_is_no_cell_is_named(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    Cells(file).put("a", cell("none", "SSS"))
    file.write_text("<<<<<<< HEAD\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"one\.jsonl: not a finished cell: .*HEAD"):
        Cells(file).get("a")


def test_a_reader_sees_what_others_append(tmp_path: Path) -> None:
    reader, writer = Cells(tmp_path / "one.jsonl"), Cells(tmp_path / "one.jsonl")
    assert reader.get("a") is None
    writer.put("a", cell("none", "SSS"))
    assert reader.get("a") == cell("none", "SSS")
    reader.put("b", cell("RACE", "SRS"))
    assert writer.get("b") == cell("RACE", "SRS")


def append(file: Path, name: str) -> None:
    for i in range(20):
        Cells(file).put(f"{name}{i}", cell(name, "SSS", number=i))


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "results" / "one.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=append, args=(file, name)) for name in "xyz"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    cells = Cells(file)
    assert all(cells.get(f"{name}{i}") == cell(name, "SSS", number=i) for name in "xyz" for i in range(20))
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert (len(lines), sum("set" in line for line in lines)) == (61, 1)
