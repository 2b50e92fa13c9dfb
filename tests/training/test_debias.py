from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, BertConfig, BertModel

from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.task import get_task
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.verifier_inputs import encode_pairs
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.training import classifier
from hfcf.training import debias as debias_module
from hfcf.training.debias import (
    FLOOR,
    SETTINGS,
    Debias,
    encoder_bias,
    ngram_bias,
    prepare,
    product_of_experts,
    related_groups,
    weighted_cross_entropy,
)
from hfcf.training.reweight import balance, most_biased, ngrams, row_weights
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.verifier import predict, scores, train_verifier

Tiny = Callable[[str], str]

pytestmark = [
    pytest.mark.usefixtures("on_cpu"),
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),  # PEFT asks for it
]


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The networks that `fit` returns while the test runs."""
    kept: list[Any] = []
    original = classifier.fit
    monkeypatch.setattr(classifier, "fit", lambda *a, **k: kept.append(original(*a, **k)) or kept[-1])
    return kept


def settings(folder: str, **changes: Any) -> Hyperparameters:
    standard = {"max_length": 32, "batch_size": 8, "learning_rate": 3e-3, "epochs": 1, "rank": 8}
    return Hyperparameters(**{"model": Model(folder), **standard, **changes})


def row(i: int, claim: str, evidence: str, label: str, group: str | None = None) -> dict[str, Any]:
    return {
        "id": f"row-{i}", "claim": claim, "label": label, "evidence": [{"title": "", "text": evidence}],
        "group_id": group or f"group-{i}", "corpus": "made", "split": "train",
    }  # fmt: skip


def dataset(rows: list[dict[str, Any]]) -> Dataset:
    return Dataset.from_list(rows, features=get_task("verification").features)


def pairs(number: int, labels: tuple[str, ...] = (SUPPORTS, REFUTES)) -> Dataset:
    """Groups of one row of each label."""
    made = [(g, label) for g in range(number) for label in labels]
    return dataset([row(i, f"Claim {g} is {label}.", f"Piece {g}.", label, f"group-{g}") for i, (g, label) in enumerate(made)])


LEAK = {SUPPORTS: "first", REFUTES: "only"}
SAYS = {SUPPORTS: "film", REFUTES: "song"}
WORDS = ["American", "band", "born", "city", "known", "album", "series", "team"]


def leaking(number: int, *, leak: float, truth: float, seed: int) -> Dataset:
    """Rows whose claims hold a word that is the label's with probability `leak`, and whose evidence one with `truth`."""
    draw = random.Random(seed)

    def word(table: dict[str, str], label: str, share: float) -> str:
        return table[label if draw.random() < share else LABELS[1 - LABELS.index(label)]]

    made = []
    for i in range(number):
        label = LABELS[i % 2]
        claim = [*draw.sample(WORDS, 2), word(LEAK, label, leak)]
        made.append(row(i, " ".join(draw.sample(claim, 3)), f"{draw.choice(WORDS)} {word(SAYS, label, truth)}", label))
    return dataset(made)


# --- settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "rewight"}, r"kind must be.*'reweight' or 'poe'.*'rewight'"),
        ({"bias": "ngrams"}, "kind must be .*None"),
        ({"kind": "poe", "bais": "ngrams"}, r"key 'bais'.*'bias'"),
        ({"kind": "reweight", "folds": 3}, "unknown key 'folds'"),
        ({"kind": "poe", "bias": "oracle"}, r"bias must be.*'encoder' or 'ngrams'.*'oracle'"),
        ({"kind": "poe", "folds": 1}, r"folds must be at least 2, got 1"),
        ({"kind": "reweight", "sizes": []}, r"sizes .*at least 1 item.*\[\]"),
        ({"kind": "reweight", "sizes": 2}, r"sizes must be.*tuple.*2"),
        ({"kind": "reweight", "sizes": ["2"]}, r"sizes\[0\] must be.*integer.*'2'"),
        ({"kind": "reweight", "sizes": [0]}, r"sizes\[0\] must be at least 1, got 0"),
        ({"kind": "reweight", "penalty": "1e-3"}, r"penalty must be.*number.*'1e-3'"),
        ({"kind": "reweight", "penalty": True}, r"penalty must be.*number.*True"),
        ({"kind": "reweight", "penalty": float("nan")}, r"penalty must be a finite number, got nan"),
        ({"kind": "poe", "folds": 2.5}, r"folds must be.*integer.*2\.5"),
        ({"kind": "reweight", "top": None}, r"top must be.*integer.*None"),
        ("poe", r"mapping.*{kind: poe}.*'poe'"),
        ({"kind": "reweight", "penalty": -1}, r"penalty must be at least 0, got -1"),
    ],
)
def test_settings_that_do_not_go_are_an_error_that_names_them(given: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=f"methods:? .*{message}"):
        Debias.of(given, "methods")


