"""Gold Agen-Qgen: questions for other answers of the source's own passage, a baseline of RGF (section 5.1)."""

from __future__ import annotations

from typing import ClassVar

from hfcf.systems.rgf.agen import CHAIN, PRESETS, TakeContext
from hfcf.systems.rgf.system import RGF


class GoldAgenQgen(RGF):
    """Ask new questions about the source's own passage, c′ = c, for answers that a model writes without any question.

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
    chain = (TakeContext, *CHAIN)
    defaults: ClassVar = {}
    presets: ClassVar = PRESETS
