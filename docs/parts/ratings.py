"""Counts of rated pairs."""

from __future__ import annotations

import json
from typing import Any

from hfcf.systems import systems as system_names
from parts.paths import RESULTS


def count_ratings() -> str:
    """Return, as JSON, how many of the rated pairs of each system and preset are right; those of older versions are not counted."""
    lines = (RESULTS / "rated_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    counts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        if row["version"] != "after" or row["system"] not in system_names():
            continue
        label, sound, close = row["label"] == row["read_as"], bool(row["sense"]), bool(row["counterfactual"])
        read = {"pairs": True, "label": label, "all": label and sound, "counterfactual": close, "both": label and sound and close}
        entry = counts.setdefault(row["system"], {}).setdefault(row["preset"], {"corpus": row["corpus"], "date": row["date"]})
        entry.update({name: entry.get(name, 0) + value for name, value in read.items()})
    return json.dumps(counts, indent=1) + "\n"


def figures() -> dict[str, str]:
    """Return counts and shares of the rated pairs by SYSTEM.FIELD or SYSTEM.PRESET.FIELD; without a preset it is "offline".

    Fields: `pairs`, `date`, `corpus`; `label`, `all`, `counterfactual` and `both` in percent, and with `_pairs` counted.
    """
    found: dict[str, str] = {}
    for system, presets in json.loads(count_ratings()).items():
        for preset, counts in presets.items():
            texts = {name: str(value) for name, value in counts.items() if name in ("pairs", "date", "corpus")}
            for name in ("label", "all", "counterfactual", "both"):
                texts |= {name: f"{counts[name] / counts['pairs']:.0%}".replace("%", " %"), f"{name}_pairs": str(counts[name])}
            found |= {f"{system}.{preset}.{name}": text for name, text in texts.items()}
            if preset == "offline":
                found |= {f"{system}.{name}": text for name, text in texts.items()}
    return found


def shares(kind: str = "all") -> dict[str, float]:
    """Return the share of the rated pairs of each system's preset "offline" that are right in everything, or of another kind."""
    counts = {system: presets["offline"] for system, presets in json.loads(count_ratings()).items() if "offline" in presets}
    return {system: each[kind] / each["pairs"] for system, each in counts.items()}
