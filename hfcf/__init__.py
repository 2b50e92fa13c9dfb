"""Counterfactual data for language tasks, native to Hugging Face `datasets`."""

from __future__ import annotations

import ast
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The public names. Each is imported when it is first used, so that `hfcf --help` loads no model library.
if TYPE_CHECKING:
    from hfcf import checkwhy as checkwhy
    from hfcf.core.bound_stage import BoundStage as BoundStage
    from hfcf.core.candidates import accepted as accepted
    from hfcf.core.expand import balance as balance
    from hfcf.core.expand import expand as expand
    from hfcf.core.expand import rejected as rejected
    from hfcf.core.model import Model as Model
    from hfcf.core.pairs import pair as pair
    from hfcf.core.pairs import pair_within as pair_within
    from hfcf.core.prepare import prepare as prepare
    from hfcf.core.stage import Reject as Reject
    from hfcf.core.stage import Stage as Stage
    from hfcf.core.system import System as System
    from hfcf.core.task import Task as Task
    from hfcf.corpora import load as load
    from hfcf.corpora.base import Corpus as Corpus
    from hfcf.corpora.base import CorpusInfo as CorpusInfo
    from hfcf.corpora.custom.export import to_dataset as to_dataset
    from hfcf.corpora.custom.load import from_dataset as from_dataset
    from hfcf.engines.constrained import generate_constrained as generate_constrained
    from hfcf.hub.run_folder import load_result as load_result
    from hfcf.metrics.scores.coverage import coverage as coverage
    from hfcf.metrics.shared.measure import measure as measure
    from hfcf.pipeline.run import run as run
    from hfcf.systems._augment import augment as augment
    from hfcf.systems._shared.judge import JudgeCandidates as JudgeCandidates
    from hfcf.systems._single import counterfactuals as counterfactuals
    from hfcf.systems.baselines.autocad import AutoCAD as AutoCAD
    from hfcf.systems.baselines.back_translation import BackTranslation as BackTranslation
    from hfcf.systems.baselines.coco import CoCo as CoCo
    from hfcf.systems.baselines.eda import EDA as EDA
    from hfcf.systems.baselines.gold_agen_qgen import GoldAgenQgen as GoldAgenQgen
    from hfcf.systems.baselines.llm import LLM as LLM
    from hfcf.systems.baselines.masked_lm import MaskedLM as MaskedLM
    from hfcf.systems.baselines.mice import MICE as MICE
    from hfcf.systems.baselines.paraphrase import Paraphrase as Paraphrase
    from hfcf.systems.baselines.polyjuice import Polyjuice as Polyjuice
    from hfcf.systems.baselines.rand_agen_qgen import RandAgenQgen as RandAgenQgen
    from hfcf.systems.baselines.revisions import Revisions as Revisions
    from hfcf.systems.baselines.synonym import Synonym as Synonym
    from hfcf.systems.ccg.system import CCG as CCG
    from hfcf.systems.checkwhy.system import CheckWhy as CheckWhy
    from hfcf.systems.crossaug import CrossAug as CrossAug
    from hfcf.systems.race.system import RACE as RACE
    from hfcf.systems.rgf.system import RGF as RGF
    from hfcf.training.consistency import consistency as consistency


@lru_cache(maxsize=1)
def _public() -> dict[str, str]:
    """Return the module of each public name, as the imports above have it."""
    [block] = [node for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    return {alias.name: str(node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_public())
    if name not in _public():
        raise AttributeError(f"module 'hfcf' has no attribute {name!r}")
    if _public()[name] == "hfcf":
        return import_module(f"hfcf.{name}")
    return getattr(import_module(_public()[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_public()])
