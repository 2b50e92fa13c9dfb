"""The comparison of explainers, from the `rationales.json` of `hfcf compare recipes/compare_rationales.yaml` at both sizes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from parts.markdown import table
from parts.paths import RESULTS

SIZES = ("small", "base")
METHODS = {"cure": "CURE", "gradient_x_input": "gradient × input", "lexical": "words of the claim", "random": "random words"}
SCORES = {"token_f1": "token F1", "sufficiency": "sufficiency", "comprehensiveness": "comprehensiveness"}


@cache
def read(size: str) -> dict[str, Any]:
    """Read the comparison of a size."""
    return json.loads((RESULTS / f"rationales_{size}.json").read_text(encoding="utf-8"))


def rationales_table() -> str:
    """Return agreement and faithfulness of each explainer: corpora and methods down, sizes across."""
    lines: dict[tuple[str, str], list[str]] = {}
    for size in SIZES:
        for part in read(size)["corpora"]:
            for method, values in part["methods"].items():
                cells = lines.setdefault((part["corpus"], METHODS[method]), [])
                cells += [str(part["rows"]), *(f"{values[score]:.3f}" for score in SCORES)]
    header = [f"{size}: {name}" for size in SIZES for name in ("rows", *SCORES.values())]
    return table(["corpus", "explainer", *header], [[*place, *cells] for place, cells in lines.items()])
