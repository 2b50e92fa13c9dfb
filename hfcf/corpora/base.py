"""What the builders share: where files lie, what a bad row is, groups, and the record of what was left out."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import datasets
from datasets.data_files import DataFilesDict, DataFilesList

from hfcf.core.paths import cache_dir
from hfcf.core.schema import STATUS, kind
from hfcf.core.splits import connected
from hfcf.core.task import Task, get_task, problem
from hfcf.corpora.formats.read import BadRow, CorpusError, Record

__all__ = ["BadRow", "Corpus", "CorpusConfig", "CorpusError", "CorpusInfo", "as_text", "need", "text_of", "unbracket"]

log = logging.getLogger(__name__)

Files = dict[str, list[Path]]
"""Files of each official split."""


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus's front matter: what `hfcf list` and the dataset card say about it."""

    name: str
    title: str
    paper: str
    citation: str
    licence: str
    """An SPDX-like id, as Hugging Face's cards want it."""
    splits: dict[str, int]
    """Rows of the official splits."""
    labels: dict[Any, str]
    """The label map: what stands in the files → one of ours."""
    hub_id: str | None = None
    language: str = "en"
    task: str = "verification"
    republish: bool = True
    """Whether its rows, and what is made of them, may be given to others; the card says so where they must not."""


@dataclass
class CorpusConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """Settings that every corpus has; a corpus's own options are fields of a subclass."""

    on_error: str = "raise"
    # What is read beside the split's files (name → path), and its size and time, which make the cache key.
    resources: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error not in ("raise", "reject"):
            raise ValueError(f"on_error={self.on_error!r}: 'raise' or 'reject'")


