"""RGF (Paranjape et al. 2022): the system and its presets."""

from __future__ import annotations

from dataclasses import MISSING
from typing import Any, ClassVar, Self

from hfcf.core.bound_stage import BoundStage
from hfcf.core.model import Model
from hfcf.core.public_models import READERS, chat_model, pinned
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.systems.rgf.categorise import Categorise, warn_of_phrases
from hfcf.systems.rgf.generate_question import GenerateQuestion
from hfcf.systems.rgf.minimality import Minimality
from hfcf.systems.rgf.retrieve import Read, Retrieve
from hfcf.systems.rgf.round_trip import RoundTrip

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
    "reader_length": 320,  # that of train_reader's preset
    "no_answer_margin": 0.0,
    # Chosen on QED's questions 850 to 924, on which none of the models was trained.
    "min_log_probability": -0.5,
    "min_vote": 0.3,
}
"""Settings of the offline presets: small models that install from the package registry, with this project's adapters."""
_NEAR_MISSES: dict[str, Any] = {
    "reader": Model("offline:minilm", adapter="hfcf:reader"), "k": 10, "n_best": 3, "overlapping": False, "min_probability": 0.1,
    "reader_votes": False, "elsewhere": 0.2,
}  # fmt: skip
"""What the offline preset of RGF has as well; the floor and the margin were chosen on the same questions."""

BASE: dict[str, Any] = {
    "generator": Model("chat:offline:qwen"),
    # The small reader finds the answers, and this one alone decides which questions are right. As the finder it left a pair to 3 of
    # 12 development rows of QED, the small one to 9: it has learned to say that a passage has no answer.
    "readers": (Model("offline:mpnet", adapter="hfcf:reader_base"),),
    "agree": 1,
    "questions": 3,
    "max_answers": 4,
    # Of a trained generator's search.
    "min_log_probability": None,
    # Of its 22 questions that a rater found no sense in, eight asked for "the name of the …".
    "max_ambiguity": 0.5,
}
"""What is different at size "base": a language model of 1.5 B writes the questions, a reader of 109 M checks them."""

PAPER: dict[str, Any] = {
    # The nearest to REALM with open weights; see `hfcf.engines.retriever.Retriever`.
    "retrieval": "dense",
    "encoder": Model("facebook/dpr-question_encoder-single-nq-base"),
    "passage_encoder": Model("facebook/dpr-ctx_encoder-single-nq-base"),
    "pooling": "pooler",
    # That of train_reader: the paper does not say how much its T5 readers read. All else is the stages' default: one answer to a
    # passage (section 3.2), 15 questions of 15 beams (3.3), 5 of the readers that you give, six in the paper (3.4).
    "reader_length": 512,
}

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {
    "reader": _CHAT, "generator": _CHAT, "readers": (_CHAT,), "agree": 1, "n_best": 3, "questions": 2, "max_new_tokens": 48,
    "k": 4, "max_answers": 4, "near_source": True,
}  # fmt: skip
"""One language model behind `HFCF_LLM_URL` is reader, generator and readers; name yours, or give models of your own."""

HUB: dict[str, Any] = {
    "generator": chat_model(),
    "reader": pinned(READERS[0]),
    # Two further families must both give the answer back; the reader that proposed it has no vote.
    "readers": tuple(map(pinned, READERS[1:])),
    "agree": 2,
    "questions": 3,
    # A request each: the paper's way, all answers of all passages, takes up to k × n_best of them for a row. Not `near_source`: a
    # model of 1.5 B then writes the source's question again. At size base 5 of 6 questions of ten development rows were right
    # without it, and none of 3 with it.
    "max_answers": 4,
    # That of size base, whose writer is of this kind.
    "max_ambiguity": 0.5,
    "max_new_tokens": 48,
    "reader_length": 384,
    "k": 10,
    "n_best": 3,
    "overlapping": False,
    # SQuAD 2 has questions without an answer, so these readers know when a passage has none.
    "no_answer_margin": 0.0,
    "min_probability": 0.1,
    "min_vote": 0.3,
    "elsewhere": 0.2,
    # No decomposer is public; spaCy's small pipeline names noun phrases.
    "phrases": Model("en_core_web_sm"),
}
"""Public checkpoints that need no training: readers of three families, trained on SQuAD 2, and a chat model that writes questions.
Floors and margins are the offline preset's. At size base, whose readers are of this kind, `min_vote` alone did anything for ten
questions; with these models they were not measured."""


class RGF(System):
    """Retrieve passages with other answers to a question, generate a question for each answer, and filter.

    `ds = RGF.preset("offline", passages=…)(ds)` runs the whole chain; each of its stages is an attribute.

    From (q, c, a) it makes (q′, c′, a′) with a′ ≠ a. A retriever finds passages for q, which are read for other answers to q. A
    generator writes questions for these answers, and readers must give the answers back. The question that is nearest to q is
    kept, and its change is categorised. Open questions, which have no context, work as well.

    No checkpoint of the paper is public. The preset "paper" has its settings, and needs your own models: `reader`, `generator` and
    `readers`, from `recipes/train_reader.yaml` (T5-large for `readers`) and `recipes/train_question_generator.yaml` (T5-3B).

    Its stages define its settings. `readers` of the round trip may be (), which skips the round trip. `reader`, `generator` and
    each of `readers` may be "llm:NAME": a language model behind an endpoint (`hfcf.engines.llm.engine.LanguageModel`
    has its environment variables). The preset "llm" uses one language model for all; its only reader checks its own questions, so
    a different reader is better.

    Raises:
        ValueError: a model without a default is missing, or settings do not fit together.

    >>> [stage.name for stage in RGF.preset("offline").stages]
    ['retrieve', 'read', 'generate_question', 'round_trip', 'minimality', 'categorise']
    """

    task = "qa"
    chain: ClassVar[tuple[type[Stage] | BoundStage, ...]] = (Retrieve, Read, GenerateQuestion, RoundTrip, Minimality, Categorise)
    defaults: ClassVar = {"reader": MISSING}
    presets: ClassVar = {
        "paper": PAPER,
        "hub": HUB,
        "offline": {**OFFLINE, **_NEAR_MISSES},
        "llm": LLM,
    }
    sizes: ClassVar = {"offline": {"small": {}, "base": BASE}}
    citation = CITATION

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Make the system with a named set of settings, see `System.preset`; "paper" without a decomposer warns once."""
        system = super().preset(name, **changes)
        warn_of_phrases(system, name)
        return system
