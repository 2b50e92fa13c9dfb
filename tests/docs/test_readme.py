"""The first screen of README.md shows what the library made, and nothing that no stored file backs.

`test_docs_run.py` runs its blocks and its commands.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from offline_models import installed
from pages import ROOT, text_of
from parts import bench

from hfcf.core.edits import diff

README = ROOT / "README.md"
STORED = bench.read("first_look")


def test_the_first_screen_has_a_pair_of_every_task_and_a_number() -> None:
    screen = text_of(README).partition("## Install")[0]
    for task in ("claim", "relation", "question", "text"):
        assert f"| **{task}** |" in screen
    assert screen.count("<!-- n: bench.first_look.contrast.") >= 4
    assert "docs/images/chain.svg" in screen


def test_the_figure_of_the_chain_shows_the_example_and_is_narrow() -> None:
    svg = text_of(ROOT / "docs" / "images" / "chain.svg")
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"<(style|desc|title).*?</\1>", "", svg, flags=re.DOTALL)))
    made = STORED["examples"]["relation"]
    went, came = (
        " ".join(text for kind, text in diff(made["before"], made["after"]) if kind == one).strip() for one in ("out", "in")
    )
    assert made["before"].replace(" .", ".") in words
    assert f"The eggs were {went} {came} a box." in words
    for label in made["label"].split(" → "):
        assert label.partition("(")[0] in words
    width = int(re.findall(r'viewBox="0 0 (\d+) ', svg)[0])
    assert all(int(size) * 368 / width >= 11 for size in re.findall(r'font-size="(\d+)"', svg)), "readable on a phone of 400 pixels"


def test_the_number_is_what_was_measured() -> None:
    contrast = STORED["contrast"]
    assert contrast["claim"]["pairs"] + contrast["evidence"]["pairs"] + contrast["both"]["pairs"] == contrast["pairs"]
    assert contrast["label_kept"] == contrast["both"]["pairs"]
    assert contrast["claim"]["pairs"] == contrast["originals"], "each original has its claim changed"
    assert contrast["original"] > 90 > 10 > contrast["claim"]["right"]


def test_the_page_on_contrast_sets_prints_the_same_numbers() -> None:
    page = text_of(ROOT / "docs" / "how-to" / "contrast_set.md")
    printed, by_change = (ast.literal_eval(line) for line in re.findall(r"```text\n({.*})\n({.*})\n```", page)[0])
    assert printed == {name: STORED["contrast"][name] for name in printed}
    assert by_change == {change: STORED["contrast"][change]["consistency"] for change in by_change}


def test_install_takes_three_lines_and_development_two_commands() -> None:
    text = text_of(README)
    (block,) = re.findall(r"```\n((?:pip install .*\n)+)```", text)
    assert len(block.splitlines()) == 3
    development = text.partition("## Development")[2]
    assert "`make demo`" in development
    assert "`make test`" in development


def test_the_readme_is_short_without_what_is_generated() -> None:
    assert len(re.sub(r"<!-- generated: .*?<!-- end -->", "", text_of(README), flags=re.DOTALL).split()) < 950


def test_the_ways_in_name_every_preset_and_the_page_in_the_browser() -> None:
    ways = text_of(README).partition("## Three ways in")[2].partition("## Why")[0]
    for name in ('"offline"', '"llm"', '"hub"', "hfcf app", "hfcf new"):
        assert name in ways


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_examples_are_what_the_systems_write(tmp_path: Path) -> None:
    if not all(installed(name) for name in ("minilm", "t5", "spacy", "smollm2", "wordnet")):
        pytest.skip("the offline models are not installed")
    out = tmp_path / "first_look.json"
    subprocess.run([sys.executable, "benchmarks/first_look.py", "--json", str(out)], cwd=ROOT, check=True)
    made = json.loads(out.read_text(encoding="utf-8"))
    # CCG's classifiers are trained here: another processor may choose another relation.
    same = {task: one for task, one in made["examples"].items() if task != "relation"}
    assert same == {task: one for task, one in STORED["examples"].items() if task != "relation"}
    assert made["examples"]["relation"]["system"] == "ccg"
    assert made["contrast"]["claim"] == STORED["contrast"]["claim"]
