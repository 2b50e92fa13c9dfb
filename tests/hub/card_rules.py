"""What the Hub's validation of a card finds wrong, said a second time, by a test's own lists."""

from __future__ import annotations

import re
from typing import Any

import yaml

LICENCES = {"apache-2.0", "mit", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "unknown", "other"}
CATEGORIES = {"text-classification", "text-generation", "fill-mask", "token-classification", "question-answering"}
SIZES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}


def faults_of(card: str, kind: str) -> list[str]:
    """In the Hub's manner: one message for each key whose value it does not take."""
    found = re.match(r"---\r?\n(.*?)\r?\n---\s*?(\r?\n|$)", card, re.DOTALL)
    front: Any = yaml.safe_load(found[1]) if found else None
    if not isinstance(front, dict):
        return ["the card has no metadata"]
    rules = {
        "license": front.get("license") in LICENCES,
        "language": all(re.fullmatch("[a-z]{2,3}", str(one)) for one in listed(front, "language")),
        "tags": all(isinstance(tag, str) for tag in listed(front, "tags")),
        "pretty_name": isinstance(front.get("pretty_name", ""), str),
        "pipeline_tag": kind != "model" or front.get("pipeline_tag") in CATEGORIES,
        "task_categories": kind != "dataset" or set(listed(front, "task_categories")) <= CATEGORIES,
        "size_categories": set(listed(front, "size_categories")) <= SIZES,
        "base_model": all(repository(one) for one in listed(front, "base_model")),
        "datasets": all(repository(one) for one in listed(front, "datasets")),
        "configs": all(good_config(one) for one in listed(front, "configs")),
    }
    return [f'"{key}" with value {front.get(key)!r} is not valid' for key, good in rules.items() if not good]


def listed(front: dict[str, Any], key: str) -> list[Any]:
    value = front.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def repository(name: Any) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name))


def good_config(config: Any) -> bool:
    entries = config.get("data_files", [])
    return isinstance(config.get("config_name"), str) and bool(entries) and all({"split", "path"} == set(one) for one in entries)
