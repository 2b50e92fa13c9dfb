"""A language model that is asked for another relation between a sentence's entities: CCG's baseline ChatGPT (its Table 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.relation import RelationClassifier
from hfcf.engines.remote import Remote
from hfcf.prompts import relations as prompt
from hfcf.tasks import sentence
from hfcf.tasks.check_relations import CheckRelations
from hfcf.tasks.relations import CANDIDATES, OTHER, overlap, roles

_SEMEVAL = (
    "Message-Topic", "Entity-Destination", "Content-Container", "Cause-Effect", "Component-Whole", "Member-Collection",
    "Instrument-Agency", "Product-Producer", "Entity-Origin",
)  # fmt: skip
SEMEVAL = tuple(f"{name}({order})" for name in _SEMEVAL for order in ("e1,e2", "e2,e1"))
"""SemEval 2010's relations but for "Other", each in both directions."""


@dataclass(frozen=True, kw_only=True)
class RewriteRelationLlm(Stage):
    """Ask a language model for a sentence in which the entities have another relation, in three steps.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `candidates`, one, with the relation that the model picked. A
    row is rejected that has the relation "Other", or one that is not in `relations`, or entities that share a word; and one for
    which the model gives no valid answer: no JSON, the old relation, a causal term that the sentence does not have outside the
    entities, the old sentence, or a new one in which an entity does not stand exactly once or the two have changed order.

    Args:
        model: the name that the server knows it by; `HFCF_LLM_URL` and `HFCF_LLM_KEY` say where it is (see `Remote`).
        relations: the corpus's relations but for "Other": what the model chooses from, named to it by `hfcf.tasks.relations.roles`.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        shots: worked examples in the prompt, 0 to 3; the first is CCG's own.
        attempts: how often a row is asked until the answer is valid JSON.

    Raises:
        ValueError: for a number of examples that there is not, for relations that are fewer than two or get one name, and for a
            `max_tokens` or `attempts` below 1.

    >>> RewriteRelationLlm(model="gpt-4o-mini", relations=("PHYS", "PART-WHOLE")).name
    'rewrite_relation_llm'
    """

    inputs: ClassVar = {name: schema.TASKS["relation"][name] for name in ("tokens", "head", "tail", "label")}
    outputs: ClassVar = {"candidates": CANDIDATES}

    model: str
    relations: tuple[str, ...] = SEMEVAL
    temperature: float | None = 0.0
    max_tokens: int = 512
    shots: int = 1
    attempts: int = 3

    def __post_init__(self) -> None:
        prompts.check_shots("relations", self.shots)
        if len(self._names) < max(2, len(self.relations)):
            raise ValueError(f"relations={list(self.relations)}: give two or more, each once, that differ by more than capitals")
        _ = self._engine  # checks the other settings

    def __getstate__(self) -> dict[str, Any]:
        # Other words in the prompt give other rows.
        return {**super().__getstate__(), "prompt": prompts.contents("relations")}

    @property
    def _names(self) -> dict[str, str]:
        """The corpus's relation of each name that the model reads."""
        return {roles(label): label for label in self.relations}

    @property
    def _engine(self) -> Remote:
        return Remote(
            model=self.model, schema=prompt.schema(list(self._names)), temperature=self.temperature, max_tokens=self.max_tokens,
            seed=self.seed, attempts=self.attempts,
        )  # fmt: skip

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        faults = [self._fault(row) for row in rows]
        # What it reads: relations by their entities' roles, brackets and quotes as people write them.
        named = [{**row, "tokens": sentence.plain(row["tokens"]), "label": roles(row["label"])} for row in rows]
        asked = [row for row, fault in zip(named, faults, strict=True) if fault is None]
        answers = iter(self._engine.run([prompt.messages(row, list(self._names), self.shots) for row in asked]))
        results: list[dict[str, Any] | Reject] = []
        for row, read, fault in zip(rows, named, faults, strict=True):
            if fault is not None:
                results.append(Reject(fault, candidates=[]))
            elif "error" in (answer := next(answers)):
                results.append(Reject(f"the language model: {answer['error']}", candidates=[]))
            else:
                results.append(settle([self._candidate(row, read, answer["answer"])], "there is no candidate"))
        return results

    def _fault(self, row: Mapping[str, Any]) -> str | None:
        """Why nothing is asked about a row."""
        if row["label"] == OTHER:
            return f"the relation {OTHER} has no counterfactual"
        if row["label"] not in self.relations:
            return f"the relation {row['label']!r} is not in the setting `relations`: name the corpus's there"
        return overlap(row)

    def _candidate(self, row: Mapping[str, Any], read: Mapping[str, Any], answer: Mapping[str, Any]) -> Candidate:
        made = sentence.rewritten(row, answer["sentence"], self._names[answer["relation"]], self.name)
        if made["status"] is not None:
            return made
        try:
            prompt.read(answer, read)
        except ValueError as error:
            return reject(made, self.name, str(error))
        return made


@dataclass(frozen=True, kw_only=True)
class RelationLLM(System):
    """One counterfactual sentence to a row, by CCG's three-step prompt, over any OpenAI-compatible endpoint.

    Stages, in order: `rewrite_relation_llm`, `check_relations`. CCG's appendix (Table 9) asks ChatGPT to find the causal terms, to
    pick another relation that makes sense and to replace the terms; with one worked example, once for each row. `HFCF_LLM_URL` and
    `HFCF_LLM_KEY` name the endpoint; see `hfcf.systems.baselines.llm.LLM` and `Remote` for all about it.

    Deviations from the paper: its model is gone, so name one that the endpoint serves; the task is told in our words, and the
    answer is asked for as JSON; it names no decoding settings, here the model answers greedily; it says nothing of answers that
    do not have the entities once each and in their order, which are rejected here.

    Args:
        model: the name that the server knows it by; the default is the paper's ChatGPT.
        relations: see `RewriteRelationLlm`; SemEval's by default, which are those of the paper's prompt.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        shots: worked examples in the prompt, 0 to 3; the paper shows one, and the first here is that one.
        attempts: how often a row is asked until the answer is valid JSON.
        verifier: see `CheckRelations`; None, as in the paper, checks nothing.
        max_length: see `CheckRelations`.

    >>> [stage.name for stage in RelationLLM(model="gpt-4o-mini").stages]
    ['rewrite_relation_llm', 'check_relations']
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_relation_llm", "check_relations")
    presets: ClassVar = {"paper": {}}
    engines: ClassVar = (Remote, RelationClassifier)

    model: str = "gpt-3.5-turbo"
    relations: tuple[str, ...] = SEMEVAL
    temperature: float | None = 0.0
    max_tokens: int = 512
    shots: int = 1
    attempts: int = 3
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "relations", tuple(self.relations))  # a recipe has a list
        self._as_models("verifier")
        _ = self.rewrite_relation_llm  # checks the other settings

    @property
    def name(self) -> str:
        return "relation_llm"

    @property
    def rewrite_relation_llm(self) -> RewriteRelationLlm:
        return RewriteRelationLlm(
            **self._common(), model=self.model, relations=self.relations, temperature=self.temperature,
            max_tokens=self.max_tokens, shots=self.shots, attempts=self.attempts,
        )  # fmt: skip

    @property
    def check_relations(self) -> CheckRelations:
        return CheckRelations(**self._common(), system=self.name, verifier=self.verifier, max_length=self.max_length)
