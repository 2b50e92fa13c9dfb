"""Rating sheets: a CSV file for each rater, instructions, and the key that raters must not see."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfcf.hub.render import render
from hfcf.studies.human.draw import Line, drawn, lines
from hfcf.studies.human.protocol import Protocol
from hfcf.studies.human.protocols import PROTOCOLS
from hfcf.studies.human.sets import Given, originals, rows_of
from hfcf.studies.human.units import needs_sources
from hfcf.studies.sheets import read_sheet, write_sheet

KEY, RATERS, INSTRUCTIONS, NOTE = "key.json", "raters", "instructions.html", "note"


def protocol_of(protocol: str | Protocol) -> Protocol:
    """A protocol, by name or as it is.

    Raises:
        ValueError: the name is none; the message has them all.

    >>> protocol_of("rgf").rows
    300
    """
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise ValueError(f"there is no protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


def export(
    sets: Mapping[str, Given],
    protocol: str | Protocol,
    out: str | Path,
    *,
    sources: Given | None = None,
    raters: int = 3,
    seed: int = 13,
) -> dict[str, Any]:
    """Write what raters need, and the key to what they rate.

    `out/raters` is for them: `instructions.html`, and `rater-1.csv` and so on, the same lines in an order of each rater's own,
    under ids that say nothing of the method. `out/key.json` stays here: the protocol, the seed, and for each id the method, row,
    source and texts. `import_` reads the filled sheets.

    Args:
        sets: {method: what it made}, see `rows_of`. Columns: `NEEDS` of the protocol's unit, and `source_id` of rows that were made
            from others. ccg_terms reads the rows' `causal_terms`, or else takes what their `edits` took out. A run's folder brings
            its source rows along. checkwhy_preference takes one method: the argument that stood beside two would be the reference.
        protocol: a name of `PROTOCOLS`, or your own.
        out: the folder.
        sources: the source rows, by `id`: of race and of ccg_terms without `causal_terms`, where a set is no run's folder; and
            checkwhy_preference's reference arguments.
        raters: how many.
        seed: which rows, in which order, on which side.

    Returns:
        `lines` of a sheet; `shared`, how many sources are rated for every method; `methods`: of each `rows`, by stratum where there
        are any, `short`, where there are fewer than the protocol asks for, and `left_out`: {reason: rows}.

    Raises:
        ValueError: a column is missing, a method has nothing to rate, methods disagree on a source's text or label, or sheets in
            the folder have answers or notes, which would be lost.
        FileNotFoundError: there is no such set.

    >>> import tempfile
    >>> row = {"id": "1", "question": "who led", "context": "Jeff Hogg led.", "answers": {"text": ["Jeff Hogg"]}}
    >>> out = Path(tempfile.mkdtemp())
    >>> export({"mine": [row]}, "rgf", out, raters=1)["methods"]["mine"]["rows"]
    {'all': 1}
    >>> print((out / "raters" / "rater-1.csv").read_text("utf-8-sig").strip())
    "id","question","context","answer","fluency","correctness","note"
    "item-001","who led","Jeff Hogg led.","“Jeff Hogg”","","",""
    """
    protocol, folder = protocol_of(protocol), Path(out)
    if min(len(sets), raters, protocol.rows) < 1:
        raise ValueError(f"{len(sets)} sets, {raters} raters and {protocol.rows} rows: one or more of each")
    if not all(method.strip() for method in sets):
        raise ValueError("a set has no name: write METHOD=FOLDER")
    if protocol.unit == "structures" and len(sets) > 1:
        raise ValueError(
            f"{protocol.name} of {', '.join(sets)}: a claim would be shown twice, and what both lines share is the reference: "
            "export each method by itself, to a folder of its own and for raters of its own"
        )
    _check_free(folder)
    known = None if sources is None else {str(row["id"]): row for row in rows_of(sources)}
    told: dict[str, Any] = {}
    found: dict[str, list[Line]] = {}
    for method, given in sets.items():
        theirs = originals(given) if known is None and needs_sources(protocol, ()) else known
        found[method], left_out = lines(protocol, method, rows_of(given), theirs, seed)
        told[method] = {"left_out": left_out}
        if not found[method]:
            why = "; ".join(f"{n} rows: {reason}" for reason, n in left_out.items()) or "it has no rows"
            raise ValueError(f"{method}: no row can be rated by {protocol.name}: {why}")
    picked = drawn(found, protocol, seed)
    for method, about in told.items():
        own = [line.stratum for line in picked if line.method == method]
        about["rows"] = {stratum or "all": own.count(stratum) for stratum in protocol.strata or ("",)}
        about["short"] = {stratum: protocol.rows - n for stratum, n in about["rows"].items() if n < protocol.rows}
    items = _items(picked, protocol, seed)
    key = {
        "protocol": protocol.as_json(), "seed": seed, "raters": raters, "methods": told,
        "items": {f"item-{number:03d}": item for number, item in enumerate(items, 1)},
    }  # fmt: skip
    write(key, folder)
    shared = set.intersection(*({line.source for line in picked if line.method == method} for method in sets))
    return {"lines": len(items), "shared": len(shared), "methods": told}


def write(key: Mapping[str, Any], folder: Path) -> None:
    """Write a key, and all that follows from it: the instructions and every rater's empty sheet.

    Args:
        key: as `key.json` holds it.
        folder: its own.
    """
    protocol = Protocol.from_json(key["protocol"])
    (folder / RATERS).mkdir(parents=True, exist_ok=True)
    for rater in range(1, key["raters"] + 1):
        order = list(key["items"])
        random.Random(f"{key['seed']}:rater:{rater}").shuffle(order)
        empty = dict.fromkeys([*(question.name for question in protocol.questions), NOTE], "")
        rows = [{"id": item, **key["items"][item]["texts"], **empty} for item in order]
        write_sheet(sheet(folder, rater), ["id", *protocol.shows, *empty], rows)
    page = render("rating.html.jinja", protocol=protocol, lines=len(key["items"]))
    (folder / RATERS / INSTRUCTIONS).write_text(page, encoding="utf-8")
    for old in (folder / RATERS).glob("rater-*.csv"):
        if old not in [sheet(folder, rater) for rater in range(1, key["raters"] + 1)]:
            old.unlink()
    (folder / KEY).write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sheet(folder: Path, rater: int) -> Path:
    """Where a rater's sheet is."""
    return folder / RATERS / f"rater-{rater}.csv"


