"""Read YAML as plain values; a key that a mapping has twice is an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which reads two kinds of values as YAML 1.2 does, and refuses a key that a mapping has twice.

    5e-5 is a number, which version 1.1 reads as a text. The labels yes, no, on and off are texts, which version 1.1 reads as true
    and false. PyYAML silently takes the last value of a doubled key.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Read a mapping."""
        node = super().compose_mapping_node(anchor)
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and first.setdefault((key.tag, key.value), key) is not key:
                lines = f"the lines {first[key.tag, key.value].start_mark.line + 1} and {key.start_mark.line + 1}"
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} is there twice, in {lines}: leave one")
        return node


_BOOL = "tag:yaml.org,2002:bool"
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in Loader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(_BOOL, re.compile(r"(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+"), list("-+0123456789"))


def read_yaml(text: str) -> Any:
    """Read a YAML text; raise `yaml.YAMLError`."""
    try:
        return yaml.load(text, Loader)
    except (RecursionError, ValueError) as error:  # nested too deep; a date that there is not
        raise yaml.YAMLError(str(error)) from None


def read_yaml_file(path: Path) -> Any:
    """Read a YAML file; raise a `ValueError` in one line that names the file."""
    try:
        return read_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {yaml_problem(error)}") from error


def yaml_problem(error: Exception) -> str:
    """Say in one line which YAML can't be read, and where: lines and columns count from 1."""
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return str(getattr(error, "problem", None) or error).replace("\n", " ") + where


def write_flow(value: Any) -> str:
    """Write plain data as YAML in one line.

    >>> print(write_flow({"labels": {"no": "?"}, "inputs": None}))
    {labels: {'no': '?'}, inputs: null}
    """
    if isinstance(value, str) and "\n" in value:
        return json.dumps(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000).strip()
    return text.removesuffix("\n...").strip()


def front_matter(card: str) -> dict[str, Any]:
    """Parse a card's front matter."""
    from huggingface_hub.repocard import REGEX_YAML_BLOCK  # its import takes a second

    block = REGEX_YAML_BLOCK.search(card)
    front = read_yaml(block[2]) if block else None
    return front if isinstance(front, dict) else {}
