"""Read ERASER's corpora: a file of claims for each split, and documents with a tokenised sentence on each line.

- Files: `{train,val,test}.jsonl` and the folder `docs`. They have `annotation_id, query, classification, evidences`;
  `evidences` lists groups of {docid, start_sentence, end_sentence, text} (ends exclusive), which number the non-blank lines of
  `docs/<docid>`. A file name may spell the docid in the other Unicode normalisation, or "/" as "__". A document that is missing,
  or whose lines differ from an annotation's text, makes a bad row, never a guess.
- Evidence: every sentence of the documents with an annotated sentence, or only those within `context` sentences of it, an
  option. Lines without letters or digits are left out.
- Extra column: `rationales`, human: the annotated sentences, of all groups together.

ERASER: DeYoung, Jain, Rajani, Lehman, Xiong, Socher and Wallace, "ERASER: A Benchmark to Evaluate Rationalized NLP Models", ACL
2020.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import RATIONALES
from hfcf.corpora.base import BadRow, Corpus, CorpusConfig, CorpusError, Fields, split_files
from hfcf.corpora.base.values import says_nothing, whole_pieces
from hfcf.corpora.formats.read import lines
from hfcf.corpora.formats.wikipedia import nfc
from hfcf.text.normalise import unbracket

CITATION = """@inproceedings{deyoung-etal-2020-eraser,
  title = {{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models},
  author = {DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and Socher, Richard
    and Wallace, Byron C.},
  booktitle = {Proceedings of ACL 2020},
  year = {2020}
}"""
_SPAN = {"docid": str, "start_sentence": int, "end_sentence": int, "text": str}
_CLAIM = Fields(annotation_id=Any, query=str, classification=str, evidences=[[_SPAN]])


@dataclass
class EraserConfig(CorpusConfig):
    """ERASER's option."""

    context: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context is not None:
            # A command line gives text.
            if not str(self.context).isdecimal():
                raise ValueError(f"context must be a number of sentences, 0 or more, got {self.context!r}")
            self.context = int(self.context)


class Eraser(Corpus):
    """Claims and documents → rows; a corpus adds its INFO, and `title`."""

    BUILDER_CONFIG_CLASS = EraserConfig
    FILES = split_files("{}.jsonl", names=(("train", "train"), ("validation", "val"), ("test", "test")))
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"rationales": RATIONALES}
    OPTIONS: ClassVar = {"context": "keep only sentences within this many of an annotated one (default: whole documents)"}

    def title(self, docid: str) -> str:
        """Return the title of a document's pieces."""
        raise NotImplementedError

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        return {"docs": data_dir / "docs"} if (data_dir / "docs").is_dir() else {}

    def start(self, files: Sequence[Path]) -> None:
        if "docs" not in self.config.resources:
            raise CorpusError(f"{files[0]}: there is no folder docs next to it, with the text of the evidence")
        self._paths = {nfc(path.name): path for path in sorted(Path(self.config.resources["docs"]).iterdir())}
        self._documents: dict[str, list[str]] = {}

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record.get("annotation_id")
        _CLAIM.check(record)
        row |= {"claim": unbracket(record["query"]).strip(), "label": record["classification"]}
        marked: dict[str, set[int]] = {}
        for span in _spans(record):
            sentences = self._sentences(span["docid"])
            start, end = span["start_sentence"], span["end_sentence"]
            if " ".join(sentences[start:end]).split() != span["text"].split():
                raise BadRow(
                    f"its evidence {span['text'][:60]!r} is not the text of sentences {start} to {end} of "
                    f"the document {span['docid']!r}, which has {len(sentences)}"
                )
            marked.setdefault(span["docid"], set()).update(range(start, end))
        row["keys"] = [("claim", row["claim"]), *(("document", docid) for docid in marked)]
        annotated: list[int] = []
        for docid, chosen in marked.items():
            for i, sentence in enumerate(self._sentences(docid)):
                if i in chosen:
                    annotated.append(len(row["evidence"]))
                elif says_nothing(sentence) or not self._near(i, chosen):
                    continue
                row["evidence"].append({"title": self.title(docid), "text": unbracket(sentence)})
        row["rationales"] = whole_pieces(row["evidence"], annotated)
        row["label"] = self.label(record["classification"])

    def _near(self, i: int, chosen: Collection[int]) -> bool:
        return self.config.context is None or any(abs(i - j) <= self.config.context for j in chosen)

    def _sentences(self, docid: str) -> list[str]:
        if docid not in self._documents:
            names = dict.fromkeys((nfc(docid), nfc(docid.replace("/", "__"))))
            path = next((self._paths[name] for name in names if name in self._paths), None)
            if path is None:
                raise BadRow(f"the document {docid!r} is not in docs")
            try:
                self._documents[docid] = [line.strip() for line in lines(path) if line.strip()]
            except CorpusError as error:
                raise BadRow(str(error)) from None
        return self._documents[docid]


def _spans(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    spans = [span for group in record["evidences"] for span in group]
    for start, end in ((span["start_sentence"], span["end_sentence"]) for span in spans):
        if not 0 <= start < end:
            raise BadRow(f"a piece of its evidence has no sentence numbers: {start} to {end}")
    if not spans:
        raise BadRow("there is no evidence")
    return spans
