"""What Ray Data adds to a light stage, and what a lost node costs: 100,000 claims through EDA, here and on two local nodes.

The rows go through `System.__call__` three times, without any cache: in this process, on the nodes, and on new nodes of which one
is killed when a third of the rows is finished. The rows must be equal. Ray's wall time includes the input and the result as
Parquet; starting the nodes is measured apart.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common import read_options, show

KILL_AT = 1 / 3
"""The share of the rows after which a node is killed."""


def claims(rows: int) -> Any:
    """Make rows of verification without a corpus."""
    from datasets import Dataset

    from hfcf.core.task import get_task

    names = ("Rome", "Oslo", "Lima", "Cairo", "Quito", "Paris", "Turin", "Minsk")

    def row(i: int) -> dict[str, Any]:
        first, second = names[i % 8], names[(i // 8) % 8]
        claim = f"The old city of {first} was founded {i} years before the large harbour of {second} was built by a king."
        text = f"{first} is {i} years older than the harbour of {second}. " * 4
        evidence = [{"title": first, "text": text}]
        return {"id": str(i), "claim": claim, "evidence": evidence, "label": "SUPPORTS", "group_id": str(i), "corpus": "made up",
                "split": "train"}  # fmt: skip

    return Dataset.from_list([row(i) for i in range(rows)], features=get_task("verification").features)


def nodes() -> Any:
    """Start two local nodes, of two CPUs (with the driver) and of one, and join them."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # by default a busy machine gets 30 seconds
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    cluster.wait_for_nodes()
    return cluster


def stop(cluster: Any) -> None:
    import ray

    ray.shutdown()
    cluster.shutdown()


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def kill_a_node(cluster: Any, out: Path, rows: int) -> float:
    """Kill the second node when enough rows are finished; return their share."""
    while True:
        stops = [path.stem.split("-")[1:] for path in out.glob(".shards/*/rows-*.parquet")]
        if (finished := sum(int(stop) - int(start) for start, stop in stops)) >= rows * KILL_AT:
            node = cluster.list_all_nodes()[-1]
            cluster.remove_node(node, allow_graceful=False)
            return finished / rows
        time.sleep(0.2)


def main() -> None:
    """Measure, and print seconds and the microseconds that a row takes more than here."""
    from hfcf.pipeline.ray_engine import Cluster
    from hfcf.pipeline.recipes import RayResources
    from hfcf.systems.baselines.eda import EDA

    options = read_options(__doc__ or "")
    number = 5_000 if options.quick else 100_000
    rows, eda = claims(number), EDA()
    eda(rows, limit=100)  # what is read once: WordNet
    local, seconds = timed(lambda: eda(rows, load_from_cache_file=False))
    table: list[list[Any]] = [["here", "–", seconds, number / seconds, "–", "–"]]
    figures: dict[str, Any] = {"rows": number, "here": {"seconds": seconds}}
    # The stage in actors, one on each node, as stages with models are.
    resources = RayResources.model_validate({"blocks": 64, "stages": {"rewrite_eda": {"actors": 2, "num_cpus": 0.5}}})
    for name, kills in (("two nodes", False), ("two nodes, one killed", True)):
        cluster, started = timed(nodes)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
            share = pool.submit(kill_a_node, cluster, Path(folder), number) if kills else None
            on_ray, seconds = timed(lambda: eda(rows, runner=Cluster(Path(folder), resources)))
            equal = on_ray.select_columns(local.column_names).with_format("arrow")[:].equals(local.with_format("arrow")[:])
        stop(cluster)
        more = (seconds - figures["here"]["seconds"]) / number
        figures[name] = {"start_seconds": started, "seconds": seconds, "extra_microseconds_a_row": more * 1e6, "equal": equal}
        if share:
            figures[name]["finished_at_the_kill"] = share.result()
        print(json.dumps(figures), file=sys.stderr)
        table.append([name, started, seconds, number / seconds, more * 1e6, "yes" if equal else "NO"])
    columns = ["where", "start s", "s", "rows/s", "µs/row more", "rows equal"]
    show(f"{number:,} claims through EDA's stages", columns, table, options.json, figures)


if __name__ == "__main__":
    main()