def _items(picked: list[Line], protocol: Protocol, seed: int) -> list[dict[str, Any]]:
    """What is rated, in an order that says nothing; of words that raters mark, one sentence for all methods."""
    if protocol.unit != "terms":
        strata: dict[str, str] = {}
        for line in picked:
            if (other := strata.setdefault(line.source, line.stratum)) != line.stratum:
                labels = f"{other} for one method and {line.stratum} for {line.method}"
                raise ValueError(f"the source {line.source!r} is {labels}: give sets that were made of the same rows")
        items = [
            {
                "method": line.method, "row": line.row, "source": line.source, "stratum": line.stratum, **line.made.own,
                "texts": {column: line.made.texts[column] for column in protocol.shows},
            }
            for line in picked
        ]  # fmt: skip
    else:
        by_source: dict[str, dict[str, Any]] = {}
        for line in picked:
            own = {name: line.made.own[name] for name in ("tokens", "free")}
            item = by_source.setdefault(
                line.source, {"source": line.source, "stratum": "", **own, "terms": {}, "texts": line.made.texts}
            )
            if item["texts"] != line.made.texts:
                methods = f"{next(iter(item['terms']))} and {line.method}"
                raise ValueError(f"{methods} show other texts for the source {line.source!r}: give both sets of the same rows")
            item["terms"][line.method] = line.made.own["terms"]
        items = list(by_source.values())
    random.Random(f"{seed}:items").shuffle(items)
    return items


def _check_free(folder: Path) -> None:
    """Refuse to write over answers and notes: `write` replaces every sheet that lies there, whoever put it there."""
    sheets = sorted((folder / RATERS).glob("rater-*.csv"))
    if not sheets:
        return
    if not (folder / KEY).exists():
        raise ValueError(f"{sheets[0]} is there without {KEY}, by which it is read: give another folder, or move the file")
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    names = [question["name"] for question in key["protocol"]["questions"]]
    for path in sheets:
        n = sum(bool(cells.get(name, "").strip()) for _, cells in read_sheet(path, names) for name in (*names, NOTE))
        if n:
            raise ValueError(f"{path} holds {n} answers and notes, which would be lost: give another folder, or move the file")
