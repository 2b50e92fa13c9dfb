"""Back translation of sentences of relations: into another language and back, where both entities come back with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.continuation import Continuation
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines.back_translation import back_translated, check_translators
from hfcf.tasks import sentence
from hfcf.tasks.check_relations import CheckRelations
from hfcf.tasks.relations import CANDIDATES

TO_CHINESE, TO_ENGLISH = Model("Helsinki-NLP/opus-mt-en-zh"), Model("Helsinki-NLP/opus-mt-zh-en")
"""Translators of CCG's pair of languages; the first writes several kinds of Chinese and is told which."""


@dataclass(frozen=True, kw_only=True)
class RewriteRelationBackTranslation(Stage):
    """Translate the sentence into another language and back; the relation, "Other" too, stays.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `candidates`, one. What is translated is the tokens joined by
    spaces, brackets and quotes as people write them (`hfcf.tasks.sentence.plain`). A result is rejected in which an
    entity does
    not stand exactly once (whatever its capitals), or which has the two in the other order, for edits move no entity; so is one
    that repeats the sentence, has no letters or was cut off. A row is rejected when its translation is empty or cut off, or a text
    is longer than its model reads.

    Args:
        forward: see `hfcf.systems.baselines.back_translation.RewriteBackTranslation`, as for all that follow.
        backward: the model that translates back; it may be the same.
        forward_prompt: what the first is given, with {} for the sentence.
        backward_prompt: what the second is given.
        source: the sentences' language for models that take its code.
        pivot: the other language, likewise.
        num_beams: beams of either search.
        max_new_tokens: longest translation, in tokens.
        max_length: longest prompt, in tokens.

    Raises:
        ValueError: for a prompt without {}, and for one of `source` and `pivot` without the other.

    >>> RewriteRelationBackTranslation().forward_prompt
    '>>cmn_Hans<< {}'
    """

    inputs: ClassVar = {name: schema.TASKS["relation"][name] for name in ("tokens", "head", "tail", "label")}
    outputs: ClassVar = {"candidates": CANDIDATES}
    batch_size: ClassVar[int] = 64

    forward: Model = TO_CHINESE
    backward: Model = TO_ENGLISH
    forward_prompt: str = ">>cmn_Hans<< {}"
    backward_prompt: str = "{}"
    source: str | None = None
    pivot: str | None = None
    num_beams: int = 5
    max_new_tokens: int = 256
    max_length: int = 512

    def __post_init__(self) -> None:
        check_translators(self)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        return back_translated(self, rows, [" ".join(sentence.plain(row["tokens"])) for row in rows])


@dataclass(frozen=True, kw_only=True)
class RelationBackTranslation(System):
    """Back translation as augmentation of relations, a baseline of CCG: each sentence once more, its relation kept.

    Stages: `rewrite_relation_back_translation`, `check_relations`. CCG (appendix A.2; after Sennrich et al.) has English translated
    into Chinese and back by an online service (Baidu's); here Marian's models of the same pair do it, or any others.

    Deviation: the paper does not say what becomes of a sentence whose entities do not come back. Here they are translated with the
    rest, nothing hides them, and a result without both of them, once each and in the order of the source, is rejected.

    Args:
        forward: English to Chinese by default.
        backward: Chinese to English by default.
        forward_prompt: with {} for the sentence; the default tells Marian's model to write simplified Chinese.
        backward_prompt: likewise; the sentence alone.
        source: see `hfcf.systems.baselines.back_translation.RewriteBackTranslation`.
        pivot: see there.
        num_beams: see there.
        max_new_tokens: see there.
        max_length: see there.
        verifier: see `CheckRelations`; None checks nothing.
        verifier_length: pieces of a sentence that it reads.

    No translator installs from the package registry, so there is no preset "offline".

    >>> RelationBackTranslation(forward="t5-base", backward="mine", forward_prompt="translate English to German: {}").name
    'relation_back_translation'
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_relation_back_translation", "check_relations")
    presets: ClassVar = {"paper": {}}
    flips: ClassVar[bool] = False
    engines: ClassVar = (Continuation, RelationClassifier)

    forward: Model = TO_CHINESE
    backward: Model = TO_ENGLISH
    forward_prompt: str = ">>cmn_Hans<< {}"
    backward_prompt: str = "{}"
    source: str | None = None
    pivot: str | None = None
    num_beams: int = 5
    max_new_tokens: int = 256
    max_length: int = 512
    verifier: Model | None = None
    verifier_length: int = 128

    def __post_init__(self) -> None:
        self._as_models("forward", "backward", "verifier")
        _ = self.rewrite_relation_back_translation  # checks the other settings

    @property
    def name(self) -> str:
        return "relation_back_translation"

    @property
    def rewrite_relation_back_translation(self) -> RewriteRelationBackTranslation:
        return RewriteRelationBackTranslation(
            **self._common(), forward=self.forward, backward=self.backward, forward_prompt=self.forward_prompt,
            backward_prompt=self.backward_prompt, source=self.source, pivot=self.pivot, num_beams=self.num_beams,
            max_new_tokens=self.max_new_tokens, max_length=self.max_length,
        )  # fmt: skip

    @property
    def check_relations(self) -> CheckRelations:
        return CheckRelations(**self._common(), system=self.name, verifier=self.verifier, max_length=self.verifier_length)
