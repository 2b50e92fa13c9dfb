"""CrossAug (Lee et al. 2021, CIKM): contrastive pairs for fact verification, from SUPPORTS rows.

For (c, e, SUPPORTS) a generator writes a negative claim c′. Where c and c′ differ in a few words that the evidence has too, the
same words are replaced there, which gives e′. Paired crosswise: (c′, e, REFUTES), (c, e′, REFUTES) and (c′, e′, SUPPORTS).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Literal

from hfcf import prompts
from hfcf.core import edits, schema
from hfcf.core.model import Model, is_remote
from hfcf.core.settings import Endpoint, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.contradiction import why_compatible
from hfcf.engines.generator import plain_prompt
from hfcf.engines.label_preserving import why_preserving
from hfcf.engines.remote.llm_backend import ask_texts, failure
from hfcf.engines.wordnet import wordnet
from hfcf.tasks.ensemble import Certainty, JudgeModels, VerifierModel, check_judges, vote
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.verification import CANDIDATES, REFUTES, SUPPORTS, TASK, candidate
from hfcf.text.check import text_problem
from hfcf.text.evidence import evidence_texts
from hfcf.text.normalise import dedup_key
from hfcf.text.words import Word, split

PROMPT = "negative_claims"
Pair = Literal["claim", "evidence", "both"]
MODIFIED = "modified"


def changed_span(claim: str, negative: str) -> tuple[str, str, int, int]:
    """Find the texts between the beginning and the ending that two claims share, and the number of words in each.

    A span that touches its neighbour in only one of the claims includes that word: an extra or missing space would reveal the
    label.
    """
    first, second = split(claim), split(negative)
    head = _equal_words(first, second)
    tail = min(_equal_words(first[::-1], second[::-1]), min(len(first), len(second)) - head)
    if len(first) > head + tail < len(second):
        while head and _gap(first, head) != _gap(second, head):
            head -= 1
        while tail and _gap(first, len(first) - tail) != _gap(second, len(second) - tail):
            tail -= 1
    before, after = first[head : len(first) - tail], second[head : len(second) - tail]
    return _text_of(claim, before), _text_of(negative, after), len(before), len(after)


def _equal_words(first: Sequence[Word], second: Sequence[Word]) -> int:
    """Count the equal words at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0].key == pair[1].key, zip(first, second, strict=False)))


def _text_of(text: str, words: Sequence[Word]) -> str:
    return text[words[0].start : words[-1].end] if words else ""


def _gap(words: Sequence[Word], i: int) -> bool:
    """Say whether there is a space before word i."""
    return words[i - 1].end < words[i].start


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """Find `words` in `text` as whole words of the same case; no place overlaps another."""
    pattern, tokens = [word.key for word in split(words)], split(text)
    places, i, n = [], 0, len(pattern)
    while pattern and i + n <= len(tokens):
        if [word.key for word in tokens[i : i + n]] == pattern:
            places.append((tokens[i].start, tokens[i + n - 1].end))
            i += n
        else:
            i += 1
    return places


def spaced_like(text: str, source: str) -> str:
    """Remove the spaces of tokenised text, which generators learn, unless `source` also has them."""
    for wide, narrow in _TOKENISED:  # from where spaces begin: one that is tried at each of many spaces takes quadratic time
        if not wide.search(source):
            text = wide.sub(narrow, text)
    return text


_TOKENISED = (
    (re.compile(r"(?:(?<!\s)|(?<=[.,;:!?%]\s))\s+([.,;:!?%](?:\s|$))"), r"\1"),
    (re.compile(r"(?<!\s)\s+(['’](?:s|re|ve|ll|d|m)\b|n['’]t\b)"), r"\1"),
    (re.compile(r"([(\[])\s+"), r"\1"),
    (re.compile(r"(?<!\s)\s+([)\]])"), r"\1"),
    (re.compile(r"(``|“)\s+|(?<!\s)\s+(''|”)"), '"'),
)


def _loose_quote(text: str, source: str) -> str | None:
    """Report an unpaired quotation mark, which small generators write; None if the source also has an unpaired mark."""
    if text.count('"') % 2 and not source.count('"') % 2:
        return "the negative claim has a quotation mark without its other one"
    return None


