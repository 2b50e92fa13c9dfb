"""The corrector's text form, and its claims by a tiny T5 and by the offline adapter."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from offline_models import installed

from hfcf.core.model import Model
from hfcf.engines.corrector import Corrector, check_corrector, contents, filled, join_spans, masked

CLAIM = "Ann was born in 1859, in Rome."
SPANS = [(16, 20), (25, 29)]


def test_what_is_masked_comes_back() -> None:
    assert masked(CLAIM, SPANS, "E.") == "fill: Ann was born in <extra_id_0>, in <extra_id_1>. evidence: E."
    assert filled(CLAIM, SPANS, contents(CLAIM, SPANS)) == CLAIM
    assert filled(CLAIM, SPANS, "<pad> <extra_id_0> 1864<extra_id_1>Oslo</s> <pad>") == "Ann was born in 1864, in Oslo."
    assert filled(CLAIM, SPANS, "<extra_id_1> Oslo <extra_id_0> 1864") == "Ann was born in 1864, in Oslo."


@pytest.mark.parametrize("text", ["", "<extra_id_0> 1864</s>", "<extra_id_0><extra_id_1> Oslo", "1864 Oslo"])
def test_a_mask_without_words_makes_no_claim(text: str) -> None:
    assert filled(CLAIM, SPANS, text) is None


def test_spans_with_no_word_between_them_are_one() -> None:
    assert join_spans("a, b c", [(3, 4), (0, 1), (5, 6)]) == [(0, 6)]
    assert join_spans("a b c", [(4, 5), (0, 1)]) == [(0, 1), (4, 5)]


def test_answers_are_whole_claims_with_the_rest_as_it_was(tiny_model: Callable[[str], str]) -> None:
    model = Model(tiny_model("t5_marked"))
    check_corrector(model)
    answers = Corrector(model=model, num_beams=8, num_return_sequences=8, max_new_tokens=6).run(
        [[CLAIM, [[16, 20]], "Born 1864."]] * 2
    )
    assert answers[0] == answers[1]
    assert all(answer["text"].startswith("Ann was born in ") and answer["text"].endswith(", in Rome.") for answer in answers[0])
    assert len({answer["text"] for answer in answers[0]}) == len(answers[0])


def test_a_model_without_marks_is_refused(tiny_model: Callable[[str], str]) -> None:
    for kind in ("t5", "gpt2"):
        with pytest.raises(ValueError, match="<extra_id_0>"):
            check_corrector(Model(tiny_model(kind)))


@pytest.mark.skipif(not installed("t5"), reason="the offline models are not installed")
def test_the_offline_corrector_reads_the_evidence() -> None:
    claim = "Jaws was directed by George Lucas."
    request = [claim, [[21, 33]], "Jaws: Jaws is a 1975 film directed by Steven Spielberg."]
    (answer,) = Corrector(model=Model("offline:t5", adapter="hfcf:corrector")).run([request])
    assert answer[0]["text"] == "Jaws was directed by Steven Spielberg."
