"""A run in pieces: the same folder as of a run by stages; and streams of rows in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, IterableDataset
from rich.console import Console
from same_rows import assert_same_rows

import hfcf
from hfcf.cli import console, runs
from hfcf.core import recipe
from hfcf.core.columns import tables
from hfcf.core.splits import regroup
from hfcf.pipeline import shards
from hfcf.systems.baselines.eda import EDA

RECIPE = {"corpus": "hover", "data_dir": "recipes:demo", "system": "eda", "preset": "offline", "name": "mine"}
METRICS = ["minimality", "duplicates", "label_balance", "multi_hop"]


def test_a_run_in_pieces_is_the_run_by_stages_and_goes_on_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "ROWS", 7)
    made: list[tuple[int, int]] = []
    write = shards.Shards.write

    def written(self: Any, start: int, table: Any) -> None:
        made.append((start, len(table)))
        write(self, start, table)

    monkeypatch.setattr(shards.Shards, "write", written)
    whole = hfcf.run({**RECIPE, "metrics": METRICS}, tmp_path / "whole")
    assert not made
    rest = [(start, min(7, 50 - start)) for start in range(0, 50, 7)]

    def killed(self: Any, start: int, table: Any) -> None:
        written(self, start, table)
        if start == 14:
            raise KeyboardInterrupt

    monkeypatch.setattr(shards.Shards, "write", killed)
    pieces = {**RECIPE, "metrics": METRICS, "streaming": True}
    with pytest.raises(KeyboardInterrupt):
        hfcf.run(pieces, tmp_path / "pieces")
    assert made == rest[:3]
    monkeypatch.setattr(shards.Shards, "write", written)
    found = hfcf.run(pieces, tmp_path / "pieces")
    assert made == rest
    same = set(whole) - {"stages", "files", "name"}
    assert {key: found[key] for key in same} == {key: whole[key] for key in same}
    assert [entry["stage"] for entry in found["stages"]] == [entry["stage"] for entry in whole["stages"]]
    assert_same_rows(tmp_path / "pieces", tmp_path / "whole")
    assert not (tmp_path / "pieces" / shards.WORK).exists()


def test_rows_are_grouped_by_hashes_as_by_their_texts() -> None:
    texts = ["Rome is old.", "rome is OLD", "Oslo is new.", "Oslo is new", "Paris."]
    pieces = [[{"title": "", "text": text}] for text in ("one", "two", "three", "two", "four")]
    rows = {"claim": texts, "evidence": pieces, "label": ["SUPPORTS"] * 5, "corpus": ["c"] * 5, "group_id": list("pqrst")}
    assert list(regroup(Dataset.from_dict(rows))) == ["p", "p", "p", "p", "t"]
    shuffled = Dataset.from_dict(rows).select([4, 3, 0])
    assert list(regroup(shuffled)) == ["t", "s", "p"]
    assert [len(table) for table in tables(shuffled, ["claim"], 2)] == [2, 1]


def test_a_stream_names_its_batches_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    demo = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    rows = IterableDataset.from_generator(lambda: (row for _ in range(4) for row in demo), features=demo.features)
    names = [key for key, _ in EDA()(rows).with_format("arrow")._ex_iterable.iter_arrow()]
    # `datasets` joins the names of a batch's chunks: of a thousand chunks with the names of a thousand rows each, that is a
    # megabyte after the first stage and a gigabyte after the second.
    assert max(len(str(name)) for name in names) < 50 * 4 * len(demo)


def test_the_command_line_names_the_stages_of_a_run_in_pieces_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "out", Console(width=200))
    monkeypatch.setattr(shards, "ROWS", 5)
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({**RECIPE, "metrics": {}}))
    runs.run(str(path), tmp_path / "out", ["streaming=true"], 12, False)
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in shown if line.startswith("✓")] == list(EDA.parts)
