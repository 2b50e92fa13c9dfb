"""CheckWhy: the steps that make its data, as one system."""

from __future__ import annotations

from typing import Any, ClassVar

from hfcf.core.model import Model
from hfcf.core.public_models import ENCODER, chat_model, pinned
from hfcf.core.system import System
from hfcf.engines.parser import Parser
from hfcf.systems.checkwhy.add_distractors import AddDistractors
from hfcf.systems.checkwhy.arguments import RefuteClaim, SupportClaim
from hfcf.systems.checkwhy.assemble import AssembleSet, MakeNei
from hfcf.systems.checkwhy.causal_claims import CheckPredicates, WriteClaim, WriteOppositeEffect
from hfcf.systems.checkwhy.link_evidence import LinkEvidence

_LOCAL: dict[str, Any] = {
    "parser": Parser(backend="spacy", model=Model("offline:spacy")), "scorer": Model("offline:minilm"),
}  # fmt: skip
LLM: dict[str, Any] = {"model": Model("llm:gpt-4o-mini"), **_LOCAL}
"""A current language model behind `HFCF_LLM_URL` (name yours), with a tagger and an encoder from the package registry."""
HUB: dict[str, Any] = {"model": chat_model(), "scorer": pinned(ENCODER)}
"""A public chat model and a public encoder; the tagger is Stanza, the paper's. Nothing is trained."""
OFFLINE: dict[str, Any] = {
    # SmolLM2 behind a server on this machine; `transformers serve` knows a model by its folder, another server by another name.
    "model": Model("llm:smollm2"), **_LOCAL, "temperature": 0.0, "max_tokens": 96, "attempts": 2, "max_steps": 7,
}  # fmt: skip
"""The same stages with a model of 135 M weights, which fails at most pairs; the reasons of rejection show where."""


class CheckWhy(System):
    """Write causal claims with argument structures that support or refute them, from pairs of cause and effect.

    `ds = CheckWhy.preset("llm")(ds)` runs the whole chain; each of its stages is an attribute.

    From a pair of cause and effect it makes a set of three rows of causal fact verification. They are a claim with evidence that
    supports it, with evidence that refutes it, and with evidence that does neither. The first two rows have the argument structure
    from the evidence to the claim; all three have distractors. A language model writes the texts. Every text is checked, and
    `hfcf.rejected` has the reason of each row that fails. `docs/systems/checkwhy.md` has the paper's next step, in which people
    edit and filter.

    `HFCF_LLM_URL` and `HFCF_LLM_KEY` name the endpoint, see `hfcf.engines.llm.engine.LanguageModel`. Every answer is stored when it
    arrives, so a run that was killed repeats no request. `limit` cuts the rows first, since distractors are learned from the
    evidence of all sets.

    Its stages define its settings. Their docstrings list the deviations from the paper: `CheckPredicates`, `Loop`, `LinkEvidence`
    and `AddDistractors`. The prompts are our own.

    >>> [stage.name for stage in CheckWhy.preset("offline").stages][:5]
    ['check_predicates', 'write_claim', 'support_claim', 'write_opposite_effect', 'refute_claim']
    """

    task = "structures"
    chain = (
        CheckPredicates, WriteClaim, SupportClaim, WriteOppositeEffect, RefuteClaim, LinkEvidence, MakeNei, AddDistractors,
        AssembleSet,
    )  # fmt: skip
    presets: ClassVar = {"paper": {}, "hub": HUB, "llm": LLM, "offline": OFFLINE}
    flips = False
    limit_before_fit = True
    citation = """@inproceedings{si-etal-2024-checkwhy,
  title = {{CHECKWHY}: Causal Fact Verification via Argument Structure},
  author = {Si, Jiasheng and Zhao, Yibo and Zhu, Yingjie and Zhu, Haiyang and Lu, Wenpeng and Zhou, Deyu},
  booktitle = {Proceedings of ACL},
  year = {2024}
}"""
