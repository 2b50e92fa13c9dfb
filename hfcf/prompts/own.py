"""The user's own prompts: a folder of templates and worked examples, which replace the prompts of this library by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hfcf.core.names import did_you_mean

_OURS = resources.files("hfcf.prompts")
_MAY_LACK = "examples"
"""The only variable of this library that a template may leave out."""


def environment() -> ImmutableSandboxedEnvironment:
    """Return the environment that renders templates. A template may come from a stranger, so it can read only its variables."""
    env = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.filters["json"] = partial(json.dumps, ensure_ascii=False)  # jinja2's own escapes quotes, for HTML
    return env


def read(file: str, folder: str | None = None) -> str:
    """Return a file of a folder, after a check; else the file of this library."""
    if folder and (path := check_folder(folder) / file).is_file():
        return path.read_text(encoding="utf-8")
    return _ours(file)


def texts(folder: str) -> dict[str, str]:
    """Return the texts of a folder of prompts by their names, for `run.json`."""
    return {path.name: path.read_text(encoding="utf-8") for path in _files(check_folder(folder))}


def check_folder(folder: str) -> Path:
    """Check prompts before a model is asked: raise for prompts that would fail or lack a part; return the folder.

    Raises:
        ValueError: the folder does not exist, or a file in it has an unknown name, is broken, or reads an unknown variable. It is
            also raised for a template that leaves a variable out. The message has the file and the line.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise ValueError(f"prompts: there is no folder {folder}")
    _check(root, tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in _files(root)))
    return root


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.suffix in (".jinja", ".json"))


@lru_cache(maxsize=16)
def _check(root: Path, stamp: tuple[tuple[str, int, int], ...]) -> None:
    ours = sorted(Path(path.name).stem for path in _OURS.iterdir() if path.name.endswith(".jinja"))
    if not stamp:
        raise ValueError(f"prompts: {root} holds no template: give it the name of one of ours, such as {ours[0]}.jinja")
    for path in sorted(_files(root), key=lambda path: path.suffix != ".json"):  # a template has the fields of its examples
        if path.stem not in ours:
            near = did_you_mean(path.stem, ours) or f"; there are {', '.join(ours)}"
            raise ValueError(f"{path}: there is no prompt {path.stem!r}{near}")
        (_check_examples if path.suffix == ".json" else _check_template)(path)


def _check_template(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        own = environment().parse(text)
        environment().compile(text)  # finds unknown filters
    except TemplateSyntaxError as error:
        raise ValueError(f"{path}:{error.lineno}: {error.message}") from None
    model = environment().parse(_ours(path.name))
    gets, reads = meta.find_undeclared_variables(model), meta.find_undeclared_variables(own)
    for name in sorted(reads - gets):
        line = next(node.lineno for node in own.find_all(nodes.Name) if node.name == name)
        raise ValueError(f"{path}:{line}: unknown variable {name!r}{did_you_mean(name, gets)}; it gets {', '.join(sorted(gets))}")
    blocks, wanted = ({node.name: node.lineno for node in tree.find_all(nodes.Block)} for tree in (own, model))
    if missing := [name for name in wanted if name not in blocks]:
        raise ValueError(f"{path}:1: the block {missing[0]!r} is missing: {{% block {missing[0]} %}} … {{% endblock %}}")
    if missing := sorted(gets - reads - {_MAY_LACK}):
        raise ValueError(
            f"{path}:1: the variable {missing[0]!r} is missing: write {{{{ {missing[0]} }}}} where it belongs, or "
            f"{{% set unused = {missing[0]} %}} to leave it out"
        )
    known = {*_attributes(model), *_keys(_ours(path.with_suffix(".json").name))}
    known |= set(_keys(path.with_suffix(".json").read_text(encoding="utf-8"))) if path.with_suffix(".json").is_file() else set()
    for name, line in _attributes(own).items():
        if name not in known:
            raise ValueError(
                f"{path}:{line}: unknown field {name!r}{did_you_mean(name, known)}; there are {', '.join(sorted(known))}"
            )


def _attributes(tree: nodes.Template) -> dict[str, int]:
    """Map the fields that a template reads to their lines, without the fields of `loop` and the methods of texts."""
    methods = {id(call.node) for call in tree.find_all(nodes.Call)}
    return {
        node.attr: node.lineno
        for node in tree.find_all(nodes.Getattr)
        if id(node) not in methods and not (isinstance(node.node, nodes.Name) and node.node.name == "loop")
    }


def _check_examples(path: Path) -> None:
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: {error.msg}") from None
    if not isinstance(own, list) or not all(isinstance(example, dict) for example in own):
        raise ValueError(f"{path}:1: a list of examples is expected, each {{name: value}}")
    examples = [set(example) for example in json.loads(_ours(path.name))]
    needed = set.intersection(*examples) if examples else set()
    for number, example in enumerate(own, 1):
        if missing := sorted(needed - set(example)):
            raise ValueError(f"{path}: example {number} lacks {missing[0]!r}")


def _keys(text: str) -> Iterator[str]:
    def walk(value: Any) -> Iterator[str]:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
            if isinstance(key, str):
                yield key
            yield from walk(part)

    return walk(json.loads(text))


@lru_cache(maxsize=64)
def _ours(file: str) -> str:
    return (_OURS / file).read_text(encoding="utf-8")
