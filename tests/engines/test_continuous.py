"""Chat models by Transformers' continuous batching: on the CPU with tiny networks, the tokens of static batches."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from chat_models import chat, tokenizer
from transformers import (
    ContinuousBatchingConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from hfcf.core.decisions import batches_of_one
from hfcf.core.model import Model
from hfcf.engines import cache as request_cache
from hfcf.engines.answers import object_schema
from hfcf.engines.base import usage
from hfcf.engines.chat import continuous
from hfcf.engines.chat import engine as chat_engine
from hfcf.engines.chat.continuous import NotContinuousError, write_continuously
from hfcf.engines.chat.engine import ChatModel
from hfcf.engines.chat.weights import Loaded
from hfcf.engines.chat.writing import Prompt, Row, write

LABEL = object_schema({"label": {"type": "string", "enum": ["yes", "no"]}})
HEAD = list(range(48))
CACHE_SETTINGS, HAS_FLASH = continuous.cache_settings, continuous.has_flash
SIZES: dict[str, Any] = {
    "vocab_size": 259, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 4096, "initializer_range": 0.5, "pad_token_id": 256, "eos_token_id": 258,
}  # fmt: skip


def small_cache(**settings: Any) -> ContinuousBatchingConfig:
    """A cache that a test can pay: without these numbers it takes most of the memory."""
    return ContinuousBatchingConfig(
        **{"num_blocks": 64, "page_size": 16, "max_batch_tokens": 128, "max_requests_per_batch": 3, **settings}
    )


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    usage().clear()
    request_cache._open.cache_clear()
    monkeypatch.setattr(continuous, "DEVICES", {"cpu"})
    monkeypatch.setattr(continuous, "cache_settings", small_cache)
    monkeypatch.setattr(continuous, "has_flash", lambda network: True)
    yield
    assert [thread for thread in threading.enumerate() if "_run_generation_loop" in thread.name] == []


@pytest.fixture
def model(shared: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model(f"chat:{shared('chat', chat)}")
    monkeypatch.setattr(ChatModel(model=model, schema=LABEL).loaded(), "continuous", True)
    return model


def load(network: Any) -> Loaded:
    return Loaded(network.eval(), tokenizer(), frozenset({258}), None)


def qwen() -> Loaded:
    torch.manual_seed(0)
    return load(Qwen2ForCausalLM(Qwen2Config(**SIZES)))


def llama(folder: Path) -> Loaded:
    return load(LlamaForCausalLM.from_pretrained(chat(folder)))


def some_rows(number: int = 10) -> list[Row]:
    """Prompts of several lengths with a common head; some answers may have a few tokens, some thirty."""
    ids = [[*HEAD, *(100 + (i * 7 + j) % 60 for j in range(1 + 3 * (i % 4)))] for i in range(number)]
    return [Row(Prompt(one, {"number": i}, limit=[30, 4, 11][i % 3]), Random(0)) for i, one in enumerate(ids)]


def written(rows: Sequence[Row]) -> list[tuple[list[int], bool, bool]]:
    return [(row.ids, row.ended, row.full) for row in rows]


def with_stops(loaded: Loaded) -> Loaded:
    """Let tokens that the network likes end an answer: a random network writes no end of its own."""
    rows = some_rows()
    write(loaded, rows, 0.0, 0)
    counts = Counter(token for row in rows for token in set(row.ids[1:]) - {row.ids[0]})
    return replace(loaded, stops=frozenset({258, *(token for token, _ in counts.most_common(2))}))


def count_tokens(network: Any) -> tuple[list[int], Any]:
    """Return a list to which each pass of a network adds its number of tokens, and the hook that does."""
    counts: list[int] = []
    hook = network.register_forward_pre_hook(
        lambda _, __, inputs: counts.append(inputs["input_ids"].numel()), with_kwargs=True
    )  # fmt: skip
    return counts, hook


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", ["llama", "qwen"])
def test_the_tokens_are_those_of_static_batches(family: str, attention: str, tmp_path: Path) -> None:
    loaded = with_stops(llama(tmp_path) if family == "llama" else qwen())
    loaded.network.set_attn_implementation(attention)
    static, joined, places = some_rows(), some_rows(), list[int]()
    write(loaded, static, 0.0, 0)
    write_continuously(loaded, joined, places.extend)
    assert written(joined) == written(static)
    assert sorted(places) == list(range(10))
    assert {row.ended for row in joined} == {True, False}, "some ended by themselves, and some were full"
    assert loaded.network.config._attn_implementation == attention, "the network has its own attention again"
    again = some_rows()
    write(loaded, again, 0.0, 0)
    assert written(again) == written(static)


def test_the_head_of_the_prompts_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, read = llama(tmp_path), []
    for sharing in (True, False):
        monkeypatch.setattr(continuous, "cache_settings", lambda: small_cache(allow_block_sharing=sharing))  # noqa: B023
        counts, hook = count_tokens(loaded.network)
        write_continuously(loaded, some_rows(), lambda _: None)
        hook.remove()
        read.append(sum(counts))
    assert read[1] - read[0] >= 5 * len(HEAD), "of ten prompts, those that join later read no head"


@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize("kernels", [True, False])
def test_flash_attention_is_an_installed_package_and_never_code_from_the_hub(
    flash: bool, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.utils.is_flash_attn_2_available", lambda: flash)
    monkeypatch.setattr("transformers.utils.is_kernels_available", lambda: kernels)
    monkeypatch.setattr(continuous, "has_flash", HAS_FLASH)
    loaded = qwen()
    for dtype in (torch.bfloat16, torch.float32):
        loaded.network.to(dtype)
        assert continuous.is_open(loaded) == (flash and not kernels and dtype is torch.bfloat16)
    settings = CACHE_SETTINGS()
    assert settings.auto_switch_to_flash
    assert settings.allow_block_sharing


def test_a_network_with_a_sliding_window_is_refused() -> None:
    loaded = load(MistralForCausalLM(MistralConfig(**SIZES, sliding_window=8)))
    with pytest.raises(NotContinuousError, match="sliding window"):
        write_continuously(loaded, some_rows(), lambda _: None)


def test_an_attention_that_has_no_paged_form_is_refused(tmp_path: Path) -> None:
    loaded = llama(tmp_path)
    loaded.network.set_attn_implementation("flex_attention")
    with pytest.raises(NotContinuousError, match="flex_attention is not supported"):
        write_continuously(loaded, some_rows(), lambda _: None)
    assert loaded.network.config._attn_implementation == "flex_attention"


def test_what_was_done_before_memory_ran_out_is_kept(tmp_path: Path) -> None:
    loaded, passes, places = llama(tmp_path), list[int](), list[int]()

    def run_out(*_: Any) -> None:
        passes.append(1)
        if len(passes) == 20:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    static, joined = some_rows(), some_rows()
    write(loaded, static, 0.0, 0)
    hook = loaded.network.register_forward_pre_hook(run_out)
    with pytest.raises(NotContinuousError, match="out of memory"):
        write_continuously(loaded, joined, places.extend)
    hook.remove()
    assert 0 < len(places) < 10
    assert written([joined[i] for i in places]) == written([static[i] for i in places])


class Killed(BaseException):
    pass


def test_a_stopped_run_waits_for_no_other_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(places: Sequence[int]) -> None:
        raise Killed

    monkeypatch.setattr(continuous, "CHUNK", 1)
    loaded, whole = llama(tmp_path), some_rows(60)
    counts, hook = count_tokens(loaded.network)
    with pytest.raises(Killed):
        write_continuously(loaded, whole, stop)
    hook.remove()
    assert len(counts) < 100, "all sixty answers, three at once, take three hundred passes"


def ask(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Read the claim, and answer with a label. Claim: number {number}"}]


def run(monkeypatch: pytest.MonkeyPatch, model: Model, numbers: range, **settings: Any) -> dict[str, Any]:
    """Ask a model, and return the attempts that were computed."""
    raws: dict[str, Any] = {}
    make = chat_engine.raw_attempt

    def keep(made: Any, row: Row, name: str) -> dict[str, Any]:
        return raws.setdefault(json.dumps(row.prompt.question), make(made, row, name))

    with monkeypatch.context() as patch:
        patch.setattr(chat_engine, "raw_attempt", keep)
        settings = {"constrained": False, "max_tokens": 12, "attempts": 2, **settings}
        ChatModel(model=model, schema=LABEL, **settings).run([ask(number) for number in numbers])
    return raws


@pytest.fixture
def static_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the static batches that are written; one holds three prompts."""
    sizes: list[int] = []

    def count(loaded: Any, rows: Sequence[Row], *settings: Any) -> None:
        sizes.append(len(rows))
        write(loaded, rows, *settings)

    monkeypatch.setattr(chat_engine, "write", count)
    monkeypatch.setattr(ChatModel, "room", lambda self, length: 3)
    return sizes


