"""How many verdicts of a verifier are right, and how many are left, at each certainty, alone and with a second judge?

A pair is accepted when the verifier says SUPPORTS or REFUTES with at least that probability and, in the second half of the table,
the judge says the same with at least that probability: what `certainty` and `judges` of RACE and CrossAug do. "Right" is the share
of the accepted pairs whose gold label is the verdict, with half the width of its 95 % interval; "left" are the accepted pairs per
pair that the verifier alone accepts at 0.

Rows are those of the recipe train_verifier that none of the models was trained on (`hfcf.core.contamination`): of FEVER, VitaminC
and FEVEROUS, and of its evaluation sets. The verifier and the judge that ship have each half of the groups of the first three, so
for both there are the evaluation sets alone; `--judge ''` scores the verifier on the other half, too. Corpora without NOT ENOUGH
INFO rows get some, as in training. `--data-dir` or `HFCF_DATA` names the folder with the corpora. A model that does not say what it
has seen is refused. Without a folder, or with `--quick`, they are a few claims about numbers, which show that the script works and
say nothing of the models.

Shares depend on the labels of the rows: here about a third has each label. Candidates of a system are another mix.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from common import show
from datasets import Dataset, concatenate_datasets

from hfcf.core import recipe
from hfcf.core.contamination import load_seen, seen_rows
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.tasks.ensemble import Verdict, vote
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK
from hfcf.training.data import drop_related

CERTAINTIES = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
MAX_LENGTH = 160
SIZE = 3000
"""Rows that are scored at most, each n-th."""


def numbers() -> Dataset:
    """Make rows about numbers: supported, refuted, and about what the evidence does not say."""
    made = []
    for i in range(60):
        label = (SUPPORTS, REFUTES, NOT_ENOUGH_INFO)[i % 3]
        claim = {SUPPORTS: f"House {i} has {i + 2} rooms.", REFUTES: f"House {i} has {i + 9} rooms."}.get(
            label, f"Ann likes house {i}."
        )
        evidence = [{"title": f"House {i}", "text": f"House {i} is a building with {i + 2} rooms."}]
        made.append(
            {
                "id": str(i), "claim": claim, "evidence": evidence, "label": label, "group_id": str(i), "corpus": "numbers",
                "split": "train",
            }
        )  # fmt: skip
    return Dataset.from_list(made, features=get_task("verification").features)


def held_out(folder: str, models: Sequence[Model]) -> Dataset:
    """Load the rows of the recipe and of its evaluation sets that no model was trained on; no claim or evidence stands twice."""
    from hfcf.pipeline import training_recipes as recipes
    from hfcf.pipeline.train import select_rows
    from hfcf.pipeline.trainings import load_evaluation_sets, with_nei

    for model in models:
        if load_seen(model) is None:
            raise SystemExit(f"{model.name} + {model.adapter}: nothing says what it was trained on, so no row is held out from it")
    content = recipe.read_recipe(recipe.find_recipe("train_verifier"), ["preset=offline", f"data_dir={folder}"])
    parsed = recipes.parse_train({key: value for key, value in content.items() if key != "half"})
    assert isinstance(parsed, recipes.VerifierRecipe)
    rows, _ = select_rows(parsed)
    for part in load_evaluation_sets(parsed.evaluate, folder, rows).values():
        rows = concatenate_datasets([rows, drop_related(part, rows).cast(rows.features)])
    seen = [seen_rows(rows, model) or [] for model in models]
    rows = rows.select([i for i, flags in enumerate(zip(*seen, strict=True)) if not any(flags)])
    if not len(rows):
        raise SystemExit("the models have seen every row: give another --verifier or --judge")
    of_label = zip(rows["corpus"], rows["label"], strict=True)
    complete = {corpus for corpus, label in of_label if label == NOT_ENOUGH_INFO}
    return with_nei(rows, sorted(set(rows["corpus"]) - complete), parsed.hyperparameters().seed)


def accepted(rulings: Sequence[Verdict], judges: int, certainty: float) -> list[str | None]:
    """Return the verdict on each row where these many judges agree on it with this certainty, else None."""
    verdicts: list[str | None] = []
    for ruling in rulings:
        of_judges = [(score["name"].partition(": ")[2], score["value"]) for score in ruling.scores[:judges]]
        agree = len(of_judges) == judges and {label for label, _ in of_judges} <= {ruling.label}
        sure = agree and ruling.label != NOT_ENOUGH_INFO and min(value for _, value in of_judges) >= certainty
        verdicts.append(ruling.label if sure else None)
    return verdicts


def precision(gold: Sequence[str], verdicts: Sequence[str | None], label: str | None = None) -> dict[str, Any]:
    """Count the accepted pairs, of a label or all, and the share that is right, with half of its 95 % interval (Wilson's)."""
    right = [
        true == verdict for true, verdict in zip(gold, verdicts, strict=True) if verdict is not None and label in (None, verdict)
    ]
    if not right:
        return {"accepted": 0, "right": None, "half_interval": None}
    share, n, z = sum(right) / len(right), len(right), 1.96
    half = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + (z / n) ** 2 / 4)
    return {"accepted": n, "right": share, "half_interval": half}


