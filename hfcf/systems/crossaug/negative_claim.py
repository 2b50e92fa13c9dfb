"""Negative claims: what a generator writes and other stages offer, checked and chosen (CrossAug, section 2.2, first stage)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar, NamedTuple

from datasets import List
from pydantic import Field

from hfcf import prompts
from hfcf.core import schema
from hfcf.core.decisions import best, exceeds
from hfcf.core.edits import opcodes
from hfcf.core.model import Model, is_prompted
from hfcf.core.settings import GoesWith, NeedsWeights, Positive, Prompted, Share, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.contradiction import denies, is_negation, why_compatible
from hfcf.engines.entity_types import shared_depth
from hfcf.engines.generator import pair_prompt
from hfcf.engines.label_preserving import content_words, why_preserving
from hfcf.engines.perplexity import Perplexity, perplexity_ratios
from hfcf.engines.wordnet import wordnet
from hfcf.prompts.edits import ask_edits
from hfcf.systems.crossaug.modify_evidence import changed_span, occurrences
from hfcf.tasks.ensemble import Certainty, JudgeModels, Verdict, VerifierModel, check_judges, vote
from hfcf.tasks.verification import REFUTES, SUPPORTS, TASK
from hfcf.text.check import text_problem
from hfcf.text.evidence import evidence_texts
from hfcf.text.negation import why_not_flipped
from hfcf.text.normalise import dedup_key
from hfcf.text.quantities import rebalance
from hfcf.text.words import spaced_like

PROMPT = "negative_claims"
SHOTS = 4
GENERATOR, FILLING = "generator", "span filling"


def _loose_quote(text: str, source: str) -> str | None:
    """Report an unpaired quotation mark, which small generators write; None if the source also has an unpaired mark."""
    if text.count('"') % 2 and not source.count('"') % 2:
        return "the negative claim has an unpaired quotation mark"
    return None


def _why_clumsy(slip: str | None) -> str | None:
    return slip and f"the negative claim {slip}"


class Hypothesis(NamedTuple):
    """A claim that may be c′, and who wrote it."""

    text: str
    writer: str


Row = Mapping[str, Any]
Judged = tuple[Hypothesis, Verdict]


@dataclass(frozen=True, kw_only=True)
class GenerateNegativeClaim(Stage):
    """Write c′, a claim that the evidence of a SUPPORTS row refutes (section 2.2, first stage).

    Input columns: `claim`, `evidence`, `label`. Output column: `negative_claim`. Rows of other labels are rejected, and rows whose
    c′ repeats c, which the paper skips and its released code keeps.

    Deviations: a c′ that `max_new_tokens` cuts off is also rejected (the released code takes any text of its library's
    default length). Spaces of tokenised text that c does not have are removed, or they would reveal the label. Both sides of a
    quantity in two units ("330 metres (1,083 ft)") change. A c′ with an unpaired quotation mark is left out. So is a c′ that only
    has another value where a negation covers it: what supports "Paris is not in Germany" does not refute "Paris is not in Canada".

    Args:
        generator: an encoder-decoder or decoder-only model, trained on pairs of claims (`recipes/train_negative.yaml`); the paper's
            is BART-base, trained on WikiFactCheck-English (released). Or "llm:NAME" or "chat:NAME": a language model reads the
            evidence too, and answers with edits of c: one for each candidate, the likeliest first.
        num_beams: beams of the search (5 in the released code).
        num_candidates: the number of proposals to read; c′ is the first complete proposal that is not c. The paper reads 1.
        max_new_tokens: longest claim, in tokens.
        verifier: a three-way verifier, or "llm:NAME"; c′ is then the first proposal that, by its verdict, the evidence refutes.
            The paper has no verifier.
        judges: further verifiers, which must agree; they judge only proposals that the verifier refutes.
        certainty: the probability that each verifier must give that verdict (0–1).
        max_length: tokens of claim and evidence that the verifier reads.
        exclude_same: leave out proposals that can't be refuted, as far as WordNet tells. They differ from c only in articles, case
            or inflection, by a synonym or a broader word, or by words that the evidence already has. See
            `hfcf.engines.label_preserving.why_preserving`. A row without other proposals is rejected with the reason of the first.
            The paper has no such check.
        exclusive: keep only proposals that exclude c, as far as English words tell (`hfcf.engines.contradiction.why_compatible`).
            They have another number, date, name or nationality, an antonym, a negation, or another kind of thing. A person may be
            an actor and a singer, so the verifiers of the offline preset are wrong about most other proposals. The paper has no
            such check.
        best: choose the best proposal instead of the first. It has fewer separate changes, else no negation, else fewer words
            more or less. Next come a change that the evidence can follow, the generator as writer, and a nearer kind. A higher
            probability that the evidence refutes it decides last.
        negations: the share (0–1) of the rows whose c′ may have a negation that c lacks; other rows are rejected if the evidence
            refutes no other proposal. A language model's negations are refuted more often than its other values, and a model that
            is trained on them learns "not" for REFUTES. The paper does not limit them.
        fluency_model: a decoder-only language model that measures how fluent proposals are; the paper has none.
        max_perplexity_ratio: leave out proposals whose perplexity is more than so many times that of c.

    >>> GenerateNegativeClaim().generator.name
    'minwhoo/bart-base-negative-claim-generation'
    """

    VERSION: ClassVar[str] = "8"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"negative_claim": schema.TEXT, "writer": schema.TEXT}
    optional: ClassVar = {"fillings": List(schema.TEXT)}

    engines: ClassVar = (Continuation, Classifier, Perplexity)

    generator: Annotated[Model, Prompted()] = Model("minwhoo/bart-base-negative-claim-generation")
    num_beams: Positive = 5
    num_candidates: Positive = 1
    max_new_tokens: Positive = 64
    verifier: VerifierModel | None = None
    judges: JudgeModels = ()
    certainty: Certainty = 0.0
    max_length: Positive = 130
    exclude_same: bool = False
    exclusive: bool = False
    best: bool = False
    negations: Share = 1.0
    fluency_model: (
        Annotated[Model, NeedsWeights("the claims are compared by their perplexity, which an endpoint does not give")] | None
    ) = None
    max_perplexity_ratio: Annotated[float, Field(gt=0), GoesWith("fluency_model")] | None = None

    def check(self) -> None:
        check_judges(self.verifier, self.judges, self.certainty)
        if not is_prompted(self.generator):
            check_search(self.num_beams, num_candidates=self.num_candidates)

    def __getstate__(self) -> dict[str, Any]:
        verdicts = TASK.verdict_state(self.verifier, *self.judges)
        return {**super().__getstate__(), **prompts.state([PROMPT], self.generator), **verdicts}

    def check_available(self) -> None:
        """Raise if `exclude_same` or `exclusive` is set and WordNet is not installed."""
        if self.exclude_same or self.exclusive:
            wordnet()

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        requests = [row for row in rows if row["label"] == SUPPORTS]
        answers = (self._ask if is_prompted(self.generator) else self._search)(requests)
        offered = [self._hypotheses(row, answer) for row, answer in zip(requests, answers, strict=True)]
        chosen = iter(self._choose(requests, offered))
        return [next(chosen) if row["label"] == SUPPORTS else Reject("only SUPPORTS rows are augmented") for row in rows]

    def _search(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        engine = Continuation(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.num_candidates,
            max_new_tokens=self.max_new_tokens,
        )  # fmt: skip
        prompt = pair_prompt(self.generator) if rows else ""
        return engine.run([prompt.replace("{}", row["claim"]) for row in rows])

    def _ask(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        values = [{"claim": row["claim"], "evidence": row["evidence"]} for row in rows]
        claims = [row["claim"] for row in rows]
        return ask_edits(
            self.generator, PROMPT, values, claims, number=self.num_candidates, shots=SHOTS, max_tokens=self.max_new_tokens,
            seed=self.seed,
        )  # fmt: skip

    def _hypotheses(self, row: Row, results: Any) -> list[Hypothesis] | Reject:
        """List the claims that may be c′: first the generator's claims, best first, then the filled claims."""
        written = self._written(row, results)
        evidence = [text for _, _, text in evidence_texts(row)]
        filled = [text for text in row.get("fillings") or () if self._why_not_refuted(row["claim"], text, evidence) is None]
        if isinstance(written, Reject):
            return [Hypothesis(text, FILLING) for text in filled] or written
        writers = {**dict.fromkeys(filled, FILLING), **dict.fromkeys(written, GENERATOR)}
        return [Hypothesis(text, writers[text]) for text in dict.fromkeys([*written, *filled])]

    def _written(self, row: Mapping[str, Any], results: Any) -> list[str] | Reject:
        """List the generator's claims that may be c′, best first."""
        claim = row["claim"]
        if why := prompts.failure(results):
            return Reject(why)
        if results is None:
            return Reject("the claim is longer than the generator reads")
        if not results:
            return Reject("the generator wrote nothing")
        first = spaced_like(results[0]["text"], claim)
        finished = [rebalance(claim, spaced_like(answer["text"], claim)) for answer in results if answer["finished"]]
        if not finished:
            return Reject(f"the negative claim is cut off at {self.max_new_tokens} tokens", negative_claim=first)
        others = [text for text in finished if dedup_key(text) != dedup_key(claim)]
        if not others:
            return Reject("the negative claim is the claim", negative_claim=first)
        slips = {rebalance(claim, spaced_like(answer["text"], claim)): answer.get("fault") for answer in results}
        problems = {
            text: text_problem(text, "the negative claim") or _loose_quote(text, claim) or _why_clumsy(slips.get(text))
            for text in others
        }
        sound = [text for text in others if not problems[text]]
        if not sound:
            return Reject(problems[others[0]] or "", negative_claim=first)
        evidence = [text for _, _, text in evidence_texts(row)]
        reasons = {text: self._why_not_refuted(claim, text, evidence) for text in sound}
        refutable = [text for text in sound if reasons[text] is None]
        return refutable or Reject(f"the negative claim can't be refuted: it {reasons[sound[0]]}", negative_claim=first)

    def _why_not_refuted(self, claim: str, text: str, evidence: Sequence[str]) -> str | None:
        same = why_not_flipped(claim, text) or (why_preserving(claim, text, evidence) if self.exclude_same else None)
        return same or (why_compatible(claim, text) if self.exclusive else None)

    def _choose(self, rows: Sequence[Row], offered: Sequence[list[Hypothesis] | Reject]) -> list[dict[str, Any] | Reject]:
        """Choose a hypothesis for each row among the fluent hypotheses that the evidence refutes."""
        verdicts = iter(self._judge(rows, offered))
        judged = [
            group if isinstance(group, Reject) else [(hypothesis, next(verdicts)) for hypothesis in group] for group in offered
        ]
        refuted = [
            [] if isinstance(group, Reject) else [pair for pair in group if pair[1].reason is None and pair[1].label == REFUTES]
            for group in judged
        ]
        fluent = self._fluent(rows, refuted)
        results: list[dict[str, Any] | Reject] = []
        for row, group, sound, left in zip(rows, judged, refuted, fluent, strict=True):
            kept = self._without_negations(row, left)
            if isinstance(group, Reject):
                results.append(group)
            elif kept:
                hypothesis, _ = _choose_best(row, kept) if self.best else kept[0]
                results.append(
                    {"negative_claim": hypothesis.text, "writer": None if row.get("fillings") is None else hypothesis.writer}
                )
            else:
                why = f"the negative claim is over {self.max_perplexity_ratio} times as perplexing as the claim" if sound else None
                why = "the evidence refutes only a negation of the claim, which this row may not have" if left else why
                why = why or next((verdict.reason for _, verdict in group if verdict.reason), None)
                cut = next((verdict.cut for _, verdict in group if verdict.cut), "")
                why = why or f"the evidence refutes no claim of the generator{cut}"
                results.append(Reject(why, negative_claim=group[0][0].text))
        return results

    def _without_negations(self, row: Row, judged: list[Judged]) -> list[Judged]:
        """Leave out hypotheses with a further negation, unless the row is one of those that may have them."""
        if self.negations == 1 or not judged or self.random(row["id"]).random() < self.negations:
            return judged
        return [pair for pair in judged if not denies(row["claim"].split(), pair[0].text.split())]

    def _judge(self, rows: Sequence[Row], offered: Sequence[list[Hypothesis] | Reject]) -> list[Verdict]:
        """Return the verdict on each hypothesis, in order; without a verifier, that the evidence refutes it."""
        pairs = [
            {"claim": hypothesis.text, "evidence": row["evidence"]}
            for row, group in zip(rows, offered, strict=True)
            if isinstance(group, list)
            for hypothesis in group
        ]
        if self.verifier is None:
            return [Verdict(REFUTES)] * len(pairs)
        return vote(TASK, pairs, [(REFUTES,)] * len(pairs), (self.verifier, *self.judges), self.max_length, self.certainty)

    def _fluent(self, rows: Sequence[Row], refuted: Sequence[list[Judged]]) -> list[list[Judged]]:
        """Leave out hypotheses that are far more perplexing than their claims; hypotheses that are too long to tell stay."""
        if self.fluency_model is None or self.max_perplexity_ratio is None:
            return list(refuted)
        most = self.max_perplexity_ratio
        pairs = [(row["claim"], hypothesis.text) for row, group in zip(rows, refuted, strict=True) for hypothesis, _ in group]
        ratios = iter(perplexity_ratios(self.fluency_model, pairs))
        return [[pair for pair in group if not exceeds(next(ratios) or 0.0, most)] for group in refuted]


