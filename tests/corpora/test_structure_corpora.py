"""The corpora of argument structures, and of the pairs that they are made from: layouts, what goes wrong, the real files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hfcf
from hfcf.core.task import find_problem, get_task
from hfcf.corpora.base import CorpusError
from hfcf.pipeline.build_corpus import build
from hfcf.pipeline.run import _front_matter
from hfcf.tasks.structures.model import Structure, problems
from hfcf.tasks.structures.proof import parse_proof, to_proof

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
DATA = os.environ.get("HFCF_DATA")
real = pytest.mark.skipif(not DATA, reason="HFCF_DATA, the folder of the real release files, is not set")
COLUMNS = list(get_task("structures").features)
SUPPORTS, REFUTES, NEI = "SUPPORTS", "REFUTES", "NOT ENOUGH INFO"
Change = Callable[[Any], Any]


def load(name: str, split: str | None = None, folder: str | None = None, **options: Any) -> Any:
    return hfcf.load(name, data_dir=FIXTURES / (folder or name), split=split, **options)


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str, str, Change], Path]:
    """`changed("checkwhy", "train.json", change)` is a copy of a fixture with the content of one file changed in place."""

    def make(folder: str, file: str, change: Change) -> Path:
        copy = Path(shutil.copytree(FIXTURES / folder, tmp_path / folder))
        path = copy / file
        lines = path.suffix == ".jsonl"
        content = [json.loads(line) for line in path.read_text().splitlines()] if lines else json.loads(path.read_text())
        change(content)
        path.write_text("".join(json.dumps(row) + "\n" for row in content) if lines else json.dumps(content))
        return copy

    return make


# --- CheckWhy


def test_checkwhy_of_two_classes() -> None:
    splits = load("checkwhy")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["7", "8"], "validation": ["12"]}
    rows = splits["train"].to_list()
    assert [find_problem(row) for row in rows] == [None, None]
    assert [row["label"] for row in rows] == [SUPPORTS, REFUTES]
    assert rows[0]["claim"] == rows[1]["claim"] == "Heavy rain in the Karawanks made the river Sava rise at Bled."
    assert rows[0]["evidence"][1] == {"title": "", "text": "The castle of Bled stands on a cliff."}
    assert rows[0]["evidence_info"] == [
        {"id": "Sentence1", "useful": True, "leaf": True},
        {"id": "Sentence2", "useful": False, "leaf": False},  # the file calls this distractor a leaf
        {"id": "Sentence3", "useful": True, "leaf": True},
        {"id": "Sentence4", "useful": True, "leaf": False},
        {"id": "Sentence5", "useful": True, "leaf": False},
    ]
    assert rows[0]["structure"] == [
        {"premises": ["Sentence1", "Sentence3"], "conclusion": "Sentence4"},
        {"premises": ["Sentence4"], "conclusion": "Sentence5"},
        {"premises": ["Sentence5"], "conclusion": "claim"},
    ]
    assert [step["conclusion"] for step in rows[1]["structure"]] == ["Sentence2", "Sentence3", "claim"]  # one divergent link
    assert rows[0]["code_out"].startswith("Sentence6 = FACT(")


def test_checkwhy_of_three_classes_groups_the_rows_of_a_claim() -> None:
    rows = load("checkwhy", "train", classes=3).to_list()
    assert [row["label"] for row in rows] == [SUPPORTS, REFUTES, NEI]
    assert [row["structure"] == [] for row in rows] == [False, False, True]
    assert [find_problem(row) for row in rows] == [None] * 3
    two = load("checkwhy")
    assert {row["group_id"] for row in rows} == set(two["train"]["group_id"])
    assert len(set(two["train"]["group_id"])) == 1
    assert two["validation"]["group_id"] != two["train"]["group_id"][:1]
    assert rows[:2] == two["train"].to_list()


def test_checkwhy_names_the_files_of_the_other_classes(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "checkwhy" / "dev.json", tmp_path)
    with pytest.raises(CorpusError, match=r"no file has 3 classes; dev\.json"):
        hfcf.load("checkwhy", data_dir=tmp_path, classes="3")
    with pytest.raises(ValueError, match="classes must be '2' or '3', got '4'"):
        hfcf.load("checkwhy", data_dir=tmp_path, classes=4)
    named = hfcf.load("checkwhy", data_files=FIXTURES / "checkwhy" / "train_nei.json", split="train")
    assert named["label"] == [SUPPORTS, REFUTES, NEI]


def test_checkwhy_where_a_claims_rows_share_its_id(changed: Callable[..., Path]) -> None:
    def share(rows: Any) -> None:
        for row in rows:
            row["checkwhy-id"] = 7
        rows[2]["claim"] += " (edited)"

    ds = hfcf.load("checkwhy", data_dir=changed("checkwhy", "train_nei.json", share), split="train", classes=3)
    assert ds["id"] == ["7", "7-REFUTES", "7-NOT ENOUGH INFO"]
    assert len(set(ds["group_id"])) == 1


def test_checkwhy_takes_names_and_flags_in_other_forms(changed: Callable[..., Path]) -> None:
    def rename(rows: Any) -> None:
        for row in rows:
            row["statement"] = row.pop("claim")
            for piece in row["evidences"]:
                piece |= {
                    "evidence_id": f"Sentence{piece['evidence_id']}",
                    "useful": int(piece["useful"]),
                    "leaf": str(piece["leaf"]),
                }
                piece["text"] = piece.pop("evidence")

    renamed = hfcf.load("checkwhy", data_dir=changed("checkwhy", "train.json", rename), split="train")
    assert renamed.to_list() == load("checkwhy", "train").to_list()


def set_in(*path: Any, to: Any) -> Change:
    """Return a change that sets the value at a path, or with `to=None` deletes it."""

    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        if to is None:
            del content[path[-1]]
        else:
            content[path[-1]] = to

    return change


def test_checkwhy_counts_leaves_that_the_structure_decides(changed: Callable[..., Path]) -> None:
    ds = hfcf.load(
        "checkwhy", data_dir=changed("checkwhy", "train.json", set_in(0, "evidences", 3, "leaf", to=True)), split="train"
    )
    assert ds.to_list() == load("checkwhy", "train").to_list()
    assert "train: 1 rows marked leaves that differ" in ds.info.description


# --- WikiWhy


def test_wikiwhy_without_its_contexts() -> None:
    splits = load("wikiwhy")
    assert {split: part["id"] for split, part in splits.items()} == {"full": ["11", "3", "20"]}
    row = splits["full"][1]
    assert (row["cause"], row["effect"]) == ("Because the lake froze over in 1929.", "People crossed Lake Bled on foot in 1929.")
    assert (row["claim"], row["evidence"], row["evidence_info"], row["structure"], row["label"]) == ("", [], [], [], None)
    assert row["question"] == "Why could people cross Lake Bled on foot in 1929?"
    assert row["explanation"] == ["Ice carries people.", "A frozen lake is ice."]
    assert (row["context"], row["title"], row["topic"]) == (None, None, None)
    assert splits["full"][0]["explanation"] == ["Rain runs off into rivers. Rivers rise when more water runs into them."]
    assert find_problem(row) == "there is no claim yet, only a cause and its effect"
    kept = load("wikiwhy", "full", on_error="reject")
    assert kept["status"] == [None] * 3, "these rows were read well: they are what claims are made from"


def test_wikiwhy_with_its_contexts_has_splits() -> None:
    splits = load("wikiwhy", folder="wikiwhy_context")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["11", "3"], "validation": ["20"]}
    row = splits["train"][1]
    assert (row["context"], row["title"], row["topic"]) == ("Lake Bled froze over in 1929.", "Lake Bled", None)
    one = hfcf.load("wikiwhy", data_files=FIXTURES / "wikiwhy_context" / "cause.json", split="dev")
    assert one.to_list() == splits["validation"].to_list()


def test_wikiwhy_groups_rows_of_a_page_and_of_an_effect(changed: Callable[..., Path]) -> None:
    same = changed("wikiwhy_context", "context.json", set_in("title", "3", to="Sava"))
    assert hfcf.load("wikiwhy", data_dir=same, split="train")["group_id"] == ["11", "11"]
    same = changed("wikiwhy", "dataset/v1.2/effect.json", set_in("effect", "20", to="the Sava rose, at Bled"))
    assert hfcf.load("wikiwhy", data_dir=same, split="full")["group_id"] == ["11", "3", "11"]


def test_wikiwhy_needs_every_column_but_the_contexts(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "wikiwhy", tmp_path / "wikiwhy"))
    (folder / "dataset/v1.2/effect.json").unlink()
    with pytest.raises(CorpusError, match=r"there is no effect\.json next to cause\.json in .*v1\.2"):
        hfcf.load("wikiwhy", data_dir=folder)


def test_cards_repeat_what_the_authors_of_wikiwhy_ask(tmp_path: Path) -> None:
    from hfcf.hub.render import render

    build("wikiwhy", data_dir=FIXTURES / "wikiwhy", out=tmp_path / "out")
    assert "keep WikiWhy out of pre-training corpora" in (tmp_path / "out" / "README.md").read_text()
    derived = render("licence.md.jinja", corpus=_front_matter("wikiwhy"), not_republished="")
    assert "keep WikiWhy out of pre-training corpora" in derived


# --- EntailmentBank


def test_entailment_bank_task_1() -> None:
    ds = load("entailment_bank", "dev")
    assert ds["id"] == ds["group_id"] == ["Made_1", "Made_2"]
    row = ds[0]
    assert find_problem(row) is None
    assert row["claim"] == "ice floats on water because it is less dense"
    assert [info["id"] for info in row["evidence_info"]] == ["sent1", "sent2", "sent3", "int1"]
    assert row["evidence"][0]["text"] == "ice is less dense than liquid water; it is lighter"
    assert row["evidence"][3] == {"title": "", "text": "ice floats on liquid water"}
    assert [info["leaf"] for info in row["evidence_info"]] == [True, True, True, False]
    assert row["structure"] == [
        {"premises": ["sent1", "sent3"], "conclusion": "int1"},
        {"premises": ["int1", "sent2"], "conclusion": "claim"},
    ]
    assert (row["label"], row["cause"], row["effect"]) == (SUPPORTS, None, None)
    assert row["answer"] == "It is less dense than water."


def test_entailment_bank_task_2_has_distractors_and_task_3_no_structure() -> None:
    row = load("entailment_bank", "dev", task=2)[0]
    assert find_problem(row) is None
    assert {info["id"]: info["useful"] for info in row["evidence_info"]} == {
        "sent1": False, "sent2": True, "sent3": True, "sent4": False, "sent5": True, "int1": True,
    }  # fmt: skip
    row = load("entailment_bank", "dev", task="3")[0]
    assert find_problem(row) is None
    assert row["structure"] == []
    assert row["evidence_info"] == [{"id": name, "useful": None, "leaf": None} for name in ("sent1", "sent2")]


def test_entailment_bank_finds_the_folder_of_a_task(tmp_path: Path) -> None:
    base = FIXTURES / "entailment_bank" / "dataset"
    second = load("entailment_bank", "dev", task=2).to_list()
    assert hfcf.load("entailment_bank", data_dir=base, task=2, split="dev").to_list() == second
    assert hfcf.load("entailment_bank", data_dir=base / "task_2", split="dev").to_list() == second
    assert hfcf.load("entailment_bank", data_files=base / "task_2" / "dev.jsonl", split="dev").to_list() == second
    repository = tmp_path / "data/public_dataset/entailment_trees_emnlp2021_data_v2/dataset"
    shutil.copytree(base, repository)
    assert hfcf.load("entailment_bank", data_dir=tmp_path, task=2, split="dev").to_list() == second
    with pytest.raises(ValueError, match=r"task='1', and data_dir is the folder task_2"):
        hfcf.load("entailment_bank", data_dir=base / "task_2", task=1)
    with pytest.raises(ValueError, match="task must be '1' or '2' or '3', got '4'"):
        hfcf.load("entailment_bank", data_dir=base, task=4)


# --- real files


@real
@pytest.mark.parametrize(("task", "pieces", "steps"), [("1", 1226, 597), ("2", 5085, 597), ("3", 4675, 0)])
def test_real_entailment_bank(task: str, pieces: int, steps: int) -> None:
    folder = Path(str(DATA)) / "entailment_bank"
    ds = hfcf.load("entailment_bank", data_dir=folder, task=task, split="dev")
    rows = ds.to_list()
    assert len(rows) == len(set(ds["group_id"])) == 187
    assert [why for row in rows if (why := find_problem(row))] == []
    assert sum(len(row["evidence"]) for row in rows) == pieces
    assert sum(len(row["structure"]) for row in rows) == steps
    for row in rows if steps else ():
        structure = Structure.from_row(row)
        assert problems(structure, [info["id"] for info in row["evidence_info"] if info["useful"]]) == []
        assert parse_proof(to_proof(structure)) == structure
        assert [info["id"] for info in row["evidence_info"] if info["leaf"]] == [
            info["id"] for info in row["evidence_info"] if info["id"] in structure.leaves()
        ]
