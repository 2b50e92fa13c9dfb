"""Questions for the tests: rows, a system that rewrites the question, and a reader that knows a share of the answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from datasets import Dataset, Features, List

from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.qa import TASK, rewrite_all


def question(name: str, *, about: str, answer: str = "Ada", **more: Any) -> dict[str, Any]:
    context = f"In {name} lived {answer}, who wrote of {about}."
    return {
        "id": name, "title": "", "context": context, "question": f"who wrote of {about} in {name}",
        "answers": {"text": [answer], "answer_start": [context.index(answer)]}, "group_id": name, "corpus": "asked",
        "split": "train", **more,
    }  # fmt: skip


def rows(*made: Mapping[str, Any], **extra: Any) -> Dataset:
    return Dataset.from_list([dict(row) for row in made], features=Features({**TASK.features, **extra}))


def originals(n: int, name: str = "town", corpus: str = "asked") -> Dataset:
    return rows(*(question(f"{name}{i}", about="engines", corpus=corpus) for i in range(n)))


def perturbed(n: int, name: str = "town", corpus: str = "asked") -> Dataset:
    """Of each original, in turn: one word is put in, or six; the answer is another one."""
    made = []
    for i in range(n):
        about = "engines" + (" and of the many towns" if i % 2 else "") + " again"
        more = {"original_id": f"{name}{i}", "change": ("reference", "predicate")[i % 2], "group_id": f"{name}{i}"}
        made.append({**question(f"{name}{i}", about=about, answer="Byron", corpus=corpus), "id": f"{name}{i}-cf", **more})
    return rows(*made, original_id=TEXT, change=TEXT)


@dataclass(frozen=True, kw_only=True)
class AskAgain(Stage):
    inputs: ClassVar = {**TASK.columns}
    outputs: ClassVar = {"candidates": List(TASK.candidate_features)}

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        new = {"question": row["question"] + " later", "context": row["context"] + " Later, Byron did."}
        answers = {"text": ["Byron"], "answer_start": [new["context"].index("Byron")]}
        texts = {"title": "", **new, "answers": answers}
        edits = rewrite_all(row, **texts)
        return {"candidates": [{**texts, "change": "question", "edits": edits, "scores": [], "status": None}]}


class Again(System):
    task = get_task("qa").name
    chain = (AskAgain, JudgeCandidates)


class Reader:
    """Knows the answers to half of the questions; of counterfactuals to more of them the more rows it was trained on."""

    changes: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[int | None] = None

    def train(self, rows: Dataset, hp: Any, out: Path, *, labels: Sequence[str], dev: Any = None) -> None:
        assert list(labels) == []
        out.mkdir(parents=True, exist_ok=True)
        (out / "rows").write_text(str(len(rows)), encoding="utf-8")

    def predict(self, rows: Dataset, model: Model, *, max_length: int, labels: Sequence[str]) -> list[str]:
        number = int((Path(model.name) / "rows").read_text(encoding="utf-8"))
        answers = []
        for row in rows:
            share = 16 if row["id"].endswith("-cf") and number > 20 else 8
            known = int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 20 < share
            answers.append(f"the {row['answers']['text'][0]}" if known else f"old {row['answers']['text'][0]}")
        return answers


TRAINER = Reader()
