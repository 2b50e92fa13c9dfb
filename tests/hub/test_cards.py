"""Every card that the library writes is one that the Hub understands, and says what it must."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset, DatasetDict
from huggingface_hub import DatasetCard, EvalResult, ModelCard
from local_hub import LocalHub
from made import HOVER, SCORES, TRAINING, model_folder, rows, run_folder

from hfcf import augment, schema
from hfcf.corpora import CORPORA, build, builder_class
from hfcf.engines.model import Model
from hfcf.hub.check_card import check_card
from hfcf.hub.citation import AUTHORS, TITLE, YEAR, citation
from hfcf.hub.contents import data_files, front_matter
from hfcf.hub.dataset_card import dataset_card
from hfcf.hub.model_card import model_card
from hfcf.runner import _front_matter
from hfcf.training.loop import Hyperparameters

RUN: dict[str, Any] = {
    "name": "made", "system": "race", "citation": "@inproceedings{race}", "split": "train", "role": None, "preset": "paper",
    "seed": 13, "models": {}, "checked_by": None, "versions": {"hfcf": "1"},
    "rows_in": 3, "sources_accepted": 2, "sources_rejected": 1,
    "counterfactuals": 2, "changes": {"both": 2}, "labels": {"REFUTES": 2}, "labels_kept": 0, "funnel": [], "augmented": None,
    "metrics": {"fluency": {"after": {"n": 2, "mean": 31.23456}, "before": {"n": 3, "mean": 40.0}}},
}  # fmt: skip
CONFIGS = [{"config_name": "default", "default": True, "data_files": [{"split": "train", "path": "data/default/train-0.parquet"}]}]


def valid(card: str, kind: str) -> str:
    """The card, when the server's rules and ours find nothing wrong with it."""
    (ModelCard if kind == "model" else DatasetCard)(card).validate()
    assert check_card(front_matter(card), kind) == []
    return card


@pytest.mark.parametrize("name", CORPORA)
def test_the_card_of_a_run_over_any_corpus_is_valid(hub: LocalHub, name: str) -> None:
    info = builder_class(name).INFO
    run = {**RUN, "corpus": name, "task": info.task}
    card = valid(
        dataset_card(
            name="made", command="hfcf run x", corpus=_front_matter(name), configs=CONFIGS, empty=[], run=run, examples=[]
        ),
        "dataset",
    )  # fmt: skip
    front = front_matter(card)
    assert front["license"] == info.licence
    assert front["source_datasets"] == [info.hub_id or f"extended|other-{name}"]
    assert front.get("republish", True) == info.republish
    assert "| fluency, mean | 31.2346 | 40.0 |" in card
    assert citation() in card
    assert "@inproceedings{race}" in card


@pytest.mark.parametrize("name", CORPORA)
def test_the_card_of_a_built_corpus_is_valid(hub: LocalHub, name: str) -> None:
    info = builder_class(name).INFO
    row = dict.fromkeys(schema.TASKS[info.task])
    ds = Dataset.from_list([{**row, "id": "1", "label": "SUPPORTS"}], features=schema.TASKS[info.task])
    valid(build.card(info, DatasetDict(train=ds), {"train": "data/train-0.parquet"}), "dataset")


def test_the_card_of_a_run_tells_how_it_was_made(hub: LocalHub, run_out: Path) -> None:
    card = valid((run_out / "README.md").read_text(), "dataset")
    front = front_matter(card)
    assert (front["license"], front["language"], front["size_categories"]) == ("cc-by-sa-3.0", ["en"], ["n<1K"])
    assert (front["task_categories"], front["task_ids"]) == (["text-classification"], ["fact-checking"])
    assert front["source_datasets"] == ["fever/fever"]
    assert [config["config_name"] for config in front["configs"]] == ["default", "augmented", "rejected"]
    assert [bool(config.get("default")) for config in front["configs"]] == [True, False, False]
    named = [run_out / path for splits in data_files(front).values() for path in splits.values()]
    assert sorted(named) == sorted(run_out.rglob("*.parquet"))
    examples = card.split("## Examples")[1].split("##")[0]
    assert len(re.findall(r"^\| claim \|", examples, re.MULTILINE)) == 10
    for part in (
        "hfcf run crossaug_fever --out out", "Seed 13", "generator: `me/negative@0123abc`", "too near (",
        "About 10 % of the groups", f"hfcf {version('hfcf')}", "@inproceedings{lee-etal-2021-crossaug", "@software{hfcf", "fever",
    ):  # fmt: skip
        assert part in card, part


