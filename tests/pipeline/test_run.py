"""Recipes, runs and the command line, on tiny models."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import parrot
import pytest
import yaml
from datasets import ClassLabel, load_dataset
from same_rows import assert_same_rows
from typer.testing import CliRunner

import hfcf
from hfcf import cli
from hfcf.cli import app, console, listing, runs
from hfcf.cli.tables import print_plan
from hfcf.core import recipe
from hfcf.core.recipe import RecipeError
from hfcf.core.redact import short_paths
from hfcf.corpora import builder_class
from hfcf.engines.generator import Generator
from hfcf.hub.dataset_card import NOT_REPUBLISHED
from hfcf.hub.previous_run import ExistingResultError
from hfcf.pipeline.dry_run import dry_run
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import LABELS


@pytest.fixture
def content(demo_recipe: dict[str, Any]) -> dict[str, Any]:
    """The demo's recipe on tiny models."""
    return deepcopy(demo_recipe)


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator names what it must, so that claims are accepted."""
    monkeypatch.setattr(Generator, "forward", parrot.forward)


def written(content: dict[str, Any], path: Path) -> str:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@pytest.fixture
def first(finished_run: Path, cache: Path) -> dict[str, Any]:
    """What the finished run returned; the test's cache holds what that run left in its own."""
    shutil.copytree(finished_run / "cache", cache, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("offline"))
    report: dict[str, Any] = json.loads((finished_run / "report.json").read_text(encoding="utf-8"))
    return report


def parquet(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}


# --- a run


def test_a_run_leaves_a_repository_that_load_dataset_reads(
    content: dict[str, Any], finished_run: Path, first: dict[str, Any]
) -> None:
    out, found = finished_run / "out", first
    made, lost = load_dataset(str(out), split="train"), load_dataset(str(out), "rejected", split="train")
    assert len(made) == found["counterfactuals"] > 5
    assert made.features["label"] == ClassLabel(names=list(LABELS))
    augmented = load_dataset(str(out), "augmented")
    assert {split: len(rows) for split, rows in augmented.items()} == found["augmented"]["splits"]
    assert sum(map(len, augmented.values())) == 50 + len(made)
    assert len(set(made["source_id"])) == found["sources_accepted"]
    assert lost["level"].count("row") == found["sources_rejected"]
    assert found["sources_accepted"] + found["sources_rejected"] == found["rows_in"] == 50
    assert json.loads((out / "run.json").read_text()) == found
    assert sum(found["changes"].values()) == sum(found["labels"].values()) == found["counterfactuals"]
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "recipe.yaml", "report.html", "run.json"]
    assert yaml.safe_load((out / "recipe.yaml").read_text()) == short_paths(content)


def test_what_is_published_names_no_folder_of_this_machine(content: dict[str, Any], talkative: None, tmp_path: Path) -> None:
    given = {**content, "data_dir": "recipes:demo", "limit": 4}
    hfcf.run(given, tmp_path / "out")
    text = (tmp_path / "out" / "recipe.yaml").read_text()
    assert text.startswith("# hfcf run recipe.yaml --out out --limit 4\n")
    assert yaml.safe_load(text) == short_paths(given)
    assert "hfcf run recipe.yaml --out out --limit 4\n" in (tmp_path / "out" / "README.md").read_text()
    path = written(given, tmp_path / "mine.yaml")
    hfcf.run(path, tmp_path / "again", changes=["seed=14"])
    assert "hfcf run mine.yaml --out again --set seed=14 --limit 4\n" in (tmp_path / "again" / "README.md").read_text()


def test_the_funnel_counts_what_each_stage_let_through(first: dict[str, Any]) -> None:
    funnel = first["funnel"]
    assert [entry["stage"] for entry in funnel] == list(RACE.parts) == [entry["stage"] for entry in first["stages"]]
    assert funnel[0]["rows_in"] == 50
    assert funnel[-1]["rows_out"] == first["sources_accepted"]
    for entry, following in itertools.pairwise(funnel):
        assert entry["rows_out"] == following["rows_in"] == entry["rows_in"] - sum(entry["reasons"].values())
        assert entry["candidates_rejected"] == sum(entry["candidate_reasons"].values())


