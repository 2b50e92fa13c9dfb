"""Rand. Agen-Qgen: questions for answers of passages drawn at random, a baseline of RGF (section 5.1)."""

from __future__ import annotations

from typing import ClassVar

from hfcf.systems.rgf.agen import CHAIN, PRESETS, DrawPassage
from hfcf.systems.rgf.system import RGF


class RandAgenQgen(RGF):
    """Ask questions about a passage c′ that is drawn at random and has nothing to do with the source.

    What follows the answers is RGF's own: question generator, round trip, minimality, categories. `DrawPassage` has the
    substitute for the passage selector of the paper.

    Args:
        passages: the collection, see `hfcf.RGF`.
        min_words: of a passage that may be drawn.
        answerer: passage → answer; the paper's is T5-3B, trained on Natural Questions.
        answers: how many of its texts, the top 15 in the paper.

    `hfcf.RGF` defines its other settings.

    >>> [stage.name for stage in RandAgenQgen.preset("offline").stages][:3]
    ['draw_passage', 'generate_answer', 'generate_question']
    """

    name = "rand_agen_qgen"
    chain = (DrawPassage, *CHAIN)
    defaults: ClassVar = {}
    presets: ClassVar = PRESETS
