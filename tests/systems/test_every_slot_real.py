"""RACE, CrossAug and CCG with a real model behind a server on this machine in every place: the offline SmolLM2.

A model of 135 M weights answers poorly: what counts is that the protocol holds, that nothing is lost, and that a run that was
interrupted repeats no request.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_server import starter
from datasets import Dataset
from local_llm import LocalLlm
from offline_models import installed

import hfcf
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.core.system import System
from hfcf.engines.base import usage
from hfcf.engines.cache import open_cache
from hfcf.engines.remote.client import Client
from hfcf.engines.remote.endpoint import RemoteError
from hfcf.tasks.verification import TASK

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
ROWS = 2


def stored(cache: Path) -> dict[str, Any]:
    open_cache()  # makes the file
    with sqlite3.connect(cache / "requests.sqlite") as file:
        answers = dict(file.execute("SELECT key, answer FROM requests"))
    file.close()
    raw = {key: json.loads(answer) for key, answer in answers.items()}
    return {key: answer for key, answer in raw.items() if isinstance(answer, dict) and "finish" in answer}


def test_every_slot_on_a_real_server(
    demo: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    if not all(map(installed, ("smollm2", "spacy", "wordnet"))):
        pytest.skip("the offline models are not installed")
    sentences = hfcf.load("relations", data_dir=recipe.folder() / "demo_relations", split="train", on_error="reject")
    with starter(monkeypatch, TIMEOUT="300", CONCURRENCY="2") as start:
        start(LocalLlm(longest=48))
        chat = Model("llm:smollm2")
        few = {"num_candidates": 1, "max_new_tokens": 32}
        systems: list[tuple[System, Dataset]] = [
            (
                hfcf.RACE.preset("llm", verifier=chat, generator=chat, encoder=tiny_model("classifier"), **few),
                demo.select(range(ROWS)),
            ),
            (hfcf.CrossAug.preset("llm", generator=chat, verifier=chat, **few), demo.select(range(ROWS))),
            (hfcf.CCG.preset("llm", indicator=chat, editor=chat, verifier=chat, **few), sentences.select(range(ROWS))),
        ]
        for system, rows in systems:
            before, ask, sent = len(stored(cache)), Client.ask, itertools.count()
            usage().clear()

            def once(self: Client, question: Any, ask: Any = ask, sent: Any = sent) -> Any:
                if next(sent):
                    raise RemoteError("interrupted")
                return ask(self, question)

            monkeypatch.setattr(Client, "ask", once)
            with pytest.raises(RemoteError, match="interrupted"):
                system(rows, load_from_cache_file=False)
            monkeypatch.setattr(Client, "ask", ask)
            done = system(rows, load_from_cache_file=False)
            record = usage()["Remote"]
            assert done["id"] == rows["id"]
            assert all(status["accepted"] is not None for status in done["status"])
            assert record.attempts == len(stored(cache)) - before > 1  # every answer is stored, and none was sent for twice
            assert record.written > 0
            again = system(rows, load_from_cache_file=False)
            assert list(again) == list(done)
            assert record.attempts == len(stored(cache)) - before
            reasons = [status["reason"] for status in done["status"]]
            print(f"\n{system.name}: {record.attempts} attempts, {record.tokens} tokens, {record.seconds:.0f} s; {reasons}")
        few_rows = list(demo.select(range(4)))
        verdicts = TASK.verdicts(few_rows, chat, 0)
        assert len(verdicts) == len(few_rows)
        assert any(answer.get("logprobs") for answer in stored(cache).values())
        shares = [verdict for verdict in verdicts if isinstance(verdict, dict)]
        assert all(sum(shares_of_row.values()) == pytest.approx(1, abs=1e-4) for shares_of_row in shares)
        assert all("no valid answer" in verdict for verdict in verdicts if isinstance(verdict, str))
        print("verdicts:", verdicts)
