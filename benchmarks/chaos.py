"""Does a run that is killed at a random moment and started again give the rows of an unbroken one, without repeated model calls?

RACE, CrossAug and CCG with the offline models on a few rows of the demos, and CrossAug with a language model behind a small server
of this script. Each run is broken once, at a moment drawn from its whole length: by SIGKILL, SIGTERM or SIGINT to the process or
to its group, by a full disk (no file may grow any more), by memory that can't be had, or by the server's death. Then the same
command runs again to its end. Rows are equal when all their values are, floats within 1e-4: a repeated batch may hold other rows,
which moves the last digits.

A request counts as repeated when the broken and the second run together ask an engine the same more than once, and more often than
the unbroken one. What one kill may cost is the last batch of each engine. Processes are forked from this one, which has the
libraries loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from common import read_options, show

SMALL = {
    "race": {
        "recipe": "demo", "limit": 3,
        "settings": {"num_beams": 3, "num_candidates": 2, "max_new_tokens": 16},
    },
    "crossaug": {
        "corpus": "hover", "data_dir": "recipes:demo", "system": "crossaug", "preset": "offline", "limit": 8,
        "settings": {"num_beams": 2, "num_candidates": 2, "max_new_tokens": 16},
    },
    "ccg": {
        "recipe": "demo_relations", "limit": 6,
        "settings": {
            "folds": 1, "min_steps": 6, "top": 3, "num_beams": 4, "num_candidates": 4, "classifier": {"epochs": 1},
            "editor_training": {"epochs": 1},
        },
    },
    "crossaug llm": {"corpus": "hover", "data_dir": "recipes:demo", "system": "crossaug", "preset": "llm", "limit": 30},
}  # fmt: skip
"""What is run: a recipe that ships, or keys of one."""
FAULTS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGKILL group", "SIGTERM group", "SIGINT group", "disk full", "no memory")
SERVER = "server death"
TRAINING = "training steps"
CODES = {"SIGTERM": 143, "SIGINT": 130}
PLAN = [
    *(("race", fault) for fault in FAULTS), *(("crossaug", fault) for fault in FAULTS), *(("ccg", fault) for fault in FAULTS),
    *(("crossaug llm", fault) for fault in (SERVER, SERVER, SERVER, "SIGKILL", "SIGTERM", SERVER)),
]  # fmt: skip
"""Thirty runs."""
QUICK = [("crossaug", "SIGKILL"), ("crossaug", "disk full"), ("crossaug llm", SERVER)]
BUDGET = "128"
"""Tokens to a batch: small, so that there are many moments between batches."""


@dataclass
class Ended:
    """How a process ended.

    Args:
        code: as a shell has it.
        seconds: from its start.
        after: from the fault to its end.
        lines: what it printed.
    """

    code: int
    seconds: float
    after: float
    lines: list[str]


class Case:
    """One run in a folder of its own.

    Args:
        name: of `SMALL`.
        folder: for its result, its caches and its log of model calls.
        port: of the server.
    """

    def __init__(self, name: str, folder: Path, port: int) -> None:
        from hfcf.core.paths import cache_dir

        self.folder, self.out, self.log, self.port = folder, folder / "out", folder / "calls", port
        (folder / "cache").mkdir(parents=True)
        (folder / "cache" / "offline").symlink_to(cache_dir() / "offline")
        self.recipe = folder / "recipe.yaml"
        content = dict(SMALL[name])
        if shipped := content.pop("recipe", None):
            from hfcf.core import recipe

            content = {**recipe.read(recipe.find(str(shipped))), **content}
        self.recipe.write_text(yaml.safe_dump(content))

    def run(self, fault: str | None = None, delay: float = 0.0, server: Server | None = None) -> Ended:
        """Run the recipe in a process of its own group; break it after some seconds."""
        read, write = os.pipe()
        start = time.monotonic()
        pid = os.fork()
        if not pid:
            os.close(read)
            self._child(write, fault, delay)
        os.close(write)
        os.set_blocking(read, False)
        shown, broken = b"", None
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            with suppress(BlockingIOError):
                shown += os.read(read, 1_000_000)
            if done:
                break
            if fault and broken is None and time.monotonic() - start >= delay:
                broken = time.monotonic()
                if fault == SERVER:
                    assert server is not None
                    server.kill()
                elif fault.startswith("SIG"):
                    name, _, group = fault.partition(" ")
                    (os.killpg if group else os.kill)(pid, getattr(signal, name))
            time.sleep(0.01)
        end = time.monotonic()
        os.close(read)
        lines = shown.decode(errors="replace").splitlines()
        code = os.waitstatus_to_exitcode(status)
        return Ended(128 - code if code < 0 else code, end - start, end - (broken or end), lines)

    def _child(self, shown: int, fault: str | None, delay: float) -> None:
        """Run the command line in this new process, and end it."""
        os.setsid()
        for number in (1, 2):
            os.dup2(shown, number)
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL if name == signal.SIGTERM else signal.default_int_handler)
        os.environ.update(
            HFCF_CACHE=str(self.folder / "cache"), HFCF_TOKEN_BUDGET=BUDGET, HFCF_CHECKPOINT_SECONDS="0", HFCF_DEVICE="cpu",
            HFCF_LLM_URL=f"http://127.0.0.1:{self.port}/v1", HFCF_LLM_RETRIES="1", HFCF_LLM_CONCURRENCY="4",
        )  # fmt: skip
        import datasets

        datasets.config.HF_DATASETS_CACHE = self.folder / "datasets"
        count_calls(self._calls(fault is not None))
        if fault == "disk full":
            limit_later(delay, resource.RLIMIT_FSIZE, lambda: 1)
        elif fault == "no memory":
            limit_later(delay, resource.RLIMIT_AS, lambda: int(Path("/proc/self/statm").read_text().split()[0]) * 4096 + 2**20)
        from hfcf.cli import main

        sys.argv = ["hfcf", "run", str(self.recipe), "--out", str(self.out)]
        code = 1
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def calls(self) -> Counter[tuple[str, str]]:
        """Count by engine and digest what models were asked."""
        time.sleep(0.2)  # the process that writes the log may be late
        paths = (self.log, self._calls(True), self._calls(False))
        return Counter((engine, digest) for path in paths for engine, batch in read_batches(path) for digest in batch)

    def under_way(self) -> dict[str, int]:
        """The size of the last batch that the broken run asked of each engine."""
        return {engine: len(batch) for engine, batch in read_batches(self._calls(True))}

    def _calls(self, broken: bool) -> Path:
        return self.log.with_name(f"{self.log.name}-{'broken' if broken else 'whole'}")


def same_rows(first: Path, second: Path) -> bool:
    """Return whether two results have the same rows, floats within 1e-4."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from same_rows import assert_same_rows

    try:
        assert_same_rows(first, second)
    except AssertionError as difference:
        print(difference, file=sys.stderr)
        return False
    return True