def test_settings_are_read_from_a_mapping_and_told_again() -> None:
    for kind in SETTINGS:
        assert Debias.of({"kind": kind}) == Debias(kind=kind)
        assert Debias.of(Debias(kind=kind).settings()) == Debias(kind=kind)
    assert Debias.of({"kind": "reweight", "sizes": [1, 2]}).sizes == (1, 2)


def test_there_is_nothing_to_debias_without_the_evidence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="claim_only with debias"):
        train_verifier(pairs(2), settings("any"), tmp_path, claim_only=True, debias=Debias(kind="reweight"))


# --- row weights


def planted(number: int = 2000, share: float = 0.9) -> tuple[list[str], list[str]]:
    """Claims of words that tell nothing; a tenth hold "did not", and those are REFUTES with probability `share`."""
    draw = random.Random(5)
    common, words = [f"common{i}" for i in range(10)], [f"word{i}" for i in range(40)]
    claims, labels = [], []
    for _ in range(number):
        tokens = [token for word in draw.sample(words, 4) for token in (draw.choice(common), word)]
        negated = draw.random() < 0.1
        labels.append(REFUTES if draw.random() < (share if negated else 0.5) else SUPPORTS)
        claims.append(" ".join(["she", "did", "not", *tokens] if negated else tokens))
    return claims, labels


