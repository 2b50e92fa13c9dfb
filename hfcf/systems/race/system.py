"""RACE as one system; not to be confused with the reading-comprehension set of that name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.store import save_artifact
from hfcf.core.system import System
from hfcf.engines.attribution import Attribution
from hfcf.engines.classifier import Classifier
from hfcf.engines.cure import Cure
from hfcf.engines.generator import Generator
from hfcf.engines.ner import Ner
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.systems.race.check import CheckClaim, CheckEdit
from hfcf.systems.race.edit import EditEvidence
from hfcf.systems.race.explain import CURE, LLM, Explain
from hfcf.systems.race.filter import FilterClaim
from hfcf.systems.race.generate import GenerateClaim
from hfcf.systems.race.plausible import plausible_form
from hfcf.systems.race.tag import TagEntities
from hfcf.tasks.panel import without_judges
from hfcf.text.entities import Collector

OFFLINE: dict[str, Any] = {
    "verifier": Model("offline:minilm", adapter="hfcf:verifier"),
    # 23 M weights (the paper's verifier has 125 M) accept too many wrong pairs; the judge has seen the other half of the rows.
    "judges": (Model("offline:minilm", adapter="hfcf:verifier_2"),),
    "generator": Model("offline:t5", adapter="hfcf:generator"),
    "encoder": Model("offline:minilm"),
    # Not the paper's: the gates that ship are of one short training. They mark no word on a fifth of ERASER's rows, which RACE then
    # rejects, and at pieces they are no better than gradients on two of three corpora (docs/explainers.md).
    "explainer": "gradient_x_input",
    "explainer_model": Model("hfcf:explainer"),  # read by explainer="cure" alone
    "ner": Ner(backend="spacy", model=Model("offline:spacy")),
    "max_length": 160,
    # The paper's search of 30 beams and 96 tokens takes 5 to 7 CPU seconds a row.
    "num_beams": 10,
    "max_new_tokens": 64,
    "no_repeat": 4,
    # A small verifier often answers NOT ENOUGH INFO where it is merely lost, which is no sign of a flipped label.
    "flip": "opposite",
    # Of substitutes that are drawn by type alone, many read as errors: a country in a city's place, a death before a birth.
    "plausible": True,
    "near": True,
    # A small generator paraphrases, and a small verifier takes a paraphrase for a flip.
    "exclude_same": True,
    # T5's vocabulary lacks many letters with marks: names lose them.
    "restore_letters": True,
    "exclude_malformed": True,
    # Of a small generator's claims the closest to the source's is often one with a slip of grammar.
    "fluency_model": Model("offline:smollm2"),
    "max_perplexity": 2.5,
    "unique": True,
}
"""Settings of the offline preset: small models that install from the package registry, with this project's adapters."""

_CHAT = Model("llm:gpt-4o-mini")
REMOTE: dict[str, Any] = {
    "verifier": _CHAT,
    "generator": _CHAT,
    "explainer": LLM,
    "encoder": Model("offline:minilm"),
    "ner": Ner(backend="spacy", model=Model("offline:spacy")),
    "num_candidates": 5,
    "max_new_tokens": 64,
}
"""A language model behind `HFCF_LLM_URL` verifies, explains and writes; MiniLM (the filter) and spaCy (entities) are local."""