def test_an_augmented_set_separates_no_group_and_holds_no_unread_row(run_out: Path) -> None:
    files = data_files(front_matter((run_out / "README.md").read_text()))["augmented"]
    splits = {split: Dataset.from_parquet(str(run_out / path)) for split, path in files.items()}
    assert list(splits) == ["train", "validation"]
    groups = {split: set(part["group_id"]) for split, part in splits.items()}
    assert not groups["train"] & groups["validation"]
    assert 0.02 < len(groups["validation"]) / 30 < 0.25
    together = [row for part in splits.values() for row in part]
    assert list(splits["train"].features) == list(schema.TASKS["verification"])
    assert splits["train"].features["label"].names == list(schema.LABELS)
    made = [row for row in together if ":crossaug:" in row["id"]]
    assert (len(together), len(made)) == (59 + 40, 40)  # one original can't be read
    again = augment.augmented(Dataset.from_list(rows()[:3]).cast_column("label", schema.TEXT))
    assert again["id"][:] == ["0", "1", "2", "0:crossaug:claim", "1:crossaug:claim"]


@pytest.mark.parametrize(("role", "names"), [(None, ["validation"]), ("train", ["train", "validation"])])
def test_rows_that_models_are_scored_on_are_not_divided_to_train_on(
    hub: LocalHub, tmp_path: Path, role: str | None, names: list[str]
) -> None:
    card = valid((run_folder(tmp_path, split="validation", role=role) / "README.md").read_text(), "dataset")
    assert list(data_files(front_matter(card))["augmented"]) == names
    assert ("should not be trained on" in card) == (role is None)


# --- models


def test_the_scores_of_a_model_are_read_back_as_results(hub: LocalHub, model_out: Path) -> None:
    card = ModelCard(valid((model_out / "README.md").read_text(), "model"))
    results = card.data.eval_results
    assert results is not None
    assert [(one.dataset_type, one.dataset_config, one.dataset_split, one.metric_type, one.metric_value) for one in results] == [
        ("fever/fever", "held out: fever", "held_out", "accuracy", 0.8665),
        ("fever/fever", "held out: fever", "held_out", "f1", 0.8664),
        ("hover-nlp/hover", "HoVer dev", "validation", "accuracy", 0.61),
        ("hover-nlp/hover", "HoVer dev", "validation", "f1", 0.6),
        ("hover-nlp/hover", "HoVer dev, 2 hops", "validation", "accuracy", 0.7),
        ("hover-nlp/hover", "HoVer dev, 2 hops", "validation", "f1", 0.69),
    ]
    assert {one.task_type for one in results} == {"text-classification"}
    assert results[0].metric_name == "accuracy, 2-way"
    assert all(isinstance(one, EvalResult) for one in results)
    assert (card.data.base_model, card.data.base_model_relation) == ("FacebookAI/roberta-base", "finetune")
    assert card.data.datasets == ["fever/fever"]
    for part in (
        "## Intended use", "| held out: fever, 2-way | 0.8665 | 0.6801 | 0.5013 |", "hfcf train mine.yaml", "learning_rate",
        "900 rows were trained on", citation(), 'Model("PATH_OR_REPOSITORY")',
    ):  # fmt: skip
        assert part in card.content, part


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "verifier": ({"baselines": True, "ways": 2}, SCORES),
    "generator": ({}, {"held out": {"rows": 50, "bleu": 31.5, "chrf": 55.25, "copy": {"bleu": 1.5}}}),
    "rewriter": (
        {"pairs": "negative", "judge": {"model": "offline:minilm"}},
        {"trained on": {"pairs": 3}, "held out: fever": {"repeats": 0.5, "model": {"bleu": 3.5}, "copy": {"bleu": 9.5}}},
    ),
    "explainer": ({}, {"held out: fever": {"rows": 5, "consistent": 0.5, "token": {"kept": 0.9}, "random token": {"kept": 0.1}}}),
    "masked_lm": ({}, {"held out: fever": {"as shipped": {"first": 0.1}, "trained": {"first": 0.25, "first five": 0.5}}}),
    "relation": ({"dev": {"corpus": "semeval", "data_dir": "s", "name": "dev"}}, {"dev": {"rows": 5, "micro_f1": 0.8125}}),
}
EXPECTED = {
    "generator": [("bleu", 31.5), ("chrf", 55.25)],
    "rewriter": [("repeats", 0.5), ("bleu", 3.5)],
    "explainer": [("consistent", 0.5), ("kept", 0.9)],
    "masked_lm": [("first", 0.25), ("first_five", 0.5)],
    "relation": [("f1", 0.8125)],
}


