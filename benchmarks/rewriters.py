"""Three ways to counterfactuals that are not this library's systems: Polyjuice's recipe, TextAttack, a prompted language model.

Each takes rows and gives the candidates of each row, undecided or rejected by its own checks. Who judges them is for the caller
to say.
"""

from __future__ import annotations

import math
import os
import random
import re
import sys
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from common import stub_flair, write_stop_words

from hfcf import prompts
from hfcf.core import offline
from hfcf.core.candidates import Candidate, reject
from hfcf.core.model import Model
from hfcf.core.paths import cache_dir
from hfcf.core.task import task_of
from hfcf.engines.masked import MaskFiller
from hfcf.engines.perplexity import Perplexity
from hfcf.prompts.counterfactuals import SEMEVAL
from hfcf.systems.baselines._shared.word_edits import STOP_WORDS
from hfcf.systems.crossaug import OFFLINE
from hfcf.tasks.rewriting import rewriting_of
from hfcf.tasks.verification import LABELS, TASK, opposite, rewritten

Row = dict[str, Any]
SMOLLM, CHAT, MASKED = Model("offline:smollm2"), Model("chat:offline:smollm2"), Model("hfcf:mlm")

# --- Polyjuice's recipe

BLANKS, FILLS = 3, 3
"""Blanks of a claim, and texts for each: the defaults of Polyjuice's `perturb`, as is `LOSS`."""
LOSS = 10.0
"""How much less probable than its source a text may be, in nats."""


def polyjuice(rows: Sequence[Row]) -> list[list[Candidate]]:
    """Blank a word of the claim, let a masked model fill it, and reject what is far less fluent than its source."""
    spans = [blanks(row["claim"], random.Random(row["id"])) for row in rows]
    requests = [[row["claim"], [list(span) for span in places]] for row, places in zip(rows, spans, strict=True)]
    answers = MaskFiller(model=MASKED, top=FILLS + 1).run(requests)
    made = [
        [
            rewritten(row["claim"], text, opposite(row["label"]), "polyjuice")
            for span, ranked in zip(places, of_row, strict=True)
            for text in filled(row["claim"], span, [word for word, _ in ranked])
        ]
        for row, places, of_row in zip(rows, spans, answers, strict=True)
    ]
    return _keep_fluent(rows, made)


def blanks(claim: str, draw: random.Random) -> list[tuple[int, int]]:
    """Draw the words of a claim to blank, one in each new text; punctuation around them stays."""
    words = [match.span() for match in re.finditer(r"\w+(?:[-'’.]\w+)*", claim)]
    return sorted(draw.sample(words, min(BLANKS, len(words))))


def filled(claim: str, span: tuple[int, int], words: Sequence[str]) -> list[str]:
    """Put each of the best words but the claim's own in the place of a blank."""
    start, end = span
    others = [word for word in words if word.lower() != claim[start:end].lower()][:FILLS]
    return [claim[:start] + word + claim[end:] for word in others]


def _keep_fluent(rows: Sequence[Row], made: Sequence[list[Candidate]]) -> list[list[Candidate]]:
    texts = [
        text
        for row, of_row in zip(rows, made, strict=True)
        for text in (row["claim"], *(candidate["claim"] for candidate in of_row))
    ]
    perplexities = dict(zip(texts, Perplexity(model=SMOLLM).run(texts), strict=True))

    def unlikely(text: str) -> float:
        return math.log(perplexities[text]) * len(text.split())

    return [
        [
            reject(candidate, "polyjuice", "is far less fluent than its source")
            if candidate["status"] is None and unlikely(candidate["claim"]) - unlikely(row["claim"]) >= LOSS
            else candidate
            for candidate in of_row
        ]
        for row, of_row in zip(rows, made, strict=True)
    ]


# --- a language model that is asked


def prompted(rows: Sequence[Row]) -> list[list[Candidate]]:
    """Ask the offline language model with the prompt of the baseline `llm`; a row without a valid answer has no candidate."""
    prompt = resolve_name(rewriting_of(task_of(rows[0]).name).prompt)(relations=SEMEVAL, max_words=100)
    readable = [row for row in rows if prompt.find_problem(row) is None]
    answers = prompts.ask(
        CHAT, prompt.template, [prompt.values(row) for row in readable], shots=1, limits=prompt.limits,
        row_limits=[prompt.row_limits(row) for row in readable], max_tokens=128,
    )  # fmt: skip
    made = {
        row["id"]: [prompt.candidate(row, answer["answer"], "prompted")]
        for row, answer in zip(readable, answers, strict=True)
        if "error" not in answer
    }
    return [made.get(row["id"], []) for row in rows]


# --- TextAttack

PEER = "HFCF_PEER_TEXTATTACK"
CURE = """pip install --target FOLDER --no-deps textattack==0.3.11 anytree bert-score editdistance jieba langdetect \
  language_tool_python==2.9.4 lemminflect Levenshtein lru-dict more-itertools num2words OpenHowNet pinyin six terminaltables \
  word2number"""


def textattack_folder() -> str | None:
    """Return the folder of TextAttack, which `CURE` installs."""
    return os.environ.get(PEER)


def textattack(rows: Sequence[Row]) -> list[list[Candidate]]:
    """Attack the verifier with PWWS (Ren et al. 2019), towards the opposite label; a success is a candidate."""
    if (folder := textattack_folder()) and folder not in sys.path:
        _make_importable(folder)
    from textattack import Attack
    from textattack.attack_results import SuccessfulAttackResult
    from textattack.constraints.pre_transformation import RepeatModification, StopwordModification
    from textattack.goal_functions import TargetedClassification
    from textattack.models.wrappers import ModelWrapper
    from textattack.search_methods import GreedyWordSwapWIR
    from textattack.transformations import WordSwapWordNet

    class Victim(ModelWrapper):  # type: ignore[misc]
        """The verifier, asked about claims on the evidence of one row."""

        row: Row
        model = None

        def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            answers = TASK.judge([{**self.row, "claim": text} for text in texts], OFFLINE["verifier"], OFFLINE["max_length"])
            return [[answer[label] for label in LABELS] if answer else [0.0, 0.0, 1.0] for answer in answers]

    goal = TargetedClassification(victim := Victim())
    search = GreedyWordSwapWIR("weighted-saliency")
    attack = Attack(goal, [RepeatModification(), StopwordModification()], WordSwapWordNet(), search)
    made: list[list[Candidate]] = []
    for row in rows:
        victim.row, wanted = row, opposite(row["label"])
        goal.target_class = LABELS.index(wanted)
        attack.clear_cache()  # of answers about a claim, whatever its evidence
        result = attack.attack(row["claim"], LABELS.index(row["label"]))
        success = isinstance(result, SuccessfulAttackResult)
        made.append([rewritten(row["claim"], result.perturbed_text(), wanted, "textattack")] if success else [])
    return made


def _make_importable(folder: str) -> None:
    """Let TextAttack import, with this library's WordNet and EDA's stop words in the place of its downloads."""
    import nltk

    stop_words = cache_dir() / "benchmarks" / "nltk"
    write_stop_words(stop_words, STOP_WORDS)
    nltk.data.path[:0] = [str(offline.folder("wordnet")), str(stop_words)]
    stub_flair()
    sys.path.append(folder)
