"""CCG (Miao, Li and Qian 2023, "Generating Commonsense Counterfactuals for Stable Relation Extraction", EMNLP) as one system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.store import save_artifact
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.engines.intervention import Intervention
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.masked import MaskedLM
from hfcf.engines.parser import Constituents, Parser
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.ccg.check import CheckRelation
from hfcf.systems.ccg.edit import EditRelation
from hfcf.systems.ccg.editor import learned_editor, train_editor
from hfcf.systems.ccg.expand import ExpandRelation, fit_relation_net
from hfcf.systems.ccg.gradients import WordGradients
from hfcf.systems.ccg.grammar import CheckGrammar
from hfcf.systems.ccg.identify import STANZA, IdentifyCausalTerms
from hfcf.systems.ccg.indicator import check_folds, fit_indicator, fit_judges, training_rows
from hfcf.systems.ccg.relationnet import LCA
from hfcf.systems.ccg.terms import count
from hfcf.tasks.judge import JudgeCandidates
from hfcf.training.loop import Hyperparameters
from hfcf.training.store import ensure_steps, parse_trainings

CLASSIFIER = Hyperparameters(
    model=Model("bert-base-uncased"), max_length=128, batch_size=16, learning_rate=2e-5, weight_decay=0.0, epochs=5
)
"""R-BERT's own; CCG's paper follows it."""
EDITOR = Hyperparameters(model=Model("gpt2"), max_length=47, batch_size=1, learning_rate=2e-5, epochs=2)
"""The released code's, but that the learning rate falls to zero."""

OFFLINE: dict[str, Any] = {
    "masked": Model("hfcf:mlm"),
    "parser": Constituents(backend="spacy", model=Model("offline:spacy")),
    "classifier": Hyperparameters(
        model=Model("offline:minilm"), max_length=128, batch_size=8, learning_rate=5e-4, epochs=6, warmup=0.1
    ),
    "folds": 2,
    "editor_training": Hyperparameters(model=Model("offline:t5"), max_length=47, batch_size=8, learning_rate=5e-4, epochs=3),
    "least_steps": 100,
    # A fifth of a second a row; with an encoder-decoder all of them are terms, none copies an entity.
    "num_beams": 20,
    "closed": True,
}
"""Settings of the offline preset; indicator and editor were tried on training samples of SemEval, and on nothing else."""

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {
    "indicator": _CHAT, "editor": _CHAT, "masked": Model("hfcf:mlm"),  # not read, and there on every machine
    "parser": Constituents(backend="spacy", model=Model("offline:spacy")),
}  # fmt: skip
"""A language model behind `HFCF_LLM_URL` names causal terms and writes new ones; spaCy's parser and WordNet are local."""


