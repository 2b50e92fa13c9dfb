"""FEVEROUS: claims whose evidence is Wikipedia sentences, list items and table cells.

- Splits: test is blind.
- Files, in either of two forms:
  - the release: `feverous_{train,dev}_challenges.jsonl` with the pages in `feverous_wikiv1.db` (SQLite). A row gets its first
    evidence set; cells of one table row become one piece, "row header: column header is value; …". NOT ENOUGH INFO rows have
    evidence here.
  - ProgramFC's copies with text, `claims/{train,dev}.json`: the SUPPORTS and REFUTES claims whose evidence is sentences only.
- Links `[[target|shown]]` are read as shown.
- Group: rows that share a claim or a piece of evidence; FEVEROUS names none.
- Extra column: `challenge`, the annotators' category of what makes the claim hard.

One row: claim "Harrier Shing of the Liberal party has always been a member of the Eastern Victoria Region from 2006 until 2018.",
evidence [title "Harriet Shing", text "She is a Labor member of the Victorian Legislative Council, having represented Eastern
Victoria Region since 2014."], label REFUTES, challenge "Entity Disambiguation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, Fields, Record, json_lines, json_list, split_files
from hfcf.corpora.formats.feverous_pages import Pages, open_pages, plain
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS

_NAMES = (("train", "train"), ("validation", "dev"))
_ROW = Fields(id=Any, claim=str, label=str, evidence=Any, challenge=str)


class Feverous(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="feverous",
        title="FEVEROUS: fact verification over sentences and tables",
        paper="Aly et al. (NeurIPS 2021), FEVEROUS: Fact Extraction and VERification Over Unstructured and Structured information",
        citation="""@inproceedings{aly-etal-2021-feverous,
  title = {FEVEROUS: Fact Extraction and VERification Over Unstructured and Structured information},
  author = {Aly, Rami and Guo, Zhijiang and Schlichtkrull, Michael Sejr and Thorne, James and Vlachos, Andreas and
            Christodoulopoulos, Christos and Cocarascu, Oana and Mittal, Arpit},
  booktitle = {NeurIPS 2021 Datasets and Benchmarks Track},
  year = {2021}
}""",
        licence="cc-by-sa-3.0",  # Wikipedia text
        hub_id="fever/feverous",
        splits={"train": 71_291, "validation": 7_890, "test": 7_845},
        labels={**{label: label for label in LABELS}, "supports": SUPPORTS, "refutes": REFUTES},
        release="fever.ai",
        layout="`feverous_*_challenges.jsonl`, `feverous_wikiv1.db`",
        notes="or ProgramFC's copy with text",
    )
    FILES = split_files("feverous_{}_challenges.jsonl", "claims/{}.json", "{}.json", names=_NAMES)
    ONE_FORM = True
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"challenge": TEXT}

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        path = data_dir / "feverous_wikiv1.db"
        return {"pages": path} if path.is_file() else {}

    def start(self, files: Sequence[Path]) -> None:
        if any(path.suffix == ".jsonl" for path in files) and "pages" not in self.config.resources:
            raise CorpusError(
                f"{files[0]}: the release names evidence by page and element: put its feverous_wikiv1.db into data_dir, "
                "or use copies with text (claims/dev.json)"
            )

    def records(self, path: Path) -> Iterator[Record]:
        if path.suffix != ".jsonl":
            yield from json_list(path)
            return
        with ExitStack() as stack:
            self.pages: Pages = stack.enter_context(open_pages(Path(self.config.resources["pages"])))
            for record in json_lines(path):
                header = record.number == 1 and not record.value.get("claim") and not record.value.get("id")
                if not header or record.unreadable:
                    yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        _ROW.check(record)
        row |= {key: record[key] for key in ("id", "claim", "label", "challenge")}
        row["evidence"] = _lines(record["evidence"]) if isinstance(record["evidence"], str) else self._first_set(record)
        row["keys"] = [("claim", record["claim"]), *((piece["title"], piece["text"]) for piece in row["evidence"])]
        row["label"] = self.label(record["label"])

    def _first_set(self, record: Mapping[str, Any]) -> list[dict[str, str]]:
        try:
            content = record["evidence"][0]["content"]
        except (KeyError, IndexError, TypeError):
            raise BadRow(f"the evidence is not a list of sets with 'content': {str(record['evidence'])[:200]}") from None
        return self.pages.pieces(content)


def _lines(evidence: str) -> list[dict[str, str]]:
    pieces = []
    for line in evidence.split("\n"):
        if not line.strip():
            continue
        title, tab, text = line.partition("\t")
        if not tab:
            raise BadRow(f"a line of the evidence is not 'Title<tab>sentence': {line[:200]!r}")
        pieces.append({"title": title.strip(), "text": plain(text)})
    return pieces


BUILDER = Feverous
