"""Every card that the library writes is one that the Hub understands, and says what it must."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset, DatasetDict, Features, load_dataset
from huggingface_hub import DatasetCard, ModelCard
from local_hub import LocalHub
from made import FEATURES, HOVER, OK, SCORES, TRAINING, rows, run_folder

import hfcf
from hfcf.core import expand as augment
from hfcf.core import model as models
from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.safe_yaml import front_matter
from hfcf.core.task import get_task, task_of
from hfcf.corpora import builder_class, names
from hfcf.engines.classifier import Classifier
from hfcf.hub.dataset_card import dataset_card
from hfcf.hub.errors import HubError
from hfcf.hub.folder import configs
from hfcf.hub.model_card import model_card
from hfcf.hub.render import AUTHORS, TITLE, YEAR, citation
from hfcf.hub.run_folder import check_name, data_files
from hfcf.pipeline import build_corpus as build
from hfcf.pipeline import publish
from hfcf.pipeline import train as training
from hfcf.pipeline.run import _front_matter
from hfcf.tasks.verification import LABELS
from hfcf.training.trainer import Hyperparameters

RUN: dict[str, Any] = {
    "name": "made", "system": "race", "citation": "@inproceedings{race}", "split": "train", "role": None, "preset": "paper",
    "seed": 13, "models": {}, "checked_by": None, "versions": {"hfcf": "1"},
    "rows_in": 3, "sources_accepted": 2, "sources_rejected": 1,
    "counterfactuals": 2, "changes": {"both": 2}, "labels": {"REFUTES": 2}, "labels_kept": 0, "funnel": [], "augmented": None,
    "metrics": {"fluency": {"after": {"n": 2, "mean": 31.23456}, "before": {"n": 3, "mean": 40.0}}},
}  # fmt: skip
CONFIGS = [
    {"config_name": "default", "default": True, "data_files": [{"split": "train", "path": ["data/default/train-0.parquet"]}]}
]


def valid(card: str, kind: str) -> str:
    """The card, when the server's rules find nothing wrong with it."""
    (ModelCard if kind == "model" else DatasetCard)(card).validate()
    return card


def run_card(corpus: str, run: dict[str, Any] | None = None, **more: Any) -> str:
    """The card of a run of `RUN` over a corpus, with changes."""
    run = {**RUN, "corpus": corpus, "task": builder_class(corpus).INFO.task or "verification", **(run or {})}
    return dataset_card(
        name="made",
        command="hfcf run x.yaml",
        corpus=_front_matter(corpus),
        configs=CONFIGS,
        empty=[],
        run=run,
        examples=[],
        **more,
    )


@pytest.mark.parametrize("name", names())
def test_the_card_of_a_run_over_any_corpus_is_valid(hub: LocalHub, name: str) -> None:
    info = builder_class(name).INFO
    card = valid(run_card(name), "dataset")
    front = front_matter(card)
    assert front["license"] == info.licence
    assert front["source_datasets"] == [info.hub_id or f"extended|other-{name}"]
    assert front.get("republish", True) == info.republish
    assert "| fluency, mean | 31.2346 | 40.0 |" in card
    assert citation() in card
    assert "@inproceedings{race}" in card


def test_the_card_says_whether_a_model_without_a_part_agrees() -> None:
    assert "Flip rate by an independent verifier: none was asked." in run_card("hover")
    flipped = {"flip_rate": {"after": {"flipped": {"n": 3, "yes": 2, "share": 0.66667, "null": 1}}}}
    asked = run_card("hover", {"metrics": flipped, "models": {"flip_rate.verifier": "me/other@0123abc"}})
    assert "Flip rate by an independent verifier (`me/other@0123abc`): 2 of 3; 1 that it could not read is not counted." in asked
    assert "none was asked" not in asked
    assert "Flip rate by" not in run_card("hover", {"counterfactuals": 0})


@pytest.mark.parametrize("name", names())
def test_the_card_of_a_built_corpus_is_valid(hub: LocalHub, name: str) -> None:
    info = builder_class(name).INFO
    features = get_task(info.task).features
    label = {"label": "SUPPORTS"} if "label" in features else {}
    ds = Dataset.from_list([{**dict.fromkeys(features), "id": "1", **label}], features=features)
    valid(
        build.card(info, DatasetDict(train=ds), configs(Path("out"), {"default": {"train": Path("out/data/train-0.parquet")}})),
        "dataset",
    )


