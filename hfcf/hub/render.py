"""Templates of cards and pages, filled in."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """A template of `hfcf/hub/templates`, filled in; a value that it lacks is an error, and a page's values are escaped."""
    page = template.endswith(".html.jinja")
    environment = Environment(
        loader=PackageLoader("hfcf.hub"), undefined=StrictUndefined, autoescape=page, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["cell"] = cell
    return environment.get_template(template).render(**values)


def cell(text: Any) -> str:
    """A text in one cell of a Markdown table."""
    return " ".join(str(text).replace("|", "\\|").split())
