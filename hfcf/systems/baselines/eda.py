"""EDA: a synonym, an insertion, a swap or a deletion in a text, under the label of the source (Wei and Zou 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from hfcf.core.candidates import reject_repeats, settle
from hfcf.core.settings import Positive
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines._shared.word_edits import eda
from hfcf.tasks import DEFAULT
from hfcf.tasks.rewriting import candidate_columns, edit_columns, rewriting_of, rng_for

__all__ = ["EDA", "RewriteEda", "eda"]


@dataclass(frozen=True, kw_only=True)
class RewriteEda(Stage):
    """Apply EDA's operations to a text. Each new text has its source's label, unchecked.

    Input columns: the task's text and `label`. Output columns: `candidates`. A row without the letters a–z is rejected. So is a
    candidate that changed nothing or repeats an earlier candidate of the row, or whose sentence lacks an entity.

    Args:
        task: the task of the rows.
        alpha: the share of words changed; the authors advise 0.1.
        num_augmentations: texts to a row.

    >>> RewriteEda().row({"id": "1", "claim": "Rome is older than Paris.", "label": "SUPPORTS"})["candidates"][0]["claim"]
    'rome is older than french capital'
    """

    inputs: ClassVar[Any] = TaskColumns(edit_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    task: str = DEFAULT
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.1
    num_augmentations: Positive = 1

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        rewriting = rewriting_of(self.task)
        rng = rng_for(self, self.task, row["id"])
        made = eda(rewriting.readable(row), rng, alpha=self.alpha, num_augmentations=self.num_augmentations)
        candidates = [rewriting.rewritten(row, text, row["label"], self.name) for text in made]
        candidates = reject_repeats(candidates, made, self.name)
        answer = settle(candidates, f"the {rewriting.noun} has none of the letters a–z, and EDA reads no others")
        if isinstance(answer, Reject):
            raise answer
        return answer


class EDA(System):
    """Insert, delete, swap and replace words at random, and keep the label.

    EDA (Wei and Zou 2019, "EDA: Easy Data Augmentation Techniques …", EMNLP) changes single sentences for text classification.
    The evidence of a claim stays, and a sentence around two entities must keep both, in their order. `eda` names the deviations
    from the authors' code.

    Args:
        task: the task of the rows; called with rows, the system takes it from them.
        num_augmentations: the papers that compare with EDA make one new claim a row; EDA's own makes up to sixteen.
        verifier: see `JudgeCandidates`; EDA itself checks nothing.

    Its stages define its other settings.

    >>> [stage.name for stage in EDA(alpha=0.2).stages]
    ['rewrite_eda', 'judge_candidates']
    """

    chain = (RewriteEda, JudgeCandidates)
    by_task: ClassVar = {"relation": {"max_length": 128}}
    flips = False
    count_setting = "num_augmentations"
