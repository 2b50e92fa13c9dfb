"""Show how far a training is: a bar on a terminal; in a log a line an epoch, and every five minutes within a long one."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hfcf.core.progress import Bar, is_shown, time_left

log = logging.getLogger(__name__)

MINUTES = 5
"""Between two lines of a log within an epoch."""


@contextmanager
def training_progress() -> Iterator[Any]:
    """Make the `TrainerCallback` that shows one training."""
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        loss, bar = "", None

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.first, self.start = state.global_step, time.monotonic()
            self.logged = self.start
            if is_shown():
                self.bar = bars.enter_context(Bar("training", state.max_steps, state.global_step))

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                self.loss = f", loss {float(logs['loss']):.3g}"

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.bar is not None:
                self.bar.move(state.global_step, self._text(state))
            elif time.monotonic() - self.logged > 60 * MINUTES:
                self._log(state)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.bar is None:
                self._log(state)

        def _text(self, state: Any) -> str:
            epoch = f"epoch {state.epoch or 0:.1f} of {state.num_train_epochs:g}"
            return f"{epoch}, step {state.global_step} of {state.max_steps}{self.loss}"

        def _log(self, state: Any) -> None:
            now, steps = time.monotonic(), state.global_step - self.first
            left = state.max_steps - state.global_step
            more = f", {time_left((now - self.start) / steps * left)}" if left and steps else ""
            log.info("training: %s%s", self._text(state), more)
            self.logged = now

    with ExitStack() as bars:
        yield Progress()
