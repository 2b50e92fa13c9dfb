"""The folder of a run, made by `publish` of rows that no model had to make: every text in it can be as bad as a test likes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, List, Value

from hfcf.core import edits, schema
from hfcf.core.candidates import accept, reject
from hfcf.core.task import get_task, task_of
from hfcf.pipeline.publish import publish
from hfcf.report import report
from hfcf.systems._shared.judge import counterfactuals
from hfcf.tasks.verification import candidate

HEBREW = "העיר רומא עתיקה מאוד"
TABLE = "# {its}\n\n| a | {image} |\n|---|---|\n| {script} | [x](javascript:alert(1)) |\n\n{script}\n"
EVIL = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<!-- <script> ]]> &lt;b&gt; &amp;",
    '"\'`> onmouseover="window.pwned = 1" {{ 7 * 7 }} \u2028 \u2029 𝕏',
    HEBREW,
    "javascript:window.pwned=1",
)


def verification(texts: Sequence[str] = ("Rome is old.", "Oslo is cold.")) -> Dataset:
    """A source for each text: an accepted claim, an accepted edit of the evidence, and a rejected claim; each third is rejected."""
    rows = []
    for i, text in enumerate(texts):
        row: dict[str, Any] = {
            "id": f"{i}", "claim": f"{text} It was founded in 1994.", "label": "SUPPORTS", "group_id": f"{i}", "corpus": "made up",
            "split": "train",
            "evidence": [{"title": text[:12], "text": f"Founded in 1994: {text}"}, {"title": "", "text": "Nothing else."}],
        }  # fmt: skip
        start = row["evidence"][0]["text"].index("1994")
        score = [{"name": "verifier: REFUTES", "value": i / len(texts)}]
        edit = {"field": "evidence", "piece": 0, "start": start, "end": start + 4, "before": "1994", "after": "2006"}
        claim = f"{text} It was founded in 2006."
        tried = [
            candidate(claim, "REFUTES", "claim", edits.rewrite("claim", row["claim"], claim), score),
            candidate(row["claim"], "REFUTES", "evidence", [edit], score),
            candidate(f"{claim} needle{i}", "REFUTES", "claim", edits.rewrite("claim", row["claim"], f"{claim} needle{i}")),
        ]
        taken = i % 3 != 2
        verdicts = [accept(one, "check") if taken else reject(one, "check", "the verifier says SUPPORTS") for one in tried[:2]]
        row["candidates"] = [*verdicts, reject(tried[2], "check", f"is cut off at {i} tokens <b>")]
        row["counterfactuals"] = counterfactuals(row, row["candidates"], "made")
        row["status"] = {"accepted": taken, "stage": "check", "reason": None if taken else f"no candidate is left of 3: {text}"}
        rows.append(row)
    return Dataset.from_list(rows, features=_features("verification"))


def attacked(out: Path) -> Path:
    """A run whose every text is an attack, those of a comparison and of ratings included."""
    its = "".join(EVIL)
    published(verification(EVIL), out, name=its, corpus=its, citation=its, settings={its: its}, models={its: its})
    for name in ("table.md", "ratings.md"):
        (out / name).write_text(TABLE.format(its=its, image=EVIL[1], script=EVIL[0]))
    report(out)
    return out


def relation(label: str = "Entity-Origin(e1,e2)") -> Dataset:
    """A sentence with an accepted change of what stands between its entities."""
    row: dict[str, Any] = {
        "id": "1", "tokens": ["The", "eggs", "were", "moved", "into", "buckets", "."], "head": {"start": 1, "end": 2, "type": ""},
        "tail": {"start": 5, "end": 6, "type": ""}, "label": "Entity-Destination(e1,e2)", "group_id": "1", "corpus": "made up",
        "split": "train",
    }  # fmt: skip
    edit = {"field": "tokens", "piece": -1, "start": 3, "end": 5, "before": "moved into", "after": "taken out of"}
    one = accept(candidate("", label, "relation", [edit], [{"name": "editor", "value": -1.5}]), "check")
    one["text"] = one.pop("claim")
    row |= {
        "candidates": [one],
        "counterfactuals": counterfactuals(row, [one], "made"),
        "status": {"accepted": True, "stage": "check"},
    }
    return Dataset.from_list([row], features=_features("relation"))


def _features(task: str) -> Features:
    lists = {"candidates": List(get_task(task).candidate_features), "counterfactuals": List(dict(get_task(task).counterfactual))}
    return Features({**get_task(task).features, **lists, "status": schema.STATUS})


def published(ds: Dataset, out: Path, **run: Any) -> dict[str, Any]:
    """The folder that a run on such rows leaves."""
    out.mkdir(parents=True, exist_ok=True)
    told = {
        "name": "made", "system": "made", "task": task_of(ds.features).name, "citation": "", "corpus": "made up",
        "split": "train", "role": "train", "preset": "offline", "seed": 13, "limit": None,
        "settings": {"model": {"name": "t5"}, "beams": [1, 2]},
        "models": {"model": "t5"}, "checked_by": None,
        "stages": [{"stage": "check", "seconds": 1.5, "model_seconds": 1.0, "calls": 3, "cached": 0, "tokens": 12}],
    }  # fmt: skip
    corpus = {
        "title": "Made up",
        "licence": "mit",
        "hub_id": None,
        "paper": None,
        "citation": None,
        "labels": sorted({*ds["label"]} - {None}) if "label" in ds.features else [],
    }
    return publish(
        ds, out, run={**told, **run}, recipe={"name": "made", "notes": "".join(EVIL)}, corpus=corpus, command="hfcf run made",
        stages=["check"],
    )  # fmt: skip


def measured(out: Path, columns: dict[str, Sequence[Any]], summaries: dict[str, Any]) -> None:
    """What metrics add to a run's folder: columns of the default configuration, and summaries in `run.json`."""
    path = next((out / "data" / "default").glob("*.parquet"))
    ds = Dataset.from_parquet(str(path), keep_in_memory=True)
    for name, values in columns.items():
        feature = {"share": Value("float64"), "distance": Value("int64")} if isinstance(values[0], dict) else Value("float64")
        ds = ds.add_column(name, list(values), feature=feature)
    ds.to_parquet(str(path))
    run = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**run, "metrics": summaries}))
