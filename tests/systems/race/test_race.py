"""RACE's rules on rows written by hand, its verdicts with a stubbed verifier, and what holds of every finished set."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import parrot
import pytest
from datasets import Dataset
from tagged_rows import row

import hfcf
from hfcf.core import edits, schema
from hfcf.core.artifacts import artifact_path, save_artifact
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import apply_edits, get_task, revert_edits
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.moverscore import MoverScore
from hfcf.systems.race.edit import EditEvidence, _groups
from hfcf.systems.race.filter_claim import FilterClaim
from hfcf.systems.race.follow import edits_of
from hfcf.systems.race.generate_claim import GenerateClaim, clauses
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import LABELS
from hfcf.text.entities import ENOUGH, Collector, value_shape
from hfcf.text.evidence import evidence_texts

SUPPORTS, REFUTES, NEI = LABELS
TABLE = {
    "GPE": {"": ["Oslo", "Rome"]},
    "DATE": {"Year": ["1994", "2006"], "N Month Year": ["3 April 1968", "9 May 1900"], "Month": ["May"]},
    "NUM": {"N": ["12", "40"], "Word": ["seven"]},
}
JAWS = [
    ("Jaws", "Jaws is a 1975 film directed by Steven Spielberg."),
    ("Steven Spielberg", "Spielberg's film of 1975 made him known."),
]


def edit(given: dict[str, Any], seed: int = 13, table: Mapping[str, Any] = TABLE) -> dict[str, Any]:
    """What the stage makes of a row; its edits, applied to the source, are its edited evidence."""
    found = EditEvidence(seed=seed).with_fitted(save_artifact({"entities": table}))(given)
    if found["edited_evidence"] is not None:
        assert apply_edits({"claim": "", **given}, found["edits"])["evidence"] == found["edited_evidence"]
        places = [(where, piece) for where, piece, _ in evidence_texts(given)]
        order = [(places.index((e["field"], e["piece"])), e["start"], e["end"]) for e in found["edits"]]
        assert order == sorted(order)
        assert all(a[0] < b[0] or a[2] <= b[1] for a, b in itertools.pairwise(order))
        for e in found["edited_entities"]:
            piece = found["edited_evidence"][e["piece"]]
            assert piece["title" if e["field"] == "evidence.title" else "text"][e["start"] : e["end"]] == e["text"]
    return found


def texts(found: Mapping[str, Any]) -> list[str]:
    return [f"{piece['title']}|{piece['text']}" for piece in found["edited_evidence"]]


# --- editing: replacement in the dataset


@pytest.mark.parametrize(
    ("claim", "text", "entity", "type_"),
    [
        ("Paris is not in Germany.", "Paris is in France.", "France", "GPE"),
        ("Paris is not in Germany.", "Paris is not in Germany.", "Germany", "GPE"),
        ("It is in Paris.", "It is in Lyon, not in Paris.", "Paris", "GPE"),
        ("No part of the bridge was built before 1900.", "The bridge was built in 1930.", "1930", "DATE"),
    ],
)
def test_a_value_that_a_negation_covers_stays(claim: str, text: str, entity: str, type_: str) -> None:
    with pytest.raises(Reject) as rejected:
        EditEvidence().with_fitted(save_artifact({"entities": TABLE})).row(row([("", text)], {entity: type_}, claim=claim))
    assert "negation" in str(rejected.value)


@pytest.mark.parametrize(
    ("text", "entity", "type_", "expected"),
    [
        ("It opened in 1975.", "1975", "DATE", {"It opened in 1994.", "It opened in 2006."}),
        ("It opened on 1 June 1975.", "1 June 1975", "DATE", {"It opened on 3 April 1968.", "It opened on 9 May 1900."}),
        ("It has 40 rooms.", "40", "NUM", {"It has 12 rooms."}),
        ("It has three rooms.", "three", "NUM", {"It has seven rooms."}),
        ("It opened in June.", "June", "DATE", {"It opened in May."}),
        ("It is Paris's.", "Paris", "GPE", {"It is Oslo's.", "It is Rome's."}),
        ("It is Paris’s.", "Paris", "GPE", {"It is Oslo’s.", "It is Rome’s."}),
    ],
)
def test_a_substitute_has_the_type_and_form_of_what_it_replaces(text: str, entity: str, type_: str, expected: set[str]) -> None:
    found = {edit(row([("", text)], {entity: type_}), seed)["edited_evidence"][0]["text"] for seed in range(20)}
    assert found == expected


def test_it_is_changed_the_same_way_in_every_piece_and_title() -> None:
    pieces = [("Paris", "Paris is large."), ("Seine", "It flows through Paris, and Parisians like it.")]
    found = edit(row(pieces, {"Paris": "GPE"}))
    new = found["edited_evidence"][0]["title"]
    assert new in ("Oslo", "Rome")
    assert texts(found) == [f"{new}|{new} is large.", f"Seine|It flows through {new}, and Parisians like it."]


def test_it_is_changed_outside_the_rationales_too() -> None:
    given = row([("", "Paris is large."), ("", "The Seine flows through Paris.")], {"Paris": "GPE"})
    found = edit({**given, "rationales": given["rationales"][:1]})
    assert [e["piece"] for e in found["edits"]] == [0, 1]
    assert [e["piece"] for e in found["causal_entities"]] == [0]


def test_only_entities_in_the_rationales_are_changed() -> None:
    given = row([("", "Paris grew in 1975.")], {"Paris": "GPE", "1975": "DATE"})
    found = edit({**given, "rationales": [{"field": "evidence", "piece": 0, "start": 14, "end": 18, "score": 1.0}]})
    assert [e["before"] for e in found["edits"]] == ["1975"]


def test_a_rationale_in_a_title_is_not_one_in_the_text() -> None:
    given = row([("Paris", "It is in France.")], {"Paris": "GPE", "France": "GPE"})
    span = {"field": "evidence.title", "piece": 0, "start": 0, "end": 5, "score": 1.0}
    assert {e["before"] for e in edit({**given, "rationales": [span]})["edits"]} == {"Paris"}


def test_the_longest_mention_comes_first() -> None:
    pieces = [("", "Washington reads the Washington Post in Washington.")]
    found = edit(row(pieces, {"Washington Post": "ORG", "Washington": "GPE"}))
    new = found["edits"][0]["after"]
    assert texts(found) == [f"|{new} reads the Washington Post in {new}."]


def test_different_values_get_different_substitutes_that_the_row_does_not_hold() -> None:
    found = edit(
        row([("", "Paris, Lyon and Rome.")], {"Paris": "GPE", "Lyon": "GPE", "Rome": "GPE"}),
        table={"GPE": {"": ["Bern", "Oslo", "Rome"]}},
    )
    after = {e["before"]: e["after"] for e in found["edits"]}
    assert len(after) == 2
    assert set(after.values()) == {"Bern", "Oslo"}


def test_parts_of_words_stay() -> None:
    changes = edits_of({"evidence": [{"title": "", "text": "19 of 1975 and 19, 19th."}]}, {"19": "20"}, [])
    assert [e["start"] for e in changes] == [0, 15]


def test_names_that_are_patterns_are_taken_literally() -> None:
    changes = edits_of({"evidence": [{"title": "A.B", "text": "A+B (x) is AxB, A.B"}]}, {"A.B": "C", "(x)": "(y)"}, [])
    assert [(e["field"], e["start"], e["after"]) for e in changes] == [
        ("evidence.title", 0, "C"),
        ("evidence", 4, "(y)"),
        ("evidence", 16, "C"),
    ]


def test_offsets_count_code_points() -> None:
    found = edit(row([("", "🙂𝒳 Zürich is Paris 🙂.")], {"Paris": "GPE"}))
    assert texts(found)[0].endswith(f" is {found['edits'][0]['after']} 🙂.")
    assert found["edits"][0]["start"] == 13


# --- editing: swaps inside a row


def test_persons_of_different_pieces_change_places() -> None:
    found = edit(
        row([("", "Ada Lovelace wrote it."), ("", "Alan Turing read it.")], {"Ada Lovelace": "PERSON", "Alan Turing": "PERSON"})
    )
    assert texts(found) == ["|Alan Turing wrote it.", "|Ada Lovelace read it."]


def test_surnames_and_first_names_follow_the_full_name() -> None:
    pieces = [("Ada Lovelace", "Lovelace's book is Ada Lovelace's."), ("", "Alan Turing read it; Ada met Turing.")]
    names = ("Ada Lovelace", "Lovelace", "Alan Turing", "Turing", "Ada")
    assert texts(edit(row(pieces, dict.fromkeys(names, "PERSON")))) == [
        "Alan Turing|Turing's book is Alan Turing's.",
        "|Ada Lovelace read it; Alan met Lovelace.",
    ]


def test_a_surname_that_no_tagger_found_follows_too() -> None:
    pieces = [("", "Ada Lovelace wrote it."), ("", "Alan Turing read Lovelace.")]
    assert texts(edit(row(pieces, {"Ada Lovelace": "PERSON", "Alan Turing": "PERSON"})))[1] == "|Ada Lovelace read Turing."


def test_shorter_names_belong_to_the_fullest() -> None:
    people = ["Ada Lovelace", "Lovelace", "Ada King Lovelace"]
    assert _groups(people, True) == {"Ada King Lovelace": ["Ada King Lovelace", "Ada Lovelace", "Lovelace"]}
    full = "Recording Industry Association of America"
    assert _groups(["RIAA", full], False, acronyms=True) == {full: [full, "RIAA"]}


def test_persons_of_one_piece_stay() -> None:
    found = edit(
        row([("", "Ada Lovelace met Alan Turing."), ("", "It rained.")], {"Ada Lovelace": "PERSON", "Alan Turing": "PERSON"})
    )
    assert not found["status"]["accepted"]
    assert found["edits"] is None


def test_a_person_does_not_swap_with_an_organisation() -> None:
    found = edit(row([("", "Ada Lovelace wrote it."), ("", "Microsoft read it.")], {"Ada Lovelace": "PERSON", "Microsoft": "ORG"}))
    assert "no causal entity can be edited" in found["status"]["reason"]


def test_three_organisations_move_in_one_cycle() -> None:
    names = ["Adidas", "Boeing", "Canon"]
    for seed in range(5):
        found = edit(row([("", f"{name} sells.") for name in names], dict.fromkeys(names, "ORG")), seed)
        new = [piece["text"].split()[0] for piece in found["edited_evidence"]]
        assert sorted(new) == names
        assert all(a != b for a, b in zip(names, new, strict=True))


def test_the_subject_of_a_page_is_not_swapped_away() -> None:
    people = dict.fromkeys(("Ada Lovelace", "Alan Turing", "Grace Hopper"), "PERSON")
    pieces = ["Ada Lovelace wrote it.", "Alan Turing read it.", "Grace Hopper sold it."]
    found = edit(row([("Ada Lovelace (writer)", text) for text in pieces], people))
    assert [piece["text"] for piece in found["edited_evidence"]] == [pieces[0], "Grace Hopper read it.", "Alan Turing sold it."]
    several = edit(row([("Ada Lovelace", pieces[0]), ("Enigma", pieces[1])], people))
    assert texts(several) == ["Alan Turing|Alan Turing wrote it.", "Enigma|Ada Lovelace read it."]


def test_a_swap_and_a_replacement_in_one_text() -> None:
    found = edit(row(JAWS, {"1975": "DATE", "Steven Spielberg": "PERSON", "Spielberg": "PERSON", "Jaws": "ORG"}))
    year = found["edits"][0]["after"]
    assert texts(found) == [
        f"Jaws|Jaws is a {year} film directed by Steven Spielberg.", f"Steven Spielberg|Spielberg's film of {year} made him known.",
    ]  # fmt: skip


# --- editing: which rows


def test_the_evidence_of_a_refutes_row_stays() -> None:
    given = row(JAWS, {"1975": "DATE"}, REFUTES)
    found = edit(given)
    assert found["status"] is None
    assert (found["edits"], found["edited_evidence"]) == ([], given["evidence"])
    assert found["edited_entities"] == found["causal_entities"] == given["entities"]


@pytest.mark.parametrize("label", [SUPPORTS, REFUTES])
def test_a_row_without_a_causal_entity_is_rejected(label: str) -> None:
    given = row(JAWS, {"1975": "DATE"}, label)
    for bad in ({**given, "entities": []}, {**given, "rationales": []}):
        assert edit(bad)["status"]["reason"].startswith("no entity of the types")


def test_a_row_without_a_substitute_is_rejected_with_its_entities() -> None:
    found = edit(row([("", "It rose 3.5 in 1994 and 2006.")], {"3.5": "NUM", "1994": "DATE", "2006": "DATE"}))
    assert found["status"] == {"accepted": False, "stage": "edit_evidence", "reason": found["status"]["reason"]}
    assert "no other value of its form" in found["status"]["reason"]
    assert [e["text"] for e in found["causal_entities"]] == ["3.5", "1994", "2006"]


def test_a_row_of_which_the_edited_evidence_is_too_long_is_rejected() -> None:
    long = "Oslo, " * 300
    found = edit(row([("", long)], {"Oslo": "GPE"}), table={"GPE": {"": [f"M{'a' * 97}"]}})
    assert found["status"]["stage"] == "edit_evidence"
    assert "the edited evidence can't be worked on: evidence piece 0 has 30,000 characters" in found["status"]["reason"]
    assert found["causal_entities"]


def test_without_editing_every_row_keeps_its_evidence_and_needs_no_table() -> None:
    stage = EditEvidence(edit=False)
    given = row(JAWS, {"1975": "DATE"})
    found = stage(given)
    assert (found["status"], found["edits"], found["edited_evidence"]) == (None, [], given["evidence"])
    assert found["edited_entities"] == found["causal_entities"] == given["entities"]
    bare = stage({**given, "entities": []})
    assert (bare["status"], bare["edited_entities"]) == (None, [])


def test_a_month_is_no_verb() -> None:
    given = row([("", "It was built in May and may fall.")], {"May": "DATE"})
    assert edit(given, table={"DATE": {"Month": ["June"]}})["edited_evidence"][0]["text"] == "It was built in June and may fall."


def test_places_that_one_row_alone_has_are_left_out_where_enough_have_more() -> None:
    places = [f"Place {i}" for i in range(ENOUGH)]

    def rows(*twice: str) -> list[list[dict[str, str]]]:
        return [[{"text": text, "type": "GPE"}] * 2 for text in (*twice, *places, "Orchestra")]

    assert Collector(rows(*places)).table().values["GPE"][""] == sorted(places)
    assert "Orchestra" in Collector(rows(*places[1:])).table().values["GPE"][""], "too few to be choosy"


@pytest.mark.parametrize(("text", "expected"), [("1994", "Year"), ("2100", "Year"), ("6554", "N"), ("0931", "N")])
def test_a_number_of_four_digits_is_a_year_if_it_can_be_one(text: str, expected: str) -> None:
    assert value_shape(text, "DATE") == expected


def test_entities_of_the_claim_are_no_causal_entities() -> None:
    given = row([("", "It rained.")], {})
    claim = {"field": "claim", "piece": -1, "start": 0, "end": 4, "text": "1975", "type": "DATE"}
    assert not edit({**given, "entities": [claim]})["status"]["accepted"]


# --- generating


def names(*entities: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"piece": piece, "text": text} for piece, text in entities]


def test_clauses_are_the_entities_of_each_rationale_piece() -> None:
    pieces = [{"piece": 0}, {"piece": 1}, {"piece": 3}, {"piece": 4}]
    entities = names((0, "A"), (0, "B"), (0, "A"), (2, "C"), (3, "D"), (4, "D"))
    assert clauses({"sentence_rationales": pieces, "edited_entities": entities}) == [["A", "B"], ["D"]]


def found_claim(text: str, finished: bool = True) -> Any:
    stage = GenerateClaim(generator=Model("x"))
    found = {"text": text, "score": -0.5, "finished": finished}
    candidate = stage._candidate({"claim": "Rome fell in 410."}, "writer: generate", found, [["Rome"], ["410", "411"]])
    return candidate["status"] and candidate["status"]["reason"]


def test_claims_that_break_a_rule_are_rejected() -> None:
    assert found_claim("rome was hurt in 411.") is None
    unmet = "names no causal entity of every piece of evidence"
    assert found_claim("Rome was hurt.") == found_claim("In 4100 Rome was hurt.") == unmet
    assert found_claim("ROME fell in 410") == "repeats the source's claim"
    assert found_claim("Rome in 410 was", finished=False) == "is cut off at 96 tokens"
    assert found_claim("410") == "the claim has no letters"
    assert found_claim("") == "the claim is empty"


@pytest.mark.parametrize(
    ("settings", "text", "constraints"),
    [
        ({}, "t.", [["A"]]),
        ({"constrain": False}, "t.", []),
        ({"edit": False}, "refute: t.", [["A"]]),
        ({"edit": False, "constrain": False}, "refute: t.", []),
    ],
)
def test_what_each_ablation_asks_the_generator(
    settings: dict[str, bool], text: str, constraints: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(self: Generator, requests: Sequence[Any]) -> list[Any]:
        asked.extend(requests)
        return [[{"text": "Nobody knows.", "score": -1.0, "finished": True}] for _ in requests]

    monkeypatch.setattr(Generator, "run", run)
    rows = [
        {
            "claim": "c", "label": label, "evidence": [{"title": "", "text": "t."}],
            "edited_evidence": [{"title": "", "text": "t."}], "edited_entities": names((0, "A")),
            "sentence_rationales": [{"piece": 0}], "candidates": [],
        }
        for label in (SUPPORTS, REFUTES)
    ]  # fmt: skip
    found = GenerateClaim(generator=Model("x"), **settings).batch(rows)
    assert asked == [[text, constraints], [text.replace("refute", "support"), constraints]]
    assert isinstance(found[0], Reject) == bool(constraints), "without constraints a claim may name nobody"


def test_the_ablation_without_editing_takes_the_generator_that_is_told_the_label() -> None:
    ours, given = RACE.preset("offline", edit=False), RACE.preset("offline", edit=False, generator="mine")
    assert ours.generator.adapter == "hfcf:generator_prefixed"
    assert (ours.generate_claim.edit, ours.edit_evidence.edit) == (False, False)
    assert given.generator == Model("mine")
    assert RACE.preset("offline").generate_claim.edit is True


# --- checking


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], list[list[str]]]:
    """`says({claim: label})` makes the verifier answer so; returns what it is asked."""

    def set_(labels: Mapping[str, str]) -> list[list[str]]:
        asked: list[list[str]] = []

        def run(self: Classifier, requests: Sequence[list[str]]) -> list[dict[str, float]]:
            asked.extend(requests)
            return [{label: 0.8 if label == labels[claim] else 0.1 for label in LABELS} for claim, _ in requests]

        monkeypatch.setattr(Classifier, "run", run)
        return asked

    return set_


RULES = RACE(verifier="v", generator="g", explainer="gradient_x_input", ner=Ner(backend="spacy"))


@pytest.mark.parametrize(("found", "reason"), [(REFUTES, None), (SUPPORTS, "under-edited"), (NEI, "over-edited")])
def test_an_edit_is_kept_when_it_refutes(says: Any, found: str, reason: str | None) -> None:
    asked = says({"c": found})
    made_of = [{"field": "evidence", "piece": 0, "start": 0, "end": 1, "before": "s", "after": "t"}]
    answer = RULES.check_edit.batch(
        [{"claim": "c", "label": SUPPORTS, "edits": made_of, "edited_evidence": [{"title": "T", "text": "t."}]}]
    )[0]
    assert asked == [["c", "T: t."]]
    made = answer["candidates"] if reason is None else answer.outputs["candidates"]  # type: ignore[index,union-attr]
    assert [(row["claim"], row["label"], row["change"], row["status"]["accepted"]) for row in made] == [
        ("c", REFUTES, "evidence", not reason)
    ]
    assert made[0]["scores"] == [{"name": f"verifier: {found}", "value": 0.8}]
    assert reason is None or (answer.reason.startswith(reason) and made[0]["status"]["reason"] == answer.reason)  # type: ignore[union-attr]


def test_the_edit_of_a_refutes_row_is_not_asked_about(says: Any) -> None:
    asked = says({})
    assert RULES.check_edit.batch([{"claim": "c", "label": REFUTES, "edits": [], "edited_evidence": []}]) == [{"candidates": []}]
    assert asked == []


def candidate(claim: str, **changes: Any) -> dict[str, Any]:
    return {"claim": claim, "label": None, "change": "claim", "edits": [], "scores": [], "status": None, **changes}


@pytest.mark.parametrize(
    ("flip", "label", "kept"),
    [
        ("any", SUPPORTS, [REFUTES, NEI]),
        ("opposite", SUPPORTS, [REFUTES]),
        ("any", REFUTES, [SUPPORTS]),
        ("opposite", REFUTES, [SUPPORTS]),
    ],
)
def test_a_claim_is_kept_when_it_flips_the_label(says: Any, flip: str, label: str, kept: list[str]) -> None:
    asked = says({label: label for label in LABELS})
    given = {
        "claim": "a claim",
        "evidence": [{"title": "", "text": "the original"}],
        "label": label,
        "candidates": [candidate(label) for label in LABELS],
    }
    answer = RULES.replace(flip=flip).check_claim.batch([given])[0]
    made = answer["candidates"]  # type: ignore[index]
    assert {text for _, text in asked} == {"the original"}
    assert [row["claim"] for row in made if row["status"] is None] == kept
    assert {row["label"] for row in made} == {SUPPORTS if label == REFUTES else REFUTES}
    rejections = {row["claim"]: row["status"]["reason"] for row in made if row["status"]}
    assert all(reason.endswith(f"makes it {claim}") for claim, reason in rejections.items())


def test_decided_candidates_are_not_asked_about_again(says: Any) -> None:
    asked = says({"open": REFUTES})
    ready = candidate("ready", change="evidence", status={"accepted": True, "stage": "check_edit", "reason": None})
    gone = candidate("gone", status={"accepted": False, "stage": "generate_claim", "reason": "too long"})
    given = {
        "claim": "c",
        "evidence": [{"title": "", "text": "e"}],
        "label": SUPPORTS,
        "candidates": [ready, gone, candidate("open")],
    }
    answer = RULES.check_claim.batch([given])[0]
    assert [claim for claim, _ in asked] == ["open"]
    assert answer["candidates"][:2] == [ready, gone]  # type: ignore[index]


def test_equal_probabilities_are_no_accident_of_order() -> None:
    first, other = {SUPPORTS: 0.4, REFUTES: 0.4, NEI: 0.2}, {NEI: 0.2, REFUTES: 0.4, SUPPORTS: 0.4}
    assert choose(first, LABELS) == choose(other, LABELS) == SUPPORTS


def test_an_unknown_flip_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"flip.*'all'"):
        RULES.replace(flip="all")


# --- filtering


def filtered(
    monkeypatch: pytest.MonkeyPatch, claims: Mapping[str, tuple[float, list[str]]], perplexities: Mapping[str, float] | None = None,
    source: str = "A B", **settings: Any,
) -> Any:  # fmt: skip
    """The filter's answer for claims with these semantic scores and entities; the source names A and B."""
    monkeypatch.setattr(Perplexity, "run", lambda self, asked: [(perplexities or {}).get(text) for text in asked])
    monkeypatch.setattr(MoverScore, "run", lambda self, asked: [claims[claim][0] for _, claim in asked])
    spans = {claim: [[claim.index(name), claim.index(name) + 1, "ORG"] for name in found] for claim, (_, found) in claims.items()}
    monkeypatch.setattr(Ner, "run", lambda self, asked: [spans[claim] for claim in asked])
    row = {
        "id": "r",
        "group_id": "g",
        "corpus": "x",
        "split": "train",
        "claim": source,
        "label": REFUTES,
        "evidence": [{"title": "", "text": "e f g h A"}],
    }
    tagged = [
        {"field": field, "piece": -1, "start": 0, "end": 1, "text": text, "type": "ORG"}
        for field, text in (("claim", "A"), ("claim", "B"), ("evidence", "C"))
    ]
    made = [candidate(claim, label=SUPPORTS, edits=edits.rewrite("claim", source, claim)) for claim in claims]
    model = None if perplexities is None else Model("lm")
    stage = FilterClaim(encoder=Model("e"), ner=Ner(backend="spacy"), fluency_model=model, **settings)
    return stage.with_fitted("none").batch([{**row, "entities": tagged, "edits": [], "candidates": made}])[0]