def bias(occurrences: Any, classes: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Compute bⱼᶜ, n-grams × classes: the weighted share of each class among the rows with an n-gram."""
    weighted = occurrences @ (np.eye(classes.max(initial=0) + 1)[classes] * (1 + alpha)[:, None])
    return weighted / weighted.sum(1, keepdims=True)


def objective(occurrences: Any, classes: np.ndarray, alpha: np.ndarray, penalty: float) -> float:
    """Compute Σⱼ maxc bⱼᶜ + λ ‖α‖₂."""
    return float(bias(occurrences, classes, alpha).max(1, initial=0.0).sum() + penalty * np.linalg.norm(alpha))


@pytest.mark.parametrize(("top", "error"), [(1, 0.03), (20, 0.06), (0, 0.25)])  # of all, many pull at the same rows
def test_a_planted_phrase_ends_near_the_balance(top: int, error: float) -> None:
    claims, labels = planted()
    classes = np.array([LABELS.index(label) for label in labels])
    names, held = ngrams(claims)
    at = names.index("did not")
    alpha = row_weights(claims, labels, top=top, penalty=1e-3)
    before, after = (bias(held, classes, given)[at, 1] for given in (np.zeros(len(claims)), alpha))
    assert before > 0.85
    assert after == pytest.approx(0.5, abs=error)
    chosen = held[most_biased(held, classes, top)] if top else held
    assert objective(chosen, classes, alpha, 1e-3) < objective(chosen, classes, 0 * alpha, 1e-3) - 0.3


def test_all_ngrams_are_balanced_unless_a_number_is_named() -> None:
    """The paper sums over the vocabulary; a few of the most biased leave the rest as they were."""
    claims, labels = planted()
    classes = np.array([LABELS.index(label) for label in labels])
    _, held = ngrams(claims)
    assert Debias(kind="reweight").top == 0
    shares = [bias(held, classes, row_weights(claims, labels, **top)).max(1).mean() for top in ({}, {"top": 0}, {"top": 1})]
    assert shares[0] == shares[1] < shares[2] - 0.02


def test_the_weights_are_no_larger_than_the_balance_needs() -> None:
    claims, labels = planted()
    alpha = row_weights(claims, labels, top=1, penalty=1e-3)
    with_it = np.array(["did not" in claim for claim in claims])
    refuted = np.array(labels) == REFUTES
    missing = (with_it & refuted).sum() - (with_it & ~refuted).sum()
    assert alpha.min() == 0
    assert alpha[with_it & ~refuted].sum() == pytest.approx(missing, rel=0.1)
    assert alpha[with_it & ~refuted].max() < 2 * alpha[with_it & ~refuted].mean()
    assert alpha[with_it & refuted].max() < 0.1
    rest = row_weights(claims, labels, top=1, penalty=1e-3)[~with_it]
    assert (rest > 0.1).mean() < 0.03  # those with the one bigram that leans to SUPPORTS by chance


def test_a_corpus_without_bias_has_no_weights() -> None:
    claims = [f"she did not {verb} it" for verb in ("sing", "act", "win") for _ in range(10)]
    assert not row_weights(claims, [SUPPORTS, REFUTES] * 15, common=0).any()
    assert not row_weights([], []).size
    assert row_weights(["a"], [SUPPORTS]).tolist() == [0.0]


def test_a_penalty_holds_large_weights_down() -> None:
    claims, labels = planted()
    held = [row_weights(claims, labels, top=1, penalty=penalty) for penalty in (1e-3, 1e-2, 1.0)]
    assert all(np.linalg.norm(a) > np.linalg.norm(b) for a, b in pairwise(held))
    assert not held[-1].any()


def test_a_phrase_of_one_label_alone_can_not_be_balanced() -> None:
    claims = ["they did not sing"] * 12 + ["they did sing"] * 12
    assert not row_weights(claims, [REFUTES] * 12 + [SUPPORTS] * 12, common=0).any()


def test_three_labels_are_balanced_too() -> None:
    claims = ["it did not end"] * 30
    labels = [REFUTES] * 20 + [SUPPORTS] * 7 + [NOT_ENOUGH_INFO] * 3
    alpha = row_weights(claims, labels, common=0, top=0, penalty=1e-4)
    sums = [sum(1 + alpha[i] for i in range(30) if labels[i] == label) for label in LABELS]
    assert max(sums) / min(sums) < 1.05
    assert max(sums) < 30  # 20 would do


def test_more_steps_go_further_down_and_weights_follow_their_rows() -> None:
    claims, labels = planted(400)
    classes = np.array([LABELS.index(label) for label in labels])
    _, held = ngrams(claims)
    values = [objective(held, classes, balance(held, classes, 0.01, steps), 0.01) for steps in (0, 20, 400)]
    assert values[0] > values[1] > values[2]
    turned = row_weights(claims[::-1], labels[::-1])
    assert turned[::-1] == pytest.approx(row_weights(claims, labels), abs=1e-3)


def test_the_commonest_words_are_left_out_and_a_bigram_reaches_over_them() -> None:
    names, held = ngrams(["The man of the town", "the cat of the sea", "the end"], common=2, at_least=1)
    assert names == ["cat sea", "man town"]
    assert held.toarray().tolist() == [[0, 1, 0], [1, 0, 0]]


# --- the losses


def test_equal_weights_are_plain_cross_entropy_exactly() -> None:
    logits = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    [plain] = torch.autograd.grad(cross_entropy(logits, labels), logits)
    [ours] = torch.autograd.grad(weighted_cross_entropy(logits, labels, torch.ones(7)), logits)
    assert torch.equal(plain, ours)


def test_a_uniform_expert_changes_nothing() -> None:
    logits = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels, uniform = torch.tensor([0, 1, 2, 0, 1, 2, 0]), torch.full((7, 3), 1 / 3).log()
    plain, ours = cross_entropy(logits, labels), product_of_experts(logits, labels, uniform)
    assert ours.item() == pytest.approx(plain.item(), abs=1e-6)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (plain, ours)]
    assert torch.allclose(*gradients, atol=1e-7)


def test_rows_that_the_bias_gets_right_teach_little() -> None:
    logits = torch.zeros(3, 2, requires_grad=True)
    bias_of = torch.tensor([[0.95, 0.05], [0.5, 0.5], [0.05, 0.95]]).log().requires_grad_()
    product_of_experts(logits, torch.tensor([0, 0, 0]), bias_of).backward()
    right, neither, wrong = logits.grad.norm(dim=1).tolist()  # type: ignore[union-attr]
    assert right < neither / 5
    assert wrong > neither * 1.5
    assert bias_of.grad is None


# --- what reads claims alone


def test_no_row_is_judged_by_a_model_that_saw_its_group_or_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.pipeline import Pipeline

    fitted: list[set[str]] = []
    original = Pipeline.fit
    monkeypatch.setattr(Pipeline, "fit", lambda self, x, y: fitted.append(set(x)) or original(self, x, y))
    judged: list[set[str]] = []
    answer = Pipeline.predict_log_proba
    monkeypatch.setattr(Pipeline, "predict_log_proba", lambda self, x: judged.append(set(x)) or answer(self, x))
    ds = pairs(20)
    twice = dataset([*ds, row(99, ds[0]["claim"].upper(), "Other.", SUPPORTS, "group-of-its-own")])
    found = ngram_bias(twice, LABELS[:2], folds=4)
    assert found.shape == (41, 2)
    assert np.exp(found).sum(1) == pytest.approx(np.ones(41))
    groups = dict(zip(twice["claim"], related_groups(twice), strict=True))
    assert groups[ds[0]["claim"]] == groups[ds[1]["claim"]] == groups[ds[0]["claim"].upper()]
    assert len(fitted) == 4
    assert set.union(*judged) == set(twice["claim"])
    for seen, hidden in zip(fitted, judged, strict=True):
        assert not {groups[claim] for claim in seen} & {groups[claim] for claim in hidden}


def test_a_claim_that_is_only_remembered_is_no_bias() -> None:
    draw = random.Random(3)
    rows = [row(i, f"name{i} lived in place{i}", "x", draw.choice(LABELS[:2])) for i in range(200)]
    gold = np.array([LABELS.index(one["label"]) for one in rows])
    assert abs((ngram_bias(dataset(rows), LABELS[:2]).argmax(1) == gold).mean() - 0.5) < 0.15
    leaks = leaking(200, leak=0.9, truth=0.9, seed=1)
    gold = np.array([LABELS.index(label) for label in leaks["label"]])
    assert (ngram_bias(leaks, LABELS[:2]).argmax(1) == gold).mean() > 0.8


def test_a_label_that_a_fold_has_not_seen_is_unlikely_but_not_impossible() -> None:
    rows = [row(i, f"claim {i}", "x", LABELS[i % 2]) for i in range(10)] + [row(10, "claim odd", "x", NOT_ENOUGH_INFO)]
    found = ngram_bias(dataset(rows), LABELS)
    assert found[10, 2] == FLOOR
    assert np.isfinite(found).all()


def test_rows_that_can_not_be_cross_fitted_are_an_error() -> None:
    one = dataset([row(i, f"claim {i}", "x", LABELS[i % 2], "same") for i in range(6)])
    with pytest.raises(ValueError, match=r"one group.*bias: encoder"):
        ngram_bias(one, LABELS[:2])
    same = dataset([row(i, f"claim {i}", "x", SUPPORTS) for i in range(6)])
    with pytest.raises(ValueError, match=r"fold.*SUPPORTS"):
        ngram_bias(same, LABELS[:2])


def test_an_encoder_reads_claims_alone_and_leaves_nothing_behind(tiny_model: Tiny, tmp_path: Path, networks: list[Any]) -> None:
    ds = leaking(160, leak=1.0, truth=0.5, seed=2)
    found = encoder_bias(ds, LABELS[:2], settings(encoder_of(tiny_model, tmp_path), epochs=3), tmp_path / "bias")
    gold = [LABELS.index(label) for label in ds["label"]]
    assert (found.argmax(1) == gold).mean() > 0.9
    assert found.min() >= FLOOR
    assert not (tmp_path / "bias").exists()


def encoder_of(tiny_model: Tiny, tmp_path: Path) -> str:
    """One layer of random weights that learns a word in a hundred steps."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1500, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, initializer_range=0.1,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertModel(config).save_pretrained(tmp_path / "encoder")
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder")


# --- in a training


KINDS = [
    Debias(kind="reweight", sizes=(1,), common=0),
    Debias(kind="poe", bias="ngrams"),
    Debias(kind="poe", bias="encoder"),
]


@pytest.mark.parametrize(
    ("debias", "tune", "ways"),
    [*((kind, "full", 3) for kind in KINDS), (KINDS[0], "lora", 2), (KINDS[2], "lowrank", 3)],
)
def test_every_kind_and_every_tuning_trains(
    debias: Debias, tune: str, ways: int, tiny_model: Tiny, tmp_path: Path, networks: list[Any]
) -> None:
    folder = tiny_model("classifier") if ways == 3 else encoder_of(tiny_model, tmp_path)
    hp, out, labels = settings(folder, tune=tune), tmp_path / "out", LABELS[:ways]
    train_verifier(pairs(12, labels), hp, out, labels=labels, debias=debias)
    [answer] = Classifier(model=trained_model(hp, out), max_length=32).run([["Claim 1.", "Piece 1."]])
    assert set(answer) == set(labels)
    assert not (out / "bias").exists()
    assert all(torch.isfinite(weight).all() for weight in networks[-1].state_dict().values())


def test_weights_of_one_are_plain_training_exactly(
    tiny_model: Tiny, tmp_path: Path, networks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debias_module, "row_weights", lambda claims, labels, **k: np.zeros(len(claims)))
    hp, ds = settings(encoder_of(tiny_model, tmp_path), batch_size=4, epochs=2), leaking(38, leak=0.9, truth=0.9, seed=1)
    for i, debias in enumerate((None, Debias(kind="reweight"))):
        train_verifier(ds, hp, tmp_path / str(i), labels=LABELS[:2], debias=debias)
    for name, weight in networks[0].state_dict().items():
        assert torch.equal(weight, networks[1].state_dict()[name]), name


def test_what_a_kind_reads_is_the_rows_own(tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns stay beside the right rows, whatever the order of the batches."""
    known = {i: float(i + 1) for i in range(20)}
    monkeypatch.setattr(debias_module, "row_weights", lambda claims, labels, **k: np.arange(20.0))
    seen: dict[float, list[int]] = {}

    def record(outputs: Any, batch: Any) -> torch.Tensor:
        for ids, weight in zip(batch["input_ids"], batch["row_weight"], strict=True):
            seen[weight.item()] = ids[ids != 0].tolist()
        return cross_entropy(outputs.logits, batch["labels"])

    monkeypatch.setattr(debias_module, "_reweighted", record)
    ds = dataset([row(i, f"{'very ' * i}long claim", "x", LABELS[i % 2]) for i in range(20)])
    train_verifier(ds, settings(tiny_model("classifier"), max_length=64), tmp_path, debias=Debias(kind="reweight"))
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("classifier"))
    expected = encode_pairs(tokenizer, [[one["claim"], "x"] for one in ds], 64)["input_ids"]
    assert seen == {known[i]: ids for i, ids in enumerate(expected)}


def test_the_bias_of_an_encoder_does_not_move_the_verifiers_start(
    tiny_model: Tiny, tmp_path: Path, networks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    uniform = np.log(np.full((24, 2), 0.5))
    hp, ds = settings(encoder_of(tiny_model, tmp_path)), pairs(12)
    train_verifier(ds, hp, tmp_path / "plain", labels=LABELS[:2])

    def after_a_training(*args: Any) -> np.ndarray:
        encoder_bias(*args)
        return uniform

    monkeypatch.setattr(debias_module, "encoder_bias", after_a_training)
    train_verifier(ds, hp, tmp_path / "poe", labels=LABELS[:2], debias=Debias(kind="poe"))
    plain, _, debiased = networks
    for name, weight in plain.state_dict().items():
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, which Adam makes large
            assert torch.allclose(weight, debiased.state_dict()[name], atol=1e-3), name


def test_prepare_gives_each_row_its_numbers(tmp_path: Path) -> None:
    ds = leaking(60, leak=0.9, truth=0.9, seed=1)
    loss, columns = prepare(Debias(kind="poe", bias="ngrams"), ds, LABELS, settings("any"), tmp_path)
    assert loss.columns == tuple(columns) == ("bias_log_probabilities",)
    assert {len(one) for one in columns["bias_log_probabilities"]} == {3}
    loss, columns = prepare(Debias(kind="reweight"), ds, LABELS, settings("any"), tmp_path)
    assert loss.columns == tuple(columns) == ("row_weight",)
    assert min(columns["row_weight"]) >= 1


@pytest.mark.slow
def test_a_debiased_verifier_reads_the_evidence(tiny_model: Tiny, tmp_path: Path) -> None:
    """In training the claim's word tells the label better than the evidence does; in the test it tells nothing."""
    training, test = leaking(640, leak=0.95, truth=0.85, seed=1), leaking(200, leak=0.5, truth=1.0, seed=2)
    hp = settings(encoder_of(tiny_model, tmp_path), epochs=3, batch_size=16, learning_rate=5e-3)
    found = {}
    for name, debias in {
        "plain": None,
        "reweight": Debias(kind="reweight", sizes=(1,), common=0, top=1, penalty=1e-3),
        "poe, n-grams": Debias(kind="poe", bias="ngrams"),
        "poe, encoder": Debias(kind="poe", bias="encoder"),
    }.items():
        out = tmp_path / name
        train_verifier(training, hp, out, labels=LABELS[:2], debias=debias)
        answers = predict(test, Classifier(model=trained_model(hp, out), max_length=32))
        found[name] = scores(test["label"], [choose(answer, LABELS[:2]) for answer in answers])["accuracy"]
    plain = found.pop("plain")
    assert plain < 0.75, plain
    assert min(found.values()) > 0.9, found
