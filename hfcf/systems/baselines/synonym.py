"""Synonym replacement: WordNet synonyms for a share of a text's words, in place, under the label of the source."""

from __future__ import annotations

import random
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

from hfcf.core import edits
from hfcf.core.candidates import settle
from hfcf.core.settings import Share
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.engines.wordnet import PARTS, Synset, WordNet, wordnet
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.word_edits import UNCHANGED, article, goes_with, replaceable, words_to_edit
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import candidate_columns, edit_columns, rewriting_of, rng_for

# The characters before a claim's first word, and after a first word that continues as a name.
_OPENING = re.compile(r"[\s\"'“‘(]*")
_CAPITAL = re.compile(r"\s+[A-Z]")

Senses = Literal["any", "common"]

LIKE_FREQUENCY = 5
"""How many times as common as its synonym a word may be."""
MIN_COUNT = 3
"""How often a synonym must have the sense in the texts that WordNet's authors tagged."""
_PART_SHARE, _SENSE_SHARE = 0.85, 0.5
"""The share of its uses in which a word must be of one part of speech, and in which a lemma must have one sense."""
_MIN_LETTERS = 3
_MISREAD = {"please"}  # a verb in WordNet, a courtesy in most texts
# What WordNet says of words that are, in some sense, slang, vulgar, obscene or disparaging.
_COARSE = re.compile(r"\b(?:slang|vulgar|obscen|offensive|derogat|disparag|insulting|taboo|ethnic slur|coitus|sexual)")


def synonym_edits(
    text: str, rng: random.Random, *, share: float = 0.3, protected: Container[int] = (), senses: Senses = "any"
) -> list[edits.Edit]:
    """Replace a share of a claim's words by synonyms, at least one; fewer where fewer words have synonyms.

    With `senses="any"` a synonym is any other lemma of any of the word's synsets: no sense and no part of speech is chosen, as in
    the papers; "common" takes those of `common_synonyms`. A synonym takes the word's inflection and the capital of the claim's
    first word, and must go with the article before it.

    Deviation: the words of `UNCHANGED`, words at `protected` characters and capitalised words stay. The claim's first word may
    change where it can't be a name. Capitalised synonyms are not used: the "synonym" of a name is another name.
    """
    number, places = words_to_edit(text, share), [match for match in exchangeable(text) if match.start() not in protected]
    rng.shuffle(places)
    results: list[edits.Edit] = []
    for match in places:
        if not (synonyms := fitting_synonyms(text, match, senses)):
            continue
        start, end = match.span()
        new = synonyms[int(rng.random() * len(synonyms))]
        results.append({"field": "claim", "piece": -1, "start": start, "end": end, "before": match[0], "after": new})
        if len(results) == number:
            break
    return sorted(results, key=lambda edit: edit["start"])


def fitting_synonyms(text: str, match: re.Match[str], senses: Senses = "any") -> list[str]:
    """List the synonyms that may replace a word of a text, in the order of WordNet's files."""
    word, before = match[0], article(text, match.start())
    find = common_synonyms if senses == "common" else _inflected
    synonyms = [form for form in find(wordnet(), word.lower()) if goes_with(form, before)]
    return [form[0].upper() + form[1:] for form in synonyms] if word[0].isupper() else synonyms


def exchangeable(text: str) -> Iterator[re.Match[str]]:
    """Find the words that may be replaced by synonyms."""
    net, opening = wordnet(), _OPENING.match(text)
    first = opening.end() if opening else 0
    for match in replaceable(text):
        if match[0].islower() or (match.start() == first and not _may_be_a_name(net, match[0], text, match.end())):
            yield match


def _may_be_a_name(net: WordNet, word: str, text: str, end: int) -> bool:
    """Say whether a claim's first word continues as a name ("Michael Jordan") or has a sense as a name."""
    if not word[1:].islower() or _CAPITAL.match(text, end):
        return True
    return any(word in net.names(synset) for synset in net.synsets(word))


@lru_cache(maxsize=1 << 16)
def _inflected(net: WordNet, word: str) -> tuple[str, ...]:
    """List a lower-case word's synonyms in the word's own inflection, in the order of WordNet's files."""
    results: dict[str | None, None] = {}
    for part in PARTS:
        for lemma in _read_as(net, word, part):
            for synset in net.senses(lemma, part):
                names = net.names(synset)
                if lemma not in names:  # there the word is a name: "May", "China"
                    continue
                for name in names:
                    if name.islower() and not re.search(r"[\d.]", name) and name != lemma:
                        results[net.inflected_like(name, word, lemma, part)] = None
    return tuple(form.replace("_", " ") for form in results if form and form != word)


