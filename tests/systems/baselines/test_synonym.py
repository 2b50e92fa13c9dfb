from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import edits, offline
from hfcf.core.task import apply_edits, revert_edits
from hfcf.systems.baselines._shared.word_edits import UNCHANGED, article, words_to_edit
from hfcf.systems.baselines.synonym import RewriteSynonym, Synonym, synonym_edits
from hfcf.tasks.verification import LABELS

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

CLAIM = "The  film's director, who wrote two large books, lives near an old church in Big Bear City; he earned $3.5 million (1994)."


def replaced(text: str, share: float = 1.0, seeds: int = 100) -> dict[str, set[str]]:
    """Which words of a text are ever replaced, and by what."""
    found: dict[str, set[str]] = {}
    for seed in range(seeds):
        for edit in synonym_edits(text, random.Random(seed), share=share):
            found.setdefault(edit["before"], set()).add(edit["after"])
    return found


def test_only_common_words_are_replaced() -> None:
    assert set(replaced(CLAIM)) == {"film", "director", "wrote", "large", "books", "lives", "near", "old", "church", "earned"}


@pytest.mark.parametrize(
    "text",
    [
        "Paris Hilton", "Smith", "USA", "He is the one who had it.", "It was 1994.", "He can't, won't and didn't.", "B2 x86 co-op",
        "three hundred", "Naïve café", "東京は首都です。", "", "...", "May",
        "He might, must, could, would, may and shall.", "Nobody", "Nothing is nowhere.", "dozens of millions", "eleventh",
        "twentieth", "two thirds", "cafe\u0301", "e\u0301film",
    ],
)  # fmt: skip
def test_nothing_to_replace(text: str) -> None:
    assert replaced(text, seeds=20) == {}


def test_spacing_punctuation_and_capitals_survive() -> None:
    text = "Rivers  were\tlarge — ‘old’ (churches)…\n"
    for seed in range(50):
        found = synonym_edits(text, random.Random(seed), share=1.0)
        new = edits.replace_text(text, found)
        assert new[0].isupper()
        frame = re.escape(text)
        for edit in found:
            frame = frame.replace(edit["before"], "[A-Za-z'’ -]+")
            assert text[edit["start"] : edit["end"]] == edit["before"]
            assert (edit["field"], edit["piece"]) == ("claim", -1)
        assert re.fullmatch(frame, new)
        assert [edit["before"] for edit in found] == ["Rivers", "large", "old", "churches"][-len(found) :]


@pytest.mark.parametrize(
    ("text", "word", "some"),
    [
        ("both films", "films", {"movies", "pictures", "motion pictures"}),
        ("it released them", "released", {"freed", "issued", "let go of"}),
        ("while directing it", "directing", {"aiming", "conducting"}),
        ("she creates it", "creates", {"makes", "produces"}),
        ("the larger one", "larger", {"bigger"}),
        ("she left it", "left", {"departed", "quit"}),
    ],
)
def test_inflection_follows_the_word(text: str, word: str, some: set[str]) -> None:
    synonyms = replaced(text, seeds=400)[word]
    assert some & synonyms, synonyms
    assert not {"movie", "free", "aim", "make", "big", "depart", "leave"} & synonyms


def test_articles_still_fit() -> None:
    for word in replaced("It is a film.", seeds=200)["film"]:
        assert word[0] not in "aeiou"
    old = replaced("It is an old film, an automobile and a car.", seeds=300)
    assert old["automobile"] == {"auto"}
    assert old["car"] == {"machine", "motorcar", "railcar", "railroad car", "railway car", "gondola", "cable car"}
    assert all(word[0] in "aeiou" or word.startswith("hon") for word in old["old"])  # the h of "honest" is silent


@pytest.mark.parametrize(("share", "number"), [(0.0, 1), (0.01, 1), (0.1, 2), (0.2, 4), (0.3, 7), (1.0, 10)])
def test_share(share: float, number: int) -> None:
    """Of the claim's twenty-two words ("3.5" is one); ten can be replaced."""
    for seed in range(20):
        assert len(synonym_edits(CLAIM, random.Random(seed), share=share)) == number


def test_long_claims_take_no_longer_in_proportion() -> None:
    text = "The film is older than a book. " * 650
    assert len(text) > 20_000
    synonym_edits(text[:60], random.Random(1))  # the files are open
    begun = time.process_time()
    assert len(synonym_edits(text, random.Random(1), share=1.0)) > 1000
    assert time.process_time() - begun < 0.8


