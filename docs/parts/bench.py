"""Figures of benchmarks: each file of `results/bench/` is what a script of `benchmarks/` wrote with `--json`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from hfcf.core.edits import diff
from parts.markdown import table
from parts.paths import RESULTS

OWN_PAGE = ("end_to_end", "other_pairs", "other_pairs_reviews")
"""Benchmarks whose table is not on the page about speed."""
CHECKS = {
    "RACE": ("rules_race_small", "rules_race_base"),
    "CrossAug": ("rules_crossaug_small", "rules_crossaug_base"),
    "CCG": ("rules_ccg_small",),
    "RGF": ("rules_rgf_small", "rules_rgf_base"),
}
"""Those of the page about checks: a table for each system, sizes side by side."""
SIZES = {"small": "judge_curve", "base": "judge_curve_base"}
"""The file of each size's judges."""
IN_TEXT = ("demo_funnel", "first_look")
"""Benchmarks whose figures are in sentences and pictures alone."""


def file(name: str) -> Path:
    """Return where a benchmark's figures are."""
    return RESULTS / "bench" / f"{name}.json"


@cache
def read(name: str) -> dict[str, Any]:
    """Read the figures of a benchmark."""
    return json.loads(file(name).read_text(encoding="utf-8"))


def stored() -> list[str]:
    """List the benchmarks that have figures."""
    return sorted(path.stem for path in (RESULTS / "bench").glob("*.json"))


def printed(name: str) -> str:
    """Return the table that a benchmark printed, with what made it."""
    content = read(name)
    header, *rows = content["table"]
    return f"{content['title'][:1].upper()}{content['title'][1:]}.\n\n{table(header, rows)}\n\n{origin(name)}"


def origin(name: str) -> str:
    """Say when, by which command and on which machine figures were made."""
    made = read(name)["made"]
    return f"`{made['command']}`, {made['date']}, {made['processor']}, torch {made['torch']}, transformers {made['transformers']}."


def speed() -> str:
    """Return the tables of the benchmarks of speed."""
    elsewhere = {*OWN_PAGE, *chain(*CHECKS.values()), *SIZES.values(), *IN_TEXT}
    parts = [f"## {name}\n\n{printed(name)}" for name in stored() if name not in elsewhere]
    return "\n\n".join(parts) or "No figures are stored."


def checks() -> str:
    """Return a table for each system of what each rule brings."""
    return "\n\n".join(_rules(system, names) for system, names in CHECKS.items())


def _rules(system: str, names: Sequence[str]) -> str:
    """Return a system's table: the preset and each rule down, the counts of each size across."""
    sizes = {name.rpartition("_")[2]: read(name) for name in names}
    several = len(sizes) > 1
    counts = list(read(names[0])["rules"]["preset"])
    called = ["rows with a pair" if count == "rows" else count for count in counts]
    header = [f"{size}: {name}" if several else name for size in sizes for name in called]
    rules = dict.fromkeys(rule for content in sizes.values() for rule in content["rules"])
    lines = []
    for rule in rules:
        found = [content["rules"].get(rule) for content in sizes.values()]
        title = "the preset" if rule == "preset" else f"without {', '.join(f'`{setting}`' for setting in rule.split(', '))}"
        lines.append([title, *(str(each[count]) if each else "–" for each in found for count in counts)])
    rows = " and ".join(f"{content['rows']} rows{f' at size {size}' * several}" for size, content in sizes.items())
    return f"{system}, preset offline, {rows}.\n\n{table(['', *header], lines)}\n\n{' '.join(map(origin, names))}"


def judges() -> str:
    """Return the shares of verdicts that are left and right at each certainty, with one judge and with two, of both sizes."""
    lines: dict[str, list[str]] = {}
    for name in SIZES.values():
        for point in read(name)["curve"]:
            right = point["all"]
            cell = "–"
            if right["accepted"]:
                cell = f"{100 * point['left']:.0f} left, {100 * right['right']:.1f} ± {100 * right['half_interval']:.1f} right"
            lines.setdefault(f"{point['certainty']:g}", []).append(cell)
    header = ("certainty", "small: verifier", "and judge", "base: verifier", "and judge")
    about = "\n".join(f"- {size.capitalize()}: {read(name)['title']}. {origin(name)}" for size, name in SIZES.items())
    return f"{table(header, [(certainty, *cells) for certainty, cells in lines.items()])}\n\n{about}"


def examples() -> str:
    """Return the counterfactual of each task that `benchmarks/first_look.py` made, with what was replaced struck out."""
    marks = {"out": "<del>{}</del>", "in": "**{}**", "same": "{}"}
    rows = []
    for task, one in read("first_look")["examples"].items():
        parts = [(kind, text.strip()) for kind, text in diff(one["before"], one["after"])]
        words = " ".join(marks[kind].format(text) for kind, text in parts if text)
        words = re.sub(r" ([.,])", r"\1", words)
        label = one["label"] if "→" in one["label"] else f"{one['label']} stays"
        rows.append((f"**{task}**", f"{words}<br>{label}"))
    return table(("", "<del>before</del> **after**, and the label or answer"), rows)


def right_per_minute(shares: dict[str, float]) -> list[tuple[str, float, float | None]]:
    """Return accepted counterfactuals a CPU minute by method, and the right ones: by verdicts on its pairs, else by `shares`.

    Args:
        shares: of the rated pairs of each system, those that are fully right.
    """
    lines = []
    for name, figures in read("end_to_end").items():
        if isinstance(figures, dict) and "accepted_per_minute" in figures:
            rate, right = figures["accepted_per_minute"], figures["fully_right_per_minute"]
            share = shares.get(name.partition(",")[0].lower())
            right = rate * share if right is None and share is not None else right
            lines.append((name, round(rate, 1), None if right is None else round(right, 1)))
    return lines


@cache
def figures() -> dict[str, str]:
    """Return the numbers of the benchmarks' files by NAME.KEY.KEY; shares are not turned into percent."""
    return {".".join([name, *path]): _text(value) for name in stored() for path, value in _leaves(read(name))}


def _leaves(content: Any) -> list[tuple[list[str], Any]]:
    if not isinstance(content, dict):
        return [([], content)]
    return [([key, *path], value) for key, inner in content.items() if key != "table" for path, value in _leaves(inner)]


def _text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