def test_a_second_run_calls_no_model_and_writes_the_same_bytes(
    content: dict[str, Any], finished_run: Path, first: dict[str, Any], talkative: None, tmp_path: Path
) -> None:
    shutil.copytree(finished_run / "out", tmp_path / "one")
    again = hfcf.run(content, tmp_path / "two")
    assert sum(entry["calls"] for entry in first["stages"]) > 100
    assert [entry["calls"] for entry in again["stages"]] == [0] * 7
    assert len(parquet(tmp_path / "one")) == 4  # default, augmented to train on and to validate, rejected
    assert parquet(tmp_path / "one") == parquet(tmp_path / "two")
    before = parquet(tmp_path / "one")
    hfcf.run(content, tmp_path / "one")
    assert parquet(tmp_path / "one") == before


def test_without_the_map_cache_the_request_cache_answers(
    content: dict[str, Any], finished_run: Path, first: dict[str, Any], talkative: None, tmp_path: Path
) -> None:
    again = hfcf.run(content, tmp_path / "two", load_from_cache_file=False)
    assert [entry["calls"] for entry in again["stages"]] == [0] * 7
    assert sum(entry["cached"] for entry in again["stages"]) > 100
    assert parquet(finished_run / "out") == parquet(tmp_path / "two")


def test_another_run_into_the_same_folder_is_not_read_back_stale(
    content: dict[str, Any], finished_run: Path, first: dict[str, Any], talkative: None, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished_run / "out", tmp_path / "out"))
    assert len(load_dataset(str(out), "rejected", split="train")) > 10
    with pytest.raises(ExistingResultError, match=r"all rows.* 12 "):
        hfcf.run(content, out, limit=12)
    with pytest.raises(ExistingResultError, match=r"seed.*13.*14"):
        hfcf.run(content, out, changes=["seed=14"])
    assert parquet(out) == parquet(finished_run / "out")
    with pytest.raises(RecipeError, match=r"num_beam.*num_beams"):  # and not that the folder holds another recipe
        hfcf.run({**content, "settings": {**content.get("settings", {}), "num_beam": 5}}, out)
    found = hfcf.run(content, out, limit=12, overwrite=True)
    assert found["rows_in"] == 12
    assert len(load_dataset(str(out), split="train")) == found["counterfactuals"]
    assert load_dataset(str(out), "rejected", split="train")["level"].count("row") == found["sources_rejected"]
    assert sorted(parquet(out)) == found["files"]


def test_a_limited_run_gives_the_first_rows_of_the_whole(
    content: dict[str, Any], finished_run: Path, talkative: None, tmp_path: Path
) -> None:
    few = hfcf.run(content, tmp_path / "few", limit=12)
    rows = [load_dataset(str(out), split="train").to_list() for out in (finished_run / "out", tmp_path / "few")]
    assert few["counterfactuals"] > 0
    assert rows[1] == rows[0][: few["counterfactuals"]]


def test_a_run_that_accepts_nothing_ends_with_a_warning(
    content: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generator, "forward", lambda self, loaded, encoded: [[] for _ in encoded])
    out = tmp_path / "out"
    content["split"] = "train[1:2]"  # a REFUTES row: its one chance is a claim
    found = hfcf.run(content, out)
    assert (found["counterfactuals"], found["sources_rejected"], found["empty"]) == (0, 1, ["default", "augmented"])
    assert "no counterfactual was accepted" in caplog.text
    card = (out / "README.md").read_text()
    assert [one["config_name"] for one in yaml.safe_load(card.split("---")[1])["configs"]] == ["rejected"]
    assert "**Empty:** default, augmented." in card
    assert load_dataset(str(out), "rejected", split="train")["reason"] == ["the generator found no claim"]
    assert "`load_dataset` reads `rejected`, the only one with rows" in card
    assert "No pair was accepted" in (out / "report.html").read_text()


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_shows_markup_in_the_data_as_text(content: dict[str, Any], talkative: None, tmp_path: Path) -> None:
    evil = "<script>alert('1')</script><img src=x onerror=alert(2)>"
    rows = json.loads((recipe.folder() / "demo" / "hover_train_release_v1.1.json").read_text())
    lines = [
        {"id": f"{row['uid']}{evil}", "claim": f"{evil} {row['claim']}", "evidence": row["evidence"], "label": "REFUTES" if
        "NOT" in row["label"] else "SUPPORTS"} for row in rows
    ]  # fmt: skip
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    mine = {key: value for key, value in content.items() if key != "data_dir"}
    found = hfcf.run({**mine, "corpus": "jsonl", "data_files": str(tmp_path / "mine.jsonl"), "name": evil}, tmp_path / "out")
    assert found["counterfactuals"] > 0
    page = Page()
    page.feed((tmp_path / "out" / "report.html").read_text())
    assert "img" not in page.tags
    assert page.tags.count("script") == 2  # the page's own, and its rows, which are no program
    assert page.text.count("\\u003cscript\\u003e") >= found["counterfactuals"]


