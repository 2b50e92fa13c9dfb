"""How fast are EDA and synonym replacement beside the usual choices: the authors' eda_nlp, nlpaug and TextAttack?

Every tool is asked for nine sentences of each claim at α = 0.1, in a process of its own, one after another on the same few
claims, round by round; a second pass over the same claims is "warm". Seconds are of the processor, so neighbours disturb
little. The slow ones get the first claims of each round only. Claims are HoVer's development set if `HFCF_DATA` names the folder
with the corpora, else the demo's.

The others live in a virtual environment that `HFCF_PEER_EDA` names; without it only this library is measured. Their WordNet is
this library's; NLTK's stop words and tagger, which are downloads, are EDA's list and a tagger trained on the spaCy pipeline's tags.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from common import read_options, run, show, stub_flair, write_stop_words

PEER = "HFCF_PEER_EDA"
CURE = """python -m venv FOLDER
FOLDER/bin/pip install torch==2.13.0 nltk==3.10.4 nlpaug==1.1.11 "transformers<5" datasets bert-score \\
  editdistance jieba langdetect language_tool_python==2.9.4 lemminflect Levenshtein lru-dict more-itertools num2words OpenHowNet \\
  terminaltables word2number pinyin
FOLDER/bin/pip install --no-deps textattack==0.3.11    # without flair, which its EDA does not use
git clone https://github.com/jasonwei20/eda_nlp FOLDER/eda_nlp"""

SENTENCES, ALPHA = 9, 0.1
OURS = {"hfcf EDA": "ours", "hfcf synonyms": "synonyms"}
PEERS = {"eda_nlp": "eda_nlp", "nlpaug SynonymAug": "nlpaug", "TextAttack EDA": "textattack"}
SHARE = {"nlpaug": 0.1, "textattack": 0.04}
"""The share of each round's claims that a slow tool gets."""

Make = Callable[[str], Any]


def ours(place: Path) -> Make:
    from hfcf.systems.baselines._shared.word_edits import eda

    rng = random.Random(1)
    return lambda claim: eda(claim, rng, alpha=ALPHA, num_augmentations=SENTENCES)


def synonyms(place: Path) -> Make:
    from hfcf.core.edits import replace_text
    from hfcf.systems.baselines.synonym import synonym_edits

    rng = random.Random(1)
    return lambda claim: [replace_text(claim, synonym_edits(claim, rng, share=ALPHA)) for _ in range(SENTENCES)]


def eda_nlp(place: Path) -> Make:
    sys.path.insert(0, str(Path(sys.prefix) / "eda_nlp" / "code"))
    eda = import_module("eda")  # and not this file

    return lambda claim: eda.eda(claim, num_aug=SENTENCES)[:-1]  # the last is the source


def nlpaug(place: Path) -> Make:
    import nltk
    from nltk.tag.perceptron import PerceptronTagger

    try:
        nltk.pos_tag(["a"])
    except LookupError:
        tagger = PerceptronTagger(load=False)
        random.seed(0)
        tagger.train(json.loads((place / "tagged.json").read_text(encoding="utf-8")), nr_iter=3)
        nltk.tag.PerceptronTagger = lambda *_, **__: tagger
    import nlpaug.augmenter.word as words

    augmenter = words.SynonymAug(aug_src="wordnet", aug_p=ALPHA)
    return lambda claim: augmenter.augment(claim, n=SENTENCES)


def textattack(place: Path) -> Make:
    stub_flair()
    from textattack.augmentation import EasyDataAugmenter

    return EasyDataAugmenter(pct_words_to_swap=ALPHA, transformations_per_example=SENTENCES).augment


def work(place: Path) -> None:
    """Run one tool's process: for every line "START STOP" of the input, print the seconds and sentences of these claims."""
    claims = json.loads((place.parent / "claims.json").read_text(encoding="utf-8"))
    before = time.process_time()
    make: Make = globals()[place.name](place.parent)
    imported = time.process_time()
    make(claims[-1])
    print(json.dumps([imported - before, time.process_time() - imported]), flush=True)
    for line in sys.stdin:
        start, stop = map(int, line.split())
        before = time.process_time()
        sentences = sum(len(make(claim)) for claim in claims[start:stop])
        print(json.dumps([time.process_time() - before, sentences]), flush=True)


