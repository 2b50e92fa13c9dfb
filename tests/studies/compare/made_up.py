"""Cells made up for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

CORPORA = {
    "HoVer": "in-domain",
    "FEVER": "in-domain",
    "FEVEROUS": "in-domain",
    "PolitiHop": "out-of-domain",
    "SciFact": "out-of-domain",
    "FM2": "challenge",
}


def cell(method: str, seed: int, corpus: str, setting: str, gold: str, predicted: str, **more: Any) -> dict[str, Any]:
    """A cell whose scores are those of its predictions."""
    right = [a == b for a, b in zip(gold, predicted, strict=True)]
    f1 = []
    for label in "SR":
        both = sum(a == b == label for a, b in zip(gold, predicted, strict=True))
        f1.append(2 * both / max(gold.count(label) + predicted.count(label), 1))
    return {
        "recipe": "compare_race", "method": method, "seed": seed, "corpus": corpus, "setting": setting, "train_rows": 512,
        "counterfactuals": 0, "counterfactuals_dropped": 0, "ratio": 0.0, "making_cpu_seconds": 0.0, "rows": len(gold),
        "available": len(gold), "labels": {"SUPPORTS": gold.count("S"), "REFUTES": gold.count("R")}, "removed": 0, "seen": 0,
        "cleaned": None, "accuracy": sum(right) / len(gold), "macro_f1": sum(f1) / 2, "ids": f"ids of {corpus}",
        "predicted": predicted, "gold": gold, "seconds": 2.0, "cpu_seconds": 1.5, **more,
    }  # fmt: skip


def forget(file: Path, **cell: Any) -> None:
    """Remove the lines of some cells."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not all(json.loads(line).get(name) == value for name, value in cell.items())]
    assert len(kept) < len(lines)
    file.write_text("".join(kept), encoding="utf-8")


def draw(random: np.random.Generator, rows: int, shares: dict[str, float], seeds: int, shake: float = 0.0) -> list[dict[str, Any]]:
    """Cells of one corpus: each method is right on `shares` of the rows, give or take its seed's normal draw of deviation `shake`.

    Methods are right on nearly the same rows, and seeds of a method on more of the same.
    """
    gold = random.random(rows) < 0.5
    alike = random.random(rows)
    made = []
    for method, share in shares.items():
        own = random.random(rows)
        for seed in range(seeds):
            which, noise = random.random(rows), random.random(rows)
            answers = np.where(which < 0.7, alike, np.where(which < 0.9, own, noise)) < share + shake * random.normal()
            said = np.where(answers, gold, ~gold)
            made.append(cell(method, seed, "FM2", "challenge", *("".join(np.where(text, "S", "R")) for text in (gold, said))))
    return made


def full(methods: tuple[str, ...] = ("None", "EDA", "RACE"), rows: int = 120, seeds: int = 3) -> list[dict[str, Any]]:
    """A comparison on all of `CORPORA`."""
    random = np.random.default_rng(3)
    shares = {method: 0.6 + 0.06 * i for i, method in enumerate(methods)}
    return [
        {**one, "corpus": corpus, "setting": setting, "ids": corpus}
        for corpus, setting in CORPORA.items()
        for one in draw(random, rows, shares, seeds, 0.02)
    ]
