"""Published corpora, and a user's own files, as rows of the canonical columns: `hfcf.load`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfcf.core.plugins import with_plugins
from hfcf.core.recipe import did_you_mean, resolve_folder

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from hfcf.corpora.base import Corpus

CORPORA = {
    "hover": "hfcf.corpora.hover",
    "fever": "hfcf.corpora.fever",
    "feverous": "hfcf.corpora.feverous",
    "vitaminc": "hfcf.corpora.vitaminc",
    "fm2": "hfcf.corpora.fm2",
    "fever_symmetric": "hfcf.corpora.fever_symmetric",
    "fever_adversarial": "hfcf.corpora.fever_adversarial",
    "ex_fever": "hfcf.corpora.ex_fever",
    "covidfact": "hfcf.corpora.covidfact",
    "wikifactcheck": "hfcf.corpora.wikifactcheck",
    "cad_nli": "hfcf.corpora.cad_nli",
    "disco": "hfcf.corpora.disco",
    "politihop": "hfcf.corpora.politihop",
    "scifact": "hfcf.corpora.scifact",
    "healthver": "hfcf.corpora.healthver",
    "pubhealth": "hfcf.corpora.pubhealth",
    "eraser_fever": "hfcf.corpora.eraser_fever",
    "eraser_multirc": "hfcf.corpora.eraser_multirc",
    "semeval": "hfcf.corpora.semeval",
    "ccg_semeval": "hfcf.corpora.ccg_semeval",
    "re_attack": "hfcf.corpora.re_attack",
    "ace2005": "hfcf.corpora.ace2005",
    "scierc": "hfcf.corpora.scierc",
    "jsonl": "hfcf.corpora.records",
    "csv": "hfcf.corpora.records",
    "parquet": "hfcf.corpora.records",
    "relations": "hfcf.corpora.relation_records",
}
"""Each corpus's module, which has a `BUILDER` and an `INFO`; it is imported when the corpus is first used. Other packages' come by
entry points."""

DataFiles = str | Path | Sequence[str | Path] | Mapping[str, str | Path | Sequence[str | Path]]


def load(
    name: str,
    *,
    data_dir: str | Path | None = None,
    data_files: DataFiles | None = None,
    split: str | None = None,
    role: str | None = None,
    on_error: str = "raise",
    **options: Any,
) -> Dataset | DatasetDict:
    """Rows of a corpus from its original release files, with the canonical columns of its task.

    Args:
        name: one of `names()`. "jsonl", "csv" and "parquet" read a user's own claims, "relations" a user's own sentences.
        data_dir: the folder with the release files under their official names; "recipes:NAME" is one that ships with the recipes.
        data_files: the files themselves, in the place of `data_dir`: one, several, or a mapping split → files.
        split: an official split ("train", "validation" or its alias "dev", "test" …) or a slice like
            "validation[:300]". None: every split that is there, as a `DatasetDict`; blind ones are left out. A corpus with
            samples takes their names, too: `split="10pct"` of "ccg_semeval" is that sample's train split.
        role: "train" says that rows of a dev or test split are used for training; it is recorded in
            `ds.info.description`. It changes no row.
        on_error: "raise", or "reject": what can't be read becomes a row whose `status` says why; the column `status`
            exists in this mode only, and is null on every good row.
        options: the corpus's own, listed in its module's docstring.

    Raises:
        CorpusError: files are missing, or hold something else than expected; the message shows what was found.
    """
    from hfcf.corpora.base import CorpusError, parse_split, prepared

    if role not in (None, "train"):
        raise ValueError(f"role={role!r}: the only role is 'train' (rows of a dev or test split used for training)")
    cls = builder_class(name)
    if data_dir is not None:
        data_dir = resolve_folder(str(data_dir)) or data_dir
    split, options = cls.read_split(split, options)
    wanted, instruction = parse_split(split)
    files, resources = cls.locate(name, data_dir=data_dir, data_files=data_files, options=options)
    if not wanted:
        files = {part: paths for part, paths in files.items() if part not in cls.BLIND} or files
    if missing := [part for part in wanted if part not in files]:
        raise CorpusError(cls.no_split(name, missing[0], files, data_dir))
    ds: Dataset | DatasetDict = prepared(
        cls,
        name,
        files={part: files[part] for part in wanted} if wanted else files,
        resources=resources,
        on_error=on_error,
        options=options,
        code=_code_hash(cls),
    ).as_dataset(split=instruction)
    if role:
        parts = [ds] if not isinstance(ds, dict) else list(ds.values())
        for part in parts:
            official = instruction or ", ".join(files)
            part.info.description += f"\nrole: {role} (rows of the official split {official!r})"
    return ds


def builder_class(name: str) -> type[Corpus]:
    """The builder of a corpus."""
    if (corpora := with_plugins(CORPORA, "hfcf.corpora")).get(name) is None:
        raise ValueError(f"there is no corpus {name!r}; there are {', '.join(corpora)}{did_you_mean(name, corpora)}")
    return import_module(corpora[name]).BUILDER


def names() -> list[str]:
    """The corpora that `load` knows.

    >>> names()[0], "relations" in names()
    ('hover', True)
    """
    return list(with_plugins(CORPORA, "hfcf.corpora"))


def _code_hash(cls: type[Corpus]) -> str:
    # The builder's cache key: rows made by other code are made again. A builder of another package lies elsewhere.
    here = Path(__file__).parent
    shared = [here.parent / "core" / name for name in ("schema.py", "splits.py")]
    sources = [*sorted({*here.rglob("*.py"), Path(getfile(cls)).resolve()}), *shared]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
