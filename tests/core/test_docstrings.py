"""The first sentences of docstrings, which tables and lists repeat."""

from __future__ import annotations

import pytest

from hfcf.core.docstrings import first_sentence


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Draw it at random (Rand. Agen-Qgen). It is new.", "Draw it at random (Rand. Agen-Qgen)"),
        ("Draw it at random (Rand. Agen-Qgen) anew. It is new.", "Draw it at random (Rand. Agen-Qgen) anew"),
        ("Give a share, 0.5 or more. It is one.", "Give a share, 0.5 or more"),
        ("Read it … Then write.", "Read it … Then write"),
        ("None is open (it isn't. It is.", "None is open (it isn't. It is."),
    ],
)
def test_a_full_stop_in_brackets_ends_no_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first
