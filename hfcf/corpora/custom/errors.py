"""The one error about columns or labels that can't be guessed: what there is, and the line to type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hfcf.corpora.formats.read import CorpusError


class LayoutError(CorpusError):
    """Columns or labels that nobody but the user can interpret.

    Args:
        what: what there is and what is missing.
        cures: for each way out what it is for, "" for the only one, and the arguments to type.
        call: the call that takes them, as far as it is known.

    >>> error = LayoutError("the labels are 0 and 1, without names", {"": {"labels": {0: "…", 1: "…"}}})
    >>> print(error)
    the labels are 0 and 1, without names; write
      hfcf.from_dataset(ds, labels={0: "…", 1: "…"})
    >>> print(error.in_recipe())
    the labels are 0 and 1, without names; write
      labels: {0: "…", 1: "…"}
    """

    def __init__(self, what: str, cures: Mapping[str, Mapping[str, Any]], call: str = "hfcf.from_dataset(ds") -> None:
        self.what, self.cures = what, cures
        arguments_of = {
            use: ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items()) for use, arguments in cures.items()
        }
        super().__init__(_message(what, {use: f"{call}, {given})" for use, given in arguments_of.items()}))

    def in_recipe(self) -> str:
        """Return the message with the keys of a recipe in the place of Python's arguments."""
        keys = {
            use: ", ".join(f"{name}: {_literal(value)}" for name, value in arguments.items())
            for use, arguments in self.cures.items()
        }
        return _message(self.what, keys)


def _message(what: str, lines: Mapping[str, str]) -> str:
    return f"{what}; write\n" + "\n".join(f"  {line}{f'  # {use}' if use else ''}" for use, line in lines.items())


def _literal(value: Any) -> str:
    """Write a value as both Python and YAML read it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
