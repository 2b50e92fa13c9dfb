"""Damaged files: told once, set aside, and computed again; rows and answers are those of a whole file."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, config, load_from_disk

import hfcf
from hfcf.core import offline, passage_store
from hfcf.core.artifacts import artifact_path, read_artifact, save_artifact
from hfcf.core.mapping import map_rows
from hfcf.core.paths import fill_once
from hfcf.engines import cache as cache_module
from hfcf.engines.cache import RequestCache, open_cache
from hfcf.engines.cache_admin import open_answers, verify
from hfcf.training.model_cache import stored_model, train_once
from hfcf.training.trainer import Hyperparameters

Damage = Callable[[Path], object]


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def junk(path: Path) -> None:
    path.write_bytes(b"\x01" * max(200, path.stat().st_size))


def middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x07" * (len(data) - 4096)
    path.write_bytes(data)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("damage", [half, junk, middle])
def test_a_damaged_request_cache_is_set_aside(damage: Damage, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "made" / "requests.sqlite"
    first = RequestCache(path)
    first.put({f"{i}": "answer" * 50 for i in range(500)})
    first.close()
    damage(path)
    again = RequestCache(path)
    kept = again.get(f"{i}" for i in range(500))
    again.put({"a": 1})
    assert again.get(["a"]) == {"a": 1}
    assert RequestCache(path).get(["a"]) == {"a": 1}
    assert not kept
    assert (tmp_path / "made" / "requests.sqlite.damaged").exists()
    [told] = warnings(caplog)
    assert str(path) in told


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT, more TEXT)",
        "CREATE TABLE sums (a)",
        "CREATE VIEW steps AS SELECT 1",
    ],
)
def test_a_database_of_another_form_is_set_aside(statement: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "requests.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    with pytest.raises(ValueError, match=r"requests\.sqlite is damaged \(its table \w+ is not the table of a request cache\)"):
        open_answers(path)
    RequestCache(path).put({"a": 1})
    assert RequestCache(path).get(["a"]) == {"a": 1}
    assert path.with_name("requests.sqlite.damaged").exists()
    [told] = warnings(caplog)
    assert str(path) in told


@pytest.mark.parametrize("answer", ["[1, 2", "null", '{"other": 1}', b"\xff\xfe", 7, "[" * 10_000])
def test_an_answer_that_was_changed_is_asked_again(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path))
    path = tmp_path / "requests.sqlite"
    cache = RequestCache(path)
    cache.put({"a": [0.5], "b": "é"})
    assert not verify()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE answers SET answer = ? WHERE key = 'a'", (answer,))
        db.execute("INSERT INTO steps VALUES ('c', ?)", (answer,))
    assert len(verify()) == 1
    assert cache.get(["a", "b"]) == {"b": "é"}
    [told] = warnings(caplog)
    assert f"{path} has 1 damaged answers" in told
    cache.put({"a": [0.5]})
    assert cache.get(["a"]) == {"a": [0.5]}
    cache.get_steps(["c"])


def test_answers_of_an_older_version_are_read(tmp_path: Path) -> None:
    path = tmp_path / "requests.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
        db.execute("INSERT INTO answers VALUES ('a', '1')")
    assert RequestCache(path).get(["a"]) == {"a": 1}


def test_a_cache_that_is_damaged_while_two_have_it_open_is_set_aside_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "made" / "requests.sqlite"
    one, two = RequestCache(path), RequestCache(path)
    one.put({f"{i}": "answer" * 50 for i in range(2000)})
    one._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    middle(path)
    for cache in (two, one):  # the first one has its pages in memory, and notices nothing but that the file is another
        cache.get(f"{i}" for i in range(2000))
        cache.put({f"{id(cache)}": 1})
    assert len(warnings(caplog)) == 1
    assert len(RequestCache(path)) == 2


@pytest.mark.parametrize(
    ("code", "number"), [(sqlite3.SQLITE_FULL, 28), (sqlite3.SQLITE_IOERR_WRITE, 5), (sqlite3.SQLITE_READONLY, 30)]
)
def test_a_cache_that_can_t_be_written_to_says_which_and_why(
    code: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code

    def put(statements: Any) -> None:
        raise error

    monkeypatch.setattr(cache, "_put", put)
    with pytest.raises(OSError, match=r"requests\.sqlite") as raised:
        cache.put({"a": 1})
    assert raised.value.errno == number


def test_a_run_goes_on_without_a_cache_that_is_read_only(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: Path) -> RequestCache:
        raise PermissionError(30, "Read-only file system", str(path))

    monkeypatch.setattr(cache_module, "RequestCache", refuse)
    assert open_cache() is None
    assert open_cache() is None
    [told] = warnings(caplog)
    assert str(cache / "requests.sqlite") in told
    assert "second run asks again" in told


@pytest.mark.parametrize("damage", [half, empty, lambda path: path.write_text('{"relations": ["of"]}')])
def test_an_artifact_is_what_its_name_says(damage: Damage, caplog: pytest.LogCaptureFixture) -> None:
    content = {"relations": ["in", "of"]}
    path = artifact_path(save_artifact(content))
    damage(path)
    with pytest.raises(FileNotFoundError, match="fit again"):
        read_artifact(path.stem, "fit again")
    [told] = warnings(caplog)
    assert str(path) in told
    assert path.with_name(f"{path.name}.damaged").exists()
    save_artifact(content)
    damage(path)
    assert read_artifact(save_artifact(content), "") == content


def test_a_stored_model_that_is_cut_off_is_trained_again(tiny_model: Callable[[str], str], cache: Path) -> None:
    from safetensors.numpy import save_file

    trained: list[Path] = []

    def train(out: Path) -> None:
        import numpy as np

        trained.append(out)
        out.mkdir()
        save_file({"weight": np.ones(100)}, out / "model.safetensors")

    hp = Hyperparameters(model=tiny_model("classifier"))  # type: ignore[arg-type]
    digest = train_once("kind 1", {}, hp, train)
    assert train_once("kind 1", {}, hp, train) == digest
    assert len(trained) == 1
    weights = Path(stored_model(digest).name) / "model.safetensors"
    for damage in (half, lambda path: path.write_bytes(path.read_bytes()[:-3]), junk):
        damage(weights)
        train_once("kind 1", {}, hp, train)
    assert len(trained) == 4
    assert sorted(path.name for path in (cache / "fitted").iterdir()) == sorted(
        [digest, f"{digest}.damaged", *(f"{digest}.damaged{number}" for number in (2, 3))]
    )


@pytest.mark.parametrize("damage", [half, empty, Path.unlink])
def test_a_folder_that_was_cut_off_is_filled_again(damage: Damage, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fill(folder: Path) -> None:
        (folder / "inside").mkdir(parents=True)
        (folder / "inside" / "words.npy").write_bytes(b"words")

    folder = fill_once(tmp_path / "index", fill)
    damage(folder / "inside" / "words.npy")
    (folder / "later").touch()
    assert (fill_once(folder, fill) / "inside" / "words.npy").read_bytes() == b"words"
    [told] = warnings(caplog)
    assert f"{folder} is damaged (inside/words.npy" in told
    assert folder.with_name("index.damaged").is_dir()
    (folder / ".sizes.json").write_text("{")
    fill_once(folder, fill)
    assert len(warnings(caplog)) == 2


def write_claims(path: Path) -> Path:
    row = {"claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "Rome is old."}], "label": "SUPPORTS"}
    path.write_text("".join(f"{json.dumps({'id': str(i), **row})}\n" for i in range(100)))
    return path


def write_pairs(path: Path) -> Path:
    row = {"premise": "Rome is old.", "label": "entailment"}
    path.write_text("".join(f"{json.dumps({'hypothesis': f'Rome is old, {i}.', **row})}\n" for i in range(100)))
    return path


@pytest.mark.parametrize("name", ["*-train.arrow", "dataset_info.json"])
@pytest.mark.parametrize("own", [False, True])
def test_a_damaged_corpus_is_read_again(
    own: bool, name: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load() -> list[str]:
        if own:
            return hfcf.load({"path": "json", "data_files": str(file)}, split="train")["claim"][:]
        return hfcf.load("jsonl", data_files=file, split="train")["claim"][:]

    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "hf")
    file = (write_pairs if own else write_claims)(tmp_path / "mine.jsonl")
    expected = load()
    [made] = (tmp_path / "hf" if own else cache / "corpora").rglob(name)
    half(made)
    assert load() == expected
    assert made.exists()
    assert made.parent.with_name(f"{made.parent.name}.damaged").is_dir()
    [told] = warnings(caplog)
    assert f"{made.parent} is damaged ({made.name}" in told
    assert load() == expected
    assert len(warnings(caplog)) == 1


def test_a_damaged_passage_collection_is_read_again(tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "passages.jsonl"
    file.write_text(json.dumps({"id": "1", "title": "Rome", "text": "Rome is old."}))
    for name in ("passages.arrow", "[0-9a-f]*"):
        expected = hfcf.load("passages", data_files=file).to_list()
        [made] = [path for path in (cache / "passages").rglob(name) if path.is_file() and ".damaged" not in str(path)]
        junk(made) if "sources" in made.parts else half(made)
        passage_store._open.cache_clear()
        assert hfcf.load("passages", data_files=file).to_list() == expected
    [told] = warnings(caplog)
    assert "passages.arrow" in told


def test_a_damaged_offline_model_is_converted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path))  # the cache of other tests shares its models

    def convert(source: Path, out: Path) -> None:
        (out / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setitem(offline._MODELS, "made", ("datasets", ".", convert))
    folder = offline.folder("made")
    assert not verify()
    half(folder / "model.safetensors")
    assert verify() == [f"{folder}: model.safetensors is not as it was written: the next use sets it aside"]
    assert not offline.is_converted("made")
    assert (offline.folder("made") / "model.safetensors").read_bytes() == b"weights"
    [told] = warnings(caplog)
    assert f"{folder} is damaged (model.safetensors" in told
    assert not verify()


def shout(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    return {"text": [text.upper() for text in rows["text"]]}


@pytest.mark.parametrize("damage", [half, empty, junk])
def test_a_damaged_file_of_the_map_cache_is_made_again(damage: Damage, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Dataset.from_dict({"text": ["abc" * 50] * 2000}).save_to_disk(tmp_path / "rows")
    ds = load_from_disk(str(tmp_path / "rows"))
    expected = map_rows(ds, shout, batched=True)["text"][:]
    [file] = (tmp_path / "rows").glob("cache-*.arrow")
    damage(file)
    assert map_rows(ds, shout, batched=True)["text"][:] == expected
    assert file.exists()
    assert file.with_name(f"{file.name}.damaged").exists()
    [told] = [text for text in warnings(caplog) if "set aside" in text or "damaged" in text]
    assert str(file) in told


def test_an_error_of_a_stage_stays_that_error(tmp_path: Path) -> None:
    Dataset.from_dict({"text": ["a"]}).save_to_disk(tmp_path / "rows")
    calls: list[int] = []

    def refuse(row: dict[str, Any]) -> None:
        calls.append(1)
        raise OSError("no endpoint")

    with pytest.raises(OSError, match="no endpoint"):
        map_rows(load_from_disk(str(tmp_path / "rows")), refuse)
    assert len(calls) == 1
