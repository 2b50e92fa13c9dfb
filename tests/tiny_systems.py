"""Systems on tiny random models, and rows for them, broken ones among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tiny_relation
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.systems import system_class
from hfcf.tasks.verification import NOT_ENOUGH_INFO

# Tiny models for the settings of these names, unless a system is listed in `MODELS`, and small values for others.
TINY = {
    "generator": "t5", "model": "mlm", "forward": "bart", "backward": "t5", "masked": "mlm", "indicator": "rbert", "editor": "t5",
}  # fmt: skip
SMALL: dict[str, Any] = {"num_beams": 2, "num_candidates": 2, "max_new_tokens": 8, "consistency": False}
MODELS = {"paraphrase": {"generator": "gpt2"}, "polyjuice": {"generator": "gpt2"}}
SETTINGS: dict[str, dict[str, Any]] = {
    # An editor that writes what fits has to be trained: tests/ccg/test_ccg.py does.
    "ccg": {"parser": None, "top": 20, "use_editor": False, "editor": None, "max_length": 64},
    "mice": {"max_length": 64},
    "revisions": {"revisions": {"from": [{"corpus": "cad_imdb", "data_dir": "recipes:demo_texts"}]}},
    "autocad": {"max_length": 64},
    "coco": {"parser": {"backend": "spacy", "model": "offline:spacy"}, "max_length": 64},
}
# They are made otherwise: many models; a server that is asked; questions.
ELSEWHERE = {"race", "llm", "rgf", "gold_agen_qgen", "rand_agen_qgen", "checkwhy"}


def make(name: str, task: str, tiny_model: Callable[[str], str]) -> System:
    """Make a system; skip the test where a package is not installed."""
    if name in ("eda", "synonym", "ccg", "masked_lm") and not installed("wordnet"):
        pytest.skip("the offline WordNet is not installed")
    if name == "coco" and not installed("spacy"):
        pytest.skip("the offline spaCy pipeline is not installed")
    cls = system_class(name)
    models = {**{setting: kind for setting, kind in TINY.items() if setting in cls.schema}, **MODELS.get(name, {})}
    settings = {setting: value for setting, value in SMALL.items() if setting in cls.schema}
    made: dict[str, Any] = {setting: Model(tiny_model(kind)) for setting, kind in models.items()}
    return cls(**{**made, **settings, **({"task": task} if "task" in cls.schema else {}), **SETTINGS.get(name, {})})


def rows(task: str) -> Dataset:
    """Return rows of a task."""
    return {"relation": sentences, "classification": texts}.get(task, claims)()


def texts() -> Dataset:
    films = (
        "The film was a wonderful surprise.",
        "A dull story with terrible music.",
        "What a great cast, and what a fine evening!",
    )
    made = [
        {"id": f"{i}", "text": text, "label": ("positive", "negative")[i % 2], "group_id": f"g{i}", "corpus": "c", "split": "train"}
        for i, text in enumerate(films)
    ]
    made += [{**made[0], "id": "no text", "text": " "}, {**made[0], "id": "unlabelled", "label": None}]
    return Dataset.from_list(made, features=get_task("classification").features)


def sentences() -> Dataset:
    labels = ("Cause-Effect(e1,e2)", "Entity-Origin(e1,e2)", "Product-Producer(e2,e1)")
    made = [
        {**tiny_relation.row(text, labels[i % 3]), "id": f"{i}", "group_id": f"g{i}", "corpus": "made", "split": "train"}
        for i, text in enumerate(tiny_relation.SENTENCES)
    ]
    made += [{**made[0], "id": "other", "label": "Other"}, {**made[0], "id": "overlap", "tail": made[0]["head"]}]
    made += [{**made[0], "id": "no tokens", "tokens": []}, {**made[0], "id": "no place", "head": None}]
    return Dataset.from_list(made, features=get_task("relation").features)


def claims() -> Dataset:
    demo = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
    made = list(demo.select(range(4)))
    made += [{**made[0], "id": "nei", "label": NOT_ENOUGH_INFO}, {**made[0], "id": "no claim", "claim": " "}]
    made += [{**made[0], "id": "no letters", "claim": "1994–2006: Αθήνα!"}, {**made[0], "id": "no evidence", "evidence": []}]
    return Dataset.from_list(made, features=demo.features)
