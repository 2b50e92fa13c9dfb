"""Human revisions of single texts, such as CAD's: what people wrote instead of a system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from hfcf import corpora
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.candidates import settle
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import TaskColumns
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.classification import TextRewriting
from hfcf.tasks.rewriting import candidate_columns, model_columns


def read_revisions(value: Any) -> Any:
    """Store the revisions of `{from: [{corpus: …}]}`, the rows with an `original_id`; return the sha256 of the stored file."""
    if not isinstance(value, Mapping):
        return value
    if set(value) != {"from"}:
        raise ValueError(f"must be {{from: [{{corpus: …}}]}}, got the keys {', '.join(map(repr, value))}")
    revisions: dict[str, list[list[str]]] = {}
    for source in value["from"]:
        name, options = source["corpus"], {key: part for key, part in source.items() if key != "corpus"}
        ds = corpora.load(name, **{"split": "train", **options})
        if "original_id" not in ds.column_names:
            raise ValueError(f"the corpus {name} has no column 'original_id', which says what a row is a revision of")
        for row in ds:
            if row["original_id"]:
                revisions.setdefault(row["original_id"], []).append([row["text"], row["label"]])
    return save_artifact({"revisions": dict(sorted(revisions.items()))})


@dataclass(frozen=True, kw_only=True)
class TakeRevisions(Stage):
    """Take the human revisions of a text as its candidates.

    Input columns: `text` and `label`. Output column: `candidates`, in the order of the corpus. A text without a revision is
    rejected, and a revision that repeats it.

    Args:
        task: the task of the rows.
        revisions: `{"from": [{"corpus": "cad_imdb", "data_dir": …}]}`: rows whose `original_id` is the id of a row. They are
            stored once and known by their sha256.

    >>> TakeRevisions().name
    'take_revisions'
    """

    inputs: ClassVar[Any] = TaskColumns(model_columns)
    outputs: ClassVar[Any] = TaskColumns(candidate_columns)

    task: str = "classification"
    revisions: Annotated[str, BeforeValidator(read_revisions)] = ""

    def check_available(self) -> None:
        if not self.revisions:
            raise ValueError('revisions: where are they? Give revisions={"from": [{"corpus": "cad_imdb", "data_dir": …}]}')

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        written = _stored_revisions(self.revisions).get(row["id"], [])
        new = [TextRewriting().rewritten(row, text, label, self.name) for text, label in written]
        if isinstance(answer := settle(new, "nobody revised it"), Reject):
            raise answer
        return answer


@lru_cache(maxsize=4)
def _stored_revisions(sha: str) -> Mapping[str, Any]:
    return read_artifact(sha, "make the system again")["revisions"] if sha else {}


class Revisions(System):
    """Add people's revision of each text, with a changed label, as Kaushik, Hovy and Lipton (ICLR 2020) train on them.

    Args:
        revisions: where the human revisions of your rows are, `{"from": [{"corpus": "cad_imdb", "data_dir": …}]}`. It must be
            given, since the baseline writes nothing itself. See `TakeRevisions`.
        verifier: see `JudgeCandidates`; None accepts every revision.

    >>> [stage.name for stage in Revisions().stages]
    ['take_revisions', 'judge_candidates']
    """

    task = "classification"
    chain = (TakeRevisions, JudgeCandidates)
