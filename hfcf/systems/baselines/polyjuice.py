"""Polyjuice (Wu et al. 2021, ACL): counterfactual sentences from a GPT-2 with control codes for kinds of change.

The model continues `<claim> <|perturb|> [<code>]`: first the claim with blanks, then what fills them. So
`It is great. <|perturb|> [negation] It is [BLANK] great. [SEP] not [ANSWER]` becomes "It is not great."
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from datasets import Dataset, IterableDataset

from hfcf.core import edits
from hfcf.core.candidates import Candidate, log_probability, reject, reject_repeats, settle
from hfcf.core.model import Model
from hfcf.core.settings import Positive, check_search
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns, get_task
from hfcf.engines.continuation import Continuation
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines.paraphrase import too_long
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import (
    Rewriting,
    candidate_columns,
    learn_labels,
    learned_labels,
    model_columns,
    rewriting_of,
)
from hfcf.text.check import text_problem

PERTURB, BLANK, SEP, ANSWER, EMPTY = MARKS = ("<|perturb|>", "[BLANK]", "[SEP]", "[ANSWER]", "[EMPTY]")
"""The marks of the model's language, plain text to its tokenizer."""
Code = Literal["negation", "quantifier", "shuffle", "lexical", "resemantic", "insert", "delete", "restructure"]
"""The kinds of change that the published model was trained on."""


def fill_blanks(text: str) -> str:
    """Fill the blanks of a text with its answers; raise `ValueError` with a predicate ("has no blank") for a malformed text.

    Answers beyond the blanks, and the text after the last `[ANSWER]`, are ignored.
    """
    if text.count(SEP) != 1:
        raise ValueError(f"has {SEP} {text.count(SEP)} times, not once")
    blanked, _, filling = text.partition(SEP)
    first, *others = blanked.split(BLANK)
    answers = [answer.strip() for answer in filling.split(ANSWER)[:-1]]
    if not others:
        raise ValueError("has no blank")
    if len(answers) < len(others):
        raise ValueError(f"has {len(answers)} answers for {len(others)} blanks")
    filled = first
    for answer, after in zip(answers, others, strict=False):
        # An empty answer also removes the space before its blank.
        filled = (filled.rstrip() if answer in ("", EMPTY) else filled + answer) + after
    filled = " ".join(filled.split())
    if left := [mark for mark in MARKS if mark in filled]:
        raise ValueError(f"has {left[0]} in its sentence")
    if problem := text_problem(filled, "its sentence"):
        raise ValueError(f"is not a sentence: {problem}")
    return filled


def random_blank(text: str, draw: random.Random) -> str:
    """Put one blank into a text: instead of a word (7 times in 10), or before a word."""
    parts = edits.words(text)
    # A letter of the text is one of a word: punctuation alone was rejected before.
    i = draw.choice([i for i, part in enumerate(parts) if any(character.isalnum() for character in part)])
    space = parts[i][: len(parts[i]) - len(parts[i].lstrip())]
    parts[i] = space + BLANK if draw.random() < 0.7 else f"{space}{BLANK} {parts[i].lstrip()}"
    return "".join(parts).strip()


