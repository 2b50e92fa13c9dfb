"""Rand. Agen-Qgen: questions for answers of passages drawn at random, a baseline of RGF (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.engines.noun_phrases import NounPhrases
from hfcf.engines.questions import AnswerGenerator, Decomposer, QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.systems.rgf.answers import ANSWERING, OFFLINE_ANSWERING, DrawPassage, GenerateAnswer
from hfcf.systems.rgf.chain import OFFLINE, QuestionChain


@dataclass(frozen=True, kw_only=True)
class RandAgenQgen(QuestionChain):
    """Questions that are paired with a source at random: c′ is a passage of the collection that has nothing to do with it.

    What follows the answers is RGF's own: question generator, round trip, minimality, categories. `DrawPassage` says what stands in
    for the passage selector of the paper.

    Args:
        passages: the collection, see `hfcf.RGF`.
        least_words: of a passage that may be drawn.
        answerer: passage → answer; the paper's is T5-3B, trained on Natural Questions.
        answers: how many of its texts, the top 15 in the paper.

    Its other settings are those of `hfcf.RGF`.

    >>> [stage.name for stage in RandAgenQgen.preset("offline").stages][:3]
    ['draw_passage', 'generate_answer', 'generate_question']
    """

    name: ClassVar[str] = "rand_agen_qgen"
    chain: ClassVar[tuple[str, ...]] = (
        "draw_passage", "generate_answer", "generate_question", "round_trip", "minimality", "categorise",
    )  # fmt: skip
    presets: ClassVar = {"paper": {}, "offline": {**OFFLINE, **OFFLINE_ANSWERING}}
    engines: ClassVar = (AnswerGenerator, Reader, QuestionGenerator, Decomposer, NounPhrases)
    required: ClassVar = {**ANSWERING, **QuestionChain.required}

    passages: Any = None
    least_words: int = 20
    answerer: Model | None = None
    answers: int = 15

    def __post_init__(self) -> None:
        self._as_models("answerer")
        super().__post_init__()

    draw_passage = StageOf(DrawPassage)
    generate_answer = StageOf(GenerateAnswer, num_beams=lambda system: max(system.answers, system.num_beams))
