"""Controlled editing: other causal terms, which go with a new relation (CCG, section 3.4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

from datasets import Dataset, IterableDataset, List

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.candidates import Candidate, reject, scored, settle, undecided
from hfcf.core.model import Model, is_prompted
from hfcf.core.settings import Loss, NonNegative, Positive, Prompted, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.parser import Parser
from hfcf.engines.perplexity import Branches
from hfcf.prompts.edits import LONGEST_OLD, NEW_WORDS, sample, why_from_example
from hfcf.systems.ccg import editor
from hfcf.systems.ccg.choose_phrase import PhraseChooser, RowPhrases, collect_phrases, write_candidates
from hfcf.systems.ccg.editor import EDITOR, EditorTraining
from hfcf.systems.ccg.indicator import COLUMNS, training_rows
from hfcf.systems.ccg.phrases import Phrases, PhrasesSetting, inverse, with_phrases, without_phrases
from hfcf.systems.ccg.predicate import find_gap, why_broken
from hfcf.systems.ccg.terms import KnownTerms, most_frequent, normalised, order, term
from hfcf.tasks.relation import CANDIDATES, OTHER, TASK, candidate, entities, state_roles, token_edits
from hfcf.tasks.rewriting import plain, split
from hfcf.text.slips import why_clumsy
from hfcf.training.model_cache import check_full_tuning, ensure_steps

log = logging.getLogger(__name__)

PROMPT = "relation_terms"
SHOTS, MAX_SHOWN = 3, 4
"""Worked examples of the prompt, and the known terms of a relation that a language model is shown, the commonest first."""
LONGEST = 64
"""Tokens of a language model's answer."""
OTHERS = 4
"""A new term must not be known of any of the first so many retrieved relations; the released code's number."""

Row = Mapping[str, Any]
Span = tuple[int, int]
Request = tuple[Mapping[str, Any], str]
"""A row, and the relation to write."""

_OF_ANOTHER = "the term is one of another relation of the entities too"
_NO_TERM = "the new relation has no causal term"
_UNFLIPPED = "no word changes the indicator's prediction, and without phrases no others are edited"
_TOO_LONG = "the entities are longer than the editor reads"


class _Written(NamedTuple):
    """A term for a new relation; with `trouble`, the editor's best and why it was not taken."""

    term: str
    score: float | None = None
    trouble: str | None = None


