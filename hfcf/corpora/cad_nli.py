"""Counterfactually-augmented NLI (CAD): SNLI pairs, and human revisions of the premise or the hypothesis to a different label.

- Files: `NLI/{original,revised_premise,revised_hypothesis}/{train,dev,test}.tsv`, tab-separated with CSV's quotes; `data_dir` may
  be the repository or its folder `NLI`. The premise is the evidence, the hypothesis the claim.
- Id: train-<n> for an original, train-<n>-revised_premise-1 and so on for a revision; the release has no ids.
- Group: the original. A revised file has two revisions of each original, in the same order. Its rows 2n-1 and 2n belong to row n of
  the original file. If the original file is also read, it must have half as many rows; anything else is an error. (One revision of
  the release, train-809-revised_premise-2, changes both sentences.)
- Extra column: `kind`, one of original, revised_premise, revised_hypothesis.

One row: claim "A little boy is playing cricket.", evidence "The little boy in jean shorts kicks the soccer ball.", label REFUTES,
kind revised_hypothesis, id "dev-1-revised_hypothesis-1", group "dev-1".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusError, CorpusInfo, Fields, Record, csv_rows, split_files
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

_KINDS = ("original", "revised_premise", "revised_hypothesis")
_ROW = Fields(sentence1=str, sentence2=str, gold_label=str)


class CadNli(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="cad_nli",
        title="Counterfactually-augmented NLI: SNLI pairs and their human revisions",
        paper="Kaushik et al. (ICLR 2020), Learning the Difference that Makes a Difference with Counterfactually-Augmented Data",
        citation="""@inproceedings{kaushik2020learning,
  title = {Learning the Difference that Makes a Difference with Counterfactually-Augmented Data},
  author = {Kaushik, Divyansh and Hovy, Eduard and Lipton, Zachary C},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2020}
}""",
        licence="apache-2.0",  # the repository's; SNLI's text is CC BY-SA 4.0
        splits={"train": 8_330, "validation": 1_000},  # of 1,666 and 200 originals; the size of test is not confirmed
        labels={"entailment": SUPPORTS, "contradiction": REFUTES, "neutral": NOT_ENOUGH_INFO},
        release="github.com/acmi-lab/counterfactually-augmented-data",
        layout="`NLI/original/`, `NLI/revised_premise/`, `NLI/revised_hypothesis/`",
        notes="originals and their revisions are one group",
    )
    FILES = split_files(*(f"{folder}{kind}/{{}}.tsv" for folder in ("NLI/", "") for kind in _KINDS))
    EXTRA: ClassVar = {"kind": TEXT}

    def start(self, files: Sequence[Path]) -> None:
        counts = {}
        for path in files:
            if path.parent.name not in _KINDS:
                raise CorpusError(f"{path}: its folder names its kind, and must be one of {', '.join(_KINDS)}")
            counts[path.parent.name, path.name] = sum(1 for _ in csv_rows(path, delimiter="\t"))
        for (kind, file), count in counts.items():
            originals = counts.get(("original", file), count / 2)
            if kind != "original" and count != 2 * originals:
                raise CorpusError(
                    f"{kind}/{file} has {count:,} rows and original/{file} {originals:,}: not two revisions of each, so the "
                    "original of a revision is unknown"
                )

    def records(self, path: Path) -> Iterator[Record]:
        kind = path.parent.name
        for i, record in enumerate(csv_rows(path, delimiter="\t")):
            if not record.unreadable:
                number, which = (i, 0) if kind == "original" else divmod(i, 2)
                group = f"{path.stem}-{number + 1}"
                name = group if kind == "original" else f"{group}-{kind}-{which + 1}"
                record.value |= {"id": name, "group": group, "kind": kind}
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {"id": record["id"], "group_id": record["group"], "kind": record["kind"]}
        _ROW.check(record)
        row |= {"claim": record["sentence2"].strip(), "label": record["gold_label"]}
        row["evidence"] = [{"title": "", "text": record["sentence1"].strip()}]
        row["label"] = self.label(record["gold_label"])


BUILDER = CadNli
