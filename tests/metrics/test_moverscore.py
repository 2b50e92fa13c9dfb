from __future__ import annotations

import json
import math
import shutil
import string
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import ot
import pytest
import torch
from datasets import Dataset
from scipy.optimize import linprog

from hfcf.core import offline
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.metrics.shared.matching import Matching
from hfcf.metrics.shared.moverscore import MoverScore, _grams, _score, fit_idf

MINILM = Model("offline:minilm")


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def minilm() -> Model:
    try:
        offline.folder("minilm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return MINILM


@pytest.fixture
def pairs(demo: Dataset) -> list[list[str]]:
    """Ten claims, each with a sentence of its evidence; the eighth holds punctuation and rare words, the ninth is long."""
    return [[claim, evidence[0]["text"]] for claim, evidence in zip(demo["claim"][:10], demo["evidence"][:10], strict=True)]


# --- the transport


def unit(rng: np.random.Generator, rows: int, size: int = 4) -> Any:
    vectors = rng.normal(size=(rows, size))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def linear_programme(first: Any, first_weights: Any, other: Any, other_weights: Any) -> float:
    """1 / (1 + the least cost of moving one's mass to the other), with every flow a variable."""
    n, m = len(first), len(other)
    costs = [math.dist(first[i], other[j]) for i in range(n) for j in range(m)]
    leaves = [[float(k // m == i) for k in range(n * m)] for i in range(n)]
    arrives = [[float(k % m == j) for k in range(n * m)] for j in range(m)]
    amounts = [*(first_weights / first_weights.sum()), *(other_weights / other_weights.sum())]
    return float(1 / (1 + linprog(costs, A_eq=np.array([*leaves, *arrives]), b_eq=amounts).fun))


@pytest.mark.parametrize("seed", range(8))
def test_the_transport_is_the_best_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7, size=2)
    first, other, first_weights, other_weights = unit(rng, n), unit(rng, m), rng.random(n) + 0.1, rng.random(m) + 0.1
    expected = linear_programme(first, first_weights, other, other_weights)
    assert _score(first, first_weights, other, other_weights) == pytest.approx(expected, abs=1e-6)


def test_two_words_against_one_by_hand() -> None:
    first, other = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0]])
    # Three quarters of the mass go the way of √2, the rest stays.
    assert _score(first, np.array([3.0, 1.0]), other, np.array([5.0])) == pytest.approx(1 / (1 + 0.75 * math.sqrt(2)), abs=1e-9)


def test_a_word_without_weight_does_not_count() -> None:
    rng = np.random.default_rng(1)
    first, other = unit(rng, 3), unit(rng, 2)
    full = _score(first[:2], np.array([1.0, 2.0]), other, np.ones(2))
    assert _score(*_grams(first, np.array([1.0, 2.0, 0.0]), 1), other, np.ones(2)) == full
    assert _score(*_grams(first, np.array([1.0, 2.0, 0.5]), 1), other, np.ones(2)) != full


