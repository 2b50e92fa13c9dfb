"""How much slower is a stage beside another program, and which of OpenMP's settings costs least alone?

RACE's `generate_claim` writes claims for a few of the demo's rows in a process of its own, alone and beside a training of a small
network with a thread for each core. OpenMP's threads wait for each other in a loop, 300,000 times by default before they sleep:
beside other threads they wait for a core that a waiting thread holds. The command line sets a short loop, `GOMP_SPINCOUNT=10000`;
`OMP_WAIT_POLICY=passive` has none, and one thread never waits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common import read_options, show

ALONE, BESIDE = "alone", "beside a training"
WAYS: dict[str, dict[str, str]] = {
    "OpenMP's defaults": {},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
    "OMP_NUM_THREADS=1": {"OMP_NUM_THREADS": "1"},
}
READY = "ready"


def work(rows: int) -> None:
    """Load and warm the models, then print the seconds that the stage takes."""
    from datasets import disable_caching

    import hfcf
    from hfcf.core import recipe
    from hfcf.core.mapping import map_stage
    from hfcf.systems.race.system import RACE

    disable_caching()
    ds = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    race = RACE.preset("offline", num_beams=10, max_new_tokens=32)
    fitted = race.fit(map_stage(hfcf.prepare(ds, race), race.tag_entities, {}))
    ds = hfcf.prepare(ds, race).select(range(rows))
    for stage in fitted.stages:
        if stage.name == "generate_claim":
            map_stage(ds.select(range(1)), stage, {})
            start = time.perf_counter()
            map_stage(ds, stage, {})
            print(json.dumps(time.perf_counter() - start), flush=True)
            return
        ds = map_stage(ds, stage, {})


def train() -> None:
    """Train a small network for ever, with a thread for each core."""
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
    steps = torch.optim.SGD(network.parameters(), lr=1e-4)
    print(READY, flush=True)
    while True:
        steps.zero_grad()
        network(torch.randn(64, 512)).square().mean().backward()
        steps.step()


@contextmanager
def training() -> Iterator[None]:
    """Let a training run beside what is in the context."""
    process = subprocess.Popen([sys.executable, __file__, "--train"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == READY
        yield
    finally:
        process.kill()
        process.wait()


def measure(rows: int, settings: dict[str, str]) -> float:
    """Return the stage's seconds in a process with settings of OpenMP."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    env = {**kept, "HF_HUB_OFFLINE": "1", "HFCF_REQUEST_CACHE": "off", "TOKENIZERS_PARALLELISM": "false", **settings}
    done = subprocess.run([sys.executable, __file__, "--work", str(rows)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure each setting alone and beside a training, and print seconds and ratios."""
    options = read_options(__doc__ or "")
    rows = 3 if options.quick else 12
    figures: dict[str, Any] = {"rows": rows, "cores": os.cpu_count()}
    table = []
    for name, settings in WAYS.items():
        alone = measure(rows, settings)
        with training():
            beside = measure(rows, settings)
        figures[name] = {ALONE: alone, BESIDE: beside}
        table.append([name, alone, beside, alone / figures[next(iter(WAYS))][ALONE], beside / alone])
    show(
        f"generate_claim on {rows} rows, {os.cpu_count()} cores",
        ["setting", "seconds alone", "beside a training", "alone / defaults alone", "beside / alone"], table, options.json, figures,
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--train"]:
        train()
    else:
        main()
