"""Read the RTE form with text: evidence, claim and label line by line in `<split>.raw.input0`, `.raw.input1` and `.label`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hfcf.corpora.formats.read import CorpusError, Record, lines
from hfcf.tasks.verification import REFUTES, SUPPORTS

LABELS = {"entailment": SUPPORTS, "not_entailment": REFUTES}
"""Of files with SUPPORTS and REFUTES rows only."""


def _companions(claims: Path) -> list[Path]:
    """List the files of evidence and labels that belong to a file of claims."""
    return [claims.with_name(claims.name.replace(".raw.input1", suffix)) for suffix in (".raw.input0", ".label")]


def rte_resources(data_dir: Path, files: Iterable[tuple[str, str]]) -> dict[str, Path]:
    """Return the existing files of evidence and labels beside these (split, file of claims), by their path in the folder."""
    others = [other for _, file in files for other in _companions(data_dir / file)]
    return {other.relative_to(data_dir).as_posix(): other for other in others if other.is_file()}


def rte_lines(path: Path) -> Iterator[Record]:
    """Yield records with `id`, `claim`, `text` and `label`."""
    if absent := [other for other in _companions(path) if not other.is_file()]:
        raise CorpusError(f"{path}: there is no {absent[0].name} beside it; the RTE form is three files")
    claims, evidence, labels = lines(path), *(lines(other) for other in _companions(path))
    if not len(claims) == len(evidence) == len(labels):
        raise CorpusError(
            f"{path}: the three files of the RTE form are not parallel: "
            f"{len(claims)} claims, {len(evidence)} evidence texts, {len(labels)} labels"
        )
    for i, (claim, text, label) in enumerate(zip(claims, evidence, labels, strict=True), 1):
        name = f"{path.name.partition('.')[0]}-{i}"
        yield Record("line", i, {"id": name, "claim": claim, "text": text, "label": label.strip()})
