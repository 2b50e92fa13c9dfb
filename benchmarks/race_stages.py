"""Is a stage's time its model's time? Seconds in the model ÷ seconds in the stage, for RACE's stages with the offline models.

"In the model" is the network's forward and its backward for explain and check, and the beam search for generate, of which the
network's forwards are a part; "in the stage" is `Dataset.map` as a whole. Models are loaded and warm; no answer comes from a cache.
"""

from __future__ import annotations

import os
import time
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false"
)

import torch
from common import Clock, patched, read_options, show
from datasets import disable_caching

import hfcf
from hfcf.core import recipe
from hfcf.core.mapping import map_stage
from hfcf.engines import classifier, generator
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.systems.race.system import RACE


def reopen(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with all its claims undecided."""
    candidates = [
        {**candidate, "status": None} if candidate["change"] == "claim" else candidate for candidate in row["candidates"] or []
    ]
    return {"candidates": candidates if row["candidates"] is not None else None, "status": None if candidates else row["status"]}


INSIDE = {"generate_claim": "search", "tag_entities": "tagger", "edit_evidence": "–", "filter_claim": "tagger"}


def main() -> None:
    """Run every stage over the demo's rows and print the shares."""
    options = read_options(__doc__ or "")
    disable_caching()
    ds = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    rows = 12 if options.quick else 50
    race = RACE.preset("offline", num_beams=10, max_new_tokens=32)
    device, dtype = torch.device("cpu"), torch.float32
    verifier, _ = classifier.load_classifier(race.verifier, device, dtype)
    race(ds.select(range(2)))  # loads and warms every model
    settings = {"num_beams": 10, "num_return_sequences": 10, "max_new_tokens": 32, "max_length": 512}
    writer = Generator(model=race.generator, **settings).loaded()[0]
    fitted = race.fit(map_stage(hfcf.prepare(ds, race), race.tag_entities, {}))
    ds = hfcf.prepare(ds, race).select(range(rows))

    table: list[list[Any]] = []
    figures: dict[str, Any] = {"rows": rows}
    for stage in fitted.stages:
        network, search, tagger = Clock(), Clock(), Clock()
        places = [
            (verifier, "forward", network.timed(verifier.forward)),
            (writer, "forward", network.timed(writer.forward)),
            (torch.autograd, "grad", network.timed(torch.autograd.grad)),
            (generator, "generate_constrained", search.timed(generator.generate_constrained)),
            (Ner, "forward", tagger.timed(Ner.forward)),
        ]
        if stage.name == "check_claim":
            # Every claim is checked, also those that the demo's short search cut off: thirty would take no measurable time.
            ds = ds.map(reopen, features=ds.features)
        with patched(*places):
            start = time.perf_counter()
            ds = map_stage(ds, stage, {"batch_size": rows})
            seconds = time.perf_counter() - start
        inside = search.seconds if stage.name == "generate_claim" else network.seconds or tagger.seconds
        figures[stage.name] = {
            "seconds": seconds,
            "rows_per_second": rows / seconds,
            "model_over_stage": inside / seconds,
            "forwards_over_search": network.seconds / search.seconds if search.seconds else None,
        }
        share = figures[stage.name]["forwards_over_search"] or "–"
        table.append([stage.name, seconds, rows / seconds, INSIDE.get(stage.name, "forward + backward"), inside / seconds, share])
    tag, edit = figures["tag_entities"]["seconds"], figures["edit_evidence"]["seconds"]
    figures["edit_with_ner_rows_per_second"] = rows / (tag + edit)
    show(
        f"RACE on {rows} rows, offline preset, 10 beams and 32 tokens",
        ["stage", "seconds", "rows/s", "inside", "inside/stage", "forwards/search"], table, options.json, figures,
    )  # fmt: skip
    print(f"edit with its NER: {rows / (tag + edit):.3g} rows/s, {tag / (tag + edit):.0%} of it NER")


if __name__ == "__main__":
    main()
