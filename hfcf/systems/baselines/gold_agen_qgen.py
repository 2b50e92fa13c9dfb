"""Gold Agen-Qgen: questions for other answers of the source's own passage, a baseline of RGF (section 5.1)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from hfcf.core.system import System
from hfcf.systems.rgf.agen import CHAIN, PRESETS, TakeContext
from hfcf.systems.rgf.categorise import warn_of_phrases
from hfcf.systems.rgf.system import CITATION


class GoldAgenQgen(System):
    """Counterfactuals from the source's own passage, c′ = c, for answers that a model writes without any question.

    What follows the answers is RGF's own: question generator, round trip, minimality, categories. A row without a context is
    rejected.

    Args:
        answerer: passage → answer; the paper's is T5-3B, trained on Natural Questions.
        answers: how many of its texts, the top 15 in the paper.

    `hfcf.RGF` defines its other settings.

    >>> [stage.name for stage in GoldAgenQgen.preset("offline").stages][:3]
    ['take_context', 'generate_answer', 'generate_question']
    """

    name = "gold_agen_qgen"
    task = "qa"
    chain = (TakeContext, *CHAIN)
    presets: ClassVar = PRESETS
    citation = CITATION

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make the system with a named set of settings, see `System.preset`; "paper" without a decomposer warns once."""
        system = super().preset(name, **changes)
        warn_of_phrases(system, name)
        return system
