from __future__ import annotations

from typing import Any

from hfcf.core.model import Model
from hfcf.engines.generator import lossy_words, restore_words


class Ascii:
    """A tokenizer that loses every letter with a mark."""

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, Any]:
        return {"input_ids": [ord(letter) for letter in text if letter.isascii()]}

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, ids))


def test_words_that_lose_letters_are_known_by_what_is_left() -> None:
    assert lossy_words("Medellín in Categoría Primera", Ascii()) == {"Medelln": "Medellín", "Categora": "Categoría"}


def test_a_form_that_may_be_another_word_is_left_out() -> None:
    assert lossy_words("Žan met an and Zán", Ascii()) == {"Zn": "Zán"}  # "an" stands in the text
    assert lossy_words("Žan and Šan", Ascii()) == {}  # both leave "an"
    assert lossy_words("東京", Ascii()) == {}  # nothing is left


def test_whole_words_alone_are_put_back() -> None:
    source, t5 = "Santiago Wanderers is a club in Valparaíso.", Model("offline:t5")
    texts = ["A club in Valparaso.", "Valparasos are many.", "No such word."]
    assert restore_words(texts, source, t5) == ["A club in Valparaíso.", "Valparasos are many.", "No such word."]
    assert restore_words(texts, "Plain letters.", t5) == texts


def test_letters_with_marks_of_their_own_are_known() -> None:
    assert restore_words(["He plays for Toru."], "He plays for Torun\u0301.", Model("offline:t5")) == ["He plays for Toru\u0144."]
