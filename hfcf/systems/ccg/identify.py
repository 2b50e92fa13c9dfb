"""Find the words of a sentence that its relation depends on (CCG, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.model import Model, is_remote
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.engines.intervention import Intervention
from hfcf.engines.masked import MaskedLM
from hfcf.engines.parser import Constituents
from hfcf.systems.ccg.gradients import WordGradients, highest
from hfcf.systems.ccg.indicator import UNJUDGED, ask_indicators
from hfcf.systems.ccg.phrases import correct_terms, shift_tree
from hfcf.systems.ccg.remote import TERMS, name_terms
from hfcf.tasks.relation import OTHER, TASK, between, context, overlap, requests, spans, trouble

STANZA = Constituents()
METHODS = ("intervention", "gradient")
WORDS = {"between": between, "context": context}
_BRACKET = re.compile("-[LR][RSC]B-")  # as the Penn Treebank spells brackets
_NOTHING = Reject("no word changes the indicator's prediction")


@dataclass(frozen=True, kw_only=True)
class IdentifyCausalTerms(Stage):
    """Find the words whose replacement changes what a relation classifier, the indicator, says, and those of their phrases.

    Input columns: `tokens`, `head`, `tail`, `label`. Output columns: `preliminary_terms`, the words that flip it, and
    `causal_terms`, with what the parser adds (`hfcf.systems.ccg.phrases.corrected`): sorted places in `tokens`, never an entity's.

    Each word is masked on its own and filled with the masked language model's likeliest words; if one of the filled sentences gets
    another prediction, the word is a preliminary causal term. Rejected are rows of the label "Other", rows whose entities overlap
    or have no word between them, sentences longer than the indicator reads, and those in which nothing changes its prediction.

    Where paper and released code differ, or leave it open:

    - The filled sentence's prediction is compared with the unchanged one's, as in formula (1). The code compares it with the gold
      label, so that nearly every word is causal in a sentence that the indicator gets wrong.
    - The paper's text masks "each contextual word", its code, from which its numbers come, those between the entities, as we do
      (`words="context"` masks all). Like the code we parse from the first entity to the last, for "context" the sentence. The
      parser adds only words that could be masked.
    - Fills are whole words, where the code takes the first 100 pieces of any kind: the paper has N "to ensure the rationality of
      each intervention". For the same reason a token without a letter or digit is not masked.

    Args:
        masked: the masked language model; by gradients none is asked.
        indicator: an R-BERT trained on the rows; `ccg(ds)` trains one if it is given none. Or "llm:NAME" for a language model
            behind an endpoint, which names the words itself among those that could be masked: `method`, `masked` and `top` then
            count for nothing, and names that do not stand there are left out.
        top: N, how many fills of each word are tried (section 4.5).
        words: "between" or "context".
        parser: corrects the terms; None is the ablation w/o Parser. The paper's is CoreNLP.
        method: "intervention", or "gradient" for the ablation w/o MII: the words of the highest gradient, as many as AutoCAD takes
            (`hfcf.systems.ccg.gradients.highest`), with the indicator's own prediction for the label.
        max_length: pieces that masked language model and indicator read.
        patience: see `hfcf.engines.intervention.Intervention`; None, the default, is exact.
        cross_fitted: the sha256 of a file that gives each row an indicator which was not trained on it
            (`hfcf.systems.ccg.indicator.cross_fit`); rows that it does not know have `indicator`.

    >>> IdentifyCausalTerms(parser=None).name
    'identify_causal_terms'
    """

    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
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
        for name, value, choices in (("words", self.words, (*WORDS,)), ("method", self.method, METHODS)):
            if value not in choices:
                raise ValueError(f"{name}={value!r}: choose {' or '.join(choices)}")
        if self.masked is None and self.method == "intervention":
            raise ValueError("masked: interventions need a masked language model")
        for name, number in (("top", self.top), ("patience", self.patience)):
            if number is not None and number < 1:
                raise ValueError(f"{name} is at least 1 and was {number}")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state([TERMS], self.indicator)}

    def check_fitted(self) -> None:
        if self.indicator is None and self.cross_fitted is None:
            raise StageError(
                f"{self.name} has no indicator: ccg(ds) trains one on the rows of ds; or give it an R-BERT, indicator=Model(…), "
                "which hfcf train train_relation makes"
            )

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        reasons = [self._trouble(row) for row in rows]
        sound = [row for row, reason in zip(rows, reasons, strict=True) if not reason]
        preliminary = self._preliminary(sound)
        flipping = [(row, terms) for row, terms in zip(sound, preliminary, strict=True) if not isinstance(terms, Reject)]
        answers, corrected = iter(preliminary), iter(self._correct(flipping))
        results: list[dict[str, Any] | Reject] = []
        for reason in reasons:
            terms = Reject(reason) if reason else next(answers)
            if isinstance(terms, Reject):
                results.append(terms)
            else:
                results.append({"causal_terms": next(corrected), "preliminary_terms": terms})
        return results

    def maskable(self, row: dict[str, Any]) -> list[int]:
        """List the places of the words that may be masked."""
        return [i for i in WORDS[self.words](row) if _is_word(row["tokens"][i])]

    def _trouble(self, row: dict[str, Any]) -> str | None:
        """Say why there is nothing to mask."""
        if row["label"] == OTHER:
            return "the relation is Other"
        problem = trouble(row) if self.words == "between" else overlap(row)
        return problem or (None if self.maskable(row) else "there is no word that could be masked")

    def _preliminary(self, rows: Sequence[dict[str, Any]]) -> list[list[int] | Reject]:
        if self.indicator is not None and is_remote(self.indicator):
            return name_terms(self.indicator, rows, [self.maskable(row) for row in rows], seed=self.seed)
        too_long = Reject(f"the sentence is longer than the {self.max_length} pieces that the indicator reads")

        def ask(indicator: Model, part: list[Any]) -> list[list[int] | Reject]:
            return [too_long if terms is None else terms or _NOTHING for terms in self._flipping(part, indicator)]

        return ask_indicators(self, [row["id"] for row in rows], rows, ask, Reject(UNJUDGED))

    def _flipping(self, rows: Sequence[dict[str, Any]], indicator: Model) -> list[list[int] | None]:
        """List for each row the words that its indicator's prediction depends on; None where it can't read the sentence."""
        sentences = requests(rows)
        if self.method == "gradient":
            gradients = WordGradients(indicator=indicator, max_length=self.max_length)
            weights = gradients.run([[*sentence, None] for sentence in sentences])
            return [group and highest(group, self.maskable(row)) for group, row in zip(weights, rows, strict=True)]
        engine = Intervention(indicator=indicator, max_length=self.max_length, patience=self.patience)
        return engine.run([[*sentence, fills] for sentence, fills in zip(sentences, self._fills(rows), strict=True)])

    def _fills(self, rows: Sequence[dict[str, Any]]) -> list[list[list[Any]]]:
        """List for each row its words that may be masked with their fills: one request each, since each is masked alone."""
        assert self.masked is not None
        places = [(row["tokens"], word) for row in rows for word in self.maskable(row)]
        engine = MaskedLM(model=self.masked, top=self.top, max_length=self.max_length)
        answers = iter(engine.run([[" ".join(tokens), [_span(tokens, word)]] for tokens, word in places]))
        return [[[word, [fill for fill, _ in next(answers)[0]]] for word in self.maskable(row)] for row in rows]

    def _correct(self, flipping: Sequence[tuple[dict[str, Any], list[int]]]) -> list[list[int]]:
        if self.parser is None:
            return [terms for _, terms in flipping]
        parts = [_part(row) if self.words == "between" else (0, len(row["tokens"])) for row, _ in flipping]
        trees = self.parser.run([row["tokens"][start:end] for (row, _), (start, end) in zip(flipping, parts, strict=True)])
        return [
            correct_terms(shift_tree(tree, start), terms, self.maskable(row))
            for tree, (start, _), (row, terms) in zip(trees, parts, flipping, strict=True)
        ]


def _is_word(token: str) -> bool:
    return any(character.isalnum() for character in token) and not _BRACKET.fullmatch(token)


def _span(tokens: Sequence[str], word: int) -> list[int]:
    """Return a token's characters among all, joined by spaces."""
    start = sum(len(token) + 1 for token in tokens[:word])
    return [start, start + len(tokens[word])]


def _part(row: dict[str, Any]) -> tuple[int, int]:
    """Return the first entity's start and the last one's end."""
    places = [place for span in spans(row) for place in span]
    return min(places), max(places)
