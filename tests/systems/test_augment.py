"""`hfcf.augment`: texts in, texts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from offline_models import installed

import hfcf
from hfcf.core.model import Model

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")
TEXT = "The quick fox won the long race."


def test_a_text_and_a_list_of_texts() -> None:
    alone = hfcf.augment(TEXT, system="eda", n=4, seed=7, alpha=0.3)
    assert 2 <= len(alone) <= 4
    assert len(set(alone)) == len(alone)
    both = hfcf.augment([TEXT, "A dull story with terrible music."], system="eda", n=4, seed=7, alpha=0.3)
    assert both[0] == alone
    assert both[1]
    assert hfcf.augment([]) == []


def test_n_texts_of_a_system_that_makes_one() -> None:
    several = hfcf.augment(TEXT, system=hfcf.Synonym(share=0.5, senses="any"), n=5)
    assert len(several) > 1
    assert several[0] == hfcf.augment(TEXT, system="synonym", senses="any", preset="paper", share=0.5)[0]


def test_fewer_texts_than_asked_for_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = "The doctor began to speak rapidly."
    assert len(hfcf.augment(text, system="synonym", n=3)) < 3
    assert "fewer than 3" in capsys.readouterr().err
    assert len(hfcf.augment(text, system="synonym")) == 1
    assert not capsys.readouterr().err


def test_a_text_that_gives_none_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert hfcf.augment(["Αθήνα!", TEXT, " "])[::2] == [[], []]
    told = capsys.readouterr().err
    assert "eda made none of text 0: the text has none of the letters a–z" in told
    assert "text 2: the text is empty" in told


def test_systems_that_need_more_than_a_text(tiny_model: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match=r"llm.*eda.*synonym"):
        hfcf.augment(TEXT, system="llm")
    with pytest.raises(ValueError, match="race"):
        hfcf.augment(TEXT, system="race")
    with pytest.raises(ValueError, match=r"n .*2\.5"):
        hfcf.augment(TEXT, n=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        hfcf.augment(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"n .*0"):
        hfcf.augment(TEXT, n=0)
    with pytest.raises(ValueError, match=r"num_return_sequences.*5.*6"):
        hfcf.augment(TEXT, system=hfcf.Paraphrase(generator=Model(tiny_model("t5"))), n=6)


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA, pd.NaT, 3, ["a text"]])
def test_what_is_no_text_is_refused_by_its_number(value: object) -> None:
    with pytest.raises(ValueError, match="text 1") as error:
        hfcf.augment([TEXT, value], system="eda")  # type: ignore[list-item]
    assert ("is null" in str(error.value)) is not isinstance(value, int | list)


@pytest.mark.parametrize("texts", [pd.DataFrame({"customer review": ["A fine film."]}), {"a": "A fine film."}])
def test_a_table_is_no_list_of_texts(texts: Any) -> None:
    with pytest.raises(ValueError, match=type(texts).__name__):
        hfcf.augment(texts)
