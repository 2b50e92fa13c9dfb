"""Back translation: a text into another language and back (Sennrich et al. 2016; as augmentation Yu et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf.core.bound_stage import BoundStage
from hfcf.core.candidates import settle
from hfcf.core.model import Model
from hfcf.core.public_models import TRANSLATOR, pinned
from hfcf.core.settings import NeedsWeights, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines.continuation import Continuation
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines.paraphrase import check_prompt, rewrites, too_long
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import Rewriting, candidate_columns, model_columns, rewriting_of

TO_GERMAN, TO_ENGLISH = Model("Helsinki-NLP/opus-mt-en-de"), Model("Helsinki-NLP/opus-mt-de-en")
"""Translators of one direction each, of 74 M weights."""
TO_CHINESE, FROM_CHINESE = Model("Helsinki-NLP/opus-mt-en-zh"), Model("Helsinki-NLP/opus-mt-zh-en")
"""Translators of CCG's pair of languages; the first writes several kinds of Chinese, and its prompt names the kind."""

_WEIGHTS = NeedsWeights("the baseline paraphrase asks a language model for other words")
_TRANSLATION = "the translation into the other language"


@dataclass(frozen=True, kw_only=True)
class RewriteBackTranslation(Stage):
    """Translate a text into another language and back, under its label.

    Input columns: the task's texts (so that a broken row is rejected before a model runs) and `label`. Output column:
    `candidates`, one candidate. A result that repeats its source, has no letters or was cut off is rejected. A row is rejected
    when its translation is empty or cut off, or a text is longer than its model reads.

    The tokens of a sentence are translated joined by spaces, brackets and quotes as people write them. A result is rejected unless
    it has each entity exactly once (whatever its capitals), and both in their order, for edits move no entity.

    Args:
        forward: the model from the rows' language: Marian, or any encoder-decoder that a prompt or a language code tells what
            to do.
        backward: the model that translates back; it may be the same, which is then loaded once.
        task: the task of the rows.
        forward_prompt: what the first is given, with {} for the text: "translate English to German: {}" for T5, ">>fra<< {}" for
            a Marian of many languages.
        backward_prompt: what the second is given.
        source: the rows' language for NLLB ("eng_Latn"), M2M-100 ("en") and the like; None for models that take no code.
        pivot: the other language, in the same form.
        num_beams: beams of either search.
        max_new_tokens: longest translation, in tokens.
        max_length: longest prompt, in tokens.

    >>> RewriteBackTranslation(forward=Model("t5-base"), forward_prompt="translate English to German: {}").num_beams
    5
    """

    VERSION: ClassVar[str] = "3"
    inputs: ClassVar[Any] = TaskColumns(model_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)
    batch_size: ClassVar[int] = 64

    engines: ClassVar = (Continuation,)

    forward: Annotated[Model, _WEIGHTS] = TO_GERMAN
    backward: Annotated[Model, _WEIGHTS] = TO_ENGLISH
    task: str = DEFAULT
    forward_prompt: str = "{}"
    backward_prompt: str = "{}"
    source: str | None = None
    pivot: str | None = None
    num_beams: Positive = 5
    max_new_tokens: Positive = 256
    max_length: Positive = 512

    def check(self) -> None:
        check_prompt(self.forward_prompt, "forward_prompt")
        check_prompt(self.backward_prompt, "backward_prompt")
        if (self.source is None) != (self.pivot is None):
            raise ValueError(f"source={self.source!r} and pivot={self.pivot!r}: give both languages or neither")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        rewriting = rewriting_of(self.task)
        out, back = self._engine(self.forward, self.source, self.pivot), self._engine(self.backward, self.pivot, self.source)
        translations = out.run([self.forward_prompt.replace("{}", rewriting.readable(row)) for row in rows])
        problems = [_problem(answer, out, rewriting) for answer in translations]
        foreign = [answer[0]["text"] for answer, problem in zip(translations, problems, strict=True) if problem is None]
        answers = iter(back.run([self.backward_prompt.replace("{}", text) for text in foreign]))
        results: list[dict[str, Any] | Reject] = []
        for row, problem in zip(rows, problems, strict=True):
            if problem is None and (answer := next(answers)) is not None:
                results.append(rewrites(row, answer, back, rewriting, self.name))
            else:
                results.append(settle([], problem or f"{_TRANSLATION} is longer than the second model reads"))
        return results

    def _engine(self, model: Model, source: str | None, target: str | None) -> Continuation:
        return Continuation(
            model=model, num_beams=self.num_beams, max_new_tokens=self.max_new_tokens, max_length=self.max_length, source=source,
            target=target,
        )  # fmt: skip


def _problem(answer: Sequence[Mapping[str, Any]] | None, engine: Continuation, rewriting: Rewriting) -> str | None:
    """Say why a translation can't be translated back, or None."""
    if answer is None:
        return too_long(engine, rewriting.noun)
    if not answer:
        return f"{_TRANSLATION} is empty"
    return None if answer[0]["finished"] else f"{_TRANSLATION} is cut off at {engine.max_new_tokens} tokens"


HUB: dict[str, Any] = {
    "forward": pinned(TRANSLATOR), "backward": pinned(TRANSLATOR), "forward_prompt": "<2de> {}", "backward_prompt": "<2en> {}",
}  # fmt: skip
"""One public translator of both directions, which a prefix gives the language to write; the paper's have no safetensors weights."""


class BackTranslation(System):
    """Translate a claim, sentence or text into another language and back, and keep its label.

    Sennrich, Haddow and Birch (2016, "Improving Neural Machine Translation Models with Monolingual Data", ACL) translate back
    to train translators. Yu et al. (2018, "QANet", ICLR) translate there and back to rewrite training texts. CrossAug (Lee et
    al. 2021, section 3.6) calls its paraphrasing by this name; see `Paraphrase`.

    Deviations: the default models are not theirs, and Yu et al. draw from several hypotheses where this keeps the best. CCG
    (appendix A.2) has English translated into Chinese and back by an online service; here `preset("paper", task="relation")` has
    Marian's models of that pair. A sentence whose entities do not come back is rejected here; CCG does not mention the case.

    With the package sacremoses installed, Marian's tokenizer also normalises punctuation: install it always or never.

    Args:
        task: the task of the rows; called with rows, the system takes it from them.
        verifier: see `JudgeCandidates`; None checks nothing.
        verifier_length: tokens that the verifier reads.

    Its stages define its other settings.

    No translator installs from the package registry, so there is no preset "offline".

    >>> BackTranslation(forward="facebook/nllb-200-distilled-600M", backward="facebook/nllb-200-distilled-600M",
    ...                 source="eng_Latn", pivot="deu_Latn").name
    'back_translation'
    """

    name = "back_translation"
    chain = (RewriteBackTranslation, BoundStage(JudgeCandidates, names={"max_length": "verifier_length"}))
    presets: ClassVar = {"paper": {}, "hub": HUB}
    by_task: ClassVar = {
        "relation": {
            "forward": TO_CHINESE, "backward": FROM_CHINESE, "forward_prompt": ">>cmn_Hans<< {}", "verifier_length": 128,
        }
    }  # fmt: skip
    flips = False
