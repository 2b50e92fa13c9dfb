"""Texts that are plainly not English, without a false alarm on English with foreign names."""

from __future__ import annotations

import pytest

from hfcf.core.preflight import looks_foreign


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Rom ist die Hauptstadt von Italien.", True),
        ("Rome est la capitale de l'Italie.", True),
        ("Roma es la capital de Italia y una de las ciudades más antiguas.", True),
        ("罗马是意大利的首都。", True),
        ("روما هي عاصمة إيطاليا.", True),
        ("Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom Rom.", True),  # twelve words without one of English
        ("Rome is the capital of Italy.", False),
        ("Robert De Niro acted.", False),
        ("El Camino de los Muertos is a road in Spain.", False),
        ("Three men walking outdoors. Three men act.", False),  # "men" is Danish, too
        ("Łódź, Kraków.", False),
        ("", False),
        ("1984, 2001.", False),
    ],
)
def test_texts(text: str, foreign: bool) -> None:
    assert looks_foreign(text) == foreign
