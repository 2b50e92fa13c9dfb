"""`hfcf run --num-gpus n`: the same command in n processes, one for each GPU, which end together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from hfcf.cli import console
from hfcf.core.workers import launched_processes

CHILD = "HFCF_LAUNCHED"
"""A variable of the processes that this process starts. When they are ended, only this process prints the message."""
LOST = 3
"""The exit code of a process that ends because another process has failed, which prints the reason."""
PATIENCE = 1.0
"""Seconds that processes get to clean up before they are killed, and that a failed process gets to print its error."""


def is_launched() -> bool:
    """Return whether `launch` started this process."""
    return CHILD in os.environ


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run `python -m hfcf ARGUMENTS` in several processes; return when all have ended, or as soon as a process fails."""
    shared = {"WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port()}
    shared |= {CHILD: 1, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", 1)}
    command = [sys.executable, "-m", "hfcf", *arguments]
    children: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(processes):
            environ = {key: str(value) for key, value in {**shared, "RANK": number, "LOCAL_RANK": number}.items()}
            children.append(subprocess.Popen(command, env={**os.environ, **environ}))
        codes = _wait(children)
    finally:
        _end(children)
    failures = {number: code for number, code in enumerate(codes) if code}
    if not failures:
        return 0
    failed = min(failures, key=lambda number: failures[number] == LOST)
    code = failures[failed]
    if code < 0:
        name = signal.Signals(-code).name
        memory = " (the system's, if memory ran out)" if code == -signal.SIGKILL else ""
        line = f"hfcf: process {failed + 1} of {processes} was ended by {name}{memory}; the same command continues from there"
        console.err.print(line, style="bold red", markup=False, highlight=False, soft_wrap=True)
    return max(code, 1)


def must_launch(processes: int | None) -> bool:
    """Return whether this process must start the other processes; it must not if a launcher started it."""
    running = launched_processes()
    if processes is None or running == processes:
        return False
    if running > 1:
        raise ValueError(f"--num-gpus {processes}: the launcher has started {running} processes; leave the option out")
    return True


def _wait(children: Sequence[subprocess.Popen[bytes]]) -> list[int | None]:
    """Wait until all have ended or a process has failed; return their exit codes so far."""
    end = None
    while None in (codes := [child.poll() for child in children]):
        if any(code not in (None, 0, LOST) for code in codes):
            break
        if LOST in codes:
            end = end or time.monotonic() + PATIENCE
            if time.monotonic() > end:
                break
        time.sleep(0.05)
    return codes


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if child.poll() is None:
            child.terminate()
    end = time.monotonic() + PATIENCE
    for child in children:
        try:
            child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
