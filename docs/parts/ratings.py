"""What readers found right in pairs: counts, tables and a page that shows each pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from hfcf.systems import system_class
from hfcf.systems import systems as system_names
from parts.markdown import table
from parts.paths import RESULTS

Counts = dict[str, Any]
"""How many pairs of a system's preset were read, and how many are right in each way; with their corpus and date."""


def count_ratings() -> str:
    """Return the counts as JSON."""
    return json.dumps(counts(), indent=1) + "\n"


def percent(counts: Counts, kind: str) -> str:
    """Return the share of the read pairs that are right in a way."""
    return f"{counts[kind] / counts['pairs']:.0%}".replace("%", " %")


def counts() -> dict[str, dict[str, Counts]]:
    """Count the right pairs of each system and preset; pairs of older versions are not counted."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rated():
        if row["version"] != "after" or row["system"] not in system_names():
            continue
        label, sound, close = row["label"] == row["read_as"], bool(row["sense"]), bool(row["counterfactual"])
        read = {"pairs": True, "label": label, "all": label and sound, "counterfactual": close, "both": label and sound and close}
        entry = found.setdefault(row["system"], {}).setdefault(row["preset"], {"corpus": row["corpus"], "date": row["date"]})
        entry.update({name: entry.get(name, 0) + value for name, value in read.items()})
    return found


def figures() -> dict[str, str]:
    """Return counts and shares of the rated pairs by SYSTEM.FIELD or SYSTEM.PRESET.FIELD; without a preset it is "offline".

    Fields: `pairs`, `date`, `corpus`; `label`, `all`, `counterfactual` and `both` in percent, and with `_pairs` counted.
    """
    found: dict[str, str] = {}
    for system, presets in counts().items():
        for preset, read in presets.items():
            texts = {name: str(value) for name, value in read.items() if name in ("pairs", "date", "corpus")}
            for name in ("label", "all", "counterfactual", "both"):
                texts |= {name: percent(read, name), f"{name}_pairs": str(read[name])}
            found |= {f"{system}.{preset}.{name}": text for name, text in texts.items()}
            if preset == "offline":
                found |= {f"{system}.{name}": text for name, text in texts.items()}
    return found


def shares(kind: str = "all") -> dict[str, float]:
    """Return the share of the rated pairs of each system's preset "offline" that are right in everything, or of another kind."""
    read = {system: presets["offline"] for system, presets in counts().items() if "offline" in presets}
    return {system: each[kind] / each["pairs"] for system, each in read.items()}


# --- the pages


def rated() -> list[dict[str, Any]]:
    """Read every rated pair."""
    return [json.loads(line) for line in (RESULTS / "rated_pairs.jsonl").read_text(encoding="utf-8").splitlines()]


def rated_table() -> str:
    """Return what was found right in each sheet, with 95 % intervals of the shares."""
    sheets: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rated():
        sheets.setdefault(tuple(row[key] for key in ("system", "preset", "version", "corpus", "date")), []).append(row)
    header = (
        "system",
        "preset",
        "version",
        "rows of",
        "date",
        "pairs",
        "label right, %",
        "everything right, %",
        "close, %",
        "right and close",
    )
    lines = []
    for about, rows in sorted(sheets.items(), key=lambda item: (item[0][0], item[0][2])):
        label = [row["label"] == row["read_as"] for row in rows]
        sound = [right and bool(row["sense"]) for right, row in zip(label, rows, strict=True)]
        close = [bool(row["counterfactual"]) for row in rows]
        both = sum(right and near for right, near in zip(sound, close, strict=True))
        lines.append(
            [
                _NAMES.get(about[0], about[0]),
                *about[1:],
                str(len(rows)),
                *(_interval(sum(each), len(rows)) for each in (label, sound, close)),
                str(both),
            ]
        )
    return table(header, lines)


_NAMES = {"race, before its last floors": "race, an earlier one"}
"""How tables name a sheet whose name in the results only its author understands."""


def headline_table() -> str:
    """Return what is right in the pairs of each system's preset "offline", as shares of today's version with 95 % intervals."""
    kinds = {"label": "label right, %", "counterfactual": "close, %", "both": "right and close, %"}
    rows = [
        (
            system_class(system).__name__,
            preset["corpus"],
            str(preset["pairs"]),
            *(_interval(preset[kind], preset["pairs"]) for kind in kinds),
        )
        for system, presets in sorted(counts().items())
        for preset in [presets["offline"]]
    ]
    return table(("system, preset `offline`", "rows of", "pairs read", *kinds.values()), rows)


def _interval(right: int, of: int) -> str:
    """Return a share in percent, with Wilson's interval of 95 %."""
    low, high = binomtest(right, of).proportion_ci(0.95, method="wilson")
    return f"{100 * right / of:.0f} ({100 * low:.0f}–{100 * high:.0f})"


def earlier_table() -> str:
    """Count the pairs of earlier sheets, which have verdicts in words."""
    counts: dict[str, int] = {}
    for line in (RESULTS / "rated_pairs_earlier.jsonl").read_text(encoding="utf-8").splitlines():
        sheet = json.loads(line)["sheet"]
        counts[sheet] = counts.get(sheet, 0) + 1
    return table(("sheet", "pairs"), [(sheet, str(n)) for sheet, n in counts.items()])


def pairs_page() -> str:
    """Return a page of HTML that shows every rated pair and filters them; it needs nothing else."""
    names = ("system", "version", "source", "new", "label", "read_as", "sense", "counterfactual", "note")
    lines = [list(names), *([row[name] for name in names] for row in rated())]
    held = json.dumps(lines, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Path(__file__).with_name("pairs.html").read_text(encoding="utf-8").replace("PAIRS", held)
