"""Counterfactuals that occur twice in a set, or that are in an evaluation set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from datasets import Dataset
from pydantic import Field

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.recipe import RecipeError
from hfcf.core.splits import own_columns
from hfcf.core.stage import Reject
from hfcf.core.task import Task, task_of
from hfcf.metrics.shared.metric import TEXT, metric
from hfcf.metrics.shared.texts import changed, read_rows
from hfcf.text.normalise import dedup_key

_KINDS = ("repeat", "near", "leak", "near_leak")
_WIDTH, _PERMUTATIONS = 5, 128


def jaccard(text: str | None, other: str | None) -> float:
    """Divide the runs of five characters that two texts share by all of theirs, 0–1; see `hfcf.text.normalise.dedup_key`."""
    ours, theirs = _shingles(text), _shingles(other)
    return round(len(ours & theirs) / len(ours | theirs), 5) if ours | theirs else 0.0


def _shingles(text: str | None) -> set[str]:
    characters = dedup_key(text)
    return {characters[i : i + _WIDTH] for i in range(max(1, len(characters) - _WIDTH + 1))} if characters else set()


class Near:
    """An index of texts by MinHash: `find` returns a text that is near a given text.

    MinHash proposes and `jaccard` decides, so every result is near. A few pairs just above the threshold are missed, because
    MinHash is set to propose too many pairs rather than too few.

    Args:
        threshold: the minimum `jaccard` of near texts.
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHash, MinHashLSH

        self.threshold, self._texts = threshold, dict[str, str | None]()
        self._empty = MinHash(num_perm=_PERMUTATIONS, seed=1)
        # Above 0.95 its bands become too few to propose anything.
        self._index = MinHashLSH(threshold=min(threshold, 0.95), num_perm=_PERMUTATIONS, weights=(0.1, 0.9))

    def add(self, name: str, text: str | None) -> None:
        """Add a text; a known name keeps its text."""
        if name not in self._texts and (signature := self._signature(text)) is not None:
            self._texts[name] = text
            self._index.insert(name, signature)

    def find(self, text: str | None) -> str | None:
        """Find the nearest near text, by name in a tie; None if there is none."""
        if (signature := self._signature(text)) is None:
            return None
        best = min(((-jaccard(text, self._texts[name]), name) for name in self._index.query(signature)), default=None)
        return best[1] if best and -best[0] >= self.threshold else None

    def _signature(self, text: str | None) -> Any:
        if not (shingles := _shingles(text)):
            return None
        signature = self._empty.copy()
        signature.update_batch([shingle.encode() for shingle in sorted(shingles)])
        return signature


def duplicates(ds: Any, against: Mapping[str, Dataset] | None = None, threshold: float = 0.8) -> dict[str, dict[str, str]]:
    """Find what each row of an expanded set repeats.

    Args:
        ds: the set; an earlier row is never a duplicate of a later row.
        against: {name: rows of the same task}: the evaluation sets.
        threshold: the minimum `jaccard` of near texts.

    Returns:
        {id: what it repeats}, for the rows that repeat something. "repeat" is the id of an earlier row with equal texts, including
        titles. "near" is set if "repeat" is not. It is the id of the nearest earlier row in which the same field was changed to
        nearly the same text. Rows with a "repeat" or "near" of their own are not considered. "leak" is "NAME: ID" of an evaluation
        row with its claim, its whole evidence or its sentence. "near_leak" is set if "leak" is not: it names an evaluation row with
        nearly its claim or sentence. Texts are equal if `dedup_key` makes them equal. Rows whose edits do not fit their texts are
        left out.
    """
    task = task_of(ds.column_names)
    known = {
        name: ((row["id"], _keys(task, row), _main(task, row)) for row in rows.select_columns(["id", *own_columns(task, rows)]))
        for name, rows in (against or {}).items()
    }
    return _repeats(_texts(ds, task), known, threshold)


def _texts(ds: Dataset, task: Task) -> Iterator[_Text]:
    for row in iterate(ds, [*task.columns, "edits", "id", "change"]):
        try:
            after = changed(row)[1]
        except Reject:
            continue
        titles = [dedup_key(segment.text) for segment in task.segments(row) if segment.is_title]
        yield _Text(row["id"], row["change"], _keys(task, row), titles, _main(task, row), after)


class _Text(NamedTuple):
    """What is compared in a row: keys that a further row may share, titles, main text, and the changed text."""

    id: str
    change: str
    keys: list[tuple[str, str]]
    titles: list[str]
    main: str
    after: str


def _repeats(
    texts: Iterable[_Text], against: Mapping[str, Iterable[tuple[str, list[tuple[str, str]], str]]], threshold: float
) -> dict[str, dict[str, str]]:
    repeats: dict[str, dict[str, str]] = {}
    known: dict[tuple[str, str], str] = {}
    near_known = Near(threshold)
    for name, rows in against.items():
        for row_id, keys, main in rows:
            for key in filter(lambda key: key[1], keys):
                known.setdefault(key, f"{name}: {row_id}")
            near_known.add(f"{name}: {row_id}", main)
    first_of: dict[bytes, str] = {}  # by hashes: the texts take as much memory as the rows
    near: dict[str, Near] = {}
    for text in texts:
        kinds: dict[str, str] = {}
        if text.change not in near:
            near[text.change] = Near(threshold)
        if (first := first_of.setdefault(_hash(text), text.id)) != text.id:
            kinds["repeat"] = first
        elif close := near[text.change].find(text.after):
            kinds["near"] = close
        else:  # one of a kind is enough: of a thousand like rows, each is compared with the first
            near[text.change].add(text.id, text.after)
        if leak := next((known[key] for key in text.keys if key in known), None):
            kinds["leak"] = leak
        elif against and (close := near_known.find(text.main)):
            kinds["near_leak"] = close
        if kinds:
            repeats[text.id] = kinds
    return repeats


