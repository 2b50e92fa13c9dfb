"""Controlled editing: other causal terms, which go with a new relation (CCG, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from datasets import List

from hfcf.core import schema
from hfcf.core.candidates import Candidate, reject, settle
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.store import read_artifact
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.systems.ccg import editor
from hfcf.systems.ccg.terms import KnownTerms, most_frequent, normalised, order, term
from hfcf.tasks.relation import CANDIDATES, candidate, token_edits

OTHERS = 4
"""Of how many retrieved relations, the first, a new term must not be known; the released code's number."""


_TAKEN = "the term is one of another relation of the entities too"


class _Written(NamedTuple):
    """A term for a new relation, or the best that there was with the reason why it is none."""

    term: str
    score: float | None = None
    trouble: str | None = None


@dataclass(frozen=True, kw_only=True)
class EditRelation(Stage):
    """Replace a row's causal terms by some that give its entities each of the first new relations (section 3.4).

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `new_relations`. Output column: `candidates`, one for each of
    the first `top_k` new relations; one that no term was found for is rejected, and has the editor's best. A row is rejected when
    no candidate is left. The causal terms are taken out, and the new one stands where the first of them stood; entities stay.

    From the paper's released code is how a term is chosen of the editor's hypotheses, of which the text says nothing: the first
    that is a causal term of the new relation in the training rows, and neither of the old one nor of the other relations among
    the first four that were retrieved. Terms are compared without forms of "be", determiners and tense. Where the tail comes first,
    terms are known from such rows alone, for in the other order they would mean the opposite.

    Deviations from that code: determiners are those of a list (`hfcf.systems.ccg.terms`), since a tagger has nothing to go by in a
    fragment; letters' case does not count; the editor goes on where the second sentence's term begins, so that no beam is
    spent on copying the first entity; an encoder-decoder can be the editor too, and fills the blank; and a term with a word twice
    in a row is none, neither of a training row nor of the editor's, since words that are apart in a row ("of … of") are no text
    when they stand together ("of of").

    Args:
        editor: the model that writes terms, trained on the template (`hfcf.systems.ccg.editor`); None: the one that was fitted.
        num_beams: beams of the search.
        num_candidates: hypotheses that are read.
        top_k: K, how many of the new relations are written.
        closed: in the place of the search, rank the new relation's causal terms of the training rows by the editor's likelihood,
            and take the best that may be taken: what the search would find first if it had all beams and candidates that there
            are. A small editor that has seen a few dozen terms seldom has them among its first ten: in 6 of 24 rows of SemEval's
            2-shot sample, where with this 19 are written.
        use_editor: False is the ablation w/o Editor: the new relation's most frequent causal term is taken, unchecked.
        max_new_tokens: of a hypothesis: the term, and after the paper's template the second entity.
        fitted: the sha256 of the fitted file with the causal terms of each relation; `ccg.fit(ds)` sets it.

    >>> from hfcf.core.store import save_artifact
    >>> row = {"id": "1", "tokens": "eggs moved into buckets".split(), "label": "in", "status": None, "candidates": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    >>> row |= {"causal_terms": [1, 2], "new_relations": ["of"]}
    >>> terms = {"of": {"forward": {"taken from": 2}}}
    >>> stage = EditRelation(use_editor=False, fitted=save_artifact({"terms": terms, "editor": None}))
    >>> stage(row)["candidates"][0]["text"]
    'eggs taken from buckets'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {
        "tokens": schema.TOKENS, "head": schema.SPAN, "tail": schema.SPAN, "label": schema.TEXT,
        "causal_terms": List(schema.INT), "new_relations": List(schema.TEXT),
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"causal_terms": "ccg.identify_causal_terms", "new_relations": "ccg.expand_relation"}

    editor: Model | None = None
    num_beams: int = 100
    num_candidates: int = 10
    top_k: int = 1
    closed: bool = False
    use_editor: bool = True
    max_new_tokens: int = 24
    fitted: str | None = None

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise ValueError(f"top_k is at least 1 and was {self.top_k}")
        if not 1 <= self.num_candidates <= self.num_beams:
            raise ValueError(f"num_candidates={self.num_candidates}: it is at least 1, and num_beams={self.num_beams} at most")

    def check_fitted(self) -> None:
        if self.fitted is None:
            raise StageError(f"{self.name} reads the training set's causal terms and is not fitted: run ccg = ccg.fit(ds)")

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        known, fitted_editor = _fitted(self.fitted or "")
        requests = [(row, relation) for row in rows if row["causal_terms"] for relation in row["new_relations"][: self.top_k]]
        found = iter(self._edited(known, fitted_editor, requests) if self.use_editor else self._most_frequent(known, requests))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            if not row["causal_terms"]:
                results.append(settle([], "there are no causal terms"))
                continue
            made = [self._candidate(row, relation, next(found)) for relation in row["new_relations"][: self.top_k]]
            results.append(settle(made, "there is no new relation"))
        return results

    def _candidate(self, row: Mapping[str, Any], relation: str, written: _Written) -> Candidate:
        if not written.term:
            return reject(candidate(row, relation, []), self.name, written.trouble or "")
        scores = [] if written.score is None else [{"name": "editor", "value": written.score}]
        made = candidate(row, relation, token_edits(row["tokens"], row["causal_terms"], written.term), scores)
        return reject(made, self.name, written.trouble) if written.trouble else made

    def _most_frequent(self, known: KnownTerms, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[_Written]:
        found = []
        for row, relation in requests:
            text = most_frequent(known.counts, relation, order(row))
            same = "the term stays the same" if text == term(row) else None
            found.append(_Written(text, trouble=same) if text else _Written("", trouble="the new relation has no causal term"))
        return found

    def _edited(
        self, known: KnownTerms, fitted_editor: str | None, requests: Sequence[tuple[Mapping[str, Any], str]]
    ) -> list[_Written]:
        if not requests:
            return []
        model = self.editor or editor.fitted_editor(self.name, fitted_editor)
        if self.closed:
            return self._likeliest(known, model, requests)
        engine = Continuation(
            model=model, num_beams=self.num_beams, num_return_sequences=self.num_candidates, max_new_tokens=self.max_new_tokens
        )
        answers = engine.run([editor.prompt(row, relation, model) for row, relation in requests])
        return [_choose(known, row, relation, answer) for (row, relation), answer in zip(requests, answers, strict=True)]

    def _likeliest(self, known: KnownTerms, model: Model, requests: Sequence[tuple[Mapping[str, Any], str]]) -> list[_Written]:
        """Of each the admissible known term that the editor finds likeliest."""
        texts = [_admissible(known, row, relation) for row, relation in requests]
        engine = Likelihood(model=model)
        scores = iter(
            engine.run(
                [
                    [editor.prompt(row, relation, model), editor.answer(row, text, model)]
                    for (row, relation), group in zip(requests, texts, strict=True)
                    for text in group
                ]
            )
        )
        found = []
        for (row, relation), group in zip(requests, texts, strict=True):
            ranked = sorted((-score, text) for text in group if (score := next(scores)) is not None)
            if ranked:
                found.append(_Written(ranked[0][1], -ranked[0][0]))
            elif group:
                found.append(_Written("", trouble="the entities are longer than the editor reads"))
            else:
                none = not known.of(relation, order(row))
                found.append(_Written("", trouble="the new relation has no causal term" if none else _TAKEN))
        return found


def _admissible(known: KnownTerms, row: Mapping[str, Any], relation: str) -> list[str]:
    """The new relation's known terms that no relation has which it must be told from."""
    taken = _taken(known, row, relation)
    return [text for equal, text in known.texts(relation, order(row)).items() if equal not in taken]


