"""How fast are RelationNet and relation expansion beside plain loops over NLTK's WordNet, and do both give the same?

Every tool is a process of its own, from the start of the interpreter until the net of all training rows is made and every row's
new relations are found; the two take turns, each round under another hash seed. Seconds are of the processor, so neighbours
disturb little. Nets are compared pair by pair, new relations row by row and in order.

The loops are the paper's Algorithm 1 with this library's decisions where it is ambiguous: of several hypernyms the first in
WordNet's file (NLTK keeps them in a set, so its order is another in every process).

Rows are SemEval's if `HFCF_DATA` names the folder with the corpora, else as many random pairs of nouns, which share less. NLTK is
this environment's, or lies in the folder that `HFCF_PEER_NLTK` names; without it only this library is measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from common import read_options, run, show

PEER = "HFCF_PEER_NLTK"
CURE = "pip install --target FOLDER nltk==3.10.4"
RATIO = 0.8
LABELS = 19
"""Of SemEval, one of which is "Other"; synthetic rows have as many."""

Net = dict[str, dict[str, int]]
Words = list[list[str]]


def ours(rows: Words) -> tuple[Any, list[list[str]]]:
    """Return this library's net, and every row's new relations."""
    from hfcf.systems.ccg.relationnet import RelationNet, Triple

    triples = [Triple(*row) for row in rows]
    net = RelationNet.collect(row for row in triples if row.relation != "Other")
    return net, net.expand_all(triples, RATIO)


def loops(rows: Words) -> tuple[Net, list[list[str]]]:
    """Return the same by plain loops over NLTK."""
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # NLTK imports it where it can, which costs a second
    from nltk.corpus import wordnet

    def path(word: str) -> list[Any]:
        synsets = wordnet.synsets(wordnet.morphy(word) or word, pos=wordnet.NOUN)
        chain = synsets[:1]
        while chain:
            above = chain[-1].hypernyms() or chain[-1].instance_hypernyms()
            if len(above) > 1:
                file = wordnet._data_file("n")
                file.seek(chain[-1].offset())
                line = file.readline()
                above.sort(key=lambda synset: line.index(f" {synset.offset():08d} n "))
            if not above:
                break
            chain.append(above[0])
        return chain

    net: Net = {}
    for head, tail, relation in rows:
        if relation == "Other":
            continue
        for first in path(head):
            for second in path(tail):
                counts = net.setdefault(f"{first.offset()}-{second.offset()}", {})
                counts[relation] = counts.get(relation, 0) + 1
    answers = []
    for head, tail, relation in rows:
        heads, tails, new = path(head), path(tail), list[str]()
        for hop in range(ceil((len(heads) + len(tails) - 2) * RATIO) + 1 if heads and tails else 0):
            counts = {}
            for i in range(min(hop, len(heads) - 1) + 1):
                if hop - i < len(tails):
                    for name, count in net.get(f"{heads[i].offset()}-{tails[hop - i].offset()}", {}).items():
                        counts[name] = counts.get(name, 0) + count
            for name in sorted(counts, key=lambda name: -counts[name]):  # of equal counts the first counted
                if name != relation and name not in new:
                    new.append(name)
        answers.append(new)
    return net, answers


def work(place: Path) -> None:
    """Run one tool's process: print its seconds and memory, and then write its net and answers into a file."""
    rows = json.loads((place.parent / "rows.json").read_text(encoding="utf-8"))
    net, answers = {"ours": ours, "loops": loops}[place.name](rows)
    seconds, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if place.name == "ours":
        net = {f"{first}-{second}": counts for (first, second), counts in net.table().items()}
    place.write_text(json.dumps([net, answers]), encoding="utf-8")
    print(json.dumps({"seconds": seconds, "MiB": memory / (1024**2 if sys.platform == "darwin" else 1024)}))


def semeval(folder: Path) -> Words:
    """Read the head words and the relation of every training row in the released files.

    Not by `hfcf.load`: this process's memory counts in the peak of those that it starts.
    """
    rows = []
    for line in (folder / "ccg_semeval" / "semeval" / "original" / "train.tsv").read_text(encoding="utf-8").splitlines():
        relation, text = line.split("\t")
        tokens = text.split()
        words = [tokens[tokens.index(mark) - 1].rpartition("-")[2].lower() for mark in ("</e1>", "</e2>")]
        rows.append([*words, relation])
    return rows