@dataclass(frozen=True, kw_only=True)
class GenerateNegativeClaim(Stage):
    """Write c′, a claim that the evidence refutes, for the claim c of a SUPPORTS row (section 2.2, first stage).

    Input columns: `claim`, `evidence`, `label`. Output column: `negative_claim`. Rows of other labels are rejected, and rows whose
    c′ repeats c, which the paper skips and its released code keeps.

    Deviations: a c′ that `max_new_tokens` cuts off is also rejected (the released code takes any text of its library's
    default length). Spaces of tokenised text that c does not have are removed, or they would reveal the label. A c′ with an
    unpaired quotation mark is left out.

    Args:
        generator: an encoder-decoder or decoder-only model, trained on pairs of claims (`recipes/train_negative.yaml`); the paper's
            is BART-base, trained on WikiFactCheck-English (released). Or "llm:NAME": a language model behind an endpoint reads the
            evidence too, and writes all candidates at once.
        num_beams: beams of the search (5 in the released code).
        num_candidates: the number of hypotheses to read; c′ is the first complete hypothesis that is not c. The paper reads 1.
        max_new_tokens: longest claim, in tokens.
        verifier: a three-way verifier, or "llm:NAME"; c′ is then the first hypothesis that, by its verdict, the evidence refutes.
            The paper has no verifier.
        judges: further verifiers, which must agree; they judge only hypotheses that the verifier refutes.
        certainty: the probability that each verifier must give that verdict (0–1).
        max_length: tokens of claim and evidence that the verifier reads.
        exclude_same: leave out hypotheses that, as far as English WordNet knows, can't be refuted: those that differ from c only in
            articles, case or inflection, by a synonym or a broader word, or by words that the evidence already has; see
            `hfcf.engines.label_preserving.why_preserving`. A row without other hypotheses is rejected with the reason of the first.
            The paper has no such check.
        exclusive: keep only hypotheses that exclude c, as far as English words tell (`hfcf.engines.contradiction.why_compatible`):
            another number, date, name or nationality, an antonym, a negation, another kind of thing. A person may be an actor and a
            singer, so the verifiers of the offline preset are wrong about most other hypotheses. The paper has no such check.

    >>> GenerateNegativeClaim().generator.name
    'minwhoo/bart-base-negative-claim-generation'
    """

    VERSION: ClassVar[str] = "5"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT}
    outputs: ClassVar = {"negative_claim": schema.TEXT}

    engines: ClassVar = (Continuation, Classifier)

    generator: Annotated[Model, Endpoint()] = Model("minwhoo/bart-base-negative-claim-generation")
    num_beams: Positive = 5
    num_candidates: Positive = 1
    max_new_tokens: Positive = 64
    verifier: VerifierModel | None = None
    judges: JudgeModels = ()
    certainty: Certainty = 0.0
    max_length: Positive = 130
    exclude_same: bool = False
    exclusive: bool = False

    def check(self) -> None:
        check_judges(self.verifier, self.judges, self.certainty)
        if self.num_candidates > self.num_beams and not is_remote(self.generator):
            raise ValueError(f"num_candidates must be at most num_beams ({self.num_beams}), got {self.num_candidates}")

    def __getstate__(self) -> dict[str, Any]:
        verdicts = TASK.verdict_state(self.verifier, *self.judges)
        return {**super().__getstate__(), **prompts.state([PROMPT], self.generator), **verdicts}

    def check_available(self) -> None:
        """Raise if `exclude_same` or `exclusive` is set and WordNet is not installed."""
        if self.exclude_same or self.exclusive:
            wordnet()

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        requests = [row for row in rows if row["label"] == SUPPORTS]
        answers = (self._ask if is_remote(self.generator) else self._search)(requests)
        results = [self._candidates(row, answer) for row, answer in zip(requests, answers, strict=True)]
        verdicts = iter(self._refuted(requests, results))
        chosen = iter([self._choose(texts, verdicts) if isinstance(texts, list) else texts for texts in results])
        return [next(chosen) if row["label"] == SUPPORTS else Reject("only SUPPORTS rows are augmented") for row in rows]

    def _search(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        engine = Continuation(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.num_candidates,
            max_new_tokens=self.max_new_tokens,
        )  # fmt: skip
        prompt = plain_prompt(self.generator) if rows else ""
        return engine.run([prompt.replace("{}", row["claim"]) for row in rows])

    def _ask(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        number = self.num_candidates
        messages = [prompts.messages(PROMPT, shots=2, claim=row["claim"], evidence=row["evidence"], number=number) for row in rows]
        return ask_texts(
            self.generator, "claims", messages, number=number, max_tokens=32 + self.max_new_tokens * number, seed=self.seed
        )

    def _candidates(self, row: Mapping[str, Any], results: Any) -> list[str] | Reject:
        """List the hypotheses that may be c′, best first."""
        claim = row["claim"]
        if why := failure(results):
            return Reject(why)
        if results is None:
            return Reject("the claim is longer than the generator reads")
        if not results:
            return Reject("the generator wrote nothing")
        first = spaced_like(results[0]["text"], claim)
        finished = [spaced_like(answer["text"], claim) for answer in results if answer["finished"]]
        if not finished:
            return Reject(f"the negative claim is cut off at {self.max_new_tokens} tokens", negative_claim=first)
        others = [text for text in finished if dedup_key(text) != dedup_key(claim)]
        if not others:
            return Reject("the negative claim is the claim", negative_claim=first)
        problems = {text: text_problem(text, "the negative claim") or _loose_quote(text, claim) for text in others}
        sound = [text for text in others if not problems[text]]
        if not sound:
            return Reject(problems[others[0]] or "", negative_claim=first)
        evidence = [text for _, _, text in evidence_texts(row)]
        reasons = {text: self._why_not_refuted(claim, text, evidence) for text in sound}
        refutable = [text for text in sound if reasons[text] is None]
        return refutable or Reject(f"the negative claim can't be refuted: it {reasons[sound[0]]}", negative_claim=first)

    def _why_not_refuted(self, claim: str, text: str, evidence: Sequence[str]) -> str | None:
        same = why_preserving(claim, text, evidence) if self.exclude_same else None
        return same or (why_compatible(claim, text) if self.exclusive else None)

    def _refuted(self, rows: Sequence[Mapping[str, Any]], results: Sequence[list[str] | Reject]) -> list[bool | str]:
        """Return for each candidate, in order, whether the evidence refutes it, or the reason if the judges give no verdict."""
        pairs = [
            {"claim": text, "evidence": row["evidence"]}
            for row, texts in zip(rows, results, strict=True)
            if isinstance(texts, list)
            for text in texts
        ]
        if self.verifier is None:
            return [True] * len(pairs)
        judges, accepted = (self.verifier, *self.judges), [(REFUTES,)] * len(pairs)
        verdicts = vote(TASK, pairs, accepted, judges, self.max_length, self.certainty)
        return [verdict.reason or verdict.label == REFUTES for verdict in verdicts]

    def _choose(self, texts: Sequence[str], verdicts: Iterator[bool | str]) -> dict[str, Any] | Reject:
        said = [next(verdicts) for _ in texts]
        refuted = [text for text, verdict in zip(texts, said, strict=True) if verdict is True]
        if refuted:
            return {"negative_claim": refuted[0]}
        if why := next((verdict for verdict in said if isinstance(verdict, str)), None):
            return Reject(why, negative_claim=texts[0])
        return Reject("the evidence refutes no claim of the generator", negative_claim=texts[0])


@dataclass(frozen=True, kw_only=True)
class ModifyEvidence(Stage):
    """Make the change from c to c′ in the evidence, if the change is a few words that occur there (section 2.2, second stage).

    Input columns: `claim`, `negative_claim`, `evidence`. Output columns: `edits` of the evidence, empty if it is unchanged, and
    `modification`: "modified", or why not. A row with unchanged evidence is not rejected: (c′, e, REFUTES) is kept.

    The change is the only span between the beginning and the ending that c and c′ share. It is made where c's words occur in the
    evidence, compared with case, in texts and titles; c′'s words are put there as c′ has them.

    Deviations from the released code, which joins tokens with spaces again: the text around the edit stays as it was, and a span
    takes along a word that it touches in one claim only. Words are split by a rule of ours that agrees with its tokenizer except in
    rare abbreviations.

    Args:
        max_span: τ, the words (and punctuation marks) that either side of the change may have.
        replace_all: also edit evidence in which c's words occur several times, at each place; the released code does not.

    >>> row = {"claim": "It has 30 men.", "negative_claim": "It has 9 men.", "evidence": [{"title": "", "text": "Of 30 men…"}]}
    >>> ModifyEvidence().row(row)["edits"][0]["after"]
    '9'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {"claim": schema.TEXT, "negative_claim": schema.TEXT, "evidence": schema.EVIDENCE}
    outputs: ClassVar = {"edits": schema.EDITS, "modification": schema.TEXT}
    produced_by: ClassVar = {"negative_claim": "crossaug.generate_negative_claim"}

    max_span: Positive = 3
    replace_all: bool = False

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        before, after, out, in_ = changed_span(row["claim"], row["negative_claim"])
        if not out or not in_:
            return _stays("words are only added" if in_ else "words are only left out" if out else "the words are the same")
        if max(out, in_) > self.max_span:
            return _stays(f"more than {self.max_span} words change")
        results = [
            {"field": field, "piece": piece, "start": start, "end": end, "before": text[start:end], "after": after}
            for field, piece, text in evidence_texts(row)
            for start, end in occurrences(text, before)
        ]
        if not results:
            return _stays("the words are not in the evidence")
        if len(results) > 1 and not self.replace_all:
            return _stays("the words are in the evidence several times")
        return {"edits": sorted(results, key=itemgetter("field", "piece", "start")), "modification": MODIFIED}


def _stays(reason: str) -> dict[str, Any]:
    return {"edits": [], "modification": reason}


@dataclass(frozen=True, kw_only=True)
class CrossPairs(Stage):
    """Pair the claims with the pieces of evidence crosswise: (c′, e, REFUTES), (c, e′, REFUTES), (c′, e′, SUPPORTS).

    Input columns: `claim`, `negative_claim`, `edits`. Output column: `candidates`, of change "claim", "evidence" and "both";
    without modified evidence only "claim".

    Args:
        pairs: the changes; ("claim",) and ("evidence",) are the ablations of Table 1.

    >>> row = {"claim": "a", "negative_claim": "b", "edits": []}
    >>> [new["change"] for new in CrossPairs().row(row)["candidates"]]
    ['claim']
    """

    inputs: ClassVar = {"claim": schema.TEXT, "negative_claim": schema.TEXT, "edits": schema.EDITS}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"negative_claim": "crossaug.generate_negative_claim", "edits": "crossaug.modify_evidence"}

    pairs: tuple[Pair, ...] = ("claim", "evidence", "both")

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        negative = edits.rewrite("claim", row["claim"], row["negative_claim"])
        candidates = [candidate(row["negative_claim"], REFUTES, "claim", negative)]
        if row["edits"]:
            candidates.append(candidate(row["claim"], REFUTES, "evidence", row["edits"]))
            candidates.append(candidate(row["negative_claim"], SUPPORTS, "both", [*negative, *row["edits"]]))
        candidates = [new for new in candidates if new["change"] in self.pairs]
        if not candidates:
            raise Reject("the evidence was not modified", candidates=[])
        return {"candidates": candidates}


OFFLINE: dict[str, Any] = {
    "generator": Model("offline:t5", adapter="hfcf:negative"),
    # The small generator's best hypothesis is the claim itself in half of the cases, and many of its others are paraphrases.
    "num_beams": 10,
    "num_candidates": 10,
    "verifier": Model("offline:minilm", adapter="hfcf:verifier"),
    # A small verifier accepts too many wrong pairs; the judge is trained on the other half of the rows.
    "judges": (Model("offline:minilm", adapter="hfcf:verifier_2"),),
    "max_length": 160,
    # A small verifier takes some paraphrases for refuted, and most of what may be true as well.
    "exclude_same": True,
    "exclusive": True,
    "unique": True,
}
"""Settings of the offline preset: what the paper's BART writes unchecked, a small T5 writes for a verifier to choose from."""

_CHAT = Model("llm:gpt-4o-mini")
LLM: dict[str, Any] = {"generator": _CHAT, "num_candidates": 3, "verifier": _CHAT}
"""A language model behind `HFCF_LLM_URL` writes and verifies; no local model is left."""


class CrossAug(System):
    """Write a negative claim for each supported claim, make the evidence support it, and pair claims and evidence crosswise.

    `ds = CrossAug.preset("offline")(ds)` runs the whole chain; each of its stages is an attribute.

    As in the paper, nothing is checked without a verifier. With a verifier, as in the offline preset, c′ is a claim that the
    evidence refutes, and a pair is kept only if the verifier and all judges agree.

    Its settings are those of its stages. `generator`, `verifier` and each of `judges` may be "llm:NAME", a language model behind an
    endpoint (`hfcf.engines.remote.engine.Remote` has its environment variables); the preset "llm" has one for the first two.

    >>> [stage.name for stage in CrossAug.preset("offline").stages]
    ['generate_negative_claim', 'modify_evidence', 'cross_pairs', 'judge_candidates']
    """

    task = "verification"
    chain = (GenerateNegativeClaim, ModifyEvidence, CrossPairs, JudgeCandidates)
    presets: ClassVar = {"paper": {}, "offline": OFFLINE, "llm": LLM}
    citation = """@inproceedings{lee-etal-2021-crossaug,
  title = {{CrossAug}: A Contrastive Data Augmentation Method for Debiasing Fact Verification Models},
  author = {Lee, Minwoo and Won, Seungpil and Kim, Juae and Lee, Hwanhee and Park, Cheoneum and Jung, Kyomin},
  booktitle = {Proceedings of CIKM},
  year = {2021}
}"""
