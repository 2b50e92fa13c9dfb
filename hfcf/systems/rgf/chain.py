"""What RGF and its baselines share: from answers in passages to counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.passages import Passages
from hfcf.core.recipe import locate
from hfcf.core.system import System
from hfcf.systems.rgf.categorise import Categorise
from hfcf.systems.rgf.filter import Minimality, RoundTrip
from hfcf.systems.rgf.generate import GenerateQuestion

CITATION = """@inproceedings{paranjape-etal-2022-retrieval,
  title = {Retrieval-guided Counterfactual Generation for {QA}},
  author = {Paranjape, Bhargavi and Lamm, Matthew and Tenney, Ian},
  booktitle = {Proceedings of ACL},
  year = {2022}
}"""

OFFLINE: dict[str, Any] = {
    "generator": Model("offline:t5", adapter="hfcf:question_generator"),
    "readers": tuple(Model("offline:minilm", adapter=f"hfcf:reader{number}") for number in ("", "_2", "_3")),
    "agree": 2,
    "keep_partial": False,
    # The paper's search of 15 beams takes seconds of CPU for each answer.
    "questions": 4,
    "num_beams": 4,
    "max_new_tokens": 48,
    "max_length": 384,
}
"""Settings of the offline presets: small models that install from the package registry, with this project's adapters."""


@dataclass(frozen=True, kw_only=True)
class QuestionChain(System):
    """The stages and settings that follow once there are answers in passages, the same in RGF and its baselines."""

    task: ClassVar[str] = "qa"
    citation: ClassVar[str] = CITATION
    remote: ClassVar[tuple[str, ...]] = ("reader", "generator", "readers")
    required: ClassVar[Mapping[str, str]] = {
        "generator": "the question generator; hfcf train recipes/train_question_generator.yaml makes one",
        "readers": (
            "those of the round trip, six in the paper; hfcf train recipes/train_reader.yaml makes one; () goes without them"
        ),
    }
    """What has no default, since no checkpoint of the paper is public: setting → what it is, and the cure."""

    trained_by: ClassVar[Mapping[str, str]] = {
        "reader": "train_reader", "readers": "train_reader", "generator": "train_question_generator",
        "answerer": "train_answer_generator", "decomposer": "train_decomposer",
    }  # fmt: skip

    generator: Model | None = None
    questions: int = 15
    num_beams: int = 15
    max_new_tokens: int = 256
    max_length: int = 640
    readers: tuple[Model, ...] | None = None
    agree: int = 5
    reader_length: int = 384
    keep_partial: bool = True
    keep: int | None = 1
    distance: tuple[int, int | None] | None = None
    decomposer: Model | None = None
    phrases: Model = Model("offline:spacy")

    @classmethod
    def locate(cls, settings: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
        """Put the corpora whose contexts are the passages inside the folder of a recipe's corpora."""
        passages = settings.get("passages")
        if not (isinstance(passages, Mapping) and "from" in passages):
            return dict(settings)
        return {**settings, "passages": {**passages, "from": [locate(one, data_dir) for one in passages["from"]]}}

    def __post_init__(self) -> None:
        if missing := [f"{name}, {cure}" for name, cure in self.required.items() if getattr(self, name) is None]:
            raise ValueError(f"{self.name} needs {'; '.join(missing)}; the models of preset='offline' are trained")
        self._as_models("generator", "decomposer", "phrases")
        object.__setattr__(self, "readers", tuple(map(Model.of, self.readers or ())))  # a recipe has lists
        if self.distance is not None:
            object.__setattr__(self, "distance", tuple(self.distance))
        if "passages" in self.__dataclass_fields__:
            object.__setattr__(self, "passages", refer_to(getattr(self, "passages")))  # noqa: B009 - RGF and Rand. have it alone
        _ = self.stages  # checks the other settings

    generate_question = StageOf(GenerateQuestion)
    round_trip = StageOf(RoundTrip)
    minimality = StageOf(Minimality)
    categorise = StageOf(Categorise)


def refer_to(collection: Any) -> Passages | None:
    """Return the reference to a collection of passages; None stays None.

    Args:
        collection: a reference, a `Dataset`, a file, or what else a recipe writes: see `hfcf.corpora.passages.from_recipe`.

    >>> refer_to({"sha": "a sha256"})
    Passages(sha='a sha256')
    """
    if collection is None:
        return None
    if isinstance(collection, Mapping) and set(collection) == {"sha"}:  # as `System.settings` writes a reference
        return Passages(**collection)
    from hfcf.corpora.passages import from_recipe

    return from_recipe(collection)