@dataclass(frozen=True, kw_only=True)
class EditRelation(Stage):
    """Replace causal terms by a term of each new relation (section 3.4).

    Input columns: `tokens`, `head`, `tail`, `label`, `causal_terms`, `new_relations`, and `preliminary_terms` where it exists.
    Output column: `candidates`, one for each of the first `top_k` new relations. A candidate without a term is rejected, with the
    editor's best. A row is rejected when no candidate is left. The new term replaces the first causal term, and further causal
    terms are removed; entities stay.

    As in the released code, the first hypothesis is taken that is a causal term of the new relation in the training rows. It must
    not be a term of the old relation, nor of the other relations among the first four retrieved. Terms are compared without forms
    of "be", determiners and tense. Where the tail comes first, only terms of such rows count: in the other order they mean the
    opposite.

    Deviations from that code: determiners come from a list (`hfcf.systems.ccg.terms`), and case does not count. The editor
    continues where the second sentence's term begins, so that no beam copies the first entity. An encoder-decoder can also be the
    editor. A term that repeats a word is ignored: words that are apart in a row ("of … of") are not a term together ("of of").

    It learns the causal terms of each relation, and trains the editor unless an editor is given.

    With `phrases`, which the paper does not have, a relation's phrases are also known terms. With a `language_model` besides, no
    editor is trained or used, and another rule replaces the paper's. The whole predicate between the entities gives way
    (`hfcf.systems.ccg.predicate`), and phrases are inflected for their position. The phrase that makes most sense is taken, of all
    phrases of the first `relations` new relations (`hfcf.systems.ccg.choose_phrase`). Its sentence loses least against the source,
    counted without what the phrase itself costs after any noun. A phrase is rejected if it breaks the sentence by the `tagger`'s
    parse, or loses more than `max_loss`. The source's relation in the opposite direction is never taken, nor a relation whose
    kinds do not admit the entities. If `phrases` has no relation of the rows, no model chooses, and the paper's rule holds. Then
    rows in which no word flipped are rejected.

    Args:
        editor: the model that writes terms, trained on the template (`hfcf.systems.ccg.editor`); None trains it on the rows. Or
            "llm:NAME" or "chat:NAME": a language model names a run of causal terms, one of the first new relations that the rows
            retrieved, and the words in their place, `num_candidates` times. With `phrases` it reads some for each relation.
        editor_training: how the editor is trained; the paper's is GPT-2 base.
        min_steps: of its training, see `IdentifyCausalTerms`.
        num_beams: beams of the search.
        num_candidates: hypotheses that are read.
        top_k: K, how many of the new relations are written.
        closed: take the known term that the editor finds likeliest, instead of a search. A small editor seldom has such a term
            among its first ten: for 6 of 24 rows of SemEval's 2-shot sample, where this gives 19.
        use_editor: let the editor write a term, or take the most frequent one, unchecked, as in the ablation w/o Editor.
        max_new_tokens: tokens of a hypothesis: the term, and after the paper's template the second entity.
        phrases: phrases that express relations, {relation: [phrase, …]}, a file of them, or "semeval", "scierc_ace" or "all"; see
            `hfcf.systems.ccg.phrases.read_phrases`.
        language_model: a decoder-only language model that chooses among phrases.
        tagger: a parser with spaCy's dependencies, which the choice among phrases needs. A language model as editor then replaces
            the predicate between the entities, and its sentence must still be whole (`hfcf.systems.ccg.predicate`).
        max_phrases: how many phrases of each relation are tried for a row. The row's id draws them, so that no phrase is in most
            rows of a relation.
        max_loss: how much log-likelihood (nats) a new sentence may lose against its source; one that loses more is rejected.

    >>> row = {"id": "1", "tokens": "eggs moved into buckets".split(), "label": "in", "status": None, "candidates": None}
    >>> row |= {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    >>> row |= {"causal_terms": [1, 2], "new_relations": ["of"]}
    >>> other = {**row, "id": "2", "tokens": "eggs taken from buckets".split(), "label": "of"}
    >>> EditRelation(use_editor=False).fit(Dataset.from_list([row, other]))(row)["candidates"][0]["text"]
    'eggs taken from buckets'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "causal_terms": List(schema.INT), "new_relations": List(schema.TEXT)}
    outputs: ClassVar = {"candidates": CANDIDATES}
    optional: ClassVar = {"preliminary_terms": List(schema.INT)}
    produced_by: ClassVar = {"causal_terms": "ccg.identify_causal_terms", "new_relations": "ccg.expand_relation"}

    engines: ClassVar = (Continuation, Likelihood, Branches, Parser)

    editor: Annotated[Model, Prompted()] | None = None
    editor_training: EditorTraining = EDITOR
    min_steps: NonNegative = 0
    num_beams: Positive = 100
    num_candidates: Positive = 10
    top_k: Positive = 1
    closed: bool = False
    use_editor: bool = True
    max_new_tokens: Positive = 24
    phrases: PhrasesSetting = None
    language_model: Model | None = None
    tagger: Parser | None = None
    max_phrases: Positive = 4
    max_loss: Loss = 0.0

    def check(self) -> None:
        check_full_tuning("editor_training", self.editor_training)
        if self.editor is None or not is_prompted(self.editor):
            check_search(self.num_beams, num_candidates=self.num_candidates)
        if self.chooses_phrases and self.tagger is None:
            raise ValueError(
                "phrases with a language_model need a tagger, which finds the predicate between the entities: "
                "set tagger={backend: spacy, model: offline:spacy}"
            )

    @property
    def chooses_phrases(self) -> bool:
        """Whether the language model chooses among phrases."""
        remote = self.editor is not None and is_prompted(self.editor)
        return self.phrases is not None and self.language_model is not None and self.use_editor and not remote

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return (*COLUMNS, "causal_terms")

    def learn(self, ds: Dataset | IterableDataset) -> str:
        def train(rows: list[dict[str, Any]]) -> str:
            hp = ensure_steps(replace(self.editor_training, seed=self.seed), self.min_steps, len(rows))
            return editor.train_editor(rows, hp, max_target=self.max_new_tokens)

        flips = [column for column in self.optional if column in (ds.column_names or [])]
        every = training_rows(ds, "causal_terms", *flips)
        rows = [row for row in every if row["causal_terms"] and _rests_on_them(row)]
        examples = [row for row in rows if (row.get("status") or {}).get("accepted") is not False]
        if self.phrases is not None and self.use_editor and (why := without_phrases(_labels(every), self.phrases)):
            log.warning("%s: %s", self.name, why)
        chooses = self.phrases is not None and self.chooses_phrases and not _labels(every).isdisjoint(self.phrases.relations)
        trains = self.use_editor and self.editor is None and not chooses
        content = editor.learn_editor(examples, train if trains else None)
        if chooses:
            assert self.tagger is not None
            assert self.phrases is not None
            content["phrases"] = collect_phrases(examples, self.tagger, self.phrases)
        return save_artifact(content)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state([PROMPT], self.editor)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        terms, fitted_editor, row_phrases = _fitted(self.fitted or "", self.phrases)
        if row_phrases is not None:
            return self._write_phrases(rows, row_phrases)
        if self.use_editor and self.editor is not None and is_prompted(self.editor):
            return self._ask_editor(self.editor, terms, rows)
        edited = [bool(row["causal_terms"]) and _rests_on_them(row) for row in rows]
        requests = [
            (row, relation)
            for row, edits_it in zip(rows, edited, strict=True)
            if edits_it
            for relation in row["new_relations"][: self.top_k]
        ]
        written = iter(self._edited(terms, fitted_editor, requests) if self.use_editor else _most_frequent(terms, requests))
        results: list[dict[str, Any] | Reject] = []
        for row, edits_it in zip(rows, edited, strict=True):
            if not edits_it:
                results.append(settle([], _UNFLIPPED if row["causal_terms"] else "there are no causal terms"))
                continue
            candidates = [self._candidate(row, relation, next(written)) for relation in row["new_relations"][: self.top_k]]
            results.append(settle(candidates, "there is no new relation"))
        return results

    def _write_phrases(self, rows: list[dict[str, Any]], row_phrases: RowPhrases) -> list[dict[str, Any] | Reject]:
        assert self.language_model is not None
        assert self.tagger is not None
        assert self.phrases is not None
        chooser = PhraseChooser(
            model=self.language_model, parser=self.tagger, phrases=self.phrases, row_phrases=row_phrases,
            max_phrases=self.max_phrases, max_loss=self.max_loss, random=self.random,
        )  # fmt: skip
        requests = [(row, row["new_relations"] if row["causal_terms"] else []) for row in rows]
        results: list[dict[str, Any] | Reject] = []
        for row, answer in zip(rows, chooser.options(requests), strict=True):
            reason = answer if isinstance(answer, str) else "no new relation has a phrase that fits"
            candidates = []
            if not isinstance(answer, str):
                candidates = write_candidates(row, *answer, self.top_k, self.max_loss, self.name)
            results.append(settle(candidates, reason if row["causal_terms"] else "there are no causal terms"))
        return results

    def _candidate(self, row: Mapping[str, Any], relation: str, written: _Written) -> Candidate:
        if not written.term:
            return reject(candidate(row, relation, []), self.name, written.trouble or "")
        scores = [] if written.score is None else [scored("editor", written.score)]
        new = candidate(row, relation, token_edits(row["tokens"], row["causal_terms"], written.term), scores)
        return reject(new, self.name, written.trouble) if written.trouble else new

    def _edited(self, terms: KnownTerms, fitted_editor: str | None, requests: Sequence[Request]) -> list[_Written]:
        if not requests:
            return []
        model = self.editor or editor.fitted_editor(self.name, fitted_editor)
        if self.closed:
            return _likeliest(terms, model, requests)
        answers = editor.engine_of(self, model).run([editor.prompt_text(row, relation, model) for row, relation in requests])
        return [_choose(terms, row, relation, answer) for (row, relation), answer in zip(requests, answers, strict=True)]

    def _ask_editor(self, model: Model, terms: KnownTerms, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        """Ask a language model which words of each row to replace, by which, and for which of its first new relations."""
        parses = self._parse([row["tokens"] for row in rows])
        places = [_editable(row, parse) for row, parse in zip(rows, parses, strict=True)]
        spans = {i: place for i, place in enumerate(places) if not isinstance(place, str)}
        asked = [*spans]
        values = [self._values(rows[i], terms) for i in asked]
        limits: list[dict[str, Any]] = [
            {
                "relation": {"enum": [each["name"] for each in row_values["relations"]]},
                "old": {"enum": [" ".join(plain(rows[i]["tokens"])[start:end]) for start, end in spans[i]]},
                "new": NEW_WORDS,
            }
            for i, row_values in zip(asked, values, strict=True)
        ]  # fmt: skip
        answers = sample(model, PROMPT, values, limits, self.num_candidates, shots=SHOTS, max_tokens=LONGEST, seed=self.seed)
        written = dict(zip(asked, zip(values, answers, strict=True), strict=True))
        results: list[dict[str, Any] | Reject] = []
        for i, (row, place) in enumerate(zip(rows, places, strict=True)):
            if isinstance(place, str):
                results.append(settle([], place))
                continue
            row_values, row_answers = written[i]
            valid = {tuple(answer["answer"].items()): answer["answer"] for answer in row_answers if "error" not in answer}
            candidates = [self._candidate_of(model, row, place, row_values, answer) for answer in valid.values()]
            candidates = self._unbroken(row, parses[i], place, candidates)
            results.append(settle(candidates, prompts.failure(row_answers[0]) or "there is no candidate"))
        return results

    def _parse(self, sentences: Sequence[Sequence[str]]) -> Sequence[Any]:
        return [None] * len(sentences) if self.tagger is None else self.tagger.run([list(tokens) for tokens in sentences])

    def _values(self, row: Mapping[str, Any], terms: KnownTerms) -> dict[str, Any]:
        tokens = plain(row["tokens"])
        head, tail = entities({**row, "tokens": tokens})
        known = [
            {"name": state_roles(name, head, tail), "terms": [*terms.texts(name, order(row)).values()][:MAX_SHOWN]}
            for name in _offered(row)
        ]
        return {"sentence": " ".join(tokens), "relation": state_roles(row["label"], head, tail), "relations": known}

    def _candidate_of(
        self, model: Model, row: Mapping[str, Any], place: Sequence[Span], values: Mapping[str, Any], answer: Mapping[str, str]
    ) -> Candidate:
        """Make the candidate of a language model's answer."""
        tokens, old = plain(row["tokens"]), answer["old"].split()
        spans = [(start, end) for start, end in place if tokens[start:end] == old]
        named = [each["name"] for each in values["relations"]]
        relation = _offered(row)[named.index(answer["relation"])]
        text = " ".join(split(answer["new"], row["tokens"]))
        if not spans or not text or normalised(text) == normalised(answer["old"]):
            why = "changes nothing" if text else f"puts nothing in the place of {answer['old']!r}"
            why = why if spans else f"edits words that are not there: {answer['old']!r}"
            return reject(candidate(row, relation, []), self.name, why)
        new = candidate(row, relation, token_edits(row["tokens"], [*range(*spans[0])], text))
        examples = prompts.read_prompt(PROMPT, model.prompts)["examples"]
        fault = why_clumsy(new["text"], " ".join(row["tokens"])) or why_from_example([answer], values, examples)
        return reject(new, self.name, fault) if fault else new

    def _unbroken(self, row: Row, parse: Any, place: Sequence[Span], candidates: Sequence[Candidate]) -> list[Candidate]:
        """Reject candidates whose sentence is no longer whole, by the parses before and after."""
        if parse is None:
            return [*candidates]
        left = [new for new in candidates if undecided(new)]
        rows = [TASK.apply_edits(row, new["edits"]) for new in left]
        (start, end), gap = place[0], find_gap(row, parse)
        assert not isinstance(gap, str)
        why: dict[int, str | None] = {}
        for new, edited, after in zip(left, rows, self._parse([edited["tokens"] for edited in rows]), strict=True):
            length = len(edited["tokens"]) - len(row["tokens"]) + end - start
            second = max(edited["head"]["end"], edited["tail"]["end"])
            why[id(new)] = why_broken(parse, after, gap, length, second)
        return [reject(new, self.name, fault) if (fault := why.get(id(new))) else new for new in candidates]


