"""What readers found right in pairs: counts, tables and a page that shows each pair."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
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
    """Return the counts of presets at their default size, as JSON."""
    named = {
        system: {preset: read for preset, read in presets.items() if preset in system_class(system).presets}
        for system, presets in counts().items()
    }
    return json.dumps(named, indent=1) + "\n"


def percent(counts: Counts, kind: str) -> str:
    """Return the share of the read pairs that are right in a way."""
    return f"{counts[kind] / counts['pairs']:.0%}".replace("%", " %")


def counts() -> dict[str, dict[str, Counts]]:
    """Count the right pairs of each system and preset; pairs of older versions are not counted."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in filter(_current, rated()):
        label, sound, close = row["label"] == row["read_as"], bool(row["sense"]), bool(row["counterfactual"])
        read = {"pairs": True, "label": label, "all": label and sound, "close": close, "both": label and sound and close}
        entry = found.setdefault(row["system"], {}).setdefault(row["preset"], {"corpus": row["corpus"], "date": row["date"]})
        entry.update({name: entry.get(name, 0) + value for name, value in read.items()})
    return found


def _current(row: Mapping[str, Any]) -> bool:
    """Whether a pair is of today's version of a system."""
    return row["version"] == "after" and row["system"] in system_names()


def figures() -> dict[str, str]:
    """Return counts and shares of the rated pairs by SYSTEM.FIELD or SYSTEM.PRESET.FIELD; without a preset it is "offline".

    Fields: `pairs`, `date`, `corpus`; `label`, `all`, `close` and `both` in percent, and with `_pairs` counted.
    `earlier` is how many pairs of older versions are stored.
    """
    found = {"earlier": str(sum(not _current(row) for row in rated()))}
    for system, presets in counts().items():
        for preset, read in presets.items():
            texts = {name: str(value) for name, value in read.items() if name in ("pairs", "date", "corpus")}
            for name in ("label", "all", "close", "both"):
                texts |= {name: percent(read, name), f"{name}_pairs": str(read[name])}
            key = re.sub(r"\W+", "_", preset)  # as keys of figures have it
            found |= {f"{system}.{key}.{name}": text for name, text in texts.items()}
            if preset == "offline":
                found |= {f"{system}.{name}": text for name, text in texts.items()}
    return found


def shares(kind: str = "all") -> dict[str, float]:
    """Return the share of the rated pairs of each system's preset "offline" that are fully right, or of another kind."""
    read = {system: presets["offline"] for system, presets in counts().items() if "offline" in presets}
    return {system: each[kind] / each["pairs"] for system, each in read.items()}


# --- the pages


def rated() -> list[dict[str, Any]]:
    """Read every rated pair."""
    return [json.loads(line) for line in (RESULTS / "rated_pairs.jsonl").read_text(encoding="utf-8").splitlines()]


KINDS = {"label": "label right, %", "all": "fully right, %", "close": "close, %", "both": "fully right and close, %"}
"""The columns of shares."""


def rated_table() -> str:
    """Return what is right in the pairs of each system and preset, as shares of today's version with 95 % intervals."""
    return table(
        ("system", "preset", "rows of", "date", "pairs", *KINDS.values()),
        (
            (system_class(system).__name__, preset, read["corpus"], read["date"], str(read["pairs"]), *_shares(read, KINDS))
            for system, presets in sorted(counts().items())
            for preset, read in sorted(presets.items())
        ),
    )


def headline_table() -> str:
    """Return what is right in the pairs of each system's preset "offline", as shares of today's version with 95 % intervals."""
    kinds = {kind: title for kind, title in KINDS.items() if kind != "all"}
    return table(
        ("system, preset `offline`", "rows of", "pairs read", *kinds.values()),
        (
            (system_class(system).__name__, read["corpus"], str(read["pairs"]), *_shares(read, kinds))
            for system, presets in sorted(counts().items())
            for read in [presets["offline"]]
        ),
    )


def _shares(read: Counts, kinds: Iterable[str]) -> list[str]:
    """Return shares of the read pairs in percent, with Wilson's intervals of 95 %."""
    shares = []
    for kind in kinds:
        low, high = binomtest(read[kind], read["pairs"]).proportion_ci(0.95, method="wilson")
        shares.append(f"{100 * read[kind] / read['pairs']:.0f} ({100 * low:.0f}–{100 * high:.0f})")
    return shares


def pairs_page() -> str:
    """Return a page of HTML that shows every rated pair of today's versions and filters them; it needs nothing else."""
    names = ("system", "preset", "source", "new", "label", "read_as", "sense", "counterfactual", "note")
    lines: list[list[Any]] = [list(names)]
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(filter(_current, rated())):
        # A text that an earlier line has in the same column is the number of that line.
        known = {name: first.setdefault((name, row[name]), number) for name in ("source", "new")}
        lines.append([row[name] if known.get(name, number) == number else known[name] for name in names])
    held = json.dumps(lines, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Path(__file__).with_name("pairs.html").read_text(encoding="utf-8").replace("PAIRS", held)
