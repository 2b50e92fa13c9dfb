"""Templates of cards and pages, filled in."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined


def render(template: str, **values: Any) -> str:
    """A template of `hfcf/hub/templates`, filled in; a value that it lacks is an error, and a page's values are escaped."""
    text = (resources.files("hfcf.hub") / "templates" / template).read_text(encoding="utf-8")
    page = template.endswith(".html.jinja")
    environment = Environment(
        undefined=StrictUndefined, autoescape=page, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["cell"] = cell
    return environment.from_string(text).render(**values)


def cell(text: Any) -> str:
    """A text in one cell of a Markdown table."""
    return " ".join(str(text).replace("|", "\\|").split())
