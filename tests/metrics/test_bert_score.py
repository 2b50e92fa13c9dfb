"""Similarities of sentences against the authors' `bert_score`, against numbers that it gave, and by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from offline_models import installed

from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.metrics.shared.matching import Matching, Sentence, similarities

SENTENCES = ["Ice is cold.", "The sun melts ice.", "Dogs bark at the postman in the morning.", "Ice"]
PAIRS = [(SENTENCES[i], SENTENCES[j]) for i in range(4) for j in range(i, 4)]
# F1 of `PAIRS` by bert_score 0.13.3 with offline:minilm, 6 layers, batch_size=1.
STORED = [1.0, 0.599707, 0.109553, 0.715857, 1.0, 0.149389, 0.570682, 1.0, 0.065695, 1.0]
NEEDS_MINILM = pytest.mark.skipif(not installed("minilm"), reason="the offline models are not installed")
NEEDS_BERT_SCORE = pytest.mark.skipif(
    importlib.util.find_spec("bert_score") is None, reason='bert_score is not installed: pip install ".[test]"'
)


def sentence(*tokens: tuple[float, float]) -> Sentence:
    """A sentence of unit vectors in the plane, between two special tokens that point the opposite way."""
    vectors = torch.tensor([(-1.0, 0.0), *tokens, (-1.0, 0.0)])
    weights = np.array([0.0, *[1 / len(tokens)] * len(tokens), 0.0], dtype=np.float32)
    return Sentence([0] * len(vectors), weights, vectors=vectors)


def test_a_pair_by_hand() -> None:
    """Tokens: east and north against one between them (0.6, 0.8): cosines 0.6 and 0.8."""
    east, north, between = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)
    both, one = sentence(east, north), sentence(between)
    # Recall over the reference's two tokens: (0.6 + 0.8) / 2 = 0.7; precision of the hypothesis's token: 0.8.
    assert similarities([both], [one])[0, 0] == pytest.approx(2 * 0.8 * 0.7 / 1.5, abs=1e-6)
    assert similarities([one], [both])[0, 0] == pytest.approx(2 * 0.7 * 0.8 / 1.5, abs=1e-6)
    assert similarities([both], [both])[0, 0] == pytest.approx(1, abs=1e-6)
    # West is nearest to a special token, which is west, and north to north: special tokens are found, and weigh nothing.
    west = sentence((-1.0, 0.0), north)
    assert similarities([west], [sentence(north)])[0, 0] == pytest.approx(1, abs=1e-6)


def ours(model: str, layer: int) -> list[float]:
    engine = Matching(model=Model(model, dtype="float32"), layer=layer)
    return list(engine.run([[[reference], [hypothesis]] for reference, hypothesis in PAIRS]))


def theirs(folder: str, layer: int, **settings: Any) -> list[float]:
    from bert_score import score

    references, hypotheses = zip(*PAIRS, strict=True)
    _, _, f1 = score(list(hypotheses), list(references), model_type=folder, num_layers=layer, device="cpu", **settings)
    return [float(value) for value in f1]


@NEEDS_MINILM
@pytest.mark.usefixtures("on_cpu")
def test_numbers_that_bert_score_gave() -> None:
    assert ours("offline:minilm", 6) == pytest.approx(STORED, abs=1e-4)


@NEEDS_BERT_SCORE
@NEEDS_MINILM
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("layer", [3, 6])
def test_a_real_encoder_gives_what_bert_score_gives(layer: int) -> None:
    """Pair by pair: in a padded batch `bert_score` gives padding the cosine 0, which may be the nearest."""
    assert ours("offline:minilm", layer) == pytest.approx(theirs(str(offline.folder("minilm")), layer, batch_size=1), abs=1e-4)


@NEEDS_BERT_SCORE
@pytest.mark.usefixtures("on_cpu")
def test_an_encoder_of_random_weights_gives_what_bert_score_gives(tmp_path: Path) -> None:
    folder = tiny.classifier(tmp_path / "tiny")
    found = ours(folder, 1)
    assert found == pytest.approx(theirs(folder, 1, batch_size=1), abs=1e-4)
    assert len({round(value, 3) for value in found}) > 3
