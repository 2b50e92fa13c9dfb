"""SST-2 (GLUE): sentences and phrases of film reviews, positive or negative.

- Files: `SST-2/{train,dev,test}.tsv` as GLUE has them, tab-separated without quotes, with the header `sentence`, `label`;
  `data_dir` may be the folder around `SST-2` or that folder. Labels: 0 is "negative", 1 "positive".
- `test.tsv` has `index` and `sentence`; GLUE keeps its labels. It is loaded only by its name, with null labels.
- Ids: train-<n>, where n counts the rows of the file from 1; for test, its index. The phrases of one sentence are not marked as
  such, so each text is its own group.

One row: text "hide new secretions from the parental units", label "negative", id "train-1".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hfcf.corpora.base import Corpus, CorpusInfo, Record, need, split_files, text_lines, text_of


class Sst2(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="sst2",
        title="SST-2: the Stanford Sentiment Treebank with two labels, as GLUE has it",
        paper="Socher et al. (EMNLP 2013), Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank; "
        "GLUE: Wang et al. (ICLR 2019)",
        citation="""@inproceedings{socher-etal-2013-recursive,
  title = {Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank},
  author = {Socher, Richard and Perelygin, Alex and Wu, Jean and Chuang, Jason and Manning, Christopher D. and Ng, Andrew and
    Potts, Christopher},
  booktitle = {Proceedings of EMNLP},
  year = {2013}
}

@inproceedings{wang2019glue,
  title = {{GLUE}: A Multi-Task Benchmark and Analysis Platform for Natural Language Understanding},
  author = {Wang, Alex and Singh, Amanpreet and Michael, Julian and Hill, Felix and Levy, Omer and Bowman, Samuel R.},
  booktitle = {International Conference on Learning Representations (ICLR)},
  year = {2019}
}""",
        splits={"train": 67_349, "validation": 872, "test": 1_821},
        labels={"0": "negative", "1": "positive"},
        task="classification",
        release="gluebenchmark.com/tasks",
        layout="`SST-2/{train,dev,test}.tsv`",
        notes="test has no labels",
    )
    FILES = split_files("SST-2/{}.tsv", "{}.tsv")
    ONE_FORM = True
    BLIND = ("test",)

    def records(self, path: Path) -> Iterator[Record]:
        lines = text_lines(path)
        header = next(lines, Record("line", 1)).value.get("line", "").split("\t")
        for i, record in enumerate(lines, 1):
            cells = record.value.get("line", "").split("\t")
            if not record.unreadable and len(cells) != len(header):
                why = f"line {record.number} has {len(cells)} fields and the header {len(header)}"
                record = Record("line", record.number, unreadable=why)
            elif not record.unreadable:
                own = dict(zip(header, cells, strict=True))
                record.value = {**own, "id": f"{path.stem}-{own.get('index', i)}", "blind": "index" in own}
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record["id"]
        need(record, "sentence")
        row["text"] = text_of(record, "sentence").strip()
        if not record["blind"]:
            need(record, "label")
            row["label"] = self.label(record["label"])


BUILDER = Sst2