@dataclass(frozen=True, kw_only=True)
class CCG(System):
    """Identify the words that a relation rests on, and replace them so that the sentence expresses another relation.

    `ds = CCG.preset("offline")(ds)` runs the whole chain; each of its stages is an attribute.

    It learns from the rows of `ds` alone: before the first stage the indicator (`fit_models`), and after it, from the causal
    terms, RelationNet, the terms of each relation and the editor (`fit`). The cache folder keeps trained models under a digest of
    rows and settings. Stage by stage: `ccg = ccg.fit_models(ds)`, map `ccg.identify_causal_terms`, `ccg = ccg.fit(ds)`, map the
    others.

    Deviation: the indicator is trained for all its epochs. The paper chooses the base model's epoch on the development set, and
    does not say so of the indicator; its samples have no such rows of their own.

    Args:
        masked: the masked language model that intervenes; the paper's is BERT-base.
        indicator: an R-BERT; None trains one on the rows, as the paper does.
        classifier: how that one is trained.
        folds: train that many indicators, each on the rows outside one fold, so that none judges a row that it was trained on. 1,
            the paper's: one indicator on all rows. One that has learned a few rows by heart knows them by their entities, and no
            word in between changes what it says: of 34 rows of SemEval's 2-shot sample none flipped, with two folds 22 did.
        cross_fitted: the sha256 of the file that says which indicator a row has; `fit_models` sets it.
        parser: None is the ablation w/o Parser.
        method: "gradient" is the ablation w/o MII.
        order: "pooled" is the ablation w/o LCA, "random" w/o WBR.
        editor: a trained editor; None trains one on the rows, as the paper does.
        editor_training: how that one is trained; the paper's is GPT-2 base.
        use_editor: False is the ablation w/o Editor.
        least_steps: of each training here: on few rows it goes on beyond its epochs until it has made so many. The paper says
            nothing of it; an indicator that has learned nothing gives every sentence one relation, and no word flips it.
        judge_folds: 2 or more: a candidate stays only where an indicator says its relation that had no part in it: of so many, each
            trained on the rows outside one fold, with other folds and another seed than those that find causal terms. 0, the
            paper's: no such check.
        fold_judges: the sha256 of the file that says which of them a row has; `fit_models` sets it.
        least_probability: that it must give the relation.
        language_model: a decoder-only language model, if a candidate shall stay only where its sentence is about as fluent as its
            source; the paper has none.
        most_loss: how much less fluent it may be (`hfcf.systems.ccg.check.CheckRelation`); needed with a language model.
        tagger: a dependency parser, if a candidate shall stay only where its sentence has as many finite verbs as its source and no
            determiner without a noun; the paper has none.
        verifier: an R-BERT, if candidates shall be kept only where it agrees; that CCG does without is its point.
        max_length: pieces of a sentence that the models read.

    Its other settings are those of the stages of the same name. `indicator`, `editor` and `verifier` may be "llm:NAME", a language
    model behind an endpoint (`hfcf.engines.remote.engine.Remote` has its environment variables): as the indicator it names the
    words that the relation depends on, and nothing is trained in its place. The preset "llm" has one for the first two.

    >>> ccg = CCG.preset("offline", seed=7)
    >>> [stage.name for stage in ccg.stages]
    ['identify_causal_terms', 'expand_relation', 'edit_relation', 'check_relation', 'check_grammar', 'judge_candidates']
    """

    VERSION: ClassVar[str] = "2"
    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = (
        "identify_causal_terms",
        "expand_relation",
        "edit_relation",
        "check_relation",
        "check_grammar",
        "judge_candidates",
    )
    presets: ClassVar = {"paper": {}, "offline": OFFLINE, "llm": LLM}
    trainings: ClassVar = {"classifier": "indicator", "editor_training": "editor"}
    trained_by: ClassVar = {"indicator": "train_relation", "verifier": "train_relation"}
    remote: ClassVar = ("indicator", "editor", "verifier")
    needs_weights: ClassVar = {"masked": "it fills each masked word with its likeliest ones, of which an endpoint gives no list"}
    engines: ClassVar = (
        MaskedLM,
        Intervention,
        WordGradients,
        Constituents,
        Parser,
        Continuation,
        Likelihood,
        Perplexity,
        RelationClassifier,
    )
    citation: ClassVar[str] = """@inproceedings{miao-etal-2023-generating,
  title = {Generating Commonsense Counterfactuals for Stable Relation Extraction},
  author = {Miao, Xin and Li, Yongqi and Qian, Tieyun},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}"""

    masked: Model = Model("bert-base-uncased")
    indicator: Model | None = None
    classifier: Hyperparameters = CLASSIFIER
    folds: int = 1
    cross_fitted: str | None = None
    top: int = 100
    words: str = "between"
    parser: Constituents | None = STANZA
    method: str = "intervention"
    patience: int | None = None
    ratio: float = 0.8
    order: str = LCA
    top_k: int = 1
    editor: Model | None = None
    editor_training: Hyperparameters = EDITOR
    num_beams: int = 100
    num_candidates: int = 10
    max_new_tokens: int = 24
    closed: bool = False
    use_editor: bool = True
    least_steps: int = 0
    judge_folds: int = 0
    fold_judges: str | None = None
    least_probability: float = 0.0
    language_model: Model | None = None
    most_loss: float = 0.0
    tagger: Parser | None = None
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("masked", "indicator", "editor", "language_model", "verifier")
        check_folds(self)
        if self.judge_folds < 0 or self.judge_folds == 1:
            raise ValueError(f"judge_folds is 0, or at least 2, and was {self.judge_folds}")
        if self.language_model is not None and self.most_loss <= 0:
            raise ValueError("language_model needs most_loss: at 0 every sentence that is less fluent at all is rejected; try 15")
        parse_trainings(self)
        self._as_engine("parser", Constituents)
        self._as_engine("tagger", Parser)

    identify_causal_terms = StageOf(IdentifyCausalTerms)
    expand_relation = StageOf(ExpandRelation)
    edit_relation = StageOf(EditRelation)
    check_relation = StageOf(
        CheckRelation,
        indicator=None,
        cross_fitted=lambda ccg: ccg.fold_judges,
        required=lambda ccg: ccg.judge_folds > 0,
    )
    check_grammar = StageOf(CheckGrammar)
    judge_candidates = StageOf(JudgeCandidates)

    @property
    def fit_after(self) -> tuple[str, ...]:
        return ("identify_causal_terms",)

    def fit_models(self, ds: Dataset | IterableDataset) -> Self:
        """Return CCG with an indicator, its own, else one that is trained on `ds`, or one for each fold; and with its judges."""
        return replace(self, **fit_indicator(self, ds), **fit_judges(self, ds))

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        """Train the editor; write RelationNet, the causal terms of each relation and the editor's digest."""
        rows = training_rows(ds, self, causal_terms="identify_causal_terms")
        examples = [row for row in rows if row["causal_terms"] and (row.get("status") or {}).get("accepted") is not False]
        trained = None
        if self.use_editor and self.editor is None and examples:
            hp = ensure_steps(self.editor_training, self.least_steps, len(examples))
            trained = train_editor(examples, hp, max_target=self.max_new_tokens)
        return save_artifact({"relation_net": fit_relation_net(rows).content, "terms": count(examples), **learned_editor(trained)})
