from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from offline_models import installed

from hfcf.core import offline
from hfcf.engines.wordnet import PARTS, Synset, WordNet, wordnet

real = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

OTHERS = [[f"word{i:04d}"] for i in range(900)]
LICENCE = "  1 WordNet 3.0 is what this says it is.  \n  2 Not all of it.  \n"
# Part of speech → synsets, in the order of their senses.
SENSES = {
    "n": [["goose"], ["fathead", "goose"], ["species"], ["specie"], ["axis"], ["ax", "axe"], ["May"], *OTHERS],
    "v": [["see", "behold"], ["saw"], ["take_place", "occur"]],
    "a": [["galore(ip)", "plenty"], ["big", "large"]],
    "r": [["well"]],
}  # fmt: skip
EXCEPTIONS = {
    "n": ["axes ax axe", "axes axis", "geese goose"],
    "v": ["beheld behold", "occurred occur", "saw see", "seen see", "took take"],
    "a": ["bigger big"],
    "r": ["better well"],
}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of WordNet's files with a few words, and enough others that an index is longer than a block."""
    folder = tmp_path / "wordnet"
    folder.mkdir()
    for part, name in PARTS.items():
        text, places = LICENCE, []
        for words in SENSES[part]:
            for word in words:
                places.append((word.partition("(")[0].lower(), len(text)))
            line = f"{len(words):02x} " + " ".join(f"{word} 0" for word in words)
            text += f"{len(text):08d} 03 {part} {line} 001 @ 00000000 n 0000 | a gloss; two | bars  \n"
        index = LICENCE
        for word, found in groupby(sorted(places, key=lambda place: place[0]), key=lambda place: place[0]):
            offsets = [offset for _, offset in found]
            index += f"{word} {part} {len(offsets)} 1 @ {len(offsets)} 0 {' '.join(f'{at:08d}' for at in offsets)}  \n"
        (folder / f"data.{name}").write_text(text, newline="\n")
        (folder / f"index.{name}").write_text(index, newline="\n")
        (folder / f"{name}.exc").write_text("".join(line + "\n" for line in EXCEPTIONS[part]), newline="\n")
    monkeypatch.setenv("HFCF_WORDNET", str(folder))
    return folder


def test_every_word_of_every_block_is_found(made_up: Path) -> None:
    net = wordnet()
    for part, sets in SENSES.items():
        for names in sets:
            for word in names:
                plain = tuple(name.partition("(")[0] for name in names)
                assert plain in [net.names(one) for one in net.synsets(word.partition("(")[0], part)]


@pytest.mark.parametrize(
    "word", ["", " ", "  1", "1", "word", "word0900", "zz", "!", "naïve", "goose ", "go\nose", "s", "ss", "ed"]
)
def test_what_is_no_word_has_no_synset(made_up: Path, word: str) -> None:
    assert wordnet().synsets(word) == ()


@pytest.mark.parametrize(
    ("word", "part", "lemmas"),
    [
        ("Geese", "n", ("goose",)),
        ("gooses", "n", ("goose",)),
        ("saw", "v", ("saw", "see")),
        ("species", "n", ("species", "specie")),
        ("axes", "n", ("axis",)),  # of two lines with one form the last counts, as in NLTK
        ("beholding", "v", ("behold",)),
        ("larger", "a", ("large",)),
        ("better", "r", ("well",)),
        ("bettering", "r", ()),
        ("beholdinges", "v", ()),  # rules are applied once
    ],
)  # fmt: skip
def test_lemmas(made_up: Path, word: str, part: str, lemmas: tuple[str, ...]) -> None:
    assert wordnet().lemmas(word, part) == lemmas


def test_names_keep_capitals_and_lose_markers(made_up: Path) -> None:
    net = wordnet()
    assert net.names(net.synsets("may")[0]) == ("May",)
    assert net.synonyms("galore") == ("plenty",)
    assert net.synonyms("plenty") == ("galore",)
    assert net.synonyms("occurred") == ("take place", "occur")


