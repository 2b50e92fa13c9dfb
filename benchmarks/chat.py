"""Rows a second of a chat model in this process: one by one, in batches of 16, and with the prompts' head read once.

The rows are the demo's claims, and each is a verdict of the offline SmolLM2 within its schema; the three ways are timed in one run
and have equal answers. The ratios hold for long heads and short answers, as verdicts have. On a machine that others use, read the
ratios alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from common import patched, read_options, show

import hfcf
from hfcf import prompts
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.engines.llm import in_process
from hfcf.engines.llm.answers import object_schema
from hfcf.engines.llm.engine import LanguageModel
from hfcf.prompts.verdicts import CLAIMS
from hfcf.tasks.verification import LABELS

SCHEMA = object_schema({"label": {"type": "string", "enum": [*LABELS]}})
BATCH = 16


def requests(number: int) -> list[Any]:
    rows = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train").select(range(number))
    names = {label: label for label in LABELS}
    return [prompts.messages("verdicts", shots=3, **CLAIMS.values(row, names)) for row in rows]


def timed(run: Callable[[Sequence[Any]], list[Any]], messages: Sequence[Any]) -> tuple[float, list[Any]]:
    start = time.perf_counter()
    answers = run(messages)
    return len(messages) / (time.perf_counter() - start), [answer["answer"] for answer in answers]


def main() -> None:
    options = read_options(__doc__ or "")
    os.environ["HFCF_REQUEST_CACHE"] = "off"
    engine = LanguageModel(model=Model("chat:offline:smollm2"), schema=SCHEMA, max_tokens=32)
    batch = BATCH // 2 if options.quick else BATCH
    messages = requests(batch if options.quick else 3 * batch)
    engine.run(messages[:1])  # loads the weights and the grammar

    def alone(part: Sequence[Any]) -> list[Any]:
        return [engine.run([request])[0] for request in part]

    def batched(part: Sequence[Any]) -> list[Any]:
        with patched((in_process, "common_head", lambda _: 0)):
            return engine.run(part)

    few = messages[: batch // 4 if options.quick else batch]
    with patched((LanguageModel, "room", lambda self, length: batch)):
        ways = {
            "one by one": timed(alone, few),
            f"batches of {batch}": timed(batched, messages),
            f"batches of {batch}, shared head": timed(engine.run, messages),
        }
    (first, expected), *_ = ways.values()
    assert all(answers[: len(few)] == expected for _, answers in ways.values()), "equal answers"
    figures = {name: {"rows a second": rate, "ratio": rate / first} for name, (rate, _) in ways.items()}
    rows = [(name, *values.values()) for name, values in figures.items()]
    show("SmolLM2, verdicts on claims, CPU", ("way", "rows a second", "to one by one"), rows, options.json, figures)


if __name__ == "__main__":
    main()
