"""Natural Questions (NQ): questions that people asked a search engine, and the answers that annotators marked in a Wikipedia page.

There are two forms. The option `form` chooses if a folder has both; otherwise the files decide.

`form="short"`, the release with its short answers:

- Files: the simplified train set, `v1.0-simplified_simplified-nq-train.jsonl` (or `simplified-nq-train.jsonl`), whose pages are
  texts. Or the dev set and the original shards, `v1.0-simplified_nq-dev-all.jsonl`, `nq-train-*.jsonl`, `nq-dev-*.jsonl`, whose
  pages are tokens. All may be compressed (`.gz`), and may be in `v1.0-simplified/`, `v1.0/train/` and `v1.0/dev/`.
- Context: the long answer, its tokens joined by blanks, without HTML tokens. If annotators marked several long answers, the context
  is the answer with most short answers, yes and no; in a tie, the first annotator's.
- HTML tokens are the tokens that the release marks. The simplified text has no marks. There a token is HTML if it has the form of a
  tag with a capital, as in all of the release (`<P>`, `</Table>`, `<Th_colspan="2">`).
- Answers: the short answers in the context. Answers of several annotators are alternatives. An annotator's own answer may be a list
  of spans that answer together: `alternatives` has their numbers. Yes and no are answers without a position. They are used only if
  more annotators chose them than marked a span.
- Questions without a short answer, and without yes or no, are left out and counted.
- Title: `document_title`; in the simplified text the page's name in `document_url`. Group: the title.
- Extra columns: `alternatives`, `url` and `annotators`. `annotators` is how many gave an answer in the context; the official metric
  of NQ requires two of the dev set's five.

`form="mrqa"`, `NaturalQuestionsShort.jsonl.gz` of the MRQA 2019 shared task: see `hfcf.corpora.mrqa`. Its extra column is
`aliases`; contexts keep their HTML tokens, and the group is the context. The form has no field for titles. A row has a title only
if its context marks it by [TLE], as `hfcf.corpora.mrqa` says. Models that read titles, such as RGF's, are trained on
`form="short"`.

One row (made up): question "where is lake bled", title "Lake Bled", context "Lake Bled lies in Slovenia .", answers {"text":
["Slovenia"], "answer_start": [18]}, alternatives [[0]], annotators 1.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NotRequired
from urllib.parse import unquote

import datasets

from hfcf.core.schema import INT, TEXT
from hfcf.corpora import mrqa
from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusError,
    CorpusInfo,
    Fields,
    Files,
    Record,
    as_text,
    json_lines,
)
from hfcf.corpora.formats.answers import ALTERNATIVES, alternative_answers

_TAG = re.compile(r"</?[A-Z][A-Za-z0-9]*(?:[_ /][^<>]*)?>")
_STEMS = (
    ("train", "v1.0-simplified_simplified-nq-train.jsonl"),
    ("train", "simplified-nq-train.jsonl"),
    ("train", "v1.0-simplified/simplified-nq-train.jsonl"),
    ("train", "nq-train-*.jsonl"),
    ("train", "v1.0/train/nq-train-*.jsonl"),
    ("validation", "v1.0-simplified_nq-dev-all.jsonl"),
    ("validation", "nq-dev-*.jsonl"),
    ("validation", "v1.0/dev/nq-dev-*.jsonl"),
)
_SHORT = tuple((split, f"{stem}{ending}") for split, stem in _STEMS for ending in ("", ".gz"))
_MRQA = tuple(
    (split, f"{folder}NaturalQuestionsShort{ending}")
    for split, folder in (("train", "train/"), ("validation", "dev/"), ("train", ""))
    for ending in mrqa.ENDINGS
)
FORMS = ("short", "mrqa")
_SPAN = {"start_token": int, "end_token": int}
_RECORD = Fields(
    example_id=Any, question_text=str,
    annotations=[{"long_answer": _SPAN, "short_answers": [_SPAN], "yes_no_answer": Literal["YES", "NO", "NONE"]}],
    document_title=NotRequired[str], document_url=NotRequired[str], document_text=NotRequired[str],
)  # fmt: skip
_TOKENS = Fields(document_tokens=[{"token": str, "html_token": Any}])


class NaturalQuestions(Corpus):
    """Release files → rows."""

    VERSION = datasets.Version("1.1.0")  # titles of the MRQA form

    ID = "example_id"
    INFO = CorpusInfo(
        name="natural_questions",
        title="Natural Questions: a benchmark for question answering research",
        paper="Kwiatkowski et al. (TACL 2019), Natural Questions: A Benchmark for Question Answering Research",
        citation="""@article{kwiatkowski-etal-2019-natural,
  title = {Natural Questions: A Benchmark for Question Answering Research},
  author = {Kwiatkowski, Tom and Palomaki, Jennimaria and Redfield, Olivia and Collins, Michael and Parikh, Ankur and Alberti, Chris
    and Epstein, Danielle and Polosukhin, Illia and Devlin, Jacob and Lee, Kenton and Toutanova, Kristina and Jones, Llion and
    Kelcey, Matthew and Chang, Ming-Wei and Dai, Andrew M. and Uszkoreit, Jakob and Le, Quoc and Petrov, Slav},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {7},
  year = {2019}
}""",
        licence="cc-by-sa-3.0",
        hub_id="google-research-datasets/natural_questions",
        splits={"train": 307_373, "validation": 7_830},  # with the questions that have no short answer
        task="qa",
        release="ai.google.com/research/NaturalQuestions; the MRQA form: github.com/mrqa/MRQA-Shared-Task-2019",
        layout="`v1.0-simplified_simplified-nq-train.jsonl`, `nq-dev-*.jsonl.gz` …, or `NaturalQuestionsShort.jsonl.gz`",
        notes='`form="short"` or `"mrqa"`; `alternatives`; not checked against the real files',
    )
    FILES = (*_SHORT, *_MRQA)
    OPTIONS: ClassVar = {"form": "short or mrqa, if a folder has files of both forms"}
    EXTRA: ClassVar = {"alternatives": ALTERNATIVES, "annotators": INT, "url": TEXT, **mrqa.FORM_EXTRA}

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        files: Files = {}
        for patterns in (_SHORT, _MRQA):
            chosen: dict[str, str] = {}
            for split, pattern in patterns:
                for path in sorted(data_dir.glob(pattern)):
                    actual = (mrqa.header_split(path) if patterns is _MRQA else None) or split
                    # The same rows may lie there in several places, and compressed: the first pattern that fits is read.
                    if chosen.setdefault(actual, pattern) == pattern:
                        files.setdefault(actual, []).append(path)
        return files

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return mrqa.header_split(path) or next((split for split, pattern in _SHORT if path.match(Path(pattern).name)), None)

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, of one form."""
        form = options.get("form")
        if form not in (None, *FORMS):
            raise ValueError(f"form must be {' or '.join(map(repr, FORMS))}, got {form!r}")
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        forms = {path: "mrqa" if mrqa.header(path) else "short" for paths in files.values() for path in paths}
        if form is None and len(set(forms.values())) > 1:
            names = ", ".join(f"{path.name} ({of})" for path, of in forms.items())
            raise CorpusError(f"{name}: there are files of two forms, {names}: choose with form='short' or form='mrqa'")
        kept = {split: [path for path in paths if form in (None, forms[path])] for split, paths in files.items()}
        if not any(kept.values()):
            raise CorpusError(f"{name}: no file is of the form {form!r}: there is {', '.join(path.name for path in forms)}")
        return {split: paths for split, paths in kept.items() if paths}, resources

    def records(self, path: Path) -> Iterator[Record]:
        return mrqa.questions(path) if mrqa.header(path) else json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        if "dataset" in record:  # `mrqa.questions` writes it
            mrqa.fill_question(row, record)
            return
        _RECORD.check(record)
        row |= {"id": record["example_id"], "question": record["question_text"], "url": record.get("document_url")}
        row["title"] = row["group_id"] = as_text(_title(record))
        tokens, is_html = _tokens(record)
        marks = [_mark(annotation, len(tokens)) for annotation in record["annotations"]]
        answered = [mark for mark in marks if mark["short"] or mark["yes_no"]]
        if not answered:
            self.leave_out(row, "questions without a short answer, yes or no were left out")
            return
        places = [mark["long"] for mark in answered]
        best = max(dict.fromkeys(places), key=places.count)  # of equals, the first
        answered = [mark for mark in answered if mark["long"] == best]
        row["context"], starts = _join(tokens, is_html, *best)
        row["annotators"] = len(answered)
        spans = [mark["short"] for mark in answered if mark["short"]]
        verdicts = [mark["yes_no"] for mark in answered if mark["yes_no"]]
        if len(verdicts) > len(spans):
            answer = max(dict.fromkeys(verdicts), key=verdicts.count)
            row |= {"answers": {"text": [answer], "answer_start": []}, "alternatives": []}
            return
        found = [[_cut(row["context"], tokens, starts, *span) for span in alternative] for alternative in spans]
        row["answers"], row["alternatives"] = alternative_answers(found)


