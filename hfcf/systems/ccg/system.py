"""CCG (Miao, Li and Qian 2023, "Generating Commonsense Counterfactuals for Stable Relation Extraction", EMNLP) as one system."""

from __future__ import annotations

from typing import Any, ClassVar

from hfcf.core.bound_stage import BoundStage
from hfcf.core.model import Model
from hfcf.core.public_models import chat_model, pinned
from hfcf.core.system import System
from hfcf.engines.parser import Constituents, Parser
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.ccg.candidate_checks import CheckGrammar, CheckRelation
from hfcf.systems.ccg.edit_relation import EditRelation
from hfcf.systems.ccg.expand_relation import ExpandRelation
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.training.trainer import Hyperparameters

OFFLINE: dict[str, Any] = {
    "masked": Model("hfcf:mlm"),
    "parser": Constituents(backend="spacy", model=Model("offline:spacy")),
    "classifier": Hyperparameters(
        model=Model("offline:minilm"), max_length=128, batch_size=8, learning_rate=5e-4, epochs=6, warmup=0.1
    ),
    "folds": 2,
    "editor_training": Hyperparameters(model=Model("offline:t5"), max_length=47, batch_size=8, learning_rate=5e-4, epochs=3),
    "min_steps": 100,
    # A fifth of a second a row; with an encoder-decoder all of them are terms, none copies an entity.
    "num_beams": 20,
    "closed": True,
    # An indicator or editor of this size, and a few dozen rows, know no words for most relations: phrases say them.
    "phrases": "all",
    "unflipped": True,
    "language_model": Model("offline:smollm2"),
    "tagger": Parser(backend="spacy", model=Model("offline:spacy")),
    "max_phrases": 6,
    "max_loss": 8.0,
}
"""Settings of the offline preset; indicator, editor and `max_loss` were tried on training samples of SemEval, on nothing else."""

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {
    "method": "editor", "masked": None, "parser": None, "editor": _CHAT, "verifier": _CHAT, "num_candidates": 3, "phrases": "all",
    "min_kept": 0.5, "tagger": Parser(backend="spacy", model=Model("offline:spacy")),
    "language_model": Model("offline:smollm2"), "max_loss": 8.0,
}  # fmt: skip
"""A language model behind `HFCF_LLM_URL` picks a new relation and words for it, in one answer. It must then prefer this relation
in the new sentence, and more than in the source's. WordNet, spaCy's parser, and SmolLM2, which rejects what reads badly, are
local.

For relations that have phrases, `editor=None` and `verifier=None` are better than a small model: for 34 rows of SemEval's
development set Qwen2.5-Coder-1.5B wrote one sentence that it then accepted, and phrases gave 8 of 16 rows a sentence, without any
training."""

HUB: dict[str, Any] = {
    **LLM, "editor": chat_model(), "verifier": chat_model(), "tagger": Parser(backend="spacy", model=Model("en_core_web_sm")),
    "language_model": pinned("Qwen/Qwen2.5-1.5B-Instruct"),
}  # fmt: skip
"""A public chat model instead of the endpoint's. It knows every relation, where a public relation classifier has only those of its
own corpus; name yours as `verifier`. Nothing is trained."""


class CCG(System):
    """Replace the words that a relation rests on, so that the sentence expresses another.

    `ds = CCG.preset("offline")(ds)` runs the whole chain; each of its stages is an attribute.

    It learns from the rows of `ds` alone: the indicator, RelationNet, the terms of each relation and the editor. The cache folder
    keeps trained models under a digest of rows and settings.

    Deviation: the indicator is trained for all its epochs. The paper chooses the base model's epoch on the development set, and
    does not mention the indicator's epoch.

    Its stages define its settings. The ablations of the paper are `method="gradient"` (w/o MII), `parser=None`, `order="pooled"`
    (w/o LCA), `order="random"` (w/o WBR) and `use_editor=False`. `judge_folds`, `language_model`, `tagger` and `verifier` check
    candidates; the paper has no such checks. `editor` and `verifier` may be "llm:NAME", a language model behind an endpoint.
    `hfcf.engines.llm.engine.LanguageModel` has its environment variables. The preset "llm" has such a model as editor.

    >>> ccg = CCG.preset("offline", seed=7)
    >>> [stage.name for stage in ccg.stages]
    ['identify_causal_terms', 'expand_relation', 'edit_relation', 'check_relation', 'check_grammar', 'judge_candidates']
    """

    VERSION = "2"
    task = "relation"
    chain = (
        IdentifyCausalTerms,
        ExpandRelation,
        EditRelation,
        # The indicator that found the causal terms judges nothing.
        BoundStage(CheckRelation, fixed={"consistency": False, "verifier": None, "indicator": None, "folds": 1}),
        CheckGrammar,
        JudgeCandidates,
    )
    defaults: ClassVar = {"max_length": 128}
    presets: ClassVar = {"paper": {}, "hub": HUB, "offline": OFFLINE, "llm": LLM}
    rated_on: ClassVar = "have phrases for their relations; other relations get the paper's rule"
    citation = """@inproceedings{miao-etal-2023-generating,
  title = {Generating Commonsense Counterfactuals for Stable Relation Extraction},
  author = {Miao, Xin and Li, Yongqi and Qian, Tieyun},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}"""
