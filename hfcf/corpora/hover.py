"""HoVer: claims over two to four Wikipedia articles.

- Files, in any of three layouts, which differ in their fields:
  - the release, `hover_{train,dev,test}_release_v1.1.json` (test is blind: claims only). Evidence is [title, sentence number]. The
    text comes from `wiki_wo_links.db` next to it (table `documents`: id, text; titles in Unicode NFD). The database has running
    text, which HoVer's authors split with Stanford CoreNLP. `sentences.py` splits it here; rebuilt databases that mark the
    sentences are split at "[SENT]". A number past the last sentence is an error, never a guess.
  - the same with the text in it: a field `evidence`, parallel to `supporting_facts`, of [title, sentence] or {title, text}.
  - FactFlip's copies, `{train,dev,test}.json`: `id, claim, evidence, label`. The sentences are in `supporting_facts` order, each
    ended by " \\n". Labels are integers: 0 = SUPPORTED, 1 = NOT_SUPPORTED. (Integers are read only in this layout: the Hub's
    dataset has them the other way round.) Its test.json is the official validation split; its train.json and dev.json are the
    official train split. If there is a release file (in `release_dir`, data_dir or ../hover), titles, hpqa_id and num_hops are
    attached by claim. If the number of sentences differs, the titles stay empty.
- Option `release_dir`: the folder of the release files to attach titles from.
- Group: `hpqa_id`, the HotpotQA question that the claims were made from; in copies without it, rows that share a claim or the
  whole evidence.
- Extra column: `num_hops`, null in copies without it.

One row: claim "Stephen King wrote the novel that the movie directed by Stanley Kubrick that was sampled in the album "Where Blood
and Fire Bring Rest" was based on.", evidence [title "Where Blood and Fire Bring Rest", text "The album contains a sample from the
film "The Shining" …"], [title "The Shining (film)", text "The film is based on Stephen King's 1977 novel "The Shining"."], label
SUPPORTS, num_hops 2.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar, NotRequired

from pydantic import StrictInt

from hfcf.core.schema import INT
from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, Fields, Files, Record, json_list, split_files
from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.tasks.verification import REFUTES, SUPPORTS

_RELEASE = split_files("hover_{}_release_v1.1.json")
_FACTFLIP = {"train.json": "train", "dev.json": "train", "test.json": "validation"}
_FACTFLIP_LABELS = {0: SUPPORTS, 1: REFUTES}
_LAYOUTS = "uid, claim, supporting_facts, label, num_hops, hpqa_id (release), or id, claim, evidence, label (copies with text)"
_HOPS = StrictInt | None
_RECORD = Fields(
    uid=Any, claim=str, supporting_facts=list[tuple[str, StrictInt]], label=str, num_hops=_HOPS, hpqa_id=str,
    evidence=NotRequired[list[Any]],
)  # fmt: skip
_COPY = Fields(id=Any, claim=str, evidence=str, label=int, num_hops=NotRequired[_HOPS])


class Hover(Corpus):
    """Release files and copies with text → rows."""

    ID = "uid"
    INFO = CorpusInfo(
        name="hover",
        title="HoVer: many-hop fact extraction and claim verification",
        paper="Jiang et al. (Findings of EMNLP 2020), HoVer: A Dataset for Many-Hop Fact Extraction And Claim Verification",
        citation="""@inproceedings{jiang-etal-2020-hover,
  title = {HoVer: A Dataset for Many-Hop Fact Extraction And Claim Verification},
  author = {Jiang, Yichen and Bordia, Shikha and Zhong, Zheng and Dognin, Charles and Singh, Maneesh and Bansal, Mohit},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2020},
  year = {2020}
}""",
        licence="cc-by-sa-4.0",
        hub_id="hover-nlp/hover",
        splits={"train": 18_171, "validation": 4_000, "test": 4_000},
        labels={"SUPPORTED": SUPPORTS, "NOT_SUPPORTED": REFUTES},
        release="github.com/hover-nlp/hover",
        layout="`hover_{train,dev,test}_release_v1.1.json`, and `wiki_wo_links.db` for the sentences",
        notes="or copies that contain the text",
    )
    FILES = (*_RELEASE, ("train", "train.json"), ("train", "dev.json"), ("validation", "test.json"))
    EXTRA: ClassVar = {"num_hops": INT}
    OPTIONS: ClassVar = {"release_dir": "folder of the release files, to attach titles and groups to copies without them"}
    BLIND = ("test",)
    GROUPS_BY_KEYS = True

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        # One layout for each split, in this order, so that a split is never read twice.
        files = {split: [data_dir / file] for split, file in _RELEASE if (data_dir / file).is_file()}
        copies: Files = {}
        for file, split in _FACTFLIP.items():
            if (data_dir / file).is_file():
                copies.setdefault(split, []).append(data_dir / file)
        return copies | files

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return _FACTFLIP.get(path.name) or super().split_of(path)

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        release_dir = options.get("release_dir")
        if release_dir is not None and not Path(release_dir).expanduser().is_dir():
            raise CorpusError(f"hover: there is no folder release_dir={release_dir}")
        folders = [Path(release_dir).expanduser()] if release_dir is not None else [data_dir, data_dir.resolve().parent / "hover"]
        release = [(split, name) for split, name in _RELEASE if split not in cls.BLIND]
        paths = [("pages", data_dir / "wiki_wo_links.db")]
        # The first folder with a release file comes last, so it wins.
        paths += [(f"release {split}", folder / name) for folder in reversed(folders) for split, name in release]
        return {key: path for key, path in paths if path.is_file()}

    def start(self, files: Sequence[Path]) -> None:
        self._pages: dict[str, list[str] | None] = {}
        self._release: dict[str, list[dict[str, Any]]] = {}
        if {path.name for path in files} <= {name for _, name in _RELEASE}:
            return
        for name, path in self.config.resources.items():
            if name.startswith("release "):
                for record in json_list(Path(path)):
                    with suppress(BadRow):  # loading the release reports such records
                        self._release.setdefault(_RECORD.check(record.value)["claim"], []).append(record.value)

    def records(self, path: Path) -> Iterator[Record]:
        for record in json_list(path):
            if record.number == 1 and {"uid", "claim"} <= record.value.keys() and "label" not in record.value:
                raise CorpusError(f"{path}: this is HoVer's blind test split, claims without labels or evidence")
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "supporting_facts" in record or "uid" in record:
            self._fill_release(row, record)
        elif "evidence" in record and "id" in record:
            self._fill_copy(row, record)
        else:
            raise BadRow(f"found the fields {', '.join(record)}; expected {_LAYOUTS}")

    def _fill_release(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _RECORD.check(record)
        row |= {"id": record["uid"], "claim": record["claim"], "label": record["label"], "num_hops": record["num_hops"]}
        row |= {"group_id": str(record["hpqa_id"]), "keys": [("hpqa_id", str(record["hpqa_id"]))]}
        facts = _facts(record)
        if "evidence" in record:
            row["evidence"] = [_piece(piece) for piece in record["evidence"]]
            if [piece["title"] for piece in row["evidence"]] != [title for title, _ in facts]:
                raise BadRow("the titles of its evidence differ from the titles of its supporting_facts, in order")
        else:
            row["evidence"] = [{"title": title, "text": self._sentence(title, i)} for title, i in facts]
        row["label"] = self.label(record["label"])

    def _fill_copy(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _COPY.check(record)
        label, evidence = record["label"], record["evidence"]
        row |= {"id": record["id"], "claim": record["claim"], "label": label, "num_hops": record.get("num_hops")}
        row["keys"] = [("claim", record["claim"]), ("evidence", " ".join(evidence.split()))]
        row["evidence"] = [{"title": "", "text": text.strip()} for text in evidence.split(" \n") if text.strip()]
        if label not in _FACTFLIP_LABELS:
            raise BadRow(f"the label {label!r} is unknown; the known labels are 0 (SUPPORTED) and 1 (NOT_SUPPORTED)")
        row["label"] = _FACTFLIP_LABELS[label]
        self._attach(row)

    def _attach(self, row: dict[str, Any]) -> None:
        """Add titles, group and hops from the release's rows of this claim, if there are any."""
        claims = self._release.get(row["claim"], [])
        if not claims:
            return
        matches = [record for record in claims if self.label(record["label"]) == row["label"]]
        if not matches:
            raise BadRow(f"the release labels this claim {claims[0]['label']}, the copy {row['label']}: are its integers swapped?")
        facts = {tuple(_facts(record)) for record in matches}
        row |= {"group_id": matches[0]["hpqa_id"], "num_hops": matches[0]["num_hops"]}
        row["keys"].append(("hpqa_id", matches[0]["hpqa_id"]))
        if len(facts) == 1 and len(only := facts.pop()) == len(row["evidence"]):
            row["evidence"] = [
                {"title": title, "text": piece["text"]} for (title, _), piece in zip(only, row["evidence"], strict=True)
            ]

    def _sentence(self, title: str, number: int) -> str:
        if title not in self._pages:
            self._pages[title] = self._read_page(title)
        sentences = self._pages[title]
        if sentences is None:
            raise BadRow(f"the page {title!r} is not in wiki_wo_links.db")
        if not 0 <= number < len(sentences):
            raise BadRow(f"the page {title!r} has {len(sentences)} sentences, none of number {number}")
        return sentences[number]

    def _read_page(self, title: str) -> list[str] | None:
        if "pages" not in self.config.resources:
            raise CorpusError(
                "HoVer's release names evidence by title and sentence number: put its wiki_wo_links.db into data_dir, "
                "or use a copy that carries the text"
            )
        path = Path(self.config.resources["pages"])
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(documents)")]
            if not {"id", "text"} <= set(columns):
                raise CorpusError(f"{path}: expected the table documents (id, text), found the columns {columns}")
            for name in dict.fromkeys((unicodedata.normalize("NFD", title), title)):
                if page := connection.execute("SELECT text FROM documents WHERE id = ?", (name,)).fetchone():
                    (text,) = page
                    return [part.strip() for part in text.split("[SENT]")] if "[SENT]" in text else split_sentences(text)
        return None


def _facts(record: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(title, number) for title, number in record["supporting_facts"]]


def _piece(piece: Any) -> dict[str, str]:
    if isinstance(piece, list) and len(piece) == 2:
        return {"title": piece[0], "text": piece[1]}
    if isinstance(piece, dict) and {"title", "text"} <= piece.keys():
        return {"title": piece["title"], "text": piece["text"]}
    raise BadRow(f"a piece of evidence is neither [title, sentence] nor {{title, text}}: {json.dumps(piece)[:200]}")


BUILDER = Hover
