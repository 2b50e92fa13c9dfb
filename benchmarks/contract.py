"""What do the contract of stages and `expand` cost? Rows per second beside a map that decodes and re-encodes every column.

100,000 rows of verification of 1 kB, evidence as structs, batches of 1,000, CPU seconds of one process, the three in turn. The
stages have no work of their own: what they take is what the contract takes. The last line is NER of RACE's stage beside one call
of spaCy's pipeline for each sentence.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar

os.environ.update(HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1")

from common import read_options, show
from datasets import Dataset, Features, disable_caching, load_from_disk

import hfcf
from hfcf.core import schema
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.core.task import get_task
from hfcf.engines.ner import Ner
from hfcf.systems._shared.tag_entities import TagEntities

TEXT = """the a of in river city song film player was born released by Oslo Rome 1994 second album team band after year award
with and American novel written first king station"""
WORDS = TEXT.split()


@dataclass(frozen=True, kw_only=True)
class ReadClaim(Stage):
    """Read the claim, and fill a number."""

    inputs: ClassVar = {"claim": schema.TEXT}
    outputs: ClassVar = {"size": schema.INT}

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return [{"size": 1} for _ in rows]


@dataclass(frozen=True, kw_only=True)
class ReadRow(ReadClaim):
    """Read everything that the task has."""

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT}


def make_rows(n: int) -> Dataset:
    """Make rows of about 1 kB: a claim and five pieces of evidence."""
    random, task = Random(13), get_task("verification")

    def text(words: int) -> str:
        return " ".join(random.choice(WORDS) for _ in range(words)).capitalize() + "."

    claims, pieces = [text(18) for _ in range(2000)], [{"title": text(3), "text": text(30)} for _ in range(5000)]
    columns: dict[str, list[Any]] = {
        "id": [f"row-{i}" for i in range(n)],
        "claim": [random.choice(claims) for _ in range(n)],
        "evidence": [random.sample(pieces, 5) for _ in range(n)],
        "label": [random.choice(("SUPPORTS", "REFUTES")) for _ in range(n)],
        "group_id": [f"row-{i}" for i in range(n)],
        "corpus": ["made"] * n,
        "split": ["train"] * n,
    }
    return Dataset.from_dict(columns, features=task.features)


def with_counterfactuals(ds: Dataset) -> Dataset:
    """Give each row one counterfactual, of its own size."""
    column_types = get_task("verification").counterfactual
    edit = {"field": "claim", "piece": -1, "start": 0, "end": 3, "before": "The", "after": "One"}
    more = {"source_id": "r", "system": "made", "change": "claim", "edits": [edit], "scores": [{"name": "verifier", "value": 0.9}]}

    def fill(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        return {"counterfactuals": [[{**row, **more}] for row in rows]}

    return ds.map(fill, batched=True, features=Features({**ds.features, "counterfactuals": [dict(column_types)]}))


def decode_all(batch: Any) -> dict[str, list[Any]]:
    """Decode every column, which `map` then encodes again."""
    return {column: list(batch[column]) for column in batch}


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare_ner(sentences: int) -> dict[str, float]:
    """Return sentences a second of one call each, and of the stage, without any cache."""
    import spacy

    model = Model("offline:spacy")
    random = Random(7)
    texts = [" ".join(random.choice(WORDS) for _ in range(18)).capitalize() + f" {i}." for i in range(sentences)]
    task = get_task("verification")
    same = {"evidence": [{"title": "", "text": "2."}], "label": "SUPPORTS", "group_id": "g", "corpus": "made", "split": "train"}
    rows = [{"id": str(i), "claim": text, **same} for i, text in enumerate(texts)]
    stage = TagEntities(ner=Ner(backend="spacy", model=model))
    ds = hfcf.prepare(Dataset.from_list(rows, features=task.features), stage)
    pipeline = spacy.load(model.source())
    map_stage(ds.select(range(2)), stage, {})  # loads the model
    one_each, by_stage = [], []
    for _ in range(3):
        one_each.append(seconds(lambda: [pipeline(text).ents for text in texts]))
        by_stage.append(seconds(lambda: map_stage(ds, stage, {})))
    return {"one_call_each": sentences / statistics.median(one_each), "stage": sentences / statistics.median(by_stage)}


def main() -> None:
    """Time the maps in turn, and print rows per second."""
    options = read_options(__doc__ or "")
    disable_caching()
    n, times = (20_000, 3) if options.quick else (100_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        made = make_rows(n)
        made.save_to_disk(Path(folder) / "rows")
        with_counterfactuals(made).save_to_disk(Path(folder) / "expanding")
        ds, expanding = load_from_disk(Path(folder) / "rows"), load_from_disk(Path(folder) / "expanding")
        size = ds.data.nbytes / n
        reads_claim, reads_row = ReadClaim(), ReadRow()
        for_claim, for_row = hfcf.prepare(ds, reads_claim), hfcf.prepare(ds, reads_row)
        kwargs = {"batch_size": 1000}
        work: dict[str, Callable[[], Any]] = {
            "map: decode and encode every column": lambda: ds.map(decode_all, batched=True),
            "map: a function that does nothing": lambda: ds.map(lambda batch: batch, batched=True),
            "stage: reads the claim": lambda: map_stage(for_claim, reads_claim, kwargs),
            "stage: reads claim, evidence and label": lambda: map_stage(for_row, reads_row, kwargs),
            "expand": lambda: hfcf.expand(expanding),
        }
        spent: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(times):
            for name, call in work.items():
                spent[name].append(seconds(call))
    rates = {name: n / statistics.median(values) for name, values in spent.items()}
    base = rates["map: decode and encode every column"]
    ner = compare_ner(200 if options.quick else 1000)
    figures = {
        "rows": n, "bytes_per_row": size, "rows_per_second": rates, "ner_sentences_per_second": ner,
        "stage_over_map": rates["stage: reads the claim"] / base,
        "whole_row_stage_over_map": rates["stage: reads claim, evidence and label"] / base,
        "expand_over_map": rates["expand"] / base,
        "ner_over_one_call_each": ner["stage"] / ner["one_call_each"],
    }  # fmt: skip
    table: list[list[Any]] = [[name, f"{rate:,.0f}", rate / base] for name, rate in rates.items()]
    show(f"The contract on {n:,} rows of {size:,.0f} bytes", ["work", "rows/s", "times the map"], table, options.json, figures)
    print(f"NER: {ner['stage']:.0f} sentences/s by the stage, {ner['one_call_each']:.0f} by one call each: "
          f"{figures['ner_over_one_call_each']:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
