"""MRQA 2019: eighteen question answering datasets in one form, made for training on some and testing on others.

    ds = hfcf.load("mrqa", data_files={"validation": "dev/TriviaQA-web.jsonl.gz"}, split="validation")
    ds = hfcf.load("mrqa", data_dir="mrqa/", dataset="HotpotQA", split="dev")

- Files: `.jsonl` or `.jsonl.gz` with a header that names the dataset and the split, in `data_dir` or its `train/`, `dev/` and
  `test/`. The header decides the split, unless the user's mapping does. `hfcf.corpora.formats.mrqa` describes the form.
- The option `dataset` loads one dataset, by the name in the header (SQuAD, NewsQA, TriviaQA, SearchQA, HotpotQA,
  NaturalQuestions; BioASQ, DROP, DuoRC, RACE, RelationExtraction, TextbookQA …).
- Group: the context. Two contexts of one article are two groups, since the form has no titles.
- Extra columns: `dataset`, the header's name, and `aliases`, every right answer, whether it stands in the context or not.

One row (made up): question "Where is Lake Bled?", context "[TLE] Lake Bled [PAR] Lake Bled lies in Slovenia.", answers {"text":
["Slovenia"], "answer_start": [40]}, aliases ["Slovenia", "the Republic of Slovenia"], dataset "HotpotQA".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusError, CorpusInfo, Files, Record, as_text
from hfcf.corpora.formats import mrqa

_UNNAMED = ""
_FOLDERS = {"": _UNNAMED, "train/": "train", "dev/": "validation", "test/": "test"}
"""The split of a file whose header names none."""


class MRQA(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="mrqa",
        title="MRQA 2019: extractive question answering in one form",
        paper="Fisch et al. (MRQA 2019), MRQA 2019 Shared Task: Evaluating Generalization in Reading Comprehension",
        citation="""@inproceedings{fisch-etal-2019-mrqa,
  title = {{MRQA} 2019 Shared Task: Evaluating Generalization in Reading Comprehension},
  author = {Fisch, Adam and Talmor, Alon and Jia, Robin and Seo, Minjoon and Choi, Eunsol and Chen, Danqi},
  booktitle = {Proceedings of the 2nd Workshop on Machine Reading for Question Answering},
  year = {2019}
}""",
        licence="unknown",  # each dataset has its own
        hub_id="mrqa-workshop/mrqa",
        splits={"train": 516_819, "validation": 58_221, "test": 9_633},
        labels={},
        task="qa",
        release="github.com/mrqa/MRQA-Shared-Task-2019",
        layout="`*.jsonl.gz`, or `train/`, `dev/` and `test/` of them",
        notes='`dataset="HotpotQA"` loads one; TriviaQA, HotpotQA, BioASQ …; not checked against the real files',
    )
    FILES = tuple(
        (split, f"{folder}*{ending}")
        for split, folder in (("train", "train/"), ("validation", "dev/"), ("test", "test/"))
        for ending in mrqa.ENDINGS
    )
    OPTIONS: ClassVar = {"dataset": "load only the dataset of this name"}
    EXTRA: ClassVar = {**mrqa.EXTRA, "dataset": TEXT}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        files: Files = {}
        for folder, split in _FOLDERS.items():
            for ending in mrqa.ENDINGS:
                for path in sorted((data_dir / folder).glob(f"*{ending}")):
                    if (first := mrqa.header(path)) is not None:
                        files.setdefault(mrqa.named_split(first) or split, []).append(path)
        return files

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return mrqa.split_of(path)

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, of the dataset that is asked for."""
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        if (dataset := options.get("dataset")) is not None:
            names = {path: str((mrqa.header(path) or {}).get("dataset")) for paths in files.values() for path in paths}
            files = {split: kept for split, paths in files.items() if (kept := [path for path in paths if names[path] == dataset])}
            if not files:
                raise CorpusError(
                    f"{name}: no file is of the dataset {dataset!r}; there are {', '.join(sorted(set(names.values())))}"
                )
        if unnamed := files.get(_UNNAMED):
            cure = f'name it yourself, in the place of data_dir: data_files={{"SPLIT": "{unnamed[0]}"}}'
            raise CorpusError(f"{unnamed[0]}: its header names no split; {cure}")
        return files, resources

    def records(self, path: Path) -> Iterator[Record]:
        return mrqa.questions(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["dataset"] = as_text(record.get("dataset"))
        mrqa.fill_question(row, record)


BUILDER = MRQA
