"""CheckWhy's tables by one command: what is asked, stored and resumed, and which rows each table groups."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bad_server import Reply, say, starter
from structure_rows import dataset, row

from hfcf.core.recipe import RecipeError
from hfcf.engines.generator import ProgramWriter
from hfcf.metrics.scores.structures import Encoder
from hfcf.studies.compare import structures as module
from hfcf.studies.compare.dry_run import dry_run
from hfcf.studies.compare.recipe import parse_comparison
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.structure_page import as_row, markdown
from hfcf.studies.compare.structure_recipe import StructureComparison
from hfcf.studies.compare.structures import Rows, Study, columns_of, fill, open_study, read, shown
from hfcf.studies.human.export import export
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.structures.model import Structure
from hfcf.tasks.task_inputs import answer_text, program_text, view
from hfcf.training.structures import StructureTrainer

Tiny = Callable[[str], str]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "corpora"
DEMO = {"corpus": "structures", "data_dir": "recipes:demo_structures", "split": "train"}

pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two sentences are half as similar as equal ones; the names of the encoders that were asked."""
    asked: list[str] = []

    def match(self: Encoder, requests: Sequence[Any]) -> list[float]:
        asked.extend([self.model.name] * bool(requests))
        return [0.5 * min(map(len, request)) for request in requests]

    monkeypatch.setattr(Encoder, "match", match)
    monkeypatch.setattr(module, "check_weights", lambda *_: None)
    return asked


@pytest.fixture
def right_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that knows the right answers to the demo's rows, whatever it was trained on."""
    import hfcf
    from hfcf.core import recipe

    rows = hfcf.load("structures", data_dir=recipe.folder() / "demo_structures", split="train")
    known = {
        program_text(one): answer_text(one)
        for each in rows for task in (3, 4) for most in (None, 1)
        for one in [view(each, task, distractors_shown=most)]
    }  # fmt: skip

    def run(self: ProgramWriter, requests: Sequence[Any]) -> list[Any]:
        return [[{"text": known[text], "score": 0.0, "finished": True}] for text, _ in requests]

    monkeypatch.setattr(ProgramWriter, "run", run)


def content(tiny_model: Tiny, **changes: Any) -> dict[str, Any]:
    trained = {"max_length": 48, "max_steps": 1, "batch_size": 2}
    return {
        "compare": "structures", "name": "checked", "seeds": [13],
        "train": {**DEMO, "take": 8}, "test": {**DEMO, "skip": 30},
        "models": {
            "reader": {"kind": "classifier", "model": tiny_model("reader"), **trained},
            "writer": {"kind": "seq2seq", "model": tiny_model("t5"), **trained, "tasks": [3, 4]},
        },
        "distractors": {"writer": [1]}, "pipeline": {"writer": "reader"},
        "paper": {"about": "Made up.", "tables": {"Table 3: Tasks 1 and 2": {"BERT": [73.3, 72.9, 76.9, 76.9, 88.0, 88.0]}}},
        **changes,
    }  # fmt: skip


def write(tmp_path: Path, recipe: dict[str, Any]) -> Path:
    path = tmp_path / "checked.yaml"
    path.write_text(json.dumps(recipe), encoding="utf-8")
    return path


def parsed(recipe: dict[str, Any]) -> StructureComparison:
    result = parse_comparison(recipe)
    assert isinstance(result, StructureComparison)
    return result


def cells(results: Path) -> list[dict[str, Any]]:
    return list(Cells(results / "checked.jsonl").every())


