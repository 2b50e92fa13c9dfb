"""Claims that E or E′ supports: generated from its sentence rationales (RACE, section 3.3), or the source's, corrected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf import prompts
from hfcf.core import edits, schema
from hfcf.core.candidates import log_probability, reject, settle
from hfcf.core.decisions import reaches
from hfcf.core.model import Model, is_prompted
from hfcf.core.settings import LogProbability, NeedsWeights, NonNegative, Positive, Prompted, TrainedBy, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.engines.corrector import MOST, Corrector, Span, check_corrector, join_spans, word_places
from hfcf.engines.generator import Generator
from hfcf.engines.label_preserving import are_inflections
from hfcf.engines.wordnet import wordnet
from hfcf.prompts import Values, as_hypothesis, drop_repeats, why_example
from hfcf.prompts.edits import sample
from hfcf.systems.race.explain import SENTENCES
from hfcf.systems.race.follow import FOLLOWED, follow_edits
from hfcf.tasks.verification import CANDIDATES, REFUTES, SUPPORTS, generator_prefix, opposite
from hfcf.text.check import text_problem
from hfcf.text.evidence import evidence_texts, join
from hfcf.text.normalise import dedup_key, normalise
from hfcf.text.phrase_match import met
from hfcf.text.quantities import why_out_of_proportion
from hfcf.text.slips import why_clumsy
from hfcf.text.words import FUNCTION_WORDS

PROMPT = "evidence_claims"
SHOTS = 4
"""Worked examples of the prompt."""
FOLLOW, CORRECT, GENERATE = FOLLOWED, "writer: correct", "writer: generate"
Row = Mapping[str, Any]


def clauses(row: Mapping[str, Any]) -> list[list[str]]:
    """List a row's constraints (equation 1): the causal entities of each piece of the sentence rationales, no clause twice."""
    # Deviation: equation 1 has a clause for every piece of the evidence. The generator reads the sentence rationales alone, also in
    # the paper, and knows nothing of other pieces.
    pieces = [sentence["piece"] for sentence in row["sentence_rationales"]]
    entities = (tuple(dict.fromkeys(e["text"] for e in row["edited_entities"] if e["piece"] == piece)) for piece in pieces)
    return [list(clause) for clause in dict.fromkeys(entities) if clause]


