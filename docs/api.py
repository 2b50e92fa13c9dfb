"""What griffe reads docstrings with for the API pages: doctests become code blocks, and a system gets its stages' settings."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1(?! *$).*)*", re.MULTILINE)


class Docstrings(Extension):
    """Read this library's docstrings."""

    def on_instance(self, *, node: Any, obj: Object, agent: Any, **kwargs: Any) -> None:
        """Fence the doctests of a docstring."""
        del node, agent, kwargs
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(fenced, obj.docstring.value)


def fenced(doctest: re.Match[str]) -> str:
    """Return a doctest in a fence."""
    return f"{doctest[1]}```python\n{doctest[0]}\n{doctest[1]}```"