def _editable(row: Row, parse: Any) -> list[Span] | str:
    """List the words that a language model may replace: the predicate between the entities, by the parse; else each run of causal
    terms. Or say why there are none."""
    if not row["causal_terms"]:
        return "there are no causal terms"
    if not _offered(row):
        return "there is no new relation"
    if parse is None:
        return _runs(row["causal_terms"])
    gap = find_gap(row, parse)
    return gap if isinstance(gap, str) else [(gap.start, gap.end)]


def _offered(row: Row) -> list[str]:
    """List the relations that a language model may write: the first new ones, without the row's own in the opposite direction."""
    return [name for name in row["new_relations"] if name != inverse(row["label"])][:OTHERS]


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """List the runs of places that follow each other, as start and end, of at most `LONGEST_OLD` words."""
    marked = set(places)
    return [
        (start, end)
        for start in places
        for end in range(start + 1, start + 1 + LONGEST_OLD)
        if all(place in marked for place in range(start, end))
    ]


def _labels(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the relations of rows, of which each may be the new one of another row."""
    return {row["label"] for row in rows} - {OTHER}


def _rests_on_them(row: Mapping[str, Any]) -> bool:
    """Say whether a row's causal terms were found by flips, not all words that might be (`IdentifyCausalTerms.unflipped`)."""
    return row.get("preliminary_terms") != []


def _most_frequent(terms: KnownTerms, requests: Sequence[Request]) -> list[_Written]:
    results = []
    for row, relation in requests:
        text = most_frequent(terms.counts, relation, order(row))
        same = "the term stays the same" if text == term(row) else None
        results.append(_Written(text, trouble=same) if text else _Written("", trouble=_NO_TERM))
    return results


def _likeliest(terms: KnownTerms, model: Model, requests: Sequence[Request]) -> list[_Written]:
    """Choose for each request the admissible term that the editor finds likeliest."""
    groups = [_admissible(terms, row, relation) for row, relation in requests]
    ranked = editor.rank_terms(model, [(*request, group) for request, group in zip(requests, groups, strict=True)])
    results = []
    for (row, relation), group, terms_of_row in zip(requests, groups, ranked, strict=True):
        if terms_of_row:
            results.append(_Written(*terms_of_row[0]))
        elif group:
            results.append(_Written("", trouble=_TOO_LONG))
        else:
            results.append(_no_term(terms, row, relation))
    return results


def _no_term(terms: KnownTerms, row: Mapping[str, Any], relation: str) -> _Written:
    return _Written("", trouble=_OF_ANOTHER if terms.of(relation, order(row)) else _NO_TERM)


def _admissible(terms: KnownTerms, row: Mapping[str, Any], relation: str) -> list[str]:
    """List the new relation's terms in the training rows, without the terms of the relations that must not have them."""
    others = _terms_of_others(terms, row, relation)
    return [text for equal, text in terms.texts(relation, order(row)).items() if equal not in others]


def _terms_of_others(terms: KnownTerms, row: Mapping[str, Any], relation: str) -> set[str]:
    """List the terms that a new term must not be: the row's own, and terms of its relation and of the first relations."""
    others = {row["label"], *row["new_relations"][:OTHERS]} - {relation}
    return terms.any_of(others, order(row)) | {normalised(term(row))}


def _choose(terms: KnownTerms, row: Mapping[str, Any], relation: str, answer: Sequence[Mapping[str, Any]] | None) -> _Written:
    if answer is None:
        return _Written("", trouble=_TOO_LONG)
    written = [_Written(text, score) for text, score in editor.hypotheses(answer, row)]
    if not written:
        return _Written("", trouble="the editor wrote no term")
    fitting = [new for new in written if normalised(new.term) in terms.of(relation, order(row))]
    if not fitting:
        return written[0]._replace(trouble="the editor wrote no causal term of the new relation")
    others = _terms_of_others(terms, row, relation)
    return next((new for new in fitting if normalised(new.term) not in others), fitting[0]._replace(trouble=_OF_ANOTHER))


@lru_cache(maxsize=4)
def _fitted(sha: str, phrases: Phrases | None) -> tuple[KnownTerms, str | None, RowPhrases | None]:
    """Return the known terms, the editor's digest, and the rows' own phrases; None if no language model chooses among phrases."""
    content = read_artifact(sha, "run ccg = ccg.fit(ds) again")
    return KnownTerms(with_phrases(content["terms"], phrases)), content["editor"], content.get("phrases")
