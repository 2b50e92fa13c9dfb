"""CCG's SemEval: SemEval-2010 Task 8 tokenised, with a dev split, low-resource samples and the terms that parsers found.

- Splits: train and validation are SemEval's training file, test its test file without two rows.
- Samples: 1pct 72, 3pct 216, 5pct 360, 10pct 720; 2shot 36, 4shot 72, 8shot 144, 16shot 288, 32shot 575 (one label has too few).
  Each is a part of train. `load(…, sample="10pct")` reads it instead of train; `split="10pct"` is the sample's train split.
  "10%", "0.1" and "2-shot" are other spellings. All samples have the same validation and test splits.
- Files: `original/{train,dev,test}`, `0.1/train-0.1`, `2-shot/train-2-shot` …, each as `.json`, else `.tsv`. A line of a .tsv has
  the relation, a tab, and the tokens with `<e1>`, `</e1>`, `<e2>`, `</e2>` among them. The files are in the folder `semeval/` of
  the release or in `data_dir` itself.
- Id: a hash of the label, the tokens and the entities, because the .tsv has no ids. So a row has the same id in both forms and in
  every sample. A second equal row gets "-2". Group: the row.
- Extra columns: `text`, the tokens joined by spaces, and `offsets`. The remaining extra columns come from the .json and are
  otherwise null. `semeval_id` is the row's id in `semeval` (its number in train, or after 8,000 in a file called test).
  `syntactic_terms`, `semantic_terms` and `mixed_terms` are tokens between the entities. The release took them from a dependency
  parse, a semantic parse, and both (`dp_`, `sdp_`, `mx_shortest_betweenness`).
- The text stays tokenised as released, with -LRB- for a bracket and `` for a quotation mark.

One row: tokens "One drug blocks the protein inside a cell and …", head "protein", tail "cell", label "Component-Whole(e1,e2)".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, NotRequired

from datasets import List
from pydantic import StrictInt

from hfcf.core.schema import INT, TEXT
from hfcf.corpora import semeval
from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, Fields, Files, as_text, split_files
from hfcf.corpora.formats.read import Record, json_list, text_lines
from hfcf.corpora.formats.tokens import EXTRA, TAG, Span, entity, of_tokens

_FOLDERS = {f"{n}pct": f"{n / 100:g}" for n in (1, 3, 5, 10)} | {f"{n}shot": f"{n}-shot" for n in (2, 4, 8, 16, 32)}
SAMPLES = ("original", *_FOLDERS)
_STEMS = {split: f"original/{stem}" for split, stem in (("train", "train"), ("validation", "dev"), ("test", "test"))}
_STEMS |= {sample: f"{folder}/train-{folder}" for sample, folder in _FOLDERS.items()}
_TERMS = {"dp": "syntactic_terms", "sdp": "semantic_terms", "mx": "mixed_terms"}
_PARSED = Fields(
    id=Any, relation=str, token=[str], subj_start=int, subj_end=int, obj_start=int, obj_end=int,
    **{f"{prefix}_shortest_betweenness": NotRequired[list[StrictInt] | None] for prefix in _TERMS},
)  # fmt: skip


def sample_of(spelling: str) -> str | None:
    """Return a sample's name, or None if the text does not name a sample."""
    if shots := re.fullmatch(r"(\d+)[-_ ]?shots?", spelling):
        return f"{int(shots[1])}shot"
    if share := re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:%|pct)", spelling):
        return f"{float(share[1]):g}pct"
    return f"{100 * float(spelling):g}pct" if re.fullmatch(r"0?\.\d+", spelling) else None


