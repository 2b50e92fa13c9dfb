from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import planted
import pytest
import torch
from safetensors.torch import load_file

from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.engines.cure import LOW, OUTSIDE, Cure, Gates, is_open, load_gates, not_shut, sample
from hfcf.pipeline.train import train
from hfcf.tasks.verification import NOT_ENOUGH_INFO
from hfcf.text.evidence import join
from hfcf.training.data import load_rows
from hfcf.training.explainer import Weights, complement_loss, disagreement, divergence, evaluate_explainer, excess, train_explainer
from hfcf.training.trainer import Hyperparameters

PIECES = torch.tensor([[OUTSIDE, 0, 0, 1, 1, OUTSIDE]])


pytestmark = pytest.mark.usefixtures("on_cpu")


def hyper(verifier: str, **changes: Any) -> Hyperparameters:
    settings = {"max_length": 64, "batch_size": 16, "learning_rate": 3e-3, "epochs": 1.0, **changes}
    return Hyperparameters(model=Model(verifier), **settings)


@pytest.fixture
def verifier(planted_models: tuple[str, str]) -> str:
    return planted_models[0]


@pytest.fixture
def explainer(planted_models: tuple[str, str]) -> Path:
    return Path(planted_models[1])


# --- losses


def test_consistency_is_zero_when_words_and_pieces_agree_and_grows_with_the_difference() -> None:
    tokens = torch.tensor([[0.0, 2.0, 2.0, -2.0, -2.0, 5.0]])

    def loss(*sentences: float) -> float:
        return disagreement(tokens, torch.tensor([sentences]), PIECES).item()

    assert loss(2.0, -2.0) == pytest.approx(0, abs=1e-6)
    assert 0 < loss(2.0, 0.0) < loss(0.0, 2.0) < loss(-9.0, 9.0) < torch.tensor(2.0).log().item()


def test_consistency_does_not_read_tokens_outside_nor_pieces_of_longer_rows() -> None:
    tokens, sentences = torch.tensor([[0.0, 2.0, 1.0, -2.0, -1.0, 5.0]]), torch.tensor([[1.0, 0.5]])
    alone = disagreement(tokens, sentences, PIECES)
    assert torch.allclose(disagreement(torch.tensor([[9.0, 2.0, 1.0, -2.0, -1.0, -9.0]]), sentences, PIECES), alone)
    longer = torch.cat([PIECES, torch.tensor([[OUTSIDE, 0, 1, 2, 3, 3]])])
    both = disagreement(tokens.repeat(2, 1), torch.tensor([[1.0, 0.5, 7.0, 7.0], [1.0, 1.0, 1.0, 1.0]]), longer)
    assert torch.allclose(both[0], alone)


def test_fidelity_is_zero_on_the_same_prediction_and_a_lost_complement_costs_nothing() -> None:
    full = torch.tensor([[4.0, 0.0, 0.0]])
    assert divergence(full, full).item() == pytest.approx(0, abs=1e-6)
    assert divergence(full, -full).item() > 1
    assert complement_loss(full, torch.tensor([[-30.0, 0.0, 9.0]])).item() == pytest.approx(0, abs=1e-6)
    assert 1 < complement_loss(full, torch.tensor([[90.0, 0.0, 0.0]])).item() < 20


def test_salience_leaves_room_for_one_gate() -> None:
    location, present = torch.tensor([[9.0, -30.0, 9.0]]), torch.tensor([[True, True, False]])
    assert excess(location, present, 0.1).item() == 0
    assert excess(torch.tensor([[9.0, 9.0, -9.0]]), present, 0.1).item() == pytest.approx(0.5, abs=1e-3)


def test_gates_are_shut_and_open_as_often_as_they_say() -> None:
    torch.manual_seed(0)
    for location in (-2.0, 0.3, 2.0):
        drawn = sample(torch.full((20_000,), location))
        assert 0 <= drawn.min() <= drawn.max() <= 1
        assert (drawn > 0).float().mean().item() == pytest.approx(not_shut(torch.tensor(location)).item(), abs=0.015)
        assert (drawn > 0.5).float().mean().item() == pytest.approx(is_open(torch.tensor(location)).item(), abs=0.015)
    assert LOW < 0