@dataclass(frozen=True, kw_only=True)
class RACE(System):
    """Find the evidence that a label rests on, edit it there, and generate claims, so that the label of a multi-hop claim flips.

    `ds = RACE(verifier=…, generator=…, explainer_model=…)(ds)` runs the whole chain; each of its stages is an attribute.

    For a SUPPORTS row the evidence is edited so that the verifier says that it refutes the claim: (c, E′, REFUTES); a claim
    generated from E′ that the original evidence does not support gives (c′, E, REFUTES). For a REFUTES row a claim is generated
    from its own evidence and must be supported by it: (c′, E, SUPPORTS). After the first stage the entity table and the claims'
    word frequencies are fitted on the whole set.

    Args:
        verifier: the three-way verifier that explains and checks; the paper's is RoBERTa-base, trained on HoVer with NEI rows
            (`recipes/train_verifier.yaml`).
        judges: further verifiers, which must give the same verdict as `verifier` on what it accepts; the paper has none.
        certainty: the least probability that `verifier` and each of `judges` give a verdict that is accepted (0–1); the paper has
            no such threshold.
        generator: evidence → claim; the paper's are T5, BART and GPT-2, trained on FEVEROUS (`recipes/train_generator.yaml`).
        encoder: MoverScore's model.
        ner: the tagger; the paper's is Stanza.
        max_length: tokens of claim and evidence that the verifier reads (section 4).
        explainer: "cure", the paper's (section 3.1), "gradient_x_input", "integrated_gradients" or "llm", see `Explain`.
        explainer_model: what "cure" reads, gates trained for this verifier (`recipes/train_explainer.yaml`), so "cure" needs it; or
            whom "llm" asks. The other explainers need no training.
        edit: False is the ablation −EDIT (section 5.2): no evidence is edited, and claims come from the evidence of all rows by a
            generator that is told to support or to refute (`prefixed: true` in its recipe).
        constrain: False is the ablation −CONS (section 5.2), plain beam search; both False, −EDIT&CONS.
        num_candidates: k, claims to a row (section 3.3).
        fluency_model: a decoder-only model, which chooses the most fluent of a row's claims; None, as in the paper, keeps the one
            closest to the source's, see `FilterClaim`, as for `max_perplexity`.
        unique: reject a counterfactual that equals one of an earlier row (`hfcf.core.twins.reject_twins`); the paper keeps both.

    Raises:
        ValueError: "cure" without `explainer_model`, and every other setting that can't work.

    Its other settings are those of the stages of the same name. `verifier`, each of `judges`, `generator` and, of the explainer
    "llm", `explainer_model` may be "llm:NAME", a language model behind an endpoint (`hfcf.engines.remote.engine.Remote` has its
    environment variables); the preset "llm" has one for all of them. `encoder` and `ner` are local.

    >>> race = RACE.preset("offline", seed=7)
    >>> [stage.name for stage in race.stages][:3]
    ['tag_entities', 'explain', 'edit_evidence']
    """

    task: ClassVar[str] = "verification"
    chain: ClassVar[tuple[str, ...]] = (
        "tag_entities", "explain", "edit_evidence", "check_edit", "generate_claim", "check_claim", "filter_claim",
    )  # fmt: skip
    presets: ClassVar = {"paper": {}, "offline": OFFLINE, "llm": REMOTE}
    trained_by: ClassVar = {
        "verifier": "train_verifier", "judges": "train_verifier", "generator": "train_generator",
        "explainer_model": "train_explainer",
    }  # fmt: skip
    remote: ClassVar = ("verifier", "judges", "generator", "explainer_model")
    needs_weights: ClassVar = {
        "encoder": "MoverScore compares its embeddings of words, which an endpoint does not give",
        "fluency_model": "the claims are chosen by their perplexity, which an endpoint does not give",
    }
    engines: ClassVar = (Attribution, Classifier, Cure, Generator, MoverScore, Ner)
    engines_of: ClassVar = {"fluency_model": Perplexity}
    citation: ClassVar[str] = """@inproceedings{zhu-etal-2023-explain,
  title = {{EXPLAIN, EDIT, GENERATE}: Rationale-Sensitive Counterfactual Data Augmentation for Multi-hop Fact Verification},
  author = {Zhu, Yingjie and Si, Jiasheng and Zhao, Yibo and Zhu, Haiyang and Zhou, Deyu and He, Yulan},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}"""

    verifier: Model
    judges: tuple[Model, ...] = ()
    certainty: float = 0.0
    generator: Model
    encoder: Model = Model("distilbert-base-uncased")
    ner: Ner = field(default_factory=Ner)
    max_length: int = 130
    explainer: str = CURE
    explainer_model: Model | None = None
    token_share: float = 0.6
    sentence_share: float = 0.8
    edit: bool = True
    constrain: bool = True
    num_candidates: int = 10
    num_beams: int = 30
    max_new_tokens: int = 96
    no_repeat: int | None = None
    flip: str = "any"
    plausible: bool = False
    near: bool = False
    exclude_same: bool = False
    restore_letters: bool = False
    exclude_malformed: bool = False
    fluency_model: Model | None = None
    max_perplexity: float | None = None
    unique: bool = False

    def __post_init__(self) -> None:
        self._as_models("verifier", "generator", "encoder", "explainer_model", "fluency_model")
        self._as_judges()
        self._as_engine("ner", Ner)
        if not 1 <= self.num_candidates <= self.num_beams:
            raise ValueError(
                f"num_candidates ({self.num_candidates}) is from 1 to num_beams ({self.num_beams}): change one of them"
            )
        if self.max_perplexity is not None and self.fluency_model is None:
            raise ValueError(f"max_perplexity={self.max_perplexity}: no fluency_model says how fluent a claim is: give one")
        _ = self.explain  # checks that the verifier has what the explainer reads

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make RACE with a named set of settings: "paper" (give `verifier`, `generator`, `explainer_model`), "offline" or "llm".

        With a verifier of your own, the preset's `judges` and `certainty`, which belong to its own, are left out; with another
        `fluency_model` its `max_perplexity`, since perplexities of two models can't be compared.
        """
        if "fluency_model" in changes:
            changes = {"max_perplexity": None, **changes}
        changes = without_judges(cls.presets.get(name, {}), changes)
        if name == "offline" and not changes.get("edit", True):
            changes = {"generator": Model("offline:t5", adapter="hfcf:generator_prefixed"), **changes}
        return super().preset(name, **changes)

    tag_entities = StageOf(TagEntities)
    explain = StageOf(
        Explain,
        method=lambda race: race.explainer,
        explainer_model=lambda race: race.explainer_model if race.explainer in (CURE, LLM) else None,
    )
    edit_evidence = StageOf(EditEvidence)
    check_edit = StageOf(CheckEdit)
    # The generator reads more than the verifier.
    generate_claim = StageOf(GenerateClaim, prefixed=lambda race: not race.edit, max_length=512)
    check_claim = StageOf(CheckClaim)
    filter_claim = StageOf(FilterClaim)

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("tag_entities",)

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        missing = [column for column in ("claim", "entities") if column not in (ds.column_names or [])]
        if missing:
            raise ValueError(f"race.fit reads the column {missing[0]!r}: map race.tag_entities over the prepared rows first")
        collector = Collector(form_of=plausible_form, votes=True) if self.plausible else Collector()

        def claims() -> Iterator[str]:
            # One pass for both, so that a stream is read once. Rows without entities were rejected: they teach nothing.
            for row in ds.select_columns(["claim", "entities"]):
                if row["entities"] is not None:
                    collector.add(entity for entity in row["entities"] if entity["field"] != "claim")
                    yield row["claim"]

        idf = save_artifact(fit_idf(claims(), self.encoder))
        table = collector.table()
        return save_artifact({"entities": table.values, "idf": idf, **({"tags": table.tags} if self.plausible else {})})
