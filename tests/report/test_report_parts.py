"""Small parts of the page and of `hfcf peek`: numbers and their words, JSON in a page, rows as the page holds them."""

from __future__ import annotations

from rich.text import Text

from hfcf.report.figures import number
from hfcf.report.measures import low_is_better, measures, ordered, phrases
from hfcf.report.page import embed_json, flat, hash_script
from hfcf.report.page_rows import PLAIN, packed, rejected_row, shares, texts
from hfcf.report.markup import printable


def test_numbers_of_a_row_and_their_words() -> None:
    row = {"minimality": {"distance": 5}, "scores": [{"name": "verifier: REFUTES", "value": 0.9}]}
    assert measures(row, ["minimality.distance"]) == {"minimality.distance": 5, "verifier": 0.9}
    scores = [*row["scores"], {"name": "log-probability", "value": -0.5}]
    said = ["the verifier says REFUTES 90%", "probability of a token 0.61", "word edits 5"]
    assert phrases({**row, "scores": scores}, ["minimality.distance"]) == said


def test_which_numbers_are_better_and_come_first() -> None:
    less = ("minimality.distance", "minimality.share", "copy_rate.rate", "copy_rate.copied", "diversity.bleu", "perplexity")
    more = ("minimality.kept", "multi_hop.combines", "multi_hop.kept", "diversity.inverse", "verifier")
    assert all(map(low_is_better, less))
    assert not any(map(low_is_better, more))
    assert ordered(["verifier", "minimality", "verifier"]) == ["minimality", "verifier"]
    assert ordered(["a", "b.x", "b.y"], ["b", "a"]) == ["b.x", "b.y", "a"]


def test_numbers_and_settings_as_text() -> None:
    assert [number(value) for value in (12345, 9999.7, 0.123456, None, 1e-7)] == ["12,345", "10,000", "0.1235", "–", "1e-07"]
    settings = {"model": {"name": "t5", "revision": None}, "types": ["ORG", "NUM"]}
    assert flat(settings) == [("model.name", "t5"), ("model.revision", "–"), ("types", "ORG, NUM")]


def test_data_can_drive_neither_the_page_nor_the_terminal() -> None:
    assert embed_json(["</script>"]) == '["\\u003c/script\\u003e"]'
    assert hash_script("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert printable(Text("\x1b[2J\u202eevil")).plain == "�[2J�evil"


def test_rows_of_the_page() -> None:
    assert [shares(*sizes) for sizes in ((10, 20, 100), (80, 90, 100), (90, 20, 100))] == [(10, 20), (50, 50), (80, 20)]
    assert packed([["a"]]) == [["a"]]
    assert packed([["a" * PLAIN]])[0].startswith("H4sI")
    relation = {"tokens": ["eggs", "in", "buckets"], "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}
    assert texts(relation)[1:] == (("eggs in buckets",), ((0, "head", 0, 1), (0, "tail", 2, 3)))
    row = rejected_row({"id": "1", "claim": "a", "label": "SUPPORTS"}, None)
    assert row == {"id": "1", "claim": "a", "label": None, "change": None, "scores": None, "edits": []}
