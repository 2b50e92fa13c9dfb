"""Read YAML from strangers: only plain values, in a time and memory that fit its length.

PyYAML's safe loader makes no objects. But a few lines of aliases expand to gigabytes, and deep nesting ends in a RecursionError.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

LONGEST = 2**18
"""The maximum number of characters of a text: a recipe has a few thousand."""
LARGEST = 2**20
"""The maximum number of characters of the values, with every alias written out."""
DEEPEST = 60
"""The maximum number of levels: PyYAML takes seconds for a thousand, and no recipe has ten."""


class PlainLoader(yaml.SafeLoader):
    """PyYAML's safe loader, limited to `DEEPEST` levels."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Read a bracket or a brace."""
        self._check_depth(self.flow_level)
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        """Go one level deeper in a block."""
        self._check_depth(len(self.indents))
        return bool(super().add_indent(column))

    def _check_depth(self, depth: int) -> None:
        if depth >= DEEPEST:
            raise yaml.MarkedYAMLError(problem="it is nested too deep", problem_mark=self.get_mark())


def read_yaml_file(path: Path, loader: type[PlainLoader] = PlainLoader) -> Any:
    """Read a YAML file; raise a `ValueError` in one line that names the file."""
    try:
        return read_yaml(path.read_text(encoding="utf-8"), loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {yaml_problem(error)}") from error


def yaml_problem(error: Exception) -> str:
    """Say in one line which YAML can't be read, and where: lines and columns count from 1."""
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    text = str(getattr(error, "problem", None) or error).replace("\n", " ")
    star = "; a value that begins with * or & is put in quotes" if "alias" in text or "anchor" in text else ""
    return f"{text}{where}{star}"


def read_yaml(text: str, loader: type[PlainLoader] = PlainLoader) -> Any:
    """Read a YAML text."""
    if len(text) > LONGEST:
        raise yaml.MarkedYAMLError(problem=f"it has more than {LONGEST:,} characters")
    reader = loader(text)
    try:
        node = reader.get_single_node()
        if node is None:
            return None
        _size(node, {}, reader)
        return reader.construct_document(node)
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="it is nested too deep") from None
    except (ValueError, OverflowError) as error:  # of numbers and dates that there are not
        raise yaml.MarkedYAMLError(problem=f"it has a value that can't be read: {str(error)[:80]}") from None
    finally:
        reader.dispose()


def front_matter(card: str) -> dict[str, Any]:
    """Parse a card's front matter."""
    from huggingface_hub.repocard import REGEX_YAML_BLOCK  # its import takes a second

    block = REGEX_YAML_BLOCK.search(card)
    front = read_yaml(block[2]) if block else None
    return front if isinstance(front, dict) else {}


def _size(node: yaml.Node, sizes: dict[int, int], reader: PlainLoader) -> int:
    """Return the characters of a value with its aliases written out, and check the keys of every mapping.

    A value whose size is still being counted has 0 in `sizes`.
    """
    if id(node) in sizes:
        if not sizes[id(node)]:
            raise yaml.MarkedYAMLError(problem="a value of & holds itself by *", problem_mark=node.start_mark)
        return sizes[id(node)]
    sizes[id(node)] = 0
    if isinstance(node, yaml.ScalarNode):
        size = 1 + len(node.value)
    elif isinstance(node, yaml.MappingNode):
        _check_keys(node, reader)
        size = 1 + sum(_size(part, sizes, reader) for pair in node.value for part in pair)
    else:
        size = 1 + sum(_size(part, sizes, reader) for part in node.value)
    if size > LARGEST:
        raise yaml.MarkedYAMLError(problem=f"its & and * expand to more than {LARGEST:,} characters", problem_mark=node.start_mark)
    sizes[id(node)] = size
    return size


def _check_keys(node: yaml.MappingNode, reader: PlainLoader) -> None:
    """Raise on a key that a mapping has twice: PyYAML silently takes the last value. A merge (`<<`) repeats keys on purpose."""
    lines = defaultdict(list)
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            is_merge = key.tag == "tag:yaml.org,2002:merge"
            lines[key.value if is_merge else reader.construct_object(key)].append(key.start_mark.line + 1)
    for name, at in lines.items():
        if len(at) > 1:
            places = f"is there {len(at)} times, in the lines {', '.join(map(str, at))}"
            raise yaml.MarkedYAMLError(problem=f"the key {str(name)[:80]!r} {places}: leave one")
