"""Tables that repeat the code are current: `make docs` writes them."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from pages import ROOT, each_page, text_of


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each_page
def test_generated_tables_are_current(page: Path, generate: ModuleType) -> None:
    assert generate.rewrite(text_of(page)) == text_of(page), "run make docs"


def test_every_table_has_a_page_and_every_block_ends(generate: ModuleType) -> None:
    names: list[str] = []
    for page in generate.pages():
        text = text_of(page)
        begun = re.findall(r"<!-- generated: (\w+) -->", text)
        assert len(begun) == text.count("<!-- end -->"), page.name
        names += begun
    assert set(names) == set(generate.TABLES)


def test_the_counts_of_ratings_are_those_of_the_results(generate: ModuleType) -> None:
    assert text_of(ROOT / "hfcf" / "hub" / "rated_pairs.json") == generate.count_ratings(), "run make docs"


def test_a_stale_page_is_named(generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("docs", "results", "hfcf/hub"):
        (tmp_path / folder).mkdir(parents=True)
    pair = {"preset": "offline", "corpus": "fever", "date": "2026-01-01", "label": "x", "sense": 1, "counterfactual": 1}
    pairs = [
        {**pair, "system": "race", "version": "after", "read_as": "x"},
        {**pair, "system": "race", "version": "after", "read_as": "y"},
        {**pair, "system": "race", "version": "before", "read_as": "x"},
    ]
    (tmp_path / "results" / "rated_pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    (tmp_path / "README.md").write_text("<!-- generated: provenance -->\nold\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0
    assert "| `source_id` | string |" in text_of(tmp_path / "README.md")
    assert generate.main(["--check"]) == 0
    counted = json.loads(text_of(tmp_path / "hfcf" / "hub" / "rated_pairs.json"))["race"]["offline"]
    numbers = {"pairs": 2, "label": 1, "all": 1, "counterfactual": 2, "both": 1}
    assert counted == {"corpus": "fever", "date": "2026-01-01", **numbers}


def test_a_setting_gets_its_default(generate: ModuleType) -> None:
    line = "| 4 | the search | `hfcf/systems/race/system.py` | `RACE.num_beams=7`, `RACE.max_new_tokens=96`, `RACE.chain` | none |"
    assert generate.rewrite(line) == line.replace("7", "30")
