"""Ray Data runs the same stages: equal rows, finished shards are kept, and what can't work is said before it waits."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset
from same_rows import assert_near, assert_same_rows
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.engines.ner import Ner
from hfcf.hub.previous_run import UNCOUNTED
from hfcf.pipeline import ray_engine
from hfcf.pipeline.ray_engine import PLACE, Cluster, check_resources, map_block, read_block, reads_models, write_block
from hfcf.pipeline.recipes import ActorResources, RayResources
from hfcf.pipeline.run import read_recipe
from hfcf.pipeline.shards import Shards, add_columns
from hfcf.systems.baselines.eda import EDA
from hfcf.systems.race.system import RACE

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason=f"ray is not installed: {ray_engine.INSTALL}")
DEMO = {"corpus": "hover", "data_dir": "recipes:demo", "system": "eda"}


# --- without Ray


def test_without_ray_a_line_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"--engine ray.*pip install '\.\[ray\]'"):
        hfcf.run(DEMO, tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


def test_a_recipe_says_what_actors_get() -> None:
    ray = {"actors": 2, "num_gpus": 0.5, "blocks": 64, "stages": {"explain": {"actors": 4}}}
    resources = read_recipe({**DEMO, "ray": ray}).ray
    assert resources is not None
    assert (resources.num_cpus, resources.stages) == (1.0, {"explain": ActorResources(actors=4)})
    with pytest.raises(RecipeError, match="num_gpu"):
        read_recipe({**DEMO, "ray": {"num_gpu": 1}})
    with pytest.raises(RecipeError, match="actors"):
        read_recipe({**DEMO, "ray": {"actors": 0}})
    assert "ray" in UNCOUNTED  # other resources make no other rows


def test_actors_that_never_fit_are_refused() -> None:
    check_resources([("explain", ActorResources(actors=3))], {"CPU": 4.0})
    check_resources([("explain", ActorResources(actors=4, num_gpus=0.25))], {"CPU": 5.0, "GPU": 1.0})
    with pytest.raises(ValueError, match=r"explain .*4 CPUs.* 4"):
        check_resources([("explain", ActorResources(actors=4))], {"CPU": 4.0})
    with pytest.raises(ValueError, match=r"explain, check .*2 GPUs.* 1.*ray\.num_gpus"):
        check_resources([(name, ActorResources(num_gpus=1)) for name in ("explain", "check")], {"CPU": 9.0, "GPU": 1.0})


def test_which_stages_read_models() -> None:
    settings: dict[str, Any] = {"verifier": Model("v"), "generator": Model("g"), "explainer_model": Model("e")}
    race = RACE(**settings, ner=Ner(backend="spacy", model=Model("offline:spacy")))
    light = [stage.name for stage in race.stages if not reads_models(stage)]
    assert light == ["edit_evidence"]
    assert [reads_models(stage) for stage in EDA(verifier=Model("v")).stages] == [False, True]


def test_blocks_go_through_a_stage_as_a_dataset_does(demo: Dataset, tmp_path: Path) -> None:
    eda = EDA()
    ds = hfcf.prepare(demo, eda)
    inputs, shards = Shards(tmp_path / "input", 50), Shards(tmp_path, 50)
    for start, stop in ((0, 20), (20, 50)):
        inputs.write(start, ds.select(range(start, stop)).with_format("arrow")[:])
    block = read_block(inputs, pa.table({"start": [0, 20], "stop": [20, 50]}))
    assert block[PLACE].to_pylist() == list(range(50))
    features = type(ds.features)({**ds.features, **ray_engine.EXTRA})
    assert not len(map_block(block.slice(0, 0), eda.rewrite_eda, features, {}, "."))
    for stage in eda.stages:
        block = map_block(block, stage, features, {}, ".")
        features = add_columns(features, [stage])
    # Ray may cut blocks, and join them in another order than that of their places.
    written = write_block(shards, pa.concat_tables([block.slice(30), block.slice(0, 30)]))
    assert written["rows"].to_pylist() == [50]
    assert [one["stage"] for one in json.loads(written["costs"].to_pylist()[0])] == list(eda.parts)
    assert [stop for _, stop in [(0, 30), (30, 50)] if shards.has(_, stop)] == [30, 50]
    shards.join(add_columns(ds.features, eda.stages))
    assert list(shards.open("key")) == list(eda(demo))


# --- with Ray


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes on this machine, of two CPUs and of one."""
    import ray
    from ray.cluster_utils import Cluster as LocalCluster

    nodes = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 2})
    nodes.add_node(num_cpus=1)
    environ = {name: os.environ[name] for name in (*ray_engine.SENT, "PYTHONPATH") if name in os.environ}
    ray.init(address=nodes.address, log_to_driver=False, runtime_env={"env_vars": environ})
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_rows_of_a_cluster_equal_those_of_one_process(
    cluster: Any, demo: Dataset, tiny_model: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    eda = EDA(verifier=Model(tiny_model("verifier")), max_length=96)
    here = list(eda(demo, limit=40))
    resources = RayResources(actors=1, blocks=8)
    runner = Cluster(tmp_path, resources)
    assert_near(list(eda(demo, limit=40, runner=runner)), here)
    costs = {entry["stage"]: entry for entry in runner.costs([])}
    assert list(costs) == list(eda.parts)
    assert costs["judge_candidates"]["calls"] + costs["judge_candidates"]["cached"] > 30
    for shard in sorted(tmp_path.glob(".shards/*/rows-*.parquet"))[2:4]:
        shard.unlink()
    next(tmp_path.glob(".shards/*/rows.arrow")).unlink()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob(".shards/*/rows-*.parquet")}
    caplog.set_level("INFO", logger="hfcf")
    assert_near(list(eda(demo, limit=40, runner=Cluster(tmp_path, resources))), here)
    assert "30 of 40 rows are finished; the run continues with the rest" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in times} == times
    strict = EDA(strict=True)
    bad = Dataset.from_list([*first_rows(demo, 3), {**demo[3], "claim": "…"}], features=demo.features)
    with pytest.raises(ValueError, match=r"row .*claim"):
        strict(bad, runner=Cluster(tmp_path, resources))


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_command_runs_on_the_cluster(cluster: Any, tmp_path: Path) -> None:
    """The last test of the cluster: a node of it is lost."""
    hfcf.run(DEMO, tmp_path / "one")
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    import yaml

    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(DEMO))
    done = CliRunner().invoke(app, ["run", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "two"), "--engine", "ray"])
    assert done.exit_code == 0, done.output
    assert_same_rows(tmp_path / "one", tmp_path / "two")
    assert not (tmp_path / "two" / ".shards").exists()
