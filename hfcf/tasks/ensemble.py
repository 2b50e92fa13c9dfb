"""An ensemble of judges: a verifier, and further models that must agree with each label that it accepts, and be certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from hfcf.core.candidates import scored
from hfcf.core.decisions import reaches
from hfcf.core.describe import show
from hfcf.core.model import Model, is_prompted
from hfcf.core.settings import GoesWith, Judges, Models, Prompted, Share, TrainedBy
from hfcf.core.task import Row, Task

VerifierModel = Annotated[Model, Prompted(), TrainedBy(), Judges()]
"""The type of a setting: a model that predicts the labels of rows of the task."""
JudgeModels = Annotated[Models, Prompted(), TrainedBy(), Judges(), GoesWith("verifier")]
"""The type of a setting: further such models, which must agree with the verifier."""
Certainty = Annotated[Share, GoesWith("verifier")]
"""The type of a setting: the minimum probability that each of them must give the label."""

_SHOWN = 6  # the number of labels in a reason


def check_judges(verifier: Model | None, judges: Sequence[Model], certainty: float) -> None:
    """Raise `ValueError` for judges without a verifier, or for a judge that is named twice."""
    if verifier is None and (judges or certainty):
        raise ValueError(f"{'judges' if judges else 'certainty'} needs a verifier: give verifier=…")
    everyone = [*([verifier] if verifier else []), *judges]
    if twice := next((judge for i, judge in enumerate(everyone) if judge in everyone[:i]), None):
        raise ValueError(f"judges: {show(twice)} would agree with itself: name another model")


def describe_judges(verifier: Model | None, judges: Sequence[Model], certainty: float) -> tuple[str, list[Model]] | None:
    """Describe for cards which models confirm a label, and list them; None if no model does."""
    if verifier is None:
        return None
    sure = f"with a probability of at least {certainty:g}"
    if judges:
        text = f"the verifier and the judges named above, which had to agree{f', each {sure}' if certainty else ''},"
    else:
        text = f"the verifier named above{f', {sure},' if certainty else ''}"
    return text, [verifier, *judges]


@dataclass(frozen=True)
class Verdict:
    """What the judges of a row decide together.

    Args:
        label: the verifier's label; None if it gave none.
        scores: `{"name", "value"}` of each judge that was asked: its label and the label's probability.
        reason: why the label does not count: a judge gave no label, gave a different label or is uncertain; None if the label
            counts.
        cut: what to add to the reason of a rejection, "; …", if the last judge read the beginning of its input only.
    """

    label: str | None = None
    scores: tuple[dict[str, Any], ...] = ()
    reason: str | None = None
    cut: str = ""


def vote(
    task: Task, rows: Sequence[Row], accepted: Sequence[Sequence[str]], judges: Sequence[Model], max_length: int,
    certainty: float = 0.0, sources: Sequence[Row] | None = None,
) -> list[Verdict]:  # fmt: skip
    """Ask the judges for the label of each row; each judge only gets the rows that the judges before it accept.

    `accepted` has the labels that the caller accepts for each row; any other label is returned without a reason. `judges` are the
    verifier and the models that must agree with it. `certainty` is the probability that each of them must give an accepted label.
    `sources` are the rows that the rows were made from (`Task.verdicts`).
    """
    verdicts = [Verdict() for _ in rows]
    open_rows = list(range(len(rows)))
    for number, judge in enumerate(judges):
        origins = None if sources is None else [sources[i] for i in open_rows]
        answers = task.verdicts([rows[i] for i in open_rows], judge, max_length, origins) if open_rows else []
        for i, answer in zip(open_rows, answers, strict=True):
            verdicts[i] = _add_vote(verdicts[i], answer, task.labels, accepted[i], _Judge(number, judge), certainty)
        agreed = [i for i in open_rows if verdicts[i].reason is None and verdicts[i].label in accepted[i]]
        others = sorted({*open_rows} - {*agreed})
        for i, cut in zip(others, _say_cut(task, [rows[i] for i in others], judge, max_length), strict=True):
            reason = verdicts[i].reason
            verdicts[i] = replace(verdicts[i], cut=cut, reason=None if reason is None else f"{reason}{cut}")
        open_rows = agreed
    return verdicts


def _say_cut(task: Task, rows: Sequence[Row], judge: Model, max_length: int) -> list[str]:
    """Say of each row how many tokens its input has if the judge does not read them all; else ""."""
    cuts = [""] * len(rows)
    # A token has at least one character.
    long = [i for i, row in enumerate(rows) if sum(len(segment.text) for segment in task.segments(row)) > max_length]
    tokens = [] if is_prompted(judge) or not long else task.input_tokens([rows[i] for i in long], judge, max_length)
    for i, number in zip(long, tokens or [0] * len(long), strict=True):
        if number > max_length:
            what = f"the {task.pieces or 'text'}"
            cuts[i] = f"; {what} was cut: the input has {number} tokens, and the model reads {max_length}"
    return cuts


@dataclass(frozen=True)
class _Judge:
    number: int
    """0 for the verifier."""
    model: Model

    @property
    def name(self) -> str:
        return f"judge {self.number}" if self.number else "verifier"

    @property
    def title(self) -> str:
        """The judge's name in reasons; the verifier has the same name in all of them."""
        return f"judge {self.number} ({show(self.model)})" if self.number else "the verifier"


def _add_vote(
    verdict: Verdict, answer: Mapping[str, float] | str | None, labels: Sequence[str] | None, accepted: Sequence[str],
    judge: _Judge, certainty: float,
) -> Verdict:  # fmt: skip
    from hfcf.engines.classifier import choose

    if not isinstance(answer, Mapping):
        return replace(verdict, reason=no_label(answer, judge.title))
    agreed = accepted if verdict.label is None else (verdict.label,)
    if not any(label in answer for label in agreed):
        known, wanted = [*sorted(answer)[:_SHOWN], *(["…"] if len(answer) > _SHOWN else [])], [*filter(None, agreed)]
        what = f"{judge.title} does not know {' or '.join(wanted)}, but {', '.join(known)}"
        return replace(verdict, reason=what if wanted else f"there is no label that {judge.title} could confirm")
    label = choose(answer, labels or list(answer))
    scores = (*verdict.scores, scored(f"{judge.name}: {label}", answer[label]))
    verdict = replace(verdict, label=verdict.label or label, scores=scores)
    if label != verdict.label:
        return replace(verdict, reason=f"{judge.title} says {label}")
    if label in accepted and not reaches(answer[label], certainty):
        return replace(verdict, reason=f"uncertain: {judge.name} ({show(judge.model)})")
    return verdict


def no_label(answer: str | None, judge: str = "the verifier") -> str:
    """Say why a judge gave no label: `answer` is the text that `Task.verdicts` returns, or None for a row that is too long."""
    return f"longer than {judge} reads" if answer is None else f"{judge} gives no label: {answer}"
