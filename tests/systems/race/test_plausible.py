"""Plausible substitutes: what WordNet, the votes of a dataset and the years of a row allow."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from offline_models import installed
from tagged_rows import row

from hfcf.core import offline
from hfcf.core.artifacts import save_artifact
from hfcf.core.stage import Reject, StageError
from hfcf.systems._shared.plausible import divide_names, is_near, plausible_shape
from hfcf.systems.race.edit import EditEvidence
from hfcf.text import entities
from hfcf.text.entities import Collector, EntityTable
from hfcf.text.lifetimes import find_years
from hfcf.text.quantities import find_numbers

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

YEARS = [str(year) for year in range(1700, 2020, 5)]
DAYS = [f"{day} May {year}" for day, year in enumerate(range(1703, 2020, 12), 1)]
TABLE = {
    "GPE": {"country": ["Chile", "Peru", "USA"], "city": ["Oslo", "Rome"], "state": ["Ohio", "Texas"], "": ["Demre"]},
    "DATE": {"Year": YEARS, "N Month Year": DAYS},
    "NUM": {"N": ["12", "40"], "N km": ["40 km"]},
}


def edit(given: dict[str, Any], seed: int = 13, tags: Mapping[str, str] | None = None, near: bool = False, **table: Any) -> Any:
    fitted = save_artifact({"entities": {**TABLE, **table}, "tags": tags or {}})
    found = EditEvidence(seed=seed, plausible=True, near=near).with_fitted(fitted)(given)
    return [piece["text"] for piece in found["edited_evidence"]] if found["edits"] else None


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("It is in France.", "France", {"Chile", "Peru", "USA"}),
        ("It is in Paris.", "Paris", {"Oslo", "Rome"}),
        ("It is in Kansas.", "Kansas", {"Ohio", "Texas"}),
        ("It is in Foobury.", "Foobury", {"Demre"}),
        ("It is in Köln.", "Köln", {"Demre"}),
        ("It is in Japan and in America.", "America", {"Chile", "Peru"}),
    ],
)
def test_a_place_is_replaced_by_one_of_its_kind(text: str, place: str, expected: set[str]) -> None:
    found = {edit(row([("", text)], {place: "GPE"}), seed)[0] for seed in range(30)}
    assert found == {text.replace(place, new) for new in expected}


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("It is in Berlin.", "Berlin", "GPE"),
        ("It opened on 5 May 1900.", "5 May 1900", "DATE"),
        ("It has 250 rooms.", "250", "NUM"),
        ("It has two rooms.", "two", "NUM"),
        ("It is 3.5 km long.", "3.5 km", "NUM"),
    ],
)
def test_common_values_stand_in_for_what_no_row_has(text: str, value: str, type_: str) -> None:
    given, empty = row([("", text)], {value: type_}), {"GPE": {}, "DATE": {}, "NUM": {}}
    for seed in range(10):
        (new,) = edit(given, seed, near=True, **empty)
        substitute = new.removeprefix(text.partition(value)[0]).removesuffix(text.partition(value)[2])
        assert substitute != value
        assert plausible_shape(substitute, type_) == plausible_shape(value, type_)
    fitted = save_artifact({"entities": empty})
    with pytest.raises(Reject):
        EditEvidence().with_fitted(fitted).row(given)  # the paper draws from the dataset alone


@pytest.mark.parametrize("text", ["He plays for Chelsea.", "They met Rome in a match against Chelsea.", "He joined Chelsea."])
def test_a_team_is_no_place(text: str) -> None:
    assert edit(row([("", text)], {"Chelsea": "GPE"}), near=True) is None


def test_an_unknown_place_falls_back_to_any() -> None:
    found = edit(row([("", "It is in Foobury.")], {"Foobury": "GPE"}), GPE={"city": ["Oslo"], "": ["Foobury"]})
    assert found == ["It is in Oslo."]


def test_what_is_no_place_stays() -> None:
    assert edit(row([("", "Black is a colour.")], {"Black": "GPE"})) is None
    given = row([("", "It is in Paris.")], {"Paris": "GPE"})
    assert edit(given, tags={"Paris": "PERSON"}) is None
    assert edit(given, tags={"Paris": ""}) is not None


def test_the_collector_votes_and_sorts_by_kind() -> None:
    rows = [[("Rome", "GPE"), ("Polonium", "GPE"), ("France", "GPE"), ("Foobury", "GPE")], [("Rome", "PERSON"), ("Foobury", "ORG")]]
    made = [[{"text": text, "type": type_} for text, type_ in row] for row in rows]
    for order in (made, made[::-1]):
        table = Collector(order, shape_of=plausible_shape, votes=True).table()
        assert table.values == {"GPE": {"": [], "city": ["Rome"], "country": ["France"]}}
        assert table.tags == {"Foobury": "", "Rome": ""}


def test_votes_take_bounded_memory_and_follow_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "VOTES", 20)
    made = [[{"text": f"Place {i % 100}", "type": "ORG" if i % 3 else "GPE"}] for i in range(600)]
    first, other = (Collector(rows, votes=True) for rows in (made, made[::-1]))
    assert len(first._votes or ()) <= 40
    assert first.table().tags == other.table().tags
    assert set(first.table().tags.values()) == {"ORG"}
    assert first.table().values == other.table().values == {"GPE": {"": []}}


def test_births_stay_before_deaths() -> None:
    given = row(
        [("", "Ada (3 May 1800 – 9 June 1852) wrote."), ("", "She read it in 1820.")],
        {"3 May 1800": "DATE", "9 June 1852": "DATE", "1820": "DATE"},
    )
    for seed in range(40):
        found = edit(given, seed)
        (birth, death), (reading,) = map(find_years, found)
        assert birth <= reading <= death, found
        assert birth < death <= birth + 110


def test_a_date_and_its_year_agree_afterwards() -> None:
    for text in ("It opened on 3 May 1900; since 1900 it is open.", "Since 1900 it is open: it opened on 3 May 1900."):
        given = row([("", text)], {"3 May 1900": "DATE", "1900": "DATE"})
        for seed in range(10):
            first, other = find_years(edit(given, seed)[0])
            assert first == other != 1900


def test_both_sides_of_a_converted_quantity_change() -> None:
    given = row([("", "It is 5 km (3.1 mi) long.")], {"5 km": "NUM"})
    assert edit(given) == ["It is 40 km (24.8 mi) long."]


def test_both_sides_change_however_substitutes_are_drawn() -> None:
    given = row([("", "It is 330 metres (1,083 ft) tall.")], {"330": "NUM"})
    fitted = save_artifact({"entities": {"NUM": {"N": ["660"]}}})
    for near in (False, True):
        found = EditEvidence(near=near).with_fitted(fitted)(given)
        assert found["edited_evidence"][0]["text"] == "It is 660 metres (2,166 ft) tall."


def test_both_sides_change_where_a_tagger_took_more_than_the_number() -> None:
    given = row([("", "It is about 5 km (3.1 mi) long.")], {"about 5": "NUM", "3.1 mi": "NUM"})
    assert edit(given, NUM={"N.N mi": ["6.2 mi"]}) == ["It is about 10 km (6.2 mi) long."]


def test_near_years_and_numbers() -> None:
    given = row([("", "It opened in 1900 with 30 rooms.")], {"1900": "DATE", "30": "NUM"})
    far = row([("", "It opened in 1900 with 900 rooms.")], {"900": "NUM"})
    for seed in range(40):
        text = edit(given, seed, near=True)[0]
        assert 1850 <= find_years(text)[0] <= 1950
        assert " with 12 " in text or " with 40 " in text
        assert 90 <= find_numbers(edit(far, seed, near=True)[0])[1] <= 9000  # 12 and 40 are not within ten times of 900
    assert any(not 1850 <= find_years(edit(given, seed)[0])[0] <= 1950 for seed in range(40))
    assert [is_near("5 May 1990", "DATE", f"7 May {year}") for year in (1963, 1539)] == [True, False]


def test_near_years_stay_in_their_order() -> None:
    given = row([("", "In 1900 it rained, in 1910 it did not.")], {"1900": "DATE", "1910": "DATE"})
    found = [find_years(edit(given, seed, near=True)[0]) for seed in range(40)]
    assert all(row <= other for row, other in found)
    assert any(first > other for first, other in (find_years(edit(given, seed)[0]) for seed in range(40)))


@pytest.mark.parametrize(
    ("pieces", "entities"),
    [
        ([("1900 Cup", "The 1900 Cup was won by Ada.")], {"1900": "DATE"}),
        ([("1900 Cup", "The 1900 Cup was won by Ada."), ("Ada", "She won it.")], {"1900": "DATE"}),
        ([("1900 Cup", "It was won on 3 May 1900.")], {"3 May 1900": "DATE"}),
        ([("Paris", "Paris is old.")], {"Paris": "GPE"}),
        ([("", "They won 14 of the 60 seats.")], {"14": "NUM"}),
    ],
)
def test_near_leaves_titles_and_parts_of_wholes(pieces: list[tuple[str, str]], entities: dict[str, str]) -> None:
    assert edit(row(pieces, entities), near=True) is None
    assert edit(row(pieces, entities)) is not None


def test_a_text_that_was_cut_off_is_near_none() -> None:
    assert edit(row([("", "It is in Foobury.")], {"Foobury": "GPE"}), near=True, GPE={"": ["Morioka, Province of"]}) is None


def test_only_names_of_one_sort_change_places() -> None:
    schools = {"Yale University": "ORG", "Labour Party": "ORG"}
    pieces = [("", "He left Yale University."), ("", "He joined the Labour Party.")]
    assert edit(row(pieces, schools)) is None
    pieces = [("", "He left Yale University."), ("", "He joined Eton College.")]
    assert edit(row(pieces, {"Yale University": "ORG", "Eton College": "ORG"})) == [
        "He left Eton College.", "He joined Yale University.",
    ]  # fmt: skip
    known = ["Yale University", "Labour Party", "Eton College", "RIAA"]
    assert divide_names(known, "ORG", EntityTable({})) == [["RIAA"], ["Labour Party"], ["Yale University", "Eton College"]]
    people = [("", "Ada King left."), ("", "Yale University stayed.")]
    assert edit(row(people, {"Ada King": "PERSON", "Yale University": "PERSON"})) is None


def test_an_acronym_follows_its_name() -> None:
    pieces = [("", "The International Monetary Fund (IMF) paid."), ("", "Greenpeace asked the IMF.")]
    found = edit(row(pieces, {"International Monetary Fund": "ORG", "IMF": "ORG", "Greenpeace": "ORG"}))
    assert found == ["The Greenpeace (Greenpeace) paid.", "International Monetary Fund asked the Greenpeace."]


def test_a_table_that_was_fitted_otherwise_is_refused() -> None:
    given = row([("", "It is in Paris.")], {"Paris": "GPE"})
    for content, plausible in (({"entities": TABLE}, True), ({"entities": TABLE, "tags": {}}, False)):
        with pytest.raises(StageError, match=r"fitted with plausible.*race\.fit"):
            EditEvidence(plausible=plausible).with_fitted(save_artifact(content))(given)


def test_a_table_of_one_form_has_no_other_to_fall_back_to() -> None:
    table = EntityTable({"GPE": {"": ["Rome"]}})
    assert table.substitute("Rome", "GPE", [], Random(1)) is None


@pytest.mark.parametrize("near", [False, True])
def test_a_year_and_a_period_that_share_it_still_agree(near: bool) -> None:
    text = "He served in 1990. His term was 1990–1993."
    given = row([("", text)], {"1990": "DATE", "1990–1993": "DATE"})
    for seed in range(10):
        (new,) = edit(given, seed, near=near)
        served, start, end = find_years(new)
        assert served == start == end - 3 != 1990


def test_digits_that_are_no_number_have_no_near_number() -> None:
    assert edit(row([("", "The tower has 10² rooms.")], {"10²": "NUM"}), NUM={}) is None