def test_the_best_sum_of_both_fidelities_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = filtered(monkeypatch, {"A only": (0.7, ["A"]), "A and B": (0.3, ["A", "B"]), "C here": (0.9, ["C"])})
    assert [counterfactual["claim"] for counterfactual in answer["counterfactuals"]] == ["A and B"]
    assert {candidate["claim"]: [s["value"] for s in candidate["scores"]] for candidate in answer["candidates"]} == {
        "A only": [0.7, 0.5], "A and B": [0.3, 1.0], "C here": [0.9, 0.0],
    }  # fmt: skip
    assert [candidate["status"]["accepted"] for candidate in answer["candidates"]] == [False, True, False]
    assert answer["status"] == {"accepted": True, "stage": "filter_claim", "reason": None}
    row = answer["counterfactuals"][0]
    assert (row["id"], row["source_id"], row["group_id"], row["label"]) == ("r:race:claim", "r", "g", SUPPORTS)


def test_equal_sums_are_decided_by_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for order in (["A x", "A b"], ["A b", "A x"]):
        answer = filtered(monkeypatch, {claim: (0.5, ["A"]) for claim in order})
        assert [counterfactual["claim"] for counterfactual in answer["counterfactuals"]] == ["A b"]


def reasons(answer: Any) -> dict[str, Any]:
    candidates = answer.outputs["candidates"] if isinstance(answer, Reject) else answer["candidates"]
    return {candidate["claim"]: candidate["status"]["reason"] for candidate in candidates}


