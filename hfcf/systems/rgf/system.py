"""RGF as one system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.engines.noun_phrases import NounPhrases
from hfcf.engines.questions import Decomposer, QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.engines.remote.engine import Remote
from hfcf.engines.retriever import Retriever
from hfcf.systems.rgf.chain import OFFLINE, QuestionChain
from hfcf.systems.rgf.retrieve import Read, Retrieve

PAPER: dict[str, Any] = {
    # The nearest to REALM with open weights; see `hfcf.engines.retriever.Retriever`.
    "retrieval": "dense",
    "encoder": Model("facebook/dpr-question_encoder-single-nq-base"),
    "passage_encoder": Model("facebook/dpr-ctx_encoder-single-nq-base"),
    "pooling": "pooler",
}

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {
    "reader": _CHAT, "generator": _CHAT, "readers": (_CHAT,), "agree": 1, "n_best": 3, "questions": 3, "max_new_tokens": 48,
}  # fmt: skip
"""One language model behind `HFCF_LLM_URL` in the place of all three; name yours, or let any of them be a model of yours."""


@dataclass(frozen=True, kw_only=True)
class RGF(QuestionChain):
    """Retrieve passages with other answers to a question, generate a question for each answer, and filter.

    `ds = RGF.preset("offline", passages=…)(ds)` runs the whole chain; each of its stages is an attribute.

    From (q, c, a) it makes (q′, c′, a′) with a′ ≠ a: passages that a retriever finds for q are read for other answers to q; a
    generator writes questions for these; readers must give the answers back; the question that is nearest to q is kept, and what
    changed in it is named. Open questions, which have no context, work as well.

    The paper's order is kept: noise first, then nearness. Categories come last, so that only what is kept is taken apart; with
    `keep=None` that is everything.

    No checkpoint of the paper is public. The preset "paper" has its settings, and needs models of yours: `reader`, `generator` and
    `readers`, from `recipes/train_reader.yaml` (T5-large for `readers`) and `recipes/train_question_generator.yaml` (T5-3B).

    Args:
        passages: the collection: a `Passages`, a `Dataset` with the column `text` (and `id`, `title`), a file, or what else
            `hfcf.corpora.passages.from_recipe` reads. Needed when a stage runs, and not before.
        k: passages to a question.
        retrieval: "bm25" or "dense"; with `encoder`, `passage_encoder` and `pooling`, see `Retrieve`.
        reader: reads near misses: any extractive reader.
        n_best: answers that are read in each passage.
        generator: writes the questions.
        questions: to an answer: 15 in section 3.3, 1 in appendix A.
        readers: of the round trip, None of them being the same; () goes without it.
        agree: how many of them must give the answer back: 5 of 6 in section 3.4.
        keep: counterfactuals to a question: 1 for training; None keeps all, for evaluation sets and analyses.
        distance: the least and greatest word edit distance, such as (1, 4).
        decomposer: takes questions apart; the paper's is T5-large, trained on QED. None: noun phrases stand in, and are named.

    Its other settings are those of the stages of the same name. `reader`, `generator` and each of `readers` may be "llm:NAME": a
    language model behind an OpenAI-compatible endpoint (`hfcf.engines.remote.engine.Remote` has its environment variables). The
    preset "llm" has one for all; its one reader checks questions of its own, so another model there is better.

    Raises:
        ValueError: a model that has no default is not given, or settings do not fit together.

    >>> [stage.name for stage in RGF.preset("offline").stages]
    ['retrieve', 'read', 'generate_question', 'round_trip', 'minimality', 'categorise']
    >>> RGF.preset("paper", reader="me/reader", generator="me/t5-3b-questions")
    Traceback (most recent call last):
    ValueError: rgf needs readers, those of the round trip, six in the paper; hfcf train recipes/train_reader.yaml makes one; () \
goes without them; the models of preset='offline' are trained
    """

    chain: ClassVar[tuple[str, ...]] = ("retrieve", "read", "generate_question", "round_trip", "minimality", "categorise")
    presets: ClassVar = {
        "paper": PAPER,
        "offline": {**OFFLINE, "reader": Model("offline:minilm", adapter="hfcf:reader"), "k": 10, "n_best": 3},
        "llm": LLM,
    }
    engines: ClassVar = (Retriever, Reader, QuestionGenerator, Decomposer, NounPhrases, Remote)
    required: ClassVar = {
        "reader": "which reads the near misses; hfcf train recipes/train_reader.yaml makes one",
        **QuestionChain.required,
    }

    passages: Any = None
    k: int = 20
    retrieval: str = "bm25"
    encoder: Model | None = None
    passage_encoder: Model | None = None
    pooling: str = "mean"
    reader: Model | None = None
    n_best: int = 5

    def __post_init__(self) -> None:
        self._as_models("reader", "encoder", "passage_encoder")
        super().__post_init__()

    retrieve = StageOf(Retrieve)
    read = StageOf(Read)