@pytest.mark.parametrize(("left", "right"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_a_text_without_weight_scores_nothing(left: float, right: float) -> None:
    vectors = unit(np.random.default_rng(0), 2)
    first, other = _grams(vectors, np.full(2, left), 1), _grams(vectors, np.full(2, right), 1)
    assert _score(*first, *other) == 0.0


@pytest.mark.parametrize("n", [2, 3])
def test_n_grams_are_means_weighed_by_idf(n: int) -> None:
    rng = np.random.default_rng(n)
    vectors, weights = unit(rng, 5), np.array([1.0, 0.0, 2.0, 0.0, 0.0])
    groups = [slice(i, i + n) for i in range(5 - n + 1)]
    # As the authors' first version has it: the sum of the words scaled by their share of the group's weight.
    means = [(vectors[its] * weights[its, None] / (weights[its].sum() + 1e-5)).sum(0) for its in groups]
    wanted = [mean / np.linalg.norm(mean) for mean, its in zip(means, groups, strict=True) if weights[its].sum()]
    found, sums = _grams(vectors, weights, n)
    assert found == pytest.approx(np.array(wanted), abs=1e-6)
    assert sums.tolist() == [weights[its].sum() for its in groups if weights[its].sum()]


def test_two_bigrams_by_hand() -> None:
    grams = _grams(np.eye(3), np.array([1.0, 1.0, 3.0]), 2)
    other = _grams(np.eye(3)[:1], np.array([1.0]), 2)  # shorter than a bigram: one group
    first, second = np.array([1, 1, 0]) / math.sqrt(2), np.array([0, 1, 3]) / math.sqrt(10)
    cost = 2 / 6 * math.dist(first, [1, 0, 0]) + 4 / 6 * math.dist(second, [1, 0, 0])
    assert _score(*grams, *other) == pytest.approx(1 / (1 + cost), abs=1e-9)


# --- texts


def test_identical_texts_score_one_and_others_less(minilm: Model, pairs: list[list[str]]) -> None:
    engine = MoverScore(model=minilm)
    assert engine.run([[text, text] for pair in pairs for text in pair]) == [1.0] * 20
    assert all(0.3 < score < 0.95 for score in engine.run(pairs))


def test_likeness_shows_in_the_score(minilm: Model) -> None:
    text = "The bridge was built in Rome."
    others = ["The bridge was built in Paris.", "A viaduct went up in Italy.", "Dogs bark at night."]
    scores = MoverScore(model=minilm).run([[text, other] for other in others])
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[2] + 0.05


def reference(pairs: list[list[str]], model: Model, counts: dict[str, Any] | None) -> list[float]:
    """`word_mover_score` of moverscore_v2 with n_gram=1 and no stop words, written again from its formula."""
    from transformers import AutoModel, AutoTokenizer

    network, tokenizer = AutoModel.from_pretrained(model.source()).eval(), AutoTokenizer.from_pretrained(model.source())
    idf: dict[int, float] = defaultdict(lambda: 1.0)
    if counts:
        idf = defaultdict(lambda: math.log(counts["rows"] + 1))
        idf |= {int(i): math.log((counts["rows"] + 1) / (n + 1)) for i, n in counts["frequencies"].items()}
    sides = []
    for texts in zip(*pairs, strict=True):
        batch = tokenizer(list(texts), padding=True, return_tensors="pt")
        with torch.no_grad():
            vectors = network(**batch).last_hidden_state.double()
        weights = torch.zeros(batch["input_ids"].shape, dtype=torch.float64)
        for i, row in enumerate(batch["input_ids"].tolist()):
            for k, token in enumerate(row):
                piece = tokenizer.convert_ids_to_tokens(token)
                muted = "##" in piece or piece in set(string.punctuation) or not batch["attention_mask"][i, k]
                weights[i, k] = 0.0 if muted else idf[token]
                vectors[i, k] *= not muted
        sides.append((vectors, weights))
    (references, reference_weights), (hypotheses, hypothesis_weights) = sides
    raw = torch.cat([references, hypotheses], 1)
    raw = raw / (raw.norm(dim=-1, keepdim=True) + 1e-30)
    scores = []
    for i in range(len(pairs)):
        distances = torch.cdist(raw[i], raw[i], compute_mode="donot_use_mm_for_euclid_dist").numpy()
        masses = np.zeros((2, len(raw[i])))
        masses[0, : reference_weights.shape[1]] = reference_weights[i].numpy()
        masses[1, reference_weights.shape[1] :] = hypothesis_weights[i].numpy()
        masses /= masses.sum(1, keepdims=True)
        scores.append(1 / (1 + float(ot.emd2(masses[0], masses[1], distances))))
    return scores


@pytest.mark.parametrize("weighed", [False, True], ids=["equal weights", "IDF"])
def test_scores_are_those_of_the_authors_formula(
    weighed: bool, minilm: Model, pairs: list[list[str]], demo: Dataset, cache: Path
) -> None:
    counts = fit_idf(demo["claim"], minilm) if weighed else None
    sha = save_artifact(counts) if counts else None
    found = MoverScore(model=minilm, idf=sha).run(pairs)
    assert found == pytest.approx(reference(pairs, minilm, counts), abs=1e-4)
    assert len(set(found)) == len(pairs)


def test_idf_changes_the_scores(minilm: Model, pairs: list[list[str]], demo: Dataset, cache: Path) -> None:
    sha = save_artifact(fit_idf(demo["claim"], minilm))
    changes = zip(MoverScore(model=minilm, idf=sha).run(pairs), MoverScore(model=minilm).run(pairs), strict=True)
    assert max(abs(first - other) for first, other in changes) > 0.005


def test_idf_counts_texts_and_not_occurrences(minilm: Model) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(minilm.source())
    found = fit_idf(iter(["rome rome rome", "rome paris"]), minilm)
    count = {tokenizer.convert_ids_to_tokens(int(i)): n for i, n in found["frequencies"].items()}
    assert found["rows"] == 2
    assert count == {"[CLS]": 2, "[SEP]": 2, "rome": 2, "paris": 1}


@pytest.mark.parametrize("texts", [[], ["rome rome"]])
def test_fewer_than_two_texts_weigh_every_word_alike(texts: list[str], minilm: Model, pairs: list[list[str]]) -> None:
    sha = save_artifact(fit_idf(iter(texts), minilm))
    assert MoverScore(model=minilm, idf=sha).run(pairs) == MoverScore(model=minilm).run(pairs)


def test_a_tokenizer_that_marks_no_continuations_is_told_of(
    minilm: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "bytes"
    shutil.copytree(minilm.source(), folder)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    content["model"] |= {
        "vocab": {piece.replace("##", "@@"): i for piece, i in vocabulary.items()},
        "continuing_subword_prefix": "@@",
    }
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    MoverScore(model=minilm).run([["Rome", "Oslo"]])
    assert "does not mark" not in caplog.text
    MoverScore(model=Model(str(folder))).run([["Rome", "Oslo"]])
    assert "its tokenizer does not mark what continues a word" in caplog.text


def test_a_lost_fitted_file_is_an_error_with_its_cure(minilm: Model) -> None:
    with pytest.raises(FileNotFoundError, match=r"ffff.*fit again"):
        MoverScore(model=minilm, idf="ffff").run([["a", "b"]])


def test_only_punctuation_scores_nothing_under_idf(minilm: Model, demo: Dataset, cache: Path) -> None:
    sha = save_artifact(fit_idf(demo["claim"], minilm))
    # The marks that open and close a text stand in every text: their IDF is 0, and nothing is left.
    assert MoverScore(model=minilm, idf=sha).run([["Rome is old.", "?!"], ["...", "..."]]) == [0.0, 0.0]


def test_a_batch_scores_like_single_requests(minilm: Model, pairs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MoverScore(model=minilm)
    together = engine.run(pairs)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")
    assert engine.run(pairs) == pytest.approx(together, abs=1e-4)


def test_the_order_of_the_two_texts_does_not_matter(minilm: Model, pairs: list[list[str]]) -> None:
    engine = MoverScore(model=minilm)
    assert engine.run([pair[::-1] for pair in pairs]) == pytest.approx(engine.run(pairs), abs=2e-5)


def test_each_different_text_of_a_window_is_encoded_once(
    minilm: Model, pairs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    words = MoverScore._words
    monkeypatch.setattr(MoverScore, "_words", lambda self, loaded, texts: seen.extend(texts) or words(self, loaded, texts))
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "200")
    claims = [claim for claim, _ in pairs]
    MoverScore(model=minilm).run([[claim, other] for claim in claims for other in claims])
    assert len(seen) == len(set(seen)) == len(claims)
    assert [len(ids) for ids in seen] == sorted((len(ids) for ids in seen), reverse=True)


def test_a_window_that_is_full_changes_no_score(minilm: Model, pairs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MoverScore(model=minilm, n_gram=2)
    together = engine.run(pairs)
    monkeypatch.setattr("hfcf.metrics.shared.batching.WINDOW", 100)
    assert engine.run(pairs) == pytest.approx(together, abs=1e-4)
    assert together != MoverScore(model=minilm).run(pairs)


def test_groups_of_no_words_are_an_error(minilm: Model) -> None:
    with pytest.raises(ValueError, match="n_gram must be at least 1, got 0"):
        MoverScore(model=minilm, n_gram=0)


@pytest.mark.parametrize("engine", [MoverScore, Matching])
def test_a_model_with_an_adapter_is_an_error(engine: Any, tiny_model: Any) -> None:
    with pytest.raises(ValueError, match="adapter"):
        engine(model=Model(tiny_model("classifier"), adapter="me/adapter")).load(torch.device("cpu"))
