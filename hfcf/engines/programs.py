"""Write the program of an argument structure: an encoder-decoder (CodeT5) or a decoder-only model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hfcf.engines.generator import Generator


@dataclass(frozen=True, kw_only=True)
class ProgramWriter(Generator):
    """Programs for `[text, []]` requests, which `hfcf.tasks.task_inputs.program_text` writes; an answer is as `Generator`'s.

    Lengths are CheckWhy's (Appendix A). The paper does not say how it searches: here greedily.

    >>> ProgramWriter.prompt
    '{}\\n# Program:'
    """

    VERSION = "1"
    prompt: ClassVar[str] = "{}\n# Program:"

    num_beams: int = 1
    num_return_sequences: int = 1
    max_new_tokens: int = 400
    max_length: int = 512
