"""RACE as one system; not to be confused with the reading-comprehension set of that name."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from hfcf.core.model import Model
from hfcf.core.public_models import ENCODER, JUDGE, VERIFIER, chat_model, pinned
from hfcf.core.system import System
from hfcf.engines.ner import Ner
from hfcf.systems._shared.tag_entities import TagEntities
from hfcf.systems.race.check_label import CheckClaim, CheckEdit
from hfcf.systems.race.edit import EditEvidence
from hfcf.systems.race.explain import LLM, Explain
from hfcf.systems.race.filter_claim import FilterClaim
from hfcf.systems.race.generate_claim import GenerateClaim

OFFLINE: dict[str, Any] = {
    "verifier": Model("offline:minilm", adapter="hfcf:verifier"),
    # 23 M weights (the paper's verifier has 125 M) accept too many wrong pairs; the judge has seen the other half of the rows.
    "judges": (Model("offline:minilm", adapter="hfcf:verifier_2"),),
    "certainty": 0.7,
    "generator": Model("offline:t5", adapter="hfcf:generator"),
    "encoder": Model("offline:minilm"),
    # Not the paper's: the gates that ship are of one short training. They mark no word on a fifth of ERASER's rows, which RACE then
    # rejects.
    "explainer": "gradient_x_input",
    "explainer_model": Model("hfcf:explainer"),  # read by explainer="cure" alone
    "ner": Ner(backend="spacy", model=Model("offline:spacy")),
    "max_length": 160,
    # The paper's search of 30 beams and 96 tokens takes 5 to 7 CPU seconds a row.
    "num_beams": 10,
    "max_new_tokens": 64,
    # A small verifier often answers NOT ENOUGH INFO where it is merely lost, which does not mean that the label flipped.
    "flip": "opposite",
    # Many substitutes that are drawn by type alone read as errors: a country in a city's place, a death before a birth.
    "plausible": True,
    "near": True,
    "claimed": True,
    "by_words": True,
    # Claims of a small generator alone are sentences of the evidence, word for word or nearly.
    "follow": True,
    "corrector": Model("offline:t5", adapter="hfcf:corrector"),
    "max_unsupported": 0,
    "min_log_probability": -0.15,
    "max_copied": 0.8,
    "min_kept": 0.6,
    # Small writers make slips of grammar.
    "fluency_model": Model("offline:smollm2"),
    "unique": True,
}
"""Settings of the offline preset: small models that install from the package registry, with this project's adapters."""

BASE: dict[str, Any] = {
    "verifier": Model("offline:mpnet", adapter="hfcf:verifier_base"),
    # Of other training rows: what fools one of them seldom fools both.
    "judges": (Model("offline:mpnet", adapter="hfcf:verifier_2_base"),),
    "generator": Model("chat:offline:qwen"),
    "encoder": Model("offline:mpnet"),
    "num_candidates": 2,
    "max_new_tokens": 128,
    "min_kept": 0.5,
    # Kept from size small, `by_words` decides nearly all: on 50 supported development rows of FEVEROUS the edits of 22 are accepted
    # with it, of 9 by the verifier alone, and of 2 by the verifier and the judge.
    # What only mended small models.
    "fluency_model": None,
    "corrector": None,
    "min_log_probability": None,
    "max_unsupported": None,
}
"""What is different at size "base": a language model of 1.5 B writes, a verifier of 109 M judges."""

_CHAT = Model("llm:gpt-4o-mini")
REMOTE: dict[str, Any] = {
    "verifier": _CHAT,
    "generator": _CHAT,
    "explainer": LLM,
    "encoder": Model("offline:minilm"),
    "ner": Ner(backend="spacy", model=Model("offline:spacy")),
    "num_candidates": 5,
    "max_new_tokens": 128,
    "min_kept": 0.5,
}
"""A language model behind `HFCF_LLM_URL` verifies, explains and writes; MiniLM (the filter) and spaCy (entities) are local."""

