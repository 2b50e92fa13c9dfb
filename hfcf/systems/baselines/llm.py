"""A language model that is asked for the counterfactual claim: RACE's baselines GPT-3 and ChatGPT (Zhu et al. 2023, Appendix D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.model import Model
from hfcf.core.schema import opposite
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.classifier import Classifier
from hfcf.engines.remote import Remote
from hfcf.prompts import claims
from hfcf.tasks.pairs import CANDIDATES, CheckPairs, rewritten


@dataclass(frozen=True, kw_only=True)
class RewriteLlm(Stage):
    """Ask a language model for a claim that has the opposite label on the same evidence.

    Input columns: `claim`, `evidence`, `label`. Output column: `candidates`, one. A row whose label has no opposite is rejected,
    and so is one for which the model gives no valid answer, or an empty, overlong or unchanged claim.

    Args:
        model: the name that the server knows it by; `HFCF_LLM_URL` and `HFCF_LLM_KEY` say where it is (see `Remote`).
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        max_words: of a claim.
        shots: worked examples in the prompt, 0 to 4; the first is RACE's own.
        attempts: how often a row is asked until the answer is valid.

    Raises:
        ValueError: for a number of examples that there is not, and for a `max_tokens`, `max_words` or `attempts` below 1.

    >>> RewriteLlm(model="gpt-4o-mini").name
    'rewrite_llm'
    """

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT}
    outputs: ClassVar = {"candidates": CANDIDATES}

    model: str
    temperature: float | None = 0.0
    max_tokens: int = 256
    max_words: int = 100
    shots: int = 1
    attempts: int = 3

    def __post_init__(self) -> None:
        prompts.check_shots("claims", self.shots)
        if self.max_words < 1:
            raise ValueError(f"max_words={self.max_words}: give at least 1")
        _ = self._engine  # checks the other settings

    def __getstate__(self) -> dict[str, Any]:
        # Other words in the prompt give other rows.
        return {**super().__getstate__(), "prompt": prompts.contents("claims")}

    @property
    def _engine(self) -> Remote:
        return Remote(
            model=self.model, schema=claims.SCHEMA, temperature=self.temperature, max_tokens=self.max_tokens, seed=self.seed,
            attempts=self.attempts,
        )  # fmt: skip

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        asked = [row for row in rows if row["label"] != schema.NOT_ENOUGH_INFO]
        answers = iter(self._engine.run([claims.messages(row, self.shots) for row in asked]))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            if row["label"] == schema.NOT_ENOUGH_INFO:
                results.append(Reject(f"the label {row['label']} has no opposite", candidates=[]))
            elif "error" in (answer := next(answers)):
                results.append(Reject(f"the language model: {answer['error']}", candidates=[]))
            else:
                made = self._candidate(row, claims.read(answer["answer"]))
                results.append(settle([made], "there is no candidate"))
        return results

    def _candidate(self, row: dict[str, Any], claim: str) -> Candidate:
        made = rewritten(row["claim"], claim, opposite(row["label"]), self.name)
        if problem := schema.text_problem(claim, "the new claim"):
            return reject(made, self.name, problem)
        if (words := len(claim.split())) > self.max_words:
            return reject(made, self.name, f"the new claim has {words} words; the limit is {self.max_words}")
        return made


@dataclass(frozen=True, kw_only=True)
class LLM(System):
    """One counterfactual claim to a row, by a prompt, over any OpenAI-compatible endpoint.

    Stages, in order: `rewrite_llm`, `check_pairs`. `HFCF_LLM_URL` and `HFCF_LLM_KEY` name the endpoint; `Remote` documents the
    other variables (concurrency, rate limits, patience, prices). The endpoint is in no key of a cache, so two servers that serve
    different models under one name share their answers: tell them apart by name.

    Deviations from the paper: its models are gone, so name one that the endpoint serves; the task is told in our words, and the
    answer is asked for as JSON; it names no decoding settings, here the model answers greedily.

    Args:
        model: the name that the server knows it by; the default is the paper's ChatGPT.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        max_words: of a claim.
        shots: worked examples in the prompt, 0 to 4; the paper shows one, and the first here is that one.
        attempts: how often a row is asked until the answer is valid.
        verifier: a three-way verifier that must give the pair its new label; None, as in the paper, checks nothing.
        max_length: tokens of claim and evidence that the verifier reads.

    >>> [stage.name for stage in LLM(model="gpt-4o-mini").stages]
    ['rewrite_llm', 'check_pairs']
    """

    task: ClassVar[str] = "verification"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_llm", "check_pairs")
    presets: ClassVar = {"paper": {}}
    engines: ClassVar = (Remote, Classifier)

    model: str = "gpt-3.5-turbo-0301"
    temperature: float | None = 0.0
    max_tokens: int = 256
    max_words: int = 100
    shots: int = 1
    attempts: int = 3
    verifier: Model | None = None
    max_length: int = 130

    def __post_init__(self) -> None:
        self._as_models("verifier")
        _ = self.rewrite_llm  # checks the other settings

    @property
    def rewrite_llm(self) -> RewriteLlm:
        return RewriteLlm(
            **self._common(), model=self.model, temperature=self.temperature, max_tokens=self.max_tokens, max_words=self.max_words,
            shots=self.shots, attempts=self.attempts,
        )  # fmt: skip

    @property
    def check_pairs(self) -> CheckPairs:
        return CheckPairs(**self._common(), system=self.name, verifier=self.verifier, max_length=self.max_length)
