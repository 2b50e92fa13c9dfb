"""WikiWhy: cause–effect pairs from Wikipedia, with a why-question about each and an explanation that leads from cause to effect.

- Causal claims are made from these rows. They have `cause` and `effect`, and no claim, evidence, structure or label yet. `claim` is
  "", like the context of a question without a passage; `label` is null. A verifier can't work on them.
- Files: `dataset/v1.2/cause.json`, `effect.json`, `question.json`, `explanation.json` and `context.json`, one column each,
  {"cause": {row id: text}}. `data_dir` is the repository or the folder of a version. If there are several versions, the newest is
  read. The authors separate the columns to keep the rows out of pre-training corpora: don't publish them joined where crawlers read
  them.
- Splits: the splits of `context.json`, which may be absent; then there is one split, `full`.
- An id that a file lacks is an error (with `on_error="reject"`, a rejected row); so is a column of another layout.
- Group: rows that share effect, question or Wikipedia page.
- Extra columns: `question`; `explanation`, the texts of the release, mostly one text of several sentences. `context` (the passage),
  `title` and `topic` come from `context.json` and are null if the file is absent. Blanks around a text are removed.

One row: cause "Joan Crawford was ill", effect "Joan Crawford left the movie Hush...Hush, Sweet Charlotte", question "Why did Joan
Crawford leave the movie Hush...Hush, Sweet Charlotte in 1964?", explanation ["When someone gets sick, sometimes they are too sick
to work. When Joan Crawford got sick, she was too sick to work."].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import BadRow, Corpus, CorpusError, CorpusInfo, Files, Record, as_text
from hfcf.corpora.base.info import ALIASES
from hfcf.corpora.formats.read import json_column
from hfcf.text.check import kind, text_problem
from hfcf.text.normalise import normalise

COLUMNS = ("cause", "effect", "question", "explanation")
"""Columns of the release, each in a file of its name."""
CONTEXT = {"context": "ctx", "title": "title", "topic": "topic"}
"""Our columns → the columns of `context.json`."""
SPLITS = ("train", "validation", "test")
_VERSIONS = ("v1.2", "v1.1", "v1.0")


class WikiWhy(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="wikiwhy",
        title="WikiWhy: answering and explaining cause-and-effect questions",
        paper="Ho et al. (ICLR 2023), WikiWhy: Answering and Explaining Cause-and-Effect Questions",
        citation="""@inproceedings{ho2023wikiwhy,
  title = {{WikiWhy}: Answering and Explaining Cause-and-Effect Questions},
  author = {Ho, Matthew and Sharma, Aditya and Chang, Justin and Saxon, Michael and Levy, Sharon and Lu, Yujie and Wang, William
    Yang},
  booktitle = {International Conference on Learning Representations},
  year = {2023}
}""",
        licence="mit",  # the repository's
        request="The authors ask to keep WikiWhy out of pre-training corpora: do not publish these rows where crawlers read them",
        splits={"full": 9_400},  # of version 1.2
        task="structures",
        release="github.com/matt-seb-ho/WikiWhy",
        layout="`dataset/v1.2/{cause,effect,question,explanation}.json`, and `context.json` if you have it",
        notes="cause and effect, no claims yet; one split, `full`, without `context.json`; keep it out of pre-training corpora",
    )
    FILES = tuple(("full", f"{folder}cause.json") for folder in (*(f"dataset/{version}/" for version in _VERSIONS), ""))
    ONE_FORM = True
    GROUPS_BY_KEYS = True
    EXTRA: ClassVar = {"question": TEXT, "explanation": List(TEXT), **dict.fromkeys(CONTEXT, TEXT)}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the file of causes for each split, and the files for the other columns."""
        files, _ = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        folder = next(iter(files.values()))[0].parent
        resources = {column: folder / f"{column}.json" for column in (*COLUMNS[1:], "context")}
        if absent := [path.name for column, path in resources.items() if column in COLUMNS and not path.is_file()]:
            raise CorpusError(f"{name}: there is no {absent[0]} next to cause.json in {folder}")
        if not resources["context"].is_file():
            del resources["context"]
        elif "full" in files:
            present = set(_splits(resources["context"]).values())
            files = {split: files["full"] for split in SPLITS if split in present}
        return files, resources

    def records(self, path: Path) -> Iterator[Record]:
        columns = {"cause": _column(path, "cause")}
        columns |= {column: _column(Path(self.config.resources[column]), column) for column in COLUMNS[1:]}
        if context := self.config.resources.get("context"):
            columns |= {ours: _column(Path(context), theirs) for ours, theirs in CONTEXT.items()}
            columns["split"] = _splits(Path(context))
        self.columns = tuple(columns)
        for i, name in enumerate(dict.fromkeys(name for cells in columns.values() for name in cells), 1):
            value = {column: cells[name] for column, cells in columns.items() if name in cells}
            # A row without a split is not lost: it is read with the first split, and refused.
            if self.split not in SPLITS or value.get("split", SPLITS[0]) == self.split:
                yield Record("row", i, {"id": name, **value})

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {"id": record["id"], "claim": ""}
        row |= {column: _strip(record.get(column)) for column in ("cause", "effect", "question", *CONTEXT)}
        row["explanation"] = _texts(record.get("explanation"))
        row["keys"] = [(name, normalise(text)) for name in ("effect", "question", "title") if (text := row[name])]
        if absent := [column for column in self.columns if column not in record]:
            file = absent[0] if absent[0] in COLUMNS else "context"
            raise BadRow(f"{file}.json has no {absent[0]} of this id")
        for column in COLUMNS[:-1]:
            if why := text_problem(record[column], f"the {column}", letters=False):
                raise BadRow(why)
        if not row["explanation"]:
            raise BadRow(f"the explanation is {kind(record['explanation'])}, neither a text nor a list of texts, or empty")
        if wrong := [column for column in CONTEXT if not isinstance(record.get(column), str | None)]:
            raise BadRow(f"the {wrong[0]} is {kind(record[wrong[0]])}, not text")

    def check(self, row: Mapping[str, Any]) -> str | None:
        """Accept every row: rows have no claim yet, so their task would reject them."""
        return None


def _strip(value: Any) -> str | None:
    return as_text(value.strip() if isinstance(value, str) else value)


def _texts(value: Any) -> list[str]:
    """Return the texts of an explanation, without blank texts; an empty list if it is neither a text nor a list of texts."""
    texts = [value] if isinstance(value, str) else value
    sound = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    return [_strip(text) or "" for text in texts if text.strip()] if sound else []


def _column(path: Path, name: str) -> dict[str, Any]:
    """Return a column of a file, by row id."""
    column = json_column(path, name)
    if not isinstance(column, dict):
        raise CorpusError(f"{path}: {name!r} is {kind(column)}, not an object {{row id: text}}")
    return column


def _splits(path: Path) -> dict[str, str]:
    """Return the split of each row id."""
    splits = {name: ALIASES.get(str(split), str(split)) for name, split in _column(path, "split").items()}
    if unknown := sorted(set(splits.values()) - set(SPLITS)):
        raise CorpusError(f"{path}: the split {unknown[0]!r} is unknown; the known splits are {', '.join((*SPLITS, *ALIASES))}")
    return splits


BUILDER = WikiWhy