HUB: dict[str, Any] = {
    "verifier": pinned(VERIFIER),
    # What fools one network seldom fools another family that was trained on other rows: a judge helps a verifier of any size.
    "judges": (pinned(JUDGE),),
    # Of the verdicts of a verifier and a judge of this size 89 % are then right, and 60 % are left (benchmarks/judge_curve.py).
    "certainty": 0.7,
    "generator": chat_model(),
    # No gates are public for this verifier, and the paper's explainer needs gates of its own verifier.
    "explainer": "gradient_x_input",
    "encoder": pinned(ENCODER),
    # Both read so many; the paper's 130 would hide evidence from them.
    "max_length": 512,
    # It writes for the paper's k; there is no search.
    "num_candidates": 10,
    "max_new_tokens": 128,
    # A verifier that was trained on neutral pairs tells them from contradictions; the label of c′ is REFUTES.
    "flip": "opposite",
    # Substitutes that are drawn by type alone read as errors for every verifier, and one edit is nearest to the source.
    "plausible": True,
    "near": True,
    "claimed": True,
    # What no model is asked about: copies of the evidence, and other subjects.
    "max_copied": 0.8,
    "min_kept": 0.5,
    # The claim with the edits of its evidence is the nearest to its source.
    "follow": True,
    "unique": True,
}
"""Public checkpoints that need no training, and Stanza, the paper's tagger. The certainty was measured with models of
this size, the other thresholds with small ones. What only mends small models is left out: `by_words`, a `corrector` with
its floors, a `fluency_model`."""


class RACE(System):
    """Edit the evidence that the label of a multi-hop claim rests on, and generate claims. The label flips.

    `ds = RACE(verifier=…, generator=…, explainer_model=…)(ds)` runs the whole chain; each of its stages is an attribute.

    For a SUPPORTS row the evidence is edited so that, by the verifier, it refutes the claim: (c, E′, REFUTES). A claim generated
    from E′ that the original evidence does not support gives (c′, E, REFUTES). For a REFUTES row a claim is generated from its own
    evidence and must be supported by it: (c′, E, SUPPORTS). The entity table and the claims' word frequencies are learned from the
    whole set.

    Args:
        verifier: the three-way verifier that explains and checks; the paper's is RoBERTa-base, trained on HoVer with NEI rows
            (`recipes/train_verifier.yaml`).
        judges: further verifiers, which must agree with `verifier` when it accepts; the paper has no judges.
        certainty: the probability that `verifier` and each of `judges` must give an accepted verdict (0–1); 0 in the paper.
        generator: writes a claim from evidence; the paper's are T5, BART and GPT-2, trained on FEVEROUS
            (`recipes/train_generator.yaml`).
        encoder: MoverScore's model.
        ner: the tagger that finds entities; the paper's is Stanza.
        max_length: tokens of claim and evidence that the verifier reads (section 4).
        explainer: "cure", the paper's (section 3.1), "gradient_x_input", "integrated_gradients" or "llm", see `Explain`.
        explainer_model: the gates of "cure", or the language model of "llm". The gates are trained for this verifier
            (`recipes/train_explainer.yaml`). The other explainers need no training.
        edit: edit the evidence, or do not, as in the ablation −EDIT (section 5.2). Then claims come from the evidence of all rows
            by a generator that reads a prefix of the label (`prefixed: true` in its recipe).
        constrain: search with constraints, or without, as in the ablation −CONS (section 5.2); both False, −EDIT&CONS.
        num_candidates: k, the number of claims for a row (section 3.3).
        fluency_model: a decoder-only model by which a claim may not read worse than the source's; None, as in the paper, is
            none. See `FilterClaim`, also for `max_perplexity_ratio`.

    Raises:
        ValueError: "cure" without `explainer_model`, or another invalid setting.

    Its stages define its other settings. `verifier`, each of `judges` and `generator` may be "llm:NAME", a language model behind
    an endpoint. So may `explainer_model` for the explainer "llm". `hfcf.engines.llm.engine.LanguageModel` has the environment
    variables of an endpoint. The preset "llm" has such a model for all of them. `encoder` and `ner` are local.

    >>> race = RACE.preset("offline", seed=7)
    >>> [stage.name for stage in race.stages][:3]
    ['tag_entities', 'explain', 'edit_evidence']
    """

    task = "verification"
    chain = (TagEntities, Explain, EditEvidence, CheckEdit, GenerateClaim, CheckClaim, FilterClaim)
    presets: ClassVar = {"paper": {}, "hub": HUB, "offline": OFFLINE, "llm": REMOTE}
    sizes: ClassVar = {"offline": {"small": {}, "base": BASE}}
    citation = """@inproceedings{zhu-etal-2023-explain,
  title = {{EXPLAIN, EDIT, GENERATE}: Rationale-Sensitive Counterfactual Data Augmentation for Multi-hop Fact Verification},
  author = {Zhu, Yingjie and Si, Jiasheng and Zhao, Yibo and Zhu, Haiyang and Zhou, Deyu and He, Yulan},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}"""

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make RACE with a preset, a named set of settings; "paper" needs `verifier`, `generator` and `explainer_model`.

        With a verifier of your own, the preset's `judges` and `certainty` are left out.
        """
        if name == "offline" and not changes.get("edit", True):
            changes = {"generator": Model("offline:t5", adapter="hfcf:generator_prefixed"), **changes}
        return super().preset(name, **changes)
