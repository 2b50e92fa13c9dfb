"""How do counterfactuals that others published compare with this library's, on the same rows and by the same scores?

Nguyen et al. (2024) published for CEval what people, MiCE, GBDA, CREST and Llama-2 wrote: revised hypotheses of 400 pairs of SNLI,
and revisions of 488 reviews of IMDb. Give a clone of its repository (Apache-2.0) with `--ceval FOLDER`; its outputs are read from
`results/*/*/results.csv`. Without a folder, or with `--quick`, three pairs show that the script works.

SNLI: beside them come CrossAug's counterfactuals of the entailed rows, by the preset offline: only the pairs that its checks
accept. So the others' revisions of the same originals come once more by themselves. Labels are given by one classifier for all,
`hfcf:verifier_base`, which is right on 83 % of these 400 originals: flips compare methods, and say little of a single pair.

With `--reviews CLASSIFIER` the reviews are scored instead, by a classifier of yours, such as recipes/train_classification.yaml
trains it: 50 of the 488, and what offline:qwen makes of 12 of them with the system `llm`.

Perplexity is by offline:smollm2, the median, because single words make a few sentences improbable.
"""

from __future__ import annotations

from collections.abc import Sequence
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

METHODS = {"people": "crowd", "MiCE": "mice", "GBDA": "gbda", "CREST": "crest", "Llama-2, temperature 0.2": "llama_02"}
HYPOTHESES: dict[str, Any] = {
    "original": {"claim": "orig_hypothesis", "evidence": "orig_premise"},
    "revised": [{"claim": "gen_hypothesis", "evidence": "orig_premise"}],
    "model": Model("offline:mpnet", adapter="hfcf:verifier_base"),
    "max_length": 128,
}
REVIEWS: dict[str, Any] = {"original": {"text": "orig_text"}, "revised": [{"text": "gen_text"}], "max_length": 256}
SCORED, ASKED = 50, 12
"""Reviews that are scored, and those of them that our language model revises."""
FEW = [
    ("A man sleeps on a bench.", "A man rests.", "A man runs."),
    ("Two dogs play in the snow.", "Two dogs play outside.", "Three dogs play outside."),
    ("A woman reads a book.", "A woman is reading.", "A woman is singing."),
]


def columns_of(sides: dict[str, Any]) -> list[str]:
    """List the columns that are read, in a fixed order."""
    return sorted({*sides["original"].values(), *(name for side in sides["revised"] for name in side.values())})


def read_published(folder: Path, corpus: str, methods: dict[str, str], sides: dict[str, Any]) -> dict[str, DataFrame]:
    """Read the outputs of each method; a row that it left empty has no text."""
    found = {}
    for name, place in methods.items():
        found[name] = read_csv(folder / "results" / corpus / place / "results.csv")[columns_of(sides)]
    return found


def filled(table: DataFrame) -> DataFrame:
    """Return the rows in which no text is missing."""
    return table.dropna().astype(str).reset_index(drop=True)


def revise_hypotheses(folder: Path) -> DataFrame:
    """Let CrossAug write counterfactuals of the originals, and return those of claims in the published columns."""
    rows = read_csv(folder / "datasets" / "NLI" / "original" / "test.tsv", sep="\t")
    rows = rows[rows["gold_label"].isin(["entailment", "contradiction", "neutral"])]
    originals = hfcf.from_dataset(Dataset.from_pandas(rows, preserve_index=False))
    made = hfcf.pair(hfcf.expand(hfcf.CrossAug.preset("offline")(originals)), originals)
    pairs = [
        (row["source"]["evidence"][0]["text"], row["source"]["claim"], row["claim"]) for row in made if row["change"] == "claim"
    ]
    return DataFrame(pairs, columns=["orig_premise", "orig_hypothesis", "gen_hypothesis"])


