"""The benchmarks' options, a clock for functions, and the table that each prints."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any


def read_options(description: str, **files: str) -> argparse.Namespace:
    """Read `--quick`, `--json FILE` and further options that name a file, with their help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    for name, help_text in files.items():
        parser.add_argument(f"--{name}", type=Path, help=help_text)
    return parser.parse_args()


class Clock:
    """Measure the seconds inside functions, counting nested calls once; `now` returns the time."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.seconds, self._now = 0.0, now
        self._depth = 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            start = self._now()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += self._now() - start

        return call


PEER = "HFCF_PEER_TRANSFORMERS"
CURE = "pip install --target FOLDER --no-deps transformers==4.56.2 tokenizers==0.22.1 huggingface_hub==0.36.0"


def peer_folder() -> str | None:
    """Return the folder of transformers 4.56.2, the last version with a constrained search, which `CURE` installs."""
    return os.environ.get(PEER)


def ask_peer(script: str, place: str, folder: str) -> Any:
    """Run a script with `--peer PLACE` under that version, and return the JSON on its last line."""
    command, env = [sys.executable, script, "--peer", place], {**os.environ, "PYTHONPATH": folder}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run(main: Callable[[], None], peer: Callable[[Path], None]) -> None:
    """Run a script's main function or, with `--peer PLACE`, its part for the other version."""
    if sys.argv[1:2] == ["--peer"]:
        peer(Path(sys.argv[2]))
    else:
        main()


@contextmanager
def patched(*places: tuple[Any, str, Callable[..., Any]]) -> Iterator[None]:
    """Replace attributes by functions within the context."""
    olds = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, new in places:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in olds:
            setattr(owner, name, old)


def stub_flair() -> None:
    """Stand in for flair, which TextAttack imports and which no part of it needs that the benchmarks run."""
    for name in ("flair", "flair.data", "flair.models", "flair.datasets", "flair.embeddings"):
        sys.modules[name] = module = types.ModuleType(name)
        module.__spec__, module.__path__ = ModuleSpec(name, None), []
        for each in ("Sentence", "SequenceTagger", "Tokenizer", "Token", "Corpus"):
            setattr(module, each, type(each, (), {}))
    flair: Any = sys.modules["flair"]
    flair.device, flair.data = "cpu", sys.modules["flair.data"]
    flair.data.use_tokenizer = None


def write_stop_words(folder: Path, words: Iterable[str]) -> None:
    """Write words where NLTK, in whose path the folder is, looks for its English stop words, which are a download."""
    file = folder / "corpora" / "stopwords" / "english"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(sorted(words)), encoding="utf-8")


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], to: Path | None, figures: dict[str, Any]) -> None:
    """Print the table, and write the figures to the file of `--json`."""
    cells = [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(columns), *cells]) for i in range(len(columns))]
    print(title)
    for row in [list(columns), *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    if to:
        to.write_text(
            json.dumps({**figures, "title": title, "made": made(), "table": [list(columns), *cells]}, indent=1, ensure_ascii=False)
            + "\n"
        )


FILES = ("--json", "--pairs", "--run")
"""Options that name a file or a folder, which a stored command leaves out."""


def made() -> dict[str, Any]:
    """Return when and where figures are made: the date, the command, the processor and the versions."""
    from importlib.metadata import version

    script, *options = sys.argv
    options = [option for option in options if option.startswith("--") and option not in FILES]
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").is_file() else []
    processor = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", f"benchmarks/{Path(script).name}", *options]),
        "processor": f"{processor}, {os.cpu_count()} cores",
        **{name: version(name) for name in ("hfcf", "torch", "transformers")},
    }
