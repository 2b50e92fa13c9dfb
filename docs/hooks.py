"""What MkDocs asks while it builds the site: the front page from README.md, the API, and links that leave docs/.

The pages are plain Markdown for a code host. The hooks change what a site needs in another form. README.md becomes the front page.
Below a table of names of the API, the site shows what their docstrings say.
A link to a file outside docs/ leads to `repo_url`; without that, the page names the file's path. A picture with a source for dark
screens follows the switch of the site. A flowchart in Mermaid, which would load a script from another host, becomes a list.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
FRONT = "index.md"
PAIRS = ("results/rated_pairs.jsonl", "results/pairs.html")
"""A file of pairs, and the page of the site that shows it."""
_LINK = re.compile(
    r"(?P<code>^ *(?P<fence>```+).*?^ *(?P=fence)$|<!--.*?-->|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\n).)*?(?<!`)(?P=tick)(?!`))"
    r"|(?P<image>!?)\[(?P<text>(?:[^][`\\]|\\.|`[^`]*`|!\[[^][]*\]\([^)\s]*\))*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
_CHANGE = re.compile(r"(?P<code>^ *(?P<fence>```+).*?^ *(?P=fence)$|`[^`\n]*`)|\]\[(?=[-+])", re.DOTALL | re.MULTILINE)
_FLOWCHART = re.compile(r"^```mermaid\nflowchart \w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NODE, _ARROW = re.compile(r'(\w+)\["([^"]+)"\]'), re.compile(r'(\w+)(?:\["[^"]+"\])? --> (\w+)')
_API = re.compile(r"^(?:\|.*\n)*(?:\| `hfcf\.[\w.]+` \|.*\n?)+|^<!-- objects: .* -->$", re.MULTILINE)
"""A table whose first column has names of the API, or a comment that names what another table lists."""
_NAME = re.compile(r"^\| `(hfcf\.[\w.]+)` \|", re.MULTILINE)
_PICTURE = re.compile(r'<picture>.*?srcset="([^"]+)".*?<img([^>]*?)src="([^"]+)"([^>]*)>.*?</picture>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add README.md as the front page, and the page that filters the rated pairs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, FRONT, content=f"---\nhide: [navigation]\n---\n{with_links(text, front_link)}"))
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        pairs = import_module("parts.ratings").pairs_page()
    finally:
        sys.path.remove(str(ROOT / "docs"))
    files.append(File.generated(config, PAIRS[1], content=pairs))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to files outside docs/ to the repository, and pictures to the colours that the reader chose."""
    del files
    folder = "" if page.file.src_uri == FRONT else posixpath.dirname(f"docs/{page.file.src_uri}")
    markdown = with_links(markdown, lambda link: outside_link(link, folder, config.repo_url))
    markdown = _API.sub(lambda found: with_objects(found[0]), markdown)
    markdown = _FLOWCHART.sub(lambda found: chain(found[1]), markdown)
    # A difference, [-old-][+new+], looks like a link to a reference.
    markdown = _CHANGE.sub(lambda found: found[0] if found["code"] else r"]\[", markdown)
    return _PICTURE.sub(r'<img\2src="\3#only-light"\4><img\2src="\1#only-dark"\4>', markdown)


def with_objects(part: str) -> str:
    """Return a table of names with links, and below it the lines by which mkdocstrings writes the objects."""
    names = _NAME.findall(part) or part.split()[2:-1]
    linked = _NAME.sub(r"| [`\1`][\1] |", part) if part.startswith("|") else ""
    return "\n\n".join([linked.rstrip("\n"), *(f"::: {name}" for name in names)]) + "\n"


def with_links(markdown: str, change: Callable[[re.Match[str]], str]) -> str:
    """Return Markdown with its relative links changed; code and comments stay as they are."""
    keeps = re.compile(r"\w+:|#")
    return _LINK.sub(lambda found: found[0] if found["code"] or keeps.match(found["target"]) else change(found), markdown)


def front_link(link: re.Match[str]) -> str:
    """Return a link of README.md as the front page has it."""
    return link[0].replace("](docs/", "](")


def outside_link(link: re.Match[str], folder: str, address: str | None) -> str:
    """Return a link of a page in a folder, changed if it leads to a file of the repository that is not part of the site."""
    path, hash_sign, anchor = link["target"].partition("#")
    target = posixpath.normpath(posixpath.join(folder, path))
    on_site = (folder == "" and not (ROOT / path).exists()) or (target.startswith("docs/") and not target.endswith(".py"))
    if target == PAIRS[0]:
        return f"[{link['text']}]({posixpath.relpath('docs/' + PAIRS[1], folder or 'docs')})"
    if on_site or not (ROOT / target).exists():  # MkDocs names what does not exist
        return link[0]
    if address:
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{link['image']}[{link['text']}]({address.rstrip('/')}/{kind}/HEAD/{target}{hash_sign}{anchor})"
    return f"`{target}`" if link["text"].strip("`") in target else f"{link['text']} (`{target}`)"


def chain(flowchart: str) -> str:
    """Return a flowchart whose boxes follow one another as a list that the style sheet draws; an arrow back is named in its box.

    Raises:
        ValueError: an arrow leads past the next box.
    """
    texts = dict(_NODE.findall(flowchart))
    names = [*texts]
    items = {name: re.sub(r"^(\w+$|[^:]+(?=:))", r"<strong>\1</strong>", escape(text)) for name, text in texts.items()}
    for start, end in _ARROW.findall(flowchart):
        if (step := names.index(end) - names.index(start)) > 1:
            raise ValueError(f"the arrow {start} --> {end} leads past a box: the site draws chains only")
        if step < 1:
            items[start] += f" ↩ {escape(texts[end].partition(':')[0])}"
    boxes = "".join(f"<li>{item}</li>" for item in items.values())
    return f'\n<ol class="chain">{boxes}</ol>\n'
