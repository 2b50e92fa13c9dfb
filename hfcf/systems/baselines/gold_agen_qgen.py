"""Gold Agen-Qgen: questions for other answers of the source's own passage, a baseline of RGF (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.engines.noun_phrases import NounPhrases
from hfcf.engines.questions import AnswerGenerator, Decomposer, QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.systems.rgf.answers import ANSWERING, OFFLINE_ANSWERING, GenerateAnswer, TakeContext
from hfcf.systems.rgf.chain import OFFLINE, QuestionChain


@dataclass(frozen=True, kw_only=True)
class GoldAgenQgen(QuestionChain):
    """Counterfactuals from the source's own passage, c′ = c, for answers that a model writes without any question.

    What follows the answers is RGF's own: question generator, round trip, minimality, categories. A row without a context is
    rejected.

    Args:
        answerer: passage → answer; the paper's is T5-3B, trained on Natural Questions.
        answers: how many of its texts, the top 15 in the paper.

    Its other settings are those of `hfcf.RGF`.

    >>> [stage.name for stage in GoldAgenQgen.preset("offline").stages][:3]
    ['take_context', 'generate_answer', 'generate_question']
    """

    name: ClassVar[str] = "gold_agen_qgen"
    chain: ClassVar[tuple[str, ...]] = (
        "take_context", "generate_answer", "generate_question", "round_trip", "minimality", "categorise",
    )  # fmt: skip
    presets: ClassVar = {"paper": {}, "offline": {**OFFLINE, **OFFLINE_ANSWERING}}
    engines: ClassVar = (AnswerGenerator, Reader, QuestionGenerator, Decomposer, NounPhrases)
    required: ClassVar = {**ANSWERING, **QuestionChain.required}

    answerer: Model | None = None
    answers: int = 15

    def __post_init__(self) -> None:
        self._as_models("answerer")
        super().__post_init__()

    take_context = StageOf(TakeContext)
    generate_answer = StageOf(GenerateAnswer, num_beams=lambda system: max(system.answers, system.num_beams))