def test_the_terminal_shows_markup_in_the_data_as_text(
    content: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"id": "[/b]1", "claim": "[/b] It rained.", "evidence": ["[/b] It rained."], "label": "[/b]"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    mine = {key: value for key, value in content.items() if key != "data_dir"} | {"data_files": str(tmp_path / "mine.jsonl")}
    path = written({**mine, "corpus": "jsonl", "on_error": "reject", "labels": {"[/b]": None}}, tmp_path / "mine.yaml")
    out = tmp_path / "out [/b]"
    runs.run(path, out, None, None, False)
    shown = capsys.readouterr().out
    assert "the label '[/b]' is left out" in shown
    assert str(out) in shown
    runs.peek(str(out), 1, "rejected")
    shown = capsys.readouterr().out
    assert shown.startswith("[/b]1\n  claim: [/b] It rained.\n")
    assert "  load rejects the row: the label '[/b]' is left out" in shown
    runs.run(path, None, None, None, True)
    assert "[/b] It rained." in capsys.readouterr().out


def test_the_terminal_shows_no_escapes_of_the_data(
    content: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {"id": "1", "claim": "It \x1b[2J rained.", "evidence": ["It rained."], "label": "\x1b[2J"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    mine = {key: value for key, value in content.items() if key != "data_dir"} | {"data_files": str(tmp_path / "mine.jsonl")}
    monkeypatch.setattr("sys.argv", ["hfcf", "peek", "no\x1b[2Jfolder"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "no�[2Jfolder" in capsys.readouterr().err
    path = written({**mine, "corpus": "jsonl", "on_error": "reject", "labels": {"\x1b[2J": None}}, tmp_path / "mine.yaml")
    runs.run(path, None, None, None, True)
    shown = capsys.readouterr().out
    assert "�[2J rained" in shown
    assert "\x1b[2J" not in shown


# --- relations

TRAINED, VERIFIER = "the base model that was trained on these rows gave each row", "the verifier named above gave each row"
INDICATOR = "the base model, the indicator named above, gave each row"
FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"


@pytest.fixture
def related(tiny_model: Callable[[str], str]) -> Callable[..., dict[str, Any]]:
    """A recipe of a system on the rows of a corpus that must not be republished."""
    models: dict[str, dict[str, Any]] = {
        "masked_lm": {"model": tiny_model("mlm")},
        "mice": {
            "indicator": tiny_model("rbert"), "editor": tiny_model("t5"), "num_beams": 2, "num_candidates": 2, "max_new_tokens": 8,
            "max_length": 64, "classifier": {"model": tiny_model("rbert"), "batch_size": 4, "epochs": 1, "max_length": 64},
        },
    }  # fmt: skip

    def made(system: str, **settings: Any) -> dict[str, Any]:
        source = {"corpus": "ace2005", "data_dir": str(FIXTURES / "ace2005"), "split": "bc"}
        return {**source, "system": system, "preset": "paper", "settings": {**models[system], **settings}}

    return made


@pytest.mark.parametrize(
    ("system", "settings", "told"),
    [
        ("masked_lm", {}, None),
        ("masked_lm", {"verifier": "rbert"}, VERIFIER),
        ("mice", {}, INDICATOR),
        ("mice", {"indicator": None}, TRAINED),
        ("mice", {"consistency": False}, None),
        ("mice", {"verifier": "rbert"}, VERIFIER),
    ],
)
def test_the_card_says_which_model_checked_the_rows(
    related: Callable[..., dict[str, Any]], system: str, settings: dict[str, Any], told: str | None, tmp_path: Path,
    tiny_model: Callable[[str], str],
) -> None:  # fmt: skip
    settings = {key: tiny_model(value) if value == "rbert" else value for key, value in settings.items()}
    hfcf.run(related(system, **settings), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert [one for one in (TRAINED, VERIFIER, INDICATOR) if one in card] == ([told] if told else [])
    assert ("no person and no model checked them" in card) == (told is None)
    assert "The labels are" in card


def test_what_is_made_of_licensed_rows_says_that_it_is_not_republished(
    related: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    content = related("masked_lm")
    hfcf.run(content, tmp_path / "one")
    hfcf.run({**content, "corpus": "semeval", "data_dir": str(FIXTURES / "semeval"), "split": "train"}, tmp_path / "two")
    for name, kept in (("one", True), ("two", False)):
        card = (tmp_path / name / "README.md").read_text()
        front = yaml.safe_load(card.split("---")[1])
        assert front.get("republish") is (False if kept else None)
        assert (NOT_REPUBLISHED in card) == kept
        assert front["task_ids"] == ["multi-class-classification"]


def test_labels_of_rows_that_could_not_be_loaded_are_no_classes(related: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "ace2005", tmp_path / "ace2005"))
    path = folder / "data/English/bc/timex2norm/MADE_BC_1.apf.xml"
    path.write_text(path.read_text().replace('TYPE="ART"', 'TYPE="METONYMY"'))
    hfcf.run({**related("masked_lm"), "data_dir": str(folder), "on_error": "reject"}, tmp_path / "out")
    lost = load_dataset(str(tmp_path / "out"), "rejected", split="bc")
    assert "the label 'METONYMY' is unknown" in " ".join(lost["reason"])
    made = load_dataset(str(tmp_path / "out"), split="bc")
    assert made.features["label"].names == sorted(set(builder_class("ace2005").INFO.labels.values()))


def test_training_is_timed_and_tried(related: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    content = related("mice", indicator=None)
    # What a dry run costs is told of training as well, and not scaled up.
    plan = dry_run(content)
    steps = [
        "fit identify_causal_terms",
        "fit edit_minimally",
        "fit check_relation",
        "identify_causal_terms",
        "propose_relations",
        "edit_minimally",
        "check_relation",
        "judge_candidates",
    ]
    assert [entry["stage"] for entry in plan["stages"]] == steps
    trained = [entry for entry in plan["stages"] if entry["stage"].startswith("fit ")]
    assert [(entry["reads"], entry["minutes"] >= 0) for entry in trained] == [("", True)] * 3
    print_plan(plan)
    found = hfcf.run({**content, "seed": 14}, tmp_path / "out")
    assert [entry["stage"] for entry in found["stages"]] == steps
    assert found["stages"][0]["seconds"] > 0, "another seed is another training"
    assert [entry["stage"] for entry in found["funnel"]] == [step for step in steps if not step.startswith("fit ")]
    assert "<td>fit identify_causal_terms<" in (tmp_path / "out" / "report.html").read_text()
    given = hfcf.run(related("masked_lm"), tmp_path / "given")
    assert [entry["stage"] for entry in given["stages"]] == ["rewrite_masked_lm", "judge_candidates"]


@pytest.mark.parametrize("command", [lambda content, out: hfcf.run(content, out), lambda content, out: dry_run(content)])
def test_a_system_of_another_task_is_refused(
    related: Callable[..., dict[str, Any]], command: Callable[..., Any], tmp_path: Path
) -> None:
    wrong = {**related("masked_lm"), "system": "crossaug", "settings": {}}
    with pytest.raises(RecipeError, match=r"crossaug.*verification.*ace2005.*relation"):
        command(wrong, tmp_path / "out")


# --- recipes


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["corpsu=hover"], r"'corpsu'.*'corpus'"),
        (["settings.num_beam=3"], r"'num_beam'.*'num_beams'"),
        (["preset=ofline"], "'ofline'"),
        (["system=rase"], r"'rase'.*ccg, checkwhy, crossaug, race"),
        (["seed"], r"--set.*seed.*key=value"),
        (["seed.deep=3"], r"seed\.deep"),
        (["settings.flip=all"], "flip must be .*, got 'all'"),
        (["settings.explainer=lime"], "explainer|method"),
    ],
)
def test_a_wrong_key_or_value_is_named_before_anything_runs(changes: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        hfcf.run("demo", tmp_path / "out", changes=changes)
    assert not (tmp_path / "out").exists()


def test_a_recipe_needs_a_corpus(content: dict[str, Any], tmp_path: Path) -> None:
    del content["corpus"]
    with pytest.raises(RecipeError, match=r"'corpus'.*missing"):
        hfcf.run(content, tmp_path / "out")


# --- the command line


def command(*arguments: Any) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setattr(console, "out", Console(width=200))


def test_list_shows_every_stage_corpus_and_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    listing.list_("all")
    shown = capsys.readouterr().out
    for name in (*RACE.parts, *hfcf.corpora.names(), *recipe.names()):
        assert name in shown


def test_run_then_peek(content: dict[str, Any], talkative: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    runs.run(written(content, tmp_path / "mine.yaml"), out, None, 12, False)
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("✓")] == list(RACE.parts)
    assert shown.index("filter_claim") < shown.index(":race:") < shown.index("Funnel"), "stages, pairs, the funnel"
    assert shown.count(":race:") == 3
    assert "minimality" not in shown
    assert "over-edited" in shown, "the commonest reason of a stage"
    last = " ".join(shown.split(f"{out}, report: {out / 'report.html'}\n")[1].split())
    assert last.startswith("RACE offline (this run has its own verifier, ")
    assert "68% are fully right and close" in last
    assert last.endswith("for trying out")
    runs.peek(str(out), 2, "default")
    shown = capsys.readouterr().out
    assert shown.count(":race:") == 2
    assert "→ REFUTES" in shown
    runs.peek(str(out), 3, "rejected")
    assert len(capsys.readouterr().out.strip().splitlines()) >= 3


def test_commands_take_the_options_that_they_document(content: dict[str, Any], talkative: None, tmp_path: Path) -> None:
    path = written(content, tmp_path / "mine.yaml")
    done = command("run", path, "--out", tmp_path / "out", "--limit", 5, "--set", "seed=7", "--set", "settings.num_beams=4")
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (told["seed"], told["limit"], told["settings"]["num_beams"], told["rows_in"]) == (7, 5, 4, 5)
    assert (
        "hfcf run mine.yaml --out out --set seed=7 --set settings.num_beams=4 --limit 5"
        in (tmp_path / "out" / "README.md").read_text()
    )
    assert command("run", path).exit_code != 0


def test_a_dry_run_shows_three_rows_and_costs_and_writes_nothing(
    content: dict[str, Any], talkative: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    path = written(content, tmp_path / "mine.yaml")
    for _ in range(2):  # answers of the first must not hide the costs of the second
        runs.run(path, None, None, None, True)
        shown = capsys.readouterr().out
        assert "50 rows of hover" in shown
        assert all(stage in shown for stage in RACE.parts)
        assert [name for name in ("demo-01", "demo-02", "demo-03", "demo-04") if name in shown] == ["demo-01", "demo-02", "demo-03"]
        calls = next(line for line in shown.splitlines() if " explain " in line).split("│")[2]
        assert int(calls) == 50
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "mine.yaml"])
    assert "HFCF_REQUEST_CACHE" not in os.environ


def in_a_new_process(*arguments: Any, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environ})


def test_help_loads_no_large_library() -> None:
    heavy = "{'torch', 'transformers', 'datasets', 'spacy', 'pandas', 'pyarrow', 'numpy', 'nltk'} & set(sys.modules)"
    code = f"import sys, hfcf.cli\ntry: hfcf.cli.app(['--help'])\nexcept SystemExit: print({heavy})"
    done = in_a_new_process("-c", code)
    assert done.stdout.strip().endswith("set()"), done.stdout[-500:] + done.stderr
    assert "peek" in done.stdout


def test_a_run_in_a_log_is_without_bars_and_notes(tmp_path: Path, cache: Path) -> None:
    changes = [part for change in ("system=eda", "settings={}", "limit=3") for part in ("--set", change)]
    code = "from hfcf.cli import main; main()"
    done = in_a_new_process("-c", code, "run", "demo", "--out", tmp_path / "o", *changes, HFCF_CACHE=str(cache))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("✓ ")


# --- a kill in the middle

SLOW = """
import sys, time
from pathlib import Path
import yaml
from hfcf.engines.generator import Generator
from hfcf.pipeline.run import run
import parrot
wait = float(sys.argv[3])
def forward(self, loaded, encoded):
    time.sleep(wait)
    return parrot.forward(self, loaded, encoded)
Generator.forward = forward
run(yaml.safe_load(Path(sys.argv[1]).read_text()), sys.argv[2])
"""


def answers(folder: Path) -> int:
    """How many answers the request cache holds."""
    path = folder / "requests.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        try:
            count = int(db.execute("SELECT count(*) FROM requests").fetchone()[0])
        except sqlite3.OperationalError:  # no table yet
            count = 0
    db.close()
    return count


@pytest.mark.slow
def test_after_a_kill_in_the_middle_of_generation_no_call_is_repeated(content: dict[str, Any], tmp_path: Path, cache: Path) -> None:
    recipe_file = written({**content, "limit": 36}, tmp_path / "mine.yaml")
    tests = str(Path(__file__).parents[1])

    def environ(name: str) -> dict[str, str]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        if not (folder / "offline").exists():
            (folder / "offline").symlink_to(cache / "offline")
        # One request to a batch, and a map cache of its own for each.
        return {
            "HFCF_CACHE": str(folder), "HF_DATASETS_CACHE": str(folder / "datasets"), "PYTHONPATH": tests, "HFCF_TOKEN_BUDGET": "1",
        }  # fmt: skip

    unbroken = in_a_new_process("-c", SLOW, recipe_file, tmp_path / "unbroken", 0, **environ("a"))
    assert unbroken.returncode == 0, unbroken.stderr
    whole = json.loads((tmp_path / "unbroken" / "run.json").read_text())
    by_stage = {entry["stage"]: entry for entry in whole["stages"]}
    before_generation = sum(by_stage[name]["calls"] for name in ("tag_entities", "explain", "check_edit"))
    generated = by_stage["generate_claim"]["calls"]
    assert generated > 5

    command = [sys.executable, "-c", SLOW, recipe_file, str(tmp_path / "broken"), "0.3"]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **environ("b")}, **quiet) as process:
        while answers(tmp_path / "b") < before_generation + 5:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    kept = answers(tmp_path / "b") - before_generation
    assert 5 <= kept < generated
    assert not (tmp_path / "broken" / "README.md").exists()

    again = in_a_new_process("-c", SLOW, recipe_file, tmp_path / "broken", 0, **environ("b"))
    assert again.returncode == 0, again.stderr
    told = json.loads((tmp_path / "broken" / "run.json").read_text())
    both = {entry["stage"]: entry for entry in told["stages"]}
    assert (both["generate_claim"]["calls"], both["generate_claim"]["cached"]) == (generated - kept, kept)
    assert all(both[name]["calls"] == 0 for name in ("tag_entities", "explain", "check_edit"))
    assert_same_rows(tmp_path / "broken", tmp_path / "unbroken")
    assert answers(tmp_path / "b") == answers(tmp_path / "a")


# --- rows that can't be read


def test_a_dry_run_shows_rows_that_can_be_read_and_says_why_others_can_not(
    content: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"claim": "Rome is in Italy.", "evidence": ["Rome is the capital of Italy."], "label": "SUPPORTS"}
    lines = [*({**good, "id": f"bad-{i}", "label": "MAYBE"} for i in range(4)), *({**good, "id": f"good-{i}"} for i in range(13))]
    file = tmp_path / "mine.jsonl"
    file.write_text("no JSON\n" + "".join(json.dumps(line) + "\n" for line in lines))
    mine = {key: value for key, value in content.items() if key != "data_dir"}
    mine |= {"data_files": str(file), "corpus": "jsonl", "on_error": "reject", "system": "eda", "settings": {}}
    plan = dry_run(mine)
    assert [row["id"] for row in plan["examples"]] == ["good-0", "good-1", "good-2"]
    assert (plan["rows"], plan["tried"], plan["rejected"]) == (18, 3, 5)
    assert plan["reason"].startswith("the label 'MAYBE' is unknown")
    unread = dry_run(mine, limit=3)
    assert [row["id"] for row in unread["examples"]][1:] == ["bad-0", "bad-1"], "none of the run's rows can be read"
    assert unread["examples"][0]["text"] == ""
    assert (unread["rows"], unread["rejected"]) == (3, 3)
    print_plan(unread)
    shown = capsys.readouterr().out
    assert "rejected while loading: 3 of 3 rows, most often because the label 'MAYBE' is unknown" in " ".join(shown.split())
    assert shown.count("load: rejected: ") == 3
    assert "load: rejected: line 1 is not JSON" in shown
    assert "not reached" not in shown


def test_a_dry_run_of_a_file_that_can_not_be_read_says_why(content: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("no\nJSON\n")
    mine = {key: value for key, value in content.items() if key != "data_dir"}
    with pytest.raises(ValueError, match="JSON") as error:
        dry_run({**mine, "data_files": str(tmp_path / "mine.jsonl"), "corpus": "jsonl", "on_error": "reject"})
    assert "mine.jsonl" in str(error.value)
    assert "line 1" in str(error.value)
