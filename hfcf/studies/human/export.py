"""Draw the rows to rate and write rating sheets: a file for each rater, instructions, and the key that raters must not see."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hfcf.core.task import Row
from hfcf.corpora.custom.cells import as_known, name_cell
from hfcf.corpora.custom.source import RowSet, read_rows, read_sources
from hfcf.hub.render import render
from hfcf.studies.human.protocol import Display, Protocol, load_protocol, show

KEY, RATERS, INSTRUCTIONS, NOTE = "key.json", "raters", "instructions.md", "note"
_UNIQUE = "remove the repeated row, or number the ids"
_FORMULA = tuple("=+-@＝＋－＠\t\r'")


class Line(NamedTuple):
    """A row of a method, as raters see it."""

    method: str
    row: str
    source: str
    display: Display


def _by_id(sources: RowSet, protocol: Protocol) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for row in read_rows(sources, protocol.columns):
        if "id" not in row:
            raise ValueError(f"the sources have no column 'id', only {', '.join(row)}: rename the one that `source_id` names")
        row_id = name_cell(row["id"]) or ""
        if row_id in found:
            raise ValueError(
                f"the sources: the id {row_id!r} is there twice, and counterfactuals name their source by it: {_UNIQUE}"
            )
        found[row_id] = row
    return found


def export(
    sets: Mapping[str, RowSet],
    protocol: str | Protocol,
    out: str | Path,
    *,
    sources: RowSet | None = None,
    raters: int = 3,
    seed: int = 13,
    rows: int | None = None,
    file_format: Literal["csv", "jsonl"] = "csv",
) -> dict[str, Any]:
    """Write the raters' folder, and the key that tells which line is whose.

    `out/raters` is for the raters. It has `instructions.md`, and `rater-1.csv` and so on, the same lines in a different order for
    each rater, under ids that reveal no method. Rows of several methods that read the same are one line, which counts for all of
    them. Keep `out/key.json`: it has the protocol, the seed, and the methods, rows, source and texts of each id. `read_ratings`
    reads the filled sheets.

    Args:
        sets: {method: its rows}, see `read_rows`. Rows have the columns of the protocol, and `source_id` if they were made from
            other rows. A run's folder includes its source rows. `checkwhy_preference` takes one method: with two, raters would
            recognise the shared reference.
        protocol: a name (`protocol_names`), a YAML file, or a `Protocol`.
        out: the folder.
        sources: the source rows, by `id`, unless a set is a run's folder; the reference arguments of checkwhy_preference.
        raters: how many.
        seed: which rows, in which order, on which side.
        rows: how many of each method (and stratum), instead of the protocol's number.
        file_format: "csv" for spreadsheets, "jsonl" for programs.

    Returns:
        `lines` of a sheet; `shared`, how many sources are rated for every method; and `methods`. Each method has `rows`, by
        stratum if there are any, `short`, how many rows are too few, and `left_out`: {reason: rows}.

    Raises:
        ValueError: a column is missing, a method has nothing to rate, or the folder holds a key already.
        FileNotFoundError: a set does not exist.

    >>> import tempfile
    >>> row = {"id": "1", "question": "who led", "context": "Jeff Hogg led.", "answers": {"text": ["Jeff Hogg"]}}
    >>> out = Path(tempfile.mkdtemp())
    >>> export({"mine": [row]}, "rgf", out, raters=1)["methods"]["mine"]["rows"]
    {'all': 1}
    >>> print((out / "raters" / "rater-1.csv").read_text("utf-8-sig").strip())
    "id","question","context","answer","fluency","correctness","note"
    "item-001","who led","Jeff Hogg led.","“Jeff Hogg”","","",""
    """
    name = protocol if isinstance(protocol, str) else protocol.title
    protocol, folder = load_protocol(protocol) if isinstance(protocol, str) else protocol, Path(out)
    protocol = protocol if rows is None else protocol.model_copy(update={"rows": rows})
    if min(len(sets), raters) < 1:
        raise ValueError(f"the numbers of sets and raters must be at least 1, got {len(sets)} and {raters}")
    if len(sets) > 1 and any(question.kind == "sides" for question in protocol.questions.values()):
        raise ValueError(f"{name} compares one method with the references, got {', '.join(sets)}: export each by itself")
    if (folder / KEY).exists():
        raise ValueError(f"{folder} holds sheets already, whose answers would be lost: give another folder")
    by_id = None if sources is None else _by_id(sources, protocol)
    report: dict[str, Any] = {}
    lines: dict[str, list[Line]] = {}
    for method, made in sets.items():
        own_sources = read_sources(made) if by_id is None else by_id
        lines[method], left_out = build_lines(protocol, method, read_rows(made, protocol.columns), own_sources, seed)
        report[method] = {"left_out": left_out}
        if not lines[method]:
            why = "; ".join(f"{n} rows: {reason}" for reason, n in left_out.items()) or "it has no rows"
            raise ValueError(f"{method}: no row can be rated by {name}: {why}")
    drawn = draw(lines, protocol, seed)
    for method, counts in report.items():
        strata = [line.display.stratum for line in drawn if line.method == method]
        counts["rows"] = {stratum: strata.count(stratum) for stratum in protocol.strata} or {"all": len(strata)}
        counts["short"] = {stratum: protocol.rows - n for stratum, n in counts["rows"].items() if n < protocol.rows}
    items = merge_lines(drawn)
    random.Random(f"{seed}:items").shuffle(items)
    key = {
        "name": Path(name).stem, "protocol": protocol.model_dump(), "seed": seed, "raters": raters, "format": file_format,
        "methods": report, "items": {f"item-{number:03d}": item for number, item in enumerate(items, 1)},
    }  # fmt: skip
    _write_sheets(key, protocol, folder)
    shared = set.intersection(*({line.source for line in drawn if line.method == method} for method in sets))
    return {"lines": len(items), "shared": len(shared), "methods": report}


def sheet(folder: Path, key: Mapping[str, Any], rater: int) -> Path:
    """Return the path of a rater's sheet."""
    return folder / RATERS / f"rater-{rater}.{key['format']}"


