"""The caches: their limit, what is removed by age and engine, what is found damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.artifacts import artifact_path, read_artifact, save_artifact
from hfcf.engines import cache as cache_module
from hfcf.engines import cache_admin
from hfcf.engines.cache import RequestCache

DAY = 86_400


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time: what the list holds."""
    now = [1_800_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    return now


def fill(cache: Path, at: list[float]) -> RequestCache:
    """One answer of each of two engines a day for three days."""
    requests = RequestCache(cache / "requests.sqlite")
    for day in range(3):
        requests.put({f"c{day}": day}, "Classifier")
        requests.put({f"n{day}": day}, "Ner")
        at[0] += DAY
    return requests


def keys(requests: RequestCache) -> list[str]:
    names = [f"{engine}{day}" for engine in "cn" for day in range(3)]
    return [name for name in names if requests.get([name])]


def test_old_answers_and_those_of_an_engine_are_removed(cache: Path, at: list[float]) -> None:
    requests = fill(cache, at)
    assert cache_admin.prune(older_than=2.5)["answers"] == 2
    assert keys(requests) == ["c1", "c2", "n1", "n2"]
    assert cache_admin.prune(engine="Ner", older_than=1.5) == {"answers": 1}
    assert cache_admin.prune(engine="Ner") == {"answers": 1}
    assert keys(requests) == ["c1", "c2"]
    with pytest.raises(ValueError, match="--older-than DAYS"):
        cache_admin.prune()


def test_a_limit_removes_the_oldest_answers_first(cache: Path, at: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_CACHE_LIMIT", "300kB")
    monkeypatch.setattr(cache_module, "_CHECKED", 1)
    requests = fill(cache, at)
    for i in range(100):
        requests.put({f"k{i}": "x" * 10_000}, "Classifier")
        at[0] += 1
    assert cache_admin.used_bytes(requests._db) <= 320_000
    assert not keys(requests)
    left = requests.get([f"k{i}" for i in range(100)])
    assert sorted(left, key=lambda key: int(key[1:])) == [f"k{i}" for i in range(100 - len(left), 100)]
    assert 15 < len(left) < 30
    assert (cache / "requests.sqlite").stat().st_size < 700_000


def test_steps_of_killed_runs_go_before_the_answers_that_are_newer(
    cache: Path, at: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFCF_CACHE_LIMIT", "1MB")
    monkeypatch.setattr(cache_module, "_CHECKED", 1)
    requests = RequestCache(cache / "requests.sqlite")
    requests.put_steps({f"s{i}": "x" * 20_000 for i in range(100)}, "Intervention")
    at[0] += 1
    requests.put({f"a{i}": i for i in range(50)}, "Intervention")
    assert cache_admin.used_bytes(requests._db) <= 1_000_000
    assert len(requests) == 50
    assert 0 < len(requests.get_steps(f"s{i}" for i in range(100))) < 50


def test_steps_of_an_engine_are_shown_and_removed_and_the_file_shrinks(cache: Path) -> None:
    requests = RequestCache(cache / "requests.sqlite")
    requests.put_steps({f"s{i}": "x" * 20_000 for i in range(100)}, "Intervention")
    requests.put({"a": 1}, "Ner")
    assert {"name": "steps of unfinished answers", "entries": 100, "bytes": 2_000_200} in cache_admin.describe_cache()
    assert cache_admin.prune(engine="Intervention") == {"answers": 0}
    requests.close()
    assert (cache / "requests.sqlite").stat().st_size < 100_000
    assert RequestCache(cache / "requests.sqlite").get(["a"]) == {"a": 1}


@pytest.mark.parametrize("text", ["20", "GB", "twenty GB", "-1GB", "1e3MB"])
def test_a_limit_that_is_no_size_is_refused(text: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_CACHE_LIMIT", text)
    with pytest.raises(ValueError, match=r"HFCF_CACHE_LIMIT: .*20GB"):
        RequestCache(cache / "requests.sqlite")


def test_old_fitted_files_are_removed_and_damaged_ones_found(cache: Path) -> None:
    old, new = save_artifact({"a": 1}), save_artifact({"b": 2})
    (cache / "indexes" / "bm25-1").mkdir(parents=True)
    (cache / "indexes" / "bm25-1" / "part").write_text("x")
    for path in (artifact_path(old), cache / "indexes" / "bm25-1"):
        os.utime(path, (0, 0))
    assert cache_admin.verify() == []
    assert cache_admin.prune(older_than=1) == {"answers": 0, "fitted": 1, "indexes": 1}
    assert read_artifact(new, "") == {"b": 2}
    artifact_path(new).write_text("{}")
    assert [str(artifact_path(new)) in fault for fault in cache_admin.verify()] == [True]


def test_the_command_says_sizes_prunes_and_verifies(cache: Path, at: list[float]) -> None:
    requests, cli = fill(cache, at), CliRunner()
    shown = cli.invoke(app, ["cache", "size"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("answers: Classifier", "answers: Ner", "requests.sqlite"))
    assert "2 answers" in cli.invoke(app, ["cache", "prune", "--older-than", "2.5"]).output
    assert cli.invoke(app, ["cache", "verify"]).exit_code == 0
    requests._db.execute("UPDATE answers SET answer = '{' WHERE key = 'c2'")
    damaged = cli.invoke(app, ["cache", "verify"])
    assert (damaged.exit_code, "c2 is not JSON" in damaged.output) == (1, True)
    requests.close()
    (cache / "requests.sqlite").write_bytes(b"not a database, and longer than a header" * 50)
    assert cli.invoke(app, ["cache", "verify"]).exit_code == 1
