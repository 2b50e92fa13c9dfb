"""Write another relation in a sentence: the phrase that makes most sense, of all phrases of the relations its entities may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from hfcf.core.candidates import Candidate, reject, scored
from hfcf.core.decisions import exceeds, ranked
from hfcf.core.model import Model
from hfcf.engines.parser import Parser
from hfcf.engines.perplexity import Branches
from hfcf.systems.ccg.phrases import BE, Phrases, inflect, inverse
from hfcf.systems.ccg.predicate import Gap, Parse, find_gap, why_broken
from hfcf.systems.ccg.terms import head_word, order
from hfcf.tasks.relation import TASK, candidate, spans, token_edits
from hfcf.tasks.rewriting import plain
from hfcf.text.words import takes_an

Row = Mapping[str, Any]
RowPhrases = Mapping[str, Mapping[str, Sequence[str]]]
"""{relation: {order: phrases of the training rows}}."""

WORDS_AFTER = 3
"""Words behind the second entity that the language model reads of each sentence."""
MAX_PARSED = 10
"""Options of a row that are parsed, the best first."""


class Option(NamedTuple):
    """A phrase of a relation in a row's gap, and how the language model scores it."""

    relation: str
    text: str
    loss: float = 0.0
    """How much less likely the phrase, the second entity and what follows are than in the source, in nats."""
    surprise: float = 0.0
    """The phrase's own share: its negative log-likelihood after any noun."""
    trouble: str | None = None

    @property
    def sense(self) -> float:
        """The loss without half of the phrase's own share: how badly the phrase goes with these entities.

        With all of it rare phrases would always win, with none of it common phrases.
        """
        return self.loss - self.surprise / 2


