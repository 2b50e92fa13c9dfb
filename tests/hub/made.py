"""Finished folders, made without a model: what `hfcf run` and `hfcf train` leave."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from datasets import Dataset, Features
from local_hub import USER, LocalHub

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.hub.model_card import model_card
from hfcf.hub.push import PLACEHOLDER, read_contents
from hfcf.pipeline.publish import publish
from hfcf.pipeline.run import _front_matter
from hfcf.systems.crossaug import CrossAug
from hfcf.training.trainer import Hyperparameters

FEATURES = Features(
    {
        **get_task("verification").features, "status": schema.STATUS,
        "counterfactuals": [dict(get_task("verification").counterfactual)],
    }
)  # fmt: skip
NAME = f"{USER}/fever-crossaug"
OK = {"accepted": True, "stage": "check", "reason": ""}


def rows(n: int = 60, split: str = "train") -> list[dict[str, Any]]:
    """Two rows to a group; of every third nothing is made, and the last can't be read."""
    made: list[dict[str, Any]] = []
    for i in range(n):
        claim, group = f"Town {i} has {i + 20} bridges.", f"g{i // 2}"
        row = {
            "id": str(i), "claim": claim, "evidence": [{"title": f"Town {i}", "text": f"It has {i + 20} bridges, says map {i}."}],
            "label": "SUPPORTS", "group_id": group, "corpus": "fever", "split": split,
        }  # fmt: skip
        if i % 3 == 2:
            made.append({**row, "counterfactuals": [], "status": {"accepted": False, "stage": "check", "reason": "too near"}})
            continue
        after = f"{i + 21}"
        start = claim.index(f"{i + 20} bridges")
        edits = [{"field": "claim", "piece": -1, "start": start, "end": start + 2, "before": f"{i + 20}", "after": after}]
        other = {
            **row, "id": f"{i}:crossaug:claim", "claim": claim[:start] + after + claim[start + 2 :], "label": "REFUTES",
            "source_id": row["id"], "system": "crossaug", "change": "claim", "edits": edits, "scores": [],
        }  # fmt: skip
        made.append({**row, "counterfactuals": [other], "status": OK})
    unread = {"accepted": False, "stage": "load", "reason": "the label 'MAYBE' is unknown"}
    return [*made[:-1], {**made[-1], "label": "MAYBE", "counterfactuals": [], "status": unread}]


def run_folder(out: Path, *, n: int = 60, corpus: str = "fever", split: str = "train", **changes: Any) -> Path:
    """A run of CrossAug over `n` made-up rows, which carries the front matter of a corpus."""
    run = {
        "name": "fever-crossaug", "system": "crossaug", "task": "verification", "citation": CrossAug.citation, "corpus": corpus,
        "split": split, "role": None, "preset": "paper", "seed": 13, "limit": None, "settings": {},
        "models": {"generator": "me/negative@0123abc"}, "checked_by": None, "stages": [], **changes,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    publish(
        Dataset.from_list(rows(n, split), features=FEATURES), out, run=run, recipe={"corpus": corpus, "system": "crossaug"},
        corpus=_front_matter(corpus), command="hfcf run crossaug_fever --out out", stages=["check"],
    )  # fmt: skip
    return out


SCORES: dict[str, Any] = {
    "held out: fever": {
        "2-way": {
            "verifier": {"rows": 97, "accuracy": 0.8665, "macro_f1": 0.8664, "majority": 0.5013},
            "claim only": {"rows": 97, "accuracy": 0.6801, "macro_f1": 0.6584, "majority": 0.5013},
        }
    },
    "HoVer dev": {"2-way": {"verifier": {"rows": 400, "accuracy": 0.61, "macro_f1": 0.6, "majority": 0.5}}},
    "HoVer dev, 2 hops": {"2-way": {"verifier": {"rows": 100, "accuracy": 0.7, "macro_f1": 0.69, "majority": 0.5}}},
}
HOVER = {"corpus": "hover", "data_dir": "hover", "split": "validation"}
TRAINING: dict[str, Any] = {
    "train": "verifier",
    "data": [{"corpus": "fever", "data_dir": "fever"}],
    "evaluate": [{**HOVER, "name": "HoVer dev"}, {**HOVER, "name": "HoVer dev, 2 hops"}],
}


def model_folder(out: Path, weights: str, base: str = "FacebookAI/roberta-base", **hyper: Any) -> Path:
    """A trained verifier as `hfcf train` stores it."""
    shutil.copytree(weights, out)
    report = {"rows": {"train": 900, "held_out": 97, "dropped as repeats": 3}, "scores": SCORES, "seconds": 12}
    hp = Hyperparameters(model=Model(base), **hyper)
    (out / "README.md").write_text(model_card(TRAINING, hp, report, "hfcf train mine.yaml --out out"), encoding="utf-8")
    (out / "scores.json").write_text(json.dumps(report))
    return out


@cache
def _template(n: int) -> Path:
    return run_folder(Path(tempfile.mkdtemp(prefix="hfcf-tests-")) / "run", n=n)


def copied(out: Path, n: int = 60) -> Path:
    """`run_folder`, made once for all tests that do not look at how it is made; in the place of what an older run left."""
    shutil.rmtree(out / "data", ignore_errors=True)
    return Path(shutil.copytree(_template(n), out, dirs_exist_ok=True))


def changed(folder: Path) -> Path:
    """The same folder after another run."""
    return copied(folder, 40)


def on_hub(hub: LocalHub, folder: Path, name: str = NAME, kind: str = "dataset", branch: str = "main") -> bool:
    """Whether the head has exactly what the folder has to send."""
    tree = hub.repository(name, kind).tree(branch)
    expected = {
        path: (folder / path).read_bytes().replace(PLACEHOLDER.encode(), name.encode()) for path in read_contents(folder).files
    }
    return {path: file.content for path, file in tree.items() if path != ".gitattributes"} == expected