def limit_later(delay: float, kind: int, size: Callable[[], int]) -> None:
    """Lower a limit of this process after some seconds."""

    def lower() -> None:
        time.sleep(delay)
        resource.setrlimit(kind, (size(), resource.getrlimit(kind)[1]))

    threading.Thread(target=lower, daemon=True).start()


def read_batches(log: Path) -> list[tuple[str, list[str]]]:
    """Read the batches of a log: the engine, and the digests of its requests."""
    lines = [line.split("\t") for line in log.read_text().splitlines()] if log.exists() else []
    return [(engine, batch.split()) for engine, batch in lines]


def by_engine(calls: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Add up the calls of each engine."""
    counts: Counter[str] = Counter()
    for (engine, _), number in calls.items():
        counts[engine] += number
    return counts


def digest(item: Any) -> str:
    """Return the digest of a request in a model's form."""
    item = getattr(item, "encoded", item)  # the interventions' has the sentence inside
    return hashlib.sha256(repr(getattr(item, "features", item)).encode()).hexdigest()[:12]


def count_calls(log: Path) -> None:
    """Write a line for each batch that a model is asked, and for each step of a training."""
    from transformers import Trainer

    from hfcf.engines.base import Engine

    # Opened once, and a pipe to another process: a full disk must not fill the log, too.
    read, write = os.pipe()
    if not os.fork():
        os.setsid()
        os.close(write)
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        with log.open("ab", buffering=0) as file:
            while data := os.read(read, 65536):
                file.write(data)
        os._exit(0)
    os.close(read)
    forward, step = Engine.forward_split, Trainer.training_step

    def counted(self: Engine, loaded: Any, batch: Any) -> Any:
        os.write(write, f"{type(self).__name__}\t{' '.join(map(digest, batch))}\n".encode())
        return forward(self, loaded, batch)

    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        os.write(write, f"{TRAINING}\tstep\n".encode())
        return step(self, *args, **kwargs)

    Engine.forward_split, Trainer.training_step = counted, stepped  # type: ignore[method-assign]


class Server:
    """A language model that answers by a hash of what it is asked, in a process of its own that can be killed.

    Args:
        port: 0 for any.
        log: where each request leaves a line.
    """

    def __init__(self, port: int, log: Path) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = server.server_address[1]
        self._pid = os.fork()
        if not self._pid:
            os.setsid()
            Handler.log = log
            server.serve_forever()
        server.server_close()

    def kill(self) -> None:
        """End it at once."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0


class Handler(BaseHTTPRequestHandler):
    """Answer a chat completion."""

    protocol_version = "HTTP/1.1"
    log: Path

    def do_POST(self) -> None:
        """Write "X met Y." for what the schema asks."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        digest = hashlib.sha256(json.dumps([asked["messages"], asked.get("seed")]).encode()).hexdigest()
        with self.log.open("a") as file:
            file.write(f"requests\t{digest}\n")
        fields = asked["response_format"]["json_schema"]["schema"]["properties"]
        time.sleep(0.05)
        answer = {name: self._value(kind, digest) for name, kind in fields.items()}
        choice = {"index": 0, "message": {"role": "assistant", "content": json.dumps(answer)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        data = json.dumps({"object": "chat.completion", "model": "chaos", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _value(self, kind: dict[str, Any], digest: str) -> Any:
        if kind.get("type") == "array":
            return [f"It was made in {int(digest[:3], 16)}."]
        return kind["enum"][0] if "enum" in kind else f"It was made in {int(digest[:3], 16)}."

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Break each run once, run it again, and print what became of it."""
    options = read_options(__doc__.splitlines()[0])
    import torch
    import transformers  # noqa: F401 - loaded before the processes are forked

    import hfcf.pipeline.run
    import hfcf.systems
    import hfcf.training.relation  # noqa: F401

    torch.set_num_threads(1)
    draw = random.Random(13)
    plan = QUICK if options.quick else draw.sample(PLAN, len(PLAN))  # mixed, so that a part of them is like the whole
    root = Path(tempfile.mkdtemp(prefix="hfcf-chaos-"))
    whole: dict[str, tuple[float, Path, Counter[tuple[str, str]]]] = {}
    table, figures = [], []
    for number, (name, fault) in enumerate(plan):
        if name not in whole:
            server = Server(0, root / name / "calls")
            case = Case(name, root / name, server.port)
            ended = case.run()
            server.kill()
            if ended.code or not list((case.out / "data").rglob("*.parquet")):
                raise SystemExit("\n".join([f"the unbroken run of {name} ended with {ended.code}:", *ended.lines[-20:]]))
            whole[name] = ended.seconds, case.out, case.calls()
            print(f"{name}: {ended.seconds:.1f} s, {dict(by_engine(case.calls()))}", file=sys.stderr, flush=True)
        seconds, rows, calls = whole[name]
        delay = draw.uniform(0.05, 0.9) * seconds
        while True:
            folder = Path(tempfile.mkdtemp(prefix=f"{number} {name} {fault} ".replace(" ", "-"), dir=root))
            server = Server(0, folder / "calls")
            case = Case(name, folder / "case", server.port)
            case.log = folder / "calls"
            broken = case.run(fault, delay, server)
            server.kill()
            if broken.seconds > delay:
                break
            delay = draw.uniform(0.05, 0.9) * broken.seconds  # it ended before the fault: the unbroken run was a slower one
        server = Server(server.port, folder / "calls")
        again = case.run()
        server.kill()
        extra = by_engine(
            {call: count - max(1, calls[call]) for call, count in case.calls().items() if count > max(1, calls[call])}
        )
        # A language model's batch are the requests that run at once. Trainings go on from their last checkpoint, which is no batch.
        batch = {"requests": 4} if name == "crossaug llm" else case.under_way()
        within = all(count <= batch.get(engine, 0) for engine, count in extra.items() if engine != TRAINING)
        equal = again.code == 0 and same_rows(case.out, rows)
        lines = len([line for line in broken.lines if "Traceback" in line])
        expected = CODES.get(fault.partition(" ")[0])
        figures.append(
            {
                "run": name, "fault": fault, "at": round(delay / seconds, 2), "code": broken.code, "equal": equal,
                "after": round(broken.after, 2), "tracebacks": lines, "repeated": extra, "batch": batch, "within a batch": within,
                "as told": expected in (None, broken.code) or broken.code == 0, "said": broken.lines[-1:],
                "left": [] if equal else again.lines[-5:], "printed": broken.lines if lines else [],
            }
        )  # fmt: skip
        told = ", ".join(f"{count} {engine} (batch: {batch.get(engine, '-')})" for engine, count in extra.items()) or "none"
        table.append([name, fault, f"{delay / seconds:.2f}", broken.code, f"{broken.after:.1f}", "yes" if equal else "NO", told])
        print(*table[-1], sep=" | ", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1) + "\n")
    same = sum(bool(figure["equal"]) for figure in figures)
    columns = ["run", "fault", "at", "code", "s to end", "rows equal", "asked again"]
    spared = sum(bool(figure["within a batch"]) for figure in figures)
    title = (
        f"{same} of {len(figures)} broken runs gave the rows of the unbroken one; {spared} asked again at most the batch under way"
    )
    show(title, columns, table, options.json, {"runs": figures})


if __name__ == "__main__":
    main()
