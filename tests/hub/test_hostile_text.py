"""Texts, names and labels that want to be more than text in a card: HTML, images, links, cells, headings."""

from __future__ import annotations

import json
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hfcf.core.safe_yaml import front_matter
from hfcf.hub.render import cell, render
from hfcf.pipeline.run import run

EVIL = "<img src=http://evil.example/x onerror=pwn()> ![seen](http://evil.example/pixel) [click](http://evil.example)"
EVIL += " `a|b`\n# Heading\n```"


def tokens(text: str) -> list[Token]:
    """What a Markdown reader that allows HTML makes of a card."""
    blocks = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text.split("---\n", 2)[2])
    return [*blocks, *(part for block in blocks for part in block.children or [])]


def test_a_card_makes_text_of_hostile_rows_names_and_licences(tmp_path: Path) -> None:
    line = EVIL.replace("\n", " ")
    rows = [
        {"id": f"{n}{line}", "claim": f"{line} The old town number {n} lies on the river of Rome.", "label": "SUPPORTS",
         "evidence": [{"title": line, "text": f"{line} The town number {n} lies on the Tiber."}]}
        for n in range(4)
    ]  # fmt: skip
    data = tmp_path / "`data` <b>|"
    data.mkdir()
    (data / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data / "SOURCE.yaml").write_text(json.dumps({"title": EVIL, "licence": EVIL, "paper": EVIL, "citation": EVIL}))
    recipe = {"system": "eda", "corpus": "jsonl", "data_files": str(data / "rows.jsonl"), "name": EVIL, "metrics": {}}
    report = run(recipe, tmp_path / "out")
    assert report["counterfactuals"] > 0
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    read = tokens(card)
    assert not [token for token in read if token.type.startswith("html") or token.type == "image"]
    assert not [token.attrs for token in read if token.type == "link_open" and "evil" in str(token.attrs)]
    headings = [read[i + 1].content for i, token in enumerate(read) if token.type == "heading_open"]
    assert "Heading" not in headings
    assert headings[-1] == "Licence and citation"
    assert [token.info for token in read if token.type == "fence"].count("bibtex") == 1
    assert "onerror" in card  # it is there, as text
    assert front_matter(card)["pretty_name"] == EVIL


def test_blocks_of_ours_stay_as_they_are() -> None:
    corpus = {"title": "A & B's <3", "licence": "cc-by-4.0", "paper": "https://a.b/c_d", "republish": True}
    text = render("licence.md.jinja", corpus=corpus, not_republished="")
    assert text.startswith("A & B's &lt;3: cc-by-4.0. Rows derived")
    assert "Paper: https://a.b/c_d\n" in text
    assert cell("&lt;b&gt; & **bold** ~~gone~~") == r"&amp;lt;b&amp;gt; & \*\*bold\*\* \~\~gone\~\~"
