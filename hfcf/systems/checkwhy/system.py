"""CheckWhy's way to its data as one system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.system import System
from hfcf.engines.parser import Parser
from hfcf.engines.remote.engine import Remote
from hfcf.engines.retriever import Retriever
from hfcf.engines.retriever.rescorer import Rescorer
from hfcf.systems.checkwhy.assemble import AssembleSet
from hfcf.systems.checkwhy.chat import Chat
from hfcf.systems.checkwhy.distractors import READ, AddDistractors, fit_pool
from hfcf.systems.checkwhy.evidence import Loop, RefuteClaim, SupportClaim
from hfcf.systems.checkwhy.nei import MakeNei
from hfcf.systems.checkwhy.predicates import CheckPredicates
from hfcf.systems.checkwhy.sentences import WriteClaim, WriteOppositeEffect
from hfcf.systems.checkwhy.structure import LinkEvidence

_LOCAL: dict[str, Any] = {
    "parser": Parser(backend="spacy", model=Model("offline:spacy")), "scorer": Model("offline:minilm"),
}  # fmt: skip
LLM: dict[str, Any] = {"model": Model("llm:gpt-4o-mini"), **_LOCAL}
"""A language model of today behind `HFCF_LLM_URL` (name yours), with a tagger and an encoder from the package registry."""
OFFLINE: dict[str, Any] = {
    # SmolLM2 behind a server on this machine; `transformers serve` knows a model by its folder, another server by another name.
    "model": Model("llm:smollm2"), **_LOCAL, "temperature": 0.0, "max_tokens": 96, "attempts": 2, "max_steps": 7,
}  # fmt: skip
"""The same stages with a model of 135 M weights, which fails at most pairs: the checks say where."""


@dataclass(frozen=True, kw_only=True)
class CheckWhy(System):
    """Write causal claims with argument structures that support or refute them, from pairs of cause and effect.

    `ds = CheckWhy.preset("llm")(ds)` runs the whole chain; each of its stages is an attribute.

    From a pair of cause and effect it makes a set of three rows of causal fact verification: a claim with evidence that supports
    it, that refutes it, and that does neither, the first two with the argument structure that leads from the evidence to the claim,
    all three with distractors. The language model writes; every text is checked, and a row that fails has its reason in
    `hfcf.rejected`. What follows in the paper, people who edit and filter, is `docs/checkwhy.md`.

    `HFCF_LLM_URL` and `HFCF_LLM_KEY` name the endpoint, see `hfcf.engines.remote.engine.Remote`. Every answer is stored when it
    comes, so that a run that was killed asks nothing twice. The evidence of all sets is fitted, which needs all stages before;
    `limit` therefore cuts the rows first.

    Deviations stand at the stages: what a predicate is (`CheckPredicates`), one question for each step (`Loop`), the root of a
    structure (`LinkEvidence`), the scorer of distractors (`AddDistractors`), prompts in our words.

    Args:
        model: "llm:NAME", the language model; the paper's is GPT-4, with the name of its experiments.
        temperature: of sampling.
        max_tokens: of an answer.
        attempts: how often a question is asked until the answer has the right form.
        shots: worked examples in each question.
        parser: the tagger that finds predicates.
        scorer: the encoder that chooses distractors.
        max_words: of an inference.
        max_steps: of an argument.
        min_inferences: of an argument.

    Its other settings are those of the stages of the same name.

    >>> [stage.name for stage in CheckWhy.preset("offline").stages][:5]
    ['check_predicates', 'write_claim', 'support_claim', 'write_opposite_effect', 'refute_claim']
    """

    task: ClassVar[str] = "structures"
    chain: ClassVar[tuple[str, ...]] = (
        "check_predicates", "write_claim", "support_claim", "write_opposite_effect", "refute_claim", "link_evidence", "make_nei",
        "add_distractors", "assemble_set",
    )  # fmt: skip
    presets: ClassVar = {"paper": {}, "llm": LLM, "offline": OFFLINE}
    remote: ClassVar[tuple[str, ...]] = ("model",)
    flips: ClassVar[bool] = False
    limit_first: ClassVar[bool] = True
    engines: ClassVar = (Parser, Remote, Retriever, Rescorer)
    citation: ClassVar[str] = """@inproceedings{si-etal-2024-checkwhy,
  title = {{CHECKWHY}: Causal Fact Verification via Argument Structure},
  author = {Si, Jiasheng and Zhao, Yibo and Zhu, Yingjie and Zhu, Haiyang and Lu, Wenpeng and Zhou, Deyu},
  booktitle = {Proceedings of ACL},
  year = {2024}
}"""

    model: Model = Model("llm:gpt-4-1106-preview")
    temperature: float | None = 0.1
    max_tokens: int = 512
    attempts: int = 3
    shots: int = 1
    parser: Parser = field(default_factory=Parser)
    finite: bool = False
    max_claim: int = 60
    max_words: int = 25
    max_steps: int = 9
    min_inferences: int = 2
    repair: bool = False
    mixed: float = 0.5
    scorer: Model = Model("sentence-transformers/all-MiniLM-L6-v2")
    retrieved: int = 300
    distractors: tuple[int, int] = (8, 12)

    def __post_init__(self) -> None:
        self._as_models("model", "scorer")
        self._as_engine("parser", Parser)
        object.__setattr__(self, "distractors", tuple(self.distractors))  # a recipe has a list
        _ = self.stages  # checks the other settings

    @property
    def chat(self) -> Chat:
        """The language model with its settings."""
        return Chat(
            model=self.model, temperature=self.temperature, max_tokens=self.max_tokens, attempts=self.attempts, shots=self.shots
        )

    @property
    def loop(self) -> Loop:
        """The limits of the arguments."""
        return Loop(max_words=self.max_words, max_steps=self.max_steps, min_inferences=self.min_inferences)

    check_predicates = StageOf(CheckPredicates)
    write_claim = StageOf(WriteClaim, chat=lambda system: system.chat)
    support_claim = StageOf(SupportClaim, chat=lambda system: system.chat, loop=lambda system: system.loop)
    write_opposite_effect = StageOf(WriteOppositeEffect, chat=lambda system: system.chat)
    refute_claim = StageOf(RefuteClaim, chat=lambda system: system.chat, loop=lambda system: system.loop)
    link_evidence = StageOf(LinkEvidence, chat=lambda system: system.chat)
    make_nei = StageOf(MakeNei)
    add_distractors = StageOf(AddDistractors)
    assemble_set = StageOf(AssembleSet)

    @property
    def fit_after(self) -> tuple[str, ...]:
        return self.chain[: self.chain.index("make_nei")]

    def fit_resources(self, ds: Dataset | IterableDataset) -> str:
        missing = [column for column in READ if column not in (ds.column_names or [])]
        if missing:
            raise ValueError(
                f"checkwhy.fit reads the column {missing[0]!r}: map the stages {', '.join(self.fit_after)} over the rows first"
            )
        return fit_pool(ds.select_columns(list(READ)))
