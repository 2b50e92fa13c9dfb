"""AdversarialQA (AQA): questions that people wrote so that a model in the loop answers them wrongly, on SQuAD's paragraphs.

- Files: the release's folders `combined/`, `1_dbidaf/`, `2_dbert/` and `3_droberta/`, each with `train.json`, `dev.json` and
  `test.json` in SQuAD's layout. `data_dir` has the folders, or is one of the folders. The option `model` chooses a folder: "all"
  (the default: combined), "bidaf", "bert" or "roberta".
- The test split has no answers, so it is loaded only by name.
- Group: the article's title. Questions on one passage share their `context`, by which the paper of RGF pairs them (§6.1).
- Extra column: `model_in_the_loop`, as the release has it; null if the release lacks it.

One row (made up): question "What did the boat carry?", title "Lake_Bled", context "A boat carries guests.", answers {"text":
["guests"], "answer_start": [15]}, model_in_the_loop "BERT".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import CorpusError, CorpusInfo, Files, as_text, split_files
from hfcf.corpora.squad import SquadLayout

FOLDERS = {"all": "combined", "bidaf": "1_dbidaf", "bert": "2_dbert", "roberta": "3_droberta"}
"""The release's folder of the questions against each model."""
_NAMES = (("train", "train"), ("validation", "dev"), ("test", "test"))


class AdversarialQA(SquadLayout):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="adversarial_qa",
        title="AdversarialQA: adversarial human annotation for reading comprehension",
        paper="Bartolo et al. (TACL 2020), Beat the AI: Investigating Adversarial Human Annotation for Reading Comprehension",
        citation="""@article{bartolo-etal-2020-beat,
  title = {Beat the {AI}: Investigating Adversarial Human Annotation for Reading Comprehension},
  author = {Bartolo, Max and Roberts, Alastair and Welbl, Johannes and Riedel, Sebastian and Stenetorp, Pontus},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {8},
  year = {2020}
}""",
        licence="cc-by-sa-3.0",
        hub_id="UCLNLP/adversarial_qa",
        splits={"train": 30_000, "validation": 3_000, "test": 3_000},
        task="qa",
        release="adversarialqa.github.io",
        layout="`combined/`, `1_dbidaf/`, `2_dbert/`, `3_droberta/` with `{train,dev,test}.json`",
        notes='`model="bidaf"`, `"bert"` or `"roberta"`; the test split has no answers; not checked against the real files',
    )
    FILES = split_files(*(f"{folder}{{}}.json" for folder in ("combined/", "")), names=_NAMES)
    ONE_FORM = True
    BLIND = ("test",)
    OPTIONS: ClassVar = {"model": "the model in the loop: all (the default), bidaf, bert or roberta"}
    EXTRA: ClassVar = {"model_in_the_loop": TEXT}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, in the folder of the chosen model."""
        model = options.get("model", "all")
        if model not in FOLDERS:
            raise ValueError(f"model must be {' or '.join(map(repr, FOLDERS))}, got {model!r}")
        if "model" in options and data_files is not None:
            raise ValueError(f"model={model!r} chooses a folder in data_dir; data_files already names the files")
        if data_dir is not None and model != "all" and Path(data_dir).name != FOLDERS[model]:
            data_dir = Path(data_dir).expanduser() / FOLDERS[model]
            if not data_dir.is_dir():
                raise CorpusError(f"{name}: there is no folder {data_dir}, which has the questions against {model}")
        return super().locate(name, data_dir=data_dir, data_files=data_files, options=options)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        metadata = record.get("metadata")
        row["model_in_the_loop"] = as_text(metadata.get("model_in_the_loop")) if isinstance(metadata, dict) else None
        super().fill(row, record)


BUILDER = AdversarialQA
