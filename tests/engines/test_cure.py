from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hfcf.core.model import Model
from hfcf.engines.cure import OUTSIDE, Cure, Gates, encode_pieces, save_gates
from hfcf.text.evidence import join

Tiny = Callable[[str], str]

EVIDENCE = [
    [{"title": "Rome", "text": "It was built early."}, {"title": "", "text": "Dogs bark."}],
    [{"title": "", "text": "One word."}],
    [{"title": "", "text": "The singer, born in Lyon, won nothing, but toured for ten years in the county."}] * 3,
    [{"title": "", "text": ""}],
]
REQUESTS: list[Any] = [["The bridge stands in Rome.", join(pieces)[0], [list(p) for p in join(pieces)[1]]] for pieces in EVIDENCE]


pytestmark = pytest.mark.usefixtures("on_cpu")


def explainer(folder: Path, seed: int = 0, **changes: Any) -> Model:
    torch.manual_seed(seed)
    gates = Gates(32, 32, (0, 1, 2))
    with torch.no_grad():
        for weights in (gates.token[-1].weight, gates.sentence[-1].weight):
            weights *= 20  # so that gates differ
    other = {"name": "me/other", "key": "weights of another+auto"}
    settings = {"hidden_size": 32, "num_hidden_layers": 2, "layers": [0, 1, 2], "width": 128, "verifier": other}
    save_gates(gates, folder, {**settings, **changes})
    return Model(str(folder))


@pytest.fixture
def engine(tiny_model: Tiny, tmp_path: Path) -> Cure:
    return Cure(verifier=Model(tiny_model("classifier")), explainer=explainer(tmp_path / "gates"), max_length=64)


def flat(answer: dict[str, Any]) -> list[float]:
    return [p for kind in ("words", "pieces") for *_, p in answer[kind]]


def test_an_answer_names_every_word_and_every_piece(engine: Cure) -> None:
    answers = engine.run(REQUESTS)
    text = REQUESTS[0][1]
    assert [text[start:end] for start, end, _ in answers[0]["words"]] == text.split()
    assert [piece for piece, _ in answers[0]["pieces"]] == [0, 1]
    assert answers[3] == {"words": [], "pieces": []}
    assert json.loads(json.dumps(answers)) == answers
    values = [p for answer in answers for p in flat(answer)]
    assert all(0 <= p <= 1 for p in values)
    assert max(values) - min(values) > 0.2


def test_batched_alone_and_in_any_order_are_the_same(engine: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    batched = engine.run(REQUESTS)
    turned = engine.run(REQUESTS[::-1])[::-1]
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")
    alone = engine.run(REQUESTS)
    for other in (turned, alone):
        for one, two in zip(batched, other, strict=True):
            assert flat(one) == pytest.approx(flat(two), abs=1e-4)


def test_padding_does_not_matter(engine: Cure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "100000")
    [alone] = engine.run([REQUESTS[1]])
    padded = engine.run([REQUESTS[1], REQUESTS[2]])[0]
    assert flat(padded) == pytest.approx(flat(alone), abs=1e-4)


def test_claim_and_special_tokens_have_no_gate_and_a_colon_is_its_titles(engine: Cure) -> None:
    tokenizer = engine.loaded()[1]
    [item] = encode_pieces(tokenizer, REQUESTS[:1], 64)
    pieces, spans, text = item.extra
    first = pieces.index(0)
    assert set(pieces[:first]) == {OUTSIDE}
    assert pieces[-1] == OUTSIDE
    assert len(pieces) == len(spans) == len(item)
    colon = next(i for i, span in enumerate(spans) if span and text[span[0] : span[1]] == ":")
    assert pieces[colon] == 0
    assert pieces == sorted(pieces[:first]) + sorted(pieces[first:-1]) + [OUTSIDE]


def test_evidence_past_the_cut_has_no_gate(tiny_model: Tiny, tmp_path: Path) -> None:
    engine = Cure(verifier=Model(tiny_model("classifier")), explainer=explainer(tmp_path / "gates"), max_length=24)
    answer = engine.run(REQUESTS)[2]
    assert [piece for piece, _ in answer["pieces"]] == [0]
    assert len(answer["words"]) < len(REQUESTS[2][1].split()) / 2


def test_the_key_follows_the_explainers_contents(engine: Cure, tmp_path: Path) -> None:
    first, answers = engine.settings(), engine.run(REQUESTS)
    copy = Cure(
        verifier=engine.verifier, explainer=Model(str(shutil.copytree(tmp_path / "gates", tmp_path / "copy"))), max_length=64
    )
    assert copy.settings() == first
    explainer(tmp_path / "gates", seed=1)
    assert engine.settings() != first
    assert engine.run(REQUESTS) != answers


@pytest.mark.parametrize(("what", "has"), [("hidden_size", 32), ("num_hidden_layers", 2)])
def test_another_verifier_than_it_was_trained_for_is_an_error(what: str, has: int, tiny_model: Tiny, tmp_path: Path) -> None:
    wrong = explainer(tmp_path / "gates", **{what: 384})
    engine = Cure(verifier=Model(tiny_model("classifier")), explainer=wrong, max_length=64)
    with pytest.raises(ValueError, match=rf"verifier me/other.*{what} 384.*{has}"):
        engine.run(REQUESTS)


def test_a_folder_without_gates_is_an_error(tiny_model: Tiny, tmp_path: Path) -> None:
    engine = Cure(verifier=Model(tiny_model("classifier")), explainer=Model(str(tmp_path)), max_length=64)
    with pytest.raises(ValueError, match=r"explainer\.json"):
        engine.run(REQUESTS)


def test_gates_of_another_verifier_of_that_size_are_told(
    engine: Cure, tiny_model: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine.run(REQUESTS[:1])
    assert "was trained for the verifier me/other, not for this one" in caplog.text
    caplog.clear()
    its = Model(tiny_model("classifier"))
    own = explainer(tmp_path / "own", verifier={"name": "it", "key": its.key()})
    Cure(verifier=its, explainer=own, max_length=64).run(REQUESTS[:1])
    assert not caplog.text
