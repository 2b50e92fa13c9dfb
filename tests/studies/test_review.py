"""Review of argument structures: forms out and back, who decides, what comes of a row, and the commands."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from review_rows import YES, fill, kept, row, undecidable
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.hub.folder import write_parquet
from hfcf.studies.human.agreement import kappa
from hfcf.studies.human.export import KEY, RATERS
from hfcf.studies.review.collect import REJECTED, RESULTS, REVIEWED, TABLE, import_
from hfcf.studies.review.decisions import Review, decide
from hfcf.studies.review.edits import apply_review, find_review_edits, revert_review
from hfcf.studies.review.entry import parse_pieces, parse_version, to_entry, to_texts
from hfcf.studies.review.export import export
from hfcf.studies.review.forms import FORMS, RECORDS
from hfcf.studies.review.version import Piece, Version, name_pieces
from hfcf.studies.spreadsheets import write_sheet
from hfcf.tasks.structures.model import CLAIM, Structure

ROWS = [row("a"), row("b", "REFUTES"), undecidable("c")]
OWN = ("claim", "evidence", "evidence_info", "structure")


def own(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in OWN}


def edit(entry: dict[str, Any]) -> dict[str, Any]:
    """Correct the claim and a piece, delete the distractor, add a premise, and rewrite the steps."""
    if not entry["structure"]:
        return YES
    evidence = [{**piece, "text": piece["text"].replace("in Cork", "all night")} for piece in entry["evidence"][:3]]
    new = {"id": "Sentence5", "role": "leaf", "title": "", "text": "No one put a bucket there."}
    program = "multiple_to_one_linking([sent1, sent2, Sentence5], int1)\none_to_one_linking(int1, Claim)"
    return {**YES, "claim": entry["claim"].replace("Rain", "Heavy rain"), "evidence": [*evidence, new], "structure": program}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_untouched_comes_back_equal(form: str, tmp_path: Path) -> None:
    messy = row("d", claim='=1+1 of a "claim";\n-x', evidence_info=[])
    messy["evidence"] = [
        {"title": "T", "text": text} for text in ("'quoted\nsecond line", "s9 [leaf] like a line", "100 %", " spaced ")
    ]
    messy["evidence_info"] = [{"id": name, "useful": True, "leaf": True} for name in ("1", "é", "for", "Sentence 2")]
    messy["structure"] = [{"premises": ["1", "é", "for", "Sentence 2"], "conclusion": CLAIM}]
    rows = [*ROWS, messy]
    export(rows, tmp_path, form=form)
    folder = tmp_path / RATERS
    answers = dict.fromkeys(YES, "1")
    if form in ("page", "jsonl"):
        for person in (1, 2):
            entries = [{**to_entry(one), **YES} for one in rows]
            (folder / f"rater-{person}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    elif form == "csv":
        for person in (1, 2):
            path = folder / f"rater-{person}.csv"
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = [{**line, **answers} for line in csv.DictReader(file)]
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(lines[0]), delimiter=";", lineterminator="\r\n")
                writer.writeheader()
                writer.writerows(lines)
    else:
        records = json.loads((folder / RECORDS).read_text(encoding="utf-8"))
        for record in records:
            record["responses"] = {name: [{"value": "1", "user_id": user} for user in "uv"] for name in YES}
        (folder / RECORDS).write_text(json.dumps(records), encoding="utf-8")
    report = import_(tmp_path, users=["u", "v"] if form == "argilla" else ())
    assert report["rows"] == {"kept": 4, "edited": 0, "dropped": 0, "open": 0, "left_out": 0}
    for one in rows:
        assert own(kept(tmp_path)[one["id"]]) == own(one)
    assert kept(tmp_path, REJECTED) == {}


@pytest.mark.parametrize("form", ["jsonl", "csv", "argilla"])
def test_edits_come_back_with_where_they_come_from(form: str, tmp_path: Path) -> None:
    export(ROWS, tmp_path, form=form, people=2)
    folder = tmp_path / RATERS
    edited = {one["id"]: {**to_entry(one), **edit(to_entry(one))} for one in ROWS}
    if form == "jsonl":
        for person in (1, 2):
            fill(tmp_path, person, edit)
    elif form == "csv":
        for person in (1, 2):
            write_sheet(folder / f"rater-{person}.csv", list(to_texts(edited["a"])), map(to_texts, edited.values()))
    else:
        records = json.loads((folder / RECORDS).read_text(encoding="utf-8"))
        for record in records:
            texts = to_texts(edited[record["id"]])
            told = {
                **{f"edited_{name}": texts[name] for name in ("claim", "evidence", "structure")},
                **{name: texts[name] for name in YES},
            }
            record["responses"] = {name: [{"value": value, "user_id": user} for user in "uv"] for name, value in told.items()}
        (folder / RECORDS).write_text(json.dumps(records), encoding="utf-8")
    report = import_(tmp_path, users=["u", "v"] if form == "argilla" else ())
    assert report["rows"] == {"kept": 3, "edited": 2, "dropped": 0, "open": 0, "left_out": 0}
    for one in ROWS[:2]:
        back = kept(tmp_path)[one["id"]]
        assert back["claim"] == f"Heavy rain made the floor {one['id']} wet."
        assert [piece["text"] for piece in back["evidence"]] == [
            "It rained all night.", "The roof of the hall leaks.", "The floor of the hall got wet.", "No one put a bucket there.",
        ]  # fmt: skip
        assert [piece["title"] for piece in back["evidence"]] == ["Cork", "", "", ""]
        assert [info["id"] for info in back["evidence_info"]] == ["sent1", "sent2", "int1", "Sentence5"]
        assert back["structure"][0] == {"premises": ["sent1", "sent2", "Sentence5"], "conclusion": "int1"}
        assert back["status"] == {"accepted": True, "stage": "review", "reason": None}
        [review] = back["reviews"]
        assert (review["people"], review["answers"][3]) == (2, {"name": "acceptability", "yes": 2})
        assert apply_review(one, review["edits"]) == own(back)
        assert revert_review(back, review["edits"]) == own(one)
        spans = [
            (edit["field"], edit["before"], edit["after"]) for edit in review["edits"] if edit["field"] in ("claim", "evidence")
        ]
        assert spans[:2] == [("claim", "Rain", "Heavy rain"), ("evidence", " in Cork", " all night")]


def test_rows_are_read_from_wherever_they_are(tmp_path: Path) -> None:
    write_parquet(Dataset.from_list(ROWS), tmp_path / "run" / "data" / "default", "train")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ROWS), encoding="utf-8")
    keys = []
    for number, rows in enumerate((tmp_path / "run", tmp_path / "rows.jsonl", Dataset.from_list(ROWS))):
        assert export(rows, tmp_path / str(number)) == {"rows": 3, "left_out": {}}
        keys.append((tmp_path / str(number) / KEY).read_text(encoding="utf-8"))
        assert sorted(path.name for path in (tmp_path / str(number) / RATERS).iterdir()) == [f"rater-{i}.html" for i in (1, 2, 3)]
    assert keys[0] == keys[1] == keys[2]


def version(claim: str = "c", texts: str = "ab", *steps: tuple[tuple[str, ...], str]) -> Version:
    made = Structure(tuple(steps))  # type: ignore[arg-type]
    return Version(claim, tuple(Piece(f"s{i}", "leaf", text) for i, text in enumerate(texts)), made)


def says(what: Version, **answers: int) -> Review:
    return Review(what, {**YES, **answers})


def test_two_who_agree_decide_and_a_third_resolves() -> None:
    same, other, third = version("c"), version("d"), version("e")
    assert decide([says(same), says(same)]).version == same
    assert decide([says(same), says(other)])[1:] == ("they differ in the claim", True)
    assert decide([says(same, fluency=0), says(same)]) == (None, "they differ in fluency", True)
    assert decide([says(same)]) == (None, "1 of 2 people reviewed it", True)
    assert decide([says(same), says(other), says(other)]).version == other
    assert decide([says(other), says(other), says(same)]).version == other
    assert decide([says(same), says(other), says(third)]).version == third
    assert decide([says(same)], people=1).version == same


def test_what_most_people_drop_is_dropped_and_texts_of_those_who_drop_it_do_not_count() -> None:
    no = {"acceptability": 0, "validity": 0}
    assert decide([says(version(), **no), says(version("d"), **no)]) == (None, "people drop it: validity", False)
    assert decide([says(version(), **no), says(version()), says(version(), acceptability=0)]) == (None, "people drop it", False)
    found = decide([says(version("old"), **no), says(version("new")), says(version("new"))])
    assert found.version == version("new")
    assert decide([says(version("one")), says(version("two")), says(version("old"), **no)]).version == version("two")


def test_a_structure_belongs_to_its_evidence() -> None:
    one = version("c", "ab", (("s0",), CLAIM))
    other = version("c", "abc", (("s0", "s2"), CLAIM))
    another = version("c", "abc", (("s0", "s1", "s2"), CLAIM))
    found = decide([says(one), says(other), says(another)]).version
    assert found == another
    assert decide([says(one), says(one), says(other)]).version == one
    # Steps in another order are the same structure.
    steps = ((("s0",), "s1"), (("s1",), CLAIM))
    assert decide([says(version("c", "ab", *steps)), says(version("c", "ab", *steps[::-1]))]).version is not None


def test_agreement_and_decisions_are_reported(tmp_path: Path) -> None:
    rows = [row(f"r{i}", "SUPPORTS" if i % 2 else "REFUTES") for i in range(8)] + [undecidable("n")]
    export(rows, tmp_path, form="jsonl")
    votes = {f"r{i}": [int(i > 1), int(i > 2), int(i > 3)] for i in range(8)} | {"n": [1, 1, 1]}
    for person in (1, 2, 3):
        fill(tmp_path, person, lambda entry, person=person: {**YES, "acceptability": votes[entry["id"]][person - 1], "note": "hm"})
    found = import_(tmp_path)
    assert found["agreement"]["acceptability"]["kappa"] == round(kappa(list(votes.values())) or 0, 5)
    assert found["agreement"]["validity"]["ratings"] == 24  # not of the row without a structure
    assert found["rows"] == {"kept": 6, "edited": 0, "dropped": 3, "open": 0, "left_out": 0}
    assert set(kept(tmp_path)) == {"r3", "r4", "r5", "r6", "r7", "n"}
    assert {one["status"]["reason"] for one in kept(tmp_path, REJECTED).values()} == {"people drop it"}
    assert found["methods"]["rows"]["acceptability"]["NOT ENOUGH INFO"]["rows"] == 1
    assert {"rater": 2, "id": "n", "note": "hm"} in found["notes"]
    table = (tmp_path / TABLE).read_text(encoding="utf-8")
    assert f"| acceptability | nominal | 27 | {found['agreement']['acceptability']['alpha']:.3f} |" in table
    assert "Kept: 6 rows, 0 of them edited. Dropped: 3." in table
    assert json.loads((tmp_path / RESULTS).read_text(encoding="utf-8")) == found == import_(tmp_path)


def test_a_third_who_only_resolves_is_enough_and_no_part_of_kappa(tmp_path: Path) -> None:
    rows = [row(f"r{i}") for i in range(4)]
    export(rows, tmp_path, form="jsonl")
    fill(tmp_path, 1, lambda entry: {**YES, "acceptability": int(entry["id"] != "r0")})
    fill(tmp_path, 2, lambda entry: {**YES, "acceptability": int(entry["id"] not in ("r0", "r1"))})
    with pytest.raises(ValueError, match=r"r1 is open: they differ in acceptability\n.*--partial"):
        import_(tmp_path)
    assert not (tmp_path / REVIEWED).exists()
    found = import_(tmp_path, partial=True)
    assert found["rows"] == {"kept": 2, "edited": 0, "dropped": 1, "open": 1, "left_out": 0}
    assert kept(tmp_path, REJECTED)["r1"]["status"]["reason"] == "they differ in acceptability"
    fill(tmp_path, 3, lambda entry: YES if entry["id"] == "r1" else {})
    found = import_(tmp_path)
    assert set(kept(tmp_path)) == {"r1", "r2", "r3"}
    assert found["agreement"]["acceptability"]["kappa"] == round(kappa([(0, 0), (1, 0), (1, 1), (1, 1)]) or 0, 5)


def causal_set(name: str) -> list[dict[str, Any]]:
    """Three rows with one claim."""
    claim = f"Rain made the hall {name} wet."
    made = [row(f"{name}-sup"), row(f"{name}-ref", "REFUTES"), undecidable(f"{name}-nei")]
    return [{**one, "claim": claim, "group_id": name} for one in made]


def test_a_claim_is_edited_once_for_its_set(tmp_path: Path) -> None:
    """A person corrects the claim in one row; the other rows of the set must not keep the old one."""
    rows = [*causal_set("x"), *causal_set("y")]
    export(rows, tmp_path, form="jsonl", people=2)
    better = "Heavy rain made the hall x wet."
    for person in (1, 2):  # each of them in another row
        where = ("x-sup", "x-nei")[person - 1]
        fill(tmp_path, person, lambda entry, where=where: {**YES, **({"claim": better} if entry["id"] == where else {})})
    found = import_(tmp_path)
    assert found["rows"] == {"kept": 6, "edited": 3, "dropped": 0, "open": 0, "left_out": 0}
    assert {one["claim"] for name, one in kept(tmp_path).items() if name[0] == "x"} == {better}
    assert {one["claim"] for name, one in kept(tmp_path).items() if name[0] == "y"} == {"Rain made the hall y wet."}
    fill(tmp_path, 1, lambda entry: {"claim": "Snow did."} if entry["id"] == "x-ref" else {})
    with pytest.raises(ValueError, match=r"rater 1 writes two claims for the set of x-sup and x-ref, .*Heavy rain.*Snow did"):
        import_(tmp_path)


def test_a_third_who_resolves_one_row_does_not_split_the_set(tmp_path: Path) -> None:
    export(causal_set("x"), tmp_path, form="jsonl")
    better = "Heavy rain made the hall x wet."
    fill(tmp_path, 1, lambda entry: {**YES, "claim": better})
    fill(tmp_path, 2, lambda entry: {**YES, "claim": better, "acceptability": int(entry["id"] != "x-ref")})
    fill(tmp_path, 3, lambda entry: {**YES, "claim": "The third's own."} if entry["id"] == "x-ref" else {})
    assert import_(tmp_path)["rows"]["kept"] == 3
    assert {one["claim"] for one in kept(tmp_path).values()} == {better}  # two of the three wrote it


def test_only_whole_sets_can_be_kept(tmp_path: Path) -> None:
    """The paper's 6,532 sets have a row of each label: of a set that loses one, the others go as well."""
    rows = [*causal_set("x"), *causal_set("y"), *causal_set("z")[:2]]
    export(rows, tmp_path, form="jsonl", people=2)
    for person in (1, 2):
        fill(tmp_path, person, lambda entry: {**YES, "acceptability": int(entry["id"] != "y-ref")})
    found = import_(tmp_path)
    assert (found["rows"]["kept"], found["sets"]) == (7, {"all": 3, "whole": 1})
    answer = CliRunner().invoke(app, ["review", "import", str(tmp_path), "--complete-sets"])
    assert answer.exit_code == 0, answer.exception
    assert set(kept(tmp_path)) == {"x-sup", "x-ref", "x-nei"}
    reasons = {name: one["status"]["reason"] for name, one in kept(tmp_path, REJECTED).items()}
    assert reasons["y-ref"] == "people drop it"
    assert reasons["y-sup"] == "its set is not whole: no row of it that is REFUTES is kept"
    assert reasons["z-sup"] == "its set is not whole: no row of it that is NOT ENOUGH INFO is kept"
    assert "Sets with a kept row of each label: 1 of 3." in (tmp_path / TABLE).read_text(encoding="utf-8")