@pytest.mark.parametrize("share", [0, 1.5, -0.1])
def test_a_budget_is_a_share(share: float) -> None:
    with pytest.raises(ValueError, match="token_budget"):
        Weights(token_budget=share)


# --- learning


def test_gates_open_on_the_words_that_decide(verifier: str, explainer: Path) -> None:
    ds = planted.rows(60, seed=5)
    joined = [join(evidence) for evidence in ds["evidence"]]
    requests = [[claim, text, parts] for claim, (text, parts) in zip(ds["claim"], joined, strict=True)]
    answers = Cure(verifier=Model(verifier), explainer=Model(str(explainer)), max_length=64).run(requests)
    planted_words: list[float] = []
    others: list[float] = []
    right, wrong = [], []
    for row, (text, _), answer in zip(ds, joined, answers, strict=True):
        for start, end, p in answer["words"]:
            (planted_words if text[start:end] in planted.SIGNAL.values() else others).append(p)
        for piece, p in answer["pieces"]:
            (right if piece == row["rationales"][0]["piece"] else wrong).append(p)
    mean = [sum(values) / len(values) for values in (planted_words, others, right, wrong)]
    assert mean[0] > mean[1] + 0.5
    assert mean[2] > mean[3] + 0.2


def test_what_is_marked_keeps_the_prediction_and_a_random_choice_does_not(verifier: str, explainer: Path) -> None:
    found = evaluate_explainer(planted.canonical(planted.rows(60, seed=6)), hyper(verifier), explainer)
    assert found["rows"] > 40
    assert found["token"]["open"] == found["random token"]["open"] < 0.3
    for side in ("kept", "lost"):
        assert found["token"][side] > found["random token"][side] + 0.4
        assert found["sentence"][side] > 0.75
    assert found["consistent"] > 0.7


def test_a_training_in_bfloat16_stays_near_that_in_float32(verifier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"bf16": True}, raising=False)
    ds = planted.canonical(planted.rows(48, seed=2))
    for name, bf16 in (("plain", False), ("mixed", True)):
        train_explainer(ds, replace(hyper(verifier), bf16=bf16), tmp_path / name)
    plain, mixed = (load_file(tmp_path / name / "explainer.safetensors") for name in ("plain", "mixed"))
    assert any(not torch.equal(tensor, mixed[name]) for name, tensor in plain.items())
    assert all((tensor.float() - mixed[name].float()).abs().max() < 0.2 for name, tensor in plain.items())


