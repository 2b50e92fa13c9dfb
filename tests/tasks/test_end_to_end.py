"""The end-to-end benchmark: which rows a person reads, what is counted of the verdicts, and how a peer is judged."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.candidates import reject
from hfcf.core.model import Model
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK, rewritten

FOLDER = Path(__file__).parents[2] / "benchmarks"


def row(claim: str, label: str = REFUTES, **more: Any) -> dict[str, Any]:
    return {"id": claim, "claim": claim, "evidence": [{"title": "Rome", "text": "Rome is old."}], "label": label, **more}


def test_a_verdict_belongs_to_text_and_label(benchmark: Callable[[str], ModuleType]) -> None:
    verdicts = benchmark("verdicts")
    item = row("Rome is new.")
    assert verdicts.pair_key(item) == verdicts.pair_key({**item, "id": "other", "system": "race"})
    assert verdicts.pair_key(item) != verdicts.pair_key({**item, "label": SUPPORTS})
    assert verdicts.pair_key(item) != verdicts.pair_key(row("Rome is old."))


def test_the_draw_depends_on_the_rows_alone(benchmark: Callable[[str], ModuleType]) -> None:
    verdicts = benchmark("verdicts")
    rows = [row(f"Rome has {n} hills.") for n in range(50)]
    drawn = verdicts.draw_pairs([*rows, *rows], 20)
    assert len({answer["claim"] for answer in drawn}) == 20
    assert drawn == verdicts.draw_pairs(reversed(rows), 20)
    assert len(verdicts.draw_pairs(rows[:3], 20)) == 3


def test_right_is_the_label_that_the_reader_gave(benchmark: Callable[[str], ModuleType]) -> None:
    verdicts = benchmark("verdicts")
    rows = [row(f"Rome has {n} hills.") for n in range(4)]
    said = zip(rows, [(REFUTES, True), (REFUTES, False), (NOT_ENOUGH_INFO, True)], strict=False)
    known = {verdicts.pair_key(name): {"label": label, "sound": sound} for name, (label, sound) in said}
    reading = verdicts.count_right(rows[:3], known)
    assert reading == verdicts.Reading(drawn=3, read=3, label_right=2, fully_right=1)
    assert reading.share(2) == pytest.approx(2 / 3)
    partly = verdicts.count_right(rows, known)
    assert (partly.drawn, partly.read, partly.share(2)) == (4, 3, None)
    assert verdicts.count_right([], known).share(0) is None


def test_the_verdicts_fit_their_rows(benchmark: Callable[[str], ModuleType]) -> None:
    verdicts, file = benchmark("verdicts"), FOLDER / "end_to_end_verdicts.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(verdicts.load_verdicts(file)) == len(lines)
    for row in lines:
        assert row["key"] == verdicts.pair_key(row["new"])
        assert isinstance(row["label"], str)
        assert isinstance(row["sound"], bool)


def test_rates_with_and_without_training(benchmark: Callable[[str], ModuleType]) -> None:
    verdicts, end_to_end = benchmark("verdicts"), benchmark("end_to_end")
    made = end_to_end.Outcome(accepted=[{}] * 30, proposed=None, cpu=180.0, training=120.0, wall=200.0)
    rates = end_to_end.rates(made, verdicts.Reading(drawn=20, read=20, label_right=10, fully_right=5))
    assert (rates["accepted_per_minute"], rates["with_training"]) == (30, 10)
    assert (rates["right_per_minute"], rates["fully_right_per_minute"]) == (15, 7.5)
    unread = end_to_end.rates(made, verdicts.Reading(drawn=20, read=19, label_right=10, fully_right=5))
    assert unread["right_per_minute"] is None


def test_a_peer_is_judged_by_the_verifier_and_the_judge(
    benchmark: Callable[[str], ModuleType], tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hfcf.systems import crossaug

    end_to_end, verifier = benchmark("end_to_end"), Model(tiny_model("verifier"))
    monkeypatch.setitem(crossaug.OFFLINE, "verifier", verifier)
    monkeypatch.setitem(crossaug.OFFLINE, "judges", (Model(verifier.name, dtype="float32"),))

    def propose(rows: list[dict[str, Any]]) -> list[list[Any]]:
        return [
            [rewritten(row["claim"], "Rome is new.", label, "peer") for label in (SUPPORTS, REFUTES, NOT_ENOUGH_INFO)]
            + [reject(rewritten(row["claim"], "Rome is big.", REFUTES, "peer"), "peer", "is far less fluent")]
            for row in rows
        ]

    common = {"group_id": "1", "corpus": "c", "split": "train"}
    ds = Dataset.from_list([row(f"Rome is {n}.", SUPPORTS, **common) for n in "ab"], features=TASK.features)
    made = end_to_end.run_peer("peer", propose, ds)
    assert made.proposed == 6
    assert [row["claim"] for row in made.accepted] == ["Rome is new."] * 2  # each row has one label of three
    assert made.training == 0.0 < made.cpu


def test_the_table_and_the_drawn_rows(
    benchmark: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    end_to_end, common = benchmark("end_to_end"), {"group_id": "1", "corpus": "c", "split": "train"}
    ds = Dataset.from_list([row(f"Rome is {n}.", SUPPORTS, **common) for n in "abc"], features=TASK.features)

    def work(some: Dataset) -> Any:
        new = [{**row("Rome is new."), "source_id": row_id} for row_id in some["id"]]
        return end_to_end.Outcome(accepted=new, proposed=4, cpu=60.0, training=0.0, wall=60.0)

    monkeypatch.setattr(end_to_end, "load_rows", lambda quick: ({"verification": ds}, "three rows"))
    monkeypatch.setattr(end_to_end, "methods", lambda quick: [end_to_end.Method("Peer", "verification", work, (3, 2))])
    figures, pairs = tmp_path / "figures.json", tmp_path / "pairs.jsonl"
    monkeypatch.setattr(sys, "argv", ["end_to_end.py", "--quick", "--json", str(figures), "--pairs", str(pairs)])
    end_to_end.main()
    peer = json.loads(figures.read_text(encoding="utf-8"))["Peer, verification"]
    assert (peer["rows"], peer["accepted"], peer["accepted_per_minute"], peer["label_right"]) == (2, 2, 2.0, None)
    line = json.loads(pairs.read_text(encoding="utf-8"))  # both rows say the same: it is drawn once
    assert (line["method"], line["new"]["claim"], line["source"]["label"]) == ("Peer", "Rome is new.", SUPPORTS)
    assert "three rows" in capsys.readouterr().out


def test_a_blank_gets_the_best_other_words(benchmark: Callable[[str], ModuleType]) -> None:
    rewriters, claim = benchmark("rewriters"), "Rome is old."
    assert rewriters.filled(claim, (8, 11), ["Old", "new", "big", "far", "red"]) == ["Rome is new.", "Rome is big.", "Rome is far."]
    drawn = rewriters.blanks(claim, Random(1))
    assert [claim[start:end] for start, end in drawn] == ["Rome", "is", "old"]
