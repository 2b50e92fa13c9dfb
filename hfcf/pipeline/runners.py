"""Where a run computes: in this process, in those of a launcher, or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from hfcf.core.system import Runner
from hfcf.core.workers import launched_processes
from hfcf.pipeline.row_recipes import RayResources

ENGINES = ("local", "ray")


def choose_runner(out: Path) -> Runner:
    """Return what divides the work over the processes of a launcher, or, without one, runs it here."""
    if launched_processes() == 1:
        return Runner()
    from hfcf.pipeline.processes import Processes

    return Processes(out)


def choose_engine(engine: str, team: Runner, resources: RayResources | None, out: Path) -> Runner:
    """Return what runs a system's stages: for "local" the processes that there are, for "ray" a cluster."""
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    if engine == "local":
        return team
    if launched_processes() > 1:
        raise ValueError("one process drives a Ray cluster: start it without accelerate launch and --num-gpus")
    from hfcf.pipeline.ray_engine import Cluster

    return Cluster(out, resources or RayResources())
