from __future__ import annotations

import pickle
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from datasets import Dataset

from hfcf.core.passage_store import Passages, store


class Text(str):
    """A text whose life can be watched."""


ROWS = [{"title": f"T{i}", "text": f"text {i} é 😀", "other": i} for i in range(2500)]


def test_a_dataset_is_copied_once_by_content(cache: Path) -> None:
    ds = Dataset.from_list(ROWS)
    passages = Passages.of(ds)
    rows = passages.open()
    assert rows.column_names == ["id", "title", "text"]
    assert rows[2499] == {"id": "2499", "title": "T2499", "text": "text 2499 é 😀"}
    assert len(rows) == 2500
    assert Passages.of(rows) == passages == Passages.of(ds) == Passages.of(Dataset.from_list(ROWS)) == Passages.of(passages)
    assert Passages.of(ds.select(range(2499))) != passages
    assert pickle.loads(pickle.dumps(passages)) == passages
    assert passages.folder().parent == cache / "passages"


def test_order_filters_and_formats_are_followed() -> None:
    ds = Dataset.from_list(ROWS[:10])
    chosen = Passages.of(ds.select([7, 3]).with_format("numpy")).open()
    assert chosen["text"][:] == [ROWS[7]["text"], ROWS[3]["text"]]
    assert Passages.of(ds.filter(lambda row: row["other"] > 8)).open()["text"][:] == [ROWS[9]["text"]]
    assert Passages.of(Dataset.from_list([{"text": "a", "title": None}])).open()[0]["title"] == ""


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"body": "a"}], "no column 'text'.*body.*rename"),
        ([{"text": "a"}, {"text": None}], "row 1 .*text is null.*filter"),
        ([{"text": "a"}, {"text": "  "}], "row 1 .*text is empty"),
        ([{"text": 3}], "row 0 .*a number, not text"),
        ([{"text": "a", "title": 3}], "row 0 .*title is a number"),
        ([{"id": "x", "text": "a"}, {"id": None, "text": "a"}], "row 1 .*id is null"),
    ],
)
def test_bad_rows_are_named(rows: list[dict[str, object]], why: str, cache: Path) -> None:
    with pytest.raises(ValueError, match=why):
        Passages.of(Dataset.from_list(rows))
    assert [path for path in (cache / "passages").glob("*") if path.name != "sources"] == []  # nothing half-made stays


def test_a_collection_without_rows_or_without_its_file_is_an_error() -> None:
    with pytest.raises(ValueError, match="passages"):
        store([])
    passages = Passages.of(Dataset.from_list(ROWS[:3]))
    shutil.rmtree(passages.folder())
    with pytest.raises(FileNotFoundError, match="load the collection again"):
        passages.open()
    assert Passages.of(Dataset.from_list(ROWS[:3])).open()[0]["title"] == "T0"  # made again


def test_rows_are_mapped_and_written_as_they_come() -> None:
    from datasets.table import MemoryMappedTable

    assert isinstance(Passages.of(Dataset.from_list(ROWS)).open().data, MemoryMappedTable)
    held = []

    def rows() -> Iterator[tuple[str, str, str]]:
        for i in range(3000):
            row = Text(f"text {i}")
            references.append(weakref.ref(row))
            held.append(sum(one() is not None for one in references[::500]))
            yield str(i), "", row

    references: list[weakref.ref[Text]] = []
    assert len(store(rows()).open()) == 3000
    assert max(held) <= 4  # of six that are watched: those of one batch, and at its ends