def test_training_follows_its_seed_and_leaves_the_verifier_as_it_is(verifier: str, tmp_path: Path) -> None:
    from hfcf.engines.classifier import load_classifier

    network, _ = load_classifier(Model(verifier), torch.device("cpu"), torch.float32)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    ds = planted.canonical(planted.rows(48, seed=2))
    for name in ("one", "two"):
        train_explainer(ds, hyper(verifier), tmp_path / name)
    one, two = (load_file(tmp_path / name / "explainer.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(torch.allclose(tensor, two[name], atol=1e-5) for name, tensor in one.items())
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())


def test_the_stored_gates_are_the_trained_ones(verifier: str, explainer: Path) -> None:
    from hfcf.engines.classifier import load_classifier

    network, _ = load_classifier(Model(verifier), torch.device("cpu"), torch.float32)
    gates = load_gates(Model(str(explainer)), Model(verifier), network)
    settings = json.loads((explainer / "explainer.json").read_text())
    assert settings["verifier"]["name"] == verifier
    assert settings["verifier"]["key"] == Model(verifier).key()
    assert gates.layers == (0, 1, 2)
    fresh = Gates(32, 32, (0, 1, 2))
    assert {name: tensor.shape for name, tensor in fresh.state_dict().items()} == {
        name: tensor.shape for name, tensor in gates.state_dict().items()
    }


def test_rows_without_evidence_are_nothing_to_explain(verifier: str, tmp_path: Path) -> None:
    ds = planted.canonical(planted.rows(4)).map(lambda row: {"evidence": []})
    with pytest.raises(ValueError, match="nothing to explain"):
        train_explainer(ds, hyper(verifier), tmp_path)


def test_rows_that_lack_information_teach_nothing(verifier: str, tmp_path: Path) -> None:
    ds = planted.canonical(planted.rows(200, labels=(NOT_ENOUGH_INFO,)))
    train_explainer(ds.select(range(4)), hyper(verifier), tmp_path)  # no step, no error
    assert evaluate_explainer(ds.select(range(0)), hyper(verifier), tmp_path)["rows"] == 0


# --- recipes


def recipe_of(verifier: str, folder: Path, **changes: Any) -> dict[str, Any]:
    planted.rows(80).select_columns(["id", "group_id", "claim", "evidence", "label"]).to_json(folder / "train.jsonl")
    return {
        "train": "explainer", "verifier": {"name": verifier}, "data_dir": str(folder), "max_length": 64, "batch_size": 8,
        "epochs": 1, "data": [{"corpus": "jsonl", "data_files": "train.jsonl", "split": "train"}], "held_out": 0.25, **changes,
    }  # fmt: skip


def test_a_recipe_trains_scores_and_describes_an_explainer(verifier: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = train(recipe_of(verifier, tmp_path, explainer={"token_budget": 0.25}), out, command="hfcf train mine.yaml")
    assert json.loads((out / "scores.json").read_text()) == report
    assert report["scores"]["held out: jsonl"]["rows"] > 0
    card = (out / "README.md").read_text()
    assert "# CURE explainer over" in card
    assert "hfcf train mine.yaml" in card
    assert "token_budget 0.25" in card
    assert "tune" not in card
    assert {path.name for path in out.iterdir()} == {
        "explainer.safetensors",
        "explainer.json",
        "README.md",
        "recipe.yaml",
        "scores.json",
        "seen.npy",
        "training.json",
    }
    assert report["training"]["steps"] > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"explainer": {"token_budge": 0.1}}, r"explainer.*key 'token_budge'.*'token_budget'"),
        ({"verifier": None, "train": "verifier"}, "model: must name a model"),
    ],
)
def test_a_recipe_that_does_not_fit_is_an_error(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=message):
        train({**recipe_of("none", tmp_path), **changes}, tmp_path / "out")


def test_halves_share_no_group_and_extra_columns_survive(tmp_path: Path) -> None:
    ds = planted.rows(40).map(lambda row, i: {"group_id": f"g{i // 2}"}, with_indices=True)
    ds.select_columns(["id", "group_id", "claim", "evidence", "label"]).to_json(tmp_path / "all.jsonl")
    source = {"corpus": "jsonl", "data_files": str(tmp_path / "all.jsonl"), "split": "train"}
    halves = [load_rows([{**source, "half": half}]) for half in (0, 1)]
    assert not set(halves[0]["group_id"]) & set(halves[1]["group_id"])
    assert {*halves[0]["id"], *halves[1]["id"]} == set(ds["id"])
    assert 0 < len(halves[0]) < len(ds)
    quarters = [load_rows([{**source, "half": [1, side]}]) for side in (0, 1)]
    assert sorted([*quarters[0]["id"], *quarters[1]["id"]]) == sorted(halves[1]["id"])
    assert not set(quarters[0]["group_id"]) & set(quarters[1]["group_id"])
    assert all(len(part) for part in quarters)
    assert list(load_rows([{**source, "half": [1]}])["id"]) == list(halves[1]["id"])
    for wrong in (2, [], [1, 2], "1"):
        with pytest.raises(RecipeError, match=r"half: .*0 or 1"):
            load_rows([{**source, "half": wrong}])