class CCGSemEval(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="ccg_semeval",
        title="SemEval-2010 Task 8 as CCG splits and samples it",
        paper="Miao, Li and Qian (EMNLP 2023), Generating Commonsense Counterfactuals for Stable Relation Extraction; the "
        f"sentences: {semeval.SemEval.INFO.paper}",
        citation="""@inproceedings{miao-etal-2023-generating,
  title = {Generating Commonsense Counterfactuals for Stable Relation Extraction},
  author = {Miao, Xin and Li, Yongqi and Qian, Tieyun},
  booktitle = {Proceedings of EMNLP},
  year = {2023}
}

"""
        + semeval.SemEval.INFO.citation,
        licence="cc-by-3.0",  # SemEval's; the release names none of its own
        splits={"train": 7_200, "validation": 800, "test": 2_715},
        labels=semeval.SemEval.INFO.labels,
        task="relation",
        release="github.com/NLPWM-WHU/CCG",
        layout="`semeval/`, or its contents: `original/`, `0.1/`, `2-shot/` …, `.json` or `.tsv`",
        notes="SemEval tokenised, with a dev split and samples",
    )
    FILES = split_files("{}.json", "{}.tsv", "semeval/{}.json", "semeval/{}.tsv", names=tuple(_STEMS.items()))
    ONE_FORM = True
    OPTIONS: ClassVar = {"sample": f"the low-resource sample that is train: one of {', '.join(SAMPLES)} (which is the default)"}
    EXTRA: ClassVar = {**EXTRA, "semeval_id": TEXT, **{column: List(INT) for column in _TERMS.values()}}

    @classmethod
    def read_split(cls, split: str | None, options: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Read a sample in a split's place as that sample's train split."""
        if split is None:
            return None, dict(options)
        requested, parts = options.get("sample"), []
        for part in str(split).split("+"):
            name, bracket, rest = part.strip().partition("[")
            if sample := sample_of(name.strip()):
                if requested is not None and (sample_of(str(requested)) or requested) != sample:
                    raise ValueError(
                        f"split={split!r} names the sample {sample!r}, and sample= names {requested!r}: load one at a time"
                    )
                requested, name = sample, "train"
            parts.append(name + bracket + rest)
        return "+".join(parts), {**options, **({} if requested is None else {"sample": requested})}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split: train is the sample's file."""
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        existing = [sample for sample in _FOLDERS if sample in files]
        # A sample's own file that the user names needs no option.
        alone = existing[0] if data_files is not None and "train" not in files and len(existing) == 1 else "original"
        requested = str(options.get("sample") or alone)
        sample = sample_of(requested) or requested
        if sample not in SAMPLES:
            raise CorpusError(f"{name}: there is no sample {requested!r}; there are {', '.join(SAMPLES)}")
        if sample != "original" and data_files is None:
            files.pop("train", None)
        if sample in files:
            files = {"train": files[sample], **{split: files[split] for split in files if split != "train"}}
        elif sample != "original" and "train" not in files:
            looked = ", ".join(file for split, file in cls.FILES if split == sample)
            names = ", ".join(existing) or "none"
            raise CorpusError(f"{name}: no file of the sample {sample!r} in {data_dir}; looked for {looked}; there are: {names}")
        return {split: paths for split, paths in files.items() if split not in _FOLDERS}, resources

    def start(self, files: Sequence[Path]) -> None:
        self._ids: Counter[str] = Counter()

    def records(self, path: Path) -> Iterator[Record]:
        if path.suffix != ".json":
            yield from tabbed(path)
            return
        first = 8_001 if path.stem == "test" else 1
        for record in json_list(path):
            record.value["first"] = first
            yield record

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        (fill_parsed if "first" in record else fill_tagged)(row, record)
        row["id"] = content_id(row, self._ids)
        row["label"] = self.label(row["label"])


def tabbed(path: Path) -> Iterator[Record]:
    """Yield the lines of a .tsv that are not blank."""
    return (record for record in text_lines(path) if record.unreadable or record.value["line"].strip())


def fill_tagged(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    """Write one line of a .tsv into `row`: relation, a tab, the tokens with tags; head is e1, in any order."""
    label, tab, sentence = record["line"].partition("\t")
    if not tab or "\t" in sentence:
        raise BadRow(f"the line has {record['line'].count(tab or chr(9)) + 1} fields; expected a relation, a tab and the tokens")
    row |= {"label": label.strip(), "text": as_text(sentence)}
    parts, tags = TAG.split(sentence), TAG.findall(sentence)
    if sorted((tags[:2], tags[2:])) != [["<e1>", "</e1>"], ["<e2>", "</e2>"]]:
        raise BadRow(f"the tags are {' '.join(tags) or 'none'}; expected <e1> … </e1> and <e2> … </e2>, each once and whole")
    places = dict(zip(tags, accumulate(len(part.split()) for part in parts[:-1]), strict=True))
    row |= of_tokens([token for part in parts for token in part.split()])
    for name, tag in (("head", "e1"), ("tail", "e2")):
        row[name] = entity((places[f"<{tag}>"], places[f"</{tag}>"]))
        if row[name]["start"] == row[name]["end"]:
            raise BadRow(f"the {name} is empty: there is no token between <{tag}> and </{tag}>")


def fill_parsed(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    """Write one item of a .json into `row`; its places include the last token."""
    _PARSED.check(record)
    tokens = record["token"]
    row |= {"label": record["relation"], **of_tokens(tokens)}
    for name, field in (("head", "subj"), ("tail", "obj")):
        row[name] = entity(_inclusive(record, field, len(tokens)))
    if not re.fullmatch(r"\d+", str(record["id"])):
        raise BadRow(f"the id is {record['id']!r}, not a number")
    row["semeval_id"] = str(int(record["id"]) + record["first"])
    for prefix, column in _TERMS.items():
        terms = record.get(f"{prefix}_shortest_betweenness")
        if not all(0 <= i < len(tokens) for i in terms or ()):
            raise BadRow(f"{prefix}_shortest_betweenness must be places in the {len(tokens)} tokens, got {terms!r}")
        row[column] = None if terms is None else sorted(terms)


def content_id(row: Mapping[str, Any], counts: Counter[str]) -> str:
    """Hash the row's content to an id; `counts` counts the rows of each."""
    places = [f"{row[name]['start']}-{row[name]['end']}" for name in ("head", "tail")]
    content = "\t".join([str(row["label"]), *places, row["text"]])
    name = sha256(content.encode()).hexdigest()[:12]
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}-{counts[name]}"


def _inclusive(record: Mapping[str, Any], field: str, size: int) -> Span:
    start, last = record[f"{field}_start"], record[f"{field}_end"]
    if not 0 <= start <= last < size:
        raise BadRow(f"{field}_start and {field}_end are {start} and {last}, outside the {size} tokens")
    return start, last + 1


BUILDER = CCGSemEval
