"""A verifier over a graph of evidence: an encoder of every node, and attention between linked nodes (Transformer-XH-like)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import label_probabilities
from hfcf.engines.classifier_spec import output_names
from hfcf.engines.networks import load_whole, name_classes, save_whole
from hfcf.engines.verifier_inputs import cut_pairs, encode_pairs

HEAD = "graph.safetensors"
"""The file of the weights outside the encoder; the encoder's `config.json` names the classes and the number of hops."""
HOPS = 3
"""The layers with attention between nodes."""


class Hop(nn.Module):
    """Attention from the [CLS] of each node to the [CLS] of each node that leads to it, added to the layer's own result.

    At first it changes nothing: the encoder's own states pass through until training changes it.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.joint = nn.Linear(2 * size, size)
        with torch.no_grad():
            self.joint.weight.copy_(torch.cat([torch.eye(size), torch.zeros(size, size)], 1))
            self.joint.bias.zero_()

    def forward(self, states: torch.Tensor, links: torch.Tensor) -> torch.Tensor:
        """Compute nodes × size; `links` is nodes × nodes, true where the second node leads to the first."""
        scores = self.query(states) @ self.key(states).T / states.shape[-1] ** 0.5
        weights = scores.masked_fill(~links, -torch.inf).softmax(-1)
        return self.joint(torch.cat([states, weights @ self.value(states)], -1))


class GraphVerifier(nn.Module):
    """A verifier like that of Zhao et al. 2020, "Transformer-XH: Multi-Evidence Reasoning with Extra Hop Attention" (ICLR).

    Each node is a claim with one piece of evidence, and one encoder reads all nodes. In the last layers, the [CLS] of a node also
    attends to the [CLS] of each node that leads to it, and to its own. A gate weighs the nodes, and the sum of their states gives
    the classes.

    Deviations: the attention between nodes follows a layer instead of running parallel to its own attention, and it has one head.
        So any encoder of Transformers can be used. The claim without evidence is a separate node, the root, to which the structure
        leads. CheckWhy does not say which way its edges go or what its nodes are; here premises lead to conclusions.

    Args:
        encoder: an encoder that `AutoModel` loads and that has a list of layers.
        labels: the classes, in the order of the outputs.
        hops: how many of the last layers attend to other nodes; fewer if the encoder has fewer layers.
    """

    def __init__(self, encoder: Any, labels: Sequence[str], hops: int = HOPS, dropout: float = 0.1) -> None:
        super().__init__()
        size, layers = encoder.config.hidden_size, _layers(encoder)
        self.encoder = encoder
        self.hops = nn.ModuleList([Hop(size) for _ in range(min(hops, len(layers)))])
        self.gate = nn.Linear(size, 1)
        self.classifier = nn.Linear(size, len(labels))
        self.dropout = nn.Dropout(dropout)
        name_classes(encoder, labels)
        encoder.config.graph_hops = len(self.hops)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the outputs."""
        return output_names(self.encoder.config)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.classifier.weight.device

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, links: torch.Tensor, graphs: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> SequenceClassifierOutput:  # fmt: skip
        """Compute the logits of a batch of graphs."""
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hooks = [
            layer.register_forward_hook(_hop_hook(hop, links))
            for layer, hop in zip(_layers(self.encoder)[-len(self.hops) :], self.hops, strict=True)
        ]
        try:
            output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **segments)
        finally:
            for hook in hooks:
                hook.remove()
        states = self.dropout(output.last_hidden_state[:, 0])
        member = graphs[None] == torch.arange(int(graphs[-1]) + 1, device=graphs.device)[:, None]
        weights = self.gate(states).squeeze(-1)[None].masked_fill(~member, -torch.inf).softmax(-1)
        return SequenceClassifierOutput(logits=self.classifier(weights @ states))

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Store the encoder as Transformers does, and the other weights in a file of their own."""
        save_whole(self, folder, HEAD)


def _layers(encoder: Any) -> nn.ModuleList:
    """Return an encoder's layers: its longest list of modules."""
    lists = [module for module in encoder.modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise ValueError(f"{type(encoder).__name__} has no list of layers: give an encoder such as BERT or RoBERTa")
    return max(lists, key=len)


def _hop_hook(hop: nn.Module, links: torch.Tensor) -> Any:
    def attend(module: nn.Module, inputs: Any, output: Any) -> Any:
        states = output[0] if isinstance(output, tuple) else output
        changed = torch.cat([hop(states[:, 0], links)[:, None], states[:, 1:]], 1)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return attend


def load_graph_verifier(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[GraphVerifier, Any]:
    """Load a trained graph verifier and its tokenizer."""

    network = load_whole(
        model, HEAD, lambda encoder: GraphVerifier(encoder, output_names(encoder.config), encoder.config.graph_hops),
        kind="a graph verifier", training="hfcf train train_structures, kind=graph", device=device, dtype=dtype,
    )  # fmt: skip
    return network, read_tokenizer(model)


def encode_graph(tokenizer: Any, request: Sequence[Any], max_length: int) -> Encoded:
    """Tokenise a graph: node 0 is the claim alone, node i + 1 the claim with the text i."""
    claim, texts, edges = request
    names = [name for name in tokenizer.model_input_names if name != "attention_mask"]
    root = tokenizer([claim], truncation=True, max_length=max_length)
    others = encode_pairs(tokenizer, [[claim, text] for text in texts], max_length) if texts else {name: [] for name in names}
    nodes = [{name: part[name][i] for name in names} for part in (root, others) for i in range(len(part[names[0]]))]
    number = len(nodes)
    if edges is None:
        links = [[i, j] for i in range(number) for j in range(number)]
    else:
        if outside := [place for edge in edges for place in edge if not -1 <= place < len(texts)]:
            raise ValueError(f"an edge must name a text between −1 and {len(texts) - 1}, got {outside[0]}")
        # A node whose [CLS] attended to nothing would have no state: each leads to itself.
        links = [*([i, i] for i in range(number)), *([premise + 1, conclusion + 1] for premise, conclusion in edges)]
    return Encoded({"input_ids": [token for node in nodes for token in node["input_ids"]]}, [nodes, links])


def collate(tokenizer: Any, encoded: Sequence[Encoded], device: torch.device) -> dict[str, torch.Tensor]:
    """Pad a batch of graphs to the network's inputs."""
    sizes = [len(item.extra[0]) for item in encoded]
    first = [0, *accumulate(sizes)]
    batch = pad(tokenizer, [Encoded(node) for item in encoded for node in item.extra[0]], device)
    links = torch.zeros(first[-1], first[-1], dtype=torch.bool)
    for item, start in zip(encoded, first, strict=False):
        for source, target in item.extra[1]:
            links[start + target, start + source] = True
    graphs = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return {**batch, "links": links.to(device), "graphs": graphs.to(device)}


@dataclass(frozen=True, kw_only=True)
class GraphClassifier(Engine):
    """Class probabilities of `[claim, texts, edges]` requests by a graph verifier, as `{class: probability}`.

    `edges` are (premise, conclusion) as numbers of texts, −1 for the claim, or None: then every node leads to every other node.

    Args:
        model: a folder that `hfcf.training.structures.train_graph_verifier` wrote, or its Hub id.
        max_length: tokens of a node, including the claim; evidence past it is not read.
    """

    model: Model
    max_length: Positive

    def load(self, device: torch.device) -> Any:
        return load_graph_verifier(self.model, device, self.dtype())

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        cut = [self._is_cut(loaded[1], request) for request in requests]
        return [
            replace(encode_graph(loaded[1], request, self.max_length), cut=each)
            for request, each in zip(requests, cut, strict=True)
        ]

    def count_cut(self, requests: Sequence[Any]) -> int:
        """Count the graphs with a node of which a part is not read."""
        tokenizer = read_tokenizer(self.model)
        return sum(self._is_cut(tokenizer, request) for request in requests)

    def _is_cut(self, tokenizer: Any, request: Sequence[Any]) -> bool:
        claim, texts, _ = request
        return any(cut_pairs(tokenizer, [[claim, text] for text in texts], self.max_length))

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        with torch.inference_mode():
            logits = network(**collate(tokenizer, encoded, network.device)).logits
        return label_probabilities(logits, network.labels)