@dataclass(frozen=True, kw_only=True)
class PhraseChooser:
    """Write phrases between the entities of rows.

    Args:
        model: the language model that chooses.
        parser: a parser with spaCy's dependencies.
        phrases: of the relations.
        row_phrases: phrases of the training rows, see `collect_phrases`.
        max_phrases: phrases of each relation that are tried for a row, drawn at random, so that none is in all rows.
        max_loss: what the options' losses are compared with.
        random: returns a row's random generator.
    """

    model: Model
    parser: Parser
    phrases: Phrases
    row_phrases: RowPhrases
    max_phrases: int
    max_loss: float
    random: Callable[[str], Random]

    def options(self, rows: Sequence[tuple[Row, Sequence[str]]]) -> list[tuple[Gap, list[Option]] | str]:
        """List for each row and its relations the best options, best first; options that break the sentence have the trouble.

        For a row without a place for a phrase the answer is the reason.
        """
        parses = self.parser.run([row["tokens"] for row, _ in rows])
        gaps = [find_gap(row, parse) for (row, _), parse in zip(rows, parses, strict=True)]
        requests = [
            (row, gap, self._options(row, gap, relations))
            for (row, relations), gap in zip(rows, gaps, strict=True)
            if not isinstance(gap, str)
        ]
        best = [group[:MAX_PARSED] for group in self._ranked(requests)]
        with_articles = [
            (row, gap, [new for option in group for new in _articles(row, gap, option)])
            for (row, gap, _), group in zip(requests, best, strict=True)
        ]
        ranked = iter(
            self._checked(with_articles, [parse for parse, gap in zip(parses, gaps, strict=True) if not isinstance(gap, str)])
        )
        return [gap if isinstance(gap, str) else (gap, next(ranked)) for gap in gaps]

    def _options(self, row: Row, gap: Gap, relations: Sequence[str]) -> list[Option]:
        random, way, found = self.random(row["id"]), order(row), dict[tuple[str, str], None]()
        heads = [head_word(row["tokens"], row[name]) for name in ("head", "tail")]
        for relation in relations:
            # Two things that have a relation hardly have it the other way round, and the language model does not know that.
            if relation == inverse(row["label"]) or not self.phrases.may_hold(relation, *heads):
                continue
            phrases = [*self.phrases.of(relation, way), *self.row_phrases.get(relation, {}).get(way, ())]
            passives = {rest for first, _, rest in (phrase.partition(" ") for phrase in phrases) if first in BE}
            shaped = [
                inflect(text, gap.kind, past=gap.past, plural=gap.plural, relativizer=gap.relativizer, passive=text in passives)
                for text in phrases
            ]
            fitting = [texts for texts in shaped if texts]
            for texts in random.sample(fitting, min(self.max_phrases, len(fitting))):
                found.update(dict.fromkeys((relation, text) for text in texts))
        return [Option(*key) for key in found]

    def _ranked(self, requests: Sequence[tuple[Row, Gap, Sequence[Option]]]) -> list[list[Option]]:
        """Give options their losses, and order them."""
        engine = Branches(model=self.model)
        answers = engine.run([_branches(*request) for request in requests])
        surprises = self._surprises(engine, {(_any_noun(gap), option.text) for _, gap, group in requests for option in group})
        results = []
        for (_, gap, group), answer in zip(requests, answers, strict=True):
            source, *losses = answer or [0.0]
            with_losses = [
                option._replace(loss=loss - source, surprise=surprises[_any_noun(gap), option.text])
                for option, loss in zip(group, losses, strict=False)  # no losses where the sentence is too long
            ]
            results.append(ranked(with_losses, lambda option: -option.sense, lambda option: (option.text, option.relation)))
        return results

    def _surprises(self, engine: Branches, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """Return the losses of phrases after any noun; the phrases of a noun are scored together."""
        texts: dict[str, list[str]] = {}
        for noun, text in sorted(keys):
            texts.setdefault(noun, []).append(text)
        answers = engine.run([[noun, [f" {text}" for text in group]] for noun, group in texts.items()])
        return {
            (noun, text): loss
            for (noun, group), losses in zip(texts.items(), answers, strict=True)
            for text, loss in zip(group, losses, strict=True)
        }

    def _checked(self, requests: Sequence[tuple[Row, Gap, list[Option]]], before: Sequence[Parse]) -> list[list[Option]]:
        ranked = self._ranked(requests)
        places = [(i, option) for i, group in enumerate(ranked) for option in group]
        edited = [TASK.apply_edits(requests[i][0], phrase_edits(requests[i][0], requests[i][1], option)) for i, option in places]
        after = self.parser.run([row["tokens"] for row in edited])
        results: list[list[Option]] = [[] for _ in requests]
        for (i, option), row, parse in zip(places, edited, after, strict=True):
            _, second = sorted(spans(row))
            trouble = why_broken(before[i], parse, requests[i][1], len(option.text.split()), second[1])
            results[i].append(option._replace(trouble=trouble))
        return results


def write_candidates(row: Row, gap: Gap, options: Iterable[Option], top_k: int, max_loss: float, stage: str) -> list[Candidate]:
    """Make candidates of the best options of different relations, up to the first `top_k` without trouble."""
    candidates, written = [], dict[str, bool]()
    for option in options:
        if written.get(option.relation) or sum(written.values()) == top_k:
            continue
        trouble = option.trouble
        if trouble is None and exceeds(option.loss, max_loss):
            trouble = f"less fluent than its source by more than max_loss, {max_loss:g}"
        scores = [scored("loss of fluency", option.loss), scored("loss of sense", option.sense)]
        new = candidate(row, option.relation, phrase_edits(row, gap, option), scores)
        candidates.append(reject(new, stage, trouble) if trouble else new)
        written[option.relation] = trouble is None
    return candidates


def phrase_edits(row: Row, gap: Gap, option: Option) -> list[Any]:
    """Make the edits that put an option into its row's gap."""
    return token_edits(row["tokens"], range(gap.start, gap.end), option.text)


def collect_phrases(rows: Iterable[Row], parser: Parser, phrases: Phrases) -> dict[str, dict[str, list[str]]]:
    """Collect phrases of the rows themselves: the words between the entities, if all causal terms are in them.

    A phrase counts only if several rows have it, all of one relation, and if `phrases` does not have it for another relation.
    """
    examples, counts = list(rows), dict[tuple[str, str], dict[str, int]]()
    for row, parse in zip(examples, parser.run([row["tokens"] for row in examples]), strict=True):
        gap = find_gap(row, parse)
        if isinstance(gap, str) or not set(row["causal_terms"]) <= set(range(gap.start, gap.end)):
            continue
        text = " ".join(row["tokens"][gap.start : gap.end]).lower()
        of_text = counts.setdefault((order(row), text), {})
        of_text[row["label"]] = of_text.get(row["label"], 0) + 1
    results: dict[str, dict[str, list[str]]] = {}
    for (way, text), labels in sorted(counts.items()):
        (label, number), *others = labels.items()
        shipped = any(text in of for relation, *lists in phrases.lists for of in lists if relation != label)
        if number > 1 and not others and not shipped and text.isascii() and text.replace(" ", "").isalpha():
            results.setdefault(label, {}).setdefault(way, []).append(text)
    return results


def _branches(row: Row, gap: Gap, group: Sequence[Option]) -> list[Any]:
    """Make the request that scores the options for a gap, the source's words first."""
    words = plain(row["tokens"])
    _, second = sorted(spans(row))
    behind = " ".join(words[gap.end : second[1] + WORDS_AFTER])
    texts = (" ".join(words[gap.start : gap.end]), *(option.text for option in group))
    return [" ".join(words[: gap.start]), [f" {text} {behind}" for text in texts]]


def _any_noun(gap: Gap) -> str:
    return "The things" if gap.plural else "The thing"


def _articles(row: Row, gap: Gap, option: Option) -> list[Option]:
    """List an option with each article that the second entity may need."""
    if not gap.bare:
        return [option]
    indefinite = "an" if takes_an(row["tokens"][gap.end]) else "a"
    return [option, *(option._replace(text=f"{option.text} {article}") for article in ("the", indefinite))]
