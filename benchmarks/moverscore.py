"""How many pairs a second does MoverScore score, beside its authors' `moverscore_v2`, on equal scores?

Pairs are HoVer's claims with one or two words changed: all different, and ten candidates of each claim. Both sides have the same
encoder, the same IDF weights and one thread; times are of the processor, round by round in one process, and begin with texts and
end with scores. Of these, the transport is what the solver takes: theirs on the padded problem that they pose, by pyemd's own C++
(what they had; newer versions call POT if they are not entry otherwise, in a third of the time), and ours on the words that have
weight. Claims are HoVer's development set if `HFCF_DATA` names the folder with the corpora, else the
demo's.

The authors' file lies in a folder that `HFCF_PEER_MOVERSCORE` names; without it only this library is measured. It is run as it is,
with what newer libraries took away put back: `np.float`, and "cuda" read as the CPU.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import time
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Clock, patched, read_options, show
from threadpoolctl import threadpool_limits

PEER = "HFCF_PEER_MOVERSCORE"
CURE = """git clone https://github.com/AIPHES/emnlp19-moverscore FOLDER
pip install --target FOLDER --no-deps pyemd==1.1.0"""

Scores = Callable[[list[str], list[str]], Sequence[float]]


def claims() -> list[str]:
    from hfcf.core import recipe

    release, demo = ("hover", "hover_dev_release_v1.1.json"), recipe.folder() / "demo" / "hover_train_release_v1.1.json"
    data = os.environ.get("HFCF_DATA")
    file = Path(data, *release) if data else demo
    texts = list(dict.fromkeys(row["claim"] for row in json.loads(file.read_text(encoding="utf-8"))))
    random.Random(0).shuffle(texts)
    return [claim for claim in texts if 8 <= len(claim.split()) <= 40]


def pairs(texts: Sequence[str], number: int, each: int) -> tuple[list[str], list[str]]:
    """Return claims, and `each` candidates of each in which names of other claims replace words."""
    rng = random.Random(each)
    pool = [word for text in texts for word in text.split() if word[:1].isupper()]
    sources = [text for text in texts[: number // each] for _ in range(each)]
    return sources, [edit(source.split(), pool, rng) for source in sources]


def edit(words: list[str], pool: Sequence[str], rng: random.Random) -> str:
    """Replace one or two words, never by themselves: the authors' score of equal texts is 0.9997, since they subtract squares of
    distances in single precision."""
    candidate = list(words)
    while " ".join(candidate).lower() == " ".join(words).lower():
        for _ in range(rng.choice((1, 2))):
            candidate[rng.randrange(len(candidate))] = rng.choice(pool)
    return " ".join(candidate)


def ours(idf: str) -> Scores:
    from hfcf.core.model import Model
    from hfcf.metrics.shared.moverscore import MoverScore

    engine = MoverScore(model=Model("offline:minilm", dtype="float32"), idf=idf)
    return lambda sources, candidates: engine.run(list(zip(sources, candidates, strict=True)))


def theirs(folder: str, counts: dict[str, Any]) -> tuple[Scores, Any]:
    """Return the authors' function with these counts as both IDF tables, and their module."""
    from collections import defaultdict

    from hfcf.core import offline

    if not (Path(folder) / "moverscore_v2.py").is_file():
        sys.exit(f"{PEER}={folder} holds no moverscore_v2.py; this makes one:\n{CURE}")
    sys.path.insert(0, folder)
    os.environ["MOVERSCORE_MODEL"] = str(offline.folder("minilm"))
    np.float = float  # type: ignore[attr-defined]
    if "matplotlib.pyplot" not in sys.modules:  # it is imported and not used
        sys.modules["matplotlib.pyplot"] = types.ModuleType("pyplot")
    to = torch.nn.Module.to

    def on_cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        moved: list[Any] = ["cpu" if arg == "cuda" else arg for arg in args]
        return to(self, *moved, **kwargs)

    with patched((torch.nn.Module, "to", on_cpu)):
        import moverscore_v2 as peer
    peer.emd_with_flow = partial(peer.emd_with_flow, backend="cpp")
    rows = counts["rows"]
    idf: Any = defaultdict(lambda: math.log(rows + 1))
    idf |= {int(token): math.log((rows + 1) / (count + 1)) for token, count in counts["frequencies"].items()}

    def score(sources: list[str], candidates: list[str]) -> Sequence[float]:
        scores: Sequence[float] = peer.word_mover_score(sources, candidates, idf, idf, stop_words=[], n_gram=1, device="cpu")
        return scores

    return score, peer