@pytest.mark.usefixtures("right_programs")
def test_the_tables_by_one_command_that_can_be_killed(
    tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: list[str]
) -> None:
    path, out, results = write(tmp_path, content(tiny_model)), tmp_path / "out", tmp_path / "results"
    assert dry_run(path, results=results)["trainings"] == 4
    answers, asked = StructureTrainer.answers, list[Any]()

    def until_the_kill(self: StructureTrainer, *args: Any, **settings: Any) -> Any:
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append(self.task)
        return answers(self, *args, **settings)

    monkeypatch.setattr(StructureTrainer, "answers", until_the_kill)
    with pytest.raises(KeyboardInterrupt):
        compare(path, out, results=results)
    assert [cell["corpus"] for cell in cells(results)] == ["Task 1", "Task 2", "Task 3"]
    assert dry_run(path, results=results)["methods"]["writer"] == {"finished": 1, "to_compute": 3}
    before = (results / "checked.jsonl").read_bytes()
    asked.clear()
    asked += [0] * 100
    assert compare(path, out, results=results)["missing"] == 0
    assert asked[100:] == [4, 4, 4], "no finished cell is asked for again"
    assert (results / "checked.jsonl").read_bytes().startswith(before)
    assert not (out / "work").exists(), "models are kept until no cell is missing"
    found = {cell["corpus"]: cell for cell in cells(results)}
    assert list(found) == ["Task 1", "Task 2", "Task 3", "Task 4", "Task 4, at most 1 distractors", "Task 4, then Task 2"]
    assert [found[name]["es"] for name in list(found)[2:]] == [1.0] * 4
    assert found["Task 3"]["accuracy"] == 1.0 > found["Task 4, then Task 2"]["accuracy"]  # the reader gives these labels
    assert found["Task 4, then Task 2"]["accuracy"] == found["Task 2"]["accuracy"]  # the structures are the right ones
    assert "es" not in found["Task 1"]
    text = (out / "table.md").read_text(encoding="utf-8")
    titles = [line for line in text.splitlines() if line.startswith("## Table")]
    assert [title[3:10] for title in titles] == [f"Table {n}" for n in (3, 4, 4, 5, 6, 7, 8, 8)]
    assert "| *BERT, the paper* | 73.3 | 72.9 |" in text
    assert "| writer | 100.0 | 100.0 | – | – | – | – | 100.0 | 100.0 |" in text
    assert "Columns of 3 labels are not computed: " in text
    assert '"max_length": 48, "batch_size": 2' in text
    table = (out / "table.csv").read_text(encoding="utf-8")
    assert ",ss_low,1.0" in table
    # Answers that are stored are scored by another encoder without a model.
    asked.clear()
    again = compare(path, out, results=results, changes=["encoder=paper"], overwrite=True)
    assert (again["missing"], asked) == (0, [])
    assert len(cells(results)) == 12
    assert "SS is by microsoft/deberta-large" in (out / "table.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("right_programs")
def test_raters_get_what_models_wrote(tiny_model: Tiny, tmp_path: Path) -> None:
    models = {"writer": content(tiny_model)["models"]["writer"]}
    recipe = content(tiny_model, models=models, distractors={}, pipeline={})
    compare(write(tmp_path, recipe), tmp_path / "out", results=tmp_path / "results")
    folder = tmp_path / "out" / "answers"
    assert sorted(file.name for file in folder.iterdir()) == ["gold.jsonl", *(f"writer-Task-{n}-seed-13.jsonl" for n in (3, 4))]
    one, number = {"writer": str(folder / "writer-Task-4-seed-13.jsonl")}, len((folder / "gold.jsonl").read_text().splitlines())
    assert export(one, "checkwhy_validity", tmp_path / "validity")["lines"] == number
    assert export(one, "checkwhy_preference", tmp_path / "preference", sources=folder / "gold.jsonl")["lines"] == number
    line = json.loads((folder / "writer-Task-4-seed-13.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert Structure.from_row(line).leaves()
    assert all(info["id"].startswith("E") for info in line["evidence_info"])


def test_a_row_for_raters_has_the_pieces_that_are_used() -> None:
    structure = Structure(parse_arrows("(Sentence7, Sentence2) → Sentence9 → Claim").steps, {"Sentence7": "a", "Sentence9": "c"})
    made = as_row("1", "It melts.", structure)
    assert [(info["id"], piece["text"]) for info, piece in zip(made["evidence_info"], made["evidence"], strict=True)] == [
        ("E1", "a"), ("E2", "Sentence2"), ("E3", "c")
    ]  # fmt: skip
    assert made["structure"][1] == {"premises": ["E3"], "conclusion": "claim"}


# --- groups of rows


def made_study(tmp_path: Path) -> Study:
    rows = [
        row("one", "s1 → Claim", "SUPPORTS"),
        row("two", "(s1, s2) → s3 → Claim", "REFUTES"),
        row("again", "s1 → s3 s2 → s3 → Claim", "SUPPORTS"),
        row("none", "", "NOT ENOUGH INFO"),
    ]  # fmt: skip
    model = {"kind": "llm", "model": "llm:any"}
    recipe = {
        "compare": "structures", "name": "checked", "seeds": [13], "train": DEMO, "test": DEMO, "models": {"any": model},
        "distractors": {"any": [2, 4]},
    }  # fmt: skip
    return Study(parsed(recipe), Cells(tmp_path / "checked.jsonl"), {2: Rows(dataset(rows), dataset(rows))}, {3: "no file"})


def test_table_5_shows_fewer_distractors_of_the_same_rows(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    seen = {column: shown(study, ("any", 13, column)) for _, _, column in study.places if column.startswith("Task 4")}
    numbers = {column: [len(one.pieces) for one in views] for column, (_, views) in seen.items()}
    # One, two and two leaves, of seven pieces, and no conclusion.
    assert numbers == {
        "Task 4": [7, 6, 6], "Task 4, at most 2 distractors": [3, 4, 4], "Task 4, at most 4 distractors": [5, 6, 6]
    }  # fmt: skip
    assert all(list(rows["id"]) == ["one", "two", "again"] for rows, _ in seen.values())
    few, more = (set(seen[f"Task 4, at most {n} distractors"][1][0].pieces.values()) for n in (2, 4))
    assert few < more


def test_table_6_groups_rows_by_the_conclusions_of_the_true_structure(tmp_path: Path) -> None:
    study = made_study(tmp_path)
    place = ("any", 13, "Task 4")
    right = [answer_text(one) for one in shown(study, place)[1]]
    said = [["S", right[0]], ["R", right[1]], ["R", None]]
    cell = module._score(study, place, said)
    groups = {name: (part["rows"], part["scores"]["accuracy"][0], part["scores"]["es"][0]) for name, part in cell["groups"].items()}
    # Two steps: a conclusion of several steps is one, and what can't be read is empty and wrong.
    assert groups == {"all": (3, 0.6667, 0.6667), "1 step": (1, 1.0, 1.0), "2 steps": (2, 0.5, 0.5)}
    assert (cell["rows"], cell["majority"]) == (3, 0.6667)
    nothing = module._score(study, place, [["-", None]] * 3)
    assert nothing["groups"]["all"]["scores"]["accuracy"] == [0.0] * 3
    assert nothing["empty"] == 1.0
    stored = {
        **cell,
        "method": "any",
        "seed": 13,
        "corpus": "Task 4",
        "age": "",
        "unreadable": 1,
        "cut": 0,
        "cpu_seconds": 1,
        "train_rows": 0,
    }
    text = markdown(study, [stored], "hfcf compare")
    assert "| any | 2 | 2 | 50.0 |" in text
    assert "Columns of 3 labels are not computed: no file" in text


# --- what is there, and what is wanted


def release(folder: Path, *names: str) -> Path:
    """CheckWhy's files by these names, each with the fixture's two rows as they would be of other claims, and a broken one."""
    folder.mkdir()
    for name in names:
        records = json.loads((FIXTURES / "checkwhy" / "train.json").read_text(encoding="utf-8"))
        for record in records:
            record |= {"checkwhy-id": name, "claim": f"{name} {record['claim']}"}
            for piece in record["evidences"]:
                for key in ("evidence", "text", "sentence"):
                    if key in piece:
                        piece[key] = f"{name} {piece[key]}"
        (folder / f"{name}.json").write_text(json.dumps([*records, {**records[0], "evidences": 3}]), encoding="utf-8")
    return folder


def test_the_authors_files_are_read_as_far_as_they_are_there(tmp_path: Path) -> None:
    source = {"corpus": "checkwhy", "data_dir": "checkwhy", "on_error": "reject"}
    models = {"GPT": {"kind": "llm", "model": "llm:gpt"}}
    recipe = parsed(
        {"compare": "structures", "name": "checked", "seeds": [1, 2], "data_dir": str(tmp_path), "models": models,
         "train": {**source, "split": "train"}, "test": {**source, "split": "test"}}
    )  # fmt: skip
    with pytest.raises(RecipeError, match=r"train, 2 labels: .*checkwhy"):
        open_study(recipe, tmp_path)
    release(tmp_path / "checkwhy", "train")
    with pytest.raises(RecipeError, match=r"test, 2 labels: .*test"):
        open_study(recipe, tmp_path)
    shutil.rmtree(tmp_path / "checkwhy")
    release(tmp_path / "checkwhy", "train", "test")
    study = open_study(recipe, tmp_path)
    [(why, number)] = study.rows[2].refused["test"].items()
    assert (number, "'evidences'" in why) == (1, True)
    assert "3 labels" in study.absent[3]
    assert [column for _, _, column in study.places] == ["Task 1", "Task 2", "Task 3", "Task 4"]
    text = markdown(study, [], "hfcf compare")
    assert "2 labels, test: 1 records can't be read, and are left out: " in text
    assert "Columns of 3 labels are not computed: train, 3 labels: " in text


def test_a_language_model_without_an_endpoint_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_LLM_URL", raising=False)
    study = made_study(tmp_path)
    assert (study.requested, len(study.places)) == ([], 6)
    assert "any is not asked: HFCF_LLM_URL names no endpoint." in markdown(study, read(study), "hfcf compare")
    monkeypatch.setenv("HFCF_LLM_URL", "http://localhost:1/v1")
    assert len(study.requested) == 6


def test_a_language_model_is_asked_for_every_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: list[str]) -> None:
    study = made_study(tmp_path)

    def answer(_: int, asked: dict[str, Any]) -> Reply:
        prompt = asked["messages"][-1]["content"]
        program = 'one_to_one_linking(Sentence1, Claim)\nprint("SUPPORTS")'
        return say(json.dumps({"thoughts": "So.", **({"label": "SUPPORTS"} if '"label": "…"' in prompt else {"program": program})}))

    with starter(monkeypatch) as start:
        start(answer)
        fill(study, tmp_path / "work")
    found = {cell["corpus"]: cell for cell in read(study)}
    assert (list(found), study.missing) == ([column for _, _, column in study.places], [])
    assert {cell["accuracy"] for cell in found.values()} == {0.6667}
    assert found["Task 1"]["predicted"] == "SSS"
    assert 0 < found["Task 4, at most 2 distractors"]["ss"] < 1
    assert all(cell["train_rows"] == 0 for cell in found.values())


def test_what_a_recipe_can_not_ask(tiny_model: Tiny) -> None:
    reader = content(tiny_model)["models"]["reader"]
    for changes, told in (
        (
            {"models": {"reader": {**reader, "tasks": [3]}}, "distractors": {}, "pipeline": {}},
            "a classifier does tasks 1 and 2, got 3",
        ),
        ({"models": {"reader": {**reader, "kind": "llm"}}, "distractors": {}, "pipeline": {}}, "kind: llm is of models llm:NAME"),
        ({"pipeline": {"writer": "raeder"}}, "pipeline: unknown key 'raeder'"),
        ({"encoder": "bleurt"}, "encoder must be 'offline' or 'paper'"),
        ({"seed": [1]}, "unknown key 'seed'"),
    ):
        with pytest.raises(RecipeError, match=told):
            parsed(content(tiny_model, **changes))
    assert [column.name for column in columns_of(parsed(content(tiny_model)), "reader")] == [
        "Task 1, three labels", "Task 1", "Task 2"
    ]  # fmt: skip
