"""Functions on single texts."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from hfcf.text.check import script, text_problem
from hfcf.text.entities import EntityTable, is_month, overlap, value_shape
from hfcf.text.label_names import label_of, name_beside
from hfcf.text.negation import negation_of, why_not_flipped
from hfcf.text.normalise import dedup_key, fold, matches, overlaps, unbracket
from hfcf.text.phrase_match import find_answer, mentions
from hfcf.text.quantities import Conversion, convert, find_conversions, find_numbers, interval, rebalance, why_out_of_proportion
from hfcf.text.questions import compare_questions, join_parts, mark_answer, predicate, same_predicate, write_references
from hfcf.text.words import split


def test_check() -> None:
    assert text_problem("a\x07b", "the claim") == "the claim holds the control character U+0007 at position 1"
    assert script("London") == "LATIN"
    assert script("לונדון") == "HEBREW"


def test_entities() -> None:
    assert value_shape("3 April 1968", "DATE") == "N Month Year"
    assert value_shape("1994", "DATE") == "Year"
    assert value_shape("30 days", "DATE") == "N days"
    assert value_shape("$5 million", "NUM") == "$ N million"
    assert is_month("March")
    assert not is_month("March 1994")
    table = EntityTable({"DATE": {"Year": ["1994", "2006"]}})
    assert table.substitute("1994", "DATE", ["a 1994 film"], Random(1)) == "2006"
    assert overlap({"rome", "1994"}, {"rome", "2006"}) == 0.5


def test_label_names() -> None:
    assert [label_of(name) for name in ("Entailment", "REFUTED", "not_enough-info", "TRUE")] == [
        "SUPPORTS",
        "REFUTES",
        "NOT ENOUGH INFO",
        "SUPPORTS",
    ]
    assert [label_of(name) for name in ("LABEL_0", "not_entailment", "NOT_SUPPORTED", "")] == [None, None, None, None]
    assert name_beside("entailment", "REFUTES") == "contradiction"
    assert name_beside("Supported", "REFUTES") == "Refuted"
    assert name_beside("SUPPORTS", "NOT ENOUGH INFO") == "NOT ENOUGH INFO"
    assert name_beside("true", "NOT ENOUGH INFO") is None
    assert name_beside("NEI", "REFUTES") is None


def test_mentions() -> None:
    assert not mentions("The Romans left.", "Roman")
    assert mentions("the romans left", "The Romans")
    assert mentions("Zürich", "Zürich")


def test_normalise() -> None:
    assert unbracket("Rome -LRB- Italy -RRB- is `` old '' .") == "Rome ( Italy ) is `` old '' ."
    assert dedup_key("The GDP grew by 1.5 %!") == "thegdpgrewby1.5"
    assert dedup_key(None) == ""
    assert dedup_key("a. 1 .5, 1-2 -3 4") == dedup_key("a. 1 .5, 1-2 -3 4 é").removesuffix("é") == "a151-234", "ASCII is read apart"
    assert dedup_key("Rome -LRB- Italy -RRB-") == dedup_key("Rome (Italy)")
    assert fold("Beyoncé’s ﬁrst Straße") == "beyonce’s first strasse"
    assert fold("Beyoncé") == fold("beyonce")


def test_quantities() -> None:
    assert find_conversions("It is 5 km (3.1 mi) long.") == [
        Conversion(quantity="5 km", number="5", other="3.1 mi", converted="3.1")
    ]
    assert find_numbers("$1,500 of 2.5 million") == [1500.0, 2.5]


def test_questions() -> None:
    assert mark_answer("Ada wrote it.", 0, 3) == "« answer = Ada » wrote it."
    assert join_parts("Notes", "Ada wrote it.") == "Notes » Ada wrote it."
    assert join_parts("", "Ada wrote it.") == "Ada wrote it."
    assert (
        write_references([{"start": 8, "text": "the first nobel prize"}], [{"start": 0, "text": "The first Nobel Prize"}])
        == "the first nobel prize = The first Nobel Prize"
    )
    assert write_references([], []) == "none"
    assert predicate("Who is the captain of Richmond in 1994?", [(22, 30), (34, 38)]) == "who is the captain of X in Y"
    assert same_predicate("who is the captain of X", "who is the captain of X in Y")
    assert not same_predicate("who is X", "who was X")
    source = ("who is the captain of richmond?", [(22, 30)])
    assert compare_questions(source, ("who is the captain of essendon?", [(22, 30)])) == "reference"
    assert compare_questions(source, ("who wears number 9 for richmond?", [(10, 18), (23, 31)])) == "predicate"
    assert compare_questions(source, ("who did graham tackle in the final?", [(8, 14), (25, 34)])) == "both"


def test_squad() -> None:
    assert matches("the Beatles", ["Beatles", "The Fab Four"])
    assert not matches("John Lennon", ["Lennon"])
    assert not matches("?", ["!"])
    assert overlaps("88", ["88 days"])
    assert overlaps("Ada Lovelace of London", ["Ada Lovelace"])
    assert not overlaps("Lady Ada", ["Ada King"])


def test_words() -> None:
    keys = [word.key for word in split("Tom Brown's 3.5% wasn't the U.S. record.")]
    assert keys == ["Tom", "Brown", "'s", "3.5", "%", "was", "n't", "the", "U.S.", "record", "."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is 290 metres (1,083 ft) tall.", "It is 290 metres (952 ft) tall."),
        ("It is 330 metres (952 ft) tall.", "It is 290 metres (952 ft) tall."),
        ("It is 290 metres (951 ft) tall.", "It is 290 metres (951 ft) tall."),
        ("It is 290 metres tall.", "It is 290 metres tall."),
        ("It is 330 metres (1,083 ft) wide.", "It is 330 metres (1,083 ft) wide."),
    ],
)
def test_both_sides_of_a_quantity_change(text: str, expected: str) -> None:
    assert rebalance("It is 330 metres (1,083 ft) tall.", text) == expected


@pytest.mark.parametrize(
    ("answer", "passage", "start"),
    [
        ("罗马", "意大利的首都是罗马。", 7),
        ("ローマ", "首都はローマです。", 3),
        ("โรม", "เมืองหลวงคือโรมครับ", 12),
        ("로마", "수도는 로마입니다.", 4),
        ("NASA", "他在NASA工作。", 2),
        ("Rom", "Romulus lived in Rome.", -1),
        ("Рим", "Римляне жили там.", -1),
        ("rome", "He left Rome.", 8),
    ],
)
def test_an_answer_is_found_in_scripts_without_spaces(answer: str, passage: str, start: int) -> None:
    assert find_answer(answer, passage)[1] == start
    assert mentions(passage, answer) == (start >= 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it took 30", (30, 30)),
        ("it took over 1,500", (1500, inf)),
        ("it took more than 2.5", (2.5, inf)),
        ("it took at most twenty-one", (-inf, 21)),
        ("it took about 50", (40, 60)),
        ("over the 30", (30, 30)),
        ("it took one", None),
        ("May", None),
    ],
)
def test_a_number_has_the_bound_before_it(text: str, expected: tuple[float, float] | None) -> None:
    words = text.split()
    assert interval(words, len(words) - 1) == expected


def test_digits_that_are_no_decimals_are_no_year() -> None:
    assert value_shape("²²²²", "DATE") == "N"
    assert value_shape("1994", "DATE") == "Year"
    assert value_shape("١٩٩٤", "DATE") == "Year"


def test_a_number_that_no_float_holds_changes_no_quantity() -> None:
    long = "9" * 400
    assert convert({long: "5"}, [f"It is {long} km (3.1 mi) long."])[f"{long} km"] == f"{long} km"
    changed = convert({"5": long}, ["It is 5 km (3.1 mi) long."])
    assert "inf" not in " ".join(changed.values())
    assert "nan" not in " ".join(changed.values())


@pytest.mark.parametrize(
    ("text", "value", "negation"),
    [
        ("Paris is not in Germany.", "Germany", "not"),
        ("Paris is not in Germany.", "Paris", "not"),
        ("Paris isn't in Germany.", "Germany", "n't"),
        ("Anna has never won a medal in Rome.", "Rome", "never"),
        ("No part of the bridge was built before 1900.", "1900", "No"),
        ("Neither Bob nor Carl lives in Oslo.", "Oslo", "Neither"),
        ("Neither Bob, Carl, nor Dan lives in Oslo.", "Carl", "Neither"),
        ("The song was released without Sony.", "Sony", "without"),
        ("The song was released in 1990 without Sony.", "1990", None),
        ("He rarely plays in London.", "London", "rarely"),
        ("The team failed to win in 1990.", "1990", "failed"),
        ("Paris is in France, not in Germany.", "France", None),
        ("It is not a film but a novel of 1990.", "1990", None),
        ("The tower was not finished until 1990.", "1990", None),
        ("The song reached No. 1 in France.", "France", None),
        ("She sang with No Doubt in London.", "London", None),
        ("He worked not only in Rome.", "Rome", None),
        ("He did not win in Rome and moved to Oslo.", "Oslo", None),
        ("He was born in Rome.", "Rome", None),
        ("The tower is far from Madrid.", "Madrid", "far"),
        ("Ann works anywhere but London.", "London", "anywhere"),
        ("It was held in Oslo instead of Rome in 1990.", "Rome", "instead"),
        ("It was held in Oslo instead of Rome in 1990.", "Oslo", None),
        ("The village lies outside Rome, in Italy.", "Rome", "outside"),
        ("The village lies outside Rome, in Italy.", "Italy", None),
    ],
)
def test_negation_of_a_value(text: str, value: str, negation: str | None) -> None:
    start = text.index(value)
    assert negation_of(text, start, start + len(value)) == negation


@pytest.mark.parametrize(
    ("claim", "other", "flips"),
    [
        ("Paris is not in Germany.", "Paris is not in Canada.", False),
        ("Paris is not in Germany.", "Rome is not in Germany.", False),
        ("Neither Bob nor Carl lives in Oslo.", "Neither Bob nor Carl lives in Rome.", False),
        ("Paris is not in Germany.", "Paris is in Germany.", True),
        ("Paris is in France.", "Paris is not in France.", True),
        ("Paris is in France.", "Paris is in Spain.", True),
        ("He never won in 1990.", "He always won in 1990.", True),
        ("He was born in 1950, but never won in 1990.", "He was born in 1960, but never won in 1994.", True),
        ("Paris is not in Germany.", "Paris is not in Germany.", True),
    ],
)
def test_a_change_inside_a_negation_turns_no_label(claim: str, other: str, flips: bool) -> None:
    assert (why_not_flipped(claim, other) is None) == flips


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("It is 290 metres (1,083 ft) tall.", False),
        ("It is 330 metres (951 ft) tall.", False),
        ("It is 290 metres (951 ft) tall.", True),
        ("It is 290 metres (950 ft) tall.", True),
        ("It is 290 metres (600 ft) tall.", False),
        ("It is 330 metres (1,083 ft) wide.", True),
        ("It is 290 metres tall.", True),
    ],
)
def test_quantities_in_two_units_keep_their_ratio(text: str, fits: bool) -> None:
    assert (why_out_of_proportion("It is 330 metres (1,083 ft) tall.", text) is None) is fits


def test_the_changed_side_of_a_quantity_is_changed_where_it_stands() -> None:
    changed = rebalance("It is 15 km from the 5 km (3 mi) route.", "It is 15 km from the 5 km (4 mi) route.")
    assert changed == "It is 15 km from the 7 km (4 mi) route."
    assert rebalance("5 km -LRB- 3 mi -RRB- long", "5 km -LRB- 6 mi -RRB- long") == "10 km -LRB- 6 mi -RRB- long"
