"""Masked-word replacement in sentences of relations: a share of the words outside the entities, and the relation stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.masked import MaskedLM
from hfcf.engines.relation import RelationClassifier
from hfcf.systems.baselines.masked_lm import BERT, check, filled_edits, masked_spans
from hfcf.tasks import sentence
from hfcf.tasks.check_relations import CheckRelations
from hfcf.tasks.relations import CANDIDATES


@dataclass(frozen=True, kw_only=True)
class RewriteRelationMaskedLm(Stage):
    """A candidate with a masked language model's words outside the entities, for every relation, "Other" too, which it keeps.

    Input columns: `tokens`, `head`, `tail`, `label`. Output column: `candidates`, one. The model reads the tokens joined by spaces,
    the entities among them; all chosen words are masked at once (`masked_spans`), and each place gets a draw of its own
    (`filled_edits`). A row is rejected in which no word may be masked, or for whose masks the model knows no other word.

    Args:
        model: a masked language model.
        share: the share of all the sentence's words, its entities' counted too, to mask; one word where it rounds to none.
        top: how many fills to draw from, of the first four times as many that the model gives.
        max_length: tokens of a sentence that the model reads; of a longer one, those around a mask.

    >>> RewriteRelationMaskedLm(model=Model("hfcf:mlm")).name
    'rewrite_relation_masked_lm'
    """

    inputs: ClassVar = {name: schema.TASKS["relation"][name] for name in ("tokens", "head", "tail", "label")}
    outputs: ClassVar = {"candidates": CANDIDATES}

    model: Model = BERT
    share: float = 0.3
    top: int = 10
    max_length: int = 128

    def __post_init__(self) -> None:
        check(self.share, self.top)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        draws, texts = [self.random(row["id"]) for row in rows], [sentence.text(row) for row in rows]
        places = [
            masked_spans(text, rng, share=self.share, protected=sentence.protected(row))
            for row, text, rng in zip(rows, texts, draws, strict=True)
        ]
        engine = MaskedLM(model=self.model, top=4 * self.top, max_length=self.max_length)
        asked = [[text, [list(span) for span in spans]] for text, spans in zip(texts, places, strict=True) if spans]
        answers = iter(engine.run(asked))
        results: list[dict[str, Any] | Reject] = []
        for row, text, spans, rng in zip(rows, texts, places, draws, strict=True):
            if not spans:
                results.append(settle([], "no word outside the entities may be masked"))
                continue
            made = filled_edits(text, spans, next(answers), rng, top=self.top)
            results.append(settle(sentence.reworded(row, made, self.name), "the model knows no other word for what was masked"))
        return results


@dataclass(frozen=True, kw_only=True)
class RelationMaskedLM(System):
    """Replace words around the entities by a masked language model's, a baseline of CCG that keeps relations.

    Stages, in order: `rewrite_relation_masked_lm`, `check_relations`. It is CCG's "BERT-MLM" (appendix A.2, after Jiao et al.):
    a random 30 % of a sentence's words, BERT-base, one new sentence of each.

    Deviations: 30 % of all words is how many are masked, but function words, modal verbs, negations, numbers and names are not
    among them, nor are the entities (`maskable`). CCG does not say how a word is drawn: here from the first ten, in proportion to
    their probability, and all masks are filled at once. A likely word need not mean the same, so a kept relation may be wrong.

    Args:
        model: see `RewriteRelationMaskedLm`.
        share: see there.
        top: see there.
        verifier: see `CheckRelations`; the baseline itself checks nothing.
        max_length: see `CheckRelations`.

    >>> RelationMaskedLM.preset("offline").model.name
    'hfcf:mlm'
    """

    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("rewrite_relation_masked_lm", "check_relations")
    presets: ClassVar = {"paper": {}, "offline": {"model": Model("hfcf:mlm")}}
    flips: ClassVar[bool] = False
    engines: ClassVar = (MaskedLM, RelationClassifier)

    model: Model = BERT
    share: float = 0.3
    top: int = 10
    verifier: Model | None = None
    max_length: int = 128

    def __post_init__(self) -> None:
        check(self.share, self.top)
        self._as_models("model", "verifier")

    @property
    def name(self) -> str:
        return "relation_masked_lm"

    @property
    def rewrite_relation_masked_lm(self) -> RewriteRelationMaskedLm:
        return RewriteRelationMaskedLm(**self._common(), model=self.model, share=self.share, top=self.top)

    @property
    def check_relations(self) -> CheckRelations:
        return CheckRelations(**self._common(), system=self.name, verifier=self.verifier, max_length=self.max_length)
