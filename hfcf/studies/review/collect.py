"""Read filled reviews, decide on each row, and write the rows that people keep, with what they changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfcf.studies.human.export import KEY, RATERS
from hfcf.studies.human.protocol import Protocol
from hfcf.studies.human.summary import ratings_table, summarise
from hfcf.studies.review.criteria import DECISION, OF_STRUCTURE
from hfcf.studies.review.decisions import Decision, Review, Reviews, decide
from hfcf.studies.review.edits import find_review_edits
from hfcf.studies.review.entry import ASKED, NOTE, SHOWN, Entry, is_complete, parse_answers, parse_version, to_entry
from hfcf.studies.review.forms import FORMS, Filled
from hfcf.studies.review.sets import find_sets, keep_whole, missing_labels, share_claims, unite_claims
from hfcf.studies.review.version import Version

REVIEWED, REJECTED, RESULTS, TABLE = "reviewed.jsonl", "rejected.jsonl", "review.json", "review.md"
STAGE = "review"
_SHOWN_PROBLEMS = 10


def import_(
    out: str | Path, *, partial: bool = False, users: Sequence[str] = (), complete_sets: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Read the filled forms of a folder; write `reviewed.jsonl`, `rejected.jsonl`, `review.json` and `review.md` into it.

    A row that people keep has their claim, evidence and structure, and its other columns as they were. Only `stale` is empty:
    people checked the conclusions. It has two more columns: `status`, accepted by "review", and `reviews`. The last entry of
    `reviews` is this review, after the entries of earlier imports. An entry has `people`, how many reviewed the row, and
    `answers`, how many of them said yes to each question. It also has `edits`, from the row as it was exported
    (`hfcf.studies.review.edits`). A row that they drop is in `rejected.jsonl` as it was, with the reason in `status`. Rows with
    the same claim, as a set of CheckWhy has, keep one claim. What a person writes in one row counts for all
    (`hfcf.studies.review.sets`). A row's own `edits`, which a system made, describe it before the review.

    Args:
        out: the folder of `export`.
        partial: reject what is not decided yet, with the reason, instead of raising.
        users: of Argilla, in their order; the last user resolves disagreements.
        complete_sets: keep a set only if a row of it is kept for each label that the review has, as the paper's 6,532 sets do.

    Returns:
        The content of `review.json`: the results of `hfcf.studies.human.summary.summarise` for the answers, by label of the rows,
        with α and Fleiss' κ. It also has `rows`: {kept, edited, dropped, open, left_out}, `sets`: {all, whole}, `reasons` and
        `notes`.

    Raises:
        FileNotFoundError: the folder has no key.
        ValueError: something can't be read, a kept version is not legal, or rows are not decided (unless `partial`). The message
            has the first ten errors, each with its place.

    >>> import tempfile
    >>> from hfcf.studies.review.export import export
    >>> row = {"id": "r", "claim": "It is wet.", "evidence": [{"title": "", "text": "It rained."}], "label": "SUPPORTS",
    ...        "evidence_info": [{"id": "s1", "useful": True, "leaf": True}],
    ...        "structure": [{"premises": ["s1"], "conclusion": "claim"}]}
    >>> out = Path(tempfile.mkdtemp())
    >>> report = export([row], out, form="jsonl", people=1)
    >>> form = out / "raters" / "rater-1.jsonl"
    >>> filled = form.write_text(form.read_text("utf-8").replace("is wet", "gets wet").replace("null", "1"), "utf-8")
    >>> import_(out)["rows"]
    {'kept': 1, 'edited': 1, 'dropped': 0, 'open': 0, 'left_out': 0}
    >>> json.loads((out / "reviewed.jsonl").read_text("utf-8"))["claim"]
    'It gets wet.'
    """
    folder = Path(out)
    if not (folder / KEY).exists():
        raise FileNotFoundError(f"there is no {folder / KEY}: hfcf review export writes it; import the reviews in the same folder")
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    rows = {str(row["id"]): row for row in key["rows"]}
    reviews, answers, notes, problems = _read(folder, key, rows, users)
    sets = find_sets(rows)
    problems += share_claims(reviews, rows, sets)
    decisions = {row_id: decide([review for review in own if review], key["raters"]) for row_id, own in reviews.items()}
    undecided = [row_id for row_id, decision in decisions.items() if decision.open]
    if not partial:
        problems += [f"{row_id} is open: {decisions[row_id].reason}" for row_id in undecided]
    if problems:
        more = f"\n… and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        cure = "\nlet people complete their reviews, or leave open rows out with --partial" if undecided and not partial else ""
        raise ValueError("\n".join(problems[:_SHOWN_PROBLEMS]) + more + cure)
    decisions |= {row_id: Decision(None, reason) for row_id, reason in key["left_out"].items()}
    decisions = unite_claims(decisions, reviews, sets)
    whole = [not missing_labels(decisions, rows, members) for members in sets]
    if complete_sets:
        decisions = keep_whole(decisions, rows, sets)
    kept = [_make_row(row, decisions[row_id], reviews.get(row_id, [])) for row_id, row in rows.items() if decisions[row_id].version]
    dropped = [_add_status(row, decisions[row_id].reason) for row_id, row in rows.items() if not decisions[row_id].version]
    results = _summarise(key, rows, answers) | {
        "rows": {
            "kept": len(kept), "edited": sum(bool(row["reviews"][-1]["edits"]) for row in kept),
            "dropped": len(dropped) - len(undecided) - len(key["left_out"]),
            "open": len(undecided), "left_out": len(key["left_out"]),
        },
        "sets": {"all": len(sets), "whole": sum(whole)},
        "reasons": dict(Counter(row["status"]["reason"] for row in dropped).most_common()), "notes": notes, "answers": answers,
    }  # fmt: skip
    for name, written in ((REVIEWED, kept), (REJECTED, dropped)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in written)
        (folder / name).write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
    report = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / RESULTS).write_text(report, encoding="utf-8", errors="backslashreplace")
    (folder / TABLE).write_text(_write_table(results), encoding="utf-8")
    return results


