"""The recipes of `hfcf train` as types: their keys, values and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.recipe import ModelReference, Recipe, RecipeError, Text
from hfcf.core.settings import NonNegative, Positive, Share, settings_of
from hfcf.engines.ner import Ner
from hfcf.pipeline.recipes import Source
from hfcf.training.explainer import Weights
from hfcf.training.open_domain import OpenDomain
from hfcf.training.steps import one_length
from hfcf.training.trainer import Hyperparameters

StartModel = Annotated[ModelReference, Field(description="The weights to start from.")]
EvaluationSources = Annotated[Sequence[Source], Field(description="More rows to score on.")]


@recipes.takes(Hyperparameters, without=["model"])
class TrainRecipe(Recipe):
    """The keys that the recipes of all trainings have in common, including the keys of `Hyperparameters`."""

    start: ClassVar[str] = "model"
    """The key that names the weights to start from."""

    name: Text | None = None
    """The name of the model in its card."""
    preset: str = "paper"
    """One of the recipe's own `presets`."""
    data_dir: Text | None = None
    """The folder in which the sources' folders and files lie."""
    data: list[Source]
    """The rows to train on, one source for each corpus."""
    exclude: Sequence[Source] = ()
    """Rows whose texts may not be trained on."""
    split: Text | None = None
    """Replaces the split of every source in `data`."""
    half: Literal[0, 1] | None = None
    """0 or 1: train on one half of the groups of every source."""
    limit: Positive | None = None
    """Train on the first rows only, to try a recipe out."""
    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the groups that is held out, to score on."""
    ways: Annotated[int, Field(ge=2, le=3)] | None = None
    """How many labels the models tell apart, 2 without NOT ENOUGH INFO. Unless said, those that the rows have."""

    @model_validator(mode="before")
    @classmethod
    def _check_start(cls, content: Any) -> Any:
        if isinstance(content, Mapping) and not content.get(cls.start):
            raise ValueError(f"{cls.start}: must name a model for train: {content.get('train')}")
        return content

    @model_validator(mode="before")
    @classmethod
    def _check_length(cls, content: Any) -> Any:
        return one_length(content)

    @model_validator(mode="after")
    def _check_ways(self) -> Self:
        if self.ways not in (None, 2, 3) or (self.ways == 2 and getattr(self, "nei", None)):
            raise ValueError("ways must be 3, or 2 without nei: a two-way verifier has no class NOT ENOUGH INFO")
        return self

    def columns(self) -> tuple[str, ...]:
        """Return the columns that it reads in addition to the columns of the task."""
        return ()

    def hyperparameters(self) -> Hyperparameters:
        """Return the settings of the training loop."""
        names = settings_of(Hyperparameters).keys() - {"model"}
        return Hyperparameters(model=getattr(self, self.start), **{name: getattr(self, name) for name in names})


class VerifierRecipe(TrainRecipe):
    """A verifier of claims."""

    train: Literal["verifier"]
    model: StartModel
    nei: Sequence[str] = ()
    """The corpora to add NOT ENOUGH INFO rows for."""
    evaluate: EvaluationSources = ()
    baselines: bool = False
    """Also train and score a verifier that sees only the claim."""
    calibrate: bool = False
    """Fit a temperature on the held-out rows and store it in the weights, so that its probabilities are calibrated."""

    @model_validator(mode="after")
    def _check_calibration(self) -> Self:
        if self.calibrate and not self.held_out:
            raise ValueError("calibrate: there are no held-out rows to fit on: set held_out, such as held_out: 0.06")
        return self


class GeneratorRecipe(TrainRecipe):
    """A generator of claims."""

    train: Literal["generator"]
    model: StartModel
    prefixed: bool = False
    """Train the generator of RACE's ablation −EDIT, whose input has the label."""


class Tagger(Recipe):
    """What finds the entities of claims."""

    backend: Literal["spacy", "stanza"] = "stanza"
    model: ModelReference = Model("en")
    """Its model."""

    def engine(self) -> Ner:
        """Return the engine."""
        return Ner(backend=self.backend, model=self.model)


class CorrectorRecipe(TrainRecipe):
    """A corrector of claims, which fills masked spans from the evidence."""

    train: Literal["corrector"]
    model: StartModel
    ner: Tagger = Tagger()
    """What finds the entities to mask."""
    masks: Positive = 2
    """How many times each claim is masked, each time elsewhere."""


class Judge(Recipe):
    """A verifier that judges what a rewriter writes."""

    model: ModelReference
    max_length: Positive = 130
    """Tokens that it reads."""