def bad_evidence(entry: dict[str, Any], **piece: Any) -> dict[str, Any]:
    return {"evidence": [{**entry["evidence"][0], **piece}, *entry["evidence"][1:]]}


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda entry: {"structure": "one_to_one_linking(sent1, Claim)"}, r"line 1: a .*not legal: sent2 is useful and not used"),
        (lambda entry: {"structure": "one_to_one_linking(sent9, Claim)"}, r"line 1: a: the structure, line 1, column 1: .*sent9"),
        (lambda entry: {"structure": "__import__('os').system('x')"}, r"the structure, line 1"),
        (lambda entry: {"structure": ""}, "a is kept and not legal: there is no step"),
        (lambda entry: {"structure": entry["structure"] + '\nnew = FACT("It is so.")'}, r"declares new: add it to the evidence"),
        (lambda entry: {"structure": entry["structure"] + '\nprint("REFUTES")'}, r"prints REFUTES.*label is SUPPORTS"),
        (lambda entry: {"structure": None}, r"the structure must be a text, got NoneType"),
        (lambda entry: {"claim": "  "}, "the claim is empty"),
        (lambda entry: {"label": "REFUTES"}, r"label of a was altered: 'REFUTES' instead of 'SUPPORTS'"),
        (lambda entry: bad_evidence(entry, role="intermediate"), "sent1 is concluded in no step"),
        (lambda entry: bad_evidence(entry, role="premise"), r"role of sent1 is 'premise': write leaf, intermediate or distractor"),
        (lambda entry: bad_evidence(entry, text=3), "piece 1 of the evidence has no id, role and text"),
        (lambda entry: {"evidence": [*entry["evidence"], entry["evidence"][0]]}, "two pieces of the name sent1"),
        (lambda entry: {"evidence": "first sent1 [leaf] x"}, r"line 1 of the evidence is 'first"),
        (lambda entry: {"fluency": "2"}, r"fluency: '2' is not on the scale: write 1 or 0"),
        (lambda entry: {"id": "z"}, r"there is no row 'z'"),
    ],
)  # fmt: skip
def test_reviews_that_cannot_be_kept(say: Any, message: str, tmp_path: Path) -> None:
    export([row("a")], tmp_path, form="jsonl", people=1)
    fill(tmp_path, 1, lambda entry: {**YES, **say(entry)})
    with pytest.raises(ValueError, match=message):
        import_(tmp_path, partial=True)
    assert not (tmp_path / REVIEWED).exists()