def test_missing_files_name_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_WORDNET", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"index\.noun is not in .*HFCF_WORDNET.*pip install"):
        wordnet()


def test_other_versions_and_line_ends_are_refused(made_up: Path) -> None:
    data = made_up / "data.adv"
    right = data.read_bytes()
    data.write_bytes(right.replace(b"WordNet 3.0", b"WordNet 3.1"))
    with pytest.raises(ValueError, match=r"WordNet 3\.0"):
        WordNet(made_up)
    data.write_bytes(right.replace(b"\n", b"\r\n"))
    with pytest.raises(ValueError, match="CRLF"):
        WordNet(made_up)


def _in_child(words: list[str], queue: multiprocessing.Queue) -> None:
    queue.put([wordnet().synonyms(word) for word in words])


@real
def test_a_map_survives_a_fork() -> None:
    words = ["dog", "run", "large", "quickly", "geese"]
    here = [wordnet().synonyms(word) for word in words[:2]]  # the child inherits an open, half-used reader
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(words, queue))
    child.start()
    there = queue.get()
    child.join()
    assert there[:2] == here
    assert there == [wordnet().synonyms(word) for word in words]
    assert all(there)


@real
def test_nothing_is_read_at_import_and_no_nltk() -> None:
    script = (
        "import sys; from hfcf.engines import wordnet; assert not wordnet._reader.cache_info().currsize; "
        "wordnet.wordnet().synonyms('dog'); "
        "print([name for name in ('nltk', 'torch', 'datasets', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.strip() == "[]"


@real
def test_known_synsets() -> None:
    net = wordnet()
    # Offsets of WordNet 3.0, as every other reader gives them.
    assert net.synsets("dog")[:2] == (Synset("n", 2084071), Synset("n", 10114209))
    assert [synset.part for synset in net.synsets("dog")] == list("nnnnnnnv")
    assert [synset.part for synset in net.synsets("well")] == list("nnnnnv" + "aaa" + "r" * 13)
    assert net.names(Synset("n", 2084071)) == ("dog", "domestic_dog", "Canis_familiaris")
    assert net.synonyms("dogs")[:3] == ("dog", "domestic dog", "Canis familiaris")
    assert net.synsets("U.S.")
    assert net.synsets("ice_cream") == net.synsets("ice_creams")


@pytest.fixture
def tree(made_up: Path) -> dict[str, Synset]:
    """A folder whose nouns are these, with their pointers in this order."""
    pointers = {
        "goose": ["~ specie", "@ ax", "@ axis"],
        "species": ["@i axis", "@ may", "@i goose"],
        "specie": ["@i goose", "%p axis", "@i ax"],
        "may": ["@ axis"],
        "ax": ["+ axis", "@ axe"],
        "axe": ["@ ax"],  # a circle
        "axis": [],
    }
    places = {name: Synset("n", 0) for name in pointers}
    for _ in range(2):  # the second time with the places that the first gave
        text = LICENCE
        for name, above in pointers.items():
            told = "".join(f"{symbol} {places[other].offset:08d} n 0000 " for symbol, other in (one.split() for one in above))
            places[name] = Synset("n", len(text))
            text += f"{len(text):08d} 03 n 01 {name} 0 {len(above):03d} {told}| a gloss; @ 00000001 n 0000 | bars  \n"
    (made_up / "data.noun").write_text(text, newline="\n")
    index = "".join(f"{name} n 1 1 @ 1 0 {places[name].offset:08d}  \n" for name in sorted(pointers))
    (made_up / "index.noun").write_text(LICENCE + index, newline="\n")
    return places


def test_hypernyms_are_in_the_order_of_the_file(tree: dict[str, Synset]) -> None:
    net = wordnet()

    def names(synsets: tuple[Synset, ...]) -> list[str]:
        return [name for synset in synsets for name in net.names(synset)]

    assert names(net.hypernyms(tree["goose"])) == ["ax", "axis"]
    assert names(net.hypernyms(tree["species"])) == ["may", "axis", "goose"]  # kinds before instances
    assert names(net.hypernyms(tree["specie"])) == ["goose", "ax"]
    assert names(net.hypernyms(tree["axis"])) == []
    assert names(net.hypernym_path(tree["species"])) == ["species", "may", "axis"]
    assert names(net.hypernym_path(tree["axis"])) == ["axis"]
    assert names(net.hypernym_path(tree["specie"])) == ["specie", "goose", "ax", "axe"]  # the circle is gone through once


def test_a_noun_is_of_the_first_lemma_in_any_part_of_speech(tree: dict[str, Synset]) -> None:
    noun = wordnet().noun
    assert noun("Geese") == noun("goose") == tree["goose"]
    assert noun("axes") == tree["axis"]
    assert noun("behold") is None  # a verb alone
    assert noun("word") is noun("") is noun("naïve") is None


@real
def test_nouns_and_their_first_paths() -> None:
    net = wordnet()

    def path(word: str) -> list[str]:
        synset = net.noun(word)
        return [net.names(one)[0] for one in net.hypernym_path(synset)] if synset else []

    assert net.noun("ran") == net.noun("run") == net.synsets("run", "n")[0]  # a form of the verb alone
    assert net.noun("quickly") is None
    assert path("Paris")[:2] == ["Paris", "national_capital"]  # an instance
    assert path("people")[-1] == path("geese")[-1] == path("entity")[0] == "entity"
    assert path("person")[:3] == ["person", "organism", "living_thing"]  # and not a causal agent


@real
def test_nouns_and_paths_are_nltks(monkeypatch: pytest.MonkeyPatch) -> None:
    """NLTK keeps hypernyms in a set: our path is one of its paths, and each step of it the first in the file."""
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [str(offline.folder("wordnet"))])
    from nltk.corpus import wordnet as other

    net, folder = wordnet(), offline.folder("wordnet") / "corpora" / "wordnet"
    words = [line.split()[0] for name in PARTS.values() for line in (folder / f"index.{name}").read_text().splitlines()[30::700]]
    words += [word + ending for word in words[:100] for ending in ("s", "es", "ing", "ed")] + ["", "xyzzyx", "geese", "axes"]
    assert "domestic_dog" in other.synsets("dog")[0].lemma_names()
    known = 0
    for word in words:
        synsets = other.synsets(other.morphy(word) or word, pos="n")
        synset = net.noun(word)
        assert (synset and synset.offset) == (synsets[0].offset() if synsets else None), word
        if synset:
            known += 1
            found = [one.offset for one in net.hypernym_path(synset)]
            assert found in [[one.offset() for one in reversed(path)] for path in synsets[0].hypernym_paths()], word
    assert known > 150