def _taken(known: KnownTerms, row: Mapping[str, Any], relation: str) -> set[str]:
    others = {row["label"], *row["new_relations"][:OTHERS]} - {relation}
    return known.any_of(sorted(others), order(row)) | {normalised(term(row))}


def _choose(known: KnownTerms, row: Mapping[str, Any], relation: str, answer: Sequence[Mapping[str, Any]] | None) -> _Written:
    """The first hypothesis that is a causal term of the new relation, and of none that it must be told from."""
    if answer is None:
        return _Written("", trouble="the entities are longer than the editor reads")
    written = [_Written(text, score) for text, score in editor.hypotheses(answer, row)]
    if not written:
        return _Written("", trouble="the editor wrote no term")
    fitting = [one for one in written if normalised(one.term) in known.of(relation, order(row))]
    if not fitting:
        return written[0]._replace(trouble="the editor wrote no causal term of the new relation")
    taken = _taken(known, row, relation)
    return next((one for one in fitting if normalised(one.term) not in taken), fitting[0]._replace(trouble=_TAKEN))


@lru_cache(maxsize=4)
def _fitted(sha: str) -> tuple[KnownTerms, str | None]:
    """The causal terms and the editor's digest in a fitted file, read once in a process."""
    content = read_artifact(sha, "run ccg.fit(ds) again")
    return KnownTerms(content["terms"]), content["editor"]
