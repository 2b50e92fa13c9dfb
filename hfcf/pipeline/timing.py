"""The cost of each stage of a run: its seconds, and the calls of its engines, also of the runs that were stopped before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hfcf.core.stage import Stage
from hfcf.core.system import FitStep
from hfcf.engines.base import usage, watch_usage

Entry = dict[str, Any]
COUNTS = ("calls", "cached", "tokens")
RARE = ("attempts", "written", "cost", "cut", "loading")
"""What is counted of remote models only, texts that were cut, and seconds in which weights were loaded."""
EVERY = 2.0
"""Seconds between two lines of a stage that runs: a killed process loses the costs of these seconds."""


class Ledger:
    """The costs of a run and of the stopped runs before it, in the work folder of its result.

    A line has the costs of a stage so far; a later line of the same stage replaces it.

    Args:
        folder: the work folder.
        key: the recipe; costs of another recipe in the same folder do not count.
        process: the number of this process, which has a file of its own.
    """

    def __init__(self, folder: Path, key: str, process: int = 0) -> None:
        self.folder, self.key = folder, key
        self._file = folder / f"costs-{key}-{process}.jsonl"
        self._run = 1 + max((line["run"] for line in _lines([self._file])), default=0)

    def add(self, number: int, entry: Entry) -> None:
        """Write down the costs of the stage of this number, so far: the process may be killed at any time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            # After a line end: a kill may have cut the line before off.
            file.write("\n" + json.dumps({"run": self._run, "number": number, **entry}))

    def before(self, finished: Path | None) -> tuple[int, list[Entry]]:
        """Return how many runs of this recipe there were, and the costs of their stages.

        Args:
            finished: the `run.json` of an earlier run of the same recipe; None: another recipe made what the folder holds.
        """
        files, runs, entries = sorted(self.folder.glob(f"costs-{self.key}-*.jsonl")), 0, list[Entry]()
        if finished and finished.is_file():
            told = json.loads(finished.read_text(encoding="utf-8"))
            runs, entries = told.get("runs", 1), told.get("stages", [])
            written = finished.stat().st_mtime_ns
            for file in [file for file in files if file.stat().st_mtime_ns <= written]:
                file.unlink()  # its lines are in the result: the process was killed before it removed its work folder
                files.remove(file)
        lines = _lines(files)
        self._run = 1 + max((line["run"] for line in lines), default=0)
        return runs + self._run - 1, entries + [{key: line[key] for key in line if key not in ("run", "number")} for line in lines]


def _lines(files: Sequence[Path]) -> list[Entry]:
    """Read the last line of each stage."""
    lines: dict[Any, Entry] = {}
    for file in files:
        for text in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
            with suppress(json.JSONDecodeError):  # of an empty line, or one that a kill has cut off
                line = json.loads(text)
                lines[file, line["run"], line["number"]] = line
    return list(lines.values())


class Clock:
    """Measures the seconds, calls and tokens of every stage, and of the training before and between them.

    Args:
        ledger: where to write each stage's costs down, while it runs and when it ends or breaks off.
        workers: engines work in other processes, by `num_proc`, which keep their own counts: this process's counts mean nothing.
        stream: the stages of a stream run later, all together, while its rows are written: their times mean nothing.
    """

    def __init__(self, ledger: Ledger | None = None, *, workers: bool = False, stream: bool = False) -> None:
        self.stages: list[Entry] = []
        self.ledger, self.workers, self.stream = ledger, workers, stream

    def __call__(self, stage: Stage | FitStep, run: Callable[[], Any]) -> Any:
        before, start, number = _counts(), time.perf_counter(), len(self.stages)
        self.stages.append({})
        told = start

        def note(last: bool = False) -> None:
            nonlocal told
            now = time.perf_counter()
            if last or now - told >= EVERY:
                told = now
                entry = self.stages[number] = self._entry(stage.name, now - start, _since(before))
                if self.ledger:
                    self.ledger.add(number, entry)

        try:
            with nullcontext() if self.workers else watch_usage(note):
                return run()
        finally:  # what a stage that breaks off has paid for is paid
            note(last=True)

    def _entry(self, name: str, seconds: float, engines: Mapping[str, Entry]) -> Entry:
        entry: Entry = {"stage": name, "seconds": round(seconds, 2), "model_seconds": 0.0, **dict.fromkeys(COUNTS, 0)}
        for counts in engines.values():
            entry |= {key: round(entry.get(key, 0) + value, 6) for key, value in counts.items()}
        unknown: tuple[str, ...] = ("model_seconds", *COUNTS) if self.workers else ()
        if self.stream and not name.startswith("fit "):
            unknown = ("seconds", "model_seconds", *COUNTS)
        return {**entry, **dict.fromkeys(unknown)} if unknown else {**entry, "engines": dict(engines)}


def add_costs(entries: Sequence[Entry]) -> list[Entry]:
    """Add up the costs of each stage over pieces, processes and runs; a number that is unknown in one of them is unknown."""
    stages: dict[str, Entry] = {}
    for entry in entries:
        total = _add(stages.setdefault(entry["stage"], {}), entry)
        if total.get("calls", 0) is None:
            total.pop("engines", None)
    return list(stages.values())


def _add(total: Entry, entry: Mapping[str, Any]) -> Entry:
    for key, value in entry.items():
        if isinstance(value, Mapping):
            total[key] = _add(total.get(key, {}), value)
        elif isinstance(value, str) or key not in total:
            total[key] = value
        else:
            total[key] = None if None in (value, total[key]) else round(total[key] + value, 6)
    return total


def _counts() -> dict[str, Entry]:
    return {name: asdict(counts) for name, counts in usage().items()}


def _since(before: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return what each engine has done since then; of engines that did nothing, nothing."""
    engines: dict[str, Entry] = {}
    for name, now in _counts().items():
        spent = {key: value - before.get(name, {}).get(key, 0) for key, value in now.items()}
        if any(spent.values()):
            rare = {key: round(spent[key], 6) for key in RARE if spent[key]}
            engines[name] = {"model_seconds": round(spent["seconds"], 2), **{key: spent[key] for key in COUNTS}, **rare}
    return engines