@real
def test_names_are_told_from_common_words() -> None:
    net = wordnet()
    for word in ("york", "canada", "Philippines", "james", "december", "wales", "americans", "german", "xyzzyx", ""):
        assert not net.is_common(word), word
    for word in ("film", "films", "written", "largest", "quickly", "turkey", "well-known", "left"):
        assert net.is_common(word), word


@real
def test_every_indexed_lemma_has_its_synsets() -> None:
    """A thousand lines of each index, read the slow way."""
    net, folder = wordnet(), offline.folder("wordnet") / "corpora" / "wordnet"
    for part, name in PARTS.items():
        lines = (folder / f"index.{name}").read_text().splitlines()
        lines = [line for line in lines if not line.startswith(" ")]
        for line in [*random.Random(name).sample(lines, 1000), lines[0], lines[-1]]:
            lemma, *fields = line.split()
            expected = [int(offset) for offset in fields[-int(fields[1]) :]]
            assert [synset.offset for synset in net.senses(lemma, part)] == expected
            assert all(lemma in [one.lower() for one in net.names(synset)] for synset in net.senses(lemma, part))


@real
@pytest.mark.parametrize(
    ("lemma", "word", "its_lemma", "part", "form"),
    [
        ("movie", "films", "film", "n", "movies"),
        ("story", "films", "film", "n", "stories"),
        ("church", "films", "film", "n", "churches"),
        ("woman", "films", "film", "n", "women"),
        ("child", "films", "film", "n", "children"),
        ("brother", "films", "film", "n", "brothers"),
        ("motion_picture", "films", "film", "n", "motion_pictures"),
        ("moving_man", "films", "film", "n", "moving_men"),
        ("mother-in-law", "films", "film", "n", "mothers-in-law"),
        ("trousers", "films", "film", "n", "trousers"),
        ("crisis", "films", "film", "n", "crises"),
        ("potato", "films", "film", "n", "potatoes"),
        ("movie", "film", "film", "n", "movie"),
        ("make", "creates", "create", "v", "makes"),
        ("carry", "creates", "create", "v", "carries"),
        ("have", "creates", "create", "v", "has"),
        ("go", "creates", "create", "v", "goes"),
        ("make", "created", "create", "v", "made"),
        ("carry", "created", "create", "v", "carried"),
        ("stop", "created", "create", "v", "stopped"),
        ("cut", "created", "create", "v", "cut"),
        ("write", "created", "create", "v", None),
        ("run", "created", "create", "v", None),
        ("bring_forth", "created", "create", "v", "brought_forth"),
        ("write", "sang", "sing", "v", "wrote"),
        ("write", "sung", "sing", "v", "written"),
        ("run", "wrote", "write", "v", "ran"),
        ("run", "written", "write", "v", "run"),
        ("show", "written", "write", "v", "shown"),
        ("show", "wrote", "write", "v", "showed"),
        ("compose", "written", "write", "v", "composed"),
        ("compose", "writing", "write", "v", "composing"),
        ("stop", "writing", "write", "v", "stopping"),
        ("die", "writing", "write", "v", "dying"),
        ("see", "writing", "write", "v", "seeing"),
        ("be", "writing", "write", "v", "being"),
        ("use", "writing", "write", "v", "using"),
        ("take_place", "writing", "write", "v", "taking_place"),
        ("swim", "wrote", "write", "v", "swam"),
        ("swim", "written", "write", "v", "swum"),
        ("large", "bigger", "big", "a", "larger"),
        ("happy", "bigger", "big", "a", "happier"),
        ("hot", "biggest", "big", "a", "hottest"),
        ("dry", "biggest", "big", "a", "driest"),
        ("prominent", "biggest", "big", "a", "most_prominent"),
        ("good", "bigger", "big", "a", "better"),
        ("well", "harder", "hard", "r", "better"),
        ("quickly", "harder", "hard", "r", "more_quickly"),
    ],
)
def test_inflection(lemma: str, word: str, its_lemma: str, part: str, form: str | None) -> None:
    assert wordnet().inflected_like(lemma, word, its_lemma, part) == form


@real
def test_inflected_forms_lead_back_to_their_lemmas() -> None:
    """Forms of two thousand common single words are what `lemmas` takes apart again."""
    net, folder = wordnet(), offline.folder("wordnet") / "corpora" / "wordnet"
    patterns = {"n": [("dogs", "dog")], "v": [("barks", "bark"), ("barked", "bark"), ("barking", "bark")]}
    wrong, asked = [], 0
    for part, samples in patterns.items():
        lines = [line.split() for line in (folder / f"index.{PARTS[part]}").read_text().splitlines() if line[0].isalpha()]
        lemmas = [fields[0] for fields in lines if int(fields[2]) > 1 and fields[0].isalpha()]  # of several senses
        for lemma in random.Random(1).sample(lemmas, 1000):
            for word, its_lemma in samples:
                form = net.inflected_like(lemma, word, its_lemma, part)
                asked += form is not None
                if form is not None and lemma not in net.lemmas(form, part):
                    wrong.append((lemma, form))
    assert asked > 3500
    assert len(wrong) / asked < 0.01, wrong
