"""Quoref's contrast set: questions whose answer needs coreference, and revisions by experts that change the answer.

- Files: `quoref_original_subset_20191206_merged.json` and `quoref_test_perturbations_20191206_merged.json`, in SQuAD's layout, in
  `data_dir` or its `quoref/`. Both are of Quoref's test split: a row's `kind` is "original" or "perturbed".
  `part="original"` or `part="perturbed"` loads only these rows.
- A pair: rows with the same `original_id`, which is an original's own id. Most perturbed questions ask something else about the
  same context; in some the context was changed.
- Several answers are parts of one answer: together they answer "Who are the …?". They are in `answers`, with their positions, and
  `alternatives` says that they belong together ([[0, 1]]). A metric that accepts a single part is lenient here; `ds.filter(lambda
  row: len(row["alternatives"][0]) == 1)` keeps the questions with one span.
- Group: the article's title, so a pair is never separated.
- A question that is the perturbation of two originals is in the file twice; the second row's id ends in "#2".
- In six rows of the real original file the position of an answer is one character too low. It is corrected, and the dataset's
  description has the count. Any other wrong position is an error.
- Extra columns: `kind`, `original_id`, `alternatives`, `context_id` and `url`.

One row: question "What are the first names of the three people who play Boer War games together?", answers {"text": ["Edith",
"Edward", "Joey"], "answer_start": [1487, 1519, 1530]}, alternatives [[0, 1, 2]], kind "original".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, CorpusInfo, Files, as_text
from hfcf.corpora.formats.answers import ALTERNATIVES, check_places
from hfcf.corpora.squad import SquadLayout, fill_question

_FILES = {
    "original": "quoref_original_subset_20191206_merged.json",
    "perturbed": "quoref_test_perturbations_20191206_merged.json",
}


PAPER = "Gardner et al. (Findings of EMNLP 2020), Evaluating Models' Local Decision Boundaries via Contrast Sets"
CITATION = """@inproceedings{gardner-etal-2020-evaluating,
  title = {Evaluating Models' Local Decision Boundaries via Contrast Sets},
  author = {Gardner, Matt and Artzi, Yoav and Basmov, Victoria and Berant, Jonathan and Bogin, Ben and Chen, Sihao and Dasigi,
    Pradeep and Dua, Dheeru and Elazar, Yanai and Gottumukkala, Ananth and Gupta, Nitish and Hajishirzi, Hannaneh and Ilharco,
    Gabriel and Khashabi, Daniel and Lin, Kevin and Liu, Jiangming and Liu, Nelson F. and Mulcaire, Phoebe and Ning, Qiang and
    Singh, Sameer and Smith, Noah A. and Subramanian, Sanjay and Tsarfaty, Reut and Wallace, Eric and Zhang, Ally and Zhou, Ben},
  booktitle = {Findings of EMNLP},
  year = {2020}
}"""


class QuorefContrast(SquadLayout):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="quoref_contrast",
        title="Quoref's contrast set",
        paper=f"{PAPER}; the originals: Dasigi et al. (EMNLP 2019), "
        "Quoref: A Reading Comprehension Dataset with Questions Requiring Coreferential Reasoning",
        citation=CITATION
        + """

@inproceedings{dasigi-etal-2019-quoref,
  title = {{Q}uoref: A Reading Comprehension Dataset with Questions Requiring Coreferential Reasoning},
  author = {Dasigi, Pradeep and Liu, Nelson F. and Marasovi{\\'c}, Ana and Smith, Noah A. and Gardner, Matt},
  booktitle = {Proceedings of EMNLP-IJCNLP},
  year = {2019}
}""",
        licence="cc-by-4.0",  # Quoref's; the repository of the contrast sets names none
        splits={"test": 1_115},  # 415 originals and 700 perturbed questions
        task="qa",
        release="github.com/allenai/contrast-sets",
        layout="`quoref/quoref_{original_subset,test_perturbations}_20191206_merged.json`",
        notes='pairs share `original_id`; `part="original"` or `"perturbed"`; several answers are parts of one answer',
    )
    FILES = tuple(("test", f"{folder}{file}") for file in _FILES.values() for folder in ("quoref/", ""))
    OPTIONS: ClassVar = {"part": "original or perturbed: load only these rows"}
    EXTRA: ClassVar = {"kind": TEXT, "original_id": TEXT, "alternatives": ALTERNATIVES, "context_id": TEXT, "url": TEXT}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of the chosen part."""
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        if (part := options.get("part")) is not None:
            if part not in _FILES:
                raise ValueError(f"part must be {' or '.join(map(repr, _FILES))}, got {part!r}")
            files = {split: [path for path in paths if path.name == _FILES[part]] for split, paths in files.items()}
            if not any(files.values()):
                raise ValueError(f"{name}: part={part!r} needs the file {_FILES[part]}, which is missing")
        return files, resources

    def start(self, files: Sequence[Path]) -> None:
        self._ids: Counter[str] = Counter()

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        answers = fill_question(row, record)
        name = str(as_text(row["id"]))
        row |= {
            "kind": "perturbed" if "original_id" in record else "original",
            "original_id": as_text(record.get("original_id", name)),
        }
        row |= {column: as_text(record.get(column)) for column in ("context_id", "url")}
        self._ids[name] += row["kind"] == "perturbed"
        if self._ids[name] > 1:
            row["id"] = f"{name}#{self._ids[name]}"
        if not answers["text"]:
            raise BadRow("there is no answer")
        for i, (text, start) in enumerate(zip(answers["text"], answers["answer_start"], strict=True)):
            at_place, at_next = (row["context"].startswith(text, place) for place in (start, start + 1))
            if start >= 0 and at_next and not at_place:
                answers["answer_start"][i] += 1
                self.note("answers with a place one character too low were moved")
        row["answers"] = check_places(row["context"], answers)
        row["alternatives"] = [list(range(len(answers["text"])))]


BUILDER = QuorefContrast
