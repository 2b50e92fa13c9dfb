"""FEVER: claims written from Wikipedia sentences, and their mutations.

- Files, in either of two forms:
  - the release: `train.jsonl`, `shared_task_dev.jsonl` (validation), `paper_dev.jsonl`, `paper_test.jsonl`, whose evidence is
    page names and sentence numbers, with `wiki-pages/wiki-*.jsonl` for the text. A row gets the first annotated
    evidence set whose sentences are all in wiki-pages.
  - the RTE form with text, `RTE-Fever/processed/{train,dev}.{raw.input0,raw.input1,label}` (COVID-Fact's copy of FEVER's
    development rows): evidence, claim and label line by line. It has SUPPORTS and REFUTES rows only, so not_entailment is
    REFUTES. Its evidence is one text without page names: one piece with an empty title.
- Option `nei`: NOT ENOUGH INFO rows name no evidence. "drop" (the default) leaves them out; the log and the card say how many.
  "keep" keeps them with empty evidence, which every stage rejects.
- Group: rows that share a claim or an evidence sentence; FEVER names none.
- The text stays tokenised as released (`` and '' for quotes), but brackets written -LRB-, -RSB- … are brackets again.

One row: claim "There is a capital called Mogadishu.", evidence [title "Mogadishu", text "Mogadishu ( [ ˌmɔːɡəˈdiːʃuː ] …) , known
locally as Hamar , is the capital and most populous city of Somalia ."], label SUPPORTS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusConfig,
    CorpusError,
    CorpusInfo,
    Fields,
    Record,
    choice,
    json_lines,
    split_files,
)
from hfcf.corpora.formats.read import lines
from hfcf.corpora.formats.wikipedia import nfc, page_title
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.normalise import unbracket

_NAMES = (("train", "train"), ("validation", "shared_task_dev"), ("paper_dev", "paper_dev"), ("paper_test", "paper_test"))
RTE_LABELS = {"entailment": SUPPORTS, "not_entailment": REFUTES}
"""The labels of files with SUPPORTS and REFUTES rows only."""
_RTE = split_files(
    *(f"{folder}{{}}.raw.input1" for folder in ("RTE-Fever/processed/", "processed/", "")),
    names=(("train", "train"), ("validation", "dev")),
)
_NEED_PAGES = (
    "the release names evidence by page and sentence number: put its wiki-pages/wiki-*.jsonl into data_dir, "
    "or use the RTE form with text (RTE-Fever/processed/dev.raw.input0 …)"
)
_RELEASE = Fields(id=Any, label=str, claim=str, evidence=Any)


@dataclass
class FeverConfig(CorpusConfig):
    """FEVER's own option."""

    nei: str = choice("drop", "keep")


