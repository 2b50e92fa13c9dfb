"""`--engine ray`: the same stages on a Ray cluster, streamed by Ray Data from block to block and written as Parquet shards."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset, Features, Value
from datasets.table import InMemoryTable

from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.runner import Runner, Watch
from hfcf.core.stage import Stage, StageError
from hfcf.pipeline.recipes import ActorResources, RayResources
from hfcf.pipeline.shards import ROWS, WORK, Pieces, Shards, add_columns, divide
from hfcf.pipeline.timing import Clock, add_costs

log = logging.getLogger(__name__)

INSTALL = "in a checkout of hfcf: pip install '.[ray]'"
EVERY = 60
"""Seconds between two lines of the log about the progress of the run."""
PLACE, COSTS = "_row", "_costs"
"""Columns that travel with the rows: each row's place in the set, and the costs of a block in its first row."""
EXTRA = Features({PLACE: Value("int64"), COSTS: Value("string")})
SENT = ("HFCF_CACHE", "HFCF_DEVICE", "HFCF_REQUEST_CACHE", "HFCF_TOKEN_BUDGET", "HFCF_WORDNET", "HF_HOME", "HF_HUB_OFFLINE")
"""Variables that the driver sends to the workers. Keys are not among them: Ray's dashboard would show them."""


class Cluster(Runner):
    """Divide rows over the tasks and actors of a Ray cluster; this process drives it, fits, joins and writes the result.

    Stages that read models run in actors, each with its copy; other stages run in tasks. Each block of rows from the last stage is
    written into `out`, which all nodes share. So a run that is repeated computes the missing rows alone.

    Args:
        out: the folder of the result.
        resources: the recipe's `ray`.

    Raises:
        ImportError: Ray is not installed.
    """

    def __init__(self, out: Path, resources: RayResources) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ImportError(f"--engine ray needs the package ray; {INSTALL}")
        self.folder, self.resources = out.absolute() / WORK, resources
        self._spent: list[dict[str, Any]] = []

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Run stages on the rows that no shard has yet; return all rows, in order."""

        def compute(shards: Shards, todo: Pieces) -> None:
            inputs = Shards(shards.folder / "input", shards.rows)
            for start, stop in todo:
                if not inputs.has(start, stop):
                    inputs.write(start, ds.select(range(start, stop)).with_format("arrow")[:])
            self._stream(todo, ds.features, stages, inputs, shards, {"load_from_cache_file": False, **map_kwargs})

        return divide(ds, stages, self.folder, self._block_size, compute)

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up the costs of the driver's fitting and of all workers; seconds of several workers at once are added."""
        return add_costs([*entries, *self._spent])

    def _block_size(self, rows: int) -> int:
        pools = [self.resources, *(self.resources.stages or {}).values()]
        blocks = self.resources.blocks or max(4 * max(pool.actors for pool in pools), -(-rows // ROWS))
        return max(1, -(-rows // blocks))

    def _pool(self, stage: Stage) -> ActorResources | None:
        """Return the actors of a stage; None: it runs in tasks."""
        return (self.resources.stages or {}).get(stage.name) or (self.resources if reads_models(stage) else None)

    def _stream(
        self, todo: Sequence[tuple[int, int]], features: Features, stages: Sequence[Stage], inputs: Shards, shards: Shards,
        map_kwargs: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Stream blocks of rows through the stages into shards."""
        import ray
        from ray.data import ActorPoolStrategy, DataContext
        from ray.exceptions import RayError

        connect()
        pools = [self._pool(stage) for stage in stages]
        check_resources([(stage.name, pool) for stage, pool in zip(stages, pools, strict=True) if pool], ray.cluster_resources())
        DataContext.get_current().execution_options.preserve_order = True
        DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        options: dict[str, Any] = {"batch_size": None, "batch_format": "pyarrow"}
        places = ray.data.from_items([{"start": start, "stop": stop} for start, stop in todo], override_num_blocks=len(todo))
        rows = places.map_batches(partial(read_block, inputs), **options)
        features = Features({**features, **EXTRA})
        for stage, pool in zip(stages, pools, strict=True):
            settings = {"stage": stage, "features": features, "map_kwargs": dict(map_kwargs), "folder": os.getcwd()}
            if pool is None:
                rows = rows.map_batches(partial(map_block, **settings), **options)
            else:
                rows = rows.map_batches(
                    StageActor, fn_constructor_kwargs=settings, compute=ActorPoolStrategy(size=pool.actors),
                    num_gpus=pool.num_gpus, num_cpus=pool.num_cpus, **options,
                )  # fmt: skip
            features = add_columns(features, [stage])
        written = rows.map_batches(partial(write_block, shards), **options)
        finished, total, logged = 0, sum(stop - start for start, stop in todo), time.monotonic()
        try:
            for block in written.iter_rows():
                finished += block["rows"]
                self._spent += json.loads(block["costs"])
                if time.monotonic() - logged > EVERY:
                    log.info("%d of %d rows are finished", finished, total)
                    logged = time.monotonic()
        except RayError as error:
            raise cause_of(error) from error


def connect() -> None:
    """Join the cluster of `RAY_ADDRESS` or of this machine, or start a cluster here; do nothing if the process is in a cluster."""
    import ray

    if not ray.is_initialized():
        environ = {name: os.environ[name] for name in SENT if name in os.environ}
        ray.init(runtime_env={"env_vars": environ}, log_to_driver=False, logging_level=logging.WARNING)


def reads_models(stage: Stage) -> bool:
    """Return whether a stage reads the weights of a model, its own or an engine's, or requests a model behind an endpoint."""
    values = [getattr(stage, field.name) for field in fields(stage)]
    items = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return any(isinstance(item, Model) or isinstance(getattr(item, "model", None), Model) for item in items)


def check_resources(pools: Sequence[tuple[str, ActorResources]], cluster: Mapping[str, float]) -> None:
    """Raise when a cluster can't hold all actors and one task at once: Ray would wait forever."""
    for key, name, spare in (("CPU", "num_cpus", 1.0), ("GPU", "num_gpus", 0.0)):
        needed = sum(pool.actors * float(getattr(pool, name)) for _, pool in pools)
        room = cluster.get(key, 0.0) - spare
        if needed and needed > room:
            stages = ", ".join(stage for stage, _ in pools)
            more = " and one CPU for the other stages" if spare else ""
            raise ValueError(
                f"the actors of {stages} need {needed:g} {key}s{more}, and the cluster has {cluster.get(key, 0.0):g}: "
                f"set ray.{name} (a share, such as 0.5), ray.actors or ray.stages.NAME"
            )


def read_block(inputs: Shards, places: pa.Table) -> pa.Table:
    """Read rows of the input by their places."""
    tables = []
    for start, stop in zip(places["start"].to_pylist(), places["stop"].to_pylist(), strict=True):
        table = inputs.read_shard(start, stop).replace_schema_metadata(None)
        table = table.append_column(PLACE, pa.array(range(start, stop), pa.int64()))
        tables.append(table.append_column(COSTS, pa.array(["[]"] * len(table), pa.string())))
    return pa.concat_tables(tables)


def map_block(table: pa.Table, stage: Stage, features: Features, map_kwargs: Mapping[str, Any], folder: str) -> pa.Table:
    """Run a stage on a block of rows, as on a `Dataset`."""
    if os.path.isdir(folder):
        os.chdir(folder)  # the driver's folder, to which paths of models are relative
    if not len(table):
        return add_columns(features, [stage]).arrow_schema.empty_table().replace_schema_metadata(None)
    clock = Clock()
    rows = Dataset(InMemoryTable(table.select(list(features)).cast(features.arrow_schema)))
    done = clock(stage, partial(map_stage, rows, stage, map_kwargs)).with_format("arrow")[:]
    costs = done[COSTS].to_pylist()
    costs[0] = json.dumps([*json.loads(costs[0]), *clock.stages])
    done = done.set_column(done.column_names.index(COSTS), COSTS, pa.array(costs, pa.string()))
    return done.replace_schema_metadata(None)


class StageActor:
    """A stage with its models in the memory of one worker.

    Args:
        settings: see `map_block`.
    """

    def __init__(self, **settings: Any) -> None:
        self.map: Callable[[pa.Table], pa.Table] = partial(map_block, **settings)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Run the stage on a block."""
        return self.map(table)


def write_block(shards: Shards, table: pa.Table) -> pa.Table:
    """Write finished rows as shards, one for each run of places, and return their number and costs."""
    places = table[PLACE].to_pylist()
    starts = [i for i, place in enumerate(places) if not i or place != places[i - 1] + 1]
    rows = table.drop_columns([PLACE, COSTS])
    for start, stop in zip(starts, [*starts[1:], len(places)], strict=True):
        shards.write(places[start], rows.slice(start, stop - start))
    costs = [entry for costs in table[COSTS].to_pylist() for entry in json.loads(costs)]
    return pa.table({"rows": [len(places)], "costs": [json.dumps(costs)]})


def cause_of(error: BaseException) -> BaseException:
    """Return the error of a stage instead of Ray's, which holds it only as text."""
    match = re.search(r"^hfcf\.core\.stage\.StageError: (.+)$", str(error), re.MULTILINE)
    return StageError(match[1]) if match else error
