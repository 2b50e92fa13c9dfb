"""Fill in the templates of cards and pages."""

from __future__ import annotations

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def render(template: str, /, package: str = "hfcf.hub", **values: Any) -> str:
    """Fill in a template. A value that it lacks is an error, and the values of an HTML page are escaped.

    Args:
        template: a file of the package's folder `templates`; it may include those of `hfcf.hub`.
        package: where the template is.
        values: what the template names.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("hfcf.hub")]), undefined=StrictUndefined,
        autoescape=template.endswith(".html.jinja"), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["cell"] = cell
    return environment.get_template(template).render(**values)


def cell(text: Any) -> str:
    """Escape a text for one cell of a Markdown table.

    >>> cell("a | b\\nc")
    'a \\\\| b c'
    """
    return " ".join(str(text).replace("|", "\\|").split())
