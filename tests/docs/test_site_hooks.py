"""What the site changes of the pages' Markdown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason='the site is not installed: pip install ".[docs]"')

import hooks


def page(markdown: str, path: str = "systems/race.md", address: str | None = None) -> str:
    shown: Any = SimpleNamespace(file=SimpleNamespace(src_uri=path))
    return hooks.on_page_markdown(markdown, shown, SimpleNamespace(repo_url=address), None)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[the recipe](../../recipes/demo.yaml)", "the recipe (`recipes/demo.yaml`)"),
        ("[`demo.yaml`](../../recipes/demo.yaml)", "`recipes/demo.yaml`"),
        ("[a page](../start/concepts.md#glossary)", "[a page](../start/concepts.md#glossary)"),
        ("[gone](../../recipes/gone.yaml)", "[gone](../../recipes/gone.yaml)"),
        ("[site](https://example.org/a.html) [here](#top)", "[site](https://example.org/a.html) [here](#top)"),
        ("`[code](../../recipes/demo.yaml)`", "`[code](../../recipes/demo.yaml)`"),
        ("```\n[code](../../recipes/demo.yaml)\n```", "```\n[code](../../recipes/demo.yaml)\n```"),
        ("in[- 6-][+ 35+] acres", "in[- 6-]\\[+ 35+] acres"),
    ],
)
def test_links_leave_the_site_as_paths_and_code_stays(markdown: str, shown: str) -> None:
    assert page(markdown) == shown


def test_links_to_files_lead_to_the_repository_if_it_has_an_address() -> None:
    assert (
        page("[r](../../recipes/demo.yaml)", address="https://host/me/hfcf/")
        == "[r](https://host/me/hfcf/blob/HEAD/recipes/demo.yaml)"
    )
    assert page("[r](../../recipes)", address="https://host/me/hfcf") == "[r](https://host/me/hfcf/tree/HEAD/recipes)"


def test_the_file_of_pairs_is_a_page_of_the_site() -> None:
    assert page("[all](../../results/rated_pairs.jsonl)", "results/rated_pairs.md") == "[all](pairs.html)"
    assert page("[all](results/rated_pairs.jsonl)", "index.md") == "[all](results/pairs.html)"


def test_the_front_page_has_links_of_its_own_folder() -> None:
    front = hooks.with_links("[a](docs/start/concepts.md) [b](recipes/demo.yaml)", hooks.front_link)
    assert page(front, "index.md") == "[a](start/concepts.md) b (`recipes/demo.yaml`)"


def test_a_picture_follows_the_colours_of_the_site() -> None:
    picture = '<picture><source media="(prefers-color-scheme: dark)" srcset="a_dark.svg"><img src="a.svg" alt="A"></picture>'
    assert page(picture) == '<img src="a.svg#only-light" alt="A"><img src="a_dark.svg#only-dark" alt="A">'


def test_a_flowchart_becomes_a_list_of_its_boxes() -> None:
    boxes = '  a["row"] --> b["edit: E becomes E′"]\n  b --> c["judge"]\n'
    listed = "<li><strong>row</strong></li><li><strong>edit</strong>: E becomes E′</li><li><strong>judge</strong>{back}</li>"
    for more, back in (("", ""), ("  c --> b\n", " ↩ edit")):
        chart = f"```mermaid\nflowchart LR\n{boxes}{more}```"
        assert page(chart).strip() == f'<ol class="chain">{listed.format(back=back)}</ol>'
    with pytest.raises(ValueError, match="past a box"):
        hooks.chain(boxes + "  a --> c\n")


def test_below_a_table_of_names_stand_its_objects() -> None:
    head, rule, text = "| name | purpose |", "| --- | --- |", "\n\nText."
    table = "\n".join([head, rule, "| `hfcf.load` | Load |", "| `hfcf.core.task.Task` | Describe |"])
    linked = [head, rule, "| [`hfcf.load`][hfcf.load] | Load |", "| [`hfcf.core.task.Task`][hfcf.core.task.Task] | Describe |"]
    objects = "\n\n::: hfcf.load\n\n::: hfcf.core.task.Task"
    assert page(table + text) == "\n".join(linked) + objects + text
    assert page("<!-- objects: hfcf.a hfcf.b -->\n").strip() == "::: hfcf.a\n\n::: hfcf.b"
