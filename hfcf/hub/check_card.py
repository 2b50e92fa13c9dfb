"""Check that the Hub understands a card's front matter, without a request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from huggingface_hub.repocard_data import model_index_to_eval_results

from hfcf.hub.folder import as_list

LICENCES = frozenset(
    """
    apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m afl-3.0
    artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0
    cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
    cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0
    etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl apple-ascl
    mpl-2.0 odc-by odbl
    openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license llama2 llama3 gemma unknown other
    """.split()  # noqa: SIM905  the list is long
)
"""The Hub's licence names: https://huggingface.co/docs/hub/repositories-licenses"""
TASKS = {
    "text-classification": frozenset(
        """acceptability-classification entity-linking-classification fact-checking intent-classification language-identification
        multi-class-classification multi-label-classification multi-input-text-classification natural-language-inference
        semantic-similarity-classification sentiment-classification topic-classification semantic-similarity-scoring
        sentiment-scoring sentiment-analysis hate-speech-detection text-scoring""".split()  # noqa: SIM905
    ),
    "question-answering": frozenset({"extractive-qa", "open-domain-qa", "closed-domain-qa"}),
    "text-generation": frozenset({"dialogue-modeling", "dialogue-generation", "conversational", "language-modeling"}),
    "fill-mask": frozenset({"slot-filling", "masked-language-modeling"}),
    "token-classification": frozenset({"named-entity-recognition", "part-of-speech", "parsing", "coreference-resolution"}),
}
"""Task ids of each task category that this library's data and models have."""
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
REPOSITORY = re.compile(r"(?!.*(--|\.\.|\.git$))([A-Za-z0-9_][\w.-]{0,95}(?<![.-])/)?[A-Za-z0-9_][\w.-]{0,95}(?<![.-])", re.ASCII)
"""A repository's name, with or without a namespace."""


def check_card(front: Mapping[str, Any], kind: str) -> list[str]:
    """List what the Hub would not understand in a card."""
    return list({"dataset": _dataset, "model": _model}[kind](front))


def _common(front: Mapping[str, Any]) -> Iterator[str]:
    for licence in _list(front.get("license")) or [None]:
        if licence not in LICENCES:
            yield f'license: {licence!r} is not a licence of the Hub ("other" and "unknown" are)'
    for language in _list(front.get("language")):  # a card of a user's own rows names none
        if not re.fullmatch("[a-z]{2,3}(-[A-Za-z]+)?|multilingual|code", str(language)):
            yield f"language: {language!r} is not a language code"


def _dataset(front: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(front)
    categories = _list(front.get("task_categories"))
    for category in categories or [None]:
        if category not in TASKS:
            yield f"task_categories: {category!r} is not one of {', '.join(TASKS)}"
    for task in _list(front.get("task_ids")):
        if not any(task in TASKS.get(category, ()) for category in categories):
            yield f"task_ids: {task!r} is not a task of {', '.join(map(str, categories))}"
    for size in _list(front.get("size_categories")):
        if size not in SIZES:
            yield f"size_categories: {size!r} is not one of {', '.join(SIZES)}"
    for source in _list(front.get("source_datasets")):
        if source != "original" and not REPOSITORY.fullmatch(str(source).removeprefix("extended|")):
            yield f"source_datasets: {source!r} is neither a dataset of the Hub nor original"
    yield from _configs(front.get("configs") or [])


def _configs(configs: list[Mapping[str, Any]]) -> Iterator[str]:
    names = [config.get("config_name") for config in configs]
    if not configs:
        yield "configs: the list is empty"
    if len(set(names)) != len(names):
        yield f"configs: a name occurs twice in {names}"
    if sum(bool(config.get("default")) for config in configs) > 1:
        yield "configs: there is more than one default"
    for config in configs:
        splits = [entry["split"] for entry in config.get("data_files") or ()]
        if not splits or len(set(splits)) != len(splits):
            yield f"configs: {config.get('config_name')} has no splits, or one twice: {splits}"
        for entry in config.get("data_files") or ():
            if not re.fullmatch(r"\w+(\.\w+)*", entry["split"]):
                yield f"configs: {entry['split']!r} is not a split name"
            for path in as_list(entry["path"]):
                if path.startswith("/") or ".." in path.split("/"):
                    yield f"configs: the path {path!r} leaves the repository"


def _model(front: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(front)
    if front.get("pipeline_tag") not in TASKS:
        yield f"pipeline_tag: {front.get('pipeline_tag')!r} is not one of {', '.join(TASKS)}"
    for key in ("base_model", "datasets"):
        for name in _list(front.get(key)):
            if not REPOSITORY.fullmatch(str(name)):
                yield f"{key}: {name!r} is not a repository name"
    try:
        _, results = model_index_to_eval_results(front["model-index"]) if front.get("model-index") else ("", [])
    except (KeyError, TypeError, ValueError) as error:
        yield f"model-index: {error!r} can't be read as results"
        return
    for result in results:
        named = result.task_type and result.dataset_type and result.dataset_name and result.metric_type
        if not named or not isinstance(result.metric_value, (int, float)) or not math.isfinite(result.metric_value):
            yield f"model-index: {result.metric_name or result.metric_type} of {result.dataset_name} is not a result"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
