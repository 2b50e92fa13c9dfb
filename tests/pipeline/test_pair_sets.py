"""`hfcf evaluate --pairs` and `hfcf coverage`: pairs of a run and of a file in columns of one's own, and the gate's exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from made import copied
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.model import Model, named
from hfcf.core.pairs import sources
from hfcf.core.trainer import Evaluation
from hfcf.pipeline.pair_sets import read_pairs

COLUMNS = "columns={claim: statement, evidence: passage, label: verdict}"
LABELS = "labels={ja: SUPPORTS, nein: REFUTES}"
MINE = [
    {"id": "1", "statement": "The bridge has 20 arches.", "passage": "It has 20 arches.", "verdict": "ja", "source_id": ""},
    {"id": "1b", "statement": "The bridge has 30 arches.", "passage": "It has 20 arches.", "verdict": "nein", "source_id": "1"},
    {"id": "2", "statement": "It opened in 1883.", "passage": "It opened in May 1883.", "verdict": "ja", "source_id": None},
    {"id": "2b", "statement": "It never opened in 1883.", "passage": "It opened in May 1883.", "verdict": "nein", "source_id": "2"},
]


def write(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


@pytest.fixture
def says_supports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A model that says SUPPORTS to every row without "never"; the list counts the rows of each call."""
    asked: list[int] = []

    def evaluate(rows: Dataset, model: Model, **_: Any) -> Evaluation:
        asked.append(len(rows))
        predicted = ["REFUTES" if "never" in row["claim"] else "SUPPORTS" for row in rows]
        return Evaluation({"rows": len(rows)}, list(rows["label"]), predicted)

    monkeypatch.setattr("hfcf.training.consistency.evaluate", evaluate)
    return asked


def run(*command: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, command)
    if answer.exception and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer.exit_code, " ".join(answer.output.split())