def main() -> None:
    """Ask the models and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--data-dir", default=os.environ.get("HFCF_DATA"), help="the folder with the corpora")
    parser.add_argument("--model", default="offline:minilm", help="the base of both, or full weights if there is no adapter")
    parser.add_argument("--verifier", default="hfcf:verifier", help="its adapter; '' for none")
    parser.add_argument("--judge", default="hfcf:verifier_2", help="that of the judge; '' for no judge")
    options = parser.parse_args()
    judges = [Model(options.model, adapter=options.verifier or None)]
    if options.judge and options.judge != options.verifier:
        judges.append(Model(options.model, adapter=options.judge))
    if options.judge.startswith("hfcf:") and not Path(judges[-1].adapter_source() or "").is_dir():
        print(f"{options.judge} is not there: the verifier alone is measured")
        judges = judges[:1]
    real = options.data_dir and not options.quick
    rows = held_out(options.data_dir, judges) if real else numbers()
    rows = rows.select(range(0, len(rows), -(-len(rows) // SIZE) or 1))
    # Every label is accepted here, so that the judge is asked about all rows; certainty is applied to the scores.
    every = [(SUPPORTS, REFUTES)] * len(rows)
    rulings, gold = vote(TASK, list(rows), every, judges, MAX_LENGTH), list(rows["label"])
    table, figures = [], []
    first = precision(gold, accepted(rulings, 1, 0.0))["accepted"]
    for number in range(1, len(judges) + 1):
        for certainty in CERTAINTIES:
            verdicts = accepted(rulings, number, certainty)
            all_, supports, refutes = (precision(gold, verdicts, label) for label in (None, SUPPORTS, REFUTES))
            left = all_["accepted"] / first if first else 0.0
            figures.append(
                {"judges": number, "certainty": certainty, "left": left, "all": all_, SUPPORTS: supports, REFUTES: refutes}
            )
            who = "verifier" if number == 1 else "and judge"
            cells = [_share(counts) for counts in (all_, supports, refutes)]
            table.append([who, certainty, all_["accepted"], f"{100 * left:.0f}", *cells])
    corpora = {name: list(rows["corpus"]).count(name) for name in sorted(set(rows["corpus"]))}
    labels = {name: gold.count(name) for name in (SUPPORTS, REFUTES, NOT_ENOUGH_INFO)}
    counts = ", ".join(f"{n} {name}" for name, n in {**corpora, **labels}.items())
    title = f"{len(rows)} rows that {'none of the models was trained on' if real else 'are made'}: {counts}"
    columns = ["asked", "certainty", "accepted", "left %", "right %", "SUPPORTS right %", "REFUTES right %"]
    show(title, columns, table, options.json, {"rows": len(rows), "corpora": corpora, "labels": labels, "curve": figures})


def _share(counts: dict[str, Any]) -> str:
    if counts["right"] is None:
        return "–"
    return f"{100 * counts['right']:.1f} ± {100 * counts['half_interval']:.1f} ({counts['accepted']})"


if __name__ == "__main__":
    main()
