"""Tiny random translators: the real classes of Transformers, each with a SentencePiece model of the demo's texts."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import sentencepiece
import tiny
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, MarianConfig, MarianMTModel, MarianTokenizer

SHAPE = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 256, "init_std": 0.5,
}  # fmt: skip


def pieces(folder: Path) -> tuple[str, str, int]:
    """A SentencePiece model, its vocabulary, which begins with the end of text, the unknown and padding, and its size."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tiny.texts()), model_prefix=str(folder / "pieces"), vocab_size=300, character_coverage=1.0,
        hard_vocab_limit=False, minloglevel=2, num_threads=1,
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "pieces.model"))
    known = dict.fromkeys(["</s>", "<unk>", "<pad>", *map(model.id_to_piece, range(model.get_piece_size()))])
    (folder / "pieces.json").write_text(json.dumps({piece: i for i, piece in enumerate(known)}))
    return str(folder / "pieces.model"), str(folder / "pieces.json"), len(known)


def marian(folder: Path) -> str:
    """As the published ones: it may not write padding, with which it begins, and is made to end at the limit."""
    torch.manual_seed(0)
    model, vocabulary, size = pieces(folder)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        tokenizer = MarianTokenizer(source_spm=model, target_spm=model, vocab=vocabulary)
    config = MarianConfig(vocab_size=size, pad_token_id=2, eos_token_id=0, decoder_start_token_id=2, **SHAPE)
    network = MarianMTModel(config)
    network.generation_config.update(bad_words_ids=[[2]], forced_eos_token_id=0, num_beams=2)
    return _save(network, tokenizer, folder)


def m2m100(folder: Path) -> str:
    torch.manual_seed(0)
    model, vocabulary, size = pieces(folder)
    tokenizer = M2M100Tokenizer(vocab_file=vocabulary, spm_file=model, src_lang="en", tgt_lang="de")
    config = M2M100Config(
        vocab_size=size + 108, pad_token_id=2, bos_token_id=0, eos_token_id=0, decoder_start_token_id=0, **SHAPE,
    )  # fmt: skip
    return _save(M2M100ForConditionalGeneration(config), tokenizer, folder)


def _save(network, tokenizer, folder: Path) -> str:  # type: ignore[no-untyped-def]
    network.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return str(folder / "model")
