"""A first day: rows in columns and labels of one's own, a model of one's own, and the commands that a user types, at 80 columns."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny
from datasets import load_dataset
from offline_models import installed
from rich.cells import cell_len
from transformers import BertForSequenceClassification

from hfcf.core import offline

NEEDED = ("t5", "minilm", "smollm2", "spacy", "wordnet")
CLASSES = ("no", "unclear", "yes")
COLUMNS = "{id: nr, claim: statement, evidence: passage, label: verdict}"
LABELS = '{"yes": SUPPORTS, "no": REFUTES, unclear: NOT ENOUGH INFO}'
MEANING = "yes=SUPPORTS,no=REFUTES,unclear=NOT ENOUGH INFO"
TRAINING = f"""
train: verifier
data:
  - {{corpus: {{path: parquet, data_files: more.parquet}}, columns: {COLUMNS}, labels: {LABELS}}}
held_out: 0.2
ways: 3
model: {{name: my-model, labels: {LABELS}, inputs: evidence-claim}}
max_length: 128
batch_size: 8
learning_rate: 1.0e-3
epochs: 1
seed: 13
"""
ROWS = """
import hfcf
from datasets import load_dataset
mine = load_dataset("csv", data_files="mine.csv", split="train")
labels = {"yes": "SUPPORTS", "no": "REFUTES", "unclear": "NOT ENOUGH INFO"}
columns = {"claim": "statement", "evidence": "passage", "label": "verdict"}
hfcf.from_dataset(mine, columns=columns, labels=labels, id="nr").to_parquet("rows.parquet")
"""
MORE = f"""{ROWS}
from datasets import concatenate_datasets
made = load_dataset("out/mine", split="train")
new = hfcf.to_dataset(made, like=mine, columns=columns, labels=labels, id="nr")
concatenate_datasets([mine, new.cast(mine.features)]).to_parquet("more.parquet")
"""


def write_rows(file: Path) -> None:
    """Sixty rows: twenty buildings, each with a statement of each verdict."""
    people = ("Ada Merrow", "Tom Hale", "Ines Varga", "Paul Okoro", "Lena Brandt")
    rows: list[tuple[str, str, str, str]] = []
    for who in people:
        for i, town in enumerate(("Brunnock", "Oslo", "Lisbon", "Riga")):
            what = ("bridge", "library", "school", "mill")[i]
            passage = f"{who} was an engineer. {who} built the old {what} of {town} in {1860 + len(rows)}."
            texts = {
                "yes": f"{who} built a {what} in {town}.",
                "no": f"{who} never worked in {town}.",
                "unclear": f"{who} was rich.",
            }
            rows += [(f"q{len(rows) + n}", passage, text, verdict) for n, (verdict, text) in enumerate(texts.items())]
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([("nr", "passage", "statement", "verdict"), *rows])


def write_model(folder: Path) -> None:
    """A classifier whose classes have the user's names, in an order of their own."""
    network = BertForSequenceClassification.from_pretrained(tiny.classifier(folder))
    network.config.id2label = dict(enumerate(CLASSES))
    network.config.label2id = {name: i for i, name in enumerate(CLASSES)}
    network.save_pretrained(folder)


class Day:
    """A folder of the user's, and what is printed there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        root = Path(__file__).parent.parent
        self.environ = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(root), "PYTHONWARNINGS": "default"}

    def type(self, *words: str, of: str = "hfcf") -> str:
        """Run a command, or a script of the user's (`of="-c"`); return what it printed, each line at most 80 columns wide."""
        command = [sys.executable, *(["-m", of] if of == "hfcf" else [of]), *words]
        done = subprocess.run(command, cwd=self.folder, env=self.environ, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        assert [line for line in done.stdout.splitlines() if cell_len(line) > 80] == [], words
        return done.stdout

    def json(self, path: str) -> Any:
        return json.loads((self.folder / path).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.skipif(not all(map(installed, NEEDED)), reason=f"offline models are not installed: {offline.INSTALL}")
def test_a_first_day(tmp_path: Path) -> None:
    day, evaluated = Day(tmp_path), ("--corpus", "parquet=rows.parquet:train")
    write_rows(tmp_path / "mine.csv")
    write_model(tmp_path / "my-model")
    (tmp_path / "verifier.yaml").write_text(TRAINING, encoding="utf-8")

    # How good is the model? All sixty rows are scored, on three labels.
    day.type(ROWS, of="-c")
    told = day.type("evaluate", "my-model", "--labels", MEANING, "--inputs", "evidence-claim", "--out", "before.json", *evaluated)
    assert "60 of 60 rows are scored, on SUPPORTS, REFUTES, NOT ENOUGH INFO" in " ".join(told.split())
    (before,) = day.json("before.json")["sets"]
    assert len(before["predictions"]) == before["rows"] == 60
    assert sum(sum(row.values()) for row in before["confusion"].values()) == 60

    # Counterfactuals: every row is accepted, or rejected with a reason.
    changes = [f"columns={COLUMNS}", f"labels={LABELS}"]
    options = [part for change in changes for part in ("--set", change)]
    recipe = ["new", "crossaug", "mine.yaml", "--data", "mine.csv", "--set", "preset=offline", *options]
    done = subprocess.run(
        [sys.executable, "-m", "hfcf", *recipe], cwd=tmp_path, env=day.environ, capture_output=True, text=True
    )  # its lines are those of the file
    assert "60 of 60 rows can be read" in done.stdout, done.stderr
    told = day.type(
        "run", "mine.yaml", "--out", "out/mine", "--set", "settings.num_beams=10", "--set", "settings.num_candidates=10"
    )
    made = load_dataset(str(tmp_path / "out/mine"), split="train")
    rejected = [row for row in load_dataset(str(tmp_path / "out/mine"), "rejected", split="train") if row["level"] == "row"]
    assert f"{len(made)} counterfactuals of {len(set(made['source_id']))} sources" in told
    assert len(set(made["source_id"])) + len(rejected) == 60
    assert all(row["reason"] for row in rejected)
    assert "only SUPPORTS rows are augmented (40)" in told

    # Both together, in the user's columns and by the user's names.
    day.type(MORE, of="-c")
    more = load_dataset("parquet", data_files=str(tmp_path / "more.parquet"), split="train")
    assert more.column_names == ["nr", "passage", "statement", "verdict"]
    assert set(more["verdict"]) == set(CLASSES)
    assert len(more) == len(set(more["nr"])) == 60 + len(made)

    # A model of them, which keeps the meaning of the old one's outputs.
    day.type("train", "verifier.yaml", "--out", "out/verifier")
    report = day.json("out/verifier/scores.json")
    assert report["rows"]["train"] + report["rows"]["held_out"] == len(more)
    assert report["scores"]["held out: parquet"]["3-way"]["verifier"]["rows"] == report["rows"]["held_out"] > 0
    config = day.json("out/verifier/config.json")
    assert config["id2label"] == {"0": "REFUTES", "1": "NOT ENOUGH INFO", "2": "SUPPORTS"}
    assert config["hfcf_inputs"] == "evidence-claim"
    told = day.type("evaluate", "out/verifier", *evaluated)
    assert "60 of 60 rows are scored" in told
    assert "the model was trained on the group or a text of" in " ".join(told.split())

    # Ready for the Hub.
    assert "data/default/train-" in day.type("push", "out/mine", "me/mine", "--dry-run")
    assert "model.safetensors" in day.type("push", "out/verifier", "me/verifier", "--dry-run")