class Tool:
    """Run a tool in a process of its own."""

    def __init__(self, name: str, python: str, place: Path, env: dict[str, str]) -> None:
        command = [python, "-W", "ignore", __file__, "--peer", str(place / name)]
        self.name, self.share, self.passes = name, SHARE.get(name, 1.0), [[0.0, 0, 0], [0.0, 0, 0]]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.imported, self.first = self.answer()

    def answer(self) -> list[Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("["):  # TextAttack and others print, too
                answer: list[Any] = json.loads(line)
                return answer
        raise RuntimeError(f"{self.name} ended with status {self.process.wait()}; its message is above")

    def ask(self, number: int, start: int, stop: int) -> None:
        assert self.process.stdin is not None
        stop = start + max(1, round((stop - start) * self.share))
        print(start, stop, file=self.process.stdin, flush=True)
        seconds, sentences = self.answer()
        for i, value in enumerate((seconds, stop - start, sentences)):
            self.passes[number][i] += value

    def rate(self, number: int) -> float:
        """Return the claims per second."""
        seconds, claims, _ = self.passes[number]
        return claims / seconds

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def claims() -> list[str]:
    from hfcf.core import recipe

    release, demo = ("hover", "hover_dev_release_v1.1.json"), recipe.folder() / "demo" / "hover_train_release_v1.1.json"
    data = os.environ.get("HFCF_DATA")
    file = Path(data, *release) if data else demo
    return list(dict.fromkeys(row["claim"] for row in json.loads(file.read_text(encoding="utf-8"))))


def tag(sentences: list[str]) -> list[list[tuple[str, str]]]:
    """Tag sentences with the spaCy pipeline's Penn tags, to train a tagger on."""
    import spacy

    from hfcf.core import offline

    pipeline = spacy.load(offline.folder("spacy"), exclude=["ner", "lemmatizer", "parser"])
    return [[(token.text, token.tag_) for token in text if token.tag_] for text in pipeline.pipe(sentences)]


def main() -> None:
    """Run every tool and print claims per second and their ratios."""
    from hfcf.core import offline

    options = read_options(__doc__ or "")
    texts, folder = claims(), os.environ.get(PEER)
    rounds, size = (3, 100) if options.quick else (12, 200)
    size = min(size, len(texts) // rounds)  # the demo has fifty claims
    with tempfile.TemporaryDirectory() as folder_name:
        place = Path(folder_name)
        (place / "claims.json").write_text(json.dumps(texts), encoding="utf-8")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TA_CACHE_DIR": str(place / "textattack")}
        tools = {title: Tool(name, sys.executable, place, env) for title, name in OURS.items()}
        if folder:
            from hfcf.systems.baselines._shared.word_edits import STOP_WORDS

            (place / "tagged.json").write_text(json.dumps(tag(texts[-200:])), encoding="utf-8")
            write_stop_words(place, STOP_WORDS)
            env["NLTK_DATA"] = os.pathsep.join([str(offline.folder("wordnet")), str(place)])
            python = str(Path(folder) / "bin" / "python")
            tools |= {title: Tool(name, python, place, env) for title, name in PEERS.items()}
        for number in range(2):
            for i in range(rounds):
                for tool in tools.values():
                    tool.ask(number, i * size, (i + 1) * size)
        for tool in tools.values():
            tool.end()
    report(tools, rounds * size, options.json)
    if not folder:
        print(f"\nThe others were not measured: {PEER} names no environment with them. This makes one:\n{CURE}")


def report(tools: dict[str, Tool], number: int, to: Path | None) -> None:
    eda = tools["hfcf EDA"]
    table = []
    figures: dict[str, Any] = {"claims": number, "asked": SENTENCES}
    for title, tool in tools.items():
        _, claims, sentences = tool.passes[0]
        cold, warm = tool.rate(0), tool.rate(1)
        ratios = [eda.rate(i) / tool.rate(i) for i in range(2)]
        figures[tool.name] = {
            "claims": claims,
            "made_per_claim": sentences / claims,
            "import_seconds": tool.imported,
            "first_call_seconds": tool.first,
            "claims_per_second": cold,
            "claims_per_second_warm": warm,
            "eda_over_this": ratios[0],
            "eda_over_this_warm": ratios[1],
        }
        table.append(
            [
                title,
                claims,
                sentences / claims,
                tool.imported,
                tool.first,
                cold * sentences / claims,
                warm * sentences / claims,
                *ratios,
            ]
        )
    columns = ["tool", "claims", "made each", "import s", "first call s", "sentences/s", "warm", "hfcf EDA ÷ it", "warm"]
    show(f"nine sentences for each claim, α {ALPHA}; ratios are of claims per second", columns, table, to, figures)


if __name__ == "__main__":
    run(main, work)