def test_who_drops_a_row_need_not_repair_it(tmp_path: Path) -> None:
    broken = row("a", structure=[{"premises": ["sent1"], "conclusion": "nowhere"}])
    assert export([broken], tmp_path, form="jsonl", people=1)["rows"] == 1
    fill(tmp_path, 1, lambda entry: {**YES, "acceptability": 0, "structure": "what?"})
    assert import_(tmp_path)["rows"]["dropped"] == 1
    assert own(kept(tmp_path, REJECTED)["a"]) == own(broken)
    fill(tmp_path, 1, lambda entry: {**edit(to_entry(row("a")))})
    assert kept_of(tmp_path)["structure"][1] == {"premises": ["int1"], "conclusion": CLAIM}


def kept_of(folder: Path) -> dict[str, Any]:
    import_(folder)
    [one] = kept(folder).values()
    return one


def test_a_second_review_keeps_what_the_first_one_left(tmp_path: Path) -> None:
    first = row("a", edits=[{"field": "claim"}], stale=["int1"], source_id="w1")
    export([first], tmp_path / "edit", form="jsonl", people=1)
    fill(tmp_path / "edit", 1, edit)
    middle = kept_of(tmp_path / "edit")
    assert (middle["stale"], middle["edits"], middle["source_id"]) == ([], first["edits"], "w1")
    export(tmp_path / "edit" / REVIEWED, tmp_path / "filter", form="jsonl", people=1)
    fill(tmp_path / "filter", 1, lambda entry: {**YES, "claim": "Water did."})
    last = kept_of(tmp_path / "filter")
    assert [len(review["edits"]) > 0 for review in last["reviews"]] == [True, True]
    before = {**last, **revert_review(last, last["reviews"][1]["edits"])}
    assert revert_review(before, before["reviews"][0]["edits"]) == own(first)


