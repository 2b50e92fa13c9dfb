"""Counterfactual data for language tasks, native to Hugging Face `datasets`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live: each is imported when it is first used, so that `hfcf --help` loads no model library.
_PUBLIC = {
    "AutoCAD": "hfcf.systems.baselines.autocad",
    "BackTranslation": "hfcf.systems.baselines.back_translation",
    "CCG": "hfcf.systems.ccg.system",
    "CheckWhy": "hfcf.systems.checkwhy.system",
    "CoCo": "hfcf.systems.baselines.coco",
    "Corpus": "hfcf.corpora.base",
    "CorpusInfo": "hfcf.corpora.base",
    "CrossAug": "hfcf.systems.crossaug",
    "EDA": "hfcf.systems.baselines.eda",
    "GoldAgenQgen": "hfcf.systems.baselines.gold_agen_qgen",
    "JudgeCandidates": "hfcf.systems._shared.judge",
    "LLM": "hfcf.systems.baselines.llm",
    "MICE": "hfcf.systems.baselines.mice",
    "MaskedLM": "hfcf.systems.baselines.masked_lm",
    "Model": "hfcf.core.model",
    "Paraphrase": "hfcf.systems.baselines.paraphrase",
    "Part": "hfcf.core.parts",
    "Polyjuice": "hfcf.systems.baselines.polyjuice",
    "RACE": "hfcf.systems.race.system",
    "RGF": "hfcf.systems.rgf.system",
    "RandAgenQgen": "hfcf.systems.baselines.rand_agen_qgen",
    "Reject": "hfcf.core.stage",
    "Revisions": "hfcf.systems.baselines.revisions",
    "Stage": "hfcf.core.stage",
    "Synonym": "hfcf.systems.baselines.synonym",
    "System": "hfcf.core.system",
    "Task": "hfcf.core.task",
    "accepted": "hfcf.core.candidates",
    "augment": "hfcf.systems._augment",
    "checkwhy": "hfcf.checkwhy",
    "consistency": "hfcf.training.consistency",
    "counterfactuals": "hfcf.systems._single",
    "expand": "hfcf.core.expand",
    "from_dataset": "hfcf.corpora.custom.load",
    "generate_constrained": "hfcf.engines.constrained",
    "load": "hfcf.corpora",
    "load_result": "hfcf.hub.run_folder",
    "measure": "hfcf.metrics.shared.measure",
    "pair": "hfcf.core.pairs",
    "pair_within": "hfcf.core.pairs",
    "prepare": "hfcf.core.prepare",
    "rejected": "hfcf.core.expand",
    "run": "hfcf.pipeline.run",
    "to_dataset": "hfcf.corpora.custom.export",
}

if TYPE_CHECKING:
    from hfcf import checkwhy
    from hfcf.core.candidates import accepted
    from hfcf.core.expand import expand, rejected
    from hfcf.core.model import Model
    from hfcf.core.pairs import pair, pair_within
    from hfcf.core.parts import Part
    from hfcf.core.prepare import prepare
    from hfcf.core.stage import Reject, Stage
    from hfcf.core.system import System
    from hfcf.core.task import Task
    from hfcf.corpora import load
    from hfcf.corpora.base import Corpus, CorpusInfo
    from hfcf.corpora.custom.export import to_dataset
    from hfcf.corpora.custom.load import from_dataset
    from hfcf.engines.constrained import generate_constrained
    from hfcf.hub.run_folder import load_result
    from hfcf.metrics.shared.measure import measure
    from hfcf.pipeline.run import run
    from hfcf.systems._augment import augment
    from hfcf.systems._shared.judge import JudgeCandidates
    from hfcf.systems._single import counterfactuals
    from hfcf.systems.baselines.autocad import AutoCAD
    from hfcf.systems.baselines.back_translation import BackTranslation
    from hfcf.systems.baselines.coco import CoCo
    from hfcf.systems.baselines.eda import EDA
    from hfcf.systems.baselines.gold_agen_qgen import GoldAgenQgen
    from hfcf.systems.baselines.llm import LLM
    from hfcf.systems.baselines.masked_lm import MaskedLM
    from hfcf.systems.baselines.mice import MICE
    from hfcf.systems.baselines.paraphrase import Paraphrase
    from hfcf.systems.baselines.polyjuice import Polyjuice
    from hfcf.systems.baselines.rand_agen_qgen import RandAgenQgen
    from hfcf.systems.baselines.revisions import Revisions
    from hfcf.systems.baselines.synonym import Synonym
    from hfcf.systems.ccg.system import CCG
    from hfcf.systems.checkwhy.system import CheckWhy
    from hfcf.systems.crossaug import CrossAug
    from hfcf.systems.race.system import RACE
    from hfcf.systems.rgf.system import RGF
    from hfcf.training.consistency import consistency

__all__ = [
    "CCG",
    "EDA",
    "LLM",
    "MICE",
    "RACE",
    "RGF",
    "AutoCAD",
    "BackTranslation",
    "CheckWhy",
    "CoCo",
    "Corpus",
    "CorpusInfo",
    "CrossAug",
    "GoldAgenQgen",
    "JudgeCandidates",
    "MaskedLM",
    "Model",
    "Paraphrase",
    "Part",
    "Polyjuice",
    "RandAgenQgen",
    "Reject",
    "Revisions",
    "Stage",
    "Synonym",
    "System",
    "Task",
    "accepted",
    "augment",
    "checkwhy",
    "consistency",
    "counterfactuals",
    "expand",
    "from_dataset",
    "generate_constrained",
    "load",
    "load_result",
    "measure",
    "pair",
    "pair_within",
    "prepare",
    "rejected",
    "run",
    "to_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hfcf' has no attribute {name!r}")
    module = import_module(_PUBLIC[name])
    return module if module.__name__ == f"hfcf.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
