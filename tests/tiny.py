"""Tiny random models, made in a second: the real classes of Transformers with a tokenizer of a few sentences' words.

The generators have no dropout: then a training on a few rows converges, whatever the arithmetic of the machine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from hfcf.core import recipe
from hfcf.engines.rbert import MARKERS, RBert
from hfcf.tasks.verification import LABELS

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def texts() -> list[str]:
    rows = json.loads((recipe.folder() / "demo" / "hover_train_release_v1.1.json").read_text(encoding="utf-8"))
    return [text for row in rows for text in (row["claim"], *(sentence for _, sentence in row["evidence"]))]


def vocabulary() -> dict[str, int]:
    """Every character and the commonest words of the demo. A trained vocabulary would differ from run to run."""
    words = Counter(word for text in texts() for word in re.findall(r"\w+|[^\w\s]", text))
    pieces = [piece for character in sorted({c for word in words for c in word}) for piece in (character, f"##{character}")]
    common = [word for word in sorted(words, key=lambda word: (-words[word], word)) if len(word) > 1]
    return {piece: i for i, piece in enumerate([*SPECIALS, *pieces, *common][:1500])}


def tokenizer(pair: bool) -> PreTrainedTokenizerFast:
    """WordPiece over the demo's texts; `[CLS] a [SEP] b [SEP]` for an encoder, `a [SEP]` for a decoder."""
    made = Tokenizer(models.WordPiece(vocabulary(), unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    specials = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = (
        processors.TemplateProcessing("[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials)
        if pair
        else processors.TemplateProcessing("$A [SEP]", special_tokens=[("[SEP]", 3)])
    )
    names = ["input_ids", "token_type_ids", "attention_mask"] if pair else ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", eos_token="[SEP]",
        model_max_length=512, model_input_names=names,
    )  # fmt: skip


def classifier(folder: Path) -> str:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1500, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)}, initializer_range=0.5,
    )  # fmt: skip
    return _save(BertForSequenceClassification(config), tokenizer(pair=True), folder)


def reader(folder: Path) -> str:
    """An extractive reader without dropout, whose answers differ from question to question."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1500, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, initializer_range=0.5,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return _save(BertForQuestionAnswering(config), tokenizer(pair=True), folder)


def verifier(folder: Path) -> str:
    """A classifier whose verdicts differ from pair to pair: a steep head, centred on the demo, with a leaning to REFUTES."""
    network = BertForSequenceClassification.from_pretrained(classifier(folder))
    rows = json.loads((recipe.folder() / "demo" / "hover_train_release_v1.1.json").read_text(encoding="utf-8"))
    pairs = [[row["claim"], " ".join(sentence for _, sentence in row["evidence"])] for row in rows]
    batch = tokenizer(pair=True)(*zip(*pairs, strict=True), padding=True, truncation=True, max_length=96, return_tensors="pt")
    with torch.no_grad():
        network.classifier.weight *= 8
        network.classifier.bias -= network(**batch).logits.mean(0) - torch.tensor([0.0, 6.0, -6.0])
    return _save(network, tokenizer(pair=True), folder)


def t5(folder: Path) -> str:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=1500, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=3, initializer_factor=2.0, dropout_rate=0.0,
    )  # fmt: skip
    return _save(T5ForConditionalGeneration(config), tokenizer(pair=False), folder)


def t5_marked(folder: Path) -> str:
    """A T5 with marks for masked spans, as the pretrained ones have."""
    network, made = T5ForConditionalGeneration.from_pretrained(t5(folder)), tokenizer(pair=False)
    made.add_special_tokens({"additional_special_tokens": [f"<extra_id_{n}>" for n in range(5)]})
    network.resize_token_embeddings(len(made))
    return _save(network, made, folder)


def bart(folder: Path) -> str:
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=1500, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=512, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        decoder_start_token_id=3, forced_eos_token_id=None, init_std=0.5,
    )  # fmt: skip
    return _save(BartForConditionalGeneration(config), tokenizer(pair=False), folder)


def gpt2(folder: Path) -> str:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=1500, n_positions=512, n_embd=32, n_layer=2, n_head=4, bos_token_id=2, eos_token_id=3, pad_token_id=0,
        initializer_range=0.5, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return _save(GPT2LMHeadModel(config), tokenizer(pair=False), folder)


def _save(network, tokenizer, folder: Path) -> str:  # type: ignore[no-untyped-def]
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def mlm(folder: Path) -> str:
    """A masked language model of BERT's form; its tokenizer has a mask token besides."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1501, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=128, initializer_range=0.5,
    )  # fmt: skip
    made = tokenizer(pair=True)
    made.add_special_tokens({"mask_token": "[MASK]"})
    made.model_max_length = 128
    return _save(BertForMaskedLM(config), made, folder)


def rbert(
    folder: Path, labels: Sequence[str] = ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Entity-Origin(e1,e2)", "Other")
) -> str:
    """An R-BERT whose verdicts differ from sentence to sentence; its tokenizer knows the markers besides."""
    torch.manual_seed(1)
    made = tokenizer(pair=True)
    made.add_tokens(list(MARKERS))
    made.model_max_length = 64
    config = BertConfig(
        vocab_size=len(made), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    network = RBert(BertModel(config), labels)
    with torch.no_grad():
        network.classifier.weight *= 4
        network.classifier.bias.zero_()
    return _save(network, made, folder)
