"""How many CPU seconds does a row of RACE, CrossAug and EDA take on one thread, stage by stage?

The demo's claims, the offline preset, RACE's small search of the demo (10 beams, 32 tokens). Models are loaded before, and no cache
answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from common import read_options, show

SYSTEMS: dict[str, dict[str, Any]] = {"race": {"num_beams": 10, "max_new_tokens": 32}, "crossaug": {}, "eda": {}}


def seconds(name: str, ds: Any, rows: int) -> dict[str, float]:
    """Run a system on the first rows, and return the CPU seconds a row of each stage."""
    from hfcf.systems import system_class

    system, spent = system_class(name).preset("offline", **SYSTEMS[name]), dict[str, float]()
    system(ds.select(range(2)), load_from_cache_file=False)  # loads the models

    def watch(stage: Any, step: Callable[[], Any]) -> Any:
        start = time.process_time()
        done = step()
        if hasattr(stage, "batch_size"):  # and is no training
            spent[stage.name] = (time.process_time() - start) / len(done)
        return done

    system(ds, limit=rows, watch=watch, load_from_cache_file=False)
    return spent


def main() -> None:
    """Measure the three systems and print CPU seconds a row."""
    os.environ["HFCF_REQUEST_CACHE"] = "off"
    import torch

    import hfcf
    from hfcf.core import recipe

    torch.set_num_threads(1)
    options = read_options(__doc__ or "")
    ds = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    table: list[list[Any]] = []
    figures: dict[str, Any] = {"rows": (rows := 5 if options.quick else 40)}
    for name in SYSTEMS:
        stages = seconds(name, ds, rows)
        figures[name] = {**stages, "all": sum(stages.values())}
        table += [[name, stage, value] for stage, value in figures[name].items()]
    show(f"CPU seconds a row, {rows} rows", ["system", "stage", "s"], table, options.json, figures)


if __name__ == "__main__":
    main()
