"""Parse tokens into dependencies and constituents, by spaCy or Stanza, and find noun phrases, by spaCy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Engine
from hfcf.engines.ner import backend_settings, check_backend, check_pipeline, stanza_pipeline

Tree = list[Any]
"""A constituent, `[label, child, …]`; a leaf is `[tag, index of the token]`."""

_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
_JOINING = ("cc", "conj", "preconj")
_PHRASES = {"NN": "NP", "PR": "NP", "JJ": "ADJP", "RB": "ADVP"}


@dataclass(frozen=True, kw_only=True)
class Parser(Engine):
    """Dependency parses of requests that are lists of tokens: `{"heads", "deps", "tags", "lemmas"}`, a list each.

    A head is the index of a token, -1 for a root. Tags are Penn's. The names of dependencies depend on the backend. spaCy's English
    models have ClearNLP's ("nsubjpass", "pobj"), Stanza has Universal Dependencies ("nsubj:pass", "obl"). Neither backend splits or
    joins tokens.

    Args:
        backend: "stanza" or "spacy".
        model: spaCy: a pipeline's package or folder, or "offline:spacy". Stanza: a language ("en") or a folder, see
            `hfcf.engines.ner.Ner`.

    Raises:
        ValueError: an unknown backend.
        ImportError: the backend is not installed; the message has the command that installs it.

    >>> parse = Parser(backend="spacy", model=Model("offline:spacy")).run([["rust", "eats", "iron"]])[0]
    >>> parse["heads"], parse["deps"], parse["tags"][1]
    ([1, -1, 1], ['nsubj', 'ROOT', 'dobj'], 'VBZ')
    """

    backend: str = "stanza"
    model: Model = Model("en")

    processors: ClassVar[str] = "tokenize,pos,lemma,depparse"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_backend(self.backend)

    def check_available(self, where: str) -> None:
        """Raise an error unless the backend and its model are installed; `hfcf.core.preflight` calls it."""
        check_pipeline(self.backend, self.model, "parsing", where)

    def settings(self) -> dict[str, Any]:
        return backend_settings(self.backend, self.model, "parsing")

    def dtype(self) -> torch.dtype:
        return torch.float32

    def load(self, device: torch.device) -> Any:
        if self.backend == "spacy":
            import spacy

            return spacy.load(self.model.source(), exclude=["ner"])
        return stanza_pipeline(self.model.source(), self.processors, device, tokenize_pretokenized=True)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return list(requests)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return _parses(self.backend, loaded, encoded)


@dataclass(frozen=True, kw_only=True)
class Constituents(Parser):
    """Constituency trees of requests that are lists of tokens: `[label, child, …]`, with leaves `[Penn tag, index]`.

    Stanza has a constituency parser. spaCy has none: its tree is an approximation from the dependency parse (`constituents`). The
    settings are the settings of `Parser`.

    >>> Constituents(backend="spacy", model=Model("offline:spacy")).run([["rust", "eats", "iron"]])[0]
    ['ROOT', ['S', ['NP', ['NN', 0]], ['VP', ['VBZ', 1], ['NP', ['NN', 2]]]]]
    """

    processors: ClassVar[str] = "tokenize,pos,constituency"

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        if self.backend == "spacy":
            return [constituents(**parse) for parse in _parses(self.backend, loaded, encoded)]
        return [_converted(sentence.constituency, iter(range(len(sentence.words)))) for sentence in _sentences(loaded, encoded)]


def _parses(backend: str, loaded: Any, encoded: Sequence[Any]) -> list[dict[str, Any]]:
    if backend == "spacy":
        from spacy.tokens import Doc

        docs = loaded.pipe([Doc(loaded.vocab, words=tokens) for tokens in encoded], batch_size=256)
        rows = [[(-1 if t.head.i == t.i else t.head.i, t.dep_, t.tag_, t.lemma_) for t in doc] for doc in docs]
    else:
        rows = [
            [(word.head - 1, word.deprel, word.xpos, word.lemma) for word in parsed.words] for parsed in _sentences(loaded, encoded)
        ]
    return [{name: [word[i] for word in row] for i, name in enumerate(("heads", "deps", "tags", "lemmas"))} for row in rows]


def _sentences(loaded: Any, encoded: Sequence[Any]) -> Sequence[Any]:
    sentences: Sequence[Any] = loaded([list(tokens) for tokens in encoded]).sentences
    words, tokens = [len(sentence.words) for sentence in sentences], [len(request) for request in encoded]
    if words != tokens:
        raise ValueError(f"Stanza returned sentences of {words} words for {tokens} tokens: does its model split words?")
    return sentences


def _converted(node: Any, indices: Iterator[int]) -> Tree:
    # Stanza's leaves are words below their tags.
    if len(node.children) == 1 and not node.children[0].children:
        return [node.label, next(indices)]
    return [node.label, *(_converted(child, indices) for child in node.children)]


def constituents(heads: Sequence[int], deps: Sequence[str], tags: Sequence[str], lemmas: Sequence[str] = ()) -> Tree:
    """Approximate constituents from a dependency parse of spaCy.

    A verb with its dependents is a VP. Its subjects, its conjunction ("because") and the dependents before them are not in the VP,
    but are its sisters in an S node. Every auxiliary opens a VP around the VP of its verb, as in the Penn Treebank. A preposition
    with its dependents is a PP, a noun an NP, and an adjective or adverb an ADJP or ADVP. A participle before a noun is not a VP.
    Phrases joined by "and" are siblings in their own constituent. Other heads make an S.
    """
    hanging: list[list[int]] = [[] for _ in heads]
    for i, head in enumerate(heads):
        if head >= 0:
            hanging[head].append(i)

    def phrase(i: int) -> Tree:
        joined = [k for k in hanging[i] if deps[k] in _JOINING]
        words = alone(i, [k for k in hanging[i] if deps[k] not in _JOINING])
        if not any(deps[k] == "conj" for k in joined):
            return words if not joined else [words[0], *ordered(i, words, joined)]
        sides = ordered(i, words, joined)
        return ["S" if any(side[0] == "S" for side in sides) else words[0], *sides]

    def alone(i: int, parts: list[int]) -> Tree:
        leaf, tag, dep = [tags[i], i], tags[i], deps[i]
        if dep in ("prep", "agent"):
            return ["PP", *ordered(i, leaf, parts)]
        if tag[:2] not in ("VB", "MD") or dep in ("amod", "compound") or (dep in ("aux", "auxpass") and not parts):
            label = _PHRASES.get(tag[:2])
            return [label or "S", *ordered(i, leaf, parts)] if parts or label == "NP" else leaf
        outer = [k for k in parts if deps[k] in _SUBJECTS or (deps[k] == "mark" and k < i)]
        first = max((k for k in outer if k < i), default=-1)
        outer = [k for k in parts if k in outer or k < first]
        inner = verbal(i, [k for k in parts if k not in outer])
        return ["S", *ordered(i, inner, outer)] if outer else inner

    def verbal(i: int, parts: list[int]) -> Tree:
        auxiliary = next((k for k in parts if deps[k] in ("aux", "auxpass") and k < i), None)
        if auxiliary is None:
            return ["VP", *ordered(i, [tags[i], i], parts)]
        before = [phrase(k) for k in parts if k <= auxiliary]
        return ["VP", *before, verbal(i, [k for k in parts if k > auxiliary])]

    def ordered(i: int, centre: Tree, parts: Sequence[int]) -> list[Tree]:
        return [centre if k == i else phrase(k) for k in sorted([i, *parts])]

    return ["ROOT", *(phrase(i) for i, head in enumerate(heads) if head < 0)]


_ASKING = ("WDT", "WP", "WP$", "WRB", "EX")


@dataclass(frozen=True, kw_only=True)
class NounPhrases(Engine):
    """Noun phrases of text requests that may name something (`[[start, end], …]` in code points, in order).

    They are spaCy's noun chunks, except pronouns and chunks that ask ("who", "what religion"). Chunks that only relate to what
    follows are also left out ("the captain" of "the captain of richmond", which is part of the question's predicate).

    They are poor references in QED's sense. They were measured on the 1,000 dev questions of QED with an explanation of one
    sentence. The offline pipeline finds 47% of the references exactly, and 30% of its phrases are references. QED's references
    often span several noun phrases, and taggers are trained on texts with capitals.

    Args:
        model: a spaCy pipeline with a parser: a package, a folder or "offline:spacy".

    >>> text = "who is the captain of richmond football club"
    >>> [text[start:end] for start, end in NounPhrases().run([text])[0]]
    ['richmond football club']
    """

    model: Model = Model("offline:spacy")

    def settings(self) -> dict[str, Any]:
        return backend_settings("spacy", self.model, "finding noun phrases")

    def dtype(self) -> torch.dtype:
        return torch.float32

    def load(self, device: torch.device) -> Any:
        import spacy

        return spacy.load(self.model.source(), exclude=["ner"])

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return list(requests)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return [
            [[chunk.start_char, chunk.end_char] for chunk in doc.noun_chunks if _names(chunk)]
            for doc in loaded.pipe(encoded, batch_size=256)
        ]


def _names(chunk: Any) -> bool:
    """Return whether a noun chunk may name something by itself."""
    if chunk.root.pos_ == "PRON" or any(token.tag_ in _ASKING for token in chunk):
        return False
    return not any(child.dep_ == "prep" and child.lower_ == "of" for child in chunk.root.children)
