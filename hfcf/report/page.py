"""Parts of self-contained pages: style, scripts, data as JSON, tables from Markdown and of nested settings."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any


def embed_json(value: Any) -> str:
    """Write JSON that can't end the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def read_template(name: str, package: str = "hfcf.report") -> str:
    """Read a file of a package's folder `templates` as it is."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def read_style() -> str:
    """Read the style of a report: colours, cards of rows, and the page."""
    return "".join(map(read_template, ("colours.css", "card.css", "report.css")))


def hash_script(script: str) -> str:
    """Return what a Content-Security-Policy names a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


COMPARISONS, RATINGS = ("table.md", "rationales.md"), ("ratings.md",)


def tables(folder: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """Render Markdown files that lie in a folder, or in one right below it, as HTML.

    Args:
        folder: of a run or of a comparison.
        names: of the files.

    Returns:
        `title`, `html` (HTML in the Markdown is text in it) and `figure` (an SVG as a data URI, or none) of each.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    paths = [path for name in names for path in (folder / name, *sorted(folder.glob(f"*/{name}"))) if path.is_file()]
    return [_table(path) for path in paths]


def _table(path: Path) -> dict[str, Any]:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    lines = path.read_text(encoding="utf-8").splitlines()
    titles = [line for line in lines if line.startswith("# ")]
    # The page has a heading of the first and of the second level above these headings.
    text = "\n".join(f"##{line}" if line.startswith("#") else line for line in lines if not line.startswith("# "))
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    html = reader.render(text).replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    figure = path.with_name("figure.svg")
    drawn = base64.b64encode(figure.read_bytes()).decode() if figure.is_file() else ""
    return {
        "title": titles[0].removeprefix("# ") if titles else path.parent.resolve().name,
        "html": Markup(html),
        "figure": f"data:image/svg+xml;base64,{drawn}" if drawn else "",
    }


def flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten nested settings to (dotted name, value) rows."""
    if isinstance(value, Mapping):
        return [row for key, part in value.items() for row in flat(part, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list):
        if any(isinstance(part, Mapping | list) for part in value):
            return [row for i, part in enumerate(value, 1) for row in flat(part, f"{name}.{i}" if name else str(i))]
        return [(name, ", ".join(map(_text, value)) or "–")]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
