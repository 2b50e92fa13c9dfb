"""Rows with argument structures to review, and what people fill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hfcf.studies.human.export import RATERS
from hfcf.studies.human.protocol import Row

YES = {"fluency": 1, "faithfulness": 1, "validity": 1, "acceptability": 1}


def row(name: str, label: str = "SUPPORTS", **columns: Any) -> dict[str, Any]:
    """Two leaves give an intermediate, which gives the claim; one piece is a distractor."""
    texts = ("It rained in Cork.", "The roof of the hall leaks.", "The floor of the hall got wet.", "Cork has a hall.")
    infos = zip(("sent1", "sent2", "int1", "sent4"), (True, True, True, False), (True, True, False, False), strict=True)
    return {
        "id": name, "claim": f"Rain made the floor {name} wet.", "label": label, "cause": "rain", "effect": "a wet floor",
        "evidence": [{"title": "Cork" if i == 0 else "", "text": text} for i, text in enumerate(texts)],
        "evidence_info": [{"id": one, "useful": useful, "leaf": leaf} for one, useful, leaf in infos],
        "structure": [{"premises": ["sent1", "sent2"], "conclusion": "int1"}, {"premises": ["int1"], "conclusion": "claim"}],
        **columns,
    }  # fmt: skip


def undecidable(name: str) -> dict[str, Any]:
    """A NOT ENOUGH INFO row, without a structure."""
    plain = row(name, "NOT ENOUGH INFO", structure=[])
    return {**plain, "evidence_info": [{**info, "useful": False, "leaf": False} for info in plain["evidence_info"]]}


def fill(folder: Path, person: int, say: Callable[[dict[str, Any]], Row]) -> None:
    """What a person does with JSON lines: `say` has an entry and returns what it changes."""
    path = folder / RATERS / f"rater-{person}.jsonl"
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps({**entry, **say(entry)}, ensure_ascii=False) + "\n" for entry in entries]
    path.write_text("".join(lines), encoding="utf-8")


def kept(folder: Path, name: str = "reviewed.jsonl") -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    return {row["id"]: row for row in rows}