def _choose_best(row: Row, judged: Sequence[Judged]) -> Judged:
    ranks = [_rank(row, hypothesis) for hypothesis, _ in judged]
    equal = [pair for pair, rank in zip(judged, ranks, strict=True) if rank == min(ranks)]
    return best(equal, lambda pair: sum(score["value"] for score in pair[1].scores), lambda pair: pair[0].text)


def _rank(row: Row, hypothesis: Hypothesis) -> tuple[Any, ...]:
    """Return the key by which the best hypotheses are the smallest, before the probability that they are refuted."""
    claim, text = row["claim"], hypothesis.text
    before, after = ([word.casefold() for word in content_words(words)] for words in (claim, text))
    changes = sum(kind != "equal" for kind, *_ in opcodes(before, after))
    old, new, out, in_ = changed_span(claim, text)
    followed = bool(out and in_) and any(occurrences(piece, old) for _, _, piece in evidence_texts(row))
    return changes, is_negation(before, after), abs(in_ - out), not followed, hypothesis.writer != GENERATOR, -_nearness(old, new)


def _nearness(old: str, new: str) -> float:
    """Return how near the kinds of two phrases are; names and numbers are of one kind."""
    was, now = (text.split()[-1:] for text in (old, new))
    nouns = was and now and all(word[0].isalpha() and word[0].islower() for word in (*was, *now))
    return shared_depth(was[0], now[0]) if nouns else inf
