"""Small parts of the page and of `hfcf peek`: numbers and their words, JSON in a page, rows as the page holds them."""

from __future__ import annotations

import pytest
from rich.text import Text

from hfcf.core.segments import Mark, Segment, compare_texts, find_spans
from hfcf.report.figures import number
from hfcf.report.markup import block_html, html, printable, terminal
from hfcf.report.measures import low_is_better, measures, ordered
from hfcf.report.page import embed_json, flat, hash_script
from hfcf.report.rows import rejected_row, share_page


def test_numbers_of_a_row_and_their_words() -> None:
    row = {"minimality": {"distance": 5}, "scores": [{"name": "verifier: REFUTES", "value": 0.9}]}
    assert measures(row, ["minimality.distance"]) == {"minimality.distance": 5, "verifier": 0.9}


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
    assert [share_page(*sizes) for sizes in ((10, 20, 100), (80, 90, 100), (90, 20, 100))] == [(10, 20), (50, 50), (80, 20)]
    row = rejected_row({"id": "1", "claim": "a", "label": "SUPPORTS"}, None)
    assert row == {"id": "1", "claim": "a", "label": None, "change": None, "scores": None, "edits": []}


EGGS = [Mark(4, 8, "head", "₁")]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a red box", "a blue box", "a <del>red</del> <ins>blue</ins> box"),
        ("<b> & \x1b[2J", "<b> & \x1b[2J", "&lt;b&gt; &amp; �[2J"),
        ("a", "a & <i>", "a <ins>&amp; &lt;i&gt;</ins>"),
    ],
)
def test_texts_with_their_changes_are_html(before: str, after: str, shown: str) -> None:
    assert html(find_spans(before, after)) == shown


def test_one_text_is_shown_with_marks_everywhere() -> None:
    sides = [[Segment("title", 0, "Farm", "text 0"), Segment("text", 0, f"The eggs were {word}.", "text 0", EGGS)] for word in "ab"]
    sides = [[segment._replace(field="text.title") if segment.field == "title" else segment for segment in side] for side in sides]
    [block] = compare_texts(*sides)
    assert (block.before, block.after) == ("[Farm] The [eggs]₁ were a.", "[Farm] The [eggs]₁ were b.")
    assert terminal(block, "after", signs=True).plain == "[Farm] The [eggs]₁ were {+b+}."
    assert '<b>Farm</b> The <mark class="head" title="head">eggs</mark> were <del>a</del>' in block_html(block)


def test_white_space_between_marks_has_no_signs() -> None:
    old = Segment("question", -1, "when did it open in 1937", "question", (Mark(20, 24, "answer"),))
    new = Segment("question", -1, "when did it open in 1883", "question", (Mark(20, 24, "answer"),))
    [block] = compare_texts([old], [new])
    shown = terminal(block, "before", signs=True).plain, terminal(block, "after", signs=True).plain
    assert shown == ("when did it open in [-[1937]-]", "when did it open in {+[1883]+}")


def test_each_side_shows_its_own_marks() -> None:
    old, new = (
        [Segment("context", -1, f"Ada wrote {what} in 1843.", "context", (mark,))]
        for what, mark in (("it", Mark(0, 3, "answer")), ("this", Mark(18, 22, "answer")))
    )
    (block,) = compare_texts(old, new)
    assert terminal(block, "before").plain == "[Ada] wrote it in 1843."
    assert terminal(block, "after").plain == "Ada wrote this in [1843]."
    (same,) = compare_texts(old, [new[0]._replace(text=old[0].text, marks=(Mark(16, 20, "answer"),))])
    assert terminal(same, "before").plain == "[Ada] wrote it in 1843."
    assert terminal(same, "after").plain == "Ada wrote it in [1843]."


def test_where_little_is_left_both_sides_are_shown() -> None:
    [block] = compare_texts([Segment("claim", -1, "Rome is old", "claim")], [Segment("claim", -1, "Nobody knows", "claim")])
    assert "claim, before" in block_html(block)
    assert "claim, after" in block_html(block)
    assert terminal(block, "before", signs=True).plain == "Rome is old"