def test_the_engine_has_the_attempts_of_static_batches(
    model: Model, monkeypatch: pytest.MonkeyPatch, static_batches: list[int]
) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    joined = run(monkeypatch, model, range(8))
    record = usage()["ChatModel"]
    counts = record.attempts, record.tokens, record.written
    assert static_batches == []
    usage().clear()
    monkeypatch.setattr(continuous, "DEVICES", {"cuda"})
    assert run(monkeypatch, model, range(8)) == joined
    assert static_batches == [3, 3, 2] * 2
    record = usage()["ChatModel"]
    assert (record.attempts, record.tokens, record.written) == counts
    assert len(joined) == 16, "two attempts"


@pytest.mark.parametrize("settings", [{"temperature": 1.0}, {"alternatives": 2}, {"constrained": True}])
def test_what_it_has_no_means_for_is_written_in_static_batches(
    settings: dict[str, Any], model: Model, monkeypatch: pytest.MonkeyPatch, static_batches: list[int]
) -> None:
    if "constrained" in settings:
        pytest.importorskip("llguidance")
    monkeypatch.setattr(continuous, "write_continuously", lambda *_: pytest.fail("not asked for"))
    run(monkeypatch, model, range(4), **settings)
    assert static_batches[:2] == [3, 1]


def test_a_single_batch_and_rows_that_are_asked_alone_are_static(
    model: Model, monkeypatch: pytest.MonkeyPatch, static_batches: list[int]
) -> None:
    monkeypatch.setattr(continuous, "write_continuously", lambda *_: pytest.fail("nothing would join"))
    run(monkeypatch, model, range(3), attempts=1)
    with batches_of_one():
        run(monkeypatch, model, range(2), attempts=1)
    assert static_batches == [3, 2]


