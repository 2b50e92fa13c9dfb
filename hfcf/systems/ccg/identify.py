"""Which words of a sentence its relation hangs on (CCG, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.intervention import Intervention
from hfcf.engines.masked import MaskedLM
from hfcf.engines.parser import Constituents
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.indicator import indicators_by_row
from hfcf.systems.ccg.phrases import correct_terms, shift_tree
from hfcf.tasks.relation import OTHER, between, context, overlap, requests, spans, trouble

STANZA = Constituents()
METHODS = ("intervention", "gradient")
WORDS = {"between": between, "context": context}
_BRACKET = re.compile("-[LR][RSC]B-")  # as the Penn Treebank spells brackets
_NOTHING = Reject("no word changes the indicator's prediction")
_UNJUDGED = Reject("no indicator was trained for this row: ccg.fit_models(ds) trains them on the rows of ds")


@dataclass(frozen=True, kw_only=True)
class IdentifyCausalTerms(Stage):
    """The words whose replacement changes what a relation classifier, the indicator, says, and those that belong to their phrases.

    Input columns: `tokens`, `head`, `tail`, `label`. Output columns: `preliminary_terms`, the words that flip it, and
    `causal_terms`, with what the parser adds (`hfcf.systems.ccg.phrases.corrected`): sorted places in `tokens`, never an entity's.

    Each word is masked on its own and filled with the masked language model's likeliest words; if one of the filled sentences gets
    another prediction, the word is a preliminary causal term. Rejected are rows of the label "Other", rows whose entities overlap
    or have no word between them, sentences longer than the indicator reads, and those in which nothing changes its prediction.

    Where paper and released code differ, or leave it open:

    - The prediction of the filled sentence is compared with that of the unchanged one, as formula (1) has it. The code compares it
      with the gold label, so that in a sentence which the indicator gets wrong nearly every word is causal.
    - The paper's text masks "each contextual word", its code those between the entities: so do we, as its numbers come from there
      (`words="context"` masks them all). The code parses the part from the first entity to the last, as we do; for "context" we
      parse the sentence. The parser adds only words of those that could be masked.
    - Fills are whole words, where the code takes the first 100 pieces of any kind, endings and punctuation too: "to ensure the
      rationality of each intervention" was what N is for. For the same reason a token without a letter or digit is not masked.

    Args:
        masked: the masked language model; by gradients none is asked.
        indicator: an R-BERT trained on the rows at hand; `ccg(ds)` trains one if it is given none.
        top: N, how many fills of each word are tried (section 4.5).
        words: "between" or "context".
        parser: who corrects; None is the ablation w/o Parser. The paper's is CoreNLP.
        method: "intervention", or "gradient" for the ablation w/o MII: the words of the highest gradient, as many as AutoCAD takes
            (`hfcf.systems.ccg.gradients.highest`), with the indicator's own prediction for the label.
        max_length: pieces that masked language model and indicator read.
        patience: see `hfcf.engines.intervention.Intervention`; None, the default, is exact.
        cross_fitted: the sha256 of a file that gives each row an indicator which was not trained on it
            (`hfcf.systems.ccg.indicator.cross_fit`); rows that it does not know have `indicator`.

    >>> IdentifyCausalTerms(parser=None).name
    'identify_causal_terms'
    """

    inputs: ClassVar = {"tokens": schema.TOKENS, "head": schema.SPAN, "tail": schema.SPAN, "label": schema.TEXT}
    outputs: ClassVar = {"causal_terms": List(schema.INT), "preliminary_terms": List(schema.INT)}

    masked: Model | None = Model("bert-base-uncased")
    indicator: Model | None = None
    top: int = 100
    words: str = "between"
    parser: Constituents | None = STANZA
    method: str = "intervention"
    max_length: int = 128
    patience: int | None = None
    cross_fitted: str | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("words", self.words, (*WORDS,)), ("method", self.method, METHODS)):
            if value not in known:
                raise ValueError(f"{name}={value!r}: choose {' or '.join(known)}")
        if self.masked is None and self.method == "intervention":
            raise ValueError("masked: interventions need a masked language model")
        for name, number in (("top", self.top), ("patience", self.patience)):
            if number is not None and number < 1:
                raise ValueError(f"{name} is at least 1 and was {number}")

    def check_fitted(self) -> None:
        if self.indicator is None and self.cross_fitted is None:
            raise StageError(
                f"{self.name} has no indicator: ccg(ds) trains one on the rows of ds; or give it an R-BERT, indicator=Model(…), "
                "which hfcf train train_relation makes"
            )

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            reason = "the relation is Other" if row["label"] == OTHER else self._trouble(row)
            allowed = self.maskable(row)
            none = "there is no word that could be masked"
            results.append(Reject(reason or none) if reason or not allowed else {})
        sound = [i for i, result in enumerate(results) if not isinstance(result, Reject)]
        kept = []
        for i, found in zip(sound, self._preliminary([rows[i] for i in sound]), strict=True):
            if isinstance(found, Reject):
                results[i] = found
            else:
                kept.append((i, found))
        for (i, found), terms in zip(kept, self._correct([(rows[i], found) for i, found in kept]), strict=True):
            results[i] = {"causal_terms": terms, "preliminary_terms": found}
        return results

    def maskable(self, row: dict[str, Any]) -> list[int]:
        """The places of the words that may be masked."""
        return [i for i in WORDS[self.words](row) if _is_word(row["tokens"][i])]

    def _trouble(self, row: dict[str, Any]) -> str | None:
        """Why its entities leave nothing to mask."""
        return trouble(row) if self.words == "between" else overlap(row)

    def _preliminary(self, rows: Sequence[dict[str, Any]]) -> list[list[int] | Reject]:
        known = indicators_by_row(self.cross_fitted) if self.cross_fitted else {}
        indicators = [known.get(row["id"], self.indicator) for row in rows]
        results: list[list[int] | Reject] = [_UNJUDGED for _ in rows]
        for indicator in dict.fromkeys(indicator for indicator in indicators if indicator):
            places = [i for i, group in enumerate(indicators) if group == indicator]
            for i, terms in zip(places, self._flipping([rows[i] for i in places], indicator), strict=True):
                results[i] = self._too_long if terms is None else terms or _NOTHING
        return results

    @property
    def _too_long(self) -> Reject:
        return Reject(f"the sentence is longer than the {self.max_length} pieces that the indicator reads")

    def _flipping(self, rows: Sequence[dict[str, Any]], indicator: Model) -> list[list[int] | None]:
        """Of each row the words that its indicator's prediction hangs on; None where it can't read the sentence."""
        asked = requests(rows)
        if self.method == "gradient":
            gradients = WordGradients(indicator=indicator, max_length=self.max_length)
            weights = gradients.run([[*request, None] for request in asked])
            return [group and highest(group, self.maskable(row)) for group, row in zip(weights, rows, strict=True)]
        engine = Intervention(indicator=indicator, max_length=self.max_length, patience=self.patience)
        return engine.run([[*request, fills] for request, fills in zip(asked, self._fills(rows), strict=True)])

    def _fills(self, rows: Sequence[dict[str, Any]]) -> list[list[list[Any]]]:
        """Of each row, its words that may be masked with their fills: one request each, since each is masked alone."""
        assert self.masked is not None
        places = [(row["tokens"], word) for row in rows for word in self.maskable(row)]
        engine = MaskedLM(model=self.masked, top=self.top, max_length=self.max_length)
        answers = iter(engine.run([[" ".join(tokens), [_span(tokens, word)]] for tokens, word in places]))
        return [[[word, [fill for fill, _ in next(answers)[0]]] for word in self.maskable(row)] for row in rows]

    def _correct(self, found: Sequence[tuple[dict[str, Any], list[int]]]) -> list[list[int]]:
        if self.parser is None:
            return [terms for _, terms in found]
        parts = [_part(row) if self.words == "between" else (0, len(row["tokens"])) for row, _ in found]
        trees = self.parser.run([row["tokens"][start:end] for (row, _), (start, end) in zip(found, parts, strict=True)])
        return [
            correct_terms(shift_tree(tree, start), terms, self.maskable(row))
            for tree, (start, _), (row, terms) in zip(trees, parts, found, strict=True)
        ]


def _is_word(token: str) -> bool:
    return any(character.isalnum() for character in token) and not _BRACKET.fullmatch(token)


def _span(tokens: Sequence[str], word: int) -> list[int]:
    """Where a token stands among all, joined by spaces."""
    start = sum(len(token) + 1 for token in tokens[:word])
    return [start, start + len(tokens[word])]


def _part(row: dict[str, Any]) -> tuple[int, int]:
    """From the first entity's start to the last one's end."""
    places = [place for span in spans(row) for place in span]
    return min(places), max(places)