def _title(record: Mapping[str, Any]) -> str:
    if "document_title" in record:
        return str(record["document_title"])
    title = re.search("[?&]title=([^&#]+)", html.unescape(record.get("document_url", "")))
    if not title:
        raise BadRow(f"there is no document_title, and no title= in the document_url {record.get('document_url')!r}")
    return unquote(title[1]).replace("_", " ")


def _tokens(record: Mapping[str, Any]) -> tuple[list[str], list[bool]]:
    """Return the tokens of a page, and which of them are HTML."""
    if "document_text" in record:
        tokens = record["document_text"].split(" ")
        return tokens, [bool(_TAG.fullmatch(token)) for token in tokens]
    items = _TOKENS.check(record)["document_tokens"]
    return [token["token"] for token in items], [bool(token["html_token"]) for token in items]


def _mark(annotation: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return what an annotator marked: the long answer, the spans of the short answer, and "yes" or "no"."""
    short = tuple(_place(span, size) for span in annotation["short_answers"])
    yes_no = {"YES": "yes", "NO": "no"}.get(annotation["yes_no_answer"])
    long = _place(annotation["long_answer"], size) if short or yes_no else None
    if long and any(not long[0] <= start < end <= long[1] for start, end in short):
        raise BadRow(f"a short answer at tokens {short} lies outside the long answer at {long}")
    return {"long": long, "short": short, "yes_no": yes_no}


def _place(span: Mapping[str, Any], size: int) -> tuple[int, int]:
    start, end = span["start_token"], span["end_token"]
    if not 0 <= start < end <= size:
        raise BadRow(f"an answer is at the tokens {start}–{end}, outside the {size} tokens of the page")
    return start, end


def _join(tokens: list[str], is_html: list[bool], start: int, end: int) -> tuple[str, dict[int, int]]:
    """Return the text of some tokens, without HTML, and where each token starts in it."""
    starts: dict[int, int] = {}
    at = 0
    for i in range(start, end):
        if not is_html[i] and tokens[i]:
            starts[i] = at
            at += len(tokens[i]) + 1
    return " ".join(tokens[i] for i in starts), starts


def _cut(context: str, tokens: list[str], starts: dict[int, int], start: int, end: int) -> tuple[int, str]:
    """Return where the text of some tokens starts in the context, and the text."""
    inside = [i for i in range(start, end) if i in starts]
    if not inside:
        raise BadRow(f"the short answer at tokens {start}–{end} has only HTML tokens: {' '.join(tokens[start:end])}")
    first, last = starts[inside[0]], starts[inside[-1]] + len(tokens[inside[-1]])
    return first, context[first:last]


BUILDER = NaturalQuestions