def revise_reviews(rows: DataFrame) -> DataFrame:
    """Let the offline language model revise reviews, unchecked, and return them in the published columns."""
    originals = hfcf.from_dataset(
        Dataset.from_pandas(rows, preserve_index=False), columns={"text": "orig_text"}, task="classification"
    )
    system = hfcf.LLM.preset("paper", task="classification", model="chat:offline:qwen")
    made = hfcf.pair(hfcf.expand(system(originals)), originals)
    return DataFrame([(row["source"]["text"], row["text"]) for row in made], columns=["orig_text", "gen_text"])


def name_originals(table: DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what names the original of each row: its words, since some methods changed case and spaces."""
    words = [table[column].str.casefold().str.findall(r"\w+").map(tuple) for column in columns]
    return [tuple(word for part in parts for word in part) for parts in zip(*words, strict=True)]


def hypotheses(folder: Path) -> dict[str, DataFrame]:
    """Return the revisions of hypotheses: of all rows, of the rows that CrossAug answers, and CrossAug's."""
    tables = {name: filled(each) for name, each in read_published(folder, "snli", METHODS, HYPOTHESES).items()}
    own, originals = revise_hypotheses(folder), ("orig_premise", "orig_hypothesis")
    answered = set(name_originals(own, originals))
    for name, table in [*tables.items()]:
        chosen = [original in answered for original in name_originals(table, originals)]
        tables[f"{name}, the rows of CrossAug"] = table[chosen].reset_index(drop=True)
    return {**tables, "CrossAug, preset offline": own}


def reviews(folder: Path) -> dict[str, DataFrame]:
    """Return the revisions of reviews: of rows that are drawn, of those that our model revised, and our model's."""
    published = read_published(folder, "imdb", {**METHODS, "experts": "expert"}, REVIEWS)
    rows = published["people"].assign(label=read_csv(folder / "results" / "imdb" / "llama_02" / "results.csv")["Sentiment"])
    drawn = rows.sample(SCORED, random_state=13).index  # every file has the reviews in the same order
    tables = {name: filled(each.loc[drawn]) for name, each in published.items()}
    own = revise_reviews(rows.loc[drawn[:ASKED]])
    answered = [place for place in drawn[:ASKED] if rows.loc[place, "orig_text"] in set(own["orig_text"])]
    tables |= {f"{name}, the rows of Qwen": filled(each.loc[answered]) for name, each in published.items()}
    return {**tables, "Qwen2.5-Coder-1.5B, system llm": own}


def main() -> None:
    options = read_options(
        str(__doc__), ceval="a clone of CEval's repository", reviews="score reviews instead, by this classifier: its folder"
    )
    sides = HYPOTHESES
    if options.quick or not options.ceval:
        title, tables = "Three pairs", {"by hand": DataFrame(FEW, columns=["orig_premise", "orig_hypothesis", "gen_hypothesis"])}
    elif options.reviews:
        title, tables = f"IMDb, {SCORED} of the 488 reviews", reviews(options.ceval)
        sides = {**REVIEWS, "model": Model(str(options.reviews))}
    else:
        title, tables = "SNLI, revised hypotheses of 400 pairs", hypotheses(options.ceval)
    figures: dict[str, Any] = {}
    lines = []
    (revised,) = (next(iter(side.values())) for side in sides["revised"])
    for name, table in tables.items():
        result = score_pairs(Dataset.from_pandas(table, preserve_index=False), **sides)
        scores = {key: found and found[0] for key, found in result["scores"].items()}
        found = Perplexity(model=Model("offline:smollm2")).run(table[revised].tolist())
        scores["perplexity"] = median(value for value in found if value)
        figures[name] = {"pairs": result["pairs"], **scores, "intervals": result["scores"]}
        columns = ("flip_rate", "probability_change", "distance", "share", "kept", "perplexity")
        lines.append([name, result["pairs"], *(scores[key] for key in columns)])
        print(*lines[-1], flush=True)
    header = ["method", "pairs", "flip rate", "probability change", "distance", "share", "kept", "perplexity"]
    show(title, header, lines, options.json, figures)


if __name__ == "__main__":
    main()