def test_claims_that_read_less_well_than_the_source_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {"A only": (0.7, ["A"]), "A and B": (0.3, ["A", "B"]), "A long": (0.1, ["A"])}
    answer = filtered(monkeypatch, claims, {"A B": 10.0, "A only": 12.1, "A and B": 12.0})
    assert [row["claim"] for row in answer["counterfactuals"]] == ["A and B"]
    assert "perplexity ratio 1.21, 1.2 at most" in reasons(answer)["A only"]
    assert "closer" in reasons(answer)["A long"]  # too long to have a perplexity
    scores = {score["name"]: score["value"] for score in answer["candidates"][1]["scores"]}
    assert scores["perplexity ratio"] == 1.2
    assert isinstance(filtered(monkeypatch, {"A only": (0.7, ["A"])}, {"A B": 10.0, "A only": 13.1}), Reject)
    assert not isinstance(
        filtered(monkeypatch, {"A only": (0.7, ["A"])}, {"A B": 10.0, "A only": 13.1}, max_perplexity_ratio=2), Reject
    )


def test_pieces_of_the_evidence_and_other_subjects_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {"e f g h C": (0.9, []), "e f g h A": (0.8, ["A"]), "A B h C": (0.5, ["A"]), "A x": (0.95, ["A"])}
    source = "A B C D"
    assert filtered(monkeypatch, claims, source=source)["counterfactuals"][0]["claim"] == "A x"
    answer = filtered(monkeypatch, claims, source=source, max_copied=0.8, min_kept=0.5)
    assert [row["claim"] for row in answer["counterfactuals"]] == ["A B h C"]
    assert "is a piece of the evidence: copy rate 1.00, 0.8 at most" in reasons(answer)["e f g h A"]
    assert "speaks of something else: words shared 0.25, 0.5 at least" in reasons(answer)["A x"]
    assert "words shared" in reasons(answer)["e f g h C"]  # a rate of exactly 0.8 is no copy