class Fever(Corpus):
    """Release files → rows."""

    BUILDER_CONFIG_CLASS = FeverConfig
    INFO = CorpusInfo(
        name="fever",
        title="FEVER: fact extraction and verification",
        paper="Thorne et al. (NAACL 2018), FEVER: a Large-scale Dataset for Fact Extraction and VERification",
        citation="""@inproceedings{thorne-etal-2018-fever,
  title = {FEVER: a Large-scale Dataset for Fact Extraction and VERification},
  author = {Thorne, James and Vlachos, Andreas and Christodoulopoulos, Christos and Mittal, Arpit},
  booktitle = {Proceedings of NAACL-HLT 2018},
  year = {2018}
}""",
        licence="cc-by-sa-3.0",  # Wikipedia text
        hub_id="fever/fever",
        splits={"train": 145_449, "validation": 19_998, "paper_dev": 9_999, "paper_test": 9_999},
        labels={**{label: label for label in LABELS}, **RTE_LABELS},
        release="fever.ai, or with text (the RTE form, `RTE-Fever/`) from github.com/asaakyan/covidfact",
        layout="`train.jsonl`, `shared_task_dev.jsonl`, `paper_*.jsonl`, `wiki-pages/`, or the RTE form's files",
        notes="",
    )
    FILES = (*split_files("{}.jsonl", names=_NAMES), *_RTE)
    ONE_FORM = True
    GROUPS_BY_KEYS = True
    OPTIONS: ClassVar = {"nei": "what to do with NOT ENOUGH INFO rows, which have no evidence: drop (default) or keep"}

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        folder = data_dir / "wiki-pages"
        # The archive unpacks to wiki-pages/wiki-pages in some copies.
        folder = folder / "wiki-pages" if (folder / "wiki-pages").is_dir() else folder
        return ({"wiki-pages": folder} if folder.is_dir() else {}) | rte_resources(data_dir, _RTE)

    def start(self, files: Sequence[Path]) -> None:
        self.sentences: dict[tuple[str, int], str] = {}
        release = [path for path in files if path.suffix == ".jsonl"]
        if not release:
            return
        if "wiki-pages" not in self.config.resources:
            raise CorpusError(f"{release[0]}: {_NEED_PAGES}")
        numbers: dict[str, set[int]] = {}
        for path in release:
            for record in json_lines(path):
                with suppress(BadRow):  # `fill` says what is wrong with it.
                    for page, sentence in (fact for facts in _evidence_sets(record.value) for fact in facts):
                        numbers.setdefault(page, set()).add(sentence)
        self.sentences = _sentences(Path(self.config.resources["wiki-pages"]), numbers)

    def records(self, path: Path) -> Iterator[Record]:
        return json_lines(path) if path.suffix == ".jsonl" else rte_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "text" in record and "evidence" not in record:
            row |= {"id": record["id"], "claim": record["claim"], "label": record["label"]}
            row["evidence"] = [{"title": "", "text": unbracket(record["text"])}]
            # Its evidence is tokenised sentences joined by blanks: each sentence is a key, as page and sentence are below.
            row["keys"] = [("claim", record["claim"]), *_sentence_keys(record["text"])]
        else:
            self._release(row, record)
        row["label"] = self.label(record["label"])

    def _release(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _RELEASE.check(record)
        row |= {"id": record["id"], "claim": record["claim"], "label": record["label"]}
        row["keys"] = [("claim", record["claim"])]
        if record["label"] == NOT_ENOUGH_INFO:
            if self.config.nei == "drop":
                self.leave_out(row, "NOT ENOUGH INFO rows, which name no evidence, were left out")
            return
        sets = _evidence_sets(record)
        complete = [facts for facts in sets if all(self.sentences.get(fact) for fact in facts)]
        if not complete:
            raise BadRow(f"none of its {len(sets)} evidence sets is whole in wiki-pages; the first is {sets[:1]}")
        row["keys"] += [("fact", fact) for facts in sets for fact in facts]
        row["evidence"] = [{"title": page_title(page), "text": self.sentences[page, i]} for page, i in complete[0]]


def _sentence_keys(text: str) -> list[tuple[str, str]]:
    # Tokenised, so that " . " ends a sentence; fragments such as a lone quotation mark are none.
    sentences = [part.strip(" .") for part in text.split(" . ")]
    return [("sentence", sentence) for sentence in sentences if sentence.count(" ") > 2]


def _evidence_sets(record: Mapping[str, Any]) -> list[list[tuple[str, int]]]:
    """Return the (page, sentence number) facts of each evidence set, once each; sets without a page are none."""
    try:
        sets = [
            list(dict.fromkeys((nfc(page), int(sentence)) for _, _, page, sentence in facts if page is not None))
            for facts in record.get("evidence") or []
        ]
    except (TypeError, ValueError):
        form = "[[[annotation id, evidence id, page, sentence number] …] …]"
        raise BadRow(f"the evidence is not of the form {form}: {str(record['evidence'])[:200]}") from None
    return [facts for facts in sets if facts]


_ID = re.compile(rb'\{"id": ?("(?:[^"\\]|\\.)*")')


def _sentences(folder: Path, numbers: Mapping[str, set[int]]) -> dict[tuple[str, int], str]:
    """Read the sentences of these numbers from wiki-pages; of its five million pages, only pages with such a sentence are
    parsed."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise CorpusError(f"{folder} has no wiki-*.jsonl: {_NEED_PAGES}")
    sentences: dict[tuple[str, int], str] = {}
    for path in files:
        with path.open("rb") as file:
            for line in file:
                start = _ID.match(line)
                try:
                    if not line.strip() or (start and nfc(json.loads(start[1])) not in numbers):
                        continue
                    page = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise CorpusError(f"{path}: a line is not JSON: {error}") from None
                if not isinstance(page, dict) or not all(isinstance(page.get(field), str) for field in ("id", "lines")):
                    raise CorpusError(f"{path}: expected pages with the texts 'id' and 'lines', found {str(page)[:200]}")
                name = nfc(page["id"])
                # A line is "number\tsentence\tlinked words\tlinked page …".
                for entry in page["lines"].split("\n"):
                    number, _, rest = entry.partition("\t")
                    if number.isdecimal() and int(number) in numbers.get(name, ()):
                        sentences[name, int(number)] = unbracket(rest.partition("\t")[0]).strip()
    return sentences


# --- the RTE form, with text: evidence, claim and label line by line in `<split>.raw.input0`, `.raw.input1` and `.label`


def _companions(claims: Path) -> list[Path]:
    """List the files of evidence and labels that belong to a file of claims."""
    return [claims.with_name(claims.name.replace(".raw.input1", suffix)) for suffix in (".raw.input0", ".label")]


def rte_resources(data_dir: Path, files: Iterable[tuple[str, str]]) -> dict[str, Path]:
    """Return the existing files of evidence and labels for these (split, file of claims), by their path in the folder."""
    others = [other for _, file in files for other in _companions(data_dir / file)]
    return {other.relative_to(data_dir).as_posix(): other for other in others if other.is_file()}


def rte_lines(path: Path) -> Iterator[Record]:
    """Yield records with `id`, `claim`, `text` and `label`."""
    if absent := [other for other in _companions(path) if not other.is_file()]:
        raise CorpusError(f"{path}: there is no {absent[0].name} next to it; the RTE form has three files")
    claims, evidence, labels = lines(path), *(lines(other) for other in _companions(path))
    if not len(claims) == len(evidence) == len(labels):
        raise CorpusError(
            f"{path}: the three files of the RTE form are not parallel: "
            f"{len(claims)} claims, {len(evidence)} evidence texts, {len(labels)} labels"
        )
    for i, (claim, text, label) in enumerate(zip(claims, evidence, labels, strict=True), 1):
        name = f"{path.name.partition('.')[0]}-{i}"
        yield Record("line", i, {"id": name, "claim": claim, "text": text, "label": label.strip()})


BUILDER = Fever
