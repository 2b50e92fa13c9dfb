"""Pages with blocks that are marked work from the first block to the last, in a folder of their own."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import invalidate_caches
from itertools import pairwise
from pathlib import Path
from typing import Any

import every_slot
import near_misses
import pytest
from bad_server import Start, starter
from offline_models import installed
from pages import PAGES, blocks, name_of
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core import recipe

RUNS = [page for page in PAGES if any(block.runs or block.file for block in blocks(page))]
CHEAP = {
    "tutorials/claims.md": ("system=eda", "settings={}"),
    "tutorials/relations.md": ("system=synonym",),
    "tutorials/questions.md": (),
    "tutorials/causal_claims.md": ("system=eda",),
    "tutorials/texts.md": (),
    "how-to/your_model.md": (),
    "how-to/your_data.md": ("system=eda",),
}
"""What a tutorial's recipe is run with in the place of a system that asks models; RGF asks planted ones."""
FEWER = {"how-to/contrast_set.md": ('split="train"', 'split="train[:8]"')}
"""What is replaced in a page whose system asks models, so that it asks them about fewer rows."""
TYPED = ("README.md", "how-to/gate.md")
"""Pages whose commands are all run as they stand; a gate may end with 1."""
ASKED = ("README.md", "how-to/with_an_llm.md")
"""Pages that ask a language model behind an endpoint."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as start:
        yield start


@pytest.mark.parametrize("page", RUNS, ids=map(name_of, RUNS))
def test_a_page_works_from_its_first_block_to_its_last(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name_of(page) in (*CHEAP, *TYPED) and not all(installed(name) for name in ("minilm", "t5", "spacy", "wordnet")):
        pytest.skip("the offline models are not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if name_of(page) == "tutorials/questions.md":
        near_misses.plant(monkeypatch)
    if name_of(page) in ASKED:
        start = request.getfixturevalue("endpoint")
        start(every_slot.reply)
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.file:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, path.stem, raising=False)
            if path.name == "pyproject.toml":
                install(path)
        elif block.runs:
            exec(compile(block.text.replace(*FEWER.get(name_of(page), ("", ""))), page.name, "exec"), names)
        elif not block.language and name_of(page) in TYPED:
            for line in block.text.splitlines():
                if line.startswith("hfcf "):
                    answer = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
                    assert answer.exit_code in (0, 1), (line, answer.exception)
        elif not block.language and name_of(page) in CHEAP:
            for line in block.text.splitlines():
                if line.startswith("hfcf "):
                    follow(shlex.split(line, comments=True), CHEAP[name_of(page)])
    assert names or name_of(page) in TYPED


def install(project: Path) -> None:
    """Leave beside a package what `pip install` would: its name and its entry points."""
    told = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    folder = project.parent / f"{told['name'].replace('-', '_')}-{told['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {told['version']}\n", encoding="utf-8")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in told["entry-points"].items()
    ]
    (folder / "entry_points.txt").write_text("\n\n".join(groups) + "\n", encoding="utf-8")
    invalidate_caches()


def follow(words: list[str], cheap: tuple[str, ...]) -> None:
    """Do what a tutorial's command does, as far as no model must be asked: a run with another system, the rows of a training."""
    _, verb, name, *rest = words
    if "--dry-run" in rest:
        return
    if verb == "run":
        own = [value for option, value in pairwise(rest) if option == "--set"]
        assert hfcf.run(name, rest[rest.index("--out") + 1], changes=[*own, *cheap])["counterfactuals"] > 5
    elif verb == "train":
        trained(recipe.read_recipe(Path(name)))
    elif verb == "compare":
        compared(recipe.read_recipe(Path(name)))


def trained(content: dict[str, Any]) -> None:
    from hfcf.pipeline.training_recipes import parse_train
    from hfcf.training.data import load_rows

    parse_train(content)
    for source in [*content["data"], *content["evaluate"], *([content["dev"]] if "dev" in content else [])]:
        given = {key: value for key, value in source.items() if key != "name"}
        assert len(load_rows([recipe.locate(given, None)])) > 1


def compared(content: dict[str, Any]) -> None:
    from hfcf.studies.compare.comparison import open_comparison
    from hfcf.studies.compare.recipe import parse_comparison

    parsed: Any = parse_comparison({"name": "mine", **content})
    opened = open_comparison(parsed, Path("results"))
    assert [method.name for method in opened.methods] == list(content["methods"])
    assert all(len(one.rows) > 1 for one in opened.sets)
