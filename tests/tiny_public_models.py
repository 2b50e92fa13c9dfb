"""Tiny random models of the classes, class names and tokenizers of the presets' public models, in a Hub's cache of their own.

They lie under the names and the pinned commits of the public models, so a preset loads them as it is, and nothing from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import every_slot
import pytest
import scripted_llm
import tiny
import torch
import transformers
from huggingface_hub.file_download import repo_folder_name
from tokenizers.pre_tokenizers import ByteLevel

from hfcf.core.public_models import PublicModel, public_models
from hfcf.engines.base import Usage, usage
from hfcf.engines.llm.engine import LanguageModel

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "initializer_range": 0.5}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "feed_forward_proj": "gated-gelu"}
_STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# What the configurations of DeBERTa-v3 say besides sizes.
_DEBERTA = {
    "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0, "pad_token_id": 0,
}  # fmt: skip
_FORMS: dict[str, dict[str, Any]] = {
    "DebertaV2": {**_SMALL, **_STILL, **_DEBERTA},
    "Roberta": {**_SMALL, **_STILL, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1},
    "Electra": {**_SMALL, **_STILL, "embedding_size": 32},
    "MPNet": {**_SMALL, **_STILL, "max_position_embeddings": 514, "pad_token_id": 1},
    "Qwen2": {**_SMALL, "num_key_value_heads": 2, "max_position_embeddings": 32768},
    "T5": {**_T5, "decoder_start_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "initializer_factor": 2.0},
}
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _words() -> list[str]:
    return [piece for piece in tiny.vocabulary() if piece not in tiny.SPECIALS and not piece.startswith("##")]


def _unigrams(specials: list[str]) -> list[tuple[str, float]]:
    """Pieces of SentencePiece: every character, and the commonest words with the mark of a space."""
    words = [f"▁{word}" for word in _words() if len(word) > 1]
    characters = sorted({character for word in words for character in word})
    return [
        *((piece, 0.0) for piece in specials), *((character, -9.0) for character in characters), *((word, -5.0) for word in words)
    ]  # fmt: skip


def _tokenizer(kind: str) -> Any:
    """A tokenizer of a class with a vocabulary of its own."""
    made = getattr(transformers, kind)
    alphabet = sorted(ByteLevel.alphabet())
    if kind == "RobertaTokenizer":
        return made(vocab={piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet, "<mask>"])}, merges=[])
    if kind == "Qwen2Tokenizer":
        specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        qwen = made(vocab={piece: i for i, piece in enumerate([*alphabet, *specials])}, merges=[], eos_token="<|im_end|>")
        qwen.add_special_tokens({"additional_special_tokens": specials[1:]})
        qwen.chat_template = CHATML
        return qwen
    if kind == "MPNetTokenizer":
        pieces = [piece for piece in tiny.vocabulary() if piece not in tiny.SPECIALS]
        return made(vocab={piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "[UNK]", *pieces, "<mask>"])})
    if kind == "BertTokenizer":
        return made(vocab={**tiny.vocabulary(), "[MASK]": len(tiny.vocabulary())})
    if kind == "DebertaV2Tokenizer":
        return made(vocab=_unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]), unk_id=3)
    return made(vocab=_unigrams(["<unk>", "<pad>", "</s>", "<2de>", "<2en>"]), extra_ids=0)


def save(model: PublicModel, folder: Path) -> None:
    """Save a tiny random model of a checkpoint's classes, class names and length."""
    torch.manual_seed(len(model.name))
    tokenizer = _tokenizer(model.tokenizer)
    tokenizer.model_max_length = model.max_length or 512
    names = dict(enumerate(model.labels))
    own = {"id2label": names, "label2id": {name: i for i, name in names.items()}} if names else {}
    family = next(family for family in _FORMS if model.architecture.startswith(family))
    config = getattr(transformers, f"{family}Config")(vocab_size=len(tokenizer), **_FORMS[family], **own)
    network = getattr(transformers, model.architecture)(config)
    if family == "Qwen2":
        network.generation_config = transformers.GenerationConfig(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, do_sample=True, temperature=0.7, top_p=0.8
        )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def place(model: PublicModel, cache: Path) -> Path:
    """The folder in which the Hub's cache has the pinned commit of a model."""
    assert model.revision is not None
    return cache / repo_folder_name(repo_id=model.name, repo_type="model") / "snapshots" / model.revision


def fill(cache: Path) -> None:
    """Fill a Hub's cache with all public models."""
    for model in public_models():
        folder = place(model, cache)
        folder.mkdir(parents=True)
        save(model, folder)


def use(shared: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the test read the tiny models as if they had been downloaded."""
    cache = shared("tiny_public_models", fill)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return cache


def answer_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rule answer what chat models are asked: a random one writes nothing of use."""

    def run(engine: LanguageModel, requests: Sequence[Sequence[Mapping[str, str]]], schemas: Any = None) -> list[dict[str, Any]]:
        form = {"json_schema": {"schema": json.loads(engine.schema)}}
        usage().setdefault("LanguageModel", Usage()).calls += len(requests)
        return [{"answer": _answer({"messages": messages, "response_format": form})} for messages in requests]

    monkeypatch.setattr(LanguageModel, "run", run)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    fields = set(asked["response_format"]["json_schema"]["schema"]["properties"])
    if "questions" in fields:
        return {"questions": ["who is the captain with 8 letters", "who is it"]}
    corrected = "\nWrong claim: " in asked["messages"][-1]["content"]
    return (every_slot if corrected or fields & {"edits", "words", "label", "old", "texts"} else scripted_llm).answer_to(asked)