def test_the_card_of_a_run_tells_how_it_was_made(hub: LocalHub, run_out: Path) -> None:
    card = valid((run_out / "README.md").read_text(), "dataset")
    front = front_matter(card)
    assert (front["license"], front["language"], front["size_categories"]) == ("cc-by-sa-3.0", ["en"], ["n<1K"])
    assert (front["task_categories"], front["task_ids"]) == (["text-classification"], ["fact-checking"])
    assert front["source_datasets"] == ["fever/fever"]
    assert [config["config_name"] for config in front["configs"]] == ["default", "augmented", "rejected"]
    assert [bool(config.get("default")) for config in front["configs"]] == [True, False, False]
    named = [run_out / path for splits in data_files(front).values() for paths in splits.values() for path in paths]
    assert sorted(named) == sorted(run_out.rglob("*.parquet"))
    examples = card.split("## Examples")[1].split("##")[0]
    assert len(re.findall(r"^\| claim \|", examples, re.MULTILINE)) == 10
    for part in (
        "hfcf run crossaug_fever --out out", "Seed 13", "generator: `me/negative@0123abc`", "too near (",
        "groups, chosen with the seed 13, are held out as `validation`: ", f"hfcf {version('hfcf')}",
        "@inproceedings{lee-etal-2021-crossaug", "@software{hfcf", "fever",
    ):  # fmt: skip
        assert part in card, part


def test_an_augmented_set_separates_no_group_and_holds_no_unread_row(run_out: Path) -> None:
    files = data_files(front_matter((run_out / "README.md").read_text()))["augmented"]
    splits = {split: Dataset.from_parquet(str(run_out / path)) for split, [path] in files.items()}
    assert list(splits) == ["train", "validation"]
    groups = {split: set(part["group_id"]) for split, part in splits.items()}
    assert not groups["train"] & groups["validation"]
    assert 0.02 < len(groups["validation"]) / 30 < 0.25
    together = [row for part in splits.values() for row in part]
    assert list(splits["train"].features) == list(get_task("verification").features)
    assert splits["train"].features["label"].names == list(LABELS)
    made = [row for row in together if ":crossaug:" in row["id"]]
    assert (len(together), len(made)) == (59 + 40, 40)  # one original can't be read
    again = augment.augmented(Dataset.from_list(rows()[:3]).cast_column("label", schema.TEXT))
    assert again["id"][:] == ["0", "1", "2", "0:crossaug:claim", "1:crossaug:claim"]


@pytest.mark.parametrize("split", ["validation", "bc"])
@pytest.mark.parametrize("role", [None, "train"])
def test_rows_that_are_not_for_training_are_not_divided_to_train_on(
    hub: LocalHub, tmp_path: Path, role: str | None, split: str
) -> None:
    card = valid((run_folder(tmp_path, split=split, role=role) / "README.md").read_text(), "dataset")
    assert list(data_files(front_matter(card))["augmented"]) == (["train", "validation"] if role else [split])
    assert ("Do not train on them" in card) == (role is None)


def published(ds: Dataset, out: Path, corpus: str, seed: int = 13) -> dict[str, Any]:
    """What `run.json` says of a run that made these rows."""
    run = {
        **RUN, "task": task_of(ds.features).name, "corpus": corpus, "seed": seed, "limit": None, "settings": {}, "stages": [],
    }  # fmt: skip
    return publish.publish(
        ds, out, run=run, recipe={"corpus": corpus}, corpus=_front_matter(corpus), command="hfcf run x", stages=["check"]
    )


def test_every_label_of_a_users_relations_is_a_class(hub: LocalHub, tmp_path: Path) -> None:
    features = Features(
        {**get_task("relation").features, "status": schema.STATUS, "counterfactuals": [dict(get_task("relation").counterfactual)]}
    )
    made = []
    for i, label in enumerate(("likes", "hates", "owns")):
        places = {"head": {"start": 0, "end": 1, "type": ""}, "tail": {"start": 2, "end": 3, "type": ""}}
        row = {"id": str(i), "tokens": [f"Ann{i}", "sees", f"Bob{i}"], **places, "label": label, "group_id": str(i)}
        row |= {"corpus": "relations", "split": "train"}
        edit = {"field": "tokens", "piece": -1, "start": 1, "end": 2, "before": "sees", "after": "hits"}
        other = {
            **row, "id": f"{i}:ccg", "tokens": [f"Ann{i}", "hits", f"Bob{i}"], "label": "likes", "source_id": str(i),
            "system": "ccg", "change": "relation", "edits": [edit], "scores": [],
        }  # fmt: skip
        lost = label == "owns"  # no counterfactual has this label
        status = {"accepted": False, "stage": "check", "reason": "too near"} if lost else OK
        made.append({**row, "counterfactuals": [] if lost else [other], "status": status})
    published(Dataset.from_list(made, features=features), tmp_path / "out", "relations")
    augmented = load_dataset(str(tmp_path / "out"), "augmented")
    names = next(iter(augmented.values())).features["label"].names
    assert names == ["hates", "likes", "owns"]
    assert sum(map(len, augmented.values())) == 5
    card = valid((tmp_path / "out" / "README.md").read_text(), "dataset")
    assert "no licence is stated" in card
    assert "Paper:" not in card