# --- the whole chain


@pytest.fixture
def finished(race: RACE, demo: Dataset, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """The demo after every stage, with a verifier that decides and a generator that names what it must."""
    monkeypatch.setattr(Generator, "forward", parrot.forward)
    return race.replace(verifier=Model(tiny_model("verifier")))(demo)


def test_every_source_is_accepted_or_rejected_and_nothing_is_lost(finished: Dataset, demo: Dataset) -> None:
    made, lost = hfcf.expand(finished), hfcf.rejected(finished)
    assert made.features == get_task("verification").counterfactual
    assert list(lost.features) == [*schema.REJECTED, "source", "candidate"]
    whole = [rejection["source_id"] for rejection in lost if rejection["level"] == "row"]
    assert len(set(made["source_id"])) >= 5
    assert len(whole) >= 5
    assert sorted([*set(made["source_id"]), *whole]) == sorted(demo["id"])
    assert list(finished["id"]) == list(demo["id"])
    assert finished.filter(hfcf.accepted)["id"] == [row for row in demo["id"] if row in set(made["source_id"])]
    assert all(row["status"]["accepted"] == bool(row["counterfactuals"]) for row in finished)


def test_candidates_are_all_accounted_for(finished: Dataset) -> None:
    lost = hfcf.rejected(finished)
    candidates = sum(len(row["candidates"] or []) for row in finished)
    assert len(hfcf.expand(finished)) + lost["level"].count("candidate") == candidates
    for rejection in lost:
        assert rejection["reason"]
        assert rejection["stage"] in RACE.parts
        assert rejection["system"] == "race"
        assert rejection["source"]["id"] == rejection["source_id"]
        assert (rejection["candidate"] is None) == (rejection["level"] == "row")


def test_a_counterfactual_is_its_source_with_its_edits_and_another_label(finished: Dataset, demo: Dataset) -> None:
    sources = {row["id"]: row for row in demo}
    made = hfcf.expand(finished)
    assert {(row["change"], sources[row["source_id"]]["label"]) for row in made} == {
        ("claim", SUPPORTS), ("claim", REFUTES), ("evidence", SUPPORTS),
    }  # fmt: skip
    for candidate in made:
        source = sources[candidate["source_id"]]
        assert candidate["label"] != source["label"]
        assert apply_edits(source, candidate["edits"]) == {"claim": candidate["claim"], "evidence": candidate["evidence"]}
        assert revert_edits(candidate, candidate["edits"]) == {"claim": source["claim"], "evidence": source["evidence"]}
        assert candidate["edits"]
        assert (candidate["claim"] == source["claim"]) == (candidate["change"] == "evidence")
        assert (candidate["group_id"], candidate["corpus"], candidate["split"]) == (
            source["group_id"],
            source["corpus"],
            source["split"],
        )
    assert len(set(made["id"])) == len(made)


def test_verbs_on_rows_without_a_system_or_without_rows(demo: Dataset, finished: Dataset) -> None:
    with pytest.raises(ValueError, match=r"ds = system\(ds\)"):
        hfcf.expand(demo)
    none = finished.select([])
    assert (len(hfcf.expand(none)), len(hfcf.rejected(none))) == (0, 0)
    assert hfcf.expand(none).features == hfcf.expand(finished).features


def test_fit_does_not_depend_on_order_or_doubles_and_is_named_by_its_content(race: RACE, demo: Dataset) -> None:
    tagged = map_stage(hfcf.prepare(demo, race), race.tag_entities, {})
    first, other, stream = race.fit(tagged), race.fit(tagged.shuffle(seed=3)), race.fit(tagged.to_iterable_dataset())
    assert list(first.fitted) == ["edit_evidence", "filter_claim"]
    assert first.fitted == other.fitted == stream.fitted != race.fit(tagged.select(range(20))).fitted
    assert race.fitted == {}
    assert first.fitted == {stage.name: stage.fitted for stage in (first.edit_evidence, first.filter_claim)}
    values = json.loads(artifact_path(first.edit_evidence.fitted).read_text())["entities"]
    assert values == Collector([e for e in row["entities"] if e["field"] != "claim"] for row in tagged).table().values
    assert set(values) == {"GPE", "DATE", "NUM"}


def test_fit_needs_entities(race: RACE, demo: Dataset) -> None:
    with pytest.raises(StageError, match=r"column 'entities'.*race\.tag_entities"):
        race.edit_evidence.fit(demo)
    with pytest.raises(StageError, match=r"column 'entities', which is null.*race\.tag_entities"):
        race.edit_evidence.fit(hfcf.prepare(demo, race))
    tagged = map_stage(hfcf.prepare(demo, race), race.tag_entities, {})
    assert race.fit(demo).fitted == race.fit(tagged).fitted, "the system tags them itself"


def test_a_limit_changes_no_row(finished: Dataset, race: RACE, demo: Dataset, tiny_model: Callable[[str], str]) -> None:
    few = race.replace(verifier=Model(tiny_model("verifier")))(demo, limit=7)
    assert list(few) == list(finished.select(range(7)))
