"""How do counterfactuals that others published compare with this library's, on the same rows and by the same scores?

The rows are the 400 pairs of SNLI whose hypotheses people, MiCE, GBDA, CREST and Llama-2 revised for CEval (Nguyen et al. 2024).
Give a clone of its repository (Apache-2.0) with `--ceval FOLDER`; its outputs are read from `results/snli/*/results.csv`. Beside
them come CrossAug's counterfactuals of the entailed rows, by the preset offline: only the pairs that its checks accept. So the
others' revisions of the same originals come once more by themselves.

Labels are given by one classifier for all, `hfcf:verifier_base`, which is right on 83 % of these 400 originals: flips compare
methods, and say little of a single pair. Perplexity is by offline:smollm2, the median, because single words make a few sentences
improbable. Without a folder, or with `--quick`, three pairs show that the script works.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from common import read_options, show
from datasets import Dataset
from pandas import DataFrame, read_csv

import hfcf
from hfcf.core.model import Model
from hfcf.engines.perplexity import Perplexity
from hfcf.pipeline.score_pairs import score_pairs

JUDGE = Model("offline:mpnet", adapter="hfcf:verifier_base")
METHODS = {"people": "crowd", "MiCE": "mice", "GBDA": "gbda", "CREST": "crest", "Llama-2, temperature 0.2": "llama_02"}
SIDES: dict[str, Any] = {
    "original": {"claim": "orig_hypothesis", "evidence": "orig_premise"},
    "revised": [{"claim": "gen_hypothesis", "evidence": "orig_premise"}],
}
FEW = [
    ("A man sleeps on a bench.", "A man rests.", "A man runs."),
    ("Two dogs play in the snow.", "Two dogs play outside.", "Three dogs play outside."),
    ("A woman reads a book.", "A woman is reading.", "A woman is singing."),
]


def read_published(folder: Path) -> dict[str, DataFrame]:
    """Read the outputs of each method, without rows that it left empty."""
    found = {}
    for name, place in METHODS.items():
        table = read_csv(folder / "results" / "snli" / place / "results.csv")
        columns = ["orig_premise", "orig_hypothesis", "gen_hypothesis"]
        found[name] = table[columns].dropna().astype(str).reset_index(drop=True)
    return found


def make_own(folder: Path, system: Any, accept: str) -> DataFrame:
    """Let a system write counterfactuals of the originals, and return those of claims in the published columns."""
    rows = read_csv(folder / "datasets" / "NLI" / "original" / "test.tsv", sep="\t")
    rows = rows[rows["gold_label"].isin(["entailment", "contradiction", "neutral"])]
    originals = hfcf.from_dataset(Dataset.from_pandas(rows, preserve_index=False))
    made = hfcf.pair(hfcf.expand(system(originals)), originals)
    pairs = [
        (row["source"]["evidence"][0]["text"], row["source"]["claim"], row["claim"]) for row in made if row["change"] == accept
    ]
    return DataFrame(pairs, columns=["orig_premise", "orig_hypothesis", "gen_hypothesis"])


def name_originals(table: DataFrame) -> list[tuple[str, ...]]:
    """Return what names the original of each row: its words, since some methods changed case and spaces."""
    words = (table[column].str.casefold().str.findall(r"\w+").map(tuple) for column in ("orig_premise", "orig_hypothesis"))
    return [(*premise, *hypothesis) for premise, hypothesis in zip(*words, strict=True)]


def main() -> None:
    options = read_options(str(__doc__), ceval="a clone of CEval's repository")
    if options.ceval and not options.quick:
        tables = read_published(options.ceval)
        own = make_own(options.ceval, hfcf.CrossAug.preset("offline"), "claim")
        answered = set(name_originals(own))
        for name, table in [*tables.items()]:
            chosen = [original in answered for original in name_originals(table)]
            tables[f"{name}, the rows of CrossAug"] = table[chosen].reset_index(drop=True)
        tables["CrossAug, preset offline"] = own
    else:
        tables = {"by hand": DataFrame(FEW, columns=["orig_premise", "orig_hypothesis", "gen_hypothesis"])}
    figures: dict[str, Any] = {}
    lines = []
    for name, table in tables.items():
        result = score_pairs(Dataset.from_pandas(table, preserve_index=False), **SIDES, model=JUDGE, max_length=128)
        scores = {key: found and found[0] for key, found in result["scores"].items()}
        found = Perplexity(model=Model("offline:smollm2")).run(table["gen_hypothesis"].tolist())
        scores["perplexity"] = median(value for value in found if value)
        figures[name] = {"pairs": result["pairs"], **scores, "intervals": result["scores"]}
        columns = ("flip_rate", "probability_change", "distance", "share", "kept", "perplexity")
        lines.append([name, result["pairs"], *(scores[key] for key in columns)])
    header = ["method", "pairs", "flip rate", "probability change", "distance", "share", "kept", "perplexity"]
    show("SNLI, revised hypotheses of 400 pairs", header, lines, options.json, figures)


if __name__ == "__main__":
    main()
