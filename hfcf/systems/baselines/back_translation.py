"""Back translation: a claim into another language and back (Sennrich et al. 2016; as augmentation Yu et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.systems.baselines.paraphrase import check_prompt, rewrites, too_long
from hfcf.tasks.pairs import CANDIDATES, CheckPairs

TO_GERMAN, TO_ENGLISH = Model("Helsinki-NLP/opus-mt-en-de"), Model("Helsinki-NLP/opus-mt-de-en")
"""Translators of one direction each, of 74 M weights."""


@dataclass(frozen=True, kw_only=True)
class RewriteBackTranslation(Stage):
    """Translate the claim into another language and back; the label stays.

    Input columns: `claim`, `evidence` (so that a row without any is rejected before a model is asked), `label`. Output column:
    `candidates`, one. A result that repeats the claim, has no letters or was cut off is rejected. A row is rejected when its
    translation is empty or cut off, or a text is longer than its model reads.

    Args:
        forward: the model from the claims' language: Marian, or any encoder-decoder that a prompt or a language code tells what
            to do.
        backward: the model that translates back; it may be the same, which is then loaded once.
        forward_prompt: what the first is given, with {} for the claim: "translate English to German: {}" for T5, ">>fra<< {}" for
            a Marian of many languages.
        backward_prompt: what the second is given.
        source: the claims' language for NLLB ("eng_Latn"), M2M-100 ("en") and the like; None for models that take no code.
        pivot: the other language, likewise.
        num_beams: beams of either search.
        max_new_tokens: longest translation, in tokens.
        max_length: longest prompt, in tokens.

    Raises:
        ValueError: for a prompt without {}, and for one of `source` and `pivot` without the other.

    >>> RewriteBackTranslation(forward=Model("t5-base"), forward_prompt="translate English to German: {}").num_beams
    5
    """

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "label": schema.TEXT}
    outputs: ClassVar = {"candidates": CANDIDATES}
    batch_size: ClassVar[int] = 64

    forward: Model = TO_GERMAN
    backward: Model = TO_ENGLISH
    forward_prompt: str = "{}"
    backward_prompt: str = "{}"
    source: str | None = None
    pivot: str | None = None
    num_beams: int = 5
    max_new_tokens: int = 256
    max_length: int = 512

    def __post_init__(self) -> None:
        check_translators(self)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        return back_translated(self, rows, [row["claim"] for row in rows])


def check_translators(stage: Any) -> None:
    """Raise `ValueError` on prompts and languages of a stage, or system, that mean nothing."""
    check_prompt(stage.forward_prompt, "forward_prompt")
    check_prompt(stage.backward_prompt, "backward_prompt")
    if (stage.source is None) != (stage.pivot is None):
        raise ValueError(f"source={stage.source!r} and pivot={stage.pivot!r}: give both languages or neither")


def back_translated(stage: Any, rows: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> list[dict[str, Any] | Reject]:
    """The answers of a stage that translates a text of each row into another language and back.

    Args:
        stage: with the settings of `RewriteBackTranslation`.
        rows: of either task.
        texts: of each, what is translated.
    """
    there = _engine(stage, stage.forward, stage.source, stage.pivot)
    back = _engine(stage, stage.backward, stage.pivot, stage.source)
    found = there.run([stage.forward_prompt.replace("{}", text) for text in texts])
    faults = [_fault(row, answer, there) for row, answer in zip(rows, found, strict=True)]
    foreign = [answer[0]["text"] for answer, fault in zip(found, faults, strict=True) if fault is None]
    answers = iter(back.run([stage.backward_prompt.replace("{}", text) for text in foreign]))
    return [
        settle([], fault) if fault else _judge(row, next(answers), back, stage.name)
        for row, fault in zip(rows, faults, strict=True)
    ]


def _engine(stage: Any, model: Model, source: str | None, target: str | None) -> Continuation:
    return Continuation(
        model=model, num_beams=stage.num_beams, max_new_tokens=stage.max_new_tokens, max_length=stage.max_length, source=source,
        target=target,
    )  # fmt: skip


def _fault(row: Mapping[str, Any], found: Sequence[Mapping[str, Any]] | None, engine: Continuation) -> str | None:
    """Why a translation into the other language can't be translated back."""
    if found is None:
        return too_long(engine, row)
    if not found:
        return "the translation into the other language is empty"
    if not found[0]["finished"]:
        return f"the translation into the other language is cut off at {engine.max_new_tokens} tokens"
    return None


def _judge(
    row: Mapping[str, Any], found: Sequence[Mapping[str, Any]] | None, engine: Continuation, stage: str
) -> dict[str, Any] | Reject:
    if found is None:
        return settle([], "the translation into the other language is longer than the second model reads")
    return rewrites(row, found, engine, stage)


@dataclass(frozen=True, kw_only=True)
class BackTranslation(System):
    """Back translation as augmentation: each row once more, its claim translated there and back, its label kept.

    Stages: `rewrite_back_translation`, `check_pairs`. Sennrich, Haddow and Birch (2016, "Improving Neural Machine Translation
    Models with Monolingual Data", ACL) translate back to train translators; Yu et al. (2018, "QANet", ICLR) translate there and
    back to rewrite training texts. CrossAug (Lee et al. 2021, section 3.6) calls its paraphrasing by this name; see `Paraphrase`.
    None of them used the models that are the defaults here, and Yu et al. draw from several hypotheses where this keeps the best.
    With the package sacremoses installed, Marian's tokenizer also normalises punctuation: keep to one of the two.

    Args:
        forward: see `RewriteBackTranslation`; English to German by default.
        backward: see there; German to English by default.
        forward_prompt: see there.
        backward_prompt: see there.
        source: see there.
        pivot: see there.
        num_beams: see there.
        max_new_tokens: see there.
        max_length: see there.
        verifier: see `CheckPairs`; None checks nothing.
        verifier_length: tokens of claim and evidence that it reads.

    No translator installs from the package registry, so there is no preset "offline".

    >>> BackTranslation(forward="facebook/nllb-200-distilled-600M", backward="facebook/nllb-200-distilled-600M",
    ...                 source="eng_Latn", pivot="deu_Latn").name
    'back_translation'
    """

    task: ClassVar[str] = "verification"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_back_translation", "check_pairs")
    presets: ClassVar = {"paper": {}}
    engines: ClassVar = (Continuation, Classifier)
    flips: ClassVar[bool] = False

    forward: Model = TO_GERMAN
    backward: Model = TO_ENGLISH
    forward_prompt: str = "{}"
    backward_prompt: str = "{}"
    source: str | None = None
    pivot: str | None = None
    num_beams: int = 5
    max_new_tokens: int = 256
    max_length: int = 512
    verifier: Model | None = None
    verifier_length: int = 130

    def __post_init__(self) -> None:
        self._as_models("forward", "backward", "verifier")
        _ = self.rewrite_back_translation  # checks the other settings

    @property
    def name(self) -> str:
        return "back_translation"

    @property
    def rewrite_back_translation(self) -> RewriteBackTranslation:
        return RewriteBackTranslation(
            **self._common(), forward=self.forward, backward=self.backward, forward_prompt=self.forward_prompt,
            backward_prompt=self.backward_prompt, source=self.source, pivot=self.pivot, num_beams=self.num_beams,
            max_new_tokens=self.max_new_tokens, max_length=self.max_length,
        )  # fmt: skip

    @property
    def check_pairs(self) -> CheckPairs:
        return CheckPairs(**self._common(), system=self.name, verifier=self.verifier, max_length=self.verifier_length)
