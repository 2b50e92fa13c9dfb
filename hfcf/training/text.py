"""Plain sentences to train a language model on: of corpora's claims and evidence, and of WordNet's glosses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from datasets import Dataset

from hfcf.corpora.formats.wikipedia import split_sentences
from hfcf.text.normalise import normalise

_EXAMPLE = re.compile(r'"([^"]+)"?')


def collect(
    training: Dataset, held: Dataset, excluded: Sequence[Dataset], *, wordnet: bool, held_out: float, seed: int
) -> tuple[list[str], dict[str, list[str]], int]:
    """Collect sentences to train on, and of each kind those that are held out.

    Args:
        training: verification rows.
        held: rows that are held out.
        excluded: rows none of whose sentences, and no whole text, may be trained on or scored.
        wordnet: read WordNet's glosses too, of which the text itself says whether it is held out.
        held_out: share of the glosses.
        seed: which.

    Returns:
        The sentences to train on; those held out, none of which is trained on, as "corpora" and "WordNet"; and how many
        sentences to train on were dropped because of `excluded`.
    """
    from hfcf.core import offline

    used = {normalise(text) for rows in excluded for text in (*_texts(rows), *sentences(rows))}
    parts: dict[bool, list[str]] = {True: [], False: []}
    for text in glosses(offline.folder("wordnet") / "corpora" / "wordnet") if wordnet else ():
        parts[is_held_out(text, held_out, seed)].append(text)
    candidates = unique([*sentences(training), *parts[False]])
    texts = unique(candidates, used)
    used |= {normalise(text) for text in texts}
    sets = {"corpora": unique(sentences(held), used)}
    if wordnet:
        sets["WordNet"] = unique(parts[True], used)
    return texts, sets, len(candidates) - len(texts)


def sentences(rows: Dataset) -> Iterator[str]:
    """Yield every sentence of the rows' claims and evidence; titles are none."""
    for text in dict.fromkeys(_texts(rows)):
        yield from split_sentences(_plain(text))


def glosses(folder: Path) -> Iterator[str]:
    """Yield every definition and example of WordNet from its folder."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith("  "):  # the licence
                yield from gloss_parts(line.partition(" | ")[2])


def gloss_parts(gloss: str) -> list[str]:
    definition, quote, examples = gloss.partition('"')
    parts = [definition.strip(" ;"), *_EXAMPLE.findall(quote + examples)]
    return [text for part in parts if (text := _plain(part))]


def unique(texts: Iterable[str], without: Collection[str] = (), words: int = 3) -> list[str]:
    """Select texts of at least `words` words that differ in letters and digits and are not in `without` (normalised)."""
    by_key: dict[str, str] = {}
    for text in texts:
        if (key := normalise(text)) not in without and len(text.split()) >= words:
            by_key.setdefault(key, text)
    return list(by_key.values())


def is_held_out(text: str, share: float, seed: int) -> bool:
    """Say whether a text is held out. Its letters decide: texts that differ in numbers go together."""
    letters = "".join(character for character in text.casefold() if character.isalpha())
    return int(hashlib.sha256(f"{seed}:{letters}".encode()).hexdigest()[:12], 16) / 16**12 < share


def _texts(rows: Dataset) -> Iterator[str]:
    for row in rows.select_columns(["claim", "evidence"]):
        yield row["claim"]
        yield from (piece["text"] for piece in row["evidence"])


def _plain(text: str) -> str:
    return " ".join(text.replace("``", '"').replace("''", '"').split())
