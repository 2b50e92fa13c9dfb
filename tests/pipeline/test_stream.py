"""A run over a stream: the same rows and numbers as over a dataset, in shards, with what it leaves out said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, IterableDataset, load_dataset
from rich.console import Console

import hfcf
from hfcf.cli import console, runs
from hfcf.core import recipe, schema
from hfcf.core.columns import tables
from hfcf.core.splits import regroup
from hfcf.hub.folder import ROWS as NAMES
from hfcf.hub.folder import SplitWriter
from hfcf.hub.push import read_contents
from hfcf.metrics.shared.summary import Accumulator, summary
from hfcf.pipeline import publish
from hfcf.pipeline import run as run_module
from hfcf.systems.baselines.eda import EDA

RECIPE = {"corpus": "hover", "data_dir": "recipes:demo", "system": "eda", "preset": "offline", "name": "mine"}
METRICS = ["minimality", "duplicates", "label_balance", "multi_hop"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same recipe over a dataset and over a stream, in shards of seven rows."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "publish", lambda *args, **kwargs: publish.publish(*args, **kwargs, shard_rows=7))
        patch.setattr(publish, "BATCH", 5)
        for name, streaming in (("whole", False), ("streamed", True)):
            hfcf.run({**RECIPE, "metrics": METRICS, "streaming": streaming}, root / name)
    return root / "whole", root / "streamed"


def rows_of(folder: Path, config: str) -> list[dict[str, Any]]:
    splits = load_dataset(str(folder), config)
    return [row for split in splits.values() for row in split]


def test_a_stream_is_published_as_the_dataset_is(folders: tuple[Path, Path]) -> None:
    whole, streamed = (json.loads((folder / "run.json").read_text()) for folder in folders)
    keys = (
        "rows_in",
        "sources_accepted",
        "sources_rejected",
        "counterfactuals",
        "changes",
        "labels",
        "labels_kept",
        "funnel",
        "empty",
    )
    assert {key: streamed[key] for key in keys} == {key: whole[key] for key in keys}
    assert streamed["counterfactuals"] > 7
    one, other = (rows_of(folder, "default") for folder in folders)
    assert other == [{name: value for name, value in row.items() if name != "duplicates"} for row in one]
    if "rejected" not in whole["empty"]:
        assert rows_of(folders[1], "rejected") == rows_of(folders[0], "rejected")
    one, other = (sorted(rows_of(folder, "augmented"), key=lambda row: row["id"]) for folder in folders)
    assert other == one
    assert streamed["metrics"]["minimality"] == whole["metrics"]["minimality"]
    # The stages run while rows are written: times of nothing would be wrong.
    assert {entry["seconds"] for entry in streamed["stages"]} == {None}
    assert all(entry["seconds"] is not None for entry in whole["stages"])
    assert hfcf.load_result(folders[1]).dataset["train"][:] == load_dataset(str(folders[1]))["train"][:]


def test_shards_are_named_in_the_card_and_can_be_pushed(folders: tuple[Path, Path]) -> None:
    paths = sorted((folders[1] / "data" / "default").iterdir())
    assert len(paths) > 1
    assert min(path.name[-22:] for path in paths) == f"00000-of-{len(paths):05d}.parquet"
    assert all(pq.read_metadata(path).num_rows <= 7 for path in paths)
    sent = read_contents(folders[1]).files
    assert {str(path.relative_to(folders[1])) for path in paths} < set(sent)
    assert not list(folders[1].rglob("*.part"))


def test_what_a_stream_leaves_out_is_said(folders: tuple[Path, Path]) -> None:
    said = json.loads((folders[1] / "run.json").read_text())["streamed"]
    card = (folders[1] / "README.md").read_text()
    assert any("duplicate ids" in line for line in said)
    assert {line.split()[0] for line in said if "was not measured" in line} == {"duplicates", "label_balance"}
    assert all(line in card for line in said)
    assert "The rows were streamed" not in (folders[0] / "README.md").read_text()
    assert (folders[1] / "report.html").stat().st_size > 10_000


def test_a_stream_is_read_once_and_never_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train").select(range(12))
    eda, read, ahead = EDA(), [], []
    done = list(eda(demo))
    features = eda(demo).features

    def rows() -> Iterator[dict[str, Any]]:
        for i, row in enumerate(done):
            read.append(i)
            yield row

    monkeypatch.setattr(publish, "BATCH", 3)
    monkeypatch.setattr("hfcf.core.columns.TABLE_ROWS", 3)
    add = publish.Tally.add

    def watched(self: Any, table: Any) -> None:
        ahead.append(len(read))
        add(self, table)

    monkeypatch.setattr(publish.Tally, "add", watched)
    made = IterableDataset.from_generator(rows, features=features)
    names = ("preset", "limit", "citation", "checked_by", "role")
    run = {
        **dict.fromkeys(names),
        "settings": {},
        "models": {},
        "stages": [],
        "name": "x",
        "system": "eda",
        "task": "verification",
        "corpus": "hover",
        "split": "train",
        "seed": 1,
    }
    own = dict.fromkeys(("hub_id", "paper", "citation", "request", "release"))
    corpus = {**own, "title": "HoVer", "licence": "mit", "language": "en", "labels": [], "republish": True}
    about: dict[str, Any] = {"run": run, "recipe": {}, "corpus": corpus, "command": "hfcf run x"}
    found = publish.publish(made, tmp_path, **about, stages=list(eda.parts))
    assert (found["rows_in"], read) == (12, list(range(12)))
    assert ahead == [3, 6, 9, 12]


def test_a_broken_stream_leaves_no_part_behind(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shards = SplitWriter(folder, Features({"id": schema.TEXT, "label": schema.TEXT}), rows=2)
    table = Dataset.from_dict({"id": list("abcde"), "label": list("yxyxy")}, features=shards.features).with_format("arrow")[:]
    shards.write(table, "train")
    assert list(folder.iterdir())
    shards.discard()
    assert not list(folder.iterdir())
    shards.write(table, "train")
    paths = shards.close(classes=["x", "y"])["train"]
    assert [path.name.split("-")[-3:] for path in paths] == [[f"{i:05d}", "of", "00003.parquet"] for i in range(3)]
    found = load_dataset("parquet", data_files=[str(path) for path in paths], split="train")
    assert (found["id"][:], found.features["label"].names, found["label"][:]) == (list("abcde"), ["x", "y"], [1, 0, 1, 0, 1])
    assert all(re.fullmatch(NAMES, path.name) for path in paths)


def test_a_running_summary_is_that_of_all_numbers_until_its_sample_is_full() -> None:
    values = [None if i % 7 == 0 else (i * 37 % 101) / 4 for i in range(500)]
    exact = summary(Dataset.from_dict({"fluency": values}))["fluency"]
    running, small = Accumulator({"fluency": schema.FLOAT}), Accumulator({"fluency": schema.FLOAT}, kept=50)
    for start in range(0, 500, 90):
        for each in (running, small):
            each.add({"fluency": values[start : start + 90]})
    assert running.summaries()["fluency"] == exact
    sampled = small.summaries()["fluency"]
    assert sampled["sampled"] == 50
    assert all(sampled[key] == exact[key] for key in ("n", "null", "mean", "min", "max"))
    assert abs(sampled["median"] - exact["median"]) < 6


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


def test_the_command_line_shows_no_seconds_of_a_streams_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "out", Console(width=200))
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({**RECIPE, "metrics": {}}))
    runs.run(str(path), tmp_path / "out", ["streaming=true"], 12, False)
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith("✓")] == [f"✓ {name}" for name in EDA.parts]
