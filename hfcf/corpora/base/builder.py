"""Build canonical rows from release files: locate the files, check rows, name groups and count what is left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets

from hfcf.core.names import did_you_mean, unused_name
from hfcf.core.schema import STATUS
from hfcf.core.splits import connected
from hfcf.core.task import Task, find_problem, get_task
from hfcf.corpora.base.files import Files, assign_splits, check_place
from hfcf.corpora.base.info import CorpusConfig, CorpusInfo
from hfcf.corpora.base.rows import RowBuilder, content_name
from hfcf.corpora.base.values import as_text
from hfcf.corpora.formats.read import BadRow, CorpusError, Record, json_lines

log = logging.getLogger(__name__)


class Corpus(datasets.GeneratorBasedBuilder):  # type: ignore[misc]
    """Build canonical rows from release files; a corpus defines `INFO`, `FILES` and `fill`."""

    BUILDER_CONFIG_CLASS = CorpusConfig
    VERSION = datasets.Version("1.0.0")

    INFO: ClassVar[CorpusInfo]
    FILES: ClassVar[Sequence[tuple[str, str]]]
    """(split, path inside data_dir) of every official name that a file may have."""
    ONE_FORM: ClassVar[bool] = False
    """Whether the files of a split have the same rows in different forms or places. Then only the first existing file is read."""
    EXTRA: ClassVar[dict[str, Any]] = {}
    """The columns besides the canonical columns."""
    OPTIONS: ClassVar[dict[str, str]] = {}
    """Options of `load` for this corpus: name → purpose. An option whose name ends in `_dir` is a folder."""
    WAYS: ClassVar[Mapping[int, Mapping[str, Any]]] = {}
    """The options that select the rows of so many labels, for a corpus that has them in different files."""
    split: str
    """The split whose rows are being read, for a corpus whose files have several."""
    ID: ClassVar[str] = "id"
    """The field with the id, which a record that can't be read keeps."""
    BLIND: ClassVar[Sequence[str]] = ()
    """Splits without labels, which are loaded only by name."""
    GROUPS_BY_KEYS: ClassVar[bool] = False
    """Whether `fill` writes `keys`. Then groups are complete only after the last row."""

    # --- defined by a corpus

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the records of a file, each with its place in it; by default its JSON lines."""
        return json_lines(path)

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        """Write the record's values into `row`: its task's columns (id, claim, evidence, label …), and group_id or `keys`.

        `keys` define the groups of a corpus without group names: rows that share a key are one group.
        Raise `BadRow` for a value that can't be read; values that were already written stay in the row.
        """
        raise NotImplementedError

    def check(self, row: Mapping[str, Any]) -> str | None:
        """Return why a row can't be worked on, for `on_error="reject"`, or None; by default its task decides."""
        return find_problem(row)

    def start(self, files: Sequence[Path]) -> None:
        """Open further files that the rows need; called before the first record of a split."""

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        """Return the existing files of each split, of the corpus that the user calls `name`."""
        files: Files = {}
        for split, file in cls.FILES:
            if (data_dir / file).is_file():
                files.setdefault(split, []).append(data_dir / file)
        return {split: paths[:1] for split, paths in files.items()} if cls.ONE_FORM else files

    @classmethod
    def find_resources(cls, data_dir: Path, options: Mapping[str, Any]) -> dict[str, Path]:
        """Return further existing files and folders that the rows need, by name."""
        return {}

    @classmethod
    def read_split(cls, split: str | None, options: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Return the split and the options; a corpus with samples accepts a sample's name as `split`."""
        return split, dict(options)

    # --- common to all corpora

    @classmethod
    def task(cls) -> Task:
        """Return the task of the corpus's rows."""
        return get_task(cls.INFO.task)

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, and the further files that the rows need."""
        if unknown := sorted(set(options) - set(cls.OPTIONS)):
            near = did_you_mean(unknown[0], [*cls.OPTIONS, "data_dir", "data_files", "split", "role", "on_error"])
            raise TypeError(f"{name} has no option {unknown[0]!r}{near}; its options: {', '.join(cls.OPTIONS) or 'none'}")
        check_place(name, data_dir, data_files)
        if data_files is not None:
            files = assign_splits(name, data_files, cls.split_of)
            folder = next(iter(files.values()))[0].parent
        else:
            folder = Path(data_dir).expanduser()
            if not folder.is_dir():
                raise CorpusError(f"{name}: there is no folder {folder}{cls.how_to_get(name)}")
            if not (files := cls.find(folder, name)):
                raise CorpusError(cls.no_split(name, None, files, folder))
        return files, cls.find_resources(folder, options)

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        """Return the official split of a file name, or None."""
        return next((split for split, file in cls.FILES if Path(file).name == path.name), None)

    @classmethod
    def how_to_get(cls, name: str) -> str:
        """Return where to get the release, for an error message; "" for a user's own files."""
        if not cls.INFO.paper:
            return ""
        start = f"Get it from {cls.INFO.release} and give" if cls.INFO.release else "Give"
        page = f"; docs/reference/corpora.md#{name}" if cls.__module__.startswith("hfcf.corpora.") else ""
        return f". {start} its folder as data_dir= (--set data_dir=…{page})"

    @classmethod
    def no_split(cls, name: str, split: str | None, files: Files, folder: Any) -> str:
        """Write the error message for a split without files, or for a folder without any (`split=None`)."""
        expected = [file for part, file in cls.FILES if split in (None, part)]
        where = f" in {folder}" if folder else ""
        what = f"no file of the split {split!r}" if split else "none of its files"
        looked = f"; looked for {', '.join(expected) or 'nothing: it has no such split'}" if cls.FILES else ""
        text = f"{name}: {what}{where}{looked}"
        if files:
            existing = [f"{part} ({', '.join(path.name for path in paths)})" for part, paths in files.items()]
            text += f"; there is {', '.join(existing)}"
            if split == "train":
                text += f". To train on rows of another split, write split={next(iter(files))!r}, role='train'"
                text += f" (--set split={next(iter(files))} --set role=train)"
        elif folder:
            names = sorted(path.name for path in Path(folder).iterdir())
            text += f"; found {', '.join(names[:20]) or 'an empty folder'}{' …' if len(names) > 20 else ''}{cls.how_to_get(name)}"
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
        self.split = split
        self.notes: dict[str, int] = {}
        self.start(paths)
        for i, row in enumerate(self._grouped(self._rows(paths))):
            yield i, {**row, "corpus": self.config.name, "split": split}
        for why, n in self.notes.items():
            log.warning("%s, %s: %s %s", self.config.name, split, f"{n:,}", why)
            self.info.description += f"\n{split}: {n:,} {why}"

    def _rows(self, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
        task, reject = self.task(), self.config.on_error == "reject"
        # Usually stages check whether a row can be worked on; with on_error="reject" the loader does.
        builder = RowBuilder(task, self.EXTRA, self.fill, check=self.check if reject else None, reject=reject)
        places: dict[str, str] = {}  # of each id
        records = ((path, record) for path in paths for record in self.records(path))
        for n, (path, record) in enumerate(records, 1):
            row, why = builder.read(record)
            if row.pop("skip", False):
                continue
            if why and row["id"] is None:
                row["id"] = record.value.get(self.ID)
            unnamed = row["id"] is None or not str(row["id"]).strip()
            if unnamed:
                row["id"] = f"{record.kind}-{record.number}" if record.unreadable else f"row-{n}"
            row["id"] = str(as_text(row["id"]))
            if first := places.get(row["id"]):
                why = why or f"the id {row['id']!r} was used before, at {first}"
            if why and not reject:
                raise CorpusError(f"{path}, {record.place} (id {row['id']!r}): {why}")
            if first:
                row["id"] = unused_name(row["id"], places)
            places[row["id"]] = record.place
            row = builder.stored(row, why)
            # A row of another file may have the same assigned number, so the contents name the group.
            yield {**row, "own": content_name(row, task) if unnamed and not record.unreadable else row["id"]}

    def _grouped(self, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Add `group_id`: the corpus's own, or one for rows that share `keys` (all rows are then in memory), or the row's id."""
        if not self.GROUPS_BY_KEYS:
            for row in rows:
                row.pop("keys", None)
                own = row.pop("own")
                yield {**row, "group_id": as_text(row.get("group_id")) or own}
            return
        every = list(rows)
        own = [row.pop("own") for row in every]
        # A rejected row joins no group, so that good rows have the same groups without it.
        firsts = connected([] if row.get("status") else row.get("keys", []) for row in every)
        names: dict[int, str] = {}
        for i, row in zip(firsts, every, strict=True):
            if row.get("group_id"):
                names.setdefault(i, row["group_id"])
        for i, row in zip(firsts, every, strict=True):
            row.pop("keys", None)
            yield {**row, "group_id": names.get(i, own[i])}

    # --- used by `fill`

    def label(self, raw: Any) -> str:
        """Map a label of the file to the canonical label; raise `BadRow` for an unknown label."""
        if isinstance(raw, str) and raw in self.INFO.labels:
            return self.INFO.labels[raw]
        allowed = ", ".join(repr(label) for label in self.INFO.labels)
        raise BadRow(f"the label {'null' if raw is None else repr(raw)} is unknown; the known labels are {allowed}")

    def leave_out(self, row: dict[str, Any], why: str) -> None:
        """Omit this row and count it under `why`. The log and the dataset card report the counts."""
        row["skip"] = True
        self.note(why)

    def note(self, why: str) -> None:
        """Count a change of a row under `why`, a phrase that follows a number, as in "rows were left out"."""
        self.notes[why] = self.notes.get(why, 0) + 1
