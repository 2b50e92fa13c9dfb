"""ACE 2005, English: relations between the entities of six kinds of text, each kind a split.

- Paper: Walker, Strassel, Medero and Maeda, "ACE 2005 Multilingual Training Corpus", LDC2006T06.
- Licence: LDC's user agreement. Its rows, and counterfactuals of them, must not be republished.
- Splits: the domains `bc` (broadcast conversation), `bn` (broadcast news), `nw` (newswire), `wl` (weblogs), `cts` (telephone
  speech) and `un` (Usenet). CCG trains and validates on 768 relations of wl and tests on 1,607 of bc, 2,015 of bn and 2,680 of nw,
  counted after DyGIE's preprocessing, whose sentences are not ours. DyGIE's own splits are train, validation and test.
- Labels: ART, GEN-AFF, ORG-AFF, PART-WHOLE, PER-SOC and PHYS, as ours. Head is Arg-1 and tail is Arg-2; either may come first.
- Hub id: none, and there can be none.
- Files: the release, `<domain>/timex2norm/*.sgm` with their `.apf.xml` anywhere below `data_dir` (`adj`, `fp1` or `fp2` where there
  is no timex2norm; Arabic and Chinese are not read); or DyGIE's JSON (`hfcf.corpora.formats.dygie`) by domain, `wl.json` …, or by
  split, `train.json`, `dev.json`, `test.json`, also in `json/`.
- Sentences and tokens: of the TEXT element, by rules of ours (`hfcf.corpora.formats.sentences`, `hfcf.corpora.formats.tokens`);
no sentence ends
  inside an entity. An entity is its mention's head. Left out, and counted: relation mentions whose arguments stand in two
  sentences, or outside the TEXT element, or that lack one of two entity mentions.
- Id: the relation mention's; in DyGIE's form the document, the sentence and the number in it. Group: the document.
- Types: PER, ORG, GPE, LOC, FAC, VEH, WEA.
- Extra columns: `text`, the sentence (a line end is a space), and `offsets`; `subtype`, such as Located, null where the file has
  none.

Checked on files that were made by hand after LDC's description, and not on the licensed ones, where a document that does not fit
its annotation may need `on_error="reject"`.

One row, made up: text "Ms. Hale flew to AT&T's office in Lyon.", head "office" (FAC), tail "Lyon" (GPE), label "PART-WHOLE".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, Files, as_text
from hfcf.corpora.formats import dygie, ldc
from hfcf.corpora.formats.read import Record
from hfcf.corpora.formats.tokens import EXTRA, of_text

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
    licence="other",
    splits={"bc": 1_607, "bn": 2_015, "nw": 2_680, "wl": 768},
    labels={label: label for label in ("ART", "GEN-AFF", "ORG-AFF", "PART-WHOLE", "PER-SOC", "PHYS")},
    task="relation",
    republish=False,
    release="LDC2006T06",
    layout="the release (`…/English/bc/timex2norm/*.sgm`, `*.apf.xml` …), or DyGIE's JSON by domain or split",
    notes="splits are domains; must not be republished; not checked against the licensed files",
)

_DOMAINS = ("bc", "bn", "nw", "wl", "cts", "un")
_STAGES = ("timex2norm", "adj", "fp1", "fp2")
_FORMS = {domain: f"{domain}.json" for domain in _DOMAINS} | {"train": "train.json", "validation": "dev.json", "test": "test.json"}
_TWO = "relation mentions without two entity mentions were left out"
_APART = "relation mentions whose arguments do not stand in one sentence of the TEXT element were left out"


class ACE2005(Corpus):
    """Release files → rows."""

    INFO = INFO
    FILES = tuple((split, folder + file) for folder in ("", "json/") for split, file in _FORMS.items())
    ONE_FORM = True
    EXTRA: ClassVar = {**EXTRA, "subtype": TEXT}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        """DyGIE's files where they are there, else the release's: both files of every document, in order."""
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
        # The annotation is read beside its text; in the list of files it stands for the cache's key.
        apf = sgm.with_suffix(".apf.xml")
        try:
            if not apf.is_file():
                raise BadRow(f"its annotation {apf.name} is not beside it")
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
            self.leave_out(row, _APART)
            return
        start, end = document.sentences[number]
        text = document.text[start:end].replace("\n", " ")
        places = [(mention.place[0] - start, mention.place[1] - start) for mention in (head, tail)]
        row |= of_text(text, *places)
        row["head"]["type"], row["tail"]["type"] = as_text(head.type), as_text(tail.type)


def _english(folder: Path, root: Path) -> bool:
    return not {"arabic", "chinese"} & {part.casefold() for part in folder.relative_to(root).parts}


def _released(folder: Path) -> list[Path]:
    """Both files of every document of a domain, of the last stage of annotation that is there."""
    for stage in (*_STAGES, ""):
        if texts := sorted((folder / stage).glob("*.sgm")):
            return [path for text in texts for path in (text, text.with_suffix(".apf.xml")) if path.is_file()]
    return []


BUILDER = ACE2005
