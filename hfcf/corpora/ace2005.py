"""ACE 2005, English: relations between the entities of six kinds of text, each kind a split.

- Splits: the domains `bc` (broadcast conversation), `bn` (broadcast news), `nw` (newswire), `wl` (weblogs), `cts` (telephone
  speech) and `un` (Usenet). CCG trains and validates on wl and tests on the remaining domains. `INFO.splits` has its counts after
  DyGIE's preprocessing, whose sentences differ from ours. DyGIE's own splits are train, validation and test.
- Files: the release, or DyGIE's JSON (`hfcf.corpora.formats.dygie`). The release has `<domain>/timex2norm/*.sgm` with their
  `.apf.xml` anywhere below `data_dir` (`adj`, `fp1` or `fp2` without timex2norm; Arabic and Chinese are not read). DyGIE's files
  are by domain, `wl.json` …, or by split, `train.json`, `dev.json`, `test.json`, also in `json/`.
- Head and tail are Arg-1 and Arg-2, in any order, each the head of an entity mention. Types: PER, ORG, GPE, LOC, FAC, VEH, WEA.
- Sentences and tokens: from the TEXT element, by our rules (`hfcf.corpora.formats.wikipedia`, `.tokens`); no sentence ends inside
  an entity. Relation mentions are left out and counted if an argument is missing, or if the arguments are in two sentences or
  outside the TEXT element.
- Id: the relation mention's id; in DyGIE's form the document, the sentence and the number in it. Group: the document.
- Extra columns: `text`, the sentence (a line end is a space), and `offsets`; `subtype`, such as Located, or null.

Checked on files made by hand after LDC's description, not on the licensed files: `on_error="reject"` keeps documents that differ.

One row, made up: text "Ms. Hale flew to AT&T's office in Lyon.", head "office" (FAC), tail "Lyon" (GPE), label "PART-WHOLE".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Files, Record, as_text, split_files
from hfcf.corpora.formats import dygie, ldc
from hfcf.corpora.formats.tokens import EXTRA, of_text

_DOMAINS = ("bc", "bn", "nw", "wl", "cts", "un")
_STAGES = ("timex2norm", "adj", "fp1", "fp2")
_SPLITS = (("train", "train"), ("validation", "dev"), ("test", "test"))
_TWO = "relation mentions without two entity mentions were left out"
_DISTANT = "relation mentions whose arguments are not in one sentence of the TEXT element were left out"


class ACE2005(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="ace2005",
        title="ACE 2005 (English): relations between entities in six domains",
        paper="Walker et al. (LDC 2006), ACE 2005 Multilingual Training Corpus, LDC2006T06",
        citation="""@misc{walker-etal-2006-ace,
  title = {{ACE} 2005 Multilingual Training Corpus ({LDC2006T06})},
  author = {Walker, Christopher and Strassel, Stephanie and Medero, Julie and Maeda, Kazuaki},
  publisher = {Linguistic Data Consortium},
  address = {Philadelphia},
  year = {2006}
}""",
        licence="other",  # LDC's user agreement: neither rows nor counterfactuals of them may be republished
        splits={"bc": 1_607, "bn": 2_015, "nw": 2_680, "wl": 768},
        labels={label: label for label in ("ART", "GEN-AFF", "ORG-AFF", "PART-WHOLE", "PER-SOC", "PHYS")},
        task="relation",
        republish=False,
        release="LDC2006T06",
        layout="the release (`…/English/bc/timex2norm/*.sgm`, `*.apf.xml` …), or DyGIE's JSON by domain or split",
        notes="splits are domains; must not be republished; not checked against the licensed files",
    )
    FILES = split_files("{}.json", "json/{}.json", names=(*((domain, domain) for domain in _DOMAINS), *_SPLITS))
    ONE_FORM = True
    EXTRA: ClassVar = {**EXTRA, "subtype": TEXT}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        """Return DyGIE's files, else the release's: both files of every document, in order."""
        files = super().find(data_dir, name)
        for domain in _DOMAINS if not files else ():
            folders = [data_dir, *sorted(path for path in data_dir.rglob(domain) if path.is_dir())]
            ours = [folder for folder in folders if folder.name == domain and _english(folder, data_dir)]
            paths = [path for folder in ours for path in _released(folder)]
            if paths:
                files[domain] = paths
        return files

    @classmethod
    def no_split(cls, name: str, split: str | None, files: Files, folder: Any) -> str:
        text = super().no_split(name, split, files, folder)
        return text + "; and for the release's <domain>/timex2norm/*.sgm with their .apf.xml" if folder else text

    def records(self, path: Path) -> Iterator[Record]:
        if path.suffix == ".json":
            yield from dygie.relations(path)
        elif path.suffix == ".sgm":
            yield from self._mentions(path)

    def _mentions(self, sgm: Path) -> Iterator[Record]:
        # The annotation is read with its text. It is in the list of files only for the cache's key.
        apf = sgm.with_suffix(".apf.xml")
        try:
            if not apf.is_file():
                raise BadRow(f"its annotation {apf.name} is not next to it")
            document = ldc.read(sgm, apf)
        except BadRow as error:
            yield Record("document", 1, unreadable=f"{sgm.stem}: {error}")
            return
        for i, relation in enumerate(document.relations(), 1):
            yield Record("relation", i, {"document": document, **relation})

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "doc_key" in record:
            # DyGIE++ writes the subtype after a dot.
            label, dot, subtype = dygie.fill(row, record).partition(".")
            row |= {"label": label, "subtype": as_text(subtype) if dot else None}
        else:
            self._fill(row, record)
        if not row.get("skip"):
            row["label"] = self.label(row["label"])

    def _fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        document: ldc.Document = record["document"]
        row |= {"id": record["id"], "group_id": as_text(document.name), "label": record["type"]}
        row["subtype"] = as_text(record["subtype"])
        mentions = [document.mentions.get(name) for name in record["arguments"]]
        if None in mentions:
            self.leave_out(row, _TWO)
            return
        head, tail = (mention for mention in mentions if mention)
        if trouble := head.trouble or tail.trouble:
            raise BadRow(trouble)
        number = document.sentence(head.place)
        if number is None or number != document.sentence(tail.place):
            self.leave_out(row, _DISTANT)
            return
        start, end = document.sentences[number]
        text = document.text[start:end].replace("\n", " ")
        places = [(mention.place[0] - start, mention.place[1] - start) for mention in (head, tail)]
        row |= of_text(text, *places)
        row["head"]["type"], row["tail"]["type"] = as_text(head.type), as_text(tail.type)


def _english(folder: Path, root: Path) -> bool:
    return not {"arabic", "chinese"} & {part.casefold() for part in folder.relative_to(root).parts}


def _released(folder: Path) -> list[Path]:
    """Return both files of every document of a domain, from the last stage of annotation that exists."""
    for stage in (*_STAGES, ""):
        if texts := sorted((folder / stage).glob("*.sgm")):
            return [path for text in texts for path in (text, text.with_suffix(".apf.xml")) if path.is_file()]
    return []


BUILDER = ACE2005
