"""The release files of every corpus with wrong values in them: rows are read, or refused with a reason, and none is lost."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import databases
import nasty
import pytest
from databases import FIXTURES
from hypothesis import given
from hypothesis import strategies as st

import hfcf
from hfcf import corpora
from hfcf.corpora.base import CorpusError

JOINED = {"hover": databases.hover, "feverous": databases.feverous}
FOLDERS = sorted(path.name for path in FIXTURES.iterdir())
values = nasty.mostly(
    8,
    nasty.texts,
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(nasty.texts, max_size=2),
    st.just({"text": "a"}),
    st.integers(-3, 9),
)
# Which file, which of its values, and what comes in its place.
changes = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 999), values), min_size=1, max_size=4)


def corpus_of(folder: str) -> str:
    return max((name for name in corpora.names() if folder.startswith(name)), key=len)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each list or object with the index or key of a value in it that is neither."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in items:
        if isinstance(one, dict | list):
            yield from places(one)
        else:
            yield value, key


def spoil(path: Path, place: int, value: Any) -> bool:
    """Put a value into the place of one of a file; return whether the file has the same records as before."""
    packed = path.suffix == ".gz"
    text = (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).decode()
    try:
        records = [json.loads(line) for line in text.splitlines()]
        spoiled, kept = _spoiled(records, place, value), True
        text = "\n".join(json.dumps(record) for record in spoiled)
    except ValueError:
        try:
            text, kept = json.dumps(_spoiled(json.loads(text), place, value)), True
        except ValueError:
            words, kept = text.split(" "), False
            words[place % len(words)] = nasty.storable(value) if isinstance(value, str) else json.dumps(value)
            text = " ".join(words)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    return kept


def _spoiled(content: Any, place: int, value: Any) -> Any:
    if found := list(places(content)):
        where, key = found[place % len(found)]
        where[key] = value
    return content


def copy_release(folder: str, to: Path) -> None:
    """Copy a fixture, with the database that its release is joined with."""
    shutil.rmtree(to, ignore_errors=True)
    JOINED.get(folder, lambda to: shutil.copytree(FIXTURES / folder, to))(to)


def read(name: str, folder: Path) -> dict[str, Sequence[Any]]:
    return dict(hfcf.load(name, data_dir=folder, on_error="reject"))


@pytest.mark.parametrize("examples", [1, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_release_with_wrong_values(folder: str, examples: int, tmp_path: Path, counted: Counter[str]) -> None:
    name, copy = corpus_of(folder), tmp_path / folder
    copy_release(folder, copy)
    before = {split: len(part) for split, part in read(name, copy).items()}
    names = sorted(path.relative_to(FIXTURES / folder) for path in (FIXTURES / folder).rglob("*") if path.is_file())

    @nasty.run_examples(examples)
    @given(changes)
    def run(changed: list[tuple[int, int, Any]]) -> None:
        copy_release(folder, copy)
        kept = sum(spoil(copy / names[file % len(names)], place, value) for file, place, value in changed) == len(changed)
        counted["rows"] += sum(before.values())
        try:
            splits, why = read(name, copy), ""
        except CorpusError as error:
            splits, why = {}, str(error)
        assert splits or 10 < len(why) < 20_000
        # A record of several questions that can't be read is one rejected row. MRQA's headers name the splits of their files.
        statuses = [status for part in splits.values() for status in part["status"]]
        assert not kept or not splits or len(statuses) >= sum(before.values()) or any(statuses)
        for part in splits.values():
            assert len(set(part["id"])) == len(part)
            for status in part["status"]:
                counted["accepted"] += status is None
                assert status is None or (status["stage"] == "load" and len(status["reason"]) > 3)

    run()
