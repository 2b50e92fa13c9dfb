"""Draw the rows to rate and write rating sheets: a CSV file for each rater, instructions, and the key that raters must not see."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hfcf.corpora.custom.rows import RowSet, read_rows, read_sources
from hfcf.hub.render import render
from hfcf.studies.human.protocol import Display, Protocol, Row, Unit
from hfcf.studies.human.protocols import PROTOCOLS, show, unit_of
from hfcf.studies.spreadsheets import read_sheet, write_sheet

KEY, RATERS, INSTRUCTIONS, NOTE = "key.json", "raters", "instructions.html", "note"
_CURE = "give sets that were made from the same rows"


class Line(NamedTuple):
    """A row of a method, as raters see it."""

    method: str
    row: str
    source: str
    display: Display

    @property
    def stratum(self) -> str:
        """Return the source's label, or "" if the protocol has no strata."""
        return self.display.label or ""


def protocol_of(protocol: str | Protocol) -> Protocol:
    """Return a protocol by name, or a `Protocol` as it is."""
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise ValueError(f"there is no protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


def export(
    sets: Mapping[str, RowSet],
    protocol: str | Protocol,
    out: str | Path,
    *,
    sources: RowSet | None = None,
    raters: int = 3,
    seed: int = 13,
) -> dict[str, Any]:
    """Write the raters' folder, and the key that tells which line is whose.

    `out/raters` is for the raters. It has `instructions.html`, and `rater-1.csv` and so on, the same lines in a different order
    for each rater, under ids that reveal no method. Keep `out/key.json`: it has the protocol, the seed, and the method, row,
    source and texts of each id. `import_` reads the filled sheets.

    Args:
        sets: {method: its rows}, see `read_rows`. Rows have the columns of the protocol's `Unit`, and `source_id` if they were
            made from other rows. A run's folder includes its source rows. `ccg_terms` reads the rows' `causal_terms`, else the
            tokens that their `edits` removed. `checkwhy_preference` takes one method: with two methods, raters would recognise the
            shared reference.
        protocol: a name of `PROTOCOLS`, or your own.
        out: the folder.
        sources: the source rows, by `id`: of race and of ccg_terms without `causal_terms`, unless a set is a run's folder; and
            the reference arguments of checkwhy_preference.
        raters: how many.
        seed: which rows, in which order, on which side.

    Returns:
        `lines` of a sheet; `shared`, how many sources are rated for every method; and `methods`. Each method has `rows`, by
        stratum if there are any, `short`, how many rows are too few, and `left_out`: {reason: rows}.

    Raises:
        ValueError: a column is missing, a method has nothing to rate, or methods disagree on a source's text or label. Also if
            sheets in the folder have answers or notes, which would be lost.
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
    protocol, folder = protocol_of(protocol), Path(out)
    if min(len(sets), raters, protocol.rows) < 1:
        raise ValueError(f"{len(sets)} sets, {raters} raters and {protocol.rows} rows: one or more of each")
    if not all(method.strip() for method in sets):
        raise ValueError("a set has no name: write METHOD=FOLDER")
    unit = unit_of(protocol)
    if unit.single and len(sets) > 1:
        raise ValueError(
            f"{protocol.name} of {', '.join(sets)}: a claim would be shown twice, and what both lines share is the reference: "
            "export each method by itself, to a folder of its own and for raters of its own"
        )
    _check_free(folder)
    by_id = None if sources is None else {str(row["id"]): row for row in read_rows(sources, unit.columns)}
    report: dict[str, Any] = {}
    lines: dict[str, list[Line]] = {}
    for method, rows in sets.items():
        own = read_sources(rows) if by_id is None and unit.needs_source(()) else by_id
        lines[method], left_out = build_lines(protocol, method, read_rows(rows, unit.columns), own, seed)
        report[method] = {"left_out": left_out}
        if not lines[method]:
            why = "; ".join(f"{n} rows: {reason}" for reason, n in left_out.items()) or "it has no rows"
            raise ValueError(f"{method}: no row can be rated by {protocol.name}: {why}")
    picked = draw(lines, protocol, seed)
    for method, counts in report.items():
        strata = [line.stratum for line in picked if line.method == method]
        counts["rows"] = {stratum or "all": strata.count(stratum) for stratum in protocol.strata or ("",)}
        counts["short"] = {stratum: protocol.rows - n for stratum, n in counts["rows"].items() if n < protocol.rows}
    items = _items(picked, protocol, seed)
    key = {
        "protocol": protocol.as_json(), "seed": seed, "raters": raters, "methods": report,
        "items": {f"item-{number:03d}": item for number, item in enumerate(items, 1)},
    }  # fmt: skip
    write(key, folder)
    shared = set.intersection(*({line.source for line in picked if line.method == method} for method in sets))
    return {"lines": len(items), "shared": len(shared), "methods": report}


def write(key: Mapping[str, Any], folder: Path) -> None:
    """Write a key (the content of `key.json`) to its folder, with the instructions and every rater's empty sheet."""
    protocol = Protocol.from_json(key["protocol"])
    (folder / RATERS).mkdir(parents=True, exist_ok=True)
    sheets = [sheet(folder, rater) for rater in range(1, key["raters"] + 1)]
    for rater, path in enumerate(sheets, 1):
        order = list(key["items"])
        random.Random(f"{key['seed']}:rater:{rater}").shuffle(order)
        empty = dict.fromkeys([*(question.name for question in protocol.asked), NOTE], "")
        rows = [{"id": item, **key["items"][item]["texts"], **empty} for item in order]
        write_sheet(path, ["id", *protocol.shows, *empty], rows)
    page = render("rating.html.jinja", package="hfcf.studies", protocol=protocol, lines=len(key["items"]), edited=())
    (folder / RATERS / INSTRUCTIONS).write_text(page, encoding="utf-8")
    for old in (folder / RATERS).glob("rater-*.csv"):
        if old not in sheets:
            old.unlink()
    (folder / KEY).write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sheet(folder: Path, rater: int) -> Path:
    """Return the path of a rater's sheet."""
    return folder / RATERS / f"rater-{rater}.csv"


def build_lines(
    protocol: Protocol, method: str, rows: Iterable[Row], sources: Mapping[str, Row] | None, seed: int
) -> tuple[list[Line], dict[str, int]]:
    """Return one line for each source of a method's rows, and {reason: number of rows that can't be rated}."""
    unit = unit_of(protocol)
    best: dict[str, tuple[str, Line]] = {}
    reasons: Counter[str] = Counter()
    for number, row in enumerate(rows):
        _check_row(protocol, unit, f"{method}, row {number}", row, sources is not None)
        row_id = str(row["id"])
        source_id = str(row.get("source_id") or row_id)
        if sources is not None and source_id not in sources and unit.needs_source(row):
            reasons["its source is not among the sources"] += 1
            continue
        source = None if sources is None else sources.get(source_id)
        side = random.Random(f"{seed}:side:{method}:{row_id}").choice("12")
        try:
            line = Line(method, row_id, source_id, show(protocol, row, source, side))
        except ValueError as error:
            reasons[str(error)] += 1
            continue
        rank = _rank(seed, row_id)
        if source_id in best:
            reasons["another row of its source was drawn"] += 1
        if source_id not in best or rank < best[source_id][0]:
            best[source_id] = rank, line
    return [line for _, line in best.values()], dict(reasons.most_common())


def draw(lines: Mapping[str, Sequence[Line]], protocol: Protocol, seed: int) -> list[Line]:
    """Draw the protocol's rows of each method and stratum, in any order of `lines`; sources that most methods have come first."""
    methods_of = Counter(line.source for own in lines.values() for line in own)
    if unit_of(protocol).shared:
        first = sorted(methods_of, key=lambda source: (-methods_of[source], _rank(seed, source)))[: protocol.rows]
        return [line for own in lines.values() for line in own if line.source in first]
    picked = []
    for own in lines.values():
        order = sorted(own, key=lambda line: (-methods_of[line.source], _rank(seed, line.source)))
        for stratum in protocol.strata or ("",):
            picked += [line for line in order if line.stratum == stratum][: protocol.rows]
    return picked


def _items(picked: list[Line], protocol: Protocol, seed: int) -> list[dict[str, Any]]:
    """Return the key's items in a random order: a line each, or one line for all methods if raters mark words in the source."""
    items = _shared_items(picked) if unit_of(protocol).shared else _separate_items(picked, protocol)
    random.Random(f"{seed}:items").shuffle(items)
    return items


def _separate_items(picked: list[Line], protocol: Protocol) -> list[dict[str, Any]]:
    strata: dict[str, str] = {}
    for line in picked:
        if (other := strata.setdefault(line.source, line.stratum)) != line.stratum:
            labels = f"{other} for one method and {line.stratum} for {line.method}"
            raise ValueError(f"the source {line.source!r} is {labels}: {_CURE}")
    return [
        {
            "method": line.method, "row": line.row, "source": line.source, "stratum": line.stratum, **line.display.extras,
            "texts": {column: line.display.texts[column] for column in protocol.shows},
        }
        for line in picked
    ]  # fmt: skip


def _shared_items(picked: list[Line]) -> list[dict[str, Any]]:
    items: dict[str, dict[str, Any]] = {}
    for line in picked:
        source, texts = line.source, line.display.texts
        words = {name: line.display.extras[name] for name in ("tokens", "free")}
        item = items.setdefault(source, {"source": source, "stratum": "", **words, "terms": {}, "texts": texts})
        if item["texts"] != texts:
            methods = f"{next(iter(item['terms']))} and {line.method}"
            raise ValueError(f"{methods} show other texts for the source {source!r}: {_CURE}")
        item["terms"][line.method] = line.display.extras["terms"]
    return list(items.values())


def _check_free(folder: Path) -> None:
    """Refuse to overwrite answers and notes: `write` replaces every sheet in the folder."""
    sheets = sorted((folder / RATERS).glob("rater-*.csv"))
    if not sheets:
        return
    if not (folder / KEY).exists():
        raise ValueError(f"{sheets[0]} needs {KEY}, which is not there: give another folder, or move the file")
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    asked = Protocol.from_json(key["protocol"]).asked
    names, needed = ([question.name for question in asked if not (question.optional and old)] for old in (False, True))
    for path in sheets:
        if n := sum(bool(cells.get(name, "").strip()) for _, cells in read_sheet(path, needed) for name in (*names, NOTE)):
            raise ValueError(f"{path} holds {n} answers and notes, which would be lost: give another folder, or move the file")


def _check_row(protocol: Protocol, unit: Unit, where: str, row: Row, sourced: bool) -> None:
    if missing := [column for column in unit.columns if column not in row]:
        columns = ", ".join(unit.columns)
        raise ValueError(f"{where}: there is no column {missing[0]!r}; {protocol.name} reads {columns}; rename yours")
    if not sourced and unit.needs_source(row):
        raise ValueError(
            f"{where}: {protocol.name} shows a row next to its source, and this set has no source rows: give them as "
            "sources (--sources)"
        )


def _rank(seed: int, row_id: Any) -> str:
    return hashlib.sha256(f"{seed}:{row_id}".encode()).hexdigest()