class Corpus(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """A builder from release files to canonical rows; a corpus fills in `INFO`, `FILES`, `records` and `fill`."""

    BUILDER_CONFIG_CLASS = CorpusConfig
    VERSION = datasets.Version("1.0.0")

    INFO: ClassVar[CorpusInfo]
    FILES: ClassVar[Sequence[tuple[str, str]]]
    """(split, file name inside data_dir), each official name that the files may have."""
    ONE_FORM: ClassVar[bool] = False
    """Whether a split's files are forms or places of the same rows: the first that is there is read, lest a split be read twice."""
    EXTRA: ClassVar[dict[str, Any]] = {}
    """Columns beside the canonical ones."""
    OPTIONS: ClassVar[dict[str, str]] = {}
    """Options of `load` that are this corpus's own: name → what it is for. One that ends in `_dir` is a folder."""
    BLIND: ClassVar[Sequence[str]] = ()
    """Splits that have no labels and are left out unless they are asked for."""

    # --- to be filled in by a corpus

    def records(self, path: Path) -> Iterator[Record]:
        """The records of one file, each with its place in the file."""
        raise NotImplementedError

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        """Write the record's values into `row`: its task's columns (id, claim, evidence, label …), and group_id or `keys`.

        `keys` are what makes rows one group where the corpus names none: rows that share one belong together.
        Raises `BadRow` for a value that it can't read; what was written before stays.
        """
        raise NotImplementedError

    def start(self, files: Sequence[Path]) -> None:
        """Called before the first record of a split, to open what its rows are joined with."""

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        """The split files that are there, of the corpus that is called `name`."""
        found: Files = {}
        for split, file in cls.FILES:
            if (data_dir / file).is_file():
                found.setdefault(split, []).append(data_dir / file)
        return {split: paths[:1] for split, paths in found.items()} if cls.ONE_FORM else found

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        """What is read beside the split files, where it is there."""
        return {}

    @classmethod
    def read_split(cls, split: str | None, options: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The split and the options that are meant, where a corpus has samples that are written in a split's place."""
        return split, dict(options)

    # --- the same for every corpus

    @classmethod
    def task(cls) -> Task:
        """The task of its rows."""
        return get_task(cls.INFO.task)

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """The files of each split and what is read beside them."""
        if unknown := sorted(set(options) - set(cls.OPTIONS)):
            known = ", ".join(cls.OPTIONS) or "none"
            raise TypeError(f"{name} has no option {unknown[0]!r}; its options: {known}")
        if (data_dir is None) == (data_files is None):
            raise CorpusError(f"{name}: say where its files lie, with data_dir= or data_files= (one of them)")
        if data_files is not None:
            files = cls.given(name, data_files)
            folder = next(iter(files.values()))[0].parent
        else:
            folder = Path(data_dir).expanduser()
            if not folder.is_dir():
                raise CorpusError(f"{name}: there is no folder {folder}")
            files = cls.find(folder, name)
            if not files:
                raise CorpusError(cls.no_split(name, None, files, folder))
        return files, cls.find_resources(folder, options)

    @classmethod
    def given(cls, name: str, data_files: Any) -> Files:
        """The files that the user named, by split; the split of an official name is known."""
        files: Files = {}
        if isinstance(data_files, Mapping):
            files.update({_ALIASES.get(str(split), str(split)): _paths(value) for split, value in data_files.items()})
        else:
            for path in _paths(data_files):
                split = cls.split_of(path)
                if split is None:
                    raise CorpusError(f"{name}: {path.name} is no official file name; say data_files={{split: path}}")
                files.setdefault(split, []).append(path)
        if absent := [path for paths in files.values() for path in paths if not path.is_file()]:
            raise CorpusError(f"{name}: there is no file {absent[0]}")
        if not any(files.values()):
            raise CorpusError(f"{name}: data_files names no file")
        return files

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        """The official split of a file, or None where its name says none."""
        return next((split for split, file in cls.FILES if Path(file).name == path.name), None)

    @classmethod
    def no_split(cls, name: str, split: str | None, files: Files, folder: Any) -> str:
        """The message when a split, or every split, has no file."""
        looked = [file for part, file in cls.FILES if split in (None, part)]
        where = f" in {folder}" if folder else ""
        what = f"no file of the split {split!r}" if split else "none of its files"
        text = f"{name}: {what}{where}; looked for {', '.join(looked) or 'nothing: it has no such split'}"
        if files:
            there = [f"{part} ({', '.join(path.name for path in paths)})" for part, paths in files.items()]
            text += f"; there is {', '.join(there)}"
            if split == "train":
                text += f". To train on rows of another split, say so: split={next(iter(files))!r}, role='train'"
        elif folder:
            names = sorted(path.name for path in Path(folder).iterdir())
            text += f"; found {', '.join(names[:20]) or 'an empty folder'}{' …' if len(names) > 20 else ''}"
        return text

    def _info(self) -> datasets.DatasetInfo:
        status = {"status": STATUS} if self.config.on_error == "reject" else {}
        return datasets.DatasetInfo(
            description=self.INFO.title,
            features=datasets.Features({**self.task().features, **self.EXTRA, **status}),
            citation=self.INFO.citation,
            license=self.INFO.licence,
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [
            datasets.SplitGenerator(name=str(split), gen_kwargs={"files": list(files), "split": str(split)})
            for split, files in self.config.data_files.items()
        ]

    def _generate_examples(self, files: list[str], split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        paths = [Path(file) for file in files]
        self.left_out: dict[str, int] = {}
        self.start(paths)
        rows = self._grouped(self._rows(paths))
        for i, row in enumerate(rows):
            yield i, {**row, "corpus": self.config.name, "split": split}
        for why, count in self.left_out.items():
            log.warning("%s, %s: %s %s", self.config.name, split, f"{count:,}", why)
            self.info.description += f"\n{split}: {count:,} {why}"

    def _rows(self, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
        seen: dict[str, str] = {}
        n = 0
        for path in paths:
            for record in self.records(path):
                n += 1
                row: dict[str, Any] = {**deepcopy(dict(self.task().empty_row)), "id": None, **dict.fromkeys(self.EXTRA)}
                why = self._read(row, record)
                if row.pop("skip", False):
                    continue
                unnamed = row["id"] is None or not str(row["id"]).strip()
                if unnamed:
                    row["id"] = f"{record.kind}-{record.number}" if record.unreadable else f"row-{n}"
                row["id"] = str(as_text(row["id"]))
                if first := seen.get(row["id"]):
                    why = why or f"the id {row['id']!r} was used before, at {first}"
                if why and self.config.on_error == "raise":
                    raise CorpusError(f"{path}, {record.place} (id {row['id']!r}): {why}")
                if first:
                    row["id"] = _fresh(row["id"], seen)
                seen[row["id"]] = record.place
                if self.config.on_error == "reject":
                    row["status"] = {"accepted": False, "stage": "load", "reason": as_text(why)} if why else None
                row = _storable(row, self.task())
                # A made-up number is another row's in another file: what the row holds names its group.
                yield {**row, "own": _content(row, self.task()) if unnamed and not record.unreadable else row["id"]}

    def _read(self, row: dict[str, Any], record: Record) -> str | None:
        if record.unreadable:
            return record.unreadable
        try:
            self.fill(row, record.value)
        except BadRow as error:
            return str(error)
        # Whether a text that can be read is fit to work on is for the stages to say, unless everything is to be checked here.
        return _unreadable(row, self.task()) or (problem(row) if self.config.on_error == "reject" else None)

    def _grouped(self, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Rows with their `group_id`: named by the corpus, or from `keys` in common (then all rows are held), or their own."""
        first = next(rows, None)
        if first is None:
            return
        if not self.groups_by_keys():
            for row in _chain(first, rows):
                row.pop("keys", None)
                own = row.pop("own")
                yield {**row, "group_id": as_text(row.get("group_id")) or own}
            return
        held = list(_chain(first, rows))
        own = [row.pop("own") for row in held]
        # A rejected row ties no others together: the good rows come out as they do without it.
        firsts = connected([] if row.get("status") else row.get("keys", []) for row in held)
        names: dict[int, str] = {}
        for i, row in zip(firsts, held, strict=True):
            if row.get("group_id") and i not in names:
                names[i] = row["group_id"]
        for i, row in zip(firsts, held, strict=True):
            row.pop("keys", None)
            yield {**row, "group_id": names.get(i, own[i])}

    def groups_by_keys(self) -> bool:
        """Whether `fill` writes `keys`, so that groups are known only at the end."""
        return False

    # --- for `fill`

    def label(self, raw: Any) -> str:
        """Our label for the file's; an unknown one is an error."""
        if isinstance(raw, str) and raw in self.INFO.labels:
            return self.INFO.labels[raw]
        known = ", ".join(repr(label) for label in self.INFO.labels)
        shown = "null" if raw is None else repr(raw)
        raise BadRow(f"the label {shown} is unknown; the known ones are {known}")

    def leave_out(self, row: dict[str, Any], why: str) -> None:
        """Leave this row out, and count it under `why`."""
        row["skip"] = True
        self.left_out[why] = self.left_out.get(why, 0) + 1


def need(record: Mapping[str, Any], *fields: str) -> None:
    """Raise `BadRow` unless the record has these fields; the message has what was found and what was expected."""
    if missing := [name for name in fields if name not in record]:
        raise BadRow(
            f"the field {missing[0]!r} is missing: found {', '.join(map(repr, record)) or 'no fields'}; "
            f"expected {', '.join(map(repr, fields))}"
        )


def text_of(record: Mapping[str, Any], name: str) -> str:
    """A field that must be text."""
    if not isinstance(record[name], str):
        raise BadRow(f"the field {name!r} is {kind(record[name])}, not text")
    return str(record[name])


def as_text(value: Any) -> str | None:
    r"""A value as text that Arrow can hold: lone surrogates escaped, what is no text as JSON, null as null.

    >>> as_text("a\ud800"), as_text(3), as_text(None)
    ('a\\ud800', '3', None)
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def unbracket(text: str) -> str:
    """Brackets that FEVER's tokeniser wrote as names; everything else of the tokenised text stays as it is.

    >>> unbracket("Rome -LRB- Italy -RRB- is `` old '' .")
    "Rome ( Italy ) is `` old '' ."
    """
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return text


BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""The Penn Treebank's names of brackets."""
_ALIASES = {"dev": "validation", "valid": "validation", "val": "validation"}
_PART = re.compile(r"\s*(\w+)(\[[^\]]*\])?(\([^)]*\))?\s*")


def parse_split(split: str | None) -> tuple[list[str], str | None]:
    """The names in a split instruction, and the instruction with its aliases resolved.

    >>> parse_split("dev[:300]+train")
    (['validation', 'train'], 'validation[:300]+train')
    """
    if split is None:
        return [], None
    names, parts = [], []
    for part in str(split).split("+"):
        found = _PART.fullmatch(part)
        if not found:
            raise ValueError(f"split={split!r} is no split name or slice such as 'validation[:300]'")
        names.append(_ALIASES.get(found[1], found[1]))
        parts.append(names[-1] + (found[2] or "") + (found[3] or ""))
    return names, "+".join(parts)


def prepared(
    cls: type[Corpus],
    name: str,
    *,
    files: Files,
    resources: Mapping[str, Path],
    on_error: str,
    options: Mapping[str, Any],
    code: str,
) -> Corpus:
    """The builder with its rows made; they are made again when a file, an option or the code has changed."""
    # Explicit files with a hash of their contents: with patterns or data_dir= the builder's cache gave stale rows.
    data_files = DataFilesDict(
        {
            split: DataFilesList([str(path.resolve()) for path in paths], [(_sha256(path),) for path in paths])
            for split, paths in files.items()
        }
    )
    kept = {field.name for field in dataclasses.fields(cls.BUILDER_CONFIG_CLASS)}
    builder = cls(
        cache_dir=str(cache_dir() / "corpora"),
        dataset_name=f"hfcf_{name}",
        config_name=name,
        hash=code,
        data_files=data_files,
        on_error=on_error,
        resources={key: str(path.resolve()) for key, path in resources.items()},
        stamps={key: _stamp(path) for key, path in resources.items()},
        **{key: value for key, value in options.items() if key in kept},
    )
    try:
        builder.download_and_prepare()
    except datasets.exceptions.DatasetGenerationError as error:
        # Its own message says only that something went wrong.
        if isinstance(error.__cause__, CorpusError):
            raise error.__cause__ from None
        raise
    return builder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    # These can be gigabytes: their size and time stand for their contents.
    stats = [item.stat() for item in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return sum(stat.st_size for stat in stats), max((stat.st_mtime_ns for stat in stats), default=0)


def _paths(value: Any) -> list[Path]:
    # Not isinstance(…, Path): `datasets` replaces that name in a builder's module when one is made.
    values = [value] if isinstance(value, str | PathLike) else list(value)
    return [Path(path).expanduser() for path in values]


def _fresh(name: str, seen: Mapping[str, Any]) -> str:
    n = 2
    while f"{name}#{n}" in seen:
        n += 1
    return f"{name}#{n}"


def _chain(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest


def _storable(row: dict[str, Any], task: Task) -> dict[str, Any]:
    """The row with its task's texts as Arrow can hold them."""
    features = {name: task.features[name] for name in (*task.columns, "label") if name in task.features}
    return {**row, **{name: _texts(row[name], feature) for name, feature in features.items()}}


def _texts(value: Any, feature: Any) -> Any:
    """A value of a column with each of its texts as `as_text` gives it."""
    if isinstance(feature, dict):
        return value if value is None else {key: _texts(value.get(key), part) for key, part in feature.items()}
    if isinstance(feature, datasets.Value):
        return as_text(value) if feature.dtype == "string" else value
    return value if value is None else [_texts(item, feature.feature) for item in value]


def _content(row: Mapping[str, Any], task: Task) -> str:
    """A name for the texts of a storable row, the same in every file."""
    text = json.dumps([row[name] for name in task.columns], ensure_ascii=False)
    return f"row-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _unreadable(row: Mapping[str, Any], task: Task) -> str | None:
    """Why a row can't be stored as it is."""
    for what, text in task.named_texts(row):
        if not isinstance(text, str):
            return f"{what} is {kind(text)}{'' if text is None else ', not text'}"
        if as_text(text) != text:
            return f"{what} holds half of a surrogate pair: the file's encoding is broken"
    return None
