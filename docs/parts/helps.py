"""The table "Does it help?": the quality of the pairs and the gain from training, a line for each system of a paper."""

from __future__ import annotations

from typing import NamedTuple

from hfcf.studies.compare.age import age_notes
from parts import comparisons, ratings
from parts.markdown import table


class Evidence(NamedTuple):
    """Where a system's gain is stored: a comparison, the method, its control, and the corpora."""

    system: str
    name: str = ""
    method: str = ""
    control: str = ""
    place: str = ""
    what: str = ""


LINES = (
    Evidence("RACE", "compare_race", "race", "labels_alone", "average_challenge", "accuracy on the challenge sets"),
    Evidence("CrossAug", "compare_crossaug", "crossaug", "", "average_challenge", "accuracy on the challenge sets"),
    Evidence("CCG", "compare_ccg_attack", "ccg", "", "10_re_attack", "micro-F1 on RE-Attack"),
    Evidence("RGF", "compare_rgf", "rgf", "rgf_copies", "average", "exact match, all sets"),
    Evidence("CheckWhy"),
)


def helps_table() -> str:
    """Return the table; a cell that nothing was stored for says "not measured"."""
    header = (
        "system",
        "label right",
        "everything right",
        "close to its source",
        "gain from training, points",
        "the same with copies of rows",
    )
    rated, rows, old = ratings.figures(), [], False
    for line in LINES:
        name = line.system.lower()
        found = comparisons.figures(line.name) if line.name in comparisons.compared() else {}
        gain = found.get(f"{line.method}.{line.place}.gain_text", "not measured").replace(r"\*", "\\*")
        if found and age_notes(comparisons.stored(line.name).cells):
            gain, old = f"{gain} †", True
        if line.what:
            gain = f"{gain}, {line.what}"
        control = found.get(f"{line.control}.{line.place}.gain_text", "not measured")
        rows.append(
            (
                line.system,
                *(rated.get(f"{name}.{field}", "not measured") for field in ("label", "all", "counterfactual")),
                gain,
                control,
            )
        )
    note = "\n\n† computed by an earlier version of the code. [a, b] is a 95 % interval over rows and seeds; \\* is beyond noise."
    return table(header, rows) + (note if old else note.replace("† computed by an earlier version of the code. ", ""))