def test_a_result_replaces_an_older_one_and_nothing_else(tmp_path: Path) -> None:
    out = run_folder(tmp_path / "run")
    older = set(out.rglob("*.parquet"))
    mine = [
        "train.parquet",
        "train-00000-of-00001-0123456789abcdef.parquet",
        "raw/a.parquet",
        "default/train-1.parquet",
        ".x.y-z.part",
    ]
    for path in (out / "data" / name for name in mine):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    (out / "data" / "default" / ".train.part").write_bytes(b"half")
    run_folder(out, n=30)
    assert all((out / "data" / name).read_bytes() == b"mine" for name in mine)
    assert not (out / "data" / "default" / ".train.part").exists()
    assert not [path for path in older if path.exists()]
    assert len(json.loads((out / "run.json").read_text())["files"]) == len(list(out.rglob("*.parquet"))) - 4


def test_a_folder_with_a_readme_of_the_users_own_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\ntags: [counterfactual]\nbad: [\n---\n# My project\n")
    training_recipe = {"train": "verifier", "model": "offline:minilm", "data": [{"corpus": "fever"}]}
    for begin in (
        lambda: hfcf.run({"corpus": "jsonl", "data_files": "/nowhere.jsonl", "system": "eda"}, tmp_path),
        lambda: build.build("jsonl", out=tmp_path, data_files="/nowhere.jsonl"),
        lambda: training.train(training_recipe, tmp_path),
    ):
        with pytest.raises(ValueError, match=r"README\.md"):
            begin()


def test_an_interrupted_run_leaves_no_report_of_the_older_one(run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run_out / "README.md").read_text()

    def killed(*_: Any, **__: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(publish, "write_record", killed)
    with pytest.raises(KeyboardInterrupt):
        run_folder(run_out, n=30)
    assert (run_out / "README.md").read_text() == before
    assert not (run_out / "report.html").exists()  # by which a folder that is not finished is told


def linked(n: int) -> Dataset:
    """200 rows of which the first n share a page."""
    made = rows(200)
    for row in made[:n]:
        row["evidence"] = [{"title": "", "text": "One page has it all."}]
        for one in row["counterfactuals"]:
            one["evidence"] = row["evidence"]
    return Dataset.from_list(made, features=FEATURES)


@pytest.mark.parametrize("seed", range(3))
def test_the_smaller_side_is_held_out_and_the_card_says_how_many_rows_that_is(tmp_path: Path, seed: int) -> None:
    splits = published(linked(180), tmp_path, "jsonl", seed)["augmented"]["splits"]
    assert splits["train"] > splits.get("validation", 0)
    card = (tmp_path / "README.md").read_text()
    if held := splits.get("validation"):
        assert f"held out as `validation`: {100 * held / sum(splits.values()):.1f} % of the rows." in card
    else:
        assert "No rows are held out" in card
        assert "`validation`" not in card


def test_a_card_of_own_rows_names_their_files_and_no_language(hub: LocalHub) -> None:
    card = valid(run_card("csv", {"limit": 4, "task": "verification"}, files="mine/claims.csv"), "dataset")
    assert "language" not in front_matter(card)
    assert "Counterfactuals of a user's own rows, generated by RACE" in card
    assert "hfcf run recipe.yaml --out made --limit 4\n" in card
    assert "needs `claims.csv`, which is not in this repository" in card
    for other in (run_card("fever", files="fever"), run_card("csv", {"task": "verification"}, files="recipes:demo")):
        assert "hfcf run x.yaml\n" in other
        assert "not in this repository" not in other


def test_of_a_run_without_counterfactuals_the_card_says_what_is_read(tmp_path: Path) -> None:
    run_folder(tmp_path, n=1)
    assert load_dataset(str(tmp_path))["train"].column_names == [*schema.REJECTED, "source", "candidate"]
    card = (tmp_path / "README.md").read_text()
    assert "`load_dataset` reads `rejected`, the only one with rows" in card
    assert "counterfactuals = load_dataset" not in card
    assert "augmented = load_dataset" not in card
    assert 'rejected = load_dataset("PATH_OR_REPOSITORY", "rejected")' in card


@pytest.mark.parametrize("by", ["data_dir", "data_files"])
def test_a_refusal_to_republish_goes_with_the_rows(hub: LocalHub, tmp_path: Path, by: str) -> None:
    first = run_folder(tmp_path / "first", corpus="ace2005") / "data" / "default"
    (tmp_path / "link").symlink_to(first, target_is_directory=True)
    files = {"train": [str(tmp_path / "link" / path.name) for path in first.glob("*.parquet")]}
    given = {"data_dir": str(first)} if by == "data_dir" else {"data_files": files}
    content = {"corpus": "parquet", **given, "system": "eda", "preset": "paper"}
    hfcf.run(content, tmp_path / "second")
    build.build("parquet", out=tmp_path / "built", **given)
    for folder in ("second", "built"):
        card = valid((tmp_path / folder / "README.md").read_text(), "dataset")
        assert front_matter(card)["republish"] is False
        assert front_matter(card)["license"] == builder_class("ace2005").INFO.licence
        assert "must not be republished" in card
    with pytest.raises(RecipeError, match=r"push.*licence.*parquet"):
        hfcf.run({**content, "push": "me/x"}, tmp_path / "third")
    again = run_folder(tmp_path / "free") / "data" / "default"
    build.build("parquet", out=tmp_path / "freely", data_dir=str(again))
    assert "republish" not in front_matter((tmp_path / "freely" / "README.md").read_text())


# --- models


def test_the_card_of_a_trained_model_has_its_data_settings_and_scores(hub: LocalHub, model_out: Path) -> None:
    card = ModelCard(valid((model_out / "README.md").read_text(), "model"))
    assert (card.data.base_model, card.data.base_model_relation) == ("FacebookAI/roberta-base", "finetune")
    assert card.data.datasets == ["fever/fever"]
    for part in (
        "## Intended use", "| held out: fever, 2-way, verifier | ", "hfcf train mine.yaml", "learning_rate",
        "trained on 900 rows", citation(), 'pipeline("text-classification", model="PATH_OR_REPOSITORY"',
    ):  # fmt: skip
        assert part in card.content, part


def training_card(base: Model, scores: dict[str, Any] = SCORES, recipe: dict[str, Any] = TRAINING, **hyper: Any) -> str:
    report = {"rows": {"train": 9, "held_out": 1, "dropped as repeats": 0}, "scores": scores, "seconds": 1}
    return model_card(recipe, Hyperparameters(model=base, **hyper), report, "hfcf train x")


def leaves(scores: Any) -> list[Any]:
    return [leaf for value in scores.values() for leaf in leaves(value)] if isinstance(scores, dict) else [scores]


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
    "structure_verifier": (
        {"task": 4, "derive": {"distractors": 2}},
        {
            "trained on": {"rows": 9, "no structure": 2},
            "held out: fever": {"task": 4, "rows": 5, "ss": 0.75, "1 step": {"ss": 0.5}},
        },
    ),
}


@pytest.mark.parametrize(("tune", "base"), [("full", "google-t5/t5-base"), ("lora", "offline:t5"), ("lowrank", "offline:minilm")])
@pytest.mark.parametrize("kind", KINDS)
def test_the_card_of_any_training_is_valid(hub: LocalHub, kind: str, tune: str, base: str) -> None:
    more, scores = KINDS[kind]
    corpus = "ace2005" if kind == "relation" else "fever"
    recipe = {**TRAINING, "train": kind, "data": [{"corpus": corpus, "data_dir": "x"}], **more}
    if kind != "verifier":
        recipe["evaluate"] = [HOVER]
    text = training_card(Model(base), scores, recipe, tune=tune)
    card = ModelCard(valid(text, "model"))
    assert card.data.base_model == {"offline:t5": None, "offline:minilm": "sentence-transformers/all-MiniLM-L6-v2"}.get(base, base)
    assert all(f"{value}" in text for value in leaves(scores))
    adapter = tune != "full" and kind not in ("explainer", "masked_lm", "relation")
    assert ('adapter="PATH_OR_REPOSITORY")' in text) == adapter
    assert ("only holders of its licence may have the rows" in text) == (kind == "relation")


def test_a_model_of_rows_that_must_not_be_republished_says_so(hub: LocalHub, tmp_path: Path) -> None:
    run_folder(tmp_path / "ace", corpus="ace2005")
    recipe = {**TRAINING, "data_dir": str(tmp_path), "data": [{"corpus": "parquet", "data_dir": one} for one in ("ace", "mine")]}
    card = valid(training_card(Model("offline:minilm"), recipe=recipe), "model")
    assert card.count(f"{builder_class('parquet').INFO.title}: only holders of its licence may have the rows.") == 1
    assert [line.split("|")[-2].strip() for line in card.splitlines() if "| `ace`" in line or "| `mine`" in line] == [
        builder_class("ace2005").INFO.licence, "unknown",
    ]  # fmt: skip


def test_a_verifiers_card_shows_how_to_ask_it_and_what_it_starts_from(tmp_path: Path, tiny_model: Any, capsys: Any) -> None:
    weights = tiny_model("classifier")
    card = training_card(Model("offline:minilm", adapter="hfcf:nli"), tune="full")
    assert "It started from `offline:minilm` with the adapter `hfcf:nli`." in card
    assert "small model, `offline:minilm` with the adapter `hfcf:nli`, trained on 9 rows" in card
    asked: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0].replace("PATH_OR_REPOSITORY", str(weights)), asked)
    answer = {one["label"]: one["score"] for one in asked["verdict"]}
    assert set(answer) == set(LABELS)
    ours = Classifier(model=Model(weights, inputs="claim-evidence"), max_length=130).run([[asked["claim"], asked["evidence"]]])
    assert answer == pytest.approx(ours[0], abs=1e-4), "the pipeline reads what this library reads"
    assert "SUPPORTS" in capsys.readouterr().out


