"""What a GPU does with stages: rows and tokens a second, the share inside models, and ratios to the CPU.

The networks have random weights in the sizes of those that are common: BERT-base for the verifier and T5-base for the
generator. So times are those of such models, and texts mean nothing. Without a GPU the script says so, and runs nothing.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false"
)

import torch
from common import read_options, show
from datasets import Dataset, disable_caching
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

import hfcf
from hfcf.core import recipe
from hfcf.core.mapping import map_stage
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.engines.base import load, usage
from hfcf.systems.crossaug.negative_claim import GenerateNegativeClaim
from hfcf.systems.race.explain import Explain
from hfcf.tasks.verification import LABELS

VOCABULARY = 30_000
BATCH = 128
DEMO = recipe.folder() / "demo"


def tokenizer(pair: bool) -> PreTrainedTokenizerFast:
    """Words of the demo, and made ones up to the size of a common vocabulary."""
    ds = hfcf.load("hover", data_dir=DEMO, split="train")
    split = pre_tokenizers.BertPreTokenizer()
    texts = [*ds["claim"], *(piece["text"] for evidence in ds["evidence"] for piece in evidence)]
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(text)})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words, *(f"word{n}" for n in range(VOCABULARY))][:VOCABULARY]
    made = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = split
    one, two = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1") if pair else ("$A [SEP]", None)
    made.post_processor = processors.TemplateProcessing(one, pair=two, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if pair else ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", eos_token="[SEP]",
        model_max_length=512, model_input_names=inputs,
    )  # fmt: skip


def save(make: Callable[[], Any], pair: bool, folder: Path) -> str:
    torch.manual_seed(0)
    with torch.device("cuda"):
        network = make()
    network.save_pretrained(folder)
    tokenizer(pair).save_pretrained(folder)
    return str(folder)


def verifier() -> Any:
    names: dict[str, Any] = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    return BertForSequenceClassification(BertConfig(vocab_size=VOCABULARY, **names))


def generator() -> Any:
    sizes: dict[str, Any] = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
    ids: dict[str, Any] = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 3}
    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, **sizes, **ids))


@contextmanager
def on(device: str) -> Iterator[None]:
    os.environ["HFCF_DEVICE"] = device
    try:
        yield
    finally:
        del os.environ["HFCF_DEVICE"]


class Busy:
    """In how much of the time the GPU computed, as its driver says: the mean over a block."""

    def __enter__(self) -> Busy:
        self.shares: list[int] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._end.wait(0.05):
            self.shares.append(torch.cuda.utilization())

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def mean(self) -> float:
        return sum(self.shares) / max(1, len(self.shares)) / 100


def demo_rows(number: int) -> Dataset:
    """The demo's rows again and again, with claims and ids of their own."""
    ds = hfcf.load("hover", data_dir=DEMO, split="train")
    rows = [{**ds[i % len(ds)], "id": f"r{i}", "claim": f"{ds[i % len(ds)]['claim']} word{i}"} for i in range(number)]
    return Dataset.from_list(rows, features=ds.features)


def timed(stage: Stage, rows: Dataset) -> dict[str, float]:
    """Run a stage whose model is loaded and warm."""
    ds = hfcf.prepare(rows, stage)
    map_stage(ds.select(range(1)), stage, {})
    usage().clear()
    start = time.perf_counter()
    map_stage(ds, stage, {})
    seconds = time.perf_counter() - start
    inside, tokens = (sum(getattr(one, name) for one in usage().values()) for name in ("seconds", "tokens"))
    return {"rows_per_second": len(ds) / seconds, "model_over_stage": inside / seconds, "tokens_per_second": tokens / seconds}


def time_stages(folder: Path, rows: int) -> dict[str, dict[str, float]]:
    """Time stages on the GPU, and on a few rows on the CPU."""
    judge, writer = Model(save(verifier, True, folder / "verifier")), Model(save(generator, False, folder / "generator"))
    explain = Explain(verifier=judge, explainer="gradient_x_input")
    negate = GenerateNegativeClaim(generator=writer, num_beams=5, max_new_tokens=32)
    found = {}
    for stage, many, few in ((explain, rows, 16), (negate, rows // 16, 1)):
        with on("cuda"), Busy() as busy:
            on_gpu = timed(stage, demo_rows(many))
        load.cache_clear()
        with on("cpu"):
            on_cpu = timed(stage, demo_rows(few))
        load.cache_clear()
        found[stage.name] = {**on_gpu, "gpu_busy": busy.mean, "to_cpu": on_gpu["rows_per_second"] / on_cpu["rows_per_second"]}
    return found


def main() -> None:
    options = read_options(__doc__ or "")
    if not torch.cuda.is_available():
        print("there is no GPU here: torch.cuda.is_available() is False")
        return
    disable_caching()
    figures: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    with tempfile.TemporaryDirectory() as folder:
        figures["stages"] = time_stages(Path(folder), 1024 if options.quick else 8192)
    rows = [[name, *values.values()] for name, values in figures["stages"].items()]
    columns = ["stage", "rows/s", "model/stage", "tokens/s", "GPU busy", "to CPU"]
    show(f"Stages on {figures['device']}, bfloat16", columns, rows, options.json, figures)


if __name__ == "__main__":
    main()