def test_a_killed_run_repeats_no_chunk_that_was_done(
    model: Model, monkeypatch: pytest.MonkeyPatch, static_batches: list[int], cache: Path
) -> None:
    monkeypatch.setattr(continuous, "CHUNK", 4)
    full = run(monkeypatch, model, range(10), attempts=1)
    request_cache._open.cache_clear()
    monkeypatch.setenv("HFCF_CACHE", str(cache / "other"))
    calls, take = list[int](), chat_engine.Attempts.put_all

    def killed(self: Any, attempts: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Killed
        take(self, attempts)

    with monkeypatch.context() as patch:
        patch.setattr(chat_engine.Attempts, "put_all", killed)
        with pytest.raises(Killed):
            run(monkeypatch, model, range(10), attempts=1)
    usage().clear()
    rest = run(monkeypatch, model, range(10), attempts=1)
    assert len(rest) == 6
    assert usage()["ChatModel"].cached == 4
    assert rest.items() <= full.items()
    assert static_batches == []


def test_where_it_fails_static_batches_write_the_rest_and_one_warning_says_so(
    model: Model, monkeypatch: pytest.MonkeyPatch, static_batches: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    expected = run(monkeypatch, model, range(8))
    monkeypatch.setattr(continuous, "cache_settings", lambda: small_cache(num_blocks=2))  # less than a prompt
    with caplog.at_level(logging.WARNING, "hfcf"):
        assert run(monkeypatch, model, range(8)) == expected
        run(monkeypatch, model, range(8))
    assert static_batches[:6] == [3, 3, 2] * 2
    said = [record.getMessage() for record in caplog.records if record.name.startswith("hfcf")]
    assert len(said) == 1
    assert "continuous batching gave up, and static batches write what is left" in said[0]
