"""The offline SmolLM2 behind a small server of our own in this process: greedy answers of a real model, with log-probabilities."""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

import torch
from bad_server import Reply, body
from transformers import AutoModelForCausalLM, AutoTokenizer

from hfcf.core import offline


class LocalLlm:
    """Answer chat completions by greedy search; give it to `BadServer` as its behaviour.

    Args:
        longest: tokens of an answer, whatever a request allows: a model of 135 M weights seldom finds an end.
    """

    def __init__(self, longest: int) -> None:
        folder = offline.folder("smollm2")
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self._longest, self._lock = longest, Lock()

    def __call__(self, _: int, asked: dict[str, Any]) -> Reply:
        tokenizer = self._tokenizer
        inputs = tokenizer.apply_chat_template(asked["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True)
        prompt = inputs["input_ids"].shape[1]
        with self._lock, torch.inference_mode():
            output = self._network.generate(
                **inputs, max_new_tokens=min(self._longest, asked["max_tokens"]), do_sample=False, return_dict_in_generate=True,
                output_scores=True,
            )  # fmt: skip
        ids = output.sequences[0, prompt:].tolist()
        ended = ids[-1] == self._network.generation_config.eos_token_id
        written = ids[:-1] if ended else ids
        content = []
        for token, scores in zip(written, output.scores, strict=False):
            logs = scores[0].log_softmax(-1)
            top = logs.topk(asked.get("top_logprobs") or 1)
            others = [self._token(int(i), float(value)) for i, value in zip(top.indices, top.values, strict=True)]
            content.append({**self._token(token, float(logs[token])), "top_logprobs": others})
        choice = {
            "index": 0, "message": {"role": "assistant", "content": "".join(one["token"] for one in content)},
            "finish_reason": "stop" if ended else "length",
            "logprobs": {"content": content} if asked.get("logprobs") else None,
        }  # fmt: skip
        return body({"model": "smollm2", "choices": [choice], "usage": {"prompt_tokens": prompt, "completion_tokens": len(ids)}})

    def _token(self, token: int, value: float) -> dict[str, Any]:
        return {"token": self._tokenizer.decode([token]), "logprob": max(value, -1e4) if math.isfinite(value) else -1e4}
