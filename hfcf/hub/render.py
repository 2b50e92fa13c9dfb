"""Fill in the templates of cards and pages."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

_MARKS = re.compile(r"[\\|`\[\]*~]")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def render(template: str, /, package: str = "hfcf.hub", **values: Any) -> str:
    """Fill in a template. A value that it lacks is an error, and the values of an HTML page are escaped.

    In Markdown a value is one line without HTML. `cell` also keeps it from making links, images and cells. `code` keeps it within
    backquotes and `fenced` within a block of code.
    """
    return _environment(package, template.endswith(".html.jinja")).get_template(template).render(**values)


def render_text(text: str, **values: Any) -> str:
    """Fill in a text as `render` fills in a Markdown template."""
    return _environment("hfcf.hub", False).from_string(text).render(**values)


@lru_cache
def _environment(package: str, is_html: bool) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("hfcf.hub")]), undefined=StrictUndefined, autoescape=is_html,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"cell": cell, "code": code, "fenced": fenced, "whole": _Whole}
    if not is_html:
        environment.finalize = _one_line
    return environment


class _Whole(str):
    """A text that is written as it is: front matter, or a block of code."""

    __slots__ = ()


def cell(text: Any) -> str:
    """Escape a text for one cell of a Markdown table, or one line: it makes no cell, no HTML, no image and no link
    but that of a bare address."""
    line = _ENTITY.sub("&amp;", " ".join(str(text).split())).replace("<", "&lt;")
    return _MARKS.sub(r"\\\g<0>", line)


def code(text: Any) -> str:
    """Keep a text within backquotes, also in a table."""
    return _Whole(" ".join(str(text).split()).replace("`", "'").replace("|", "/"))


def fenced(text: Any) -> str:
    """Keep a text within a block of code."""
    return _Whole(str(text).replace("```", "'''"))


def _one_line(value: Any) -> Any:
    if not isinstance(value, str) or isinstance(value, _Whole):
        return value
    return _TAG.sub("&lt;", " ".join(value.splitlines()) if len(value.splitlines()) > 1 else value)


TITLE = "hfcf: counterfactual data for language tasks"
AUTHORS = "{The hfcf developers}"
YEAR = 2026


def citation() -> str:
    """Return the BibTeX entry of this library at its version. `CITATION.cff` holds the same."""
    fields = {"title": TITLE, "author": AUTHORS, "year": YEAR, "version": version("hfcf"), "license": "Apache-2.0"}
    return "@software{hfcf,\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items()) + "}"
