"""Statements that pages once had wrong, each held to the code or to the results."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, section, text_of
from parts import bench

import hfcf
from hfcf.core import schema
from hfcf.hub.ratings import describe_rating
from hfcf.metrics import is_published
from hfcf.metrics.shared.parsing import read_metrics
from hfcf.pipeline.init_recipe import new_recipe
from hfcf.systems import system_class

DOCS = ROOT / "docs"


def test_columns_of_ones_own_leave_with_from_dataset_and_come_back_with_to_dataset() -> None:
    mine = [{"claim": "It has 2 arches.", "evidence": "It has 2.", "label": "true", "genre": "bridges"}]
    rows = hfcf.from_dataset(mine)
    assert "genre" not in rows.features
    made = rows.add_column("source_id", [rows[0]["id"]])
    made = made.add_column("edits", [[]], feature=schema.EDITS)
    assert hfcf.to_dataset(made, like=mine)[0]["genre"] == "bridges"
    assert "`hfcf.from_dataset` leaves them out" in text_of(DOCS / "reference" / "columns.md")


def test_the_default_configuration_has_the_columns_of_the_usual_metrics() -> None:
    (line,) = re.findall(r"^\| `default` \|.*$", section(DOCS / "reference" / "columns.md", "On disk"), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", line)) - {"default"}
    usual = {name for task in ("verification", "relation", "qa", "classification") for name in read_metrics(None, task)}
    assert named == {name for name in usual if is_published(name)}


def test_a_stage_of_a_script_works_with_several_processes(tmp_path: Path) -> None:
    page = text_of(DOCS / "how-to" / "extend.md")
    assert "in a cell of a notebook works as well" in page
    (stage,) = re.findall(r"<!-- file: change_number.py -->\n```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "script.py"
    script.write_text(
        f"""{stage}
from datasets import Dataset
from hfcf.core.task import get_task

if __name__ == "__main__":
    row = {{"corpus": "m", "split": "train", "evidence": [{{"title": "", "text": "It opened in 1883."}}], "label": "SUPPORTS"}}
    rows = [{{**row, "id": str(i), "group_id": str(i), "claim": f"It opened in 188{{i}}."}} for i in range(4)]
    ds = Dataset.from_list(rows, features=get_task("verification").features)
    print(len([one for one in ChangeNumber(seed=7)(ds, num_proc=2)["candidates"] if one]))
""",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.split()[-1:] == ["4"], done.stderr


def test_pages_that_point_to_measurements_find_them_there() -> None:
    scale = text_of(DOCS / "how-to" / "scale.md")
    assert "[End to end](../results/end_to_end.md)" in scale
    header, *rows = bench.read("end_to_end")["table"]
    assert "CPU s" in header
    assert {"RACE", "CrossAug", "CCG"} <= {row[0] for row in rows}
    retrieval = any("retrieval" in name for name in bench.stored())
    assert retrieval or "results/speed.md" not in text_of(DOCS / "how-to" / "passages.md")


def test_the_reader_of_rated_pairs_is_named() -> None:
    page = text_of(DOCS / "results" / "rated_pairs.md")
    assert "One person" not in page
    assert page.count("language model") >= 2
    assert "shows each" not in text_of(DOCS / "tutorials" / "claims.md")


@pytest.mark.parametrize("function", [hfcf.counterfactuals, hfcf.augment])
def test_one_call_names_all_presets(function: Any) -> None:
    presets = {name for system in ("race", "crossaug", "ccg", "rgf") for name in system_class(system).presets}
    (meaning,) = re.findall(r"preset: (.*?)(?=\n        \w+: |\n\n)", function.__doc__, re.DOTALL)
    assert presets <= set(re.findall(r'"(\w+)"', meaning))


def test_a_new_recipe_names_the_presets_of_its_system(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("claim,evidence,label\nIt has 2 arches.,It has 2.,true\n", encoding="utf-8")
    (line,) = (
        line for line in new_recipe("crossaug", tmp_path / "mine.yaml", file).text.splitlines() if line.startswith("preset:")
    )
    assert all(name in line for name in system_class("crossaug").presets)


def test_the_recipes_page_has_the_presets_of_the_systems() -> None:
    begin = text_of(DOCS / "reference" / "recipes.md").partition("## Counterfactuals")[0]
    for system in ("race", "crossaug", "ccg", "rgf", "checkwhy"):
        assert set(system_class(system).presets) == {"paper", "offline", "hub", "llm"} <= set(re.findall(r"\b(\w+)`", begin))


def test_the_rating_of_ccg_says_which_relations_were_rated() -> None:
    assert "that have phrases for their relations" in describe_rating("ccg", "offline")
    assert "phrases" not in describe_rating("race", "offline")


def test_no_preset_is_installed_as_an_extra() -> None:
    extras = set(
        re.findall(
            r"^(\w+) =",
            (ROOT / "setup.cfg")
            .read_text(encoding="utf-8")
            .partition("[options.extras_require]")[2]
            .partition("[options.entry")[0],
            re.MULTILINE,
        )
    )
    for page in (DOCS / "start" / "install.md", ROOT / "README.md", DOCS / "start" / "presets.md"):
        named = {name for group in re.findall(r'pip install[^\n`]*?"\.\[([\w,]+)\]"', text_of(page)) for name in group.split(",")}
        assert named <= extras, page.name


def test_recipes_say_what_their_shipped_rows_are() -> None:
    assert "say nothing" in (ROOT / "recipes" / "compare_checkwhy.yaml").read_text(encoding="utf-8").splitlines()[1]


def test_the_changelog_says_each_thing_once_in_about_300_words() -> None:
    text = text_of(ROOT / "CHANGELOG.md")
    assert len(text.split()) < 400
    sentences = [sentence.strip() for sentence in re.split(r"[.;]\s", text) if len(sentence.split()) > 3]
    assert not [sentence for sentence, n in Counter(sentences).items() if n > 1]


def test_a_system_has_one_name_in_python_and_in_recipes() -> None:
    page = text_of(DOCS / "how-to" / "extend.md")
    (name,) = re.findall(r'^changed_number = "changed_number:ChangedNumber"$', page, re.MULTILINE)[:1] and ["changed_number"]
    assert f'name = "{name}"' in page
    assert f'system="{name}"' in page
