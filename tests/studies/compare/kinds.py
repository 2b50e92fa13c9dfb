"""Small comparisons of each kind: claims on sets, relations by columns, questions with pairs, and CheckWhy's tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asked
import pytest
from swap_system import VERBS

from hfcf import corpora, systems
from hfcf.core import recipe as recipes
from hfcf.studies.compare.comparison import Comparison, open_comparison
from hfcf.studies.compare.recipe import parse_comparison

Tiny = Callable[[str], str]
Content = dict[str, Any]
DEMO = recipes.folder() / "demo"
NOUNS = ("storm", "fire", "apple", "key", "letter", "stone", "river", "song", "coat", "bird", "lamp", "road")


def opened(content: Content, results: Path, *, full: bool = False) -> Comparison:
    return open_comparison(parse_comparison(content), results, full=full)  # type: ignore[arg-type]


def write(content: Content, folder: Path) -> Path:
    path = folder / f"{content['name']}.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def lines_of(results: Path, name: str) -> list[dict[str, Any]]:
    """The lines of cells of a results file."""
    file = results / f"{name}.jsonl"
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.is_file() else ()
    return [line for line in lines if "cell" in line]


def claim(i: int, label: str = "", kind: str = "Town", **more: Any) -> dict[str, Any]:
    evidence = [{"title": "", "text": f"{kind} {i} lies on river {i}."}]
    label = label or ("SUPPORTS", "REFUTES")[i % 2]
    return {"id": f"{kind}{i}", "claim": f"{kind} {i} is old.", "evidence": evidence, "label": label, **more}


def file_of(path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"corpus": "jsonl", "data_files": str(path), "split": "train"}


def headless(model: str, folder: Path) -> str:
    """An encoder without a head, as pretrained ones are."""
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(model).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    return str(folder)


def claims(tmp_path: Path, tiny_model: Tiny) -> Content:
    """Two methods, two seeds and two sets; of the first set one row has a claim of the training rows, and one is NEI."""
    first = json.loads((DEMO / "hover_train_release_v1.1.json").read_text(encoding="utf-8"))[0]
    rows = [*map(claim, range(9)), claim(9, "NOT ENOUGH INFO"), claim(10, "SUPPORTS", claim=first["claim"].upper())]
    lakes = file_of(tmp_path / "lakes.jsonl", [claim(i, kind="Lake") for i in range(6)])
    return {
        "compare": "models", "name": "claims", "preset": "offline", "seeds": [1, 2], "take": 12, "evaluate_take": 8,
        "train": {"corpus": "hover", "data_dir": str(DEMO), "split": "train"},
        "methods": {"none": None, "EDA": {"system": "eda"}},
        "model": {
            "model": headless(tiny_model("classifier"), tmp_path / "encoder"), "max_length": 64, "epochs": 1,
            "learning_rate": 0.001,
        },
        "evaluate": [
            {"name": "Towns", "setting": "in-domain", **file_of(tmp_path / "towns.jsonl", rows)},
            {"name": "Lakes", "setting": "challenge", **lakes},
        ],
        "notes": ["A note."],
    }  # fmt: skip


def sentences(first: int, count: int) -> str:
    """Sentences of each relation in turn, no two alike."""
    kinds = [*VERBS.items(), ("near", "Other")]
    made = []
    for i in range(first, first + count):
        verb, label = kinds[i % 3]
        nouns = NOUNS[i % 12], NOUNS[(i // 12 + i + 1) % 12]
        made.append(f"{label}\tthe <e1> {nouns[0]} </e1> {verb} the <e2> {nouns[1]} </e2> number {i}\n")
    return "".join(made)


def relations(tmp_path: Path, tiny_model: Tiny) -> Content:
    """Two columns with development rows; one method makes counterfactuals, one of which is a test row, and one makes none."""
    import torch

    from hfcf.core.model import Model
    from hfcf.engines.rbert import load_rbert

    network, tokenizer = load_rbert(Model(tiny_model("rbert")), torch.device("cpu"), torch.float32)
    network.encoder.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    swapped = sentences(0, 1).replace("caused", "inside").replace("Cause-Effect", "Content-Container")
    files = {
        "2-shot/train-2-shot": sentences(0, 6), "4-shot/train-4-shot": sentences(0, 12), "original/dev": sentences(100, 9),
        "original/test": sentences(200, 15) + swapped,
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "corpus" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    source = {"corpus": "ccg_semeval", "data_dir": str(tmp_path / "corpus")}
    return {
        "compare": "models", "name": "relations", "preset": "paper", "seeds": [1, 2],
        "methods": {"none": None, "swap": {"system": "swap"}, "empty": {"system": "swap", "settings": {"word": ""}}},
        "model": {"model": str(tmp_path / "encoder"), "max_length": 64, "epochs": 2, "learning_rate": 0.001, "batch_size": 4},
        "defaults": {"train": source, "dev": {**source, "split": "validation"}, "test": {**source, "split": "test"}},
        "columns": [{"name": "2-shot", "train": {"split": "2shot"}}, {"name": "4-shot", "train": {"split": "4shot"}}],
        "paper": {"scores": {"micro_f1": {"CCG": {"2-shot": "35.11 ± 0.66"}}}},
    }  # fmt: skip


def questions(tmp_path: Path, _: Tiny) -> Content:
    """A set, and a set of pairs, with a reader that needs no weights."""
    (tmp_path / "weights").mkdir(exist_ok=True)
    pairs = {"originals": {"split": "original"}, "by": "original_id"}
    return {
        "compare": "models", "name": "questions", "seeds": [1, 2], "methods": {"none": None, "again": {"system": "again"}},
        "model": {"model": str(tmp_path / "weights")}, "train": {"corpus": "asked", "split": "train"},
        "evaluate": [
            {"name": "Old", "setting": "in-domain", "corpus": "asked", "split": "original"},
            {"name": "Contrast", "setting": "challenge", "corpus": "asked", "split": "perturbed", "pairs": pairs},
        ],
    }  # fmt: skip


def structures(_: Path, tiny_model: Tiny) -> Content:
    """CheckWhy's tasks: a classifier of labels, a writer of structures, and the two in a row."""
    demo = {"corpus": "structures", "data_dir": "recipes:demo_structures", "split": "train"}
    training = {"max_length": 48, "max_steps": 1, "batch_size": 2}
    return {
        "compare": "models", "name": "structures", "seeds": [13], "separate": True,
        "defaults": {"train": {**demo, "take": 8}, "test": {**demo, "skip": 30}},
        "methods": {
            "reader": {
                "model": {"model": tiny_model("reader"), **training}, "trainer": {"kind": "classifier"},
                "columns": ["Task 1", "Task 2"],
            },
            "writer": {
                "model": {"model": tiny_model("t5"), **training}, "trainer": {"kind": "seq2seq"},
                "columns": ["Task 3", "Task 4", "1 distractor", "piped"],
            },
        },
        "columns": [
            *({"name": f"Task {task}", "trainer": {"task": task}} for task in (1, 2, 3, 4)),
            {"name": "1 distractor", "trainer": {"task": 4}, "ask": {"distractors": 1}},
            {"name": "piped", "trainer": {"task": 4}, "reader": {"column": "Task 2", "methods": {"writer": "reader"}}},
        ],
    }  # fmt: skip


KINDS: dict[str, tuple[Callable[[Path, Tiny], Content], int, int]] = {
    "claims": (claims, 4, 8), "relations": (relations, 12, 12), "questions": (questions, 4, 8), "structures": (structures, 4, 6),
}  # fmt: skip
"""What makes a recipe, its trainings, and its cells."""


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make known the systems and corpora of these comparisons."""
    known = systems.systems()
    monkeypatch.setattr(systems, "systems", lambda: {**known, "swap": "swap_system:Swap", "again": "asked:Again"})


def install_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that knows the answers, and its corpora."""
    monkeypatch.setitem(sys.modules, "hfcf.training.reader_trainer", asked)
    made = {
        "train": asked.originals(16, "old", "train"), "original": asked.originals(60), "perturbed": asked.perturbed(60),
    }  # fmt: skip
    known = corpora.builder_class
    monkeypatch.setattr(corpora, "load", lambda corpus, split="train", data_dir=None: made[split])
    monkeypatch.setattr(corpora, "builder_class", lambda name: known("squad" if name == "asked" else name))
