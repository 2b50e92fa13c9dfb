"""The settings of an open-domain model: what its reader is trained with in addition to the hyper-parameters of any training."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

from pydantic import model_validator

from hfcf.core.recipe import ModelReference, Recipe, Text
from hfcf.corpora import passages as collections
from hfcf.corpora.passages import PassageSource
from hfcf.engines.retriever import Retriever
from hfcf.training.trainer import Hyperparameters


@dataclass(frozen=True, kw_only=True)
class OpenHyperparameters(Hyperparameters):
    """The settings of a training in the open domain.

    Args:
        retriever: finds the passages of each question.
        scale: the retriever's scores are multiplied by it before the softmax p(c|q).
        no_answer: weight of the loss of passages without the answer, in which the reader learns to point at "no answer".
    """

    retriever: Retriever
    scale: float = 1.0
    no_answer: float = 1.0


class OpenDomain(Recipe):
    """A recipe's `open_domain`: the collection and the retriever. It makes of a reader an open-domain model.

    Source: RGF, section 5.3. The paper prints no number of passages; 5 is that of the implementation that it builds on (Lee et al.
    2019, ORQA: the reader's beam). The other keys are called as in RGF's settings.
    """

    passages: Text | list[Text] | PassageSource
    """The collection: a file, several, or as `hfcf.corpora.passages.PassageSource`; in the recipe's `data_dir`."""
    k: int = 5
    """Passages to a question, in training and afterwards."""
    retrieval: Literal["bm25", "dense"] = "bm25"
    encoder: ModelReference | None = None
    """Of "dense": the encoder of questions, which is trained with the reader."""
    passage_encoder: ModelReference | None = None
    """Of "dense": the encoder of passages, which is not trained; by default that of questions before the training."""
    pooling: Literal["mean", "cls", "pooler"] = "mean"
    normalise: bool = False
    """Of "dense": compare by the cosine; raise `scale` then, for its values lie close together."""
    scale: float = 1.0
    """What the retriever's scores are multiplied by before the softmax."""
    no_answer: float = 1.0
    """Weight of the loss of passages without the answer."""

    @model_validator(mode="after")
    def _check_retrieval(self) -> Self:
        if self.k < 1:
            raise ValueError(f"k: {self.k}: at least one passage")
        if (self.retrieval == "dense") != (self.encoder is not None):
            raise ValueError(": retrieval: dense needs the key encoder, and bm25 takes none")
        return self

    def retriever(self, data_dir: str | None, where: str) -> Retriever:
        """Load the collection from `data_dir` and return its retriever; `where` is the recipe's key, for errors."""
        source = self.passages
        settings = source.model_dump(by_alias=True, exclude_unset=True) if isinstance(source, PassageSource) else source
        return Retriever(
            passages=collections.from_recipe(settings, data_dir, f"{where}: passages"), k=self.k, method=self.retrieval,
            model=self.encoder, passage_model=self.passage_encoder, pooling=self.pooling, normalise=self.normalise,
        )  # fmt: skip

    def hyperparameters(self, hp: Hyperparameters, data_dir: str | None, where: str = "open_domain") -> OpenHyperparameters:
        plain = {field.name: getattr(hp, field.name) for field in fields(Hyperparameters)}
        return OpenHyperparameters(**plain, retriever=self.retriever(data_dir, where), scale=self.scale, no_answer=self.no_answer)
