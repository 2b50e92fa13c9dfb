"""End a command on Ctrl-C or SIGTERM: within two seconds, with one line; the same command continues from there.

Only the engine batch that was under way is lost. The answers of all earlier batches are in the request cache, and files get their
names when they are complete.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import sys
from threading import Thread
from typing import Any, Self

from hfcf.cli.launch import is_launched
from hfcf.core.workers import process_number

MESSAGE = "stopped; the same command continues from here"
SECONDS = 1.5
"""The longest time to clean up: close bars and files, end workers, store the answers that just came from a remote model."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """The signal that ends this process, if one came.

    Both signals raise `KeyboardInterrupt`, which libraries expect: `datasets` removes its unfinished files. A thread that Python's
    C-level handler wakes ends the process at a second signal. It also ends it when the main thread does not, because it waits in a
    library.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._printed = False
        self._awake, self._alarm = socket.socketpair()

    def __enter__(self) -> Self:
        """Handle the signals from now on; signals that a parent made it ignore (`nohup`, `&` in a script) stay ignored."""
        self._alarm.setblocking(False)
        signal.set_wakeup_fd(self._alarm.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._raise)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_leave_to_parent)
        sys.unraisablehook = self._report_unraisable
        # Python calls it after the exit functions of libraries that were imported later.
        atexit.register(self._leave)
        Thread(target=self._end_in_time, name="hfcf-stop", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """After a signal, print the line and leave with the shell's code, 130 or 143, whatever the interrupted code raised."""
        sys.unraisablehook = sys.__unraisablehook__
        if self.number is not None:
            self._print()
            raise SystemExit(128 + self.number) from None

    def _leave(self) -> None:
        """End the process after a signal: Python would take seconds to free the model libraries."""
        if self.number is not None:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(128 + self.number)

    def _raise(self, number: int, _: Any) -> None:
        if self.number is None:  # a second signal would interrupt the cleaning up
            self.number = number
            raise KeyboardInterrupt

    def _report_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Print what Python can't raise, except the signal: within a `__del__` Python drops it, and the thread ends the process."""
        if self.number is None or unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)

    def _end_in_time(self) -> None:
        while (number := self._awake.recv(1)[0]) not in SIGNALS:
            continue
        select.select([self._awake], [], [], SECONDS)
        self._print()
        os._exit(128 + number)

    def _print(self) -> None:
        if not self._printed:
            self._printed = True
            if is_launched() or process_number():  # another process prints it
                return
            os.write(2, f"{MESSAGE}\n".encode())


def _leave_to_parent() -> None:
    """Leave a worker's end to the process that forked it: Ctrl-C reaches both."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