def _write_sheets(key: Mapping[str, Any], protocol: Protocol, folder: Path) -> None:
    (folder / RATERS).mkdir(parents=True, exist_ok=True)
    for rater in range(1, key["raters"] + 1):
        order = list(key["items"])
        random.Random(f"{key['seed']}:rater:{rater}").shuffle(order)
        empty = dict.fromkeys([*protocol.asked, NOTE], "")
        rows = [{"id": item, **key["items"][item]["texts"], **empty} for item in order]
        path = sheet(folder, key, rater)
        if key["format"] == "jsonl":
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
            continue
        with path.open("w", encoding="utf-8-sig", newline="") as file:  # spreadsheets need the byte order mark
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(rows[0])
            # A spreadsheet would run a cell that begins like a formula.
            writer.writerows([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row.values()] for row in rows)
    page = render("rating.md.jinja", package="hfcf.studies", protocol=protocol, names=list(protocol.asked), lines=len(key["items"]))
    (folder / RATERS / INSTRUCTIONS).write_text(page, encoding="utf-8")
    (folder / KEY).write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def build_lines(
    protocol: Protocol, method: str, rows: Iterable[Row], sources: Mapping[str, Row] | None, seed: int
) -> tuple[list[Line], dict[str, int]]:
    """Return one line for each source of a method's rows, and {reason: number of rows that can't be rated}."""
    ids = set[str]()
    best: dict[str, tuple[str, Line]] = {}
    reasons: Counter[str] = Counter()
    for number, row in enumerate(rows):
        if missing := [column for column in protocol.columns if column not in row]:
            columns = ", ".join(protocol.columns)
            raise ValueError(
                f"{method}, row {number}: there is no column {missing[0]!r}; the protocol reads {columns}; rename yours"
            )
        if protocol.source and sources is None:
            raise ValueError(f"{method}: the protocol shows a row next to its source: give the source rows as sources (--sources)")
        row_id = name_cell(row["id"]) or ""
        if row_id in ids:
            raise ValueError(f"{method}, row {number}: the id {row_id!r} is there twice, and ratings are counted by it: {_UNIQUE}")
        ids.add(row_id)
        source_id = as_known(name_cell(row.get("source_id")) or row_id, sources or {})
        source = (sources or {}).get(source_id)
        if protocol.source and source is None:
            reasons["its source is not among the sources"] += 1
            continue
        try:
            display = show(protocol, row, source, random.Random(f"{seed}:side:{source_id}").choice("12"))
        except ValueError as error:
            reasons[str(error)] += 1
            continue
        rank = _rank(seed, row_id)
        if source_id in best:
            reasons["another row of its source was drawn"] += 1
        if source_id not in best or rank < best[source_id][0]:
            best[source_id] = rank, Line(method, row_id, source_id, display)
    return [line for _, line in best.values()], dict(reasons.most_common())


def draw(lines: Mapping[str, Sequence[Line]], protocol: Protocol, seed: int) -> list[Line]:
    """Draw the protocol's rows of each method and stratum, in any order of `lines`; sources that most methods have come first."""
    methods_of = Counter(line.source for of_method in lines.values() for line in of_method)
    drawn = []
    for of_method in lines.values():
        order = sorted(of_method, key=lambda line: (-methods_of[line.source], _rank(seed, line.source)))
        for stratum in protocol.strata or [""]:
            drawn += [line for line in order if line.display.stratum == stratum][: protocol.rows]
    return drawn


def merge_lines(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """Make one item of the lines of a source that show the same texts."""
    items: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        texts = line.display.texts
        new = {"source": line.source, "stratum": line.display.stratum, "texts": texts, "methods": {}}
        item = items.setdefault((line.source, json.dumps(texts)), new)
        item["methods"][line.method] = {"row": line.row, **line.display.scoring}
    return list(items.values())


def _rank(seed: int, row_id: str) -> str:
    return hashlib.sha256(f"{seed}:{row_id}".encode()).hexdigest()
