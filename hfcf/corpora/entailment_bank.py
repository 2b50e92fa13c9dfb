"""EntailmentBank: answers to science questions, each explained by a tree of steps that lead from facts to the answer.

- Option `task`: "1" (the default) gives only the facts of the tree. "2" adds distractors up to 25 facts, and "3" has 25 facts that
  a retriever returned. Files: `dataset/task_{1,2,3}/{train,dev,test}.jsonl`; `data_dir` is the repository, the release in it, the
  release's `dataset`, or one task's folder.
- Claim: `hypothesis`. Evidence: the facts, sent1, sent2 …, then the tree's own conclusions, int1, int2 …, untitled; their names are
  in `evidence_info`. The structure is `proof`. `cause` and `effect` are null: not every explanation is causal.
- Label: SUPPORTS, in all rows: the release has no further label.
- **Task 3 has no structure**: the release leaves its `proof` empty. So it is unknown which facts are useful, and `useful` and
  `leaf` are null. The same question's tree is in the row of the same id of task 1 or 2. The retriever misses facts: by the
  release's fact ids, 53 of the 187 rows of the dev split have all facts of their tree. For the other rows, the evidence does not
  fully support the label.
- Group: rows that share question or hypothesis. A question has the same id in every task.
- Extra columns: `question` and `answer`.

One row: claim "the sun rising and setting is the event that occurs once per day", evidence "the sun rising / setting occurs once
per day", "the sun setting is a kind of event", "the sun rising is a kind of event", structure [{"premises": ["sent1", "sent2",
"sent3"], "conclusion": "claim"}], label SUPPORTS, question "Which event occurs on a daily cycle?".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Fields, Files, as_text, split_files
from hfcf.tasks.structures.model import Structure, StructureError
from hfcf.tasks.structures.proof import parse_proof
from hfcf.tasks.verification import SUPPORTS
from hfcf.text.normalise import normalise

TASKS = ("1", "2", "3")
_NAMES = (("train", "train"), ("validation", "dev"), ("test", "test"))
_PARENTS = ("", "dataset", "data/public_dataset/entailment_trees_emnlp2021_data_v2/dataset")
"""Where a task's folder may be in `data_dir`: the folder of the release, or the repository."""
_TREE = Fields(id=Any, hypothesis=str, question=str, answer=str, proof=str, meta={"triples": dict[str, str]})


class EntailmentBank(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="entailment_bank",
        title="EntailmentBank: explaining answers with entailment trees",
        paper="Dalvi et al. (EMNLP 2021), Explaining Answers with Entailment Trees",
        citation="""@inproceedings{dalvi-etal-2021-explaining,
  title = {Explaining Answers with Entailment Trees},
  author = {Dalvi, Bhavana and Jansen, Peter and Tafjord, Oyvind and Xie, Zhengnan and Smith, Hannah and Pipatanangkura, Leighanna
    and Clark, Peter},
  booktitle = {Proceedings of EMNLP},
  year = {2021}
}""",
        licence="apache-2.0",  # the repository's; it names none for the data
        splits={"train": 1_313, "validation": 187, "test": 340},
        task="structures",
        release="github.com/allenai/entailment_bank",
        layout="`dataset/task_{1,2,3}/{train,dev,test}.jsonl`",
        notes='`task="1"`, `"2"` (with distractors) or `"3"` (retrieved facts, no structure); SUPPORTS only',
    )
    FILES = split_files("{}.jsonl", names=_NAMES)
    GROUPS_BY_KEYS = True
    OPTIONS: ClassVar = {"task": "1 (the default), 2 or 3: facts of the tree, with distractors, or as a retriever returned them"}
    EXTRA: ClassVar = {"question": TEXT, "answer": TEXT}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, in the folder of the chosen task."""
        task = str(options.get("task", TASKS[0]))
        if task not in TASKS:
            raise ValueError(f"task must be {' or '.join(map(repr, TASKS))}, got {task!r}")
        if "task" in options and data_files is not None:
            raise ValueError(f"task={task!r} chooses a folder in data_dir; data_files already names the files")
        if data_dir is not None:
            folder = Path(data_dir).expanduser()
            inner = [folder / parent / f"task_{task}" for parent in _PARENTS]
            if "task" in options and folder.name in {f"task_{number}" for number in TASKS} - {f"task_{task}"}:
                raise ValueError(f"task={task!r}, and data_dir is the folder {folder.name}: leave one out")
            data_dir = next((path for path in inner if path.is_dir()), folder)
        return super().locate(name, data_dir=data_dir, data_files=data_files, options=options)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record.get("id")
        _TREE.check(record)
        row |= {"claim": record["hypothesis"], "label": SUPPORTS}
        row |= {name: as_text(record[name]) for name in self.EXTRA}
        row["keys"] = [(name, normalise(record[name])) for name in ("question", "hypothesis")]
        if not (facts := record["meta"]["triples"]):  # `context` has the same facts, joined to one text
            raise BadRow("'meta.triples' has no facts")
        row["evidence"] = [{"title": "", "text": text} for text in facts.values()]
        row["evidence_info"] = [{"id": name, "useful": None, "leaf": None} for name in facts]
        if not record["proof"].strip():
            return
        try:
            structure = parse_proof(record["proof"], facts)
        except StructureError as error:
            raise BadRow(f"its proof can't be read: {error}") from None
        row |= _columns(structure, facts)


def _columns(structure: Structure, facts: dict[str, str]) -> dict[str, Any]:
    """Return the columns that follow from a tree: the facts, then its conclusions, and their parts in it."""
    if absent := [name for name in structure.intermediates() if name not in structure.texts]:
        raise BadRow(f"its proof has no sentence for {absent[0]}")
    pieces = {**facts, **{name: structure.texts[name] for name in structure.intermediates()}}
    used, leaves = set(structure.nodes()), set(structure.leaves())
    return {
        "evidence": [{"title": "", "text": text} for text in pieces.values()],
        "evidence_info": [{"id": name, "useful": name in used, "leaf": name in leaves} for name in pieces],
        "structure": structure.to_columns(),
    }


BUILDER = EntailmentBank