def synthetic(wordnet: Path, number: int) -> Words:
    """Draw random pairs of WordNet's nouns, with relations that depend on both words."""
    rng = random.Random(1)
    lines = (wordnet / "index.noun").read_text(encoding="utf-8").splitlines()
    nouns = [word for line in lines if (word := line.partition(" ")[0]).isalpha() and int(line.split()[2]) > 1]
    pairs = [rng.sample(nouns, 2) for _ in range(number)]
    numbers = [(len(head) + len(tail) + rng.randrange(6)) % LABELS for head, tail in pairs]
    return [[*pair, f"relation {number}" if number else "Other"] for pair, number in zip(pairs, numbers, strict=True)]


def ask(name: str, place: Path, env: dict[str, str]) -> dict[str, float]:
    """Run a tool's process and return its figures."""
    command = [sys.executable, __file__, "--peer", str(place / name)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def equal(place: Path) -> dict[str, int]:
    """Count the pairs of the net and the rows' new relations that are equal in both."""
    (net, answers), (other_net, others) = (json.loads((place / name).read_text(encoding="utf-8")) for name in ("ours", "loops"))
    return {
        "pairs": len(other_net),
        "equal_pairs": sum(net.get(pair) == counts for pair, counts in other_net.items()) - len(net.keys() - other_net.keys()),
        "equal_rows": sum(answer == other for answer, other in zip(answers, others, strict=True)),
    }


def main() -> None:
    """Run both tools in turn and print seconds, memory, their ratio, and what is equal."""
    from hfcf.core import offline

    options = read_options(__doc__ or "")
    wordnet, data = offline.folder("wordnet"), os.environ.get("HFCF_DATA")
    rows = semeval(Path(data)) if data else synthetic(wordnet / "corpora" / "wordnet", 7_200)
    rows, rounds = (rows[:1_800], 1) if options.quick else (rows, 3)
    folder = os.environ.get(PEER)
    tools = ["loops", "ours"] if folder or find_spec("nltk") else ["ours"]
    results: dict[str, list[dict[str, float]]] = {tool: [] for tool in tools}
    same, answers = [], set()
    with tempfile.TemporaryDirectory() as folder_name:
        place = Path(folder_name)
        (place / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "NLTK_DATA": str(wordnet)}
        for seed in range(rounds):
            for tool in tools:
                path = {"PYTHONPATH": folder} if folder and tool == "loops" else {}
                results[tool].append(ask(tool, place, {**env, **path, "PYTHONHASHSEED": str(seed)}))
            answers.add(hashlib.sha256((place / "ours").read_bytes()).hexdigest())
            if "loops" in tools:
                same.append(equal(place))
        empty = sum(not new for new in json.loads((place / "ours").read_text(encoding="utf-8"))[1])
    figures: dict[str, Any] = {
        "rows": len(rows), "rows_without_new_relation": empty, "hash_seeds": rounds, "one_answer_under_all": len(answers) == 1,
        "tools": results, "equal": same,
    }  # fmt: skip
    titles = {"ours": "hfcf", "loops": "loops over NLTK"}
    seconds = {tool: [run["seconds"] for run in results[tool]] for tool in tools}
    table: list[list[Any]] = []
    for tool in tools:
        ratios = [theirs / ours for theirs, ours in zip(seconds[tool], seconds["ours"], strict=True)]
        figures[f"{tool}_over_ours"] = ratios
        memory = max(run["MiB"] for run in results[tool])
        table.append([titles[tool], median(seconds[tool]), memory, median(ratios), min(ratios), max(ratios)])
    columns = ["tool", "CPU s", "peak MiB", "÷ hfcf", "least", "most"]
    kind = "of SemEval" if data else "made of random nouns (HFCF_DATA is not set)"
    title = f"net and new relations of {len(rows)} rows {kind}, whole processes, {rounds} hash seed(s)"
    show(title, columns, table, options.json, figures)
    print(f"{empty} rows have no new relation; hfcf gave {len(answers)} answer(s) under {rounds} hash seed(s)")
    for counts in same:
        pairs = f"{counts['equal_pairs']} of {counts['pairs']} pairs of the net"
        print(f"equal: {pairs}, {counts['equal_rows']} of {len(rows)} rows in order")
    if "loops" not in tools:
        print(f"\nThe loops were not measured: there is no NLTK here and {PEER} names no folder with it. This makes one:\n{CURE}")


if __name__ == "__main__":
    run(main, work)
