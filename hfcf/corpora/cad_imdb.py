"""Counterfactually-augmented IMDb (CAD): reviews of films, and human revisions of each to the other sentiment.

- Files: `sentiment/combined/paired/{train,dev,test}_paired.tsv`, tab-separated with CSV's quotes; `data_dir` may be the repository
  or its folder `sentiment`. A split without a paired file is read from `orig/` and `new/`. These folders do not say which review a
  revision belongs to: the rows have no `original_id`, and each is its own group.
- A review and its revision share `batch_id`; the first row of a batch is the review. Ids: train-<batch_id>, and
  train-<batch_id>-revised; without batches train-orig-<n> and train-new-<n>, where n counts from 1. Group: the batch.
- Labels: Negative and Positive are "negative" and "positive". Texts stay as they are, with `<br />` between paragraphs.
- The option `kind` selects "original" or "revised" rows.
- Extra columns: `kind`, original or revised, and `original_id`, the review's id of a revision.

One row: text "Incredible plot. See this.", label "positive", kind "revised", id "dev-122-revised", original_id and group "dev-122".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import (
    Corpus,
    CorpusConfig,
    CorpusError,
    CorpusInfo,
    Fields,
    Files,
    Record,
    choice,
    csv_rows,
    split_files,
)
from hfcf.corpora.cad_nli import CadNli

_FOLDERS = {"orig": "original", "new": "revised"}
_PAIRED = "combined/paired/{}_paired.tsv"
_PAIRED_ROW = Fields(batch_id=str)
_ROW = Fields(Sentiment=str, Text=str)


@dataclass
class CadImdbConfig(CorpusConfig):
    """Options of the corpus."""

    kind: str = choice("both", "original", "revised")


class CadImdb(Corpus):
    """Release files → rows."""

    BUILDER_CONFIG_CLASS = CadImdbConfig
    INFO = CorpusInfo(
        name="cad_imdb",
        title="Counterfactually-augmented IMDb: reviews and their human revisions",
        paper=CadNli.INFO.paper,
        citation=CadNli.INFO.citation,
        licence="apache-2.0",  # the repository's; nothing says under which the reviews are
        splits={"train": 3_414, "validation": 490, "test": 976},
        labels={"Negative": "negative", "Positive": "positive"},
        task="classification",
        release=CadNli.INFO.release,
        layout="`sentiment/combined/paired/`, or `sentiment/orig/` and `sentiment/new/`",
        notes="in `paired/` a review and its revision are one group with an `original_id`; `orig/` and `new/` do not tell pairs",
    )
    FILES = split_files(*(f"{root}{file}" for root in ("sentiment/", "") for file in (_PAIRED, "orig/{}.tsv", "new/{}.tsv")))
    EXTRA: ClassVar = {"kind": TEXT, "original_id": TEXT}
    OPTIONS: ClassVar = {"kind": "original or revised: only these rows"}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        files = super().find(data_dir, name)
        paired = {split: [path for path in paths if path.stem.endswith("_paired")] for split, paths in files.items()}
        return {split: paired[split] or paths for split, paths in files.items()}

    def start(self, files: Sequence[Path]) -> None:
        self.batches = set[str]()
        for path in files:
            if not path.stem.endswith("_paired") and path.parent.name not in _FOLDERS:
                raise CorpusError(f"{path}: its folder says what its rows are, and must be one of {', '.join(_FOLDERS)}")

    def records(self, path: Path) -> Iterator[Record]:
        split, paired = path.stem.removesuffix("_paired"), path.stem.endswith("_paired")
        for i, record in enumerate(csv_rows(path, delimiter="\t"), 1):
            if not record.unreadable:
                record.value |= {"split": split} if paired else {"alone": f"{split}-{path.parent.name}-{i}"}
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "alone" in record:
            row |= {"id": record["alone"], "kind": _FOLDERS[record["alone"].split("-")[1]]}
            self.note("rows are each their own group, since their files do not say which review a revision belongs to")
        else:
            _PAIRED_ROW.check(record)
            group = f"{record['split']}-{record['batch_id']}"
            revised = group in self.batches
            self.batches.add(group)
            row |= {"id": f"{group}-revised" if revised else group, "group_id": group}
            row |= {"kind": "revised" if revised else "original", "original_id": group if revised else None}
        if self.config.kind not in ("both", row["kind"]):
            row["skip"] = True
            return
        _ROW.check(record)
        row |= {"text": record["Text"].strip(), "label": self.label(record["Sentiment"])}


BUILDER = CadImdb