def test_accents_of_decomposed_text_belong_to_their_letters() -> None:
    assert replaced("The cafe\u0301 film", seeds=50).keys() == {"film"}
    assert words_to_edit("cafe\u0301s cafe\u0301s", 1.0) == 2
    assert article("cafe\u0301a film", 7) is None
    assert article("x" + " " * 30 + "film", 31) is None


def test_shares_outside_are_refused() -> None:
    with pytest.raises(ValueError, match="share must be at most 1"):
        Synonym(share=1.5)


@pytest.fixture
def rows(demo: Dataset) -> Dataset:
    found = [dict(row) for row in demo.select(range(12))]
    for i, row in enumerate(found):
        row["label"] = LABELS[i % 3]
    found[5]["claim"] = "He is who he was."
    return Dataset.from_list(found, features=demo.features)


def test_the_system(rows: Dataset) -> None:
    done = Synonym()(rows)
    made = hfcf.expand(done)
    assert len(made) == 11
    assert set(made["label"]) == set(LABELS)
    sources = {row["id"]: row for row in rows}
    for row in made:
        source = sources[row["source_id"]]
        assert (row["label"], row["evidence"], row["system"]) == (source["label"], source["evidence"], "synonym")
        assert apply_edits(source, row["edits"])["claim"] == row["claim"] != source["claim"]
        assert revert_edits(row, row["edits"])["claim"] == source["claim"]
        assert all(edit["before"].lower() not in UNCHANGED for edit in row["edits"])
    assert done[5]["status"] == {
        "accepted": False, "stage": "rewrite_synonym", "reason": "no word of the claim has a synonym that may take its place",
    }  # fmt: skip
    assert done[5]["candidates"] == []
    assert not Synonym.flips


def test_another_seed_draws_other_synonyms(rows: Dataset) -> None:
    prepared = hfcf.prepare(rows, Synonym())
    drawn, other = (list(prepared.map(Synonym(seed=seed).rewrite_synonym, batched=True)) for seed in (5, 6))
    assert drawn != other


def check_claims(claims: list[str]) -> None:
    stage, made = RewriteSynonym(), 0
    rows: list[dict[str, Any]] = [{"id": str(i), "claim": claim, "label": "SUPPORTS"} for i, claim in enumerate(claims)]
    for row, answer in zip(rows, stage.batch(rows), strict=True):
        if isinstance(answer, dict):
            made += 1
            candidate = answer["candidates"][0]
            assert edits.replace_text(row["claim"], candidate["edits"]) == candidate["claim"]
            for edit in candidate["edits"]:
                assert edit["before"].islower() or edit["start"] <= 2
                assert edit["after"].isprintable()
                assert "_" not in edit["after"]
    assert made > 0.95 * len(rows)


def test_claims_of_the_demo(demo: Dataset) -> None:
    check_claims(list(demo["claim"]))


def test_real_claims(data: Path) -> None:
    release = json.loads((data / "hover" / "hover_dev_release_v1.1.json").read_text(encoding="utf-8"))
    check_claims([row["claim"] for row in release])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My kids loved every minute of it.", ["My children loved every minute of it."]),
        ("He put the glass jar on the shelf.", []),
        ("The film was a wonderful surprise.", ["The movie was a marvelous surprise."]),
        ("The doctor began to speak rapidly.", ["The doctor started to speak quickly."]),
        ("We bought a car near the big city.", ["We purchased a car near the large city."]),
        ("He watched the dog run up a curious hill.", ["He watched the dog run up a peculiar hill."]),  # not "a queer hill"
        ("I would gladly watch this again.", []),  # not "I would lief see this again"
        ("He was an idiot and a drunk.", []),  # not "an imbecile and a saluted"
        ("Please set the aspirin down.", []),  # not "delight"
        ("The show must go on.", []),  # a noun as often as a verb
    ],
)
def test_common_synonyms_can_be_published(text: str, expected: list[str]) -> None:
    """Of single texts, the commonest sense of a word's usual part of speech alone is taken."""
    assert hfcf.augment(text, system="synonym", n=5, seed=1) == expected
    made = Synonym.preset("offline", seed=1)(hfcf.from_dataset([{"text": text, "label": "good"}]))
    assert {row["text"] for row in hfcf.expand(made)} <= {*expected}


def test_the_papers_synonyms_are_of_any_sense() -> None:
    assert Synonym.preset("paper").senses is None
    assert "had intercourse" in {
        edit["after"] for seed in range(60) for edit in synonym_edits("They loved it.", random.Random(seed), share=1.0)
    }
