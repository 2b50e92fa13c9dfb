"""The extras of setup.cfg, with the comments above them."""

from __future__ import annotations

import re

from parts.markdown import table
from parts.paths import ROOT

_LEFT_OUT = ("test", "browser", "docs")


def extras_table() -> str:
    """List what each extra of a user is for, by the comment above it, and its packages."""
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    section = re.split(r"^\[", text.partition("[options.extras_require]\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = []
    for about, name, packages in re.findall(r"((?:^#.*\n)*)^(\w+) =((?:.*\n)(?:^ .*\n)*)", section, re.MULTILINE):
        if name not in _LEFT_OUT:
            needed = ", ".join(f"`{one.strip()}`" for one in packages.strip().splitlines())
            rows.append((f"`{name}`", " ".join(line.lstrip("# ") for line in about.splitlines()), needed))
    return table(("extra", "for", "packages"), rows)