def test_a_gate_passes_and_fails_by_its_exit_code(
    says_supports: list[int], tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    file, out, predictions = write(tmp_path / "mine.jsonl", MINE), tmp_path / "scores.json", tmp_path / "answers.jsonl"
    command = ["evaluate", tiny_model("classifier"), "--pairs", file, "--set", COLUMNS, "--set", LABELS]
    assert run(*command, "--at-least", "0.5")[0] == 0
    assert run(*command, "--at-least", "0.6", "--out", str(out), "--predictions", str(predictions))[0] == 1
    assert says_supports == [4, 4]
    numbers = json.loads(out.read_text())
    assert (numbers["pairs"], numbers["source"], numbers["counterfactual"], numbers["both"]) == (2, 1.0, 0.5, 0.5)
    assert {kind: part["both"] for kind, part in numbers["kind"].items()} == {"negation": 1.0, "number": 0.0}
    first, second = (json.loads(line) for line in predictions.read_text().splitlines())
    assert (first["id"], first["source_id"], first["kinds"]) == ("1b", "1", ["number"])
    assert first["counterfactual"] == {"gold": "REFUTES", "prediction": "SUPPORTS", "right": False}
    assert second["counterfactual"]["right"] is True


def test_the_pairs_of_a_run_have_their_originals(
    says_supports: list[int], tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    folder = copied(tmp_path / "run")
    pairs = read_pairs(str(folder))
    assert len(pairs) == 40
    assert set(pairs["label"]) == {"REFUTES"}
    assert set(sources(pairs)["label"]) == {"SUPPORTS"}
    code, told = run("evaluate", tiny_model("classifier"), "--pairs", str(folder), "--at-least", "0.1", "--limit", "10")
    assert code == 1
    assert "changed: claim" in told
    assert "edited: number" in told


@pytest.mark.usefixtures("says_supports")
def test_a_model_that_judged_the_pairs_is_told_so(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    folder, out = copied(tmp_path / "run"), tmp_path / "scores.json"
    model = tiny_model("classifier")
    command = ["evaluate", model, "--pairs", str(folder), "--limit", "4", "--out", str(out), "--overwrite"]
    for judge in (False, True):
        told = run(*command)[1]
        assert ("had to confirm these pairs" in " ".join(told.split())) == judge
        assert json.loads(out.read_text())["judge"] == judge
        content = json.loads((folder / "run.json").read_text())
        content["models"]["judges[0]"] = named(Model(model))
        (folder / "run.json").write_text(json.dumps(content))
    file = write(tmp_path / "mine.jsonl", MINE)
    assert run("evaluate", model, "--pairs", file, "--set", COLUMNS, "--set", LABELS, "--out", str(out), "--overwrite")[0] == 0
    assert json.loads(out.read_text())["judge"] is False


def test_an_original_of_several_counterfactuals_is_asked_once(says_supports: list[int]) -> None:
    rows = [{"id": "o", "claim": "It has 2 arches.", "evidence": [{"title": "", "text": "It has 2."}], "label": "SUPPORTS"}]
    new = [{**rows[0], "id": f"n{i}", "claim": f"It has {i} arches.", "label": "REFUTES", "source_id": "o"} for i in (3, 4, 5)]
    numbers = hfcf.consistency(hfcf.pair(Dataset.from_list(new), Dataset.from_list(rows)), "a-model")
    assert says_supports == [4]
    assert (numbers["pairs"], numbers["source"], numbers["both"]) == (3, 1.0, 0.0)
    assert numbers["both_interval"] == pytest.approx([0.0, 0.7935], abs=1e-4), "Wilson's interval of one source"


def test_pairs_that_a_model_cannot_answer_are_left_out_by_reason(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    unknown = [{**MINE[0], "id": "3", "verdict": "vielleicht"}, {**MINE[1], "id": "3b", "source_id": "3"}]
    file = write(tmp_path / "mine.jsonl", [*MINE, *unknown])
    labels = "labels={ja: SUPPORTS, nein: REFUTES, vielleicht: NOT ENOUGH INFO}"
    out = tmp_path / "scores.json"
    model = tiny_model("classifier")
    assert run("evaluate", model, "--pairs", file, "--set", COLUMNS, "--set", labels, "--ways", "2", "--out", str(out))[0] == 0
    numbers = json.loads(out.read_text())
    assert numbers["pairs"] == 2
    assert numbers["left_out"] == {"ways=2 leaves NOT ENOUGH INFO out": 1}


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([{**row, "of": row["source_id"]} | {"source_id": None} for row in MINE], [], "no row names its original"),
        ([{key: value for key, value in row.items() if key != "source_id"} for row in MINE], [], "--set source_id=COLUMN"),
        ([*MINE, {**MINE[0], "id": "9", "statement": ""}], [], "row 5 can't be read"),
        ([{**MINE[1], "source_id": "nowhere"}, MINE[0]], [], "'nowhere', which is not an id of the originals"),
        (MINE, ["--set", "lables={}"], "did you mean 'labels'"),
    ],
)  # fmt: skip
def test_bad_pairs_are_errors_with_the_cure(
    rows: list[dict[str, Any]], options: list[str], told: str, tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    file = write(tmp_path / "mine.jsonl", rows)
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        run("coverage", file, "--set", COLUMNS, "--set", LABELS, *options)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"no file nowhere\.jsonl"):
        read_pairs("nowhere.jsonl")


def test_options_that_do_not_fit_are_refused(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    file = write(tmp_path / "mine.jsonl", MINE)
    for options in ([], ["--corpus", file, "--pairs", file], ["--corpus", file, "--at-least", "0.5"]):
        with pytest.raises(ValueError, match="--pairs"):
            run("evaluate", tiny_model("classifier"), *options)


def test_coverage_names_empty_kinds_first(tmp_path: Path) -> None:
    named = [{**row, "original": row["source_id"]} for row in MINE]
    for row in named:
        del row["source_id"]
    file, out = write(tmp_path / "mine.jsonl", named), tmp_path / "coverage.json"
    code, told = run("coverage", file, "--set", COLUMNS, "--set", LABELS, "--set", "source_id=original", "--json", str(out))
    assert code == 0
    content = json.loads(out.read_text())
    assert content["pairs"] == 2
    assert list(content["kinds"])[-2:] == ["negation", "number"]
    assert content["kinds"]["number"] == {"pairs": 1, "share": 0.5, "example": ["20", "30"]}
    assert all(part["pairs"] == 0 for part in list(content["kinds"].values())[:-2])
    assert "date" in told


def test_coverage_of_relation_rows_and_questions() -> None:
    entity = {"start": 1, "end": 2, "type": None}
    kept, put = (["The", "honey", "was", *words, "a", "jar", "."] for words in (("kept", "in"), ("put", "into")))
    row = {
        "id": "a", "tokens": kept, "head": entity, "tail": {"start": 6, "end": 7, "type": None},
        "label": "Content-Container(e1,e2)",
    }  # fmt: skip
    new = {
        **row,
        "id": "b",
        "tokens": put,
        "label": "Entity-Destination(e1,e2)",
        "source_id": "a",
    }
    found = hfcf.coverage(hfcf.pair(Dataset.from_list([new]), Dataset.from_list([row])))
    assert {kind: part["pairs"] for kind, part in found.items() if part["pairs"]} == {"relation": 1}
    asked = {
        "id": "a", "title": "Bled", "context": "Bled lies in Slovenia.", "question": "How many lakes has Bled?",
        "answers": {"text": ["Slovenia"], "answer_start": [13]},
    }  # fmt: skip
    other = {
        "id": "b", "title": "Oslo", "context": "Oslo is in Norway.", "question": "How few lakes has Bled?",
        "answers": {"text": ["Norway"], "answer_start": [11]}, "source_id": "a",
    }  # fmt: skip
    found = hfcf.coverage(hfcf.pair(Dataset.from_list([other]), Dataset.from_list([asked])))
    assert {kind for kind, part in found.items() if part["pairs"]} == {"quantifier"}
    review = {"id": "a", "text": "A dull film.", "label": "neg"}
    new_review = {"id": "b", "text": "A bright film.", "label": "pos", "source_id": "a"}
    found = hfcf.coverage(hfcf.pair(Dataset.from_list([new_review]), Dataset.from_list([review])))
    assert {kind for kind, part in found.items() if part["pairs"]} == {"other"}


def test_pairs_without_ids_of_counterfactuals_and_with_numbers_that_pandas_made_floats(tmp_path: Path) -> None:
    rows = [{**row, "id": None} if row["source_id"] else row for row in MINE]
    loading = {
        "columns": {"claim": "statement", "evidence": "passage", "label": "verdict"},
        "labels": {"ja": "SUPPORTS", "nein": "REFUTES"},
    }
    assert len(read_pairs(write(tmp_path / "pairs.jsonl", rows), loading)) == 2
    names = [{**row, "id": i + 1, "source_id": float(i) if row["source_id"] else None} for i, row in enumerate(MINE)]
    found = read_pairs(write(tmp_path / "floats.jsonl", names), loading)
    assert [row["id"] for row in found["source"]] == ["1", "3"]
    lines = ["id,statement,passage,verdict,source_id"]
    lines += [f"{row['id']},{row['statement']},{row['passage']},{row['verdict']},{row['source_id'] or ''}" for row in names]
    (tmp_path / "floats.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [row["id"] for row in read_pairs(str(tmp_path / "floats.csv"), loading)["source"]] == ["1", "3"]