def time_scores(score: Scores, texts: tuple[list[str], list[str]]) -> tuple[float, list[float]]:
    start = time.process_time()
    scores = list(score(*texts))
    return time.process_time() - start, scores


def main() -> None:
    """Score the same pairs by both and print pairs per second, ratios and the largest difference."""
    from hfcf.core.artifacts import save_artifact
    from hfcf.core.model import Model
    from hfcf.metrics.shared import moverscore

    options, folder = read_options(__doc__ or ""), os.environ.get(PEER)
    torch.set_num_threads(1)
    threadpool_limits(1)  # of NumPy, whose threads would spin on during the next measurement
    os.environ |= {"HFCF_REQUEST_CACHE": "off", "HFCF_DEVICE": "cpu"}
    texts = claims()
    number, rounds = (100, 1) if options.quick else (1000, 3)
    number = min(number, len(texts) // 10 * 10)
    counts = moverscore.fit_idf(texts, Model("offline:minilm"))
    sides: dict[str, Scores] = {"hfcf": ours(save_artifact(counts))}
    transport = {"hfcf": Clock(time.process_time)}
    places: list[Any] = [(moverscore, "_transport", transport["hfcf"].timed(moverscore._transport))]
    if folder:
        score, peer = theirs(folder, counts)
        sides, transport["authors"] = {"authors": score, **sides}, Clock(time.process_time)
        places.append((peer, "emd_with_flow", transport["authors"].timed(peer.emd_with_flow)))
    figures: dict[str, Any] = {"pairs": number, "rounds": rounds}
    table = []
    for side in sides.values():  # models are loaded at the first call
        side(["a b"], ["a c"])
    for title, each in (("different texts", 1), ("ten candidates a claim", 10)):
        texts_of_pairs = pairs(texts, number, each)
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        moved: dict[str, list[float]] = {name: [] for name in sides}
        scores: dict[str, list[float]] = {}
        with patched(*places):
            for _ in range(rounds):
                for name, side in sides.items():
                    transport[name].seconds = 0.0
                    took, scores[name] = time_scores(side, texts_of_pairs)
                    seconds[name].append(took)
                    moved[name].append(transport[name].seconds)
        entry: dict[str, Any] = {"pairs_per_second": {name: number / statistics.median(times) for name, times in seconds.items()}}
        entry["transport_us"] = {name: statistics.median(times) / number * 1e6 for name, times in moved.items()}
        row = [title, entry["pairs_per_second"]["hfcf"], entry["transport_us"]["hfcf"]]
        if folder:
            entry["ratio"] = statistics.median(a / b for a, b in zip(seconds["authors"], seconds["hfcf"], strict=True))
            entry["transport_ratio"] = entry["transport_us"]["authors"] / entry["transport_us"]["hfcf"]
            entry["largest_difference"] = max(abs(a - b) for a, b in zip(scores["authors"], scores["hfcf"], strict=True))
            row += [
                entry["pairs_per_second"]["authors"],
                entry["transport_us"]["authors"],
                entry["ratio"],
                entry["transport_ratio"],
            ]
            row.append(f"{entry['largest_difference']:.1e}")
        table.append(row)
        figures[title] = entry
    columns = ["pairs", "hfcf pairs/s", "transport µs"]
    columns += ["authors pairs/s", "transport µs", "faster", "transport faster", "scores differ by"] if folder else []
    what = f"MoverScore of {number} pairs, {rounds} rounds, one thread, seconds of the processor"
    show(what, columns, table, options.json, figures)
    if not folder:
        print(f"\nThe authors' code was not measured: {PEER} names no folder with it. This makes one:\n{CURE}")


if __name__ == "__main__":
    main()