def test_rows_that_people_cannot_read_are_named_and_not_lost(tmp_path: Path) -> None:
    rows = [row("a"), row("b", claim=" "), row("c", evidence_info=[]), row("d", cause="half \ud83d")]
    found = export(rows, tmp_path, form="jsonl", people=1)
    assert (found["rows"], sum(found["left_out"].values())) == (1, 3)
    fill(tmp_path, 1, lambda entry: YES)
    assert import_(tmp_path)["rows"] == {"kept": 1, "edited": 0, "dropped": 0, "open": 0, "left_out": 3}
    reasons = {name: one["status"]["reason"] for name, one in kept(tmp_path, REJECTED).items()}
    assert reasons["b"] == "the claim is empty"
    assert "4 pieces of evidence and 0 entries" in reasons["c"]
    assert "surrogates" in reasons["d"]
    assert kept(tmp_path, REJECTED)["d"]["cause"] == rows[3]["cause"]


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([], {}, "no row can be reviewed"),
        ([row("a", claim="")], {}, "no row can be reviewed: the claim is empty"),
        ([row("a"), row("a")], {}, "row 1: the id 'a' is there twice"),
        ([{"id": "a", "claim": "c"}], {}, "row 0 has no column 'evidence'.*evidence_info"),
        ([row("a")], {"form": "xlsx"}, "no form 'xlsx': choose one of page, jsonl, csv, argilla"),
        ([row("a")], {"people": 0}, "0 people"),
    ],
)
def test_exports_that_cannot_work(rows: Any, settings: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        export(rows, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_forms_are_never_overwritten_and_orders_are_each_persons(tmp_path: Path) -> None:
    export([row(f"r{i}") for i in range(9)], tmp_path, form="jsonl")
    orders = [
        [json.loads(line)["id"] for line in (tmp_path / RATERS / f"rater-{i}.jsonl").read_text().splitlines()] for i in (1, 2)
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    with pytest.raises(ValueError, match=r"rater-1\.jsonl, which may be filled"):
        export([row("a")], tmp_path)
    with pytest.raises(FileNotFoundError, match=r"key\.json.*hfcf review export"):
        import_(tmp_path / RATERS)


def test_argillas_users_are_named_in_their_order(tmp_path: Path) -> None:
    export([row("a")], tmp_path, form="argilla")
    path = tmp_path / RATERS / RECORDS
    [record] = json.loads(path.read_text(encoding="utf-8"))
    assert list(record) == ["id", "fields", "metadata", "suggestions", "responses", "vectors"]
    assert record["suggestions"]["edited_claim"] == {"value": row("a")["claim"], "score": None, "agent": None}
    record["responses"] = {name: [{"value": "1", "user_id": "u"}, {"value": "0", "user_id": "v"}] for name in YES}
    path.write_text(json.dumps([record]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"users u, v: name them in their order \(--user\), at most 3"):
        import_(tmp_path)
    record["responses"]["edited_claim"] = [{"value": "Mine.", "user_id": "w"}]
    record["responses"] |= {name: [*record["responses"][name], {"value": "1", "user_id": "w"}] for name in YES}
    path.write_text(json.dumps([record]), encoding="utf-8")
    import_(tmp_path, users=["v", "u", "w"])
    assert kept(tmp_path)["a"]["claim"] == "Mine."


def test_names_that_no_program_can_have_are_shown_as_others() -> None:
    ids = ["1", "sent 2", "Sentence1", "class", "Claim", "ﬁ", "é", "print"]
    shown = name_pieces({"evidence_info": [{"id": one} for one in ids], "structure": []})
    assert (shown["Sentence1"], shown["é"], len(set(shown.values()))) == ("Sentence1", "é", len(ids))
    assert all(name.isidentifier() and name not in ("class", "Claim", "print") for name in shown.values())
    one = row("a", evidence=[{"title": None, "text": "x"}], evidence_info=[{"id": "1", "useful": True, "leaf": True}])
    one["structure"] = [{"premises": ["1"], "conclusion": CLAIM}]
    back = parse_version(to_entry(one), one)
    assert back.to_columns(one) == own(one)
    assert find_review_edits(one, back.to_columns(one)) == []


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in ROWS), encoding="utf-8")
    out = tmp_path / "out"
    told = CliRunner().invoke(
        app, ["review", "export", str(tmp_path / "rows.jsonl"), "--out", str(out), "--as", "jsonl", "--limit", "2"]
    )
    assert told.exit_code == 0, told.output
    assert "hfcf review import" in told.output
    fill(out, 1, edit)
    fill(out, 2, edit)
    told = CliRunner().invoke(app, ["review", "import", str(out)])
    assert told.exit_code == 0, told.output
    assert "Kept: 2 rows, 2 of them edited." in told.output
    assert "reviewed.jsonl" in told.output
    assert len(kept(out)) == 2


def test_a_line_without_a_name_goes_on_with_the_piece_before() -> None:
    pieces = parse_pieces("s1 [leaf] It rained.\ns2 [distractor] Cork is wet\nand green.")
    assert pieces[1] == {"id": "s2", "role": "distractor", "text": "Cork is wet\nand green."}