@dataclass(frozen=True, kw_only=True)
class GenerateClaim(Stage):
    """Generate k candidate claims from the sentence rationales of E (REFUTES rows) or E′ (SUPPORTS rows).

    Input columns: `claim`, `label`, `evidence`, `entities`, `edits`, `edited_evidence`, `edited_entities`, `sentence_rationales`,
    `candidates`. Output column: `candidates`, the evidence candidate first, then the claims of each writer, best first. The search
    is constrained (equation 1): a claim names a causal entity of every piece. A claim that still does not is rejected. So is a
    claim that repeats the source's claim or is cut off.

    The paper's writer generates new claims. Two more, on request, keep the source's claim and change words of it:

    - *Follow*: where the edits of E′ touch words of the claim, the claim with the same edits; no other writer is then asked.
    - *Correct* (Thorne and Vlachos 2021, Evidence-based Factual Error Correction). The words that the evidence does not bear out
      are masked in several ways (`choose_masks`), and a T5 fills the masks from the evidence. The evidence is E; for a
      SUPPORTS row E′.

    With either, each candidate names its writer in its scores: "writer: follow", "writer: correct" or "writer: generate", with the
    value 1. A claim that two writers write counts once, as the first writer's.

    Args:
        generator: an encoder-decoder or decoder-only model, trained on evidence → claim; or "llm:NAME" or "chat:NAME", a language
            model that corrects the source's claim by the evidence, k times, and gives no log-probabilities.
        constrain: whether a claim must name an entity of each piece; without it, plain beam search, and no claim is rejected for
            what it names: the paper's ablation −CONS (section 5.2).
        edit: True: write a claim that the evidence supports. False is the ablation −EDIT (section 5.2). Its generator was trained
            on rows of both labels (`prefixed: true` in its recipe). It gets the prefix of the label that the row does not have.
        follow: also write the claim with the edits of its evidence. The paper has no such writer.
        corrector: a T5 that fills masked spans of claims, which also writes claims; None, as in the paper, is none.
        max_unsupported: reject a written claim with more content words than this that the evidence lacks. They are facts that the
            evidence does not mention, which small verifiers overlook. None, as in the paper, rejects none.
        min_log_probability: reject a written claim of a smaller mean log-probability; it is often no sentence. None, as in the
            paper, rejects none.
        num_candidates: k.
        num_beams: beams of the search.
        max_new_tokens: tokens of the longest claim.
        evidence_length: tokens of evidence that the generator reads.

    >>> GenerateClaim(generator=Model("t5-base")).num_beams
    30
    """

    VERSION: ClassVar[str] = "7"

    inputs: ClassVar = {
        "claim": schema.TEXT, "label": schema.TEXT, "evidence": schema.EVIDENCE, "entities": schema.ENTITIES, "edits": schema.EDITS,
        "edited_evidence": schema.EVIDENCE, "edited_entities": schema.ENTITIES, "sentence_rationales": SENTENCES,
        "candidates": CANDIDATES,
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {
        "entities": "race.tag_entities", "edits": "race.edit_evidence", "edited_evidence": "race.edit_evidence",
        "edited_entities": "race.edit_evidence", "sentence_rationales": "race.explain", "candidates": "race.check_edit",
    }  # fmt: skip
    batch_size: ClassVar[int] = 32

    engines: ClassVar = (Generator, Corrector)

    generator: Annotated[Model, Prompted(), TrainedBy("train_generator")]
    edit: bool = True
    constrain: bool = True
    num_candidates: Positive = 10
    num_beams: Positive = 30
    max_new_tokens: Positive = 96
    evidence_length: Positive = 512
    follow: bool = False
    corrector: (
        Annotated[Model, TrainedBy("train_corrector"), NeedsWeights("it fills marks that only T5's vocabulary has")] | None
    ) = None
    max_unsupported: NonNegative | None = None
    min_log_probability: LogProbability | None = None

    def check(self) -> None:
        if not is_prompted(self.generator):
            check_search(self.num_beams, num_candidates=self.num_candidates)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **prompts.state([PROMPT], self.generator)}

    def check_available(self) -> None:
        """Raise if WordNet is needed and not installed, or if the corrector has no marks for masked spans."""
        if self.corrector or self.max_unsupported is not None:
            wordnet()
        if self.corrector:
            check_corrector(self.corrector)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        required = [clauses(row) if self.constrain else [] for row in rows]
        if is_prompted(self.generator):
            required = [_kept_clauses(row, group) for row, group in zip(rows, required, strict=True)]
        followed = [follow_edits(row) if self.follow else None for row in rows]
        unwritten = [i for i, claim in enumerate(followed) if claim is None]
        others = [rows[i] for i in unwritten]
        generated = dict(zip(unwritten, self._generated(others, [required[i] for i in unwritten]), strict=True))
        corrected = dict(zip(unwritten, self._corrected(others), strict=True))
        results: list[dict[str, Any] | Reject] = []
        for i, (row, claim) in enumerate(zip(rows, followed, strict=True)):
            why = prompts.failure(answer := generated.get(i, ()))
            claims = [
                *([(FOLLOW, {"text": claim, "score": None, "finished": True})] if claim else ()),
                *((CORRECT, hypothesis) for hypothesis in corrected.get(i, ())),
                *((GENERATE, hypothesis) for hypothesis in (() if why else answer)),
            ]
            candidates = [candidate for candidate in row["candidates"] if candidate["change"] == "evidence"]
            seen = set[str]()
            for writer, hypothesis in claims:
                if hypothesis["text"] not in seen:
                    seen.add(hypothesis["text"])
                    candidates.append(self._candidate(row, writer, hypothesis, required[i]))
            results.append(settle(candidates, why or "the generator found no claim"))
        return results

    def _generated(self, rows: Sequence[dict[str, Any]], required: Sequence[list[list[str]]]) -> list[Any]:
        """Ask the generator, or the language model; return the rows' hypotheses, or why there are none."""
        labels = [SUPPORTS if self.edit else opposite(row["label"]) for row in rows]
        if is_prompted(self.generator):
            return self._ask(rows, labels)
        evidence = [[row["edited_evidence"][s["piece"]] for s in row["sentence_rationales"]] for row in rows]
        return self._search(evidence, required, labels)

    def _corrected(self, rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
        """Ask the corrector about every mask of each row's claim; return the rows' hypotheses, likeliest masks first."""
        if self.corrector is None:
            return [[] for _ in rows]
        masks: list[list[Any]] = []
        for row in rows:
            names = [(entity["start"], entity["end"]) for entity in row["entities"] if entity["field"] == "claim"]
            kept = row["label"] != REFUTES and not row["edits"]  # its evidence supports the claim as it is
            masks.append([] if kept else choose_masks(row["claim"], _texts(row), names))
        requests = [
            [row["claim"], [list(span) for span in spans], join(row["edited_evidence"])[0]]
            for row, ways in zip(rows, masks, strict=True)
            for spans in ways
        ]
        answers = iter(Corrector(model=self.corrector).run(requests))
        return [[hypothesis for _ in ways for hypothesis in next(answers) or ()] for ways in masks]

    def _search(self, evidence: Sequence[Any], required: Sequence[list[list[str]]], labels: Sequence[str]) -> list[Any]:
        engine = Generator(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.num_candidates,
            max_new_tokens=self.max_new_tokens, max_length=self.evidence_length,
        )  # fmt: skip
        prefixes = ["" if self.edit else generator_prefix(label) for label in labels]
        texts = [prefix + join(pieces)[0] for prefix, pieces in zip(prefixes, evidence, strict=True)]
        return engine.run([[text, constraints] for text, constraints in zip(texts, required, strict=True)])

    def _ask(self, rows: Sequence[Row], labels: Sequence[str]) -> list[Any]:
        # Deviation: a language model reads all pieces, not the sentence rationales alone: what a claim keeps of its source can rest
        # on any of them. It does not read the constraints, which `_candidate` checks: a list of names to use made Qwen 1.5 B repeat
        # the claim for 10 of 20 refuted rows of FEVEROUS, where it repeats 6 without.
        values = [
            {"claim": row["claim"], "evidence": row["edited_evidence"], "refuted": label == REFUTES}
            for row, label in zip(rows, labels, strict=True)
        ]
        answers = sample(
            self.generator, PROMPT, values, [{}] * len(rows), self.num_candidates, shots=SHOTS, max_tokens=self.max_new_tokens,
            seed=self.seed,
        )  # fmt: skip
        shown = prompts.read_prompt(PROMPT, self.generator.prompts)["examples"]
        return [_written(row["claim"], value, group, shown) for row, value, group in zip(rows, values, answers, strict=True)]

    def _candidate(
        self, row: Mapping[str, Any], writer: str, hypothesis: Mapping[str, Any], constraints: list[list[str]]
    ) -> dict[str, Any]:
        text, claim = hypothesis["text"], row["claim"]
        named = [{"name": writer, "value": 1.0}] if self.follow or self.corrector else []
        candidate = {
            "claim": text, "label": None, "change": "claim", "edits": edits.rewrite("claim", claim, text),
            "scores": [*named, *log_probability(hypothesis)], "status": None,
        }  # fmt: skip
        if not hypothesis["finished"]:
            return reject(candidate, self.name, f"is cut off at {self.max_new_tokens} tokens")
        if why := text_problem(text, "the claim") or hypothesis.get("fault"):
            return reject(candidate, self.name, why)
        if writer == GENERATE and not all(met(text, constraints)):
            return reject(candidate, self.name, "names no causal entity of every piece of evidence")
        if dedup_key(text) == dedup_key(claim):
            return reject(candidate, self.name, "repeats the source's claim")
        if why := why_out_of_proportion(claim, text):
            return reject(candidate, self.name, why)
        if writer != FOLLOW and (why := self._why_unsupported(row, text)):
            return reject(candidate, self.name, why)
        score, least = hypothesis["score"], self.min_log_probability
        if score is not None and least is not None and not reaches(score, least):
            return reject(candidate, self.name, f"is unlikely by the model that wrote it: {score:.2f}, {least} at least")
        return candidate

    def _why_unsupported(self, row: Mapping[str, Any], text: str) -> str | None:
        if self.max_unsupported is None:
            return None
        # What a language model leaves as it is, is the source's.
        texts = [*_texts(row), *([row["claim"]] if is_prompted(self.generator) else ())]
        if len(places := unsupported(text, texts)) <= self.max_unsupported:
            return None
        words = ", ".join(text[start:end] for start, end in places)
        return f"says what the evidence does not mention: {words}"


def _texts(row: Mapping[str, Any]) -> list[str]:
    return [text for _, _, text in evidence_texts({"evidence": row["edited_evidence"]})]


def _kept_clauses(row: Row, constraints: Sequence[list[str]]) -> list[list[str]]:
    """Leave out the clauses that the source's claim does not meet either, unless its evidence was edited there.

    Deviation: a claim that is edited says what its source says of the other pieces, in the source's words.
    """
    new = {edit["after"] for edit in row["edits"]}
    return [clause for clause in constraints if new & set(clause) or all(met(row["claim"], [clause]))]


def _written(claim: str, values: Values, answers: Sequence[Mapping[str, Any]], examples: Sequence[Values]) -> Any:
    """Return a language model's answers as a local generator does; if none is valid, why."""
    texts = drop_repeats((answer["answer"]["claim"] for answer in answers if "error" not in answer), values)
    if not texts:
        return answers[0]
    return [as_hypothesis(text, why_clumsy(text, claim) or why_example(text, values, examples)) for text in texts]


# --- the words of a claim that a corrector writes again

MASKS = 8
"""The most ways to mask one claim."""
_POSSESSIVE = re.compile("['’]s$")


def unsupported(claim: str, evidence: Sequence[str]) -> list[Span]:
    """List the places of a claim's content words that no text of its evidence has, in any inflection that WordNet knows.

    >>> claim = "Ann was born in 1859 and sang."
    >>> [claim[start:end] for start, end in unsupported(claim, ["Ann, born in 1864, sings."])]
    ['1859']
    """
    told = [text[start:end] for text in evidence for start, end in word_places(text)]
    known = {_bare(word) for word in told} | FUNCTION_WORDS  # a claim may have these, and its evidence not
    lower = sorted({word for word in told if word.islower()})
    places = [(start, end) for start, end in word_places(claim) if _bare(claim[start:end]) not in known]
    return [place for place in places if not any(are_inflections(claim[place[0] : place[1]], word) for word in lower)]


def _bare(word: str) -> str:
    return normalise(_POSSESSIVE.sub("", word))


def choose_masks(claim: str, evidence: Sequence[str], entities: Sequence[Span]) -> list[list[Span]]:
    """Choose what to mask in a claim: at most `MASKS` different ways, the likeliest first.

    They are all words that the evidence lacks, the same with a neighbour on each side, each of these words alone, and each entity
    alone.
    """
    words = word_places(claim)
    lacking = join_spans(claim, unsupported(claim, evidence))
    ways: list[Sequence[Span]] = []
    if lacking:
        wide = [_grown(words, span) for span in lacking]
        ways = [lacking, wide, *([span] for span in lacking), *([span] for span in wide)]
    ways += [[entity] for entity in entities]
    return [list(way) for way in dict.fromkeys(tuple(join_spans(claim, way)[:MOST]) for way in ways)][:MASKS]


def _grown(words: Sequence[Span], span: Span) -> Span:
    """Add a neighbour on each side to a span of words."""
    inside = [i for i, (start, end) in enumerate(words) if start < span[1] and span[0] < end]
    return words[max(0, inside[0] - 1)][0], words[min(len(words) - 1, inside[-1] + 1)][1]
