"""Paraphrases of claims by a neural paraphraser (a baseline of Lee et al. 2021, "CrossAug", CIKM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import reject, settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import plain_prompt
from hfcf.tasks import sentence
from hfcf.tasks.pairs import CANDIDATES, CheckPairs, rewritten


@dataclass(frozen=True, kw_only=True)
class RewriteParaphrase(Stage):
    """Say the claim in other words; the label stays.

    Input columns: `claim`, `evidence` (so that a row without any is rejected before a model is asked), `label`. Output column:
    `candidates`, best first. A paraphrase that repeats the claim, has no letters or was cut off is rejected; so is a row whose
    claim is longer than the model reads.

    Args:
        generator: an encoder-decoder or decoder-only paraphraser.
        prompt: what it is given, with {} for the claim: "paraphrase: {}" for many a T5. None gives an encoder-decoder the claim
            alone, and a decoder-only model the form in which this library trains one.
        num_beams: beams of the search.
        num_return_sequences: paraphrases to a claim.
        max_new_tokens: longest paraphrase, in tokens.
        max_length: longest prompt, in tokens.

    Raises:
        ValueError: for a prompt without {}.

    >>> RewriteParaphrase(generator=Model("t5-base"), prompt="paraphrase: {}").name
    'rewrite_paraphrase'
    """

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT}
    outputs: ClassVar = {"candidates": CANDIDATES}
    batch_size: ClassVar[int] = 64

    generator: Model
    prompt: str | None = None
    num_beams: int = 5
    num_return_sequences: int = 1
    max_new_tokens: int = 96
    max_length: int = 512

    def __post_init__(self) -> None:
        if self.prompt is not None:
            check_prompt(self.prompt, "prompt")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        engine = Continuation(
            model=self.generator,
            num_beams=self.num_beams,
            num_return_sequences=self.num_return_sequences,
            max_new_tokens=self.max_new_tokens,
            max_length=self.max_length,
        )
        prompt = self.prompt or plain_prompt(self.generator)
        answers = engine.run([prompt.replace("{}", row["claim"]) for row in rows])
        return [rewrites(row, answer, engine, self.name) for row, answer in zip(rows, answers, strict=True)]


def check_prompt(prompt: str, name: str) -> None:
    """Raise `ValueError` for a prompt that has no place for the claim.

    >>> check_prompt("paraphrase:", "prompt")
    Traceback (most recent call last):
    ValueError: prompt='paraphrase:' must hold {} once, where the claim goes
    """
    if prompt.count("{}") != 1:
        raise ValueError(f"{name}={prompt!r} must hold {{}} once, where the claim goes")


def rewrites(
    row: Mapping[str, Any], found: Sequence[Mapping[str, Any]] | None, engine: Continuation, stage: str
) -> dict[str, Any] | Reject:
    """A stage's answer for a row whose claim, or sentence, was written anew under the same label.

    Args:
        row: the source, of either task.
        found: what the engine answered.
        engine: which answered.
        stage: the name of the stage.
    """
    if found is None:
        return settle([], too_long(engine, row))
    write = partial(sentence.rewritten, row) if "tokens" in row else partial(rewritten, row["claim"])
    made = []
    for one in found:
        new = write(one["text"], row["label"], stage, scores=[{"name": "log-probability", "value": one["score"]}])
        if not one["finished"]:
            new = reject(new, stage, f"is cut off at {engine.max_new_tokens} tokens")
        elif problem := schema.text_problem(one["text"], f"the new {what(row)}"):
            new = reject(new, stage, problem)
        made.append(new)
    return settle(made, "the model wrote nothing")


def what(row: Mapping[str, Any]) -> str:
    """What a baseline rewrites in a row: its claim or its sentence."""
    return "sentence" if "tokens" in row else "claim"


def too_long(engine: Continuation, row: Mapping[str, Any]) -> str:
    """Why a row has no answer.

    >>> too_long(Continuation(model=Model("t5-base")), {"claim": "Rome is old."})
    'the claim is longer than the model reads (max_length=512 tokens, or its positions)'
    """
    return f"the {what(row)} is longer than the model reads (max_length={engine.max_length} tokens, or its positions)"


@dataclass(frozen=True, kw_only=True)
class Paraphrase(System):
    """Neural paraphrasing as augmentation: each row once more, its claim in other words, its label kept.

    Stages: `rewrite_paraphrase`, `check_pairs`. The paper that compares with it (Lee et al. 2021, section 3.2) names "a GPT-2 model
    fine-tuned on back-translated data": by its words that of Krishna, Wieting and Iyyer (2020, "Reformulating Unsupervised Style
    Transfer as Paraphrase Generation", EMNLP). It names no checkpoint, and neither search nor lengths, so `generator` has no
    default. The GPT-2 of Krishna et al. is public, but reads marks and segments of its own, which a prompt alone does not give it.

    Args:
        generator: see `RewriteParaphrase`; the preset "offline" has one trained on claims of equal meaning.
        prompt: see there.
        num_beams: see there.
        num_return_sequences: see there; the paper makes one pair of each.
        max_new_tokens: see there.
        max_length: see there.
        verifier: see `CheckPairs`; the paper checks nothing.
        verifier_length: tokens of claim and evidence that it reads.

    >>> Paraphrase.preset("offline").settings["generator"]["adapter"]
    'hfcf:paraphraser'
    """

    task: ClassVar[str] = "verification"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_paraphrase", "check_pairs")
    presets: ClassVar = {"paper": {}, "offline": {"generator": Model("offline:t5", adapter="hfcf:paraphraser")}}
    flips: ClassVar[bool] = False
    engines: ClassVar = (Continuation, Classifier)

    generator: Model
    prompt: str | None = None
    num_beams: int = 5
    num_return_sequences: int = 1
    max_new_tokens: int = 96
    max_length: int = 512
    verifier: Model | None = None
    verifier_length: int = 130

    def __post_init__(self) -> None:
        self._as_models("generator", "verifier")
        if self.prompt is not None:
            check_prompt(self.prompt, "prompt")

    @property
    def rewrite_paraphrase(self) -> RewriteParaphrase:
        return RewriteParaphrase(
            **self._common(), generator=self.generator, prompt=self.prompt, num_beams=self.num_beams,
            num_return_sequences=self.num_return_sequences, max_new_tokens=self.max_new_tokens, max_length=self.max_length,
        )  # fmt: skip

    @property
    def check_pairs(self) -> CheckPairs:
        return CheckPairs(**self._common(), system=self.name, verifier=self.verifier, max_length=self.verifier_length)