def _read(
    folder: Path, key: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], users: Sequence[str]
) -> tuple[Reviews, dict[str, dict[str, list[int | None]]], list[dict[str, Any]], list[str]]:
    """Return complete reviews, all answers, notes and errors of a folder's forms."""
    people = key["raters"]
    written = {row_id: to_entry(row) for row_id, row in rows.items() if row_id not in key["left_out"]}
    reviews: Reviews = {row_id: [None] * people for row_id in written}
    answers: dict[str, dict[str, list[int | None]]] = {
        row_id: {name: [None] * people for name in ASKED} for row_id in written
    }  # fmt: skip
    notes: list[dict[str, Any]] = []
    problems: list[str] = []
    places: dict[tuple[int, str], str] = {}
    for filled in FORMS[key["form"]].read(folder / RATERS, people, written, users):
        try:
            entry = _check(filled, written, places)
            row = rows[str(entry["id"])]
            review = _read_review(entry, row)
        except ValueError as error:
            problems.append(f"{filled.place}: {error}")
            continue
        for name, value in review.answers.items():
            answers[str(entry["id"])][name][filled.person] = value
        if isinstance(entry.get(NOTE), str) and entry[NOTE].strip():
            notes.append({"rater": filled.person + 1, "id": entry["id"], "note": entry[NOTE].strip()})
        needed = [name for name in ASKED if name != OF_STRUCTURE or review.version.structure.steps]
        if is_complete(review.answers, needed):
            reviews[str(entry["id"])][filled.person] = review
    return reviews, answers, notes, problems


def _check(filled: Filled, written: Mapping[str, Entry], places: dict[tuple[int, str], str]) -> Entry:
    """Check that a filled entry is of a row, comes once, and has the written texts."""
    if filled.unreadable:
        raise ValueError(filled.unreadable)
    entry = filled.entry
    row_id = str(entry.get("id"))
    if row_id not in written:
        raise ValueError(f"there is no row {row_id!r}: is this the form of another folder?")
    if (first := places.setdefault((filled.person, row_id), filled.place)) != filled.place:
        raise ValueError(f"{row_id} is also in {first}: delete one of them")
    if missing := next((name for name in ("claim", "evidence", "structure") if name not in entry), None):
        raise ValueError(f"{row_id} has no {missing}")
    for name in SHOWN:
        if name in entry and entry[name] != written[row_id][name]:
            raise ValueError(
                f"the {name} of {row_id} was altered: {entry[name]!r} instead of {written[row_id][name]!r}; put it back"
            )
    return entry


def _read_review(entry: Entry, row: Mapping[str, Any]) -> Review:
    """Read a review; a review that keeps a row must leave it legal."""
    if parse_answers(entry, structured=True)[DECISION] != 1:
        # Nobody has to repair what is dropped, and its texts count for nothing.
        return Review(Version.from_row(row), parse_answers(entry, structured=bool(row["structure"])))
    try:
        version = parse_version(entry, row)
    except ValueError as error:
        raise ValueError(f"{row['id']}: {error}") from None
    if wrong := version.problems(row):
        raise ValueError(f"{row['id']} is kept and not legal: {'; '.join(wrong)}")
    return Review(version, parse_answers(entry, structured=bool(version.structure.steps)))


def _make_row(row: Mapping[str, Any], decision: Decision, reviews: Iterable[Review | None]) -> dict[str, Any]:
    assert decision.version is not None
    columns = decision.version.to_columns(row)
    present = [review for review in reviews if review]
    answers = [{"name": name, "yes": sum(review.answers[name] == 1 for review in present)} for name in ASKED]
    checked: dict[str, Any] = {"stale": []} if row.get("stale") else {}
    review = {"people": len(present), "answers": answers, "edits": find_review_edits(row, columns)}
    return {**_add_status(row, None), **columns, **checked, "reviews": [*(row.get("reviews") or []), review]}


def _add_status(row: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {**row, "status": {"accepted": reason is None, "stage": STAGE, "reason": reason}}


def _summarise(key: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Summarise the answers as in a human evaluation with one method."""
    items = {row_id: {"method": "rows", "source": row_id, "stratum": rows[row_id]["label"]} for row_id in answers}
    labels = dict.fromkeys(item["stratum"] for item in items.values())
    protocol = replace(Protocol.from_json(key["protocol"]), strata=tuple(labels))
    return summarise({**key, "protocol": protocol.as_json(), "methods": ["rows"], "items": items}, answers)


def _write_table(results: Mapping[str, Any]) -> str:
    counts = results["rows"]
    page = ratings_table({**results, "missing": {}}).replace("# Human evaluation:", "# Review:", 1)
    reasons = "".join(f"- {reason}: {n}\n" for reason, n in results["reasons"].items())
    decisions = (
        f"Kept: {counts['kept']} rows, {counts['edited']} of them edited. Dropped: {counts['dropped']}. "
        f"Open: {counts['open']}. Not reviewable: {counts['left_out']}. "
        f"Sets with a kept row of each label: {results['sets']['whole']} of {results['sets']['all']}."
    )
    return "\n\n".join([page.rstrip(), "## Decisions", decisions, *([reasons.rstrip()] if reasons else [])]) + "\n"
