"""The chains that a code host draws by Mermaid are boxes on the site."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from pages import PAGES, ROOT, blocks, name_of

CHAINS = [page for page in PAGES if any(block.language == "mermaid" for block in blocks(page))]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs", reason='the site is not installed: pip install ".[docs]"')
    spec = spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", CHAINS, ids=map(name_of, CHAINS))
def test_the_chain_of_a_page_has_a_box_for_each_text(page: Path, hooks: ModuleType) -> None:
    for block in blocks(page):
        if block.language == "mermaid":
            drawn = hooks.chain(block.text.removeprefix("flowchart LR\n"))
            assert drawn.count("<li>") >= block.text.count('["') > 2
            assert '["' not in drawn
