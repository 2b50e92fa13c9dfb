"""The engine that fits a generation model: RACE does not care which kind it is."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hfcf.engines.causal import Causal
from hfcf.engines.model import Model
from hfcf.engines.seq2seq import Seq2Seq


def generator_engine(model: Model, **settings: Any) -> Seq2Seq | Causal:
    """`Seq2Seq` for an encoder-decoder (T5, BART), `Causal` for a decoder-only model (GPT-2, Llama)."""
    return (Seq2Seq if _two_sided(model) else Causal)(model=model, **settings)


@lru_cache(maxsize=16)
def _two_sided(model: Model) -> bool:
    from transformers import AutoConfig

    return bool(AutoConfig.from_pretrained(model.source(), revision=model.revision).is_encoder_decoder)