def _hash(text: _Text) -> bytes:
    return hashlib.blake2b(json.dumps([text.keys, text.titles]).encode(), digest_size=16).digest()


def _main(task: Task, row: Mapping[str, Any]) -> str:
    """Return the text that identifies a row: its claim or its sentence."""
    return task.segments(row)[0].text


def _keys(task: Task, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the texts by which two rows are compared."""
    return [(kind, dedup_key(text)) for kind, text in task.identity(row)]


def _evaluation_sets(against: Mapping[str, Any] | None) -> dict[str, Dataset]:
    return {name: load_evaluation_set(source) for name, source in (against or {}).items()}


def _check(task: str, *, threshold: float, against: Any) -> None:
    """Raise where an evaluation set can't be read, or has rows of another task."""
    if not isinstance(against, Mapping | None):
        raise ValueError(f"against must be a mapping of names to sets, such as {{dev: {{corpus: hover, …}}}}, got {against!r}")
    for name, rows in _evaluation_sets(against).items():
        if (found := task_of(rows.column_names).name) != task:
            raise RecipeError(f"metrics: duplicates: against: {name} has {found} rows, and {task} rows are measured")


def _learn(rows: Dataset, *, threshold: float, against: Any) -> dict[str, dict[str, str]]:
    """Compare the rows of the set with each other, and with the evaluation sets."""
    return duplicates(rows, _evaluation_sets(against), threshold)


def _over_lists(
    predictions: Sequence[str], references: Any = None, against: Sequence[str] = (), threshold: float = 0.8
) -> dict[str, Any]:
    """Return the share (0–1) of texts that repeat an earlier text or a text of `against`; None without texts."""
    if not predictions:
        return dict.fromkeys(_KINDS)
    texts = [_Text(str(i), "", [("text", dedup_key(text))], [], text, text) for i, text in enumerate(predictions)]
    known = {"against": ((str(i), [("text", dedup_key(text))], text) for i, text in enumerate(against))} if against else {}
    repeats = _repeats(texts, known, threshold).values()
    return {kind: sum(kind in kinds for kinds in repeats) / len(texts) for kind in _KINDS}


@metric(
    {**dict.fromkeys(_KINDS, schema.BOOL), "of": schema.TEXT},
    better="less",
    citation="Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2",
    lists={"predictions": TEXT},
    learn=_learn,
    learns_from=("id", "change"),
    check=_check,
    over_lists=_over_lists,
    of_candidates=False,
)
def measure_duplicates(
    rows: Dataset,
    *,
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.8,
    against: Any = None,
    learned: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Any]:
    """Find counterfactuals that repeat an earlier counterfactual, or that are in an evaluation set, exactly or nearly.

    Input columns: the task's texts, `edits`, `id`, `change`. Output column: `duplicates`, `{repeat, near, leak,
    near_leak, of}`. The first four are verdicts that `duplicates` explains; `of` is the row that is repeated, the evaluation set's
    first. For questions, `repeat` means the question and the passage of an earlier row. `near` compares only questions, and `leak`
    means the question or the passage of an evaluation row.

    As an `evaluate.Metric`: `predictions` are texts, and `against`, if given, are texts of an evaluation set.

    Source: Lee et al. 2022: near duplicates by MinHash. Deviation: runs of five characters instead of five words, because a claim
        has few words.

    Args:
        rows: of an expanded set.
        threshold: the minimum share of runs of characters that near texts have in common; above 0, up to 1.
        against: evaluation sets in which to look for leaks: {name: rows, or a corpus as recipes name it}.
        learned: what each id repeats; by default these rows are the whole set.
    """
    repeats = _learn(rows, threshold=threshold, against=against) if learned is None else learned
    read = read_rows(rows, changed)
    verdicts = (_verdict(repeats.get(row_id, {})) for row_id in rows["id"])
    return [pair if isinstance(pair, Reject) else verdict for pair, verdict in zip(read, verdicts, strict=True)]


def load_evaluation_set(source: Any) -> Dataset:
    """Load the rows of an evaluation set: rows as given, or a corpus as recipes name it.

    Raises:
        RecipeError: the corpus is unknown, or its files do not exist.
    """
    if isinstance(source, Dataset):
        return source
    where = "metrics: duplicates: against"
    if not isinstance(source, Mapping) or "corpus" not in source:
        raise RecipeError(f"{where}: a set must be rows, or a mapping with a corpus, such as {{corpus: hover, data_dir: …}}")
    recipes.check_keys(source, ("corpus", "data_dir", "data_files", "split", "on_error", "options"), where)
    files = {key: source[key] for key in ("data_dir", "data_files", "on_error") if key in source}
    try:
        return corpora.load(source["corpus"], split=str(source.get("split") or "validation"), **files, **source.get("options", {}))
    except (TypeError, ValueError, OSError) as error:  # the first: an option that the corpus does not have
        raise RecipeError(f"{where}: {error}") from error


def _verdict(kinds: Mapping[str, str]) -> dict[str, Any]:
    of = next((kinds[kind] for kind in ("leak", "near_leak", "repeat", "near") if kind in kinds), None)
    return {**{kind: kind in kinds for kind in _KINDS}, "of": of}
