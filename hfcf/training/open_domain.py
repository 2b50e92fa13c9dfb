"""The settings of an open-domain model, in addition to the hyper-parameters of any training."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

from pydantic import model_validator

from hfcf.core.recipe import ModelReference, Recipe, Text
from hfcf.core.settings import Positive, Weight
from hfcf.corpora import passages as collections
from hfcf.corpora.passages import PassageSource
from hfcf.engines.retriever import INDEX, Retriever
from hfcf.training.trainer import Hyperparameters


@dataclass(frozen=True, kw_only=True)
class OpenHyperparameters(Hyperparameters):
    """The settings of a training in the open domain.

    Args:
        retriever: finds the passages of each question.
        scale: factor of the retriever's scores in the softmax p(c|q).
        no_answer: weight of the loss on passages without the answer, where the reader learns to point at "no answer".
    """

    retriever: Retriever
    scale: Weight = 1.0
    no_answer: Weight = 1.0


class OpenDomain(Recipe):
    """A recipe's `open_domain`: the collection and the retriever. It makes a reader an open-domain model.

    Source: RGF, section 5.3. The paper gives no number of passages. 5 is the reader's beam in the implementation that it builds on
    (Lee et al. 2019, ORQA). The other keys have the names of RGF's settings.
    """

    passages: Text | list[Text] | PassageSource
    """The collection in the recipe's `data_dir`: a file, several files, or a mapping as in
    `hfcf.corpora.passages.PassageSource`."""
    k: Positive = 5
    """Number of passages for each question, in training and afterwards."""
    retrieval: Literal["bm25", "dense"] = "bm25"
    encoder: ModelReference | None = None
    """With "dense": the encoder of questions, which is trained with the reader."""
    passage_encoder: ModelReference | None = None
    """With "dense": the encoder of passages, which is not trained; by default the untrained encoder of questions."""
    pooling: Literal["mean", "cls", "pooler"] = "mean"
    normalise: bool = False
    """With "dense": compare by the cosine. Raise `scale` with it, because cosines lie close together."""
    index: Text = INDEX["index"]
    """With "dense": the index by FAISS's name; see `hfcf.engines.retriever.Retriever`."""
    index_search: str = INDEX["index_search"]
    """With "dense": how thoroughly an approximate index searches, such as "nprobe=64"."""
    scale: Weight = 1.0
    """Factor of the retriever's scores in the softmax."""
    no_answer: Weight = 1.0
    """Weight of the loss on passages without the answer."""

    @model_validator(mode="after")
    def _check_retrieval(self) -> Self:
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
            index=self.index, index_search=self.index_search,
        )  # fmt: skip

    def hyperparameters(self, hp: Hyperparameters, data_dir: str | None, where: str = "open_domain") -> OpenHyperparameters:
        shared = {field.name: getattr(hp, field.name) for field in fields(Hyperparameters)}
        return OpenHyperparameters(**shared, retriever=self.retriever(data_dir, where), scale=self.scale, no_answer=self.no_answer)
