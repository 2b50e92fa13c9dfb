"""Counterfactuals by a language model: GPT-3 and ChatGPT, baselines of RACE (appendix D) and of CCG (Table 9)."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar

from datasets import Dataset, IterableDataset
from pydantic import BeforeValidator, Field

from hfcf import prompts
from hfcf.core.candidates import settle
from hfcf.core.model import CHAT, REMOTE, Model, is_prompted
from hfcf.core.settings import NonNegative, Positive, Prompted
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines.llm.engine import LanguageModel
from hfcf.prompts import Prompt
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import candidate_columns, learn_labels, learned_labels, model_columns, rewriting_of


def _add_prefix(value: Any) -> Any:
    """Take a name without a prefix for that of a model behind the endpoint."""
    return REMOTE + value if isinstance(value, str) and value and not value.startswith((REMOTE, CHAT)) else value


@dataclass(frozen=True, kw_only=True)
class RewriteLlm(Stage):
    """Ask a language model for a counterfactual of a row: a claim of the opposite label, a sentence of another relation, a text.

    Input columns: the task's texts and `label`. Output column: `candidates`, one candidate. The model rewrites claims whose label
    has an opposite. It rewrites sentences with one of `relations` and two entities that share no word. It also rewrites texts with
    one of `relations`. An empty, overlong or unchanged text is rejected, and a text with the old label. A sentence is also
    rejected if its causal term is not outside the entities. It must have the entities once each and in their order.

    Args:
        model: the name that the server knows it by, with or without "llm:"; `HFCF_LLM_URL` and `HFCF_LLM_KEY` name the endpoint
            (see `LanguageModel`). Or "chat:NAME", a model in this process.
        task: the task of the rows.
        relations: the labels that the model chooses from. None: SemEval's without "Other" for sentences; for single texts the
            labels of the rows, which it learns.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        max_words: of a claim, or of a text that is not twice as long as its source.
        shots: worked examples in the prompt; the first is the paper's own. There are 4 for claims, 3 for relations and texts.
        attempts: how often a row is asked until the answer is valid.
        prompts: a folder with prompts of your own instead of ours; see docs/how-to/with_an_llm.md#prompts-of-your-own.

    >>> RewriteLlm(model="gpt-4o-mini").name
    'rewrite_llm'
    """

    inputs: ClassVar[Any] = TaskColumns(model_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    engines: ClassVar = (LanguageModel,)

    model: Annotated[Model, BeforeValidator(_add_prefix), Prompted()] = Model(f"{REMOTE}gpt-3.5-turbo-0301")
    task: str = DEFAULT
    relations: tuple[str, ...] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    max_tokens: Positive = 256
    max_words: Positive = 100
    shots: NonNegative = 1
    attempts: Positive = 3
    prompts: str | None = None

    def check(self) -> None:
        if not is_prompted(self.model):
            raise ValueError(f"model must be a language model, {REMOTE}NAME or {CHAT}NAME, got {self.model.name!r}")
        prompts.check_shots(self._kind.template, self.shots, self._folder)
        if not self.fit_inputs:
            _ = self._prompt  # checks the labels

    def __getstate__(self) -> dict[str, Any]:
        # Other words in the prompt give other rows.
        return {**super().__getstate__(), "prompt": prompts.contents(self._kind.template, self._folder)}

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("label",) if self.relations is None and self._kind.default_labels is None else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return learn_labels(ds)

    @property
    def _folder(self) -> str | None:
        """The folder with prompts of one's own."""
        return self.prompts or self.model.prompts

    @property
    def _kind(self) -> type[Prompt]:
        return resolve_name(rewriting_of(self.task).prompt)

    @property
    def _prompt(self) -> Prompt:
        labels = self._kind.default_labels if self.relations is None else self.relations
        return self._kind(relations=learned_labels(self.fitted) if self.fitted else labels or (), max_words=self.max_words)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        prompt = self._prompt
        problems = [prompt.find_problem(row) for row in rows]
        readable = [row for row, problem in zip(rows, problems, strict=True) if problem is None]
        answers = iter(
            prompts.ask(
                self.model, prompt.template, [prompt.values(row) for row in readable], shots=self.shots, folder=self._folder,
                limits=prompt.limits, row_limits=[prompt.row_limits(row) for row in readable], temperature=self.temperature,
                max_tokens=self.max_tokens, seed=self.seed, attempts=self.attempts,
            )
        )  # fmt: skip
        results: list[dict[str, Any] | Reject] = []
        for row, problem in zip(rows, problems, strict=True):
            if problem is not None:
                results.append(settle([], problem))
            elif why := prompts.failure(answer := next(answers)):
                results.append(settle([], why))
            else:
                results.append(settle([prompt.candidate(row, answer["answer"], self.name)], "there is no candidate"))
        return results


class LLM(System):
    """Ask a language model for one counterfactual of each row, behind an OpenAI-compatible endpoint or in this process.

    A claim gets a claim of the opposite label, as in RACE's comparison with GPT-3 and ChatGPT (appendix D). A sentence gets a
    sentence of another relation between its entities, in the three steps of CCG's prompt (Table 9). A single text gets a text
    of another label, with as few words changed as can be. `HFCF_LLM_URL` and `HFCF_LLM_KEY` name the endpoint; `LanguageModel`
    documents the other variables (concurrency, rate limits, patience, prices). The endpoint is in no key of a cache. Two
    servers that serve different models under one name therefore share their answers: give the models different names.

    Deviations from the papers: their models are gone, so name a model that the endpoint serves. The task is explained in our
    words, and the answer is JSON. The papers name no decoding settings; here the model answers greedily. CCG does not mention
    answers that do not have the entities once each and in their order, which are rejected here.

    Args:
        model: the name that the server uses, or "chat:NAME" for a model in this process. The default, and the model of each
            task's preset, is the paper's ChatGPT.
        task: the task of the rows; called with rows, the system takes it from them.
        relations: see `RewriteLlm`; for sentences SemEval's by default, which are the relations of CCG's prompt.
        verifier: a model that must give each candidate its new label; None, as in the papers, checks nothing.

    Its stages define its other settings.

    >>> [stage.name for stage in LLM(model="gpt-4o-mini").stages]
    ['rewrite_llm', 'judge_candidates']
    >>> LLM.preset("paper", task="relation").max_tokens
    512
    """

    chain = (RewriteLlm, JudgeCandidates)
    presets: ClassVar = {"paper": {}}
    by_task: ClassVar = {
        "relation": {"model": "gpt-3.5-turbo", "max_tokens": 512, "max_length": 128},
        "classification": {"max_tokens": 1024},  # a whole review comes back
    }
