"""Write rows for people to review: a form for each of them, and the rows as they were."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hfcf.corpora.custom.rows import RowSet, read_rows
from hfcf.hub.render import render
from hfcf.studies.human.export import INSTRUCTIONS, KEY, RATERS
from hfcf.studies.review.criteria import FILTER
from hfcf.studies.review.entry import EDITED, to_entry
from hfcf.studies.review.forms import FORMS
from hfcf.studies.review.version import COLUMNS
from hfcf.tasks.verification import TASK as VERIFICATION

GUIDE = (
    "Evidence has a piece on each line: its name, its role in brackets (leaf: a step starts from it; intermediate: a step "
    "concludes it; distractor: no step uses it), and its text. Change a text or a role, delete a line, or add one under a new "
    "name. The structure has the steps: one_to_one_linking(A, B), multiple_to_one_linking([A, B], C), "
    "one_to_multiple_linking(A, [B, C]), with the names of the evidence, and Claim, in which all steps must end."
)


def export(
    rows: RowSet, out: str | Path, *, form: str = "page", people: int = 3, seed: int = 13, limit: int | None = None
) -> dict[str, Any]:
    """Write the folder `out/raters` for the people, and `out/key.json`, which `import_` needs.

    Each person has all rows, in an order of their own. The paper's people edit first, and then other people filter: export, let
    the first people edit, import; then export `reviewed.jsonl` for the second group.

    Args:
        rows: with `COLUMNS` and unique ids: a `Dataset`, rows, a file (`.parquet`, `.jsonl`), or the folder of a run.
        out: the folder.
        form: "page": an HTML page for each person, which saves `rater-1.jsonl` and so on, for the same folder. "jsonl", "csv":
            `rater-1.jsonl`, `rater-1.csv`, to be filled. "argilla": `records.json`, for `dataset.records.from_json`; replace it
            with what `dataset.records.to_json` writes then.
        people: how many review; the paper's are two, and a third who resolves where they differ.
        seed: of the orders.
        limit: the first rows alone.

    Returns:
        `rows`, how many rows there are to review, and `left_out`: {reason: rows} that can't be worked on. `import_` rejects them
        with that reason.

    Raises:
        ValueError: a column is missing, an id is there twice, or the folder has forms, which may be filled.

    >>> import tempfile
    >>> row = {"id": "r", "claim": "It is wet.", "evidence": [{"title": "", "text": "It rained."}], "label": "SUPPORTS",
    ...        "evidence_info": [{"id": "s1", "useful": True, "leaf": True}],
    ...        "structure": [{"premises": ["s1"], "conclusion": "claim"}]}
    >>> out = Path(tempfile.mkdtemp())
    >>> export([row], out, form="csv", people=1)
    {'rows': 1, 'left_out': {}}
    >>> print((out / "raters" / "rater-1.csv").read_text("utf-8-sig").splitlines()[1])
    "r","SUPPORTS","","","It is wet.","s1 [leaf] It rained.","one_to_one_linking(s1, Claim)","","","","",""
    """
    if form not in FORMS:
        raise ValueError(f"there is no form {form!r}: choose one of {', '.join(FORMS)}")
    if people < 1 or (limit is not None and limit < 1):
        raise ValueError(f"{people} people and {limit} rows: one or more of each")
    folder = Path(out)
    if old := next(iter(sorted((folder / RATERS).glob("*"))), None):
        raise ValueError(f"there is {old}, which may be filled: give another folder, or move the files")
    every = list(islice(read_rows(rows, COLUMNS, on_error="reject"), limit))
    _check(every)
    reasons = {str(row["id"]): why for row in every if (why := _problem(row))}
    entries = [to_entry(row) for row in every if str(row["id"]) not in reasons]
    if not entries:
        raise ValueError(f"no row can be reviewed: {'; '.join(sorted(set(reasons.values()))) or 'there are none'}")
    key = {"protocol": FILTER.as_json(), "form": form, "raters": people, "seed": seed, "rows": every, "left_out": reasons}
    text = json.dumps(key, ensure_ascii=False, default=_refuse) + "\n"
    (folder / RATERS).mkdir(parents=True, exist_ok=True)
    (folder / KEY).write_text(text, encoding="utf-8", errors="backslashreplace")
    orders = []
    for person in range(1, people + 1):
        orders.append(list(entries))
        random.Random(f"{seed}:rater:{person}").shuffle(orders[-1])
    FORMS[form].write(folder / RATERS, orders)
    if form == "csv":  # a page has them itself
        protocol = {**FILTER.as_json(), "guide": f"{FILTER.guide} {GUIDE}"}
        page = render(
            "rating.html.jinja", package="hfcf.studies", protocol=FILTER.from_json(protocol), lines=len(entries), edited=EDITED
        )
        (folder / RATERS / INSTRUCTIONS).write_text(page, encoding="utf-8")
    return {"rows": len(entries), "left_out": dict(Counter(reasons.values()).most_common())}


def _check(rows: Iterable[Mapping[str, Any]]) -> None:
    ids: set[str] = set()
    for number, row in enumerate(rows):
        if missing := [column for column in COLUMNS if column not in row]:
            raise ValueError(f"row {number} has no column {missing[0]!r}; a review reads {', '.join(COLUMNS)}")
        if str(row["id"]) in ids:
            raise ValueError(f"row {number}: the id {row['id']!r} is there twice: give each row its own")
        ids.add(str(row["id"]))


def _problem(row: Mapping[str, Any]) -> str | None:
    """Say why people can't review a row, or None: an illegal structure is what they are to correct."""
    if (status := row.get("status")) and status["accepted"] is False:
        return str(status["reason"])
    if unsound := VERIFICATION.validate(row):
        return unsound
    try:
        # Half of a surrogate pair, which a broken source file can hold, has no place in UTF-8.
        json.dumps(to_entry(row), ensure_ascii=False).encode()
    except (ValueError, KeyError, TypeError) as error:
        return f"it can't be shown: {error}"
    return None


def _refuse(value: Any) -> Any:
    raise ValueError(f"a row holds a {type(value).__name__}, which JSON can't: leave its column out")