@pytest.mark.parametrize(("tune", "base"), [("full", "google-t5/t5-base"), ("lora", "offline:t5"), ("lowrank", "offline:minilm")])
@pytest.mark.parametrize("kind", KINDS)
def test_the_card_of_any_training_is_valid(hub: LocalHub, kind: str, tune: str, base: str) -> None:
    more, scores = KINDS[kind]
    corpus = "ace2005" if kind == "relation" else "fever"
    recipe = {**TRAINING, "train": kind, "data": [{"corpus": corpus, "data_dir": "x"}], **more}
    if kind != "verifier":
        recipe["evaluate"] = [HOVER]
    report = {"rows": {"train": 9, "held_out": 1, "dropped as repeats": 0}, "scores": scores, "seconds": 1}
    text = model_card(recipe, Hyperparameters(model=Model(base), tune=tune), report, "hfcf train x")
    card = ModelCard(valid(text, "model"))
    assert card.data.base_model == {"offline:t5": None, "offline:minilm": "sentence-transformers/all-MiniLM-L6-v2"}.get(base, base)
    assert kind not in EXPECTED or [(one.metric_type, one.metric_value) for one in card.data.eval_results or []] == EXPECTED[kind]
    adapter = tune != "full" and kind not in ("explainer", "masked_lm", "relation")
    assert ('adapter="PATH_OR_REPOSITORY")' in text) == adapter
    assert ("are for holders of its licence" in text) == (kind == "relation")


def test_the_cards_of_the_adapters_that_ship_are_valid(hub: LocalHub) -> None:
    cards = sorted((Path(__file__).parents[2] / "hfcf" / "adapters").glob("*/README.md"))
    assert len(cards) >= 8
    for path in cards:
        card = ModelCard(valid(path.read_text(encoding="utf-8"), "model"))
        assert card.data.eval_results, path


def test_faults_of_a_card_are_named() -> None:
    front = {
        "license": "public", "language": ["english"], "task_categories": ["text-classification", "nli"],
        "task_ids": ["fact-checks"], "size_categories": ["small"], "source_datasets": ["a b"],
        "configs": [
            {"config_name": "a", "default": True, "data_files": [{"split": "tr ain", "path": "../x.parquet"}]},
            {"config_name": "a", "default": True, "data_files": []},
        ],
    }  # fmt: skip
    found = check_card(front, "dataset")
    assert [fault.split(":")[0] for fault in found] == [
        "license", "language", "task_categories", "task_ids", "size_categories", "source_datasets", *["configs"] * 5,
    ]  # fmt: skip
    model = {"license": "mit", "language": "en", "pipeline_tag": "nli", "base_model": "offline:t5", "model-index": [{}]}
    assert [fault.split(":")[0] for fault in check_card(model, "model")] == ["pipeline_tag", "base_model", "model-index"]


def test_the_citation_file_says_what_the_cards_say() -> None:
    path = Path(__file__).parents[2] / "CITATION.cff"
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert told["cff-version"] == "1.2.0"
    assert (told["title"], told["version"], told["license"]) == (TITLE, version("hfcf"), "Apache-2.0")
    assert told["authors"] == [{"name": AUTHORS.strip("{}")}]
    assert told["date-released"].year == YEAR
    for paper in told["references"]:
        assert {"type", "title", "authors", "year"} <= set(paper), paper
    cited = {re.sub(r"\W", "", paper["title"]).casefold() for paper in told["references"]}
    from hfcf.runner import system_class

    for name in ("race", "crossaug", "ccg"):
        titled = re.search(r"title\s*=\s*[{\"](.*?)[}\"],?\s*$", system_class(name).citation, re.MULTILINE)
        assert titled is not None, name
        assert re.sub(r"\W", "", titled[1]).casefold() in cited, name


def test_a_model_folder_is_told_from_the_card_of_a_run(tmp_path: Path, tiny_model: Any) -> None:
    out = model_folder(tmp_path / "model", tiny_model("classifier"), tune="lowrank")
    assert 'Model("FacebookAI/roberta-base", adapter="PATH_OR_REPOSITORY")' in (out / "README.md").read_text()
