from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from hfcf.core.model import Model, folder_hash
from hfcf.engines.graph_verifier import HEAD, GraphClassifier, GraphVerifier, collate, encode_graph, load_graph_verifier
from hfcf.training.structures import train_graph_verifier
from hfcf.training.trainer import Hyperparameters

Tiny = Callable[[str], str]
LABELS = ("SUPPORTS", "REFUTES")
CPU = torch.device("cpu")
CHAIN = ["the film is old .", ["the film was made in 1990 .", "the city is old .", "the band is new ."], [[0, 1], [1, -1]]]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(scope="module")
def hp(tiny_model: Tiny) -> Hyperparameters:
    return Hyperparameters(model=Model(tiny_model("classifier")), max_length=32, batch_size=4, learning_rate=3e-3, epochs=1)


@pytest.fixture(scope="module")
def trained(hp: Hyperparameters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose attention between nodes is not at its start any more."""
    tmp_path = tmp_path_factory.mktemp("trained")
    requests = [CHAIN, ["the band is old .", ["the band is new ."], [[0, -1]]], ["no", [], None]]
    train_graph_verifier(requests, ["SUPPORTS", "REFUTES", "REFUTES"], replace(hp, epochs=4), tmp_path / "graph", labels=LABELS)
    return tmp_path / "graph"


def logits(network: GraphVerifier, tokenizer, *requests) -> torch.Tensor:  # type: ignore[no-untyped-def]
    encoded = [encode_graph(tokenizer, request, 32) for request in requests]
    with torch.inference_mode():
        return network(**collate(tokenizer, encoded, CPU)).logits


def test_it_is_stored_whole_and_read_back(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} >= {"config.json", "model.safetensors", HEAD, "tokenizer.json"}
    assert not any(name.startswith("encoder.") for name in load_file(trained / HEAD))
    network, _ = load_graph_verifier(Model(str(trained)), CPU, torch.float32)
    assert network.labels == LABELS
    assert len(network.hops) == 2  # the encoder has no third layer
    answers = GraphClassifier(model=Model(str(trained)), max_length=32).run([CHAIN])
    assert sum(answers[0].values()) == pytest.approx(1, abs=1e-4)


def test_a_training_can_be_repeated(hp: Hyperparameters, tmp_path: Path) -> None:
    for name in ("one", "two"):
        train_graph_verifier([CHAIN, CHAIN], ["SUPPORTS", "REFUTES"], hp, tmp_path / name, labels=LABELS)
    assert folder_hash(str(tmp_path / "one")) == folder_hash(str(tmp_path / "two"))


def test_a_batch_changes_no_answer(trained: Path) -> None:
    network, tokenizer = load_graph_verifier(Model(str(trained)), CPU, torch.float32)
    others = [["the city is new and old .", ["the city is in the state ."] * 4, None], ["no", [], None]]
    alone = [logits(network, tokenizer, request) for request in (CHAIN, *others)]
    torch.testing.assert_close(logits(network, tokenizer, CHAIN, *others), torch.cat(alone), atol=1e-4, rtol=1e-4)


def test_nodes_see_those_that_lead_to_them_and_no_others(trained: Path) -> None:
    network, tokenizer = load_graph_verifier(Model(str(trained)), CPU, torch.float32)
    claim, texts, _ = CHAIN

    def states(edges: list[list[int]] | None, *changed: str) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        hook = network.encoder.register_forward_hook(lambda *parts: kept.append(parts[2].last_hidden_state[:, 0]))
        logits(network, tokenizer, [claim, [*texts[: 3 - len(changed)], *changed], edges])
        hook.remove()
        return kept[0]

    def same(one: torch.Tensor, other: torch.Tensor) -> list[bool]:
        return [torch.allclose(a, b, atol=1e-6) for a, b in zip(one, other, strict=True)]

    chain = [[0, 1], [1, -1]]
    # The last text leads to nothing: another one in its place changes its own node alone.
    assert same(states(chain), states(chain, "the war is over .")) == [True, True, True, False]
    # Without a structure all nodes are linked, and all change.
    assert same(states(None), states(None, "the war is over .")) == [False] * 4
    # An edge changes its conclusion, and what hangs on that.
    assert same(states(chain), states([[1, -1]])) == [False, True, False, True]


def test_before_training_the_encoder_reads_as_it_did(hp: Hyperparameters) -> None:
    encoder = AutoModel.from_pretrained(hp.model.source()).eval()
    network = GraphVerifier(encoder, LABELS).eval()
    tokenizer = AutoTokenizer.from_pretrained(hp.model.source())
    batch = collate(tokenizer, [encode_graph(tokenizer, CHAIN, 32)], CPU)
    plain = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    with torch.inference_mode():
        before = encoder(**plain).last_hidden_state
        kept: list[torch.Tensor] = []
        hook = encoder.register_forward_hook(lambda *parts: kept.append(parts[2].last_hidden_state))
        network(**batch)
        hook.remove()
    torch.testing.assert_close(kept[0], before)
    assert not any(layer._forward_hooks for layer in encoder.encoder.layer)  # nothing stays on the encoder


def test_it_learns_from_the_edges_alone(hp: Hyperparameters) -> None:
    """The same sentences, and the edge to the claim says which one counts: nothing but the graph tells the labels apart."""
    torch.manual_seed(0)
    network = GraphVerifier(AutoModel.from_pretrained(hp.model.source()), LABELS, dropout=0.0).eval()
    tokenizer = AutoTokenizer.from_pretrained(hp.model.source())
    requests = [["the film is old .", ["it is true .", "it is not so ."], edges] for edges in ([[0, -1]], [[1, -1]], None)]
    batch = collate(tokenizer, [encode_graph(tokenizer, request, 32) for request in requests[:2]], CPU)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(100):
        loss = torch.nn.functional.cross_entropy(network(**batch).logits, torch.tensor([0, 1]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert logits(network, tokenizer, *requests[:2]).argmax(-1).tolist() == [0, 1]


def test_what_is_no_graph_verifier_is_refused(tiny_model: Tiny, hp: Hyperparameters, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"has no {HEAD}"):
        GraphClassifier(model=hp.model, max_length=32).run([CHAIN])
    with pytest.raises(ValueError, match=r"−1 .*2.* 3"):
        train_graph_verifier([[*CHAIN[:2], [[3, -1]]]], ["SUPPORTS"], hp, tmp_path, labels=LABELS)
    with pytest.raises(ValueError, match="'NOT ENOUGH INFO'"):
        train_graph_verifier([CHAIN], ["NOT ENOUGH INFO"], hp, tmp_path, labels=LABELS)
    with pytest.raises(ValueError, match="stored whole"):
        train_graph_verifier([CHAIN], ["SUPPORTS"], replace(hp, tune="lora"), tmp_path, labels=LABELS)
    with pytest.raises(ValueError, match="nothing to train on"):
        train_graph_verifier([], [], hp, tmp_path, labels=LABELS)
