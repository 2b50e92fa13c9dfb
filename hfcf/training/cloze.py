"""Make questions from claims, to train a reader without real questions: unsupervised question answering by clozes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from datasets import Dataset

from hfcf.engines.ner import Ner
from hfcf.tasks.qa import TASK
from hfcf.tasks.verification import SUPPORTS
from hfcf.text.normalise import normalise
from hfcf.text.phrase_match import WORD_END, WORD_START

WH = {
    "PERSON": ("who",),
    "DATE": ("when", "what year", "what date"),
    "GPE": ("where", "what place", "which country or city"),
    "ORG": ("what", "what organization", "who"),
    "NUM": ("how many", "how much", "what number"),
}
"""Question words for each entity type in `hfcf.engines.ner.TYPES`."""
_PREPOSITION = re.compile(r"(?<!\s)\s+(?:in|on|at|by|of|from|to|for|with|during|until|since|as)\s*$", re.IGNORECASE)
_ENDS = " ,.;:!?"
_DRAWS = 8
"""How many pieces are drawn to fill up a passage; pieces that are too long or hold the answer are not used."""


def cloze_questions(rows: Dataset, ner: Ner, *, seed: int = 13, words: int = 90) -> Dataset:
    """Make a question from each entity of a supported claim that occurs in its evidence; the entity is the answer.

    Source: Lewis et al. 2019, Unsupervised Question Answering by Cloze Translation. An entity is masked and the cloze becomes a
    question with the wh-word of the entity's type. Deviations: the paper masks entities in the sentences of the passage and
    translates the clozes with a model trained on unpaired questions. Here claims already paraphrase the evidence, and a rule moves
    the wh-word to the front. The paper reads whole paragraphs. Here pieces of other rows that lack the answer fill the passage up
    to `words` words.

    Args:
        rows: verification rows.
        ner: finds the claims' entities.
        seed: for the wh-words, the added pieces and their order.
        words: number of words in a passage.

    Returns:
        Question answering rows in the order of the claims, each with the first place of its one answer.
    """
    kept = rows.select([i for i, label in enumerate(rows["label"]) if label == SUPPORTS])
    entities = ner.run(list(kept["claim"]))
    others = [piece for evidence in kept["evidence"] for piece in evidence]
    made: dict[str, list[Any]] = {name: [] for name in TASK.features}
    seen: set[tuple[str, str]] = set()
    for row, spans in zip(kept, entities, strict=True):
        for question in _questions(row, spans, others, seed, words):
            key = (normalise(question["question"]), question["answers"]["text"][0])
            if key not in seen:  # corpora repeat claims
                seen.add(key)
                for name in made:
                    made[name].append(question[name])
    return Dataset.from_dict(made, features=TASK.features)


def _questions(
    row: Mapping[str, Any], spans: Sequence[Sequence[Any]], others: Sequence[Mapping[str, str]], seed: int, words: int
) -> Iterator[dict[str, Any]]:
    for n, (start, end, kind) in enumerate(spans):
        answer = row["claim"][start:end]
        random = Random(f"{seed}:cloze:{row['corpus']}:{row['id']}:{n}")
        passage = _passage(row["evidence"], others, answer, random, words)
        match = _find(answer, passage)
        first, last = clause(row["claim"], start, end)
        question = wh_question(row["claim"][first:last], start - first, end - first, random.choice(WH[kind]))
        # A question of a word or two, or one that holds its answer, teaches nothing.
        if match is None or len(question.split()) < 4 or _find(answer, question):
            continue
        # Questions to search engines have neither capitals nor question marks (Natural Questions); other questions do (SQuAD).
        question = question.lower() if random.random() < 0.5 else question[0].upper() + question[1:] + "?"
        yield {
            "id": f"{row['id']}:cloze:{n}", "title": row["evidence"][0]["title"] or "", "context": passage, "question": question,
            "answers": {"text": [passage[match.start() : match.end()]], "answer_start": [match.start()]},
            **{name: row[name] for name in ("group_id", "corpus", "split")},
        }  # fmt: skip


def clause(claim: str, start: int, end: int, longest: int = 20) -> tuple[int, int]:
    """Return the part of a claim, from comma to comma, around a span, of at most `longest` words; what precedes comes first."""
    cuts = [0, *(match.end() for match in re.finditer(r"[,;]\s", claim)), len(claim)]
    first = max(i for i, cut in enumerate(cuts[:-1]) if cut <= start)
    last = min(i for i, cut in enumerate(cuts) if cut >= end)
    for left, right in [(i, last) for i in range(first - 1, -1, -1)] + [(0, i) for i in range(last + 1, len(cuts))]:
        if len(claim[cuts[min(left, first)] : cuts[right]].split()) > longest:
            break
        first, last = min(left, first), right
    return cuts[first], len(claim[: cuts[last]].rstrip(_ENDS)) if last < len(cuts) - 1 else cuts[last]


def wh_question(claim: str, start: int, end: int, wh: str) -> str:
    """Replace a span of a claim by a question word, and move it to the front."""
    before, after = claim[:start], claim[end:].strip().strip(_ENDS)
    before = re.sub(r"\bthe\s*$", "", _PREPOSITION.sub("", re.sub(r"\b(?:the|an?)\s*$", "", before))).strip(_ENDS)
    return " ".join(part for part in (wh, before, after) if part)


def _passage(
    evidence: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]], answer: str, random: Random, words: int
) -> str:
    texts = [piece["text"] for piece in evidence]
    for text in (random.choice(others)["text"] for _ in range(_DRAWS)):
        missing = words - sum(len(text.split()) for text in texts)
        if missing > 0 and len(text.split()) <= 2 * missing and text not in texts and _find(answer, text) is None:
            texts.append(text)
    random.shuffle(texts)
    return " ".join(texts)


def _find(phrase: str, text: str) -> re.Match[str] | None:
    return re.search(WORD_START + re.escape(phrase) + WORD_END, text, re.IGNORECASE)