def test_a_verifier_that_reads_the_evidence_first_or_an_adapter(tiny_model: Any) -> None:
    weights = tiny_model("classifier")
    card = training_card(Model("me/base", inputs="evidence-claim"), tune="full")
    asked: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0].replace("PATH_OR_REPOSITORY", str(weights)), asked)
    ours = Classifier(model=Model(weights, inputs="evidence-claim"), max_length=130).run([[asked["claim"], asked["evidence"]]])
    assert {one["label"]: one["score"] for one in asked["verdict"]} == pytest.approx(ours[0], abs=1e-4)
    for other in (training_card(Model("offline:minilm"), tune="lora"), training_card(Model("me/b", inputs="{claim} / {evidence}"))):
        code = other.split("```python\n")[1].split("```")[0]
        assert "Classifier(model=model" in code
        assert "pipeline" not in code


def test_models_are_named_with_their_commits(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_identity", lambda source, revision: f"{source}@{revision or '0123abc'}")
    assert models.named(Model("me/base", adapter="me/adapter")) == "me/base@0123abc + me/adapter@0123abc"
    assert models.named(Model("me/base", "v1", adapter="hfcf:verifier")) == "me/base@v1 + hfcf:verifier"
    card = valid(training_card(Model("me/base"), tune="lora"), "model")
    assert "It started from `me/base` at the commit `0123abc`." in card
    assert 'Model("me/base", revision="0123abc", adapter="PATH_OR_REPOSITORY")' in card
    assert "at the commit" not in training_card(Model("offline:minilm"))


@pytest.mark.parametrize("name", ["a/b/c", "a--b", "a/"])
def test_names_that_the_hub_refuses_are_none(name: str) -> None:
    with pytest.raises(HubError, match="repository"):
        check_name(name)


def test_the_cards_of_the_adapters_that_ship_are_valid(hub: LocalHub) -> None:
    cards = sorted((Path(__file__).parents[2] / "hfcf" / "adapters").glob("*/README.md"))
    assert len(cards) >= 8
    for path in cards:
        valid(path.read_text(encoding="utf-8"), "model")


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
    from hfcf.systems import system_class

    for name in ("race", "crossaug", "ccg"):
        titled = re.search(r"title\s*=\s*[{\"](.*?)[}\"],?\s*$", system_class(name).citation, re.MULTILINE)
        assert titled is not None, name
        assert re.sub(r"\W", "", titled[1]).casefold() in cited, name
