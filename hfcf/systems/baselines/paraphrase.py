"""Paraphrases by a neural paraphraser (a baseline of Lee et al. 2021, "CrossAug", CIKM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf import prompts
from hfcf.core.bound_stage import BoundStage
from hfcf.core.candidates import log_probability, reject, reject_repeats, settle
from hfcf.core.model import Model, is_prompted
from hfcf.core.public_models import chat_model
from hfcf.core.settings import Positive, Prompted, TrainedBy, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import pair_prompt
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import Rewriting, candidate_columns, model_columns, rewriting_of
from hfcf.text.check import script, text_problem
from hfcf.text.negation import why_negated_otherwise

PROMPT = "paraphrases"


@dataclass(frozen=True, kw_only=True)
class RewriteParaphrase(Stage):
    """Rewrite a text in other words, under its label.

    Input columns: the task's texts (so that a broken row is rejected before a model runs) and `label`. Output column:
    `candidates`, best first. A paraphrase that repeats its source or a better one, has no letters, was cut off, is in another
    script, or has a negation where its source has none (or the other way round) is rejected. So is a paraphrase of a sentence that
    does not have the entities once each and in their order. A row is rejected if its text is longer than the model reads.

    Args:
        generator: an encoder-decoder or decoder-only paraphraser; or "llm:NAME" for a language model behind an endpoint, which is
            asked for all paraphrases at once.
        task: the task of the rows.
        prompt: what it is given, with {} for the text: "paraphrase: {}" for many a T5. None gives an encoder-decoder the text
            alone, and a decoder-only model the form in which this library trains such a model.
        num_beams: beams of the search.
        num_return_sequences: paraphrases to a row.
        max_new_tokens: longest paraphrase, in tokens.
        max_length: longest prompt, in tokens.

    >>> RewriteParaphrase(generator=Model("t5-base"), prompt="paraphrase: {}").name
    'rewrite_paraphrase'
    """

    VERSION: ClassVar[str] = "3"
    inputs: ClassVar[Any] = TaskColumns(model_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)
    batch_size: ClassVar[int] = 64

    engines: ClassVar = (Continuation,)

    generator: Annotated[Model, Prompted(), TrainedBy("train_paraphraser")]
    task: str = DEFAULT
    prompt: str | None = None
    num_beams: Positive = 5
    num_return_sequences: Positive = 1
    max_new_tokens: Positive = 96
    max_length: Positive = 512

    def check(self) -> None:
        if not is_prompted(self.generator):
            check_search(self.num_beams, num_return_sequences=self.num_return_sequences)
        if self.prompt is not None:
            check_prompt(self.prompt, "prompt")
            if is_prompted(self.generator):
                raise ValueError(f"prompt={self.prompt!r}: {self.generator.name!r} is asked in words of ours: leave prompt out")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state([PROMPT], self.generator)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        engine = Continuation(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.num_return_sequences,
            max_new_tokens=self.max_new_tokens, max_length=self.max_length,
        )  # fmt: skip
        rewriting = rewriting_of(self.task)
        texts = [rewriting.readable(row) for row in rows]
        if is_prompted(self.generator):
            answers = self._ask(texts)
        else:
            prompt = self.prompt or pair_prompt(self.generator)
            answers = engine.run([prompt.replace("{}", text) for text in texts])
        return [rewrites(row, answer, engine, rewriting, self.name) for row, answer in zip(rows, answers, strict=True)]

    def _ask(self, texts: Sequence[str]) -> list[Any]:
        number = self.num_return_sequences
        values, max_tokens = [{"text": text} for text in texts], 32 + self.max_new_tokens * number
        return prompts.ask_texts(self.generator, PROMPT, values, number=number, max_tokens=max_tokens, seed=self.seed)


def check_prompt(prompt: str, name: str) -> None:
    """Raise `ValueError` for a prompt that has no place for the text."""
    if prompt.count("{}") != 1:
        raise ValueError(f"{name}={prompt!r} must hold {{}} once, where the text goes")


def _why_foreign(text: str, source: str) -> str | None:
    """Say so if a text is in another script than its source: a model that does not read the source writes something else."""
    new, old = script(text), script(source)
    return None if new == old else f"is mostly in {new.lower()} script, and its source in {old.lower()}"


def rewrites(
    row: Mapping[str, Any], answer: Any, engine: Continuation, rewriting: Rewriting, stage: str
) -> dict[str, Any] | Reject:
    """Return a stage's answer for a row whose text a model rewrote under the same label; a text with another negation, or in
    another script, is rejected.

    Args:
        answer: the engine's texts, best first; None if it could not read the row; `{"error": why}` of a language model.
    """
    if why := prompts.failure(answer):
        return settle([], why)
    if answer is None:
        return settle([], too_long(engine, rewriting.noun))
    candidates = []
    for hypothesis in answer:
        new = rewriting.rewritten(row, hypothesis["text"], row["label"], stage, log_probability(hypothesis))
        if not hypothesis["finished"]:
            new = reject(new, stage, f"is cut off at {engine.max_new_tokens} tokens")
        else:
            text, source = hypothesis["text"], rewriting.readable(row)
            named = f"the new {rewriting.noun}"
            problem = text_problem(text, named) or _why_foreign(text, source) or why_negated_otherwise(source, text)
            new = reject(new, stage, problem) if problem else new
        candidates.append(new)
    candidates = reject_repeats(candidates, [hypothesis["text"] for hypothesis in answer], stage)
    return settle(candidates, "the model wrote nothing")


def too_long(engine: Continuation, noun: str) -> str:
    """Say why a row has no answer."""
    return f"the {noun} is longer than the model reads (max_length={engine.max_length} tokens, or its positions)"


class Paraphrase(System):
    """Say a claim, sentence or text in other words, and keep its label.

    The paper that compares with it (Lee et al. 2021, section 3.2) names "a GPT-2 model fine-tuned on back-translated data". It
    refers to Krishna, Wieting and Iyyer (2020, "Reformulating Unsupervised Style Transfer as Paraphrase Generation", EMNLP). It
    names no checkpoint, search or lengths, so `generator` has no default. Krishna et al.'s GPT-2 is public, but reads marks and
    segments of its own, which a prompt alone does not give it.

    Args:
        generator: see `RewriteParaphrase`; the preset "offline" has a generator trained on claims of equal meaning.
        task: the task of the rows; called with rows, the system takes it from them.
        num_return_sequences: paraphrases to a row; the paper makes one pair of each.
        verifier: see `JudgeCandidates`; the paper checks nothing.
        verifier_length: tokens that the verifier reads.

    Its stages define its other settings.

    >>> Paraphrase.preset("offline").settings["generator"]["adapter"]
    'hfcf:paraphraser'
    """

    chain = (RewriteParaphrase, BoundStage(JudgeCandidates, names={"max_length": "verifier_length"}))
    presets: ClassVar = {
        "paper": {}, "hub": {"generator": chat_model()}, "offline": {"generator": Model("offline:t5", adapter="hfcf:paraphraser")},
    }  # fmt: skip
    by_task: ClassVar = {"relation": {"verifier_length": 128}}
    flips = False
    count_setting = "num_return_sequences"
