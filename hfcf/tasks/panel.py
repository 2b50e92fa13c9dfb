"""Several judges of one row: a verifier and, about what it accepts, further ones that must agree with it and be certain."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hfcf.core.describe import show
from hfcf.core.model import Model
from hfcf.core.task import Row, Task

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ruling:
    """What the judges of a row say together.

    Args:
        label: the verifier's; None where it gave none.
        scores: `{"name", "value"}` of each judge that was asked: the label that it gives, and its probability.
        reason: why the label does not count: a judge gave none, gave another or is uncertain; None where it counts.
    """

    label: str | None = None
    scores: tuple[dict[str, Any], ...] = ()
    reason: str | None = None


def rule(
    task: Task, rows: Sequence[Row], accepted: Sequence[Sequence[str]], judges: Sequence[Model], max_length: int,
    certainty: float = 0.0,
) -> list[Ruling]:  # fmt: skip
    """Ask the judges for the label of each row, each judge only about the rows that those before it accept.

    A label that is not among those accepted is given without a reason: what it means is for the caller to say.

    Args:
        task: of the rows.
        rows: what is judged.
        accepted: for each row the labels that the caller accepts.
        judges: the verifier, then those that must give the same label; local or "llm:NAME".
        max_length: tokens that they read of a row.
        certainty: the least probability, of every judge, of a label that is accepted.

    >>> from hfcf.tasks.verification import TASK
    >>> rule(TASK, [], [], [Model("llm:gpt-4o-mini")], 130)
    []
    """
    rulings = [Ruling() for _ in rows]
    asked = list(range(len(rows)))
    for number, judge in enumerate(judges):
        answers = task.verdicts([rows[i] for i in asked], judge, max_length) if asked else []
        for i, answer in zip(asked, answers, strict=True):
            rulings[i] = _hear(rulings[i], answer, task.labels, accepted[i], _Judge(number, judge), certainty)
        asked = [i for i in asked if rulings[i].reason is None and rulings[i].label in accepted[i]]
    return rulings


def without_judges(preset: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Leave a preset's further judges out where the verifier is another: they were chosen for the preset's own.

    Args:
        preset: its settings.
        changes: those of the user, over them.

    Returns:
        `changes`, with `judges` and `certainty` where they have a verifier and neither of these.

    >>> without_judges({}, {"verifier": "me/nli"})
    {'judges': (), 'certainty': 0.0, 'verifier': 'me/nli'}
    """
    if "verifier" not in changes:
        return dict(changes)
    if preset.get("judges") and changes["verifier"] is not None and "judges" not in changes:
        names = ", ".join(map(show, preset["judges"]))
        log.warning("with a verifier of your own the preset's further judge (%s) is not asked; name yours as judges", names)
    return {"judges": (), "certainty": 0.0, **changes}


@dataclass(frozen=True)
class _Judge:
    number: int
    """0 is the verifier."""
    model: Model

    @property
    def name(self) -> str:
        return f"judge {self.number}" if self.number else "verifier"

    @property
    def title(self) -> str:
        """As reasons call it; the verifier has one name in all of them."""
        return f"judge {self.number} ({show(self.model)})" if self.number else "the verifier"


def _hear(
    ruling: Ruling, answer: Mapping[str, float] | str | None, labels: Sequence[str] | None, accepted: Sequence[str], judge: _Judge,
    certainty: float,
) -> Ruling:  # fmt: skip
    from hfcf.engines.classifier import choose

    if not isinstance(answer, Mapping):
        return replace(ruling, reason=no_label(answer, judge.title))
    agreed = accepted if ruling.label is None else (ruling.label,)
    if not any(label in answer for label in agreed):
        return replace(ruling, reason=f"{judge.title} does not know {' or '.join(agreed)}")
    label = choose(answer, labels or list(answer))
    scores = (*ruling.scores, {"name": f"{judge.name}: {label}", "value": answer[label]})
    ruling = replace(ruling, label=ruling.label or label, scores=scores)
    if label != ruling.label:
        return replace(ruling, reason=f"{judge.title} says {label}")
    if label in accepted and answer[label] < certainty:
        return replace(ruling, reason=f"uncertain: {judge.name} ({show(judge.model)})")
    return ruling


def no_label(answer: str | None, judge: str = "the verifier") -> str:
    """Say why a judge gave no label: the text that `Task.verdicts` has in its place, or None for a text that is too long.

    >>> no_label(None)
    'longer than the verifier reads'
    """
    return f"longer than {judge} reads" if answer is None else f"{judge} gives no label: {answer}"