@dataclass(frozen=True, kw_only=True)
class RewritePolyjuice(Stage):
    """Ask the model for a sentence that contradicts the claim or text; its label is meant to be the opposite.

    Input columns: the task's texts (so that a broken row is rejected before a model runs) and `label`. Output column:
    `candidates`, best first. A row whose label has no opposite is rejected (NOT ENOUGH INFO; a text where the rows have more
    than two labels). So is a row whose text holds one of the model's marks or is too long for it. An answer is rejected if it
    is malformed (`fill_blanks`) or repeats the text or a better answer. Where labels are open, the stage learns the labels of the
    rows.

    Args:
        generator: the model.
        task: the task of the rows.
        code: the kind of change, one of `Code`.
        blanks: "random", as in the authors' call without blanks. A blank is placed by chance and the model fills it. "model":
            the model places the blanks itself.
        num_beams: beams of the search.
        num_return_sequences: answers to a claim.
        max_new_tokens: longest answer, in tokens.

    >>> RewritePolyjuice(code="negate")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: code must be 'negation', ...
    """

    inputs: ClassVar[Any] = TaskColumns(model_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)
    batch_size: ClassVar[int] = 64

    engines: ClassVar = (Continuation,)

    generator: Model = Model("uw-hai/polyjuice")
    task: str = DEFAULT
    code: Code = "negation"
    blanks: Literal["random", "model"] = "random"
    num_beams: Positive = 10
    num_return_sequences: Positive = 1
    max_new_tokens: Positive = 200

    def check(self) -> None:
        check_search(self.num_beams, num_return_sequences=self.num_return_sequences)

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("label",) if get_task(self.task).labels is None else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        return learn_labels(ds)

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        rewriting = rewriting_of(self.task)
        engine = Continuation(
            model=self.generator, num_beams=self.num_beams, num_return_sequences=self.num_return_sequences,
            max_new_tokens=self.max_new_tokens, max_length=1024,
        )  # fmt: skip
        targets = [self._target(row, rewriting) for row in rows]
        requests = [(row["id"], rewriting.readable(row).strip()) for row, (label, _) in zip(rows, targets, strict=True) if label]
        blanked = [random_blank(text, self.random(row_id)) if self.blanks == "random" else "" for row_id, text in requests]
        # As the authors' code does, without [SEP] after the blanked claim: the model writes it, and may first continue.
        prompts = [f"{text} {PERTURB} [{self.code}] {b}".strip() for (_, text), b in zip(requests, blanked, strict=True)]
        answers = iter(zip(blanked, engine.run(prompts), strict=True))
        results: list[dict[str, Any] | Reject] = []
        for row, (label, fault) in zip(rows, targets, strict=True):
            if not label:
                results.append(settle([], fault))
                continue
            beginning, hypotheses = next(answers)
            if hypotheses is None:
                results.append(settle([], too_long(engine, rewriting.noun)))
            else:
                rewrites = partial(rewriting.rewritten, row, label=label, stage=self.name)
                results.append(settle(self._candidates(rewrites, beginning, hypotheses), "the model wrote nothing"))
        return results

    def _target(self, row: Mapping[str, Any], rewriting: Rewriting) -> tuple[str, str]:
        """Return the opposite of a row's label, or "" and why the model is not asked."""
        try:
            label = rewriting.opposite(row, learned_labels(self.fitted) if self.fitted else ())
        except ValueError as error:
            return "", str(error)
        marks = [mark for mark in MARKS if mark in rewriting.readable(row)]
        return ("", f"the {rewriting.noun} holds {marks[0]}, which is a mark of the model's") if marks else (label, "")

    def _candidates(
        self, rewritten: Callable[..., Candidate], beginning: str, hypotheses: Sequence[Mapping[str, Any]]
    ) -> list[Candidate]:
        candidates, texts = list[Candidate](), list[str]()
        for hypothesis in hypotheses:
            text, fault = f"{beginning} {hypothesis['text']}".strip(), None
            try:
                text = fill_blanks(text)
            except ValueError as error:
                fault = str(error) if hypothesis["finished"] else f"is cut off at {self.max_new_tokens} tokens"
            new = rewritten(text=text, scores=log_probability(hypothesis))
            texts.append(text)
            candidates.append(new if fault is None else reject(new, self.name, fault))
        return reject_repeats(candidates, texts, self.name)


class Polyjuice(System):
    """Negate a claim, without reading its evidence, as RACE compares with Polyjuice (Zhu et al. 2023, appendix D).

    Single texts of two labels are negated the same way; the model was trained on single sentences.

    The settings are RACE's: the released model, control code "negation", 10 beams, one counterfactual a claim. Its label is
    taken to be the opposite and not checked.

    Deviations from the authors' code:

    - It places blanks by a parse, on words, subtrees and between words, in up to three sentences. Here a text has one blank, on or
      before a word, in the proportion of its mode without subtrees, and never the whole sentence.
    - Its search stops as soon as it has as many finished sentences as beams; this search continues while a better sentence can
      come. Its limit is 1,000 tokens for prompt and answer together, here `max_new_tokens` for the answer.
    - The code drops sentences that a GPT-2 finds far less fluent, or whose change is not that of the code, and draws from the
      rest. Here the best answer is taken, so there are more counterfactuals: by Table 2 of RACE, 18,171 claims gave 7,019.

    Args:
        generator: see `RewritePolyjuice`. The published checkpoint is a pickle, which is never read: Transformers requests its
            conversion to safetensors from the Hub. If there is no conversion, convert the checkpoint yourself and name the
            folder.
        verifier: see `JudgeCandidates`; None, as in RACE, checks nothing.

    Its stages define its other settings. There is no preset "offline", since the registry has no Polyjuice.

    >>> Polyjuice.preset("paper", seed=7).rewrite_polyjuice.code
    'negation'
    """

    chain = (RewritePolyjuice, JudgeCandidates)
    presets: ClassVar = {"paper": {}}

    @classmethod
    def works_on(cls) -> list[str]:
        """List the tasks in whose rows a negation may turn the label."""
        return [name for name in super().works_on() if rewriting_of(name).negated]
