"""Several processes of a launcher: the rows and the order of one; a rerun computes what is missing alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import parrot
import pyarrow as pa
import pytest
import torch
import yaml
from accelerate import PartialState, debug_launcher
from datasets import Dataset
from same_rows import assert_near, assert_same_rows
from torch.multiprocessing.spawn import ProcessExitedException

import hfcf
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.edits import rewrite
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.engines.generator import Generator
from hfcf.pipeline import shards as files
from hfcf.pipeline.processes import Processes
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import choose_runner
from hfcf.pipeline.shards import Shards
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.verification import CANDIDATES, TASK, candidate

# Forked processes that wait for each other would hang on more than one thread.
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="debug_launcher forks")


def launch(function: Callable[[], None], processes: int = 2) -> None:
    """Run a function in processes that accelerate starts, with the environment of its other launchers."""

    def rank() -> None:
        number = str(torch.distributed.get_rank())
        os.environ.update(RANK=number, LOCAL_RANK=number, LOCAL_WORLD_SIZE=str(processes))
        torch.set_num_threads(1)
        PartialState._reset_state()  # of this process before the fork
        function()

    debug_launcher(rank, num_processes=processes)


def asked(report: dict[str, Any]) -> dict[str, int]:
    """The requests of each stage; one that two processes have in common counts twice."""
    return {entry["stage"]: entry["calls"] + entry["cached"] for entry in report["stages"]}


# --- a recipe


def test_two_processes_write_the_rows_of_one(
    demo_recipe: dict[str, Any], finished_run: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generator, "forward", parrot.forward)
    out, monkey = tmp_path / "out", tmp_path / "ranks"
    monkey.mkdir()

    def run() -> None:
        report = hfcf.run(deepcopy(demo_recipe), out)
        assert torch.distributed.get_world_size() == 2
        (monkey / str(torch.distributed.get_rank())).write_text(json.dumps(report))

    launch(run)
    one = json.loads((finished_run / "report.json").read_text())
    reports = [json.loads((monkey / rank).read_text()) for rank in ("0", "1")]
    assert reports[0] == reports[1] == json.loads((out / "run.json").read_text())
    assert_same_rows(out, finished_run / "out")
    for key in set(one) - {"stages", "files"}:  # the names of files hold hashes, and a float's last digit changes them
        assert_near(one[key], reports[0][key], key)
    both, alone = asked(reports[0]), asked(one)
    assert list(both) == list(alone)
    assert all(alone[stage] <= both[stage] <= alone[stage] + 10 for stage in alone)  # of both processes together
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "recipe.yaml", "report.html", "run.json"]


# --- a system that counts

CLAIMS = ["Rome is old.", "Rome is big.", "rome is OLD", "Rome is new.", "Rome is far.", "Rome is near."]
FOLDER = "HFCF_TEST_FOLDER"


@dataclass(frozen=True, kw_only=True)
class Write(Stage):
    """Writes a claim of `CLAIMS`, and a file for each row; of one row its process is killed, once."""

    inputs: ClassVar = TASK.columns
    outputs: ClassVar = {"candidates": CANDIDATES}

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("claim",)

    def learn(self, ds: Any) -> str:
        (Path(os.environ[FOLDER]) / f"fitted-{os.getpid()}").touch()
        return save_artifact({"rows": len(ds)})

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        folder = Path(os.environ[FOLDER])
        if row["id"] == "4" and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / f"{row['id']}-{os.getpid()}").touch()
        claim = CLAIMS[int(row["id"])]
        edits = rewrite("claim", row["claim"], claim)
        scores = [{"name": "rows", "value": float(read_artifact(self.fitted or "", "fit")["rows"])}]
        return {"candidates": [candidate(claim, "REFUTES", "claim", edits, scores)]}


class Counting(System):
    task = "verification"
    chain = (Write, JudgeCandidates)
    defaults: ClassVar = {"unique": True}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    folder = tmp_path / "log"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    common = {"corpus": "made", "split": "train", "label": "SUPPORTS", "evidence": [{"title": "", "text": "It is so."}]}
    return Dataset.from_list([{"id": str(i), "group_id": str(i), "claim": f"Claim {i}.", **common} for i in range(len(CLAIMS))])


def written(folder: Path, name: str) -> list[str]:
    return sorted(path.name.split("-")[0] for path in folder.iterdir() if path.name.startswith(name))


def test_a_killed_process_ends_the_run_and_the_next_one_computes_the_rest(
    rows: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROWS", 1)
    log = tmp_path / "log"

    def run() -> None:
        ds = Counting()(rows, runner=Processes(tmp_path / "out"), limit=5)
        ds.to_parquet(tmp_path / f"{os.environ['RANK']}.parquet")

    with pytest.raises(ProcessExitedException, match="SIGKILL"):  # rank 1 has rows 3 and 4
        launch(run)
    done = [one for one in "01234" if list((tmp_path / "out").rglob(f"rows-{int(one):012d}-*"))]
    assert "3" in done
    assert "4" not in done
    assert len(written(log, "fitted")) == 1
    before = {path.name for path in log.iterdir()}
    launch(run)
    again = sorted(path.name.split("-")[0] for path in log.iterdir() if path.name not in before)
    assert again == sorted(["fitted", *({*"01234"} - {*done})])
    one = list(Counting()(rows, limit=5))
    for rank in "01":
        assert list(Dataset.from_parquet(str(tmp_path / f"{rank}.parquet"), keep_in_memory=True)) == one
    assert [row["status"]["accepted"] for row in one] == [True, True, False, True, True]  # the third is the first one's twin
    assert one[0]["candidates"][0]["scores"] == [{"name": "rows", "value": 6.0}]  # fitted on all rows, not on a share


def test_an_error_of_the_main_process_ends_the_others(rows: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log" / "killed").touch()

    def fail(self: Any, ds: Any) -> str:
        raise ValueError("there is nothing to fit")

    monkeypatch.setattr(Write, "learn", fail)

    def run() -> None:
        try:
            Counting()(rows, runner=Processes(tmp_path / "out"))
        except (ValueError, RuntimeError) as error:
            (tmp_path / os.environ["RANK"]).write_text(f"{type(error).__name__}: {error}")

    launch(run)
    assert (tmp_path / "0").read_text() == "ValueError: there is nothing to fit"
    assert (tmp_path / "1").read_text() == "LostProcessError: the main process has failed: see its error"


def test_a_training_in_the_main_process_waits_for_no_other(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    def train() -> int:
        from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

        arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=2, report_to="none", disable_tqdm=True, use_cpu=True)
        network = AutoModelForSequenceClassification.from_pretrained(tiny_model("classifier"))
        Trainer(model=network, args=arguments, train_dataset=[{"input_ids": [1, 2, 3], "labels": 0}] * 64).train()
        return arguments.world_size

    def run() -> None:
        team = Processes(tmp_path / "out")
        (tmp_path / os.environ["RANK"]).write_text(str([team.once(train), team.number]))

    launch(run)
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["[1, 2]", "[1, 2]"]


def test_another_cut_goes_on_after_a_kill(tmp_path: Path) -> None:
    shards = Shards(tmp_path, 10)
    shards.write(0, pa.table({"id": list("abcd")}))
    (tmp_path / ".left.part").write_bytes(b"of a kill")
    assert Shards(tmp_path, 10).missing(3) == [(4, 7), (7, 10)]
    assert Shards(tmp_path, 10).missing(5) == [(4, 9), (9, 10)]


def test_engines_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'spark'.* local, ray"):
        choose_runner("spark", RunRecipe(corpus="hover", system="eda"), tmp_path)


# --- the commands that users type


@pytest.mark.slow
def test_commands_of_two_processes_write_the_rows_of_one(tmp_path: Path, cache: Path) -> None:
    settings = {"verifier": {"name": "offline:minilm", "adapter": "hfcf:verifier"}, "max_length": 128}
    recipe = {"corpus": "hover", "data_dir": "recipes:demo", "system": "eda", "settings": settings}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(recipe))
    one = hfcf.run(str(file), tmp_path / "one")
    other = tmp_path / "other"
    other.mkdir()
    (other / "offline").symlink_to((cache / "offline").resolve())
    arguments = ["run", str(file), "--out", str(tmp_path / "two")]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "hfcf"]
    done = subprocess.run(
        [*launcher, *arguments], env={**os.environ, "HFCF_CACHE": str(other)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Funnel") == 1
    two = json.loads((tmp_path / "two" / "run.json").read_text())
    assert two["counterfactuals"] == one["counterfactuals"] > 5
    assert_same_rows(tmp_path / "two", tmp_path / "one")
