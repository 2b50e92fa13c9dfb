"""How fast is CCG's search for the words that decide a relation, beside asking the classifier about every filled sentence?

For each word between the entities a masked language model gives a hundred fills, and the question is whether one of them changes
the classifier's prediction. Three ways find the same words:

- "padded to 384": every sentence, in batches of 32, all of one length, as the authors' classifier reads them. A part of the
  sentences is timed and the rest reckoned from it, since all cost the same.
- "well padded": every sentence, in batches of 32 in their order, padded to the longest of the batch.
- "hfcf": the engine `Intervention`.

With `--patience 5 25` a second table has what the engine misses, and saves, if it gives a word up after that many fills.

Seconds are of the processor, on one thread, in turns; the fills are given to all three, and the first two their sentences in pieces
besides. If `HFCF_DATA` names the folder with the corpora, sentences are those of SemEval's test set as CCG samples it, all 543 that
can be searched (most of an hour), and parts of them of 18 words between two entities; else made-up ones. The classifier is as CCG's
offline preset has two on the 10 % sample: an R-BERT that is trained once, for some minutes, on half of it (or of made-up rows), and
kept in the cache folder; `--indicator FOLDER` gives another. How often fills flip it decides how much there is to save.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from common import patched, show
from datasets import Dataset

from hfcf import load
from hfcf.core.model import Model
from hfcf.core.paths import cache_dir
from hfcf.core.task import get_task
from hfcf.engines.base import Encoded
from hfcf.engines.classifier import choose
from hfcf.engines.intervention import Intervention
from hfcf.engines.rbert import encode_marked, probabilities
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.system import CCG
from hfcf.tasks.relation import OTHER, spans, trouble
from hfcf.training.relation import train_relation

MASKED = Model("hfcf:mlm")
BATCH, PADDED, LONG = 32, 384, 18

Row = dict[str, Any]


def make_row(name: str, tokens: list[str], head: Sequence[int], tail: Sequence[int], label: str) -> Row:
    """Make a row."""
    entities = {key: {"start": start, "end": end, "type": None} for key, (start, end) in (("head", head), ("tail", tail))}
    return {"id": name, "tokens": tokens, **entities, "label": label, "group_id": name, "corpus": "semeval", "split": "train"}


def invent(number: int, rng: random.Random) -> list[Row]:
    """Make rows of a few templates."""
    templates = {
        "Cause-Effect(e1,e2)": "the {} had soon caused the {} in the city",
        "Entity-Origin(e1,e2)": "these {} came out of an old {} last year",
        "Content-Container(e1,e2)": "many {} were kept inside the small {} there",
        "Member-Collection(e1,e2)": "every {} that was in the large {} left",
    }
    nouns = re.findall(
        r"\w+", "storm fire water letter apple bird box school team river house market soldier army fish song book film"
    )
    rows = []
    for i in range(number):
        label = rng.choice(sorted(templates))
        words = templates[label].split()
        first, second = (k for k, word in enumerate(words) if word == "{}")
        words[first], words[second] = rng.sample(nouns, 2)
        rows.append(make_row(str(i), words, (first, first + 1), (second, second + 1), label))
    return rows


def rows() -> tuple[list[Row], list[Row], str]:
    """Return rows to train on, rows to search, and their name."""
    if folder := os.environ.get("HFCF_DATA"):
        parts = (load("ccg_semeval", data_dir=Path(folder) / "ccg_semeval", split=split) for split in ("10pct", "test"))
        train, test = (part.select_columns(list(get_task("relation").features)).to_list() for part in parts)
        return train[::2], test, "SemEval"
    rng = random.Random(7)
    return invent(200, rng), invent(200, rng), "made-up"


def train_once(rows: list[Row], name: str) -> str:
    """Return the folder of the classifier, which the first call trains."""
    folder = cache_dir() / "benchmarks" / f"rbert-{name}-half"
    if not folder.exists():
        print(f"training a classifier on {len(rows)} rows, once, into {folder} …", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Trained in a folder beside and renamed, so that a killed training leaves no model.
        work = Path(tempfile.mkdtemp(dir=folder.parent)) / "model"
        train_relation(Dataset.from_list(rows), CCG.preset("offline").classifier, work)
        work.rename(folder)
        work.parent.rmdir()
    return str(folder)


def spread(rows: Sequence[Row], words: int) -> list[Row]:
    """Cut parts of sentences: a word as head, `words` words after it, and the word after these as tail."""
    parts = []
    for row in rows:
        start = row["head"]["end"] - 1
        part = row["tokens"][start : start + words + 2]
        if len(part) == words + 2 and all(any(c.isalnum() for c in word) for word in part):
            parts.append(make_row(row["id"], part, (0, 1), (words + 1, words + 2), row["label"]))
    return parts


class Case:
    """Some rows with their fills, and the three ways to search them."""

    def __init__(self, chosen: Sequence[Row], model: Model, top: int) -> None:
        stage = IdentifyCausalTerms(masked=MASKED, indicator=model, top=top, parser=None)
        start = time.process_time()
        self.fills = stage._fills(chosen)
        self.fill_seconds = time.process_time() - start
        self.rows = list(chosen)
        self.classifier, self.engine = RelationClassifier(model=model), Intervention(indicator=model)
        self.engine.loaded()  # not in its seconds
        # The straightforward ways have the classifier as it is; the engine has its own, with layers that compute less.
        self.network, self.tokenizer, _ = self.classifier.loaded()
        self.labels = self.network.labels
        self.requests = [[row["tokens"], *map(list, spans(row))] for row in self.rows]
        self.bases = [choose(answer, self.labels) for answer in self.classifier.run(self.requests)]
        self.trials = [(i, word, fill) for i, words in enumerate(self.fills) for word, fills in words for fill in fills]
        self.encoded = [self._filled(*each) for each in self.trials]
        self.calls = 0

    def _filled(self, i: int, word: int, fill: str) -> Encoded:
        tokens, head, tail = self.requests[i]
        return encode_marked(self.tokenizer, [*tokens[:word], fill, *tokens[word + 1 :]], head, tail)

    def ask(self, number: int, padded: int | None = None) -> list[str]:
        """Classify the first sentences, every one of them."""
        labels = []
        for start in range(0, number, BATCH):
            batch = self.encoded[start : min(start + BATCH, number)]
            with patched(*([] if padded is None else [(self.tokenizer, "pad", self._padder(padded))])):
                labels += [choose(answer, self.labels) for answer in probabilities(self.network, self.tokenizer, batch)]
        return labels

    def _padder(self, length: int) -> Callable[..., Any]:
        pad = self.tokenizer.pad
        return lambda features, **kwargs: pad(features, padding="max_length", max_length=length, **kwargs)

    def well_padded(self) -> list[list[int]]:
        """Return the words that flip."""
        labels = self.ask(len(self.encoded))
        flipped: list[set[int]] = [set() for _ in self.rows]
        for (i, word, _), label in zip(self.trials, labels, strict=True):
            if label != self.bases[i]:
                flipped[i].add(word)
        self.labelled = labels
        return [sorted(words) for words in flipped]

    def search(self, patience: int | None = None) -> list[list[int]]:
        """Return the words that flip, by the engine, and count its requests to the classifier."""
        forward = RelationClassifier.forward
        self.calls = 0

        def counted(engine: RelationClassifier, loaded: Any, encoded: Sequence[Encoded]) -> list[Any]:
            self.calls += len(encoded)
            return forward(engine, loaded, encoded)

        with patched((RelationClassifier, "forward", counted)):
            return replace(self.engine, patience=patience).run(self.requests)

    def patient(self, flipped: Sequence[Sequence[int]], tried: Sequence[int]) -> dict[int, dict[str, float]]:
        """Return the shares of words and of calls of each patience, and its seconds."""
        results = {}
        for patience in tried:
            replace(self.engine, patience=patience).loaded()  # not in its seconds
            start = time.process_time()
            words = self.search(patience)
            seconds = time.process_time() - start
            assert all(set(some) <= set(every) for some, every in zip(words, flipped, strict=True)), "more words than there are"
            shares = sum(map(len, words)) / max(1, sum(map(len, flipped))), (self.calls + len(self.rows)) / len(self.encoded)
            results[patience] = {"found": shares[0], "calls": shares[1], "seconds": seconds}
        return results

    def measure(self, padded: int, patience: Sequence[int]) -> dict[str, Any]:
        """Return the seconds and the results of each way."""
        self.requests, without_fills = [[*r, fills] for r, fills in zip(self.requests, self.fills, strict=True)], self.requests
        seconds: dict[str, float] = {}
        padded = min(padded, len(self.encoded))
        start = time.process_time()
        ours = self.search()
        seconds["hfcf"] = time.process_time() - start
        start = time.process_time()
        all_asked = self.well_padded()
        seconds["well"] = time.process_time() - start
        start = time.process_time()
        labels = self.ask(padded, PADDED)
        seconds["384"] = (time.process_time() - start) * len(self.encoded) / padded
        assert ours == all_asked, "the engine found other words than asking every sentence"
        assert labels == self.labelled[:padded], "padding changed a prediction"
        calls = self.calls
        patient = self.patient(ours, patience)
        self.requests = without_fills
        flips = sum(label != self.bases[i] for (i, *_), label in zip(self.trials, self.labelled, strict=True))
        words = sum(map(len, self.fills))
        return {
            "sentences": len(self.rows),
            "fills": max(len(fills) for words in self.fills for _, fills in words),
            "words": words,
            "words_that_flip": sum(map(len, all_asked)) / words,
            "fills_that_flip": flips / len(self.trials),
            "inputs": len(self.encoded),
            "pieces": sum(map(len, self.encoded)) / len(self.encoded),
            "calls": (calls + len(self.rows)) / len(self.encoded),
            "seconds": seconds,
            "seconds_of_fills": self.fill_seconds,
            "over_384": seconds["384"] / seconds["hfcf"],
            "over_well_padded": seconds["well"] / seconds["hfcf"],
            "patience": patient,
        }


def main() -> None:
    """Search, and print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute, once there is a classifier")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--indicator", help="the folder of an R-BERT")
    parser.add_argument("--rows", type=int, help="number of rows, else all (or 4); the share that flips varies between rows")
    parser.add_argument("--patience", type=int, nargs="*", default=[], help="tries these too, in a second table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.update(HFCF_REQUEST_CACHE="off", HFCF_DEVICE="cpu")
    train, test, name = rows()
    model = Model(options.indicator or train_once(train, name.lower()))
    pool = [row for row in test if row["label"] != OTHER and not trouble(row)]
    random.Random(4).shuffle(pool)
    # The quick run tries thirty of the long spans' hundred fills.
    counts, tops, padded = (
        ((options.rows or 4, 1), (100, 30), 16) if options.quick else ((options.rows or len(pool), 2), (100, 100), 96)
    )
    cases = {f"{name} rows": (pool[: counts[0]], tops[0])}
    if long := spread(pool, LONG)[: counts[1]]:
        cases[f"{LONG}-word spans"] = (long, tops[1])
    figures: dict[str, Any] = {"rows": name}
    table = []
    for title, (chosen, top) in cases.items():
        result = figures[title] = Case(chosen, model, top).measure(padded, options.patience)
        shares = [100 * result[key] for key in ("words_that_flip", "fills_that_flip")]
        times = [result["seconds"][key] for key in ("384", "well", "hfcf")]
        ratios = [100 * result["calls"], result["over_384"], result["over_well_padded"]]
        table.append([title, result["sentences"], result["words"], top, *shares, result["pieces"], *times, *ratios])
    columns = [
        "", "rows", "words", "fills", "flip %", "fills that flip %", "pieces", "384 s", "well padded s", "hfcf s", "calls %",
        "384 ÷ hfcf", "well padded ÷ hfcf",
    ]  # fmt: skip
    show("the words whose fills flip the prediction, the same ones found in every way", columns, table, options.json, figures)
    table = [
        [title, patience, 100 * result["found"], 100 * result["calls"], result["seconds"]]
        for title in cases
        for patience, result in figures[title]["patience"].items()
    ]
    if table:
        show("a word given up after some fills", ["", "patience", "words found %", "calls %", "hfcf s"], table, None, figures)


if __name__ == "__main__":
    main()
