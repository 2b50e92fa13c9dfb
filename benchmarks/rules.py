"""What does each check and rule of a system's preset bring?

Each setting that the preset switches on, and the paper does not have, is set to the paper's value alone; some go together. The
table says how many source rows then have a counterfactual, and how many counterfactuals come, go and change. A rule that changes
nothing on a hundred rows is worth no line of code; one that takes much away should be worth it by the rated pairs.

Rows are of FEVEROUS for RACE, of FEVER for CrossAug, of QED for RGF and of SemEval's training set for CCG, which learns from them:
`--rows` of each label that the system treats differently. `--data-dir` or `HFCF_DATA` names the folder with the corpora. With
`--quick`, or without a folder, they are six of the demo's rows and RACE, which show that the script works. With `--show` the first
counterfactuals that come and change are printed: read them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import show
from datasets import Dataset

import hfcf
from hfcf.core import recipe
from hfcf.core.system import System

RULES: dict[str, tuple[tuple[str, ...], ...]] = {
    "race": (
        ("plausible",), ("near",), ("claimed",), ("by_words",), ("flip",), ("follow",), ("corrector",), ("max_unsupported",),
        ("min_log_probability",), ("corrector", "max_unsupported", "min_log_probability"), ("max_copied",), ("min_kept",),
        ("fluency_model",), ("certainty",), ("judges", "certainty"),
    ),
    "crossaug": (
        ("exclude_same",), ("exclusive",), ("span_filling",), ("best",), ("replace_all",), ("negations",), ("min_kept",),
        ("fluency_model",), ("certainty",), ("judges", "certainty"),
    ),
    "rgf": (
        ("min_log_probability",), ("max_ambiguity",), ("min_probability",), ("min_vote",), ("no_answer_margin",), ("elsewhere",),
        ("keep_partial",), ("overlapping",), ("reader_votes",),
    ),
    "ccg": (("closed",), ("unflipped",), ("language_model", "max_loss"), ("phrases", "unflipped", "language_model", "tagger")),
}  # fmt: skip
"""Settings by system, those that are switched off together in one tuple."""
SHOWN = 6


def draw(rows: Dataset, number: int, labels: tuple[str, ...] = ()) -> Dataset:
    """Draw so many rows, of each of these labels."""
    found = []
    for label in labels or (None,):
        numbers = [i for i, row in enumerate(rows) if label is None or row["label"] == label]
        random.Random(5).shuffle(numbers)
        found += numbers[:number]
    return rows.select(sorted(found))


def race_rows(folder: Path, number: int) -> tuple[Dataset, dict[str, Any]]:
    rows = hfcf.load("feverous", data_dir=folder / "feverous_programfc", split="dev")
    return draw(rows.select(range(700)), number, ("SUPPORTS", "REFUTES")), {}


def crossaug_rows(folder: Path, number: int) -> tuple[Dataset, dict[str, Any]]:
    file = folder / "fever_train" / "test_data_vanilla.csv"
    rows = hfcf.load("csv", data_files=str(file), labels={0: None, 1: "SUPPORTS", 2: "REFUTES"}, on_error="reject", split="train")
    single = [i for i, pieces in enumerate(rows["evidence"]) if len(pieces) == 1]
    return draw(rows.select(single[:2000]), number, ("SUPPORTS",)), {}


def rgf_rows(folder: Path, number: int) -> tuple[Dataset, dict[str, Any]]:
    rows = hfcf.load("qed", data_dir=folder / "qed", split="validation")
    sources = [("qed", "qed"), ("xquad", "xquad_en")]
    parts = [{"corpus": name, "data_dir": str(folder / place), "split": "validation"} for name, place in sources]
    return draw(rows.select(range(850, 925)), number), {"passages": {"from": parts}}


def ccg_rows(folder: Path, number: int) -> tuple[Dataset, dict[str, Any]]:
    """Sentences of the training set: the system learns from its rows, and changes no others."""
    rows = hfcf.load("ccg_semeval", data_dir=folder / "ccg_semeval", split="16shot")
    return draw(rows.select([i for i, label in enumerate(rows["label"]) if label != "Other"]), number), {}


ROWS: dict[str, Callable[[Path, int], tuple[Dataset, dict[str, Any]]]] = {
    "race": race_rows, "crossaug": crossaug_rows, "rgf": rgf_rows, "ccg": ccg_rows,
}  # fmt: skip


def made(system: System, rows: Dataset) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a system's counterfactuals by source and change."""
    return {(row["source_id"], row["change"]): row for row in hfcf.expand(system(rows))}


def text(row: dict[str, Any]) -> str:
    """Return what a counterfactual says, and its label."""
    return json.dumps(
        [row.get(name) for name in ("claim", "evidence", "question", "answers", "tokens", "label")], ensure_ascii=False
    )


def main() -> None:
    """Switch each rule off, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--data-dir", default=os.environ.get("HFCF_DATA"), help="the folder with the corpora")
    parser.add_argument("--system", choices=sorted(RULES), help="race, unless said")
    parser.add_argument("--size", choices=("small", "base"), default="small", help="of the preset offline")
    parser.add_argument("--rows", type=int, default=50, help="of each label")
    parser.add_argument("--show", action="store_true", help="print some counterfactuals that come and change")
    options = parser.parse_args()
    name, folder = options.system or "race", options.data_dir
    if options.system and not folder and not options.quick:
        raise SystemExit("--system needs rows of a corpus: give --data-dir FOLDER, or set HFCF_DATA")
    quick, settings = options.quick or not folder, dict[str, Any]()
    if quick:
        name, rules = "race", RULES["race"][:2]
        rows = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train").select(range(6))
    else:
        rules = RULES[name]
        rows, settings = ROWS[name](Path(folder), options.rows)
    kind = getattr(hfcf, {"race": "RACE", "crossaug": "CrossAug", "rgf": "RGF", "ccg": "CCG"}[name])
    settings |= {"size": options.size} if kind.sizes else {}
    preset: System = kind.preset("offline", seed=13, **settings)
    paper = {setting: kind.schema[setting].default for group in rules for setting in group}
    whole: dict[tuple[str, str], dict[str, Any]] = {}
    lines: list[list[Any]] = []
    figures: dict[str, Any] = {}
    for group in ((), *rules):
        off = {setting: paper[setting] for setting in group}
        if group and all(preset.values[setting] == value for setting, value in off.items()):
            continue  # the preset does not have it
        pairs = made(preset.replace(**off), rows)
        whole = pairs if not group else whole
        new, gone = [key for key in pairs if key not in whole], [key for key in whole if key not in pairs]
        changed = [key for key in pairs if key in whole and text(pairs[key]) != text(whole[key])]
        title = f"without {', '.join(f'`{setting}`' for setting in group)}" if group else "the preset"
        counts = {
            "rows": len({source for source, _ in pairs}), "pairs": len(pairs), "new": len(new), "gone": len(gone),
            "changed": len(changed),
        }  # fmt: skip
        figures[", ".join(group) or "preset"] = counts
        lines.append([title, *counts.values()])
        print(*lines[-1], flush=True)
        for mark, keys in (("new", new), ("changed", changed)) if options.show else ():
            for key in keys[:SHOWN]:
                print(f"  {mark}: {text(pairs[key])}", flush=True)
    size = f", size {options.size}" if kind.sizes else ""
    about = f"{kind.__name__}, preset offline{size}, {len(rows)} rows{' of the demo' if quick else ''}"
    columns = ["", "rows with a pair", "pairs", "new", "gone", "changed"]
    show(about, columns, lines, options.json, {"rows": len(rows), "rules": figures})


if __name__ == "__main__":
    main()
