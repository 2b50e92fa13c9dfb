"""Small functions that metrics and scores of models share."""

from __future__ import annotations

from hfcf.metrics.multi_hop import count_covered
from hfcf.metrics.question_types import common_types, question_type
from hfcf.metrics.scores.consistency import consistency, edit_bin, ordered_strata
from hfcf.metrics.scores.translation import bleu_chrf
from hfcf.metrics.shared.batching import WINDOW, windows
from hfcf.metrics.shared.metric import mean
from hfcf.metrics.shared.texts import content_words, folded_words


def test_words_are_compared_without_case_accents_and_marks() -> None:
    assert folded_words("Beyoncé's U.S. film -LRB- 2006 -RRB-.") == ("beyonce", "u.s", "film", "2006")
    assert folded_words("東京は日本の首都です。") == ()
    assert content_words("He was born in the city of Rome in 1946.") == {"1946", "born", "city", "rome"}
    pieces = ["Jaws: Spielberg directed it.", "Spielberg was born in 1946."]
    assert count_covered("Spielberg, born in 1946, directed Jaws.", pieces) == (5, 3)


def test_types_of_questions() -> None:
    assert [question_type(text) for text in ("Who’s the captain of RFC?", "Where?", "?")] == ["who's the", "where", ""]
    assert common_types(["who is it", "Who is she?", "when was it"]) == {"who is": 0.66667, "when was": 0.33333}


def test_consistency_is_conditioned_on_right_originals() -> None:
    numbers = consistency([True, True, False, False], [True, False, True, False], {"change": ["a", "b", "b", None]})
    assert (numbers["consistency"], numbers["both"], numbers["conditioned"]) == (0.5, 0.25, 2)
    assert numbers["change"]["b"]["consistency"] == 0.0
    assert consistency([], [])["consistency"] is None


def test_strata_are_ordered_by_distance() -> None:
    assert [edit_bin(distance) for distance in (0, 4, 5, 11)] == ["0", "1–4", "5–10", ">10"]
    assert ordered_strata([">10", "1–4", None]) == ["1–4", ">10"]
    assert ordered_strata(["predicate", "reference"]) == ["predicate", "reference"]


def test_means_windows_and_translations() -> None:
    assert (mean([1.0, None, 2.0]), mean([None])) == (1.5, None)
    assert windows([WINDOW, 1, 2]) == [[0], [1, 2]]
    assert bleu_chrf(["Rome is a very old city."], ["Rome is a very old city."]) == {"bleu": 100.0, "chrf": 100.0}