class RewriterRecipe(TrainRecipe):
    """A rewriter of claims: of a claim into its negation or a paraphrase."""

    train: Literal["rewriter"]
    model: StartModel
    pairs: Literal["negative", "paraphrase"]
    """The pairs of claims to train on."""
    judge: Judge | None = None
    """The verifier that tells paraphrases from other claims, and that scores."""
    evaluate: EvaluationSources = ()

    @model_validator(mode="before")
    @classmethod
    def _check_pairs(cls, content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        pairs, judge = content.get("pairs"), content.get("judge")
        if pairs not in ("negative", "paraphrase"):
            raise ValueError(f"pairs: negative or paraphrase, with train: rewriter; this is {pairs!r}")
        if pairs == "paraphrase" and not judge:
            raise ValueError("judge: must name the verifier that tells paraphrases from other claims")
        if judge is not None and (not isinstance(judge, Mapping) or not judge.get("model")):
            raise ValueError("judge: must name a model: {model: FOLDER, max_length: 130}")
        return content


class ExplainerRecipe(TrainRecipe):
    """An explainer of a verifier: which words and pieces decide."""

    start: ClassVar[str] = "verifier"

    train: Literal["explainer"]
    verifier: ModelReference
    """The verifier to explain."""
    explainer: Weights = Weights()
    """Weights of the losses, and budgets."""

    @field_validator("explainer", mode="before")
    @classmethod
    def _check_weights(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            recipes.check_keys(map(str, value), settings_of(Weights), "")
            return Weights(**value)
        return value or Weights()


class MaskedLMRecipe(TrainRecipe):
    """A masked language model of the corpora's sentences."""

    train: Literal["masked_lm"]
    model: StartModel
    wordnet: bool = False
    """Also read WordNet's glosses."""
    mask: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the words to mask."""


class RelationRecipe(TrainRecipe):
    """A relation classifier."""

    train: Literal["relation"]
    model: StartModel
    dev: Source | None = None
    """The rows that choose the epoch."""
    evaluate: EvaluationSources = ()


class Clozes(Tagger):
    """Questions made of claims, see `hfcf.training.cloze.cloze_questions`; `data` then has claims with evidence."""

    words: Positive = 90
    """Words that a passage is filled up to."""


class ModelRecipe(TrainRecipe):
    """A model of the rows' task, trained and scored as the task itself says."""

    train: Literal["model"]
    model: StartModel
    evaluate: EvaluationSources = ()


class ReaderRecipe(TrainRecipe):
    """A reader, which answers a question from a passage."""

    train: Literal["reader"]
    model: StartModel
    clozes: Clozes | None = None
    """Train on questions made of claims, instead of questions."""
    unanswerable: Share = 0.0
    """The share of the questions to repeat on passages that do not answer them (0–1)."""
    evaluate: EvaluationSources = ()


class OpenReaderRecipe(TrainRecipe):
    """A reader of the open domain, which answers a question from a collection."""

    train: Literal["open_reader"]
    model: StartModel
    open_domain: OpenDomain
    """The collection and the retriever."""
    evaluate: EvaluationSources = ()


class QuestionWriterRecipe(TrainRecipe):
    """A generator of questions for answers, of answers for passages, or of the references in questions (QED)."""

    train: Literal["question_generator", "answer_generator", "decomposer"]
    model: StartModel
    evaluate: EvaluationSources = ()

    def columns(self) -> tuple[str, ...]:
        return ("question_references", "sentence_references") if self.train == "decomposer" else ()


class DerivedLabels(Recipe):
    """Rows of three labels from trees that all support their claim, see `hfcf.training.derived_labels.derive_labels`."""

    distractors: NonNegative = 3
    """The number of distractors of a SUPPORTS or REFUTES row."""


class StructuresRecipe(TrainRecipe):
    """A model for one of CheckWhy's tasks on argument structures."""

    train: Literal["structure_verifier"]
    model: StartModel
    task: Literal[1, 2, 3, 4] = 3
    """1: claim and leaf evidence → label; 2: also the structure → label. 3: claim and all evidence → label and structure; 4: claim
    and leaf evidence → label and structure."""
    kind: Literal["classifier", "graph", "seq2seq"] = "seq2seq"
    """A classifier of texts (BERT), a verifier over the evidence graph (Transformer-XH-like), or a writer of programs (CodeT5). The
    first two do tasks 1 and 2."""
    encoder: Literal["offline", "paper"] = "offline"
    """The encoder of the structure similarity by which models are scored; the paper's is DeBERTa-large."""
    repaired: bool = False
    """Score programs with the commonest slips repaired."""
    derive: DerivedLabels | None = None
    """Make the rows of three labels by rule, for corpora that only support (EntailmentBank)."""
    evaluate: EvaluationSources = ()
    baselines: bool = False
    """With task 2, also train and score the same model on task 1, without the structure."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind != "seq2seq" and self.task > 2:
            raise ValueError(f"kind: {self.kind} does tasks 1 and 2; task {self.task} needs a seq2seq, which writes structures")
        if self.baselines and self.task != 2:
            raise ValueError(f"baselines: needs task 2, which task 1 repeats without the structure; got task {self.task}")
        return self


_Kinds = (
    VerifierRecipe | GeneratorRecipe | CorrectorRecipe | RewriterRecipe | ExplainerRecipe | MaskedLMRecipe | RelationRecipe
    | ModelRecipe | ReaderRecipe | OpenReaderRecipe | QuestionWriterRecipe | StructuresRecipe
)  # fmt: skip
AnyTrainRecipe = Annotated[_Kinds, Field(discriminator="train")]
TRAININGS: dict[str, type[TrainRecipe]] = {
    name: kind for kind in get_args(_Kinds) for name in get_args(kind.model_fields["train"].annotation)
}
"""The type of each kind of training."""


def parse_train(content: Mapping[str, Any], where: str = "the recipe") -> TrainRecipe:
    """Make a training's recipe of its content."""
    kind = content.get("train")
    if kind is None and "system" in content:
        raise RecipeError(f"{where}: this is a recipe of hfcf run, not of hfcf train")
    if not isinstance(kind, str) or kind not in TRAININGS:
        near = recipes.did_you_mean(str(kind), TRAININGS)
        raise RecipeError(f"{where}: train must be one of {', '.join(TRAININGS)}, got {kind!r}{near}")
    return recipes.parse_recipe(TRAININGS[kind], content, where)
