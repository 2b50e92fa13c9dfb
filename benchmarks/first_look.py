"""What does the first screen of README.md show? One counterfactual a task, and a verifier on a contrast set of the demo's claims.

    python benchmarks/first_look.py [--quick] [--json FILE]

The examples are each system's first counterfactual of the first row that ships with the library, in the preset `offline`: nobody
chose them. `--quick` makes no contrast set. The relation's example trains two small classifiers, so another processor may choose
another one.
"""

from __future__ import annotations

from typing import Any

from common import read_options, show
from datasets import Dataset

import hfcf
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.core.task import task_of

MODEL = Model("offline:minilm", adapter="hfcf:nli", inputs="claim-evidence")
"""A verifier that took no part in making the contrast set."""

PRINTED = ("pairs", "conditioned", "source", "counterfactual", "consistency", "interval")
"""The numbers that docs/how-to/contrast_set.md prints of the same pairs."""


def main() -> None:
    """Make the examples and score the verifier."""
    options = read_options(__doc__ or "")
    claims = hfcf.load("hover", data_dir="recipes:demo", split="train")
    sentences = hfcf.load("relations", data_dir="recipes:demo_relations", split="train", on_error="reject")
    questions = hfcf.load("questions", data_dir="recipes:demo_qa", split="train", on_error="reject")
    texts = hfcf.load("cad_imdb", data_dir="recipes:demo_texts", split="train")
    rgf = hfcf.RGF.preset("offline", passages=str(recipe.folder() / "demo_qa" / "passages.jsonl"), k=4)
    made = {
        "claim": (hfcf.CrossAug.preset("offline"), claims),
        "relation": (hfcf.CCG.preset("offline").fit(sentences), sentences.select(range(2))),
        "question": (rgf, questions.select(range(2))),
        "text": (hfcf.Synonym.preset("offline"), texts.select(range(2))),
    }
    examples, pairs = {}, None
    for name, (system, rows) in made.items():
        ds = system(rows)
        examples[name] = example(ds, system.name)
        if name == "claim" and not options.quick:
            pairs = hfcf.pair(hfcf.expand(ds), claims)
    figures: dict[str, Any] = {"examples": examples}
    if pairs is not None:
        numbers = hfcf.consistency(pairs, MODEL)
        figures["contrast"] = {
            **{name: numbers[name] for name in PRINTED}, "originals": len(set(pairs["source_id"])),
            "original": round(100 * numbers["source"]), "label_kept": numbers["change"]["both"]["pairs"],
            **{
                kind: {"pairs": part["pairs"], "right": round(100 * part["counterfactual"]), "consistency": part["consistency"]}
                for kind, part in numbers["change"].items()
            },
        }  # fmt: skip
    lines = [[name, one["system"], one["before"], one["after"], one["label"]] for name, one in examples.items()]
    show("the first counterfactual of each task", ["task", "system", "before", "after", "label"], lines, options.json, figures)


def example(ds: Dataset, system: str) -> dict[str, Any]:
    """Return the first counterfactual beside its source: what was changed, and the labels or the answers."""
    new, sources = hfcf.expand(ds)[0], {row["id"]: row for row in ds}
    source, task = sources[new["source_id"]], task_of(ds.features)
    before, after = (task.segments(row)[0].text for row in (source, new))
    labels = [task.outcome(row) for row in (source, new)]
    return {"system": system, "before": before, "after": after, "label": " → ".join(map(str, dict.fromkeys(labels)))}


if __name__ == "__main__":
    main()