@lru_cache(maxsize=1 << 16)
def common_synonyms(net: WordNet, word: str) -> tuple[str, ...]:
    """List the synonyms of a lower-case word in the sense that it most likely has, in the word's own inflection.

    The sense is the commonest sense of the word's commonest part of speech, by WordNet's counts of tagged texts; a word that is
    often something else has none. It must be the commonest sense of the synonym as well. A synonym is neither far rarer than the
    word, nor several words, nor an abbreviation. Names of drugs, slang and insults are never taken.
    """
    readings = {(lemma, part): net.count(lemma, part) for part in PARTS for lemma in _read_as(net, word, part)}
    if not sum(readings.values()) or word in _MISREAD:
        return ()
    (lemma, part), count = max(readings.items(), key=lambda item: item[1])
    if count < _PART_SHARE * sum(readings.values()) or not _is_clear(net, lemma, part):
        return ()
    if part == "v" and net.past(lemma) == lemma:  # "put" may be the present or the past
        return ()
    synset = net.senses(lemma, part)[0]
    if _is_drug(net, synset):
        return ()
    forms = (
        net.inflected_like(name, word, lemma, part)
        for name in net.names(synset)
        if len(name) >= _MIN_LETTERS and name.isalpha() and name.islower() and name not in {lemma, *UNCHANGED}
        and net.senses(name, part)[0] == synset and _is_clear(net, name, part)
        and net.count(name, part, 0) >= max(MIN_COUNT, net.count(lemma, part, 0) / LIKE_FREQUENCY) and not _is_coarse(net, name)
    )  # fmt: skip
    return tuple(dict.fromkeys(form.replace("_", " ") for form in forms if form and form != word))


def _is_coarse(net: WordNet, name: str) -> bool:
    """Say whether a lemma is slang, vulgar, obscene or an insult in any of its senses."""
    return any(_COARSE.search(net.gloss(synset)) for part in PARTS for synset in net.senses(name, part))


def _is_clear(net: WordNet, lemma: str, part: str) -> bool:
    """Say whether a lemma mostly has its first sense."""
    return net.count(lemma, part, 0) >= _SENSE_SHARE * net.count(lemma, part) > 0


def _is_drug(net: WordNet, synset: Synset) -> bool:
    return synset.part == "n" and any("drug" in net.names(above) for above in net.ancestors(synset))


def _read_as(net: WordNet, word: str, part: str) -> tuple[str, ...]:
    """List a word's likeliest lemmas: "leave" of "left", not "left" itself, but "species" of "species", not "specie"."""
    lemmas = net.lemmas(word, part)
    if word not in lemmas or len(lemmas) == 1:
        return lemmas
    return (word,) if part == "n" else tuple(lemma for lemma in lemmas if lemma != word)


@dataclass(frozen=True, kw_only=True)
class RewriteSynonym(Stage):
    """Replace some words of a claim or a sentence by synonyms (`synonym_edits`), for every label; the candidate has the same.

    Whether the new text deserves that label is not checked here; a verifier checks it.

    Input columns: the task's text and `label`. Output column: `candidates`, one candidate. A row in which no word can be
    replaced is rejected. A synonym may have several words. The entities of a sentence stay.

    Args:
        task: the task of the rows.
        share: the share of all the text's words to replace; one word where it rounds to none.
        senses: "any" takes synonyms of any sense and part of speech, as the papers do: "loved" gives "had intercourse". "common"
            takes those of the commonest sense, see `common_synonyms`; far fewer words have one. None is "common" for single texts,
            which no paper treats and nothing checks, and else "any".

    >>> row = {"id": "37", "tokens": "The eggs were moved into old buckets .".split(), "head": {"start": 1, "end": 2},
    ...        "tail": {"start": 6, "end": 7}, "label": "Entity-Destination(e1,e2)"}
    >>> RewriteSynonym(task="relation").row(row)["candidates"][0]["text"]
    'The eggs were propelled into former buckets .'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar[Any] = TaskColumns(edit_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    task: str = DEFAULT
    share: Share = 0.3
    senses: Senses | None = None

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        rewriting = rewriting_of(self.task)
        text, rng = rewriting.text(row), rng_for(self, self.task, row["id"])
        senses = self.senses or ("common" if self.task == "classification" else "any")
        replaced = synonym_edits(text, rng, share=self.share, protected=rewriting.protected(row), senses=senses)
        reason = f"no word {rewriting.editable} has a synonym that may take its place"
        answer = settle(rewriting.edited(row, replaced, self.name), reason)
        if isinstance(answer, Reject):
            raise answer
        return answer


class Synonym(System):
    """Replace words by WordNet synonyms, and keep the label.

    It is a baseline of CCG (appendix A.2; after Zhang, Zhao and LeCun 2015). CCG takes a random 30 % of a sentence's words,
    synonyms from WordNet, and makes one new sentence of each. It gives no more detail.

    Deviations: function words, modal verbs, negations, numbers, names and entities stay, so a short text may have fewer than 30
    % replaced. A synonym takes its word's inflection and must go with the article before it. Of single texts, which no
    paper treats and nothing checks, synonyms of a word's commonest sense alone are taken (`senses="common"`).

    Args:
        task: the task of the rows; called with rows, the system takes it from them.
        verifier: see `JudgeCandidates`; the baseline itself checks nothing.

    Its stages define its other settings.

    >>> [stage.name for stage in Synonym(share=0.1).stages]
    ['rewrite_synonym', 'judge_candidates']
    """

    chain = (RewriteSynonym, JudgeCandidates)
    by_task: ClassVar = {"relation": {"max_length": 128}}
    flips = False
