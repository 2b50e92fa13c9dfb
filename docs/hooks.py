"""What MkDocs asks while it builds the site: the front page from README.md, links that leave docs/, and pictures of chains.

The pages are plain Markdown for a code host. The hooks change what a site needs in another form. README.md becomes the front page.
A link to a file outside docs/ leads to `repo_url`; without that, the page names the file's path. A picture with a source for dark
screens follows the switch of the site. A chain, which a code host draws by Mermaid, is a list of boxes, without a script.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
FRONT = "index.md"
_LINK = re.compile(
    r"(?P<code>^ *(?P<fence>```+).*?^ *(?P=fence)$|<!--.*?-->|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\n).)*?(?<!`)(?P=tick)(?!`))"
    r"|(?P<image>!?)\[(?P<text>(?:[^][`\\]|\\.|`[^`]*`|!\[[^][]*\]\([^)\s]*\))*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
_CHANGE = re.compile(r"(?P<code>^ *(?P<fence>```+).*?^ *(?P=fence)$|`[^`\n]*`)|\]\[(?=[-+])", re.DOTALL | re.MULTILINE)
_CHART = re.compile(r"^```mermaid\nflowchart LR\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EDGE = re.compile(r' *(\w+)(?:\["([^"]+)"\])? --> (\w+)(?:\["([^"]+)"\])?')
_NAME = re.compile(r"^[a-z]+: |\b[a-z]+(?:_[a-z]+)+\b(?:: )?")
_PICTURE = re.compile(r'<picture>.*?srcset="([^"]+)".*?<img([^>]*?)src="([^"]+)"([^>]*)>.*?</picture>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add README.md as the front page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, FRONT, content=f"---\nhide: [navigation]\n---\n{with_links(text, front_link)}"))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to files outside docs/ to the repository, and pictures to the colours that the reader chose."""
    del files
    folder = "" if page.file.src_uri == FRONT else posixpath.dirname(f"docs/{page.file.src_uri}")
    markdown = with_links(markdown, lambda link: outside_link(link, folder, config.repo_url))
    # A difference, [-old-][+new+], looks like a link to a reference.
    markdown = _CHART.sub(lambda chart: chain(chart[1]), markdown)
    markdown = _CHANGE.sub(lambda found: found[0] if found["code"] else r"]\[", markdown)
    return _PICTURE.sub(r'<img\2src="\3#only-light"\4><img\2src="\1#only-dark"\4>', markdown)


def chain(edges: str) -> str:
    """Return the boxes of a flowchart that is a chain, as HTML; its last edge may lead back.

    >>> print(chain('  a["row"] --> b["judge: a verifier"]'))
    <ol class="chain"><li>row</li><li><code>judge</code> a verifier</li></ol>
    """
    texts: dict[str, str] = {}
    last, back = "", ""
    for line in edges.rstrip("\n").split("\n"):
        edge = _EDGE.fullmatch(line)
        if edge is None or back or last not in ("", edge[1]):
            raise ValueError(f"the flowchart is not a chain of boxes, each line an arrow from the box before: {line}")
        texts.setdefault(edge[1], edge[2] or "")
        back, last = edge[3] if edge[3] in texts else "", edge[3]
        texts.setdefault(edge[3], edge[4] or "")
    boxes = [
        _NAME.sub(lambda name: f"<code>{name[0].rstrip(': ')}</code>{' ' * name[0].endswith(' ')}", html.escape(text, quote=False))
        for text in texts.values()
    ]
    if back:
        boxes.append(f"↺ {html.escape(texts[back].partition(':')[0])}")
    return f'<ol class="chain">{"".join(f"<li>{box}</li>" for box in boxes)}</ol>'


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
    if on_site or not (ROOT / target).exists():  # MkDocs names what does not exist
        return link[0]
    if address:
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{link['image']}[{link['text']}]({address.rstrip('/')}/{kind}/HEAD/{target}{hash_sign}{anchor})"
    return f"`{target}`" if link["text"].strip("`") in target else f"{link['text']} (`{target}`)"
